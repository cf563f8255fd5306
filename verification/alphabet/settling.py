"""Slices about membership: what settles a turn, what comes about others, what is remembered."""

from __future__ import annotations

from typing import Any, Final

from .slice import RECOVER, Slice, at_times, run_with
from .symbols import TICK, approve, call, deny, of_call, of_turn, open_turn, symbols

LOG: Final = {"type": "log", "invocation_id": "a", "text": "hm"}
ELSEWHERE: Final = {"run_id": "elsewhere"}

SETTLEMENT: Final = Slice(
    name="settlement",
    about="two turns that share an id: right, wrong, unknown and absent turns, members and runs",
    run=run_with(agent="Agent", continuations=1),
    symbols=symbols(
        [
            open_turn("T1", call("a"), call("b")),
            open_turn("T2", call("a")),
            of_call("claim", "T1", "a", attempt=1),
            of_call("claim", "T1", "b", attempt=1, worker="w"),
            of_call("claim", "T2", "a", attempt=1),
            of_call("claim", "T9", "a", attempt=1),
            of_call("report", "T1", "a", result="ok"),
            of_call("report", "T1", "a", error="boom"),
            of_call("report", "T1", "a", result="ok", attempt=1),
            of_call("report", "T1", "b", result="ok"),
            of_call("report", "T1", "b", error="ok"),
            of_call("report", "T2", "a", result="ok"),
            of_call("report", "T9", "a", result="ok"),
            of_call("report", None, "a", result="ok"),
            of_call("report", None, "b", error="boom"),
            of_call("report", None, "x", result="ok"),
            of_call("report", "T1", "x", result="ok"),
            of_call("report", "T1", "a", result="ok", **ELSEWHERE),
            of_call("report", "T1", "a", result="ok", run_id="r"),
            of_call("reject", "T1", "a", error="boom"),
            of_call("reject", "T2", "b", error="boom"),
            of_call("reject", None, "b", error="boom"),
            of_call("lose", None, "a", attempt=1),
            of_call("renew", "T1", "b", lease=1.0),
            of_call("resolve", "T1", "a", attempt=1, **{"as": "retry"}),
            approve("T1", "a"),
            deny("T1", "b"),
            approve("T2", "b"),
            of_turn("acknowledge", "T1"),
            of_turn("acknowledge", "T2"),
            of_turn("interrupt", "T2", grace=1.0),
            of_turn("seal_turn", "T1"),
            of_turn("add_call", "T2", call=call("b")),
            LOG,
            {**TICK, **ELSEWHERE},
            RECOVER,
        ]
    ),
)

RESULTS: Final[list[Any]] = [
    *[None, 0, False, "", [], {}],
    *[1, True, 1.0, "1", {"n": 1}, {"n": True}],
]
"""Falsy ones, and those that some languages take for the same."""

OUTCOMES: Final = Slice(
    name="outcomes",
    about="results that are falsy or look alike, errors, and every second outcome after the first",
    run=run_with(remembered=0, continuations=1),
    symbols=symbols(
        [
            open_turn("T", call("a"), call("b")),
            of_call("claim", "T", "a", attempt=1),
            *[of_call("report", "T", "a", result=result) for result in RESULTS],
            of_call("report", "T", "a", error="1"),
            of_call("report", "T", "a", error="boom"),
            of_call("lose", "T", "a"),
            *[
                of_call("resolve", "T", "a", attempt=1, **{"as": "result"}, result=result)
                for result in (None, 1)
            ],
            of_call("resolve", "T", "a", attempt=1, **{"as": "error"}, error="boom"),
            of_call("reject", "T", "a", error="boom"),
            of_call("reject", "T", "b", error="no such tool"),
            deny("T", "a"),
            of_turn("acknowledge", "T"),
            of_turn("interrupt", "T", grace=1.0),
            RECOVER,
        ]
    ),
)

STREAMING: Final = Slice(
    name="streaming",
    about="turns opened unsealed: calls added, twice, too many, too late; empty, interrupted",
    run=run_with("run/1", agent="A", calls=2, remembered=0, continuations=1),
    symbols=at_times(
        {
            0.0: (
                open_turn("T/1", sealed=False),
                open_turn("T/1", call("a"), sealed=False),
                open_turn("T/1", sealed=True),
                open_turn("T%", call("a"), call("a"), sealed=False),
                open_turn("T%", call("b/%"), sealed=True),
                of_turn("add_call", "T/1", call=call("a")),
                of_turn("add_call", "T/1", call=call("b/%", gated=True, approval_timeout=1)),
                of_turn("add_call", "T/1", call=call("c", gated=True)),
                of_turn("add_call", "T%", call=call("a")),
                of_turn("seal_turn", "T/1"),
                of_turn("seal_turn", "T%"),
                of_call("claim", "T/1", "a", attempt=1),
                of_call("report", "T/1", "a", result="ok"),
                of_call("report", None, "a", result="ok"),
                of_call("reject", "T/1", "a", error="boom"),
                of_call("reject", "T%", "b/%", error="boom"),
                approve("T/1", "b/%", scope="turn", match="tool"),
                deny("T/1", "b/%"),
                of_turn("interrupt", "T/1", grace=1.0),
                of_turn("interrupt", "T%"),
                of_turn("acknowledge", "T/1"),
                of_turn("acknowledge", "T%"),
                RECOVER,
            ),
            1.0: (TICK,),
            2.0: (TICK, of_turn("seal_turn", "T/1"), of_turn("add_call", "T/1", call=call("a"))),
        }
    ),
)

MEMORY: Final = Slice(
    name="memory",
    about="what has closed: late, reused, ambiguous, forgotten by number and by age",
    run=run_with(remembered=3, remember_for=1, continuations=1),
    symbols=at_times(
        {
            0.0: (
                open_turn("T1", call("a")),
                open_turn("T2", call("a"), call("b")),
                open_turn("T1", call("b"), epoch=1),
                of_call("reject", "T1", "a", error="boom"),
                of_call("reject", "T2", "a", error="boom"),
                of_call("reject", "T2", "b", error="boom"),
                of_call("report", "T1", "a", result="ok"),
                of_call("report", "T2", "a", result="ok"),
                of_call("report", None, "a", result="ok"),
                of_call("report", None, "b", result="ok"),
                of_call("lose", None, "a"),
                of_call("claim", "T2", "a", attempt=1),
                deny("T1", "a"),
                of_turn("interrupt", "T1", grace=1.0),
                of_turn("interrupt", "T2", grace=1.0),
                of_turn("acknowledge", "T1"),
                of_turn("acknowledge", "T2"),
                of_turn("seal_turn", "T1"),
                RECOVER,
            ),
            -1.0: (TICK, of_call("report", "T1", "a", result="ok"), open_turn("T2", call("b"))),
            1.0: (TICK, of_turn("interrupt", "T2")),
            2.0: (TICK, open_turn("T1", call("a")), of_call("report", None, "a", result="ok")),
        }
    ),
)

REUSE: Final = Slice(
    name="reuse",
    about="a gated id used again in the next turn: decisions, claims and outcomes of either",
    run=run_with(continuations=2),
    symbols=symbols(
        [
            *[
                delivery
                for t in ("T1", "T2")
                for delivery in (
                    open_turn(t, call("a", gated=True)),
                    approve(t, "a"),
                    deny(t, "a"),
                    of_call("claim", t, "a", attempt=1, worker="w"),
                    of_call("report", t, "a", result="ok"),
                    of_call("lose", t, "a", attempt=1),
                    of_call("resolve", t, "a", attempt=1, **{"as": "retry"}),
                    of_turn("interrupt", t, grace=0),
                    of_turn("acknowledge", t),
                )
            ],
            of_call("report", None, "a", result="ok"),
            of_call("reject", None, "a", error="boom"),
            RECOVER,
        ]
    ),
)

CONTINUATIONS: Final = Slice(
    name="continuations",
    about="continuations owed, taken, recovered in order, brought forth by a deadline, and limited",
    run=run_with(agent="Agent", remembered=2, remember_for=1, continuations=2),
    symbols=at_times(
        {
            0.0: (
                *[open_turn(t, call("a", gated=True, approval_timeout=1)) for t in ("T1", "T2")],
                open_turn("T3", call("b"), call("a")),
                *[deny(t, "a", reason="no") for t in ("T1", "T2")],
                of_call("reject", "T1", "a", error="boom"),
                of_call("reject", "T3", "b", error="boom"),
                of_call("reject", "T3", "a", error="bang"),
                of_call("report", "T1", "a", result="ok"),
                *[of_turn("acknowledge", t) for t in ("T1", "T2", "T3")],
                of_turn("interrupt", "T3"),
                RECOVER,
            ),
            1.0: (TICK,),
            2.0: (TICK, of_turn("acknowledge", "T1"), open_turn("T2", call("a", gated=True))),
        }
    ),
)

TAKEN: Final = Slice(
    name="taken",
    about="continuations of two turns: owed, taken, recovered; what has closed, until forgotten",
    run=run_with(agent="Agent", remembered=2, remember_for=1, continuations=2),
    symbols=at_times(
        {
            0.0: (
                *[open_turn(t, call("a", gated=True, approval_timeout=1)) for t in ("T1", "T2")],
                *[deny(t, "a", reason="no") for t in ("T1", "T2")],
                of_call("reject", "T1", "a", error="boom"),
                of_call("report", "T1", "a", result="ok"),
                *[of_turn("acknowledge", t) for t in ("T1", "T2")],
                RECOVER,
            ),
            -1.0: (of_call("report", "T1", "a", result="ok"),),
            1.0: (TICK, of_call("report", "T1", "a", result="ok")),
            2.0: (TICK, of_turn("acknowledge", "T1"), open_turn("T2", call("a", gated=True))),
        }
    ),
)

SLICES: Final = (SETTLEMENT, OUTCOMES, REUSE, STREAMING, MEMORY, CONTINUATIONS)
