"""Pydantic AI: a capability that claims each call of each toolset, and `decide`, which approves.

run = the conversation's id, turn = the answer that asked (`pydantic_turns`): both travel in the
message history. docs/guards-pydantic-ai.md shows how it is used.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..models.lazy import needs_extra

try:
    import pydantic_ai as ai
    from pydantic_ai.capabilities import (
        AbstractCapability,
        CapabilityOrdering,
        WrapToolExecuteHandler,
    )
    from pydantic_ai.messages import ModelResponse, ToolCallPart
    from pydantic_ai.models import (
        Model,
        ModelRequestContext,
        ModelRequestParameters,
        StreamedResponse,
    )
except ModuleNotFoundError as missing:
    raise needs_extra(__name__, missing, extra="guard-pydantic-ai") from missing

from .errors import Forked, Stale
from .pydantic_answers import decide, unasked
from .pydantic_arguments import HeldArguments
from .pydantic_calls import Watched, inside, run_once
from .pydantic_turns import calls_in, hold, naming_what_opens, returns_in, turn_in, turn_of
from .siblings import beside
from .tested import warn_if_untested
from .values import BEGINNING, At

if TYPE_CHECKING:
    from .guard import Guard

__all__ = ["GuardCapability", "decide"]


@dataclass
class GuardCapability(HeldArguments):
    """Lets one approval execute once, for every tool of an agent that runs in its process."""

    guard: Guard
    _: KW_ONLY
    id: str | None = "turnlock-guard"
    _opened: str | None = field(default=None, init=False, compare=False)
    _streamed: tuple[StreamedResponse, ModelRequestParameters] | None = field(
        default=None, init=False, compare=False
    )
    _ended: set[str] = field(default_factory=set[str], init=False, compare=False)

    def __post_init__(self) -> None:
        """Warn of a version that was not measured."""
        warn_if_untested("pydantic-ai-slim")

    def get_ordering(self) -> CapabilityOrdering:
        """Stand next to the tools: what other capabilities make of a call is what is claimed."""
        return CapabilityOrdering(position="innermost")

    async def for_run(self, ctx: ai.RunContext[Any]) -> AbstractCapability[Any]:  # noqa: ARG002
        """Give each run of an agent a state of its own."""
        return replace(self)

    def get_wrapper_model(self, model: Model) -> Model | None:
        """Keep hold of what is streamed: `run_stream` runs tools before it is in the history."""
        return Watched(model, self._watch)

    def _watch(self, streamed: StreamedResponse, parameters: ModelRequestParameters) -> None:
        self._streamed = streamed, parameters

    async def before_model_request(
        self, ctx: ai.RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Refuse to tell the model of a call what the journal does not know."""
        turn = turn_in(ctx.messages)
        for part in returns_in(ctx.messages) if turn else ():
            if part.tool_call_id not in self._ended:
                with suppress(Stale):  # it is no call of a guarded tool, or of before the guard
                    hold(part, await self.guard.alook(At(_run(ctx), turn, part.tool_call_id)))
        return request_context

    async def after_model_request(
        self,
        ctx: ai.RunContext[Any],
        *,
        request_context: ModelRequestContext,
        response: ModelResponse,
    ) -> ModelResponse:
        """Open the turn that the answer is."""
        self._streamed = None
        if response.state != "suspended":  # half an answer: it is asked for again
            await self._open(ctx, response, request_context.model_request_parameters)
        return response

    async def wrap_tool_execute(
        self,
        ctx: ai.RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ai.ToolDefinition,  # noqa: ARG002
        args: dict[str, Any],
        handler: WrapToolExecuteHandler,
    ) -> Any:  # noqa: ANN401 - whatever a tool returns
        """Run a call unless it was run: then tell its recorded outcome."""
        async with beside(id(self), inside.get()):
            self.hold(ctx, call, args)
            at = await self._at(ctx, call)
            with naming_what_opens():
                if ctx.tool_call_approved:
                    await unasked(self.guard, at, call)
                told = await run_once(self.guard, at, ctx, call, args=args, handler=handler)
        self._ended.add(call.tool_call_id)
        return told

    async def _at(self, ctx: ai.RunContext[Any], call: ToolCallPart) -> At:
        """Return where a call stands: in the answer that streams, or the last one kept."""
        if self._streamed is not None:
            stream, parameters = self._streamed
            await self._open(ctx, stream.get(), parameters)
            return At(_run(ctx), self._opened, call.tool_call_id)
        return At(_run(ctx), turn_in(ctx.messages) or "none", call.tool_call_id)

    async def _open(
        self, ctx: ai.RunContext[Any], answer: ModelResponse, parameters: ModelRequestParameters
    ) -> None:
        turn = turn_of(answer, ctx.messages)
        if turn == self._opened:
            return
        calls = calls_in(answer, parameters.function_tools)
        after = self._opened or turn_in(ctx.messages) or BEGINNING
        try:
            await self.guard.aopen_turn(_run(ctx), turn, calls, after=after)
        except Forked:
            if calls:  # a second text does no harm
                raise
        self._opened = turn
        self._ended.clear()


def _run(ctx: ai.RunContext[Any]) -> str:
    return ctx.conversation_id or ctx.run_id or ""
