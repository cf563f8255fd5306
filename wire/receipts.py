"""Receipts: what a verdict looks like on the wire (kernel.md section 12)."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

from ..models.effects import Effect
from ..models.fact import Fact
from ..models.reasons import Reason
from ..models.verdicts import Verdict
from .shapes import SHAPES

encode: Final = msgspec.json.Encoder().encode
"""Encodes receipts, and whatever else an answer holds."""


class _Accepted(msgspec.Struct, gc=False):
    accepted: Literal[True]
    facts: list[msgspec.Struct]
    effects: list[msgspec.Struct]


class _Refused(msgspec.Struct, gc=False):
    accepted: Literal[False]
    reason: Reason
    facts: list[msgspec.Struct]
    effects: list[msgspec.Struct]


class _Digest(msgspec.Struct, gc=False):
    digest: str


Receipt: TypeAlias = msgspec.Struct | msgspec.Raw
"""What `encode` writes as a receipt; one that is text already it copies."""


def receipt(verdict: Verdict) -> Receipt:
    """Return the receipt of a delivery."""
    if not verdict.facts:  # and so no effects (K-3); most of what a suite sends is refused
        return _BARE[verdict.reason]
    return _full(verdict.reason, verdict.facts, verdict.effects)


def owed_receipt(effects: tuple[Effect, ...]) -> Receipt:
    """Return the receipt of a recovery: all the effects that are still owed."""
    return _full(None, (), effects)


def digest_receipt(digest: str) -> Receipt:
    """Return the receipt of a digest."""
    return _Digest(digest)


def _full(reason: Reason | None, facts: tuple[Fact, ...], effects: tuple[Effect, ...]) -> Receipt:
    written = [SHAPES[type(fact)](fact) for fact in facts]
    owed = [SHAPES[type(effect)](effect) for effect in effects]
    if reason is None:
        return _Accepted(True, written, owed)  # noqa: FBT003 - structs are filled by position
    return _Refused(False, reason, written, owed)  # noqa: FBT003 - likewise


_BARE: Final = {reason: msgspec.Raw(encode(_full(reason, (), ()))) for reason in (None, *Reason)}
"""The receipts without facts: one text for each reason, and one for what is accepted."""
