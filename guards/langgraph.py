"""LangGraph and LangChain: a middleware that guards an agent's tools (guards.md section 4).

Put it last: innermost. Everything has its place at tool time, checkpointed: run = thread_id, turn =
the AIMessage's id, call = the tool call's id. `after_model` opens the turn, `wrap_tool_call` claims
the call; what waits for approval asks by `interrupt()`, until an answer holds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, TypeAlias, cast

from ..models.lazy import needs_extra

try:
    from langchain.agents.middleware.types import (
        AgentMiddleware,
        AgentState,
        ModelRequest,
        ModelResponse,
        PrivateStateAttr,
    )
    from langgraph.config import get_config
    from langgraph.prebuilt.tool_node import ToolCallRequest
except ModuleNotFoundError as missing:
    raise needs_extra(__name__, missing, extra="guard-langgraph") from missing

from .errors import NotApproved
from .langgraph_answers import opening_of, recording, run_of, with_ids
from .langgraph_calls import RECORDING, GuardedCall, refusing
from .tested import warn_if_untested
from .values import CallContext, Outcome, gated

if TYPE_CHECKING:
    from .guard import Guard

_Request: TypeAlias = ModelRequest[Any]
_Response: TypeAlias = ModelResponse[Any]


class GuardState(AgentState[Any]):
    """The agent's state, and the turn that was opened last: trimmed messages do not tell it."""

    turnlock_turn: NotRequired[Annotated[str, PrivateStateAttr]]


class GuardMiddleware(AgentMiddleware[Any, Any, Any]):
    """Guards every tool of an agent; those of `gate` need approval (and what policies say).

    `records_model` records the model's answers, too: whoever asks a second time at the same place
    of the conversation is given the first one's answer, with its ids. A fork that is meant (time
    travel) needs a run of its own: `configurable.turnlock_run`.
    """

    state_schema = GuardState

    def __init__(
        self, guard: Guard, *, gate: Collection[str] = (), records_model: bool = False
    ) -> None:
        """Keep what is guarded, and how."""
        super().__init__()
        warn_if_untested("langgraph", "langchain")
        self._guard, self._gate, self._records_model = guard, gated(gate), records_model

    def after_model(self, state: Any, runtime: object) -> dict[str, Any]:  # noqa: ANN401, ARG002
        """Open the turn that the model's answer is; in a graph by hand, the node after the model.

        Raises `Forked` where another answer came to the same place, `InDoubt` and `StillRunning`
        where a call of the turn before has neither ended nor waits.
        """
        with refusing():
            opening = opening_of(state, run_of(get_config()), self._gate)
            self._guard.open_turn(**opening)
        return {"turnlock_turn": opening["turn"]}

    async def aafter_model(self, state: Any, runtime: object) -> dict[str, Any]:  # noqa: ANN401, ARG002
        """As `after_model`."""
        with refusing():
            opening = opening_of(state, run_of(get_config()), self._gate)
            await self._guard.aopen_turn(**opening)
        return {"turnlock_turn": opening["turn"]}

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]
    ) -> Any:  # noqa: ANN401 - a ToolMessage or a Command, of any state
        """Run a call once, whoever asks for it however often; ask where it waits for approval."""
        with refusing():
            call = GuardedCall(request)

            def execute(context: CallContext) -> object:
                with call.watched():
                    return call.kept(handler(call.edited(context)))

            while True:
                try:
                    return call.told(self._guard.call(*call.place, execute, **RECORDING))
                except NotApproved as asked:
                    with call.asking():
                        self._guard.decide(asked.at, **call.decision(asked))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:  # noqa: ANN401 - as wrap_tool_call
        """As `wrap_tool_call`."""
        with refusing():
            call = GuardedCall(request)

            async def execute(context: CallContext) -> object:
                with call.watched():
                    return call.kept(await handler(call.edited(context)))

            while True:
                try:
                    return call.told(await self._guard.acall(*call.place, execute, **RECORDING))
                except NotApproved as asked:
                    with call.asking():
                        await self._guard.adecide(asked.at, **call.decision(asked))

    def wrap_model_call(
        self, request: _Request, handler: Callable[[_Request], _Response]
    ) -> _Response:
        """Ask the model; with `records_model` once at each place of the conversation."""
        if not self._records_model:
            return handler(request)
        with refusing():
            place, how = recording(request, run_of(get_config()))
            told = self._guard.once(*place, lambda _: with_ids(handler(request)), **how)
        return cast("_Response", told.value)

    async def awrap_model_call(
        self, request: _Request, handler: Callable[[_Request], Awaitable[_Response]]
    ) -> _Response:
        """As `wrap_model_call`."""
        if not self._records_model:
            return await handler(request)

        async def ask(_: CallContext) -> _Response:
            return with_ids(await handler(request))

        with refusing():
            place, how = recording(request, run_of(get_config()))
            told = cast("Outcome[_Response]", await self._guard.aonce(*place, ask, **how))
        return cast("_Response", told.value)
