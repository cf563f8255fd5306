"""The codec, against two others on the same values.

The floor is msgspec on plain objects: JSON to dicts and back, nothing checked, no records. The peer
is cattrs' own tagged union over the fact classes, with the same constructors behind it; it turns
5 into "5" before they can refuse it, and names no place of a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Union, get_args, get_origin

import msgspec
from cattrs import Converter
from cattrs.gen import make_dict_unstructure_fn, override
from cattrs.strategies import configure_tagged_union
from constructions import by_constructors, verdicts_of
from timing import Line, Work, measured, timed
from turns import RUN, Timed, turn_of_three

from turnlock import Call, Kernel, OpenTurn, Verdict
from turnlock.engine.snapshot import Snapshot
from turnlock.models.codec import (
    fact_from_json,
    read_delivery,
    read_fact,
    record_from_json,
    to_json,
    write,
)
from turnlock.models.facts import FACTS, Fact
from turnlock.models.strict_json import parse

PASSES: Final = 20
MEMBERS: Final = 100

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def _each(function: Callable[[Any], object], items: list[Any]) -> Work:
    def run() -> None:
        for _ in range(PASSES):
            for item in items:
                function(item)

    return timed(PASSES * len(items), run)


def _repeated(build: Callable[[], object], records: int) -> Work:
    def run() -> None:
        for _ in range(PASSES):
            build()

    return timed(PASSES * records, run)


def plain_receipt(verdict: Verdict) -> dict[str, object]:
    """Return a receipt as the wire writes it (kernel.md section 12)."""
    return {
        "accepted": verdict.accepted,
        "facts": [write(fact) for fact in verdict.facts],
        "effects": [write(effect) for effect in verdict.effects],
    }


def _receipt(verdict: Verdict) -> bytes:
    return _encode(plain_receipt(verdict))


def tagged_unions() -> Converter:
    """Return the peer: as strict as cattrs makes it, with the tag in a union of all facts."""
    converter = Converter(omit_if_default=True, forbid_extra_keys=True, detailed_validation=False)
    converter.register_structure_hook_func(_is_json, lambda value, _: value)
    converter.register_unstructure_hook_func(_is_json, lambda value: value)
    observed = override(omit_if_default=False)  # as the wire has it: always written
    hook = make_dict_unstructure_fn(
        Call, converter, _cattrs_omit_if_default=True, observed=observed
    )
    converter.register_unstructure_hook(Call, hook)
    configure_tagged_union(
        Union[FACTS],  # noqa: UP007 - made of a tuple
        converter,
        tag_name="type",
        tag_generator=_tag,
    )
    return converter


def _is_json(kind: object) -> bool:
    """Say whether a field holds JSON: the constructors check it, so the peer need not."""
    return Mapping in {get_origin(option) for option in (kind, *get_args(kind))}


def _tag(cls: Any) -> str:  # noqa: ANN401 - a class of facts
    return str(cls.type)


def open_kernel() -> Kernel:
    """Return a kernel with a turn of many calls, half of them gated."""
    calls = tuple(
        Call(
            invocation_id=f"call-{number}",
            tool_name="transfer",
            arguments={"account": f"account-{number}", "amount": number},
            requires_approval=number % 2 == 0,
        )
        for number in range(MEMBERS)
    )
    kernel = Kernel(RUN)
    kernel.receive(OpenTurn(turn_id="turn-1", calls=calls), 0.0)
    return kernel


def _round_trip(kernel: Kernel) -> Kernel:
    stored = record_from_json(Snapshot, to_json(kernel.snapshot()))
    return Kernel.recover(RUN, (), snapshot=stored)


def _plain_round_trip(raw: object) -> object:
    return _decode(_encode(raw))


def measure(rounds: int) -> list[Line]:
    """Measure the deliveries, facts and receipts of a turn of three, and one snapshot."""
    turn: list[Timed] = turn_of_three()
    verdicts = verdicts_of(turn)
    facts: list[Fact] = [fact for verdict in verdicts for fact in verdict.facts]
    raw_deliveries = [_decode(_encode(write(delivery))) for delivery, _ in turn]
    raw_facts = [_decode(_encode(write(fact))) for fact in facts]
    lines = [to_json(fact) for fact in facts]
    receipts = [plain_receipt(verdict) for verdict in verdicts]
    peer = tagged_unions()
    any_fact: Any = Union[FACTS]  # noqa: UP007 - made of a tuple
    kernel = open_kernel()
    snapshot = write(kernel.snapshot())
    _check(peer, any_fact, facts, raw_facts)

    samples = measured(
        rounds,
        {
            "read a delivery": _each(read_delivery, raw_deliveries),
            "read a fact": _each(read_fact, raw_facts),
            "construct a fact": _repeated(by_constructors(facts), len(facts)),
            "write a fact": _each(write, facts),
            "tagged union: read a fact": _each(
                partial(_structure, peer.structure, any_fact), raw_facts
            ),
            "tagged union: write a fact": _each(
                partial(_structure, peer.unstructure, any_fact), facts
            ),
            "a fact from a line of a journal": _each(fact_from_json, lines),
            "strict parse alone": _each(parse, lines),
            "msgspec: decode that line": _each(_decode, lines),
            "a fact to a line of a journal": _each(to_json, facts),
            "msgspec: encode that line": _each(_encode, [_decode(line) for line in lines]),
            "write and encode a receipt": _each(_receipt, list(verdicts)),
            "msgspec: encode that receipt": _each(_encode, receipts),
            "snapshot to JSON and back to a kernel": timed(1, partial(_round_trip, kernel)),
            "msgspec: that snapshot": timed(1, partial(_plain_round_trip, snapshot)),
        },
    )
    notes = {
        "read a delivery": "mean over a turn of three, as all below",
        "construct a fact": "the public constructor alone, on values already frozen",
        "snapshot to JSON and back to a kernel": f"a turn of {MEMBERS} calls",
    }
    pairs = [
        ("read a fact", "construct a fact"),
        ("tagged union: read a fact", "read a fact"),
        ("tagged union: write a fact", "write a fact"),
        ("a fact from a line of a journal", "msgspec: decode that line"),
        ("a fact to a line of a journal", "msgspec: encode that line"),
        ("write and encode a receipt", "msgspec: encode that receipt"),
        ("snapshot to JSON and back to a kernel", "msgspec: that snapshot"),
    ]
    return [
        *(sample.line(name, note=notes.get(name, "")) for name, sample in samples.items()),
        *(samples[one].over(samples[other], f"{one} / {other}") for one, other in pairs),
    ]


def _structure(function: Callable[[Any, Any], object], kind: object, value: object) -> object:
    return function(value, kind)


def _check(peer: Converter, any_fact: Any, facts: list[Fact], raws: list[Any]) -> None:  # noqa: ANN401
    """Compare like with like: both read the same fact, and write the same object."""
    for fact, raw in zip(facts, raws, strict=True):
        if peer.structure(raw, any_fact) != fact or read_fact(raw) != fact:
            raise AssertionError(raw)
        written = _decode(_encode(peer.unstructure(fact, any_fact)))
        if written != raw:
            raise AssertionError(written)
