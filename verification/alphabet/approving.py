"""Slices about approvals: decisions, edited arguments, grants; and the limits of a run."""

from __future__ import annotations

from typing import Final

from ..oracle.reading import digest_of
from .slice import RECOVER, Slice, at_times, run_with
from .symbols import TICK, approve, call, deny, of_call, of_turn, open_turn, revoke, symbols

SHOWN: Final = {"n": 1}
EDITED: Final = {"n": True}

DECISIONS: Final = Slice(
    name="decisions",
    about="one gated call: what was shown, edited arguments, second decisions, its deadline",
    run=run_with("r", agent="Agent", remembered=0, continuations=1, grants=2),
    symbols=at_times(
        {
            0.0: (
                open_turn("T", call("a", gated=True, arguments=SHOWN, approval_timeout=1)),
                approve("T", "a"),
                approve("T", "a", scope="once", match="tool", expires_in=0),
                approve("T", "a", reason="fine", decided_by="ann"),
                approve("T", "a", arguments_digest=digest_of(SHOWN)),
                approve("T", "a", arguments_digest=digest_of(EDITED)),
                approve("T", "a", arguments=EDITED, arguments_digest=digest_of(SHOWN)),
                approve("T", "a", arguments=EDITED, arguments_digest=digest_of(EDITED)),
                approve("T", "a", arguments={"n": 1.0}),
                approve("T", "a", arguments=SHOWN),
                approve("T", "a", scope="turn"),
                approve("T", "a", scope="turn", match="tool"),
                approve("T", "a", scope="turn", arguments=EDITED),
                deny("T", "a"),
                deny("T", "a", reason="no", decided_by="ann"),
                deny("T", "a", reason=""),
                approve("T", "b"),
                approve("T9", "a"),
                of_call("claim", "T", "a", attempt=1),
                of_call("claim", "T", "a", attempt=2),
                of_call("report", "T", "a", result="ok"),
                of_call("report", "T", "a", result="ok", attempt=7),
                of_call("report", "T", "a", error="boom"),
                of_call("lose", "T", "a"),
                of_call("reject", "T", "a", error="boom"),
                of_call("resolve", "T", "a", attempt=1, **{"as": "retry"}),
                of_turn("interrupt", "T", grace=1.0),
                of_turn("acknowledge", "T"),
                RECOVER,
            ),
            1.0: (TICK, approve("T", "a")),
            2.0: (TICK, approve("T", "a"), deny("T", "a")),
        }
    ),
)

_THREE: Final = open_turn(
    "T",
    call("a", gated=True, arguments=SHOWN),
    call("b", gated=True, arguments=SHOWN),
    call("c", gated=True),
    sealed=False,
)
"""Two calls alike and another, and more may come."""

GRANTS: Final = Slice(
    name="grants",
    about="grants for a turn and a session, exact and by tool: covering, ending, revoked, expired",
    run=run_with("r", remembered=0, continuations=1, grants=2),
    symbols=at_times(
        {
            0.0: (
                _THREE,
                open_turn("T", call("p", gated=True, tool_name="pay", arguments=SHOWN)),
                of_turn("add_call", "T", call=call("d", gated=True, arguments=SHOWN)),
                approve("T", "a", scope="turn"),
                approve("T", "a", scope="session", expires_in=1),
                approve("T", "b"),
                approve("T", "c", scope="turn", match="tool"),
                approve("T", "b", scope="session", match="tool", arguments=EDITED),
                deny("T", "a"),
                of_turn("interrupt", "T", grace=0),
                revoke("grant/r/1"),
                revoke("grant/r/2"),
                revoke("grant/r/01"),
                RECOVER,
            ),
            1.0: (TICK,),
            2.0: (TICK, open_turn("T", call("a", gated=True, arguments=SHOWN))),
        }
    ),
)

COVERED: Final = Slice(
    name="covered",
    about="a few grants of a turn and of the session: what each covers, in order, until when",
    run=run_with("r", remembered=0, continuations=1, grants=2),
    symbols=at_times(
        {
            0.0: (
                _THREE,
                of_turn("add_call", "T", call=call("d", gated=True, arguments=SHOWN)),
                approve("T", "a", scope="turn"),
                approve("T", "a", scope="session", expires_in=1),
                approve("T", "b"),
                approve("T", "c", scope="turn", match="tool"),
                deny("T", "a"),
                of_turn("interrupt", "T", grace=0),
                revoke("grant/r/1"),
                RECOVER,
            ),
            2.0: (TICK,),
        }
    ),
)

LIMITS: Final = Slice(
    name="limits",
    about="epochs, limits, empty turns and doubled ids, alone and together: their order counts",
    run=run_with("50%", agent="Agent", calls=1, grants=1, continuations=1, remembered=2),
    symbols=symbols(
        [
            open_turn("T1", call("a"), epoch=1),
            open_turn("T1", call("a"), epoch=2),
            open_turn("T2", call("a", gated=True), epoch=2),
            open_turn("T2", call("a", gated=True)),
            open_turn("T1", epoch=1),
            open_turn("T3", sealed=True),
            open_turn("T3", call("a"), call("b")),
            open_turn("T3", call("a"), call("a")),
            open_turn("T3", call("a"), call("a"), epoch=1),
            open_turn("T3", sealed=False),
            of_turn("add_call", "T3", call=call("a", gated=True, arguments=SHOWN)),
            of_turn("add_call", "T3", call=call("b", gated=True)),
            of_turn("seal_turn", "T3"),
            approve("T2", "a", scope="session"),
            approve("T3", "a", scope="turn", match="tool"),
            approve("T3", "a", scope="turn", arguments_digest="00"),
            approve("T2", "a"),
            of_call("reject", "T1", "a", error="boom"),
            of_call("reject", "T2", "a", error="boom"),
            of_call("reject", "T3", "a", error="boom"),
            of_turn("interrupt", "T3", grace=0),
            of_turn("acknowledge", "T1"),
            of_turn("acknowledge", "T2"),
            of_turn("acknowledge", "T3"),
            revoke("grant/50%25/1"),
            revoke("grant/50%/1"),
            RECOVER,
        ]
    ),
)

SLICES: Final = (DECISIONS, GRANTS, LIMITS)
