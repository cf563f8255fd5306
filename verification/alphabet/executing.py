"""Slices about executions: claims, leases, doubt, attempts, deadlines, interrupts."""

from __future__ import annotations

from typing import Any, Final

from ..findings import Raw
from .slice import RECOVER, Slice, at_times, run_with
from .symbols import TICK, approve, call, deny, of_call, of_turn, open_turn, symbols


def _resolve(invocation_id: str, attempt: int, as_: str, **value: Any) -> Raw:  # noqa: ANN401 - JSON
    return of_call("resolve", "T", invocation_id, attempt=attempt, **{"as": as_}, **value)


LEASES: Final = Slice(
    name="leases",
    about="one execution: claims by workers, leases, doubt, retries, attempts past and to come",
    run=run_with("r", agent="Agent", remembered=0, continuations=1),
    symbols=at_times(
        {
            0.0: (
                open_turn("T", call("a")),
                of_call("claim", "T", "a", attempt=1),
                of_call("claim", "T", "a", attempt=1, worker="w1"),
                of_call("claim", "T", "a", attempt=1, worker="w2", lease=1.0),
                of_call("claim", "T", "a", attempt=2, worker="w1"),
                of_call("claim", "T", "a", attempt=2, worker="w2", lease=1.0),
                of_call("claim", "T", "a", attempt=3),
                of_call("renew", "T", "a", attempt=1, lease=1.0),
                of_call("renew", "T", "a", attempt=2, lease=0),
                of_call("renew", "T", "a", lease=2.0),
                of_call("report", "T", "a", attempt=1, result="one"),
                of_call("report", "T", "a", attempt=2, result="two"),
                of_call("report", "T", "a", result="one"),
                of_call("report", "T", "a", attempt=2, error="boom"),
                of_call("report", "T", "a", attempt=0, result="one"),
                of_call("lose", "T", "a"),
                of_call("lose", "T", "a", attempt=1),
                of_call("lose", "T", "a", attempt=2),
                _resolve("a", 1, "retry"),
                _resolve("a", 2, "retry"),
                _resolve("a", 1, "result", result="one"),
                _resolve("a", 1, "error", error="boom"),
                _resolve("a", 2, "result", result=None),
                of_call("reject", "T", "a", error="boom"),
                of_turn("interrupt", "T", grace=1.0),
                of_turn("acknowledge", "T"),
                RECOVER,
            ),
            -1.0: (TICK, of_call("renew", "T", "a", lease=1.0)),
            1.0: (TICK, of_call("report", "T", "a", result="one")),
            2.0: (
                TICK,
                of_call("report", "T", "a", attempt=1, result="one"),
                of_call("renew", "T", "a", attempt=1, lease=1.0),
                of_call("claim", "T", "a", attempt=2, worker="w2"),
                of_call("lose", "T", "a"),
                _resolve("a", 1, "retry"),
            ),
        }
    ),
)

DEADLINES: Final = Slice(
    name="deadlines",
    about="deadlines of every kind beside each other: their order, ties, and what they let happen",
    run=run_with("r", remembered=0, continuations=1, grants=1),
    symbols=at_times(
        {
            0.0: (
                open_turn(
                    "T",
                    call("a", gated=True, approval_timeout=2),
                    call("b", approval_timeout=1),
                    call("c", gated=True, approval_timeout=1),
                ),
                approve("T", "a", scope="turn", expires_in=1),
                of_call("claim", "T", "a", attempt=1, lease=1.0),
                of_call("claim", "T", "b", attempt=1, lease=1.0),
                of_call("report", "T", "b", result="ok"),
                _resolve("b", 1, "retry"),
                of_turn("interrupt", "T", grace=1.0),
                of_turn("acknowledge", "T"),
                RECOVER,
            ),
            1.0: (TICK,),
            2.0: (approve("T", "a"),),
            3.0: (TICK, of_call("report", "T", "b", result="ok")),
        }
    ),
)

INTERRUPTS: Final = Slice(
    name="interrupts",
    about="a turn interrupted with grace: what waits, runs or is in doubt, and what comes after",
    run=run_with("r", agent="Agent", remembered=0, continuations=1),
    symbols=at_times(
        {
            0.0: (
                open_turn("T", call("a"), call("b", gated=True)),
                open_turn("T2", call("a")),
                of_turn("add_call", "T", call=call("b", gated=True)),
                of_turn("seal_turn", "T"),
                of_call("claim", "T", "a", attempt=1),
                of_call("claim", "T", "a", attempt=2),
                of_call("report", "T", "a", result="ok"),
                of_call("report", None, "a", result="ok"),
                _resolve("a", 1, "retry"),
                _resolve("a", 1, "error", error="boom"),
                of_call("reject", "T", "a", error="boom"),
                approve("T", "b"),
                deny("T", "b"),
                of_call("renew", "T", "b", lease=1.0),
                of_call("report", "T", "b", error="boom"),
                of_call("lose", "T", "b"),
                _resolve("b", 1, "retry"),
                _resolve("b", 1, "result", result="ok"),
                _resolve("b", 1, "error", error="boom"),
                of_turn("interrupt", "T", grace=1.0, reason="user"),
                of_turn("interrupt", "T", grace=0),
                of_turn("interrupt", "T"),
                of_turn("interrupt", "T9"),
                of_turn("acknowledge", "T"),
                RECOVER,
            ),
            1.0: (TICK,),
            2.0: (
                TICK,
                of_call("report", "T", "a", result="ok"),
                of_turn("interrupt", "T", grace=1),
            ),
        }
    ),
)

OBSERVED: Final = Slice(
    name="observed",
    about="calls that another runtime starts, free and gated: claims record, nothing is retried",
    run=run_with("r", kind="elsewhere", remembered=0, continuations=1),
    symbols=symbols(
        [
            open_turn("T", call("a", observed=True), call("b", gated=True, observed=True)),
            of_call("claim", "T", "a", attempt=1, worker="w"),
            of_call("claim", "T", "a", attempt=2),
            of_call("claim", "T", "b", attempt=1),
            of_call("report", "T", "a", result="ok"),
            of_call("report", "T", "b", error="boom"),
            of_call("lose", "T", "a"),
            _resolve("a", 1, "retry"),
            _resolve("b", 1, "retry"),
            _resolve("a", 1, "result", result="ok"),
            of_call("reject", "T", "b", error="boom"),
            approve("T", "b"),
            deny("T", "b"),
            of_turn("interrupt", "T", grace=1.0),
            of_turn("acknowledge", "T"),
            RECOVER,
        ]
    ),
)

SLICES: Final = (LEASES, DEADLINES, INTERRUPTS, OBSERVED)
