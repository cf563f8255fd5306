"""Scopes about approval: decisions, digests, edits, grants."""

from __future__ import annotations

from typing import Final

from ..oracle.reading import digest_of
from .families import CURRENT, NEXT, RETRY, astray, of_turns, run
from .scope import Scope
from .symbols import (
    TICK,
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

_ONE: Final = {"n": 1}
_TRUE: Final = {"n": True}

EDITS: Final = Scope(
    name="edits",
    about="decisions that echo a digest or edit the arguments, and decisions repeated otherwise, "
    "after a retry was authorised too; two grants in force at most",
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
            of_call("resolve", "T", "a", attempt=CURRENT, **RETRY),
            of_call("reject", "T", "b", error="no"),
            revoke(GrantInForce(1)),
            of_turn("interrupt", "T", grace=0.0),
            *astray("T", "a"),
        ]
    ),
)

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
                *astray("T", "y"),
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
