"""LangGraph and LangChain: a middleware that guards an agent's tools (guards.md section 4).

Put it last: innermost. Everything has its place at tool time, checkpointed: run = thread_id, turn =
the AIMessage's id, call = the tool call's id. `after_model` opens the turn, `wrap_tool_call` claims
the call; what waits for approval asks by `interrupt()`, until an answer holds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, NotRequired

from langchain.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    ModelRequest,
    ModelResponse,
    PrivateStateAttr,
)
from langgraph.config import get_config
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import interrupt

from ..models.errors import InvalidValue
from ..runtime.tools.policy import Policy
from .errors import Differs, NotApproved
from .langgraph_records import (
    SUSPENDS,
    GuardedCall,
    answer_of,
    answer_record,
    model_call,
    opening_of,
    refusing,
    result_record,
    run_of,
    with_ids,
)
from .tested import warn_if_untested
from .values import CallContext

if TYPE_CHECKING:
    from .guard import Guard

_MODEL: Final = Policy(safe_to_repeat=True)
"""Nobody needs to resolve a model that died in an answer: it is asked again."""


def _as_recorded(value: Any) -> Any:  # noqa: ANN401 - any JSON
    return value


class GuardState(AgentState[Any]):
    """The agent's state, and the turn that was opened last: trimmed messages do not tell it."""

    turnlock_turn: NotRequired[Annotated[str, PrivateStateAttr]]


class GuardMiddleware(AgentMiddleware[Any, Any, Any]):
    """Guards every tool of an agent; those of `gate` need approval (and what policies say).

    `records_model` records the model's answers, too: whoever asks a second time at the same place
    of the conversation gets the first one's answer, with its ids. `configurable.turnlock_run` gives
    a fork (time travel) a run of its own.
    """

    state_schema = GuardState

    def __init__(
        self, guard: Guard, *, gate: Collection[str] = (), records_model: bool = False
    ) -> None:
        """Keep what is guarded, and how."""
        super().__init__()
        if isinstance(gate, str):
            raise InvalidValue(
                place="gate", cause=f"{gate!r} is one text", fix=f"give a set: {{{gate!r}}}"
            )
        warn_if_untested("langgraph", "langchain")
        self._guard, self._gate, self._records_model = guard, frozenset(gate), records_model

    def after_model(self, state: Any, runtime: object) -> dict[str, Any]:  # noqa: ANN401
        """Open the turn of the model's answer; the one before it is over with that."""
        with refusing():
            run = run_of(get_config())
            turn, calls, after = opening_of(state, run, self._gate)
            self._guard.open_turn(run, turn, calls, after=after)
        return {"turnlock_turn": turn}

    async def aafter_model(self, state: Any, runtime: object) -> dict[str, Any]:  # noqa: ANN401
        """As `after_model`."""
        with refusing():
            run = run_of(get_config())
            turn, calls, after = opening_of(state, run, self._gate)
            await self._guard.aopen_turn(run, turn, calls, after=after)
        return {"turnlock_turn": turn}

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]
    ) -> Any:  # noqa: ANN401 - a ToolMessage or a Command, of any state
        """Run a call once, whoever asks for it however often; ask where it waits for approval."""
        with refusing():
            call, problem = GuardedCall(request), None

            def execute(context: CallContext) -> object:
                with call.watched():
                    return call.kept(handler(call.edited(context)))

            while True:
                try:
                    return call.told(
                        self._guard.call(
                            call.at, call.tool, call.arguments, execute,
                            encode=result_record, decode=_as_recorded, suspends=SUSPENDS,
                        )
                    )  # fmt: skip
                except NotApproved as asked:
                    answer = interrupt(call.question(asked, problem))
                    try:
                        self._guard.decide(asked.at, **call.decision(asked, answer))
                    except (InvalidValue, Differs) as error:
                        problem = str(error)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:  # noqa: ANN401 - as wrap_tool_call
        """As `wrap_tool_call`."""
        with refusing():
            call, problem = GuardedCall(request), None

            async def execute(context: CallContext) -> object:
                with call.watched():
                    return call.kept(await handler(call.edited(context)))

            while True:
                try:
                    return call.told(
                        await self._guard.acall(
                            call.at, call.tool, call.arguments, execute,
                            encode=result_record, decode=_as_recorded, suspends=SUSPENDS,
                        )
                    )  # fmt: skip
                except NotApproved as asked:
                    answer = interrupt(call.question(asked, problem))
                    try:
                        await self._guard.adecide(asked.at, **call.decision(asked, answer))
                    except (InvalidValue, Differs) as error:
                        problem = str(error)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Ask the model; with `records_model` once for each place of the conversation."""
        if not self._records_model:
            return handler(request)
        place = model_call(request, run_of(get_config()))
        with refusing():
            outcome = self._guard.once(
                *place, lambda _: with_ids(handler(request)), encode=answer_record,
                decode=partial(answer_of, request), suspends=(Exception,), policy=_MODEL,
            )  # fmt: skip
        return outcome.value

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """As `wrap_model_call`."""
        if not self._records_model:
            return await handler(request)
        place = model_call(request, run_of(get_config()))

        async def ask(_: CallContext) -> ModelResponse[Any]:
            return with_ids(await handler(request))

        with refusing():
            outcome = await self._guard.aonce(
                *place, ask, encode=answer_record,
                decode=partial(answer_of, request), suspends=(Exception,), policy=_MODEL,
            )  # fmt: skip
        return outcome.value
