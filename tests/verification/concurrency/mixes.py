"""Hostile mixes for real threads: each thread's deliveries about one turn, drawn from a seed."""

from __future__ import annotations

import random
from typing import Final

from turnlock.verification.subjects.subject import Raw, Script

ROUND_SECONDS: Final = 100.0
"""Between the beginnings of two rounds, on the clock that the deliveries name."""
_INVOCATIONS: Final = ("a", "b", "c")
_WORKERS: Final = ("w1", "w2", "w3")


def mix(draws: random.Random, number: int, *, threads: int, operations: int) -> list[Script]:
    """Return a script for each thread, all about the turn of this round.

    Every thread opens the turn, as when an opening is delivered again; one of them will succeed.
    """
    opening = _opening(number)
    return [
        [opening, *(_drawn(draws, number) for _ in range(operations - 1))] for _ in range(threads)
    ]


def ending(number: int) -> Script:
    """Return what ends the turn of a round, whatever became of it, so that another can begin."""
    turn = {"turn_id": f"T{number}"}
    now = (number + 0.6) * ROUND_SECONDS
    return [
        {"type": "seal_turn", "now": now, **turn},
        {"type": "interrupt", "now": now, **turn, "grace": 0.0},
        {"type": "tick", "now": now + 1.0},
        {"type": "acknowledge", "now": now + 2.0, **turn},
    ]


def _opening(number: int) -> Raw:
    calls: list[Raw] = [
        {
            "invocation_id": name,
            "tool_name": "ls",
            "arguments": {},
            "requires_approval": name != "c",
            "approval_timeout": 30.0,
        }
        for name in _INVOCATIONS
    ]
    now = number * ROUND_SECONDS
    return {"type": "open_turn", "now": now, "turn_id": f"T{number}", "calls": calls}


def _drawn(draws: random.Random, number: int) -> Raw:
    """Draw one delivery: mostly about this turn, sometimes late, mismatched, unknown, nowhere."""
    turn_id = draws.choice([f"T{number}"] * 8 + [f"T{number - 1}", "T?"])
    invocation_id = draws.choice([*_INVOCATIONS * 4, "?"])
    named: Raw = {"turn_id": turn_id, "invocation_id": invocation_id}
    worker, attempt = draws.choice(_WORKERS), draws.choice([1, 1, 1, 2])
    kinds: list[Raw] = [
        {"type": "decide", **named, "approved": True, "scope": draws.choice(["once", "turn"])},
        {"type": "decide", **named, "approved": draws.random() < 0.7},
        *[{"type": "claim", **named, "attempt": attempt, "worker": worker, "lease": 20.0}] * 3,
        *[{"type": "report", **named, "result": worker}] * 2,
        {"type": "report", "invocation_id": invocation_id, "error": "no", "attempt": attempt},
        {"type": "lose", **named, "attempt": attempt},
        {"type": "resolve", **named, "attempt": attempt, "as": "retry"},
        {"type": "renew", **named, "attempt": attempt, "lease": 5.0},
        {"type": "reject", **named, "error": "bad arguments"},
        {"type": "interrupt", "turn_id": f"T{number - 1}"},
        {"type": "acknowledge", "turn_id": turn_id},
        {"type": "tick"},
    ]
    now = number * ROUND_SECONDS + draws.randrange(40)
    return {**draws.choice(kinds), "now": now}
