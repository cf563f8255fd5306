"""Small concurrent stories whose every schedule is run: what came before, and who does what."""

from __future__ import annotations

from typing import Final

import attrs

from turnlock.verification.subjects.subject import Raw, Script


@attrs.frozen
class Story:
    """A run as it stands after `before`, and tasks that deliver at the same time.

    All in one turn: a history is checked for the turn that it is about.
    """

    name: str
    before: Script
    tasks: tuple[Script, ...]


RUN: Final[Raw] = {"run_id": "r", "limits": {"remembered": 16}}
"""The run of every story."""

_TURN: Final[Raw] = {"turn_id": "T1"}
_A: Final[Raw] = {**_TURN, "invocation_id": "a"}
_B: Final[Raw] = {**_TURN, "invocation_id": "b"}


def _call(invocation_id: str, *, gated: bool = False) -> Raw:
    fields: Raw = {"invocation_id": invocation_id, "tool_name": "pay", "arguments": {}}
    return {**fields, "requires_approval": gated}


def _opened(*calls: Raw) -> Raw:
    return {"type": "open_turn", "now": 0.0, **_TURN, "calls": [*calls]}


def _claim(of: Raw, now: float, worker: str, **more: object) -> Raw:
    return {"type": "claim", "now": now, **of, "attempt": 1, "worker": worker, **more}


def _report(of: Raw, now: float, result: object) -> Raw:
    return {"type": "report", "now": now, **of, "attempt": 1, "result": result}


def _decide(of: Raw, now: float, **decision: object) -> Raw:
    return {"type": "decide", "now": now, **of, **decision}


STORIES: Final = (
    Story(
        "one approval, two executors, one interrupt",
        (_opened(_call("a", gated=True)), _decide(_A, 1.0, approved=True)),
        (
            (_claim(_A, 2.0, "w1"), _report(_A, 4.0, 1)),
            (_claim(_A, 3.0, "w2"), _report(_A, 5.0, 2)),
            ({"type": "interrupt", "now": 4.0, **_TURN, "grace": 9.0},),
        ),
    ),
    Story(
        "the last two outcomes, one continuation",
        (_opened(_call("a"), _call("b")), _claim(_A, 1.0, "w1"), _claim(_B, 1.0, "w2")),
        (
            (_report(_A, 2.0, 1), {"type": "acknowledge", "now": 3.0, **_TURN}),
            (_report(_B, 2.0, 2), {"type": "acknowledge", "now": 3.0, **_TURN}),
            (_report(_B, 2.5, 3),),
        ),
    ),
    Story(
        "an approval for the turn against a deny",
        (_opened(_call("a", gated=True), _call("b", gated=True)),),
        (
            (_decide(_A, 1.0, approved=True, scope="turn"),),
            (_decide(_B, 1.0, approved=False), _decide(_A, 1.5, approved=False)),
            (_claim(_B, 2.0, "w1"), _claim(_A, 2.0, "w1")),
        ),
    ),
    Story(
        "a lease that runs out against a report",
        (_opened(_call("a")), _claim(_A, 1.0, "w1", lease=1.0)),
        (
            (_report(_A, 2.0, "in time"),),
            ({"type": "tick", "now": 3.0}, {"type": "acknowledge", "now": 3.5, **_TURN}),
            ({"type": "resolve", "now": 2.5, **_A, "attempt": 1, "as": "retry"},),
        ),
    ),
)
"""What two copies of an approval, a late outcome, a deadline or an interrupt race for."""
