"""Calls that have no turn, and continuations: each a run of its own, with one turn of one call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Final, cast

from ..models.calls import Call
from ..models.errors import InvalidValue, shown
from ..models.ids import escape
from ..models.values import NO_ARGUMENTS, Json
from .values import At

if TYPE_CHECKING:
    from ..runtime.tools.policy import Policy
    from .engine import Engine

ONCE: Final = "once"
"""The turn of a run of one call, and the first part of its id."""
CONTINUATION: Final = "continuation"
"""The first part of the id of a run in which one host claims a continuation; its tool and call."""

LONGEST: Final = 200
"""Characters of an id that is made here; of a longer one the digest stands for what is cut off."""
KEPT: Final = 100
"""Characters of such an id that can still be read."""
CUT: Final = "%~"
"""What stands before the digest: no escaped part has it, so no other id is made alike."""


def once_at(at: At) -> At:
    """Return where a call without a turn is run; the same for the same run, turn and call."""
    if not isinstance(cast("object", at), At):
        raise InvalidValue(
            place="at", cause=f"{shown(at)} is no At", fix="give At(run=…, turn=None, call=…)"
        )
    parts = (at.run, at.call) if at.turn is None else (at.run, at.turn, at.call)
    return At(run=joined(ONCE, *parts), turn=ONCE, call=at.call)


def continuation_at(run: str, turn: str) -> At:
    """Return where the continuation of a turn is claimed."""
    return At(run=joined(CONTINUATION, run, turn), turn=ONCE, call=CONTINUATION)


def opening_alone(
    at: At,
    tool: str,
    arguments: Mapping[str, Json] = NO_ARGUMENTS,
    policy: Policy | None = None,
) -> Callable[[Engine], Awaitable[None]]:
    """Say what opens the one turn of such a run; `policy` stands over that of the tool."""
    call = Call(invocation_id=at.call, tool_name=tool, arguments=arguments, requires_approval=False)
    return lambda it: it.open_alone(at, call, policy=policy)


def joined(*parts: str) -> str:
    """Return an id of these parts, so that others make another one (K-7), however long they are."""
    for part in parts:
        if not isinstance(cast("object", part), str):
            raise InvalidValue(
                place="run or turn", cause=f"{shown(part)} is no text", fix="give a text"
            )
    name = "/".join(map(escape, parts))
    if len(name) <= LONGEST:
        return name
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{name[:KEPT]}{CUT}{digest}"
