"""Shapes: what the wire encodes is what the codec writes, byte for byte."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnlock.models.codec import write
from turnlock.models.effects import EFFECTS, Continue
from turnlock.models.facts import FACTS
from turnlock.models.reasons import Reason
from turnlock.models.record import Record
from turnlock.models.verdicts import Accepted, Refused, Verdict
from turnlock.wire.receipts import digest_receipt, encode, owed_receipt, receipt
from turnlock.wire.shapes import SHAPES

from ..models.strategies import records


@pytest.mark.parametrize("kind", [*FACTS, *EFFECTS])
@settings(max_examples=40)
@given(st.data())
def test_a_shape_is_encoded_as_the_codec_writes_the_record(
    kind: type[Record], data: st.DataObject
) -> None:
    """Names, order, what is left out and what is null: all of it is the same text."""
    record = data.draw(records(kind))

    assert encode(SHAPES[kind](record)) == msgspec.json.encode(write(record))


@settings(max_examples=200)
@given(records(Accepted) | records(Refused))
def test_a_receipt_says_the_verdict_and_nothing_else(verdict: Verdict) -> None:
    """Whether it stands ready as text or not."""
    said: dict[str, object] = {"accepted": verdict.accepted}
    if verdict.reason is not None:
        said["reason"] = str(verdict.reason)
    if verdict.facts:
        said["facts"] = [write(fact) for fact in verdict.facts]
        said["effects"] = [write(effect) for effect in verdict.effects]
    else:
        said |= {"facts": [], "effects": []}

    assert encode(receipt(verdict)) == msgspec.json.encode(said)


@pytest.mark.parametrize("reason", Reason)
def test_a_bare_refusal_names_its_reason(reason: Reason) -> None:
    text = b'{"accepted":false,"reason":"%s","facts":[],"effects":[]}' % reason.encode()

    assert encode(receipt(Refused(reason=reason))) == text


@given(records(Continue))
def test_a_recovery_owes_effects(effect: Continue) -> None:
    text = msgspec.json.encode({"accepted": True, "facts": [], "effects": [write(effect)]})

    assert encode(owed_receipt((effect,))) == text


def test_a_digest_is_text() -> None:
    assert encode(digest_receipt("0a")) == b'{"digest":"0a"}'
