"""A run of an agent: which run its session is, what the session notes of it, how a refusal ends it.

A refusal is a `MiddlewareFailure`, too: of any other error the framework makes a tool's result,
which would have the model try again under another id. It leaves the session as it was before, so
that the same answer can be given again when the doubt is resolved.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from copy import deepcopy
from typing import Any, Final

import agent_framework as af

from ..models.errors import TurnlockError
from .errors import Stale
from .siblings import beside
from .values import At

KEY: Final = "turnlock"
"""Of a session's state, and of the `additional_properties` of each call, which hold its turn."""
APPROVALS: Final = "tool_approval"
"""Where a session's state has the framework's own approvals, until an answer to them is taken."""

Notes = dict[str, Any]
Within = tuple[str, str, Notes]
"""A session's id, and the run and notes of an agent that a tool runs with this session."""

within: ContextVar[Within | None] = ContextVar(KEY, default=None)
_endings: dict[type[TurnlockError], type[TurnlockError]] = {}


def conversation(session: af.AgentSession | None) -> tuple[str, Notes]:
    """Return the run, and what its session notes: the turn, its calls, approvals that are asked."""
    if session is None:
        message = "a guard needs a session: agent.run(…, session=AgentSession(session_id=…))"
        raise Stale(message, at=At("", None, ""), reason="no_active_turn")
    if (outer := within.get()) and outer[0] == session.session_id:
        return outer[1:]
    return session.session_id, session.state.setdefault(KEY, {})


@contextmanager
def ending_the_run() -> Generator[None]:
    """Make of each refusal one that leaves the framework's loop."""
    try:
        yield
    except TurnlockError as refused:
        refused.__class__ = _ending(type(refused))
        raise


def _ending(kind: type[TurnlockError]) -> type[TurnlockError]:
    if issubclass(kind, af.MiddlewareFailure):
        return kind
    if kind not in _endings:
        told = {"__module__": kind.__module__, "__doc__": kind.__doc__}
        _endings[kind] = type(kind.__name__, (kind, af.MiddlewareFailure), told)
    return _endings[kind]


@asynccontextmanager
async def beside_siblings(session: af.AgentSession | None) -> AsyncGenerator[tuple[str, Notes]]:
    """Have a refusal wait for the calls beside it: when it leaves, the framework cancels them."""
    with ending_the_run():
        run, notes = conversation(session)
        try:
            async with beside(run, id(session)):
                yield run, notes
        except (TurnlockError, asyncio.CancelledError):
            if session is not None and "approvals" in notes:
                session.state[APPROVALS] = deepcopy(notes["approvals"])
            raise
