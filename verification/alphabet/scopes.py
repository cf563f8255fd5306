"""The scopes of the closure: small ones, whose union meets every row and every reason.

One big scope does not end. All timers are 1 s and ticks are 1 s, so that every bound has a state at
it and one past it; whatever is delivered 1 s later in the state at a bound comes in the same
receive as the deadline.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ..findings import Raw
from ..oracle.reading import digest_of
from .scope import Scope
from .symbols import (
    TICK,
    Attempt,
    Epoch,
    GrantInForce,
    GrantToCome,
    approve,
    call,
    deny,
    of_call,
    of_turn,
    open_turn,
    revoke,
    symbols,
)

CURRENT: Final = Attempt(0)
NEXT: Final = Attempt(1)
PREVIOUS: Final = Attempt(-1)

RETRY: Final = {"as": "retry"}
FOUND: Final = {"as": "result", "result": "ok"}
LOST: Final = {"as": "error", "error": "no"}


def run(**limits: float) -> Raw:
    """Return a run with small limits."""
    return {"run_id": "r", "agent_id": "agent", "limits": {"remember_for": 1, **limits}}


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
            *astray("T3", "x"),
        ]
    ),
    alike=frozenset(_ABC),
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
                of_call("claim", "T", "a", attempt=CURRENT),
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

_ONE: Final = {"n": 1}
_TRUE: Final = {"n": True}
_SESSION: Final = {"scope": "session", "expires_in": 1.0}

GRANTS: Final = Scope(
    name="grants",
    about="grants for a tool and for exact arguments, for a turn and for the session, their expiry "
    "and revocation; one in force at most",
    run=run(grants=1, remembered=0),
    symbols=(
        *symbols(
            [
                open_turn(
                    "T",
                    call("a", gated=True, arguments=_ONE),
                    call("b", gated=True, arguments=_ONE, approval_timeout=1.0),
                    sealed=False,
                ),
                of_turn("add_call", "T", call=call("c", gated=True, arguments=_TRUE)),
                of_turn("add_call", "T", call=call("d")),
                of_turn("seal_turn", "T"),
                approve("T", "a"),
                approve("T", "a", scope="turn"),
                approve("T", "a", scope="turn", match="tool", expires_in=1.0),
                approve("T", "a", scope="session", expires_in=1.0),
                approve("T", "a", scope="session", match="tool"),
                approve("T", "a", arguments=_TRUE),
                approve("T", "b", scope="session", match="tool"),
                deny("T", "a"),
                deny("T", "b"),
                of_call("claim", "T", "a", attempt=NEXT),
                of_call("claim", "T", "b", attempt=NEXT),
                of_call("report", "T", "a", result="ok"),
                revoke(GrantInForce()),
                revoke(GrantToCome()),
                *of_turns("T"),
                *astray("T", "x"),
            ]
        ),
        *symbols(
            [
                TICK,
                of_turn("add_call", "T", call=call("c", gated=True, arguments=_TRUE)),
                revoke(GrantInForce()),
                approve("T", "b"),
            ],
            dt=1.0,
        ),
    ),
)

EDITS: Final = Scope(
    name="edits",
    about="decisions that echo a digest or edit the arguments, and decisions repeated otherwise; "
    "two grants in force at most",
    run=run(grants=2, remembered=0),
    symbols=symbols(
        [
            open_turn(
                "T",
                call("a", gated=True, arguments=_ONE),
                call("b", gated=True, arguments=_TRUE),
                call("c", gated=True, tool_name="rm"),
                call("d", arguments=_TRUE),
            ),
            *[
                approve("T", "a", **fields)
                for fields in (
                    {"arguments_digest": digest_of(_ONE)},
                    {"arguments_digest": digest_of(_TRUE)},
                    {"arguments": _TRUE},
                    {"arguments": {"n": 1.0}},
                    {"arguments": _TRUE, "scope": "session"},
                    {"scope": "turn"},
                    {"scope": "session", "match": "tool"},
                    {"decided_by": "ann", "reason": "fine"},
                )
            ],
            approve("T", "b", scope="session", match="tool"),
            approve("T", "c", scope="turn"),
            deny("T", "a", reason="no", decided_by="ann"),
            deny("T", "b", reason=""),
            of_call("claim", "T", "a", attempt=NEXT),
            of_call("report", "T", "a", result="ok"),
            of_call("report", "T", "a", error="no"),
            of_call("lose", "T", "a"),
            of_call("reject", "T", "b", error="no"),
            revoke(GrantInForce(1)),
            of_turn("interrupt", "T", grace=0.0),
            *astray("T", "a"),
        ]
    ),
)

OUTCOMES: Final = Scope(
    name="outcomes",
    about="results that are falsy or look alike, and every outcome after the first",
    run=run(remembered=0),
    symbols=symbols(
        [
            open_turn("T", call("a"), call("b")),
            of_call("claim", "T", "a", attempt=NEXT),
            *[
                of_call("report", "T", "a", result=result)
                for result in (None, 0, False, "", [], {}, 1, True, 1.0, "1", {"n": 1}, {"n": True})
            ],
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
                *[of_turn("add_call", "T4", call=call(name)) for name in _ABC],
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
                *[of_call("report", None, name, result="ok") for name in ("a", "b")],
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
            *astray("T8", "x"),
        ]
    ),
    alike=frozenset(_ABCD),
)

DEV: Final = (OUTCOMES, LEASES, LIMITS, ALIKE)
CI: Final = (*DEV, MEMORY, EDITS, GRANTS, REUSE)
NIGHTLY: Final = (*CI, FOUR)
