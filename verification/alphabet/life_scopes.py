"""Scopes about the life of invocations: claims, leases, doubt, retries, outcomes."""

from __future__ import annotations

from typing import Any, Final

from .families import (
    CURRENT,
    FOUND,
    LOST,
    NEXT,
    PREVIOUS,
    RETRY,
    astray,
    decisions,
    doubts,
    executions,
    of_turns,
    run,
)
from .scope import Scope
from .symbols import TICK, approve, call, deny, of_call, of_turn, open_turn, symbols

_RESULTS: Final[tuple[Any, ...]] = (
    *(None, 0, False, "", [], {}),
    *(1, True, 1.0, "1", {"n": 1}, {"n": True}),
)

OUTCOMES: Final = Scope(
    name="outcomes",
    about="results that are falsy or look alike, and every outcome after the first",
    run=run(remembered=0),
    symbols=symbols(
        [
            open_turn("T", call("a"), call("b")),
            of_call("claim", "T", "a", attempt=NEXT),
            *[of_call("report", "T", "a", result=result) for result in _RESULTS],
            of_call("report", "T", "a", error="1"),
            of_call("report", "T", "a", error="no"),
            of_call("lose", "T", "a"),
            of_call("resolve", "T", "a", attempt=CURRENT, **{"as": "result"}, result=None),
            of_call("resolve", "T", "a", attempt=CURRENT, **{"as": "result"}, result=True),
            of_call("resolve", "T", "a", attempt=CURRENT, **LOST),
            of_call("reject", "T", "a", error="no"),
            of_call("reject", "T", "b", error="no"),
            of_call("claim", "T", "b", attempt=NEXT),
            of_call("report", "T", "b", result=[0, False]),
            *of_turns("T"),
            *astray("T", "a"),
        ]
    ),
)

LEASES: Final = Scope(
    name="leases",
    about="two calls, two workers, leases that are renewed and run out, retries, grace",
    run=run(remembered=0),
    symbols=(
        *symbols(
            [
                open_turn("T", call("a"), call("b")),
                of_call("claim", "T", "a", attempt=NEXT, worker="w", lease=1.0),
                of_call("claim", "T", "a", attempt=NEXT, worker="v"),
                of_call("claim", "T", "a", attempt=CURRENT, worker="w"),
                of_call("claim", "T", "a", attempt=CURRENT, worker="v"),
                of_call("renew", "T", "a", lease=1.0, attempt=CURRENT),
                of_call("renew", "T", "a", lease=0.0),
                of_call("renew", "T", "a", lease=1.0, attempt=PREVIOUS),
                *doubts("T", "a"),
                of_call("resolve", "T", "a", attempt=CURRENT, **LOST),
                of_call("report", "T", "a", error="no"),
                of_call("report", "T", "a", error="other"),
                of_call("lose", "T", "a"),
                of_call("reject", "T", "a", error="no"),
                of_call("claim", "T", "b", attempt=NEXT, lease=1.0),
                of_call("report", "T", "b", result="ok"),
                of_call("renew", "T", "b", lease=1.0),
                approve("T", "a"),
                deny("T", "a"),
                *of_turns("T"),
                *astray("T", "a"),
            ]
        ),
        *symbols(
            [
                TICK,
                of_call("report", "T", "a", result="ok", attempt=CURRENT),
                of_call("renew", "T", "a", lease=1.0, attempt=CURRENT),
                of_call("claim", "T", "a", attempt=NEXT, worker="w", lease=1.0),
                of_call("resolve", "T", "a", attempt=CURRENT, **RETRY),
                of_turn("interrupt", "T", grace=1.0),
            ],
            dt=1.0,
        ),
        *symbols([TICK], dt=3.0),
    ),
)

_ABC: Final = ("a", "b", "c")

ALIKE: Final = Scope(
    name="alike",
    about="three gated calls in each of two turns that share their ids, doubt and interrupt; "
    "symmetry",
    run=run(),
    symbols=symbols(
        [
            *[open_turn(t, *[call(name, gated=True) for name in _ABC]) for t in ("T1", "T2")],
            *decisions("T1", _ABC),
            *executions("T1", _ABC),
            *[of_call("resolve", "T1", name, attempt=CURRENT, **FOUND) for name in _ABC],
            *decisions("T2", _ABC),
            *[of_call("report", "T2", name, result="ok") for name in _ABC],
            *[of_call("report", None, name, result="ok") for name in _ABC],
            *[of_call("claim", "T1", name, attempt=PREVIOUS) for name in _ABC],
            *[of_call("renew", "T1", name, lease=1.0) for name in _ABC],
            *of_turns("T1", "T2"),
            *astray("T3", "y"),
        ]
    ),
    alike=frozenset(_ABC),
)

_ABCD: Final = ("a", "b", "c", "d")

FOUR: Final = Scope(
    name="four",
    about="four calls in one turn, doubt, retries and interrupt; symmetry",
    run=run(remembered=0),
    symbols=symbols(
        [
            open_turn("T", *map(call, _ABCD)),
            *executions("T", _ABCD, worker="w"),
            *doubts("T", _ABCD),
            *[of_call("renew", "T", name, lease=1.0, attempt=CURRENT) for name in _ABCD],
            *decisions("T", _ABCD),
            *of_turns("T"),
            *astray("T8", "y"),
        ]
    ),
    alike=frozenset(_ABCD),
)

LEASES_OF_THREE: Final = Scope(
    name="leases of three",
    about="three calls, leases that run out, doubt, retries, grace; symmetry",
    run=run(remembered=0),
    symbols=(
        *symbols(
            [
                open_turn("T", *map(call, _ABC)),
                *executions("T", _ABC, worker="w", lease=1.0),
                *doubts("T", _ABC),
                *[of_call("renew", "T", name, lease=1.0, attempt=CURRENT) for name in _ABC],
                *of_turns("T"),
                *astray("T", "y"),
            ]
        ),
        *symbols(
            [
                TICK,
                *[of_call("report", "T", name, result="ok") for name in _ABC],
                *[of_call("renew", "T", name, lease=1.0) for name in _ABC],
            ],
            dt=1.0,
        ),
    ),
    alike=frozenset(_ABC),
)

OBSERVED: Final = Scope(
    name="observed",
    about="calls that another runtime starts: nothing is owed for them, and nothing is retried",
    run=run(remembered=0, kind="elsewhere"),
    symbols=(
        *symbols(
            [
                open_turn("T", call("a", observed=True), sealed=False),
                of_turn("add_call", "T", call=call("b", gated=True, observed=True)),
                of_turn("seal_turn", "T"),
                *decisions("T", "b"),
                *executions("T", "ab"),
                *doubts("T", "a"),
                of_call("claim", "T", "a", attempt=CURRENT, worker="w"),
                of_call("resolve", "T", "a", attempt=CURRENT, **LOST),
                *of_turns("T"),
            ]
        ),
        *symbols([TICK], dt=1.0),
    ),
)
