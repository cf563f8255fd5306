"""Scopes about turns: membership, memory, reuse of ids, epochs, limits, the clock."""

from __future__ import annotations

from typing import Final

import attrs

from .families import (
    CURRENT,
    LOST,
    NEXT,
    astray,
    decisions,
    doubts,
    executions,
    of_turns,
    run,
)
from .scope import Scope
from .symbols import TICK, Epoch, approve, call, deny, of_call, of_turn, open_turn, symbols

LIMITS: Final = Scope(
    name="limits",
    about="epochs, empty turns, ids given twice, and every limit at 1 or 2",
    run=run(calls=2, continuations=2, remembered=1),
    symbols=(
        *symbols(
            [
                *[
                    open_turn(turn_id, call("a"), epoch=epoch)
                    for turn_id in ("T1", "T2")
                    for epoch in (Epoch(0), Epoch(1), Epoch(2))
                ],
                open_turn("T3", call("a"), call("b")),
                open_turn("T4", sealed=False),
                open_turn("T4", call("a"), call("a")),
                open_turn("T4"),
                open_turn("T4", call("a"), call("b"), call("c")),
                *[of_turn("add_call", "T4", call=call(name)) for name in ("a", "b", "c")],
                of_turn("add_call", "T3", call=call("c")),
                of_turn("seal_turn", "T4"),
                of_turn("seal_turn", "T3"),
                *[
                    of_call("reject", turn_id, name, error="no")
                    for turn_id in ("T1", "T2", "T3", "T4")
                    for name in ("a", "b")
                ],
                *astray("T1", "a"),
                *of_turns("T1", "T2", "T3", "T4", grace=0.0),
            ]
        ),
    ),
)

MEMORY: Final = Scope(
    name="memory",
    about="three turns that share ids, closed and opened again, remembered in part and for 1 s",
    run=run(remembered=4),
    symbols=(
        *symbols(
            [
                open_turn("T1", call("a"), call("b")),
                open_turn("T2", call("a")),
                open_turn("T3", call("b")),
                *[of_call("reject", "T1", name, error="no") for name in ("a", "b")],
                of_call("reject", "T2", "a", error="no"),
                of_call("claim", "T3", "b", attempt=NEXT),
                of_call("report", "T3", "b", result="ok"),
                of_call("report", None, "a", result="ok"),
                *[of_call("report", t, n, result="ok") for t in ("T1", "T2") for n in ("a", "b")],
                *[of_turn("seal_turn", turn_id) for turn_id in ("T1", "T2", "T3")],
                *of_turns("T1", "T2", "T3"),
                *astray("T1", "b"),
            ]
        ),
        *symbols([TICK, of_call("lose", None, "a"), open_turn("T2", call("a"))], dt=1.0),
        *symbols([TICK, of_call("lose", None, "b"), open_turn("T1", call("a"))], dt=-1.0),
    ),
)

_T1_A: Final = [
    *decisions("T1", "a"),
    *executions("T1", "a", worker="w", lease=1.0),
    *doubts("T1", "a"),
]

REUSE: Final = Scope(
    name="reuse",
    about="one call in each of two turns that share its id, unsealed turns, every timer, a clock "
    "that runs backwards",
    run=run(remembered=3),
    symbols=(
        *symbols(
            [
                open_turn("T1", sealed=False),
                open_turn("T1", call("a")),
                open_turn("T2", call("a", gated=True, approval_timeout=1.0)),
                of_turn("add_call", "T1", call=call("a", gated=True, approval_timeout=1.0)),
                of_turn("add_call", "T2", call=call("b")),
                of_turn("seal_turn", "T1"),
                of_turn("seal_turn", "T2"),
                *_T1_A,
                *decisions("T2", "a"),
                *executions("T2", "a"),
                of_call("resolve", "T2", "a", attempt=CURRENT, **LOST),
                *astray("T1", "a"),
                *of_turns("T1", "T2"),
                of_call("renew", "T1", "a", lease=1.0, attempt=CURRENT),
                of_call("claim", "T1", "a", attempt=NEXT, worker="v"),
            ]
        ),
        *symbols(
            [
                TICK,
                of_call("report", "T1", "a", result="ok"),
                of_call("report", "T2", "a", result="ok"),
                of_call("renew", "T1", "a", lease=1.0),
                of_call("claim", "T2", "a", attempt=NEXT),
                approve("T2", "a"),
                deny("T2", "a"),
                of_turn("seal_turn", "T1"),
                *of_turns("T1", "T2"),
                open_turn("T2", call("a", gated=True, approval_timeout=1.0)),
            ],
            dt=1.0,
        ),
        *symbols(
            [
                TICK,
                of_call("claim", "T1", "a", attempt=NEXT, lease=1.0),
                of_call("report", "T2", "a", result="ok"),
                of_turn("interrupt", "T1", grace=1.0),
                open_turn("T1", call("a")),
            ],
            dt=-1.0,
        ),
    ),
)

REUSE_OF_TWO: Final = attrs.evolve(
    REUSE,
    name="reuse of two",
    about="as reuse, with a second call in the first turn",
    run=run(remembered=4),
    symbols=(
        *REUSE.symbols,
        *symbols(
            [
                open_turn("T1", call("a"), call("b")),
                of_call("reject", "T1", "b", error="no"),
                of_call("claim", "T1", "b", attempt=NEXT),
                of_call("report", "T1", "b", result="ok"),
                of_call("report", "T2", "b", result="ok"),
                of_call("report", None, "b", result="ok"),
            ]
        ),
    ),
)
