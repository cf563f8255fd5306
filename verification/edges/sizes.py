"""Edges about sizes: more than nine of everything, and as many as the default limits allow."""

from __future__ import annotations

from math import inf, nextafter
from typing import Final

from ..alphabet.slice import RECOVER
from ..alphabet.symbols import TICK, approve, call, of_call, of_turn, open_turn, revoke
from ..findings import Raw
from .edge import RETRY, Edge, Steps, at, executed, script

_TWELVE: Final = tuple(f"c{number}" for number in range(12, 0, -1))
_THOUSAND: Final = tuple(f"c{number}" for number in range(1_000))


def _gated(*names: str, **fields: object) -> list[Raw]:
    return [call(name, gated=True, arguments={"of": name}, **fields) for name in names]


def _observed(size: int) -> list[Raw]:
    """Return so many calls for which nothing is owed: their receipts stay small."""
    return [call(f"c{number}", observed=True) for number in range(size)]


def _fifty_grants(first: int) -> Steps:
    """Return a turn of fifty calls, each approved for the session, and its end."""
    names = _THOUSAND[first : first + 50]
    return (
        open_turn(f"T{first}", *_gated(*names)),
        *[approve(f"T{first}", name, scope="session") for name in names],
        of_turn("interrupt", f"T{first}"),
    )


def _expiring(turn_id: str) -> Raw:
    """Return the opening of a turn that whatever comes later lets expire, and so settles."""
    return open_turn(turn_id, call("a", gated=True, approval_timeout=0.5))


def _turn(number: int) -> Steps:
    """Return a whole turn of one call, and what comes late to the one before the last."""
    turn_id = f"T{number}"
    return (
        open_turn(turn_id, call("a")),
        of_call("reject", turn_id, "a", error="no"),
        of_call("report", f"T{number - 1}", "a", result="late"),
        of_call("report", f"T{number - 5}", "a", result="late"),
        of_call("report", f"T{number - 6}", "a", result="late"),
    )


def _retried(attempt: int) -> Steps:
    return (
        of_call("claim", "T", "a", attempt=attempt, worker=f"w{attempt}"),
        of_call("claim", "T", "a", attempt=attempt - 1, worker=f"w{attempt}"),
        of_call("report", "T", "a", attempt=attempt - 1, result="old"),
        of_call("lose", "T", "a", attempt=attempt),
        of_call("resolve", "T", "a", attempt=attempt - 1, **RETRY),
        of_call("resolve", "T", "a", attempt=attempt, **RETRY),
    )


SCRIPTS: Final = (
    Edge(
        name="twelve calls",
        about="twelve calls, deadlines that tie, results that come last first: order of opening",
        rules=("K-52", "K-11", "K-50"),
        steps=script(
            at(
                0.0,
                open_turn("T1", *_gated(*_TWELVE, approval_timeout=1.0)),
                approve("T1", "c11"),
                of_call("claim", "T1", "c11", attempt=1, lease=1.0),
            ),
            at(
                2.0,
                TICK,
                of_call("report", "T1", "c11", result="ok"),
                open_turn("T2", *map(call, _TWELVE)),
                *[of_call("claim", "T2", name, attempt=1, lease=1.0) for name in _TWELVE[::-1]],
                RECOVER,
            ),
            at(
                4.0,
                TICK,
                *[of_call("report", "T2", name, result=name) for name in _TWELVE[::-1]],
                open_turn("T3", *map(call, _TWELVE)),
                of_turn("interrupt", "T3"),
            ),
        ),
    ),
    Edge(
        name="twelve grants",
        about="more than nine grants, one of them for more than nine calls: in order of issue",
        rules=("K-41", "K-11", "K-40"),
        steps=script(
            at(
                0.0,
                open_turn("T1", *_gated(*_TWELVE)),
                *[
                    approve("T1", name, scope="session", arguments={"of": "all"}, expires_in=1.0)
                    for name in _TWELVE
                ],
                of_turn("interrupt", "T1"),
                open_turn("T2", *_gated("all"), sealed=False),
                revoke("grant/r/1"),
                of_turn("add_call", "T2", call={**_gated("all")[0], "invocation_id": "second"}),
                revoke("grant/r/2"),
                revoke("grant/r/1"),
                of_turn("add_call", "T2", call={**_gated("all")[0], "invocation_id": "third"}),
                RECOVER,
            ),
            at(2.0, TICK, revoke("grant/r/12"), of_turn("add_call", "T2", call=_gated("all2")[0])),
            at(
                3.0,
                of_turn("interrupt", "T2"),
                open_turn("T3", *_gated(*_TWELVE)),
                approve("T3", "c12", scope="turn", match="tool"),
            ),
            at(
                4.0,
                of_turn("interrupt", "T3"),
                open_turn("T4", *_gated("one", "other")),
                approve("T4", "one", scope="session", reason="as shown", decided_by="Ada"),
                approve("T4", "other", scope="session", match="tool"),
                of_turn("interrupt", "T4"),
                open_turn("T5", *_gated("other", "one")),
            ),
        ),
    ),
    Edge(
        name="thirteen turns",
        about="more turns than nine, and more than the memory holds: the least recent leave first",
        rules=("K-54", "K-52", "K-7"),
        run={"run_id": "r", "limits": {"remembered": 11}},
        steps=script(
            at(0.0, *[step for number in range(1, 14) for step in _turn(number)]),
            at(0.0, RECOVER, *[of_turn("acknowledge", f"T{number}") for number in (10, 2, 1, 13)]),
            at(0.0, open_turn("T1", call("a"), epoch=14), of_turn("interrupt", "T1")),
            at(0.0, RECOVER, open_turn("T10", call("a"), epoch=15)),
        ),
    ),
    Edge(
        name="a hundred facts",
        about="sequence numbers of three digits, across a recovery",
        rules=("K-2", "K-9"),
        steps=script(
            at(0.0, open_turn("T", call("a"), call("b")), of_call("claim", "T", "a", attempt=1)),
            *[at(float(number), of_call("renew", "T", "a", lease=2.5)) for number in range(105)],
            at(105.0, RECOVER, of_call("claim", "T", "b", attempt=1, lease=1.0)),
            at(107.0, of_call("report", "T", "b", result="ok"), RECOVER),
            at(108.0, of_call("report", "T", "a", result="ok"), of_turn("acknowledge", "T")),
        ),
    ),
    Edge(
        name="twelve attempts",
        about="a call that is lost and tried again until its attempts have two digits",
        rules=("K-33", "K-7", "K-31"),
        steps=at(
            0.0,
            open_turn("T", call("a")),
            *[step for attempt in range(1, 12) for step in _retried(attempt)],
            RECOVER,
            of_call("claim", "T", "a", attempt=2),
            of_call("claim", "T", "a", attempt=12),
            of_call("report", "T", "a", attempt=2, result="old"),
            of_turn("interrupt", "T"),
            of_call("report", "T", "a", attempt=12, result="ok"),
        ),
    ),
    Edge(
        name="a thousand calls",
        about="a turn of a thousand calls whose approvals all expire: one settlement, in order",
        rules=("K-50", "K-11", "K-52"),
        steps=script(
            at(0.0, open_turn("T", *_gated(*_THOUSAND, approval_timeout=1.0))),
            at(
                1.0,
                approve("T", "c999"),
                *executed("T", "c999"),
                of_call("report", "T", "c999", result="ok"),
            ),
            at(nextafter(1.0, inf), TICK, RECOVER, of_call("report", "T", "c0", result="late")),
            at(2.0, of_turn("acknowledge", "T")),
        ),
    ),
    Edge(
        name="a memory of 1,024",
        about="the default memory, full to the last entry: what closed first is forgotten first",
        rules=("K-54",),
        steps=script(
            at(
                0.0,
                open_turn("T1", *map(call, "abc")),
                of_turn("interrupt", "T1", grace=0),
                open_turn("T2", *_observed(1_019)),
                of_turn("interrupt", "T2", grace=0),
                of_call("report", "T1", "a", result="late"),
                open_turn("T3", call("z")),
                of_turn("interrupt", "T3", grace=0),
                *[of_call("report", "T1", name, result="late") for name in "abc"],
                *[of_call("report", "T2", name, result="late") for name in ("c0", "c1018")],
                RECOVER,
                of_call("report", None, "a", result="late"),
                of_call("report", None, "c", result="late"),
                open_turn("T1", call("a")),
            )
        ),
    ),
    Edge(
        name="ten thousand calls",
        large=True,
        about="the default limit of calls: ten thousand in a turn, and not one more",
        rules=("K-56",),
        steps=at(
            0.0,
            open_turn("T", *_observed(10_001)),
            open_turn("T", *_observed(9_999), sealed=False),
            of_turn("add_call", "T", call=call("last")),
            of_turn("add_call", "T", call=call("one more")),
        ),
    ),
    Edge(
        name="a thousand grants",
        large=True,
        about="the default limit of grants: a thousand in force, and not one more",
        rules=("K-56", "K-40"),
        run={"run_id": "r", "limits": {"remembered": 0}},
        steps=at(
            0.0,
            *[step for first in range(0, 1_000, 50) for step in _fifty_grants(first)],
            open_turn("T", *_gated("one more")),
            approve("T", "one more", scope="session"),
            revoke("grant/r/500"),
            approve("T", "one more", scope="session"),
        ),
    ),
    Edge(
        name="a thousand continuations",
        large=True,
        about="the default limit of what is owed: a thousand continuations, and not one more",
        rules=("K-56", "K-52"),
        run={"run_id": "r", "limits": {"remembered": 0}},
        steps=script(
            *[at(float(number), _expiring(f"T{number}")) for number in range(1_001)],
            at(1_001.0, of_turn("acknowledge", "T0"), _expiring("T")),
        ),
    ),
)
