"""Holds a system's receipts against the oracle's, and makes a finding of the first that differs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from ..findings import Finding
from ..judging import active
from ..oracle.oracle import Oracle
from ..rulebook import accused, first_difference
from ..subjects.subject import Raw, Script

_encode: Final = msgspec.json.Encoder(order="deterministic").encode


def alike(expected: Raw, got: Raw) -> bool:
    """Whether two receipts are the same: whole, as JSON.

    What is not the same to the byte is asked of the rulebook, which knows that 1 and 1.0 are one
    number to a kernel in another language, but that true is none.
    """
    return _same(expected, got) or first_difference(expected, got) is None


def _same(one: object, other: object) -> bool:
    """Whether two values are equal and of the same types: to Python alone, 1 is true."""
    return one == other and _encode(one) == _encode(other)


def expected_receipts(run: Raw, script: Script) -> list[Raw]:
    """Return what the oracle answers to a script."""
    receive = Oracle(run).receive
    return [receive(delivery) for delivery in script]


def difference(
    run: Raw,
    script: Script,
    expected: Sequence[Raw],
    got: Sequence[Raw],
    *,
    technique: str,
) -> Finding | None:
    """Return the first step that was answered otherwise, with the script that ends there.

    What was judged of the script is counted (`judging`).
    """
    found = _difference(run, script, expected, got, technique)
    tally = active()
    if tally is not None:
        tally.script(script, expected, found)
    return found


def _difference(
    run: Raw, script: Script, expected: Sequence[Raw], got: Sequence[Raw], technique: str
) -> Finding | None:
    if _same(expected, got):
        return None
    for step, (wanted, received) in enumerate(zip(expected, got, strict=True)):
        if not alike(wanted, received):
            return accused(technique, run, tuple(script[: step + 1]), wanted, received)
    return None
