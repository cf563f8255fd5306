"""Seeded scripts of the wire for tests: the kit's guided ones, with odd ids and nulls besides.

The words of the guided strategy are few and plain, so that it is fast. What it leaves alone is
changed here, after the fact and without changing what a script means: ids that K-7 must escape in
place of plain ones, and null in place of an optional field that is absent (section 3).
"""

from __future__ import annotations

import random
from typing import Any, Final

from turnlock.verification.fuzz.guided import RUNS, STEP_BYTES, decode

Raw = dict[str, Any]

TYPES: Final = (
    *("open_turn", "add_call", "seal_turn", "decide", "claim", "renew", "reject", "report", "lose"),
    *("resolve", "interrupt", "acknowledge", "revoke", "log", "tick", "recover"),
)
"""Every delivery, and the crash that belongs to harnesses (section 12)."""

_ODD: Final = {"a": "a/b", "b": "a%2Fb", "c/1": "%"}
"""Ids that meet when `/` and `%` are not escaped, or escaped in the wrong order (K-7)."""
_ODD_IN: Final = 8
"""One script in so many has them."""
_NULL_IN: Final = 20
"""One optional field in so many that is absent is given as null."""
_OPTIONAL: Final = {
    "open_turn": ("epoch",),
    "decide": ("reason", "decided_by", "expires_in", "arguments_digest"),
    "claim": ("worker", "lease"),
    "renew": ("attempt",),
    "reject": ("turn_id",),
    "report": ("attempt", "turn_id"),
    "lose": ("attempt", "turn_id"),
    "interrupt": ("reason",),
}


def run(rng: random.Random) -> Raw:
    """Return a random run object: limits small enough to be met, and sometimes none at all."""
    return rng.choice(RUNS)


def script(rng: random.Random, length: int, of: Raw | None = None) -> list[Raw]:
    """Return a script for a run with the limits of `of`; by default with none that are met."""
    limits: Raw = {} if of is None else of["limits"]
    number = next(place for place, run in enumerate(RUNS) if run["limits"] == limits)
    _, steps = decode(bytes([number]) + rng.randbytes(length * STEP_BYTES))
    odd = _ODD if rng.randrange(_ODD_IN) == 0 else {}
    return [_with_nulls(rng, _renamed(step, odd)) for step in steps]


def _renamed(step: Raw, odd: dict[str, str]) -> Raw:
    renamed = dict(step)
    if "invocation_id" in step:
        renamed["invocation_id"] = odd.get(step["invocation_id"], step["invocation_id"])
    if "call" in step:
        renamed["call"] = _renamed(step["call"], odd)
    if "calls" in step:
        renamed["calls"] = [_renamed(call, odd) for call in step["calls"]]
    return renamed


def _with_nulls(rng: random.Random, step: Raw) -> Raw:
    names = _OPTIONAL.get(step["type"], ())
    nulls = {name: None for name in names if name not in step and rng.randrange(_NULL_IN) == 0}
    return {**step, **nulls}
