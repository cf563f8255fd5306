"""Edges about real clocks: fractions, sums of floats, an instant more or less, far times."""

from __future__ import annotations

from math import inf, nextafter
from sys import float_info
from typing import Final

from ..alphabet.slice import RECOVER
from ..alphabet.symbols import TICK, approve, call, of_call, of_turn, open_turn
from .edge import Edge, Steps, at, executed, script

NOW: Final = 1.7e9 + 0.123
"""A time of today, in milliseconds: a float of 32 bits is a minute off."""
EXACT: Final = 1.7e9 + 0.125
"""A time of today whose differences floats have exactly."""
FINER: Final = 1_700_000_000.1234567
"""With all the digits that a float of today has."""


def _after(time: float) -> float:
    return nextafter(time, inf)


def _before(time: float) -> float:
    return nextafter(time, -inf)


def _deadlines(now: float, wait: float) -> Steps:
    """Let a deadline of each kind begin at `now`, and be over an instant after `now + wait`.

    The sum is of floats, as whoever writes the fact computes it.
    """
    over = now + wait
    return script(
        at(
            now,
            open_turn(
                "T",
                call("a", gated=True, approval_timeout=wait),
                call("b", gated=True, arguments={"n": 1}),
                call("c"),
                call("d"),
            ),
            approve("T", "b", scope="session", expires_in=wait),
            of_call("claim", "T", "c", attempt=1, lease=wait, worker="w"),
            of_call("claim", "T", "d", attempt=1),
        ),
        at(_before(over), TICK),
        at(over, TICK, RECOVER, of_call("renew", "T", "c", lease=wait)),
        at(_after(over), TICK),
        at(over + wait, of_turn("interrupt", "T", grace=wait)),
        at(over + wait + wait, TICK),
        at(_after(over + wait + wait), TICK, RECOVER),
    )


def _settled(now: float, turn_id: str) -> Steps:
    return at(
        now,
        open_turn(turn_id, call("a")),
        of_call("reject", turn_id, "a", error="no"),
        of_turn("acknowledge", turn_id),
    )


SCRIPTS: Final = (
    Edge(
        name="a clock of today",
        about="seconds since 1970, with all the digits of a float: every deadline to the instant",
        rules=("K-34", "section 9", "K-10"),
        steps=_deadlines(FINER, 0.1),
    ),
    Edge(
        name="sums of floats",
        about="0.1 and 0.2 are not 0.3: a deadline is the sum that floats have",
        rules=("K-34", "section 9"),
        steps=script(
            at(
                0.1,
                open_turn("T", call("a", gated=True, approval_timeout=0.2), call("b")),
                of_call("claim", "T", "b", attempt=1, lease=0.7),
            ),
            at(0.3, TICK),
            at(0.1 + 0.2, TICK, approve("T9", "a")),
            at(_after(0.1 + 0.2), TICK),
            at(0.8, TICK),
            at(_after(0.1 + 0.7), TICK),
        ),
    ),
    Edge(
        name="an instant apart",
        about="deadlines that differ by one float: the older first; by none: by their kinds",
        rules=("K-11", "K-34"),
        steps=script(
            at(
                NOW,
                open_turn(
                    "T",
                    call("a", gated=True, approval_timeout=_after(2.0)),
                    call("d"),
                    call("b", gated=True, approval_timeout=2.0000005),
                    call("e"),
                    call("c", gated=True, approval_timeout=2.0),
                    call("f", gated=True, arguments={"n": 1}),
                    call("g", gated=True, arguments={"n": 2}),
                    call("h", gated=True, arguments={"n": 3}),
                    call("i", gated=True, arguments={"n": 4}),
                ),
                of_call("claim", "T", "d", attempt=1, lease=1.9999995),
                of_call("claim", "T", "e", attempt=1, lease=2.0),
                approve("T", "h", scope="session"),
                approve("T", "f", scope="session", expires_in=1.999999),
                approve("T", "g", scope="session", expires_in=2.0),
                RECOVER,
            ),
            at(NOW + 3.0, TICK),
            at(
                EXACT + 4.0,
                approve("T", "i", scope="session", expires_in=1.0),
                of_turn("interrupt", "T", grace=1.0),
            ),
            at(EXACT + 6.0, TICK),
        ),
    ),
    Edge(
        name="deadlines that never come",
        about="a clock on which a second more is the same float, and the largest float as a wait",
        rules=("K-34", "section 9"),
        steps=script(
            at(
                0.0,
                open_turn(
                    "T",
                    call("a", gated=True, approval_timeout=float_info.max),
                    call("b", gated=True, arguments={"n": 1}),
                    call("c"),
                ),
                approve("T", "b", scope="session", expires_in=float_info.max),
                of_call("claim", "T", "c", attempt=1, lease=float_info.max),
                RECOVER,
                of_call("renew", "T", "c", lease=1.0),
                of_call("renew", "T", "c", lease=1e300),
            ),
            at(1e17, TICK, of_call("renew", "T", "c", lease=1.0)),
            at(_after(1e17), TICK),
            at(float_info.max, TICK, approve("T", "a")),
        ),
    ),
    Edge(
        name="before 1970",
        about="times below zero, and deadlines at zero: the instant after it is the least float",
        rules=("K-34", "K-10", "section 9"),
        steps=script(
            at(
                -1.5,
                open_turn(
                    "T",
                    call("a", gated=True, approval_timeout=1.0),
                    call("b"),
                    call("c"),
                    call("d", gated=True, approval_timeout=1.5),
                    call("e", gated=True, arguments={"n": 1}),
                ),
                of_call("claim", "T", "b", attempt=1, lease=1.5),
                of_call("claim", "T", "c", attempt=1, lease=0.0),
                approve("T", "e", scope="session", expires_in=1.5),
            ),
            at(_after(-1.5), of_call("report", "T", "c", result="ok")),
            at(-0.5, TICK),
            at(_after(-0.5), TICK),
            at(-0.0, TICK),
            at(0.0, TICK),
            at(5e-324, TICK, of_call("report", "T", "b", result="ok")),
        ),
    ),
    Edge(
        name="a clock set back",
        about="times before the latest fact's: deadlines, ages and facts count from that fact's",
        rules=("K-10", "K-11", "K-54"),
        run={"run_id": "r", "limits": {"remember_for": 1}},
        steps=script(
            at(NOW, open_turn("T1", call("a"), call("b"), call("c", gated=True))),
            at(
                NOW - 0.05,
                of_call("claim", "T1", "a", attempt=1, lease=0.1),
                approve("T1", "c", scope="session", expires_in=0.2),
                RECOVER,
                of_call("renew", "T1", "a", lease=0.15),
                of_call("report", "T1", "b", result="no"),
                *executed("T1", "b"),
            ),
            at(0.0, TICK, *executed("T1", "c"), of_call("report", "T1", "a", result="ok")),
            at(NOW + 1.0, of_call("report", "T1", "a", result="ok")),
            at(1.0, of_call("report", "T1", "a", result="ok"), of_turn("acknowledge", "T1")),
            at(NOW + 2.5, of_call("report", "T1", "a", result="ok"), TICK),
            at(2.0, open_turn("T1", call("a", gated=True, approval_timeout=0.5))),
            at(NOW + 3.0, open_turn("T2", call("b"))),
            at(NOW + 0.5, of_call("report", "T1", "a", result="ok")),
        ),
    ),
    Edge(
        name="three hundred seconds",
        about="what has closed is remembered for 300 s of a real clock, not for an instant more",
        rules=("K-54",),
        steps=script(
            _settled(EXACT, "T1"),
            _settled(EXACT + 0.5, "T2"),
            at(
                EXACT + 300 - 2**-6,
                of_call("report", "T1", "a", result="ok"),
                open_turn("T1", call("a")),
                of_call("lose", None, "a"),
            ),
            at(
                EXACT + 300 + 2**-6,
                of_call("report", "T1", "a", result="ok"),
                of_call("report", "T2", "a", result="ok"),
                of_call("lose", None, "a"),
                RECOVER,
                open_turn("T1", call("a")),
            ),
            at(
                EXACT + 300.5 + 2**-6,
                of_call("reject", None, "a", error="no"),
                of_call("report", "T2", "a", result="ok"),
            ),
        ),
    ),
)
