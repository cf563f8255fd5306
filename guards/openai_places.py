"""Where an answer stands in a conversation of the OpenAI Agents SDK, as its context tells.

The run is `context["turnlock_run"]`. What answered last is kept in the same mapping, which a state
of the SDK takes along: copies of a state share a context, so each wrapper has its own view of it.
An answer is named for its place: what the model is asked first, by that input; then it is counted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from agents.tool_context import ToolContext

from ..models.ids import escape
from .errors import Stale
from .values import At

if TYPE_CHECKING:
    from agents import RunContextWrapper

RUN: Final = "turnlock_run"
TURNS: Final = "turnlock_turns"
"""Of a context: the last answer of its run, and those of the runs below it."""

Turns: TypeAlias = Mapping[str, Mapping[str, Any]]

_inside: ContextVar[tuple[str, str]] = ContextVar("_inside", default=("", ""))
"""The run of the context, and the one of the agents that this call of it runs."""


class Context(MutableMapping[str, Any]):
    """A user's context, which copies of a state share, and the last answers of one of them."""

    def __init__(self, shared: MutableMapping[str, Any], turns: Turns) -> None:
        """Stand before a mapping, which is left as it is."""
        self._shared: MutableMapping[str, Any] = shared
        if isinstance(shared, Context):
            self._shared = shared._shared  # noqa: SLF001 - another of its kind
        self._turns = turns

    def __getitem__(self, key: str) -> Any:  # noqa: ANN401 - a user's
        """Return what is shared, or these answers."""
        return self._turns if key == TURNS else self._shared[key]

    def __setitem__(self, key: str, item: Any) -> None:  # noqa: ANN401 - a user's
        """Share it, but for the answers."""
        if key == TURNS:
            self._turns = item
        else:
            self._shared[key] = item

    def __delitem__(self, key: str) -> None:
        """Take it from all who share it."""
        del self._shared[key]

    def __iter__(self) -> Iterator[str]:
        """Name all there is."""
        yield from (key for key in self._shared if key != TURNS)
        yield TURNS

    def __len__(self) -> int:
        """Count it."""
        return sum(1 for _ in self)


def run_of(context: RunContextWrapper[Any]) -> str:
    """Return the run. Raises `Stale` where the context names none."""
    given = cast("object", context.context)
    run = cast("Mapping[str, object]", given).get(RUN) if isinstance(given, Mapping) else None
    if not isinstance(run, str) or not run:
        raise Stale(
            f'a guarded run has an id: give Runner.run context={{"{RUN}": "…"}}, a dict',
            at=At("", None, ""),
            reason="no_active_turn",
        )
    outermost, below = _inside.get()
    return below if run == outermost else run


def last_of(context: RunContextWrapper[Any] | None) -> Turns:
    """Return the last answers, by their runs."""
    return (context and context.context and context.context.get(TURNS)) or {}


def place_of(context: RunContextWrapper[Any], items: Sequence[Any] | None) -> dict[str, Any]:
    """Return where the answer to these items stands; None is whatever follows the last one.

    Where the same was asked before, that is its place. Where the model is not shown what the last
    answer asked for, it is asked from the beginning again; else it goes on.
    """
    run = run_of(context)
    if isinstance(context, ToolContext) and run == context.context[RUN]:
        raise Stale(
            f"agent tool {context.tool_name!r} would answer for run {run!r} of its caller: wrap it,"
            " guarded_tool(guard, agent.as_tool(…, hooks=GuardHooks(guard)))",
            at=At(run, None, context.tool_call_id),
            reason="no_active_turn",
        )
    last = last_of(context).get(run)
    text = json.dumps(items, sort_keys=True, default=str)
    asked = hashlib.sha256(text.encode()).hexdigest()[:16]
    if last is None:
        return {"asked": asked, "root": asked, "number": 1, "after": None}
    if asked == last["asked"]:
        return {**last}
    shown = {it.get("call_id") for it in items or ()}
    if items is None or not last["calls"] or not shown.isdisjoint(last["calls"]):
        return {**last, "asked": asked, "number": last["number"] + 1, "after": last["turn"]}
    return {"asked": asked, "root": asked, "number": 1, "after": None}


def note(context: RunContextWrapper[Any], answer: Mapping[str, Any]) -> None:
    """Keep what answered last; of a run below another beside those of the others."""
    run = run_of(context)
    if run == context.context[RUN]:
        context.context = Context(context.context, {run: answer})
    else:
        context.context[TURNS] = {**last_of(context), run: answer}


@contextmanager
def inside(context: RunContextWrapper[Any], at: At) -> Generator[None]:
    """Give the agents that a call runs a run of their own."""
    below = "/".join((at.run, escape(at.turn or ""), escape(at.call)))
    token = _inside.set((context.context[RUN], below))
    try:
        yield
    finally:
        _inside.reset(token)
