"""Edges about what is absent, and what only looks as if it were: null, zero, empty."""

from __future__ import annotations

from math import inf, nextafter
from typing import Final

from ..alphabet.slice import RECOVER
from ..alphabet.symbols import TICK, approve, call, deny, of_call, of_turn, open_turn, revoke
from ..findings import Raw
from ..oracle.reading import digest_of
from .edge import ERROR, RESULT, RETRY, Edge, at, executed, script

ONE: Final = {"n": 1}
PLAIN_CALL: Final[Raw] = dict.fromkeys(("approval_timeout", "observed", "provider_call_id"))
NO_DECISION: Final[Raw] = dict.fromkeys(
    ("reason", "decided_by", "scope", "match", "expires_in", "arguments_digest", "arguments")
)
AT: Final = 5.0
PAST: Final = nextafter(AT, inf)
"""The first instant after it."""


def _nowhere(delivery: Raw) -> Raw:
    return {**delivery, "turn_id": None}


NULLS: Final = (
    Edge(
        name="nulls in an opening",
        about="null for every optional field of a turn and its calls: sealed, and no deadline",
        rules=("section 3",),
        steps=script(
            at(
                0.0,
                open_turn(
                    "T1",
                    call("a", gated=True, **PLAIN_CALL),
                    call("b", **PLAIN_CALL),
                    sealed=None,
                    epoch=None,
                    run_id=None,
                ),
                of_turn("add_call", "T1", call=call("c")),
                *executed("T1", "b"),
            ),
            at(1e6, TICK, approve("T1", "a"), *executed("T1", "a"), of_turn("acknowledge", "T1")),
            at(
                1e6,
                open_turn("T2", sealed=False, epoch=None),
                of_turn("add_call", "T2", call=call("a", **PLAIN_CALL), run_id=None),
                of_turn("add_call", "T2", call=call("b", gated=True, **PLAIN_CALL)),
                of_turn("seal_turn", "T2", run_id=None),
                deny("T2", "b"),
                RECOVER,
                *executed("T2", "a"),
            ),
        ),
    ),
    Edge(
        name="nulls in a decision",
        about="null for every optional field of an approval and of a deny: once, and not edited",
        rules=("section 3",),
        steps=script(
            at(
                0.0,
                open_turn(
                    "T",
                    call("a", gated=True, arguments=ONE),
                    call("b", gated=True, arguments=ONE),
                ),
                approve("T", "a", **NO_DECISION, run_id=None),
                approve("T", "a"),
                approve("T", "a", **NO_DECISION),
                of_call("claim", "T", "b", attempt=1),
                RECOVER,
                *executed("T", "a"),
                deny("T", "b", **NO_DECISION),
                of_turn("acknowledge", "T"),
            ),
        ),
    ),
    Edge(
        name="nulls in a grant",
        about="a grant whose match, expiry and edited arguments are null: exact, and for ever",
        rules=("section 3",),
        steps=script(
            at(
                0.0,
                open_turn(
                    "T1",
                    call("a", gated=True, arguments=ONE),
                    call("b", gated=True, arguments={"n": 2}),
                ),
                approve("T1", "a", **{**NO_DECISION, "scope": "session"}),
                approve("T1", "a", scope="session"),
                of_call("reject", "T1", "a", error="no"),
                _nowhere(of_call("reject", None, "b", error="no", run_id=None)),
            ),
            at(
                1e6,
                TICK,
                open_turn(
                    "T2",
                    call("a", gated=True, arguments={"n": 2}),
                    call("b", gated=True, arguments=ONE),
                ),
                {**revoke("grant/r/1"), "run_id": None},
                of_call("reject", "T2", "a", error="no", run_id=None),
                *executed("T2", "b"),
            ),
        ),
    ),
    Edge(
        name="nulls of an executor",
        about="null for worker, lease, attempt, turn and error: nobody's lease, and a null result",
        rules=("section 3", "K-36"),
        steps=script(
            at(
                0.0,
                open_turn("T", call("a"), call("b")),
                of_call("claim", "T", "a", attempt=1, worker=None, lease=None, run_id=None),
                of_call("claim", "T", "a", attempt=1, worker=None, lease=None),
            ),
            at(
                1e6,
                of_call("renew", "T", "a", attempt=None, lease=1.0, run_id=None),
                _nowhere(of_call("lose", None, "a", attempt=None, run_id=None)),
                of_call("resolve", "T", "a", attempt=1, **RETRY, error=None, run_id=None),
                of_call("claim", "T", "a", attempt=2, worker=None),
            ),
            at(
                2e6,
                _nowhere(of_call("report", None, "a", attempt=None, result=None, error=None)),
                of_call("report", "T", "a", result=None, error=None, run_id=None),
                of_call("report", "T", "a", error="boom"),
                of_call("claim", "T", "b", attempt=1),
                of_call("lose", "T", "b", attempt=None),
                of_call("resolve", "T", "b", attempt=1, **RESULT, result=None, error=None),
                of_turn("acknowledge", "T", run_id=None),
            ),
        ),
    ),
    Edge(
        name="nulls of a host",
        about="null for whatever a run and an interrupt may leave out: defaults, ten seconds grace",
        rules=("section 3",),
        run={
            "run_id": "r",
            "kind": None,
            "agent_id": None,
            "agent_name": None,
            "limits": dict.fromkeys(
                ("remembered", "remember_for", "calls", "grants", "continuations")
            ),
        },
        steps=script(
            at(
                0.0,
                open_turn("T", call("a"), call("b", gated=True)),
                _nowhere(of_call("log", None, "a", text="hm", run_id=None)),
                of_call("claim", "T", "a", attempt=1),
                of_turn("interrupt", "T", reason=None, grace=None, run_id=None),
            ),
            at(10.0, {**TICK, "run_id": None}),
            at(nextafter(10.0, inf), {**TICK, "run_id": None}, open_turn("T", call("a"))),
        ),
    ),
)

ZEROS: Final = (
    Edge(
        name="a timeout of zero",
        about="an approval asked for with no time at all: it may come at once, and not later",
        rules=("K-34", "K-11"),
        steps=script(
            at(
                AT,
                open_turn(
                    "T",
                    call("a", gated=True, approval_timeout=0),
                    call("b", gated=True, approval_timeout=0.0),
                    call("c", approval_timeout=0),
                ),
                TICK,
                approve("T", "a"),
                RECOVER,
            ),
            at(PAST, TICK, *executed("T", "a"), *executed("T", "c")),
        ),
    ),
    Edge(
        name="a lease and a grace of zero",
        about="leases and a grace with no time at all: a report of that very instant still counts",
        rules=("K-34", "K-53"),
        steps=script(
            at(
                AT,
                open_turn("T", call("a"), call("b"), call("c")),
                of_call("claim", "T", "a", attempt=1, lease=0),
                of_call("claim", "T", "b", attempt=1, lease=0.0, worker="w"),
                of_call("claim", "T", "c", attempt=1, lease=9.0),
                of_call("renew", "T", "c", attempt=1, lease=0),
                of_call("report", "T", "a", result=0),
                RECOVER,
            ),
            at(
                PAST,
                of_call("renew", "T", "b", lease=1.0),
                of_call("report", "T", "c", result=0),
                of_call("resolve", "T", "b", attempt=1, **RETRY),
                of_call("claim", "T", "b", attempt=2, lease=0, worker="w"),
                of_call("claim", "T", "b", attempt=2, lease=0, worker="w"),
            ),
            at(
                nextafter(PAST, inf),
                TICK,
                of_call("resolve", "T", "b", attempt=2, **ERROR, error="gone"),
                open_turn("T2", call("a"), call("b")),
                of_call("claim", "T2", "a", attempt=1),
                of_call("claim", "T2", "b", attempt=1),
                of_turn("interrupt", "T2", grace=0, reason="stop"),
                of_call("report", "T2", "a", result=False),
                RECOVER,
            ),
            at(AT + 1.0, of_call("report", "T2", "b", result="late"), open_turn("T", call("a"))),
        ),
    ),
    Edge(
        name="a grant of zero seconds",
        about="a grant that is over at once: it covers what comes at its instant, nothing after",
        rules=("K-40", "K-42", "K-34"),
        steps=script(
            at(
                AT,
                open_turn("T1", call("a", gated=True), call("b", gated=True)),
                approve("T1", "a", scope="session", match="tool", expires_in=0),
                *executed("T1", "a"),
                *executed("T1", "b"),
                open_turn("T2", call("a", gated=True), sealed=False),
                RECOVER,
            ),
            at(PAST, of_turn("add_call", "T2", call=call("b", gated=True)), revoke("grant/r/1")),
        ),
    ),
    Edge(
        name="attempts and epochs of zero",
        about="attempts and epochs of 0, below and far above: well-formed, given, and stale",
        rules=("K-33", "K-55", "section 5"),
        steps=script(
            at(
                0.0,
                *[open_turn("T", call("a"), epoch=epoch) for epoch in (0, -1, 2, 2**53 + 1)],
                open_turn("T", call("a"), call("b"), epoch=1),
                *[of_call("claim", "T", "a", attempt=attempt) for attempt in (0, -1, 2**53 + 1)],
                of_call("report", "T", "a", attempt=0, result="early"),
                of_call("claim", "T", "a", attempt=1, worker="w"),
                of_call("claim", "T", "a", attempt=0, worker="w"),
                of_call("renew", "T", "a", attempt=0, lease=1.0),
                of_call("lose", "T", "a", attempt=0),
                of_call("report", "T", "a", attempt=0, result="no"),
                of_call("report", "T", "a", attempt=-1, error="no"),
                of_call("lose", "T", "a", attempt=1),
                of_call("resolve", "T", "a", attempt=0, **RETRY),
                of_call("resolve", "T", "a", attempt=1, **RETRY),
                of_call("claim", "T", "a", attempt=0),
                of_call("claim", "T", "a", attempt=2),
                *executed("T", "b"),
                of_call("report", "T", "a", attempt=2, result="yes"),
            ),
        ),
    ),
    Edge(
        name="a run with no room",
        about="limits of zero for calls: a turn may be opened empty, and takes none",
        rules=("K-56",),
        run={"run_id": "r", "limits": {"calls": 0}},
        steps=at(
            0.0,
            open_turn("T", call("a")),
            open_turn("T", sealed=False),
            of_turn("add_call", "T", call=call("a")),
            of_turn("seal_turn", "T"),
            open_turn("T2", call("a"), sealed=False),
        ),
    ),
    Edge(
        name="a run without continuations",
        about="a limit of zero for what may be owed: no turn opens at all",
        rules=("K-56",),
        run={"run_id": "r", "limits": {"continuations": 0}},
        steps=at(0.0, open_turn("T", call("a")), open_turn("T", sealed=False), TICK),
    ),
    Edge(
        name="a run without grants or a past",
        about="no grants, and a memory of zero seconds: approved once only, forgotten at once",
        rules=("K-56", "K-54"),
        run={"run_id": "r", "limits": {"grants": 0, "remember_for": 0}},
        steps=script(
            at(
                0.0,
                open_turn("T", call("a", gated=True)),
                approve("T", "a", scope="session"),
                approve("T", "a", scope="turn", match="tool"),
                approve("T", "a"),
                *executed("T", "a"),
            ),
            at(
                AT,
                open_turn("T2", call("b")),
                of_call("reject", "T2", "b", error="no"),
                of_call("report", "T", "a", result="ok"),
                of_call("report", "T2", "b", result="ok"),
                of_call("report", None, "b", result="ok"),
                of_turn("acknowledge", "T"),
                of_turn("acknowledge", "T2"),
                open_turn("T2", call("b")),
                RECOVER,
            ),
            at(
                PAST,
                of_call("report", None, "b", result="ok"),
                open_turn("T2", call("a")),
                open_turn("T", call("a")),
            ),
        ),
    ),
)

EMPTY: Final = (
    Edge(
        name="empty is not absent",
        about="edited arguments that are empty, and a digest that is; results named error",
        rules=("K-32", "K-40"),
        steps=script(
            at(
                0.0,
                open_turn(
                    "T1",
                    call("a", gated=True, arguments=ONE),
                    call("b", gated=True, arguments={}),
                    call("c", gated=True, arguments=ONE),
                    call("d", gated=True, arguments=ONE),
                ),
                approve("T1", "a", arguments_digest=""),
                approve("T1", "a", arguments={}, arguments_digest=digest_of(ONE)),
                approve("T1", "a", arguments={}),
                approve("T1", "a"),
                approve("T1", "c", arguments={}, scope="session"),
                approve("T1", "b", arguments={}),
                approve("T1", "d", scope="session", arguments_digest=""),
                deny("T1", "d", reason=""),
                RECOVER,
                *executed("T1", "a", result={}),
                of_call("report", "T1", "a", result=[]),
                *executed("T1", "b", result=""),
                *executed("T1", "c", result=[]),
                open_turn(
                    "T2",
                    call("a", gated=True),
                    call("b", gated=True, arguments=ONE),
                    call("c"),
                    call("d"),
                ),
                *executed("T2", "c", result="error"),
                *executed("T2", "d", result={"error": "none"}),
            ),
        ),
    ),
    Edge(
        name="what means nothing is ignored",
        about="match and expiry with once, an edit on a deny, a timeout of a free call",
        rules=("K-42", "K-40"),
        steps=script(
            at(
                0.0,
                open_turn(
                    "T",
                    call("a", gated=True, arguments=ONE),
                    call("b", gated=True, arguments=ONE),
                    call("c", approval_timeout=0.5),
                ),
                approve("T", "a", scope="once", match="tool", expires_in=0.5),
                deny(
                    "T",
                    "b",
                    scope="once",
                    match="tool",
                    expires_in=0.5,
                    arguments={"n": 2},
                    arguments_digest="00",
                ),
                deny("T", "b"),
                RECOVER,
            ),
            at(
                1.0,
                TICK,
                approve("T", "a"),
                approve("T", "a", match="exact", expires_in=7.0),
                *executed("T", "a"),
                *executed("T", "c"),
            ),
        ),
    ),
)

SCRIPTS: Final = (*NULLS, *ZEROS, *EMPTY)
