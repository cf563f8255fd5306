"""Families of deliveries that the scopes are put together from.

All timers are 1 s and ticks are 1 s, so that every bound has a state at it and one past it;
whatever is delivered 1 s later in the state at a bound comes in the same receive as the deadline.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ..findings import Raw
from .symbols import TICK, Attempt, approve, call, deny, of_call, of_turn

CURRENT: Final = Attempt(0)
NEXT: Final = Attempt(1)
PREVIOUS: Final = Attempt(-1)

RETRY: Final = {"as": "retry"}
FOUND: Final = {"as": "result", "result": "ok"}
LOST: Final = {"as": "error", "error": "no"}


def run(*, kind: str | None = None, **limits: float) -> Raw:
    """Return a run with small limits."""
    return {
        "run_id": "r",
        "kind": kind,
        "agent_id": "agent",
        "limits": {"remember_for": 1, **limits},
    }


def decisions(turn_id: str, names: Iterable[str], **fields: Any) -> list[Raw]:  # noqa: ANN401
    """Return an approval and a denial of each of these."""
    return [say(turn_id, name, **fields) for name in names for say in (approve, deny)]


def executions(turn_id: str, names: Iterable[str], **claim: Any) -> list[Raw]:  # noqa: ANN401 - JSON
    """Return the life of each of these: claimed, reported with both outcomes, lost, rejected."""
    return [
        it
        for name in names
        for it in (
            of_call("claim", turn_id, name, attempt=NEXT, **claim),
            of_call("report", turn_id, name, result="ok"),
            of_call("report", turn_id, name, error="no"),
            of_call("lose", turn_id, name),
            of_call("reject", turn_id, name, error="no"),
        )
    ]


def doubts(turn_id: str, names: Iterable[str]) -> list[Raw]:
    """Return what a doubt is resolved by, and what comes from attempts that do not count."""
    return [
        it
        for name in names
        for it in (
            of_call("resolve", turn_id, name, attempt=CURRENT, **RETRY),
            of_call("resolve", turn_id, name, attempt=CURRENT, **FOUND),
            of_call("resolve", turn_id, name, attempt=PREVIOUS, **RETRY),
            of_call("claim", turn_id, name, attempt=CURRENT),
            of_call("report", turn_id, name, attempt=CURRENT, result="ok"),
            of_call("report", turn_id, name, attempt=PREVIOUS, result="ok"),
            of_call("report", turn_id, name, attempt=NEXT, result="ok"),
            of_call("lose", turn_id, name, attempt=PREVIOUS),
        )
    ]


def astray(turn_id: str, name: str) -> list[Raw]:
    """Return deliveries about nothing: of another run, turn or invocation, or of no turn at all.

    Every kind comes for a turn that there never was, and for an invocation that there never was.
    """
    kinds: list[tuple[str, Raw]] = [
        ("decide", {"approved": True}),
        ("decide", {"approved": False}),
        ("claim", {"attempt": NEXT}),
        ("renew", {"lease": 1.0}),
        ("reject", {"error": "no"}),
        ("report", {"result": "ok"}),
        ("lose", {}),
        ("resolve", {"attempt": CURRENT, **RETRY}),
    ]
    return [
        *[of_call(kind, "T9", name, **fields) for kind, fields in kinds],
        *[of_call(kind, turn_id, "x", **fields) for kind, fields in kinds],
        of_call("claim", turn_id, name, attempt=NEXT, run_id="other"),
        of_call("report", turn_id, name, result="ok", run_id="other"),
        of_turn("interrupt", turn_id, run_id="other"),
        {**TICK, "run_id": "other"},
        of_call("report", None, name, result="ok"),
        of_call("report", None, name, error="no"),
        of_call("lose", None, name),
        of_call("reject", None, name, error="no"),
        of_call("report", None, "x", result="ok"),
        of_turn("interrupt", "T9", grace=1.0),
        of_turn("seal_turn", "T9"),
        of_turn("add_call", "T9", call=call(name)),
        of_turn("acknowledge", "T9"),
        {"type": "log", "invocation_id": name, "text": "hm"},
    ]


def of_turns(*turn_ids: str, grace: float = 1.0) -> list[Raw]:
    """Return an interrupt and an acknowledge of each of these turns."""
    return [
        it
        for turn_id in turn_ids
        for it in (of_turn("interrupt", turn_id, grace=grace), of_turn("acknowledge", turn_id))
    ]
