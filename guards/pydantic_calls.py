"""How a call of Pydantic AI is run and told: once, its arguments, its outcome, what streams."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pydantic_ai as ai
from pydantic_ai.capabilities import WrapToolExecuteHandler
from pydantic_ai.exceptions import SkipToolExecution
from pydantic_ai.messages import ModelMessage, ToolCallPart
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from ..models.calls import Status
from ..models.values import same_json
from .errors import NotApproved
from .pydantic_arguments import Changed
from .pydantic_turns import decode, encode
from .values import At, CallContext, Outcome

if TYPE_CHECKING:
    from .guard import Guard

SUSPENDS: Final = (ai.ApprovalRequired, ai.CallDeferred)
"""What ends a call without an outcome."""
RETRIES: Final = ("ToolRetryError: ", "ModelRetry: ")
"""How the recorded error of a call begins that told the model to ask again."""
inside: Final[ContextVar[object]] = ContextVar("turnlock_pydantic_inside", default=None)
"""One execution of a tool, to the calls that it dispatches: those do not wait for it."""


class Watched(WrapperModel):
    """A model whose streamed answers are known before the framework has them in its history."""

    def __init__(
        self, wrapped: Model, watch: Callable[[StreamedResponse, ModelRequestParameters], None]
    ) -> None:
        """Wrap a model; `watch` is given each stream."""
        super().__init__(wrapped)
        self._watch = watch

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: ai.RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Stream an answer, and give it to whoever watches."""
        async with super().request_stream(
            messages, model_settings, model_request_parameters, run_context
        ) as streamed:
            self._watch(streamed, model_request_parameters)
            yield streamed


async def run_once(  # noqa: PLR0913 - what a call is run with
    guard: Guard,
    at: At,
    ctx: ai.RunContext[Any],
    call: ToolCallPart,
    *,
    args: dict[str, Any],
    handler: WrapToolExecuteHandler,
) -> Any:  # noqa: ANN401 - whatever a tool returns
    """Run a call unless it was run; tell what came of it as the framework does."""
    arguments = call.args_as_dict()  # raw, as they were opened: so an override shows
    raised: list[Exception] = []

    async def run(context: CallContext) -> Any:  # noqa: ANN401
        token = inside.set(object())
        try:
            edited = not same_json(context.arguments, arguments)
            return await handler(await _validated(ctx, call, context) if edited else args)
        except SkipToolExecution as skipped:  # a capability has a result without the tool
            return skipped.result
        except Exception as error:
            raised.append(error)
            raise
        finally:
            inside.reset(token)

    how: dict[str, Any] = {"encode": encode, "decode": decode, "suspends": SUSPENDS}
    try:
        outcome = await guard.acall(at, call.tool_name, arguments, run, **how)
    except Changed as changed:
        raise changed.refused from None
    except NotApproved as refused:
        if ctx.tool_call_approved or raised:
            raise
        raise ai.ApprovalRequired from refused  # a policy demands it, not the agent
    if raised:
        raise raised[0]
    return _told(outcome)


async def _validated(
    ctx: ai.RunContext[Any], call: ToolCallPart, context: CallContext
) -> dict[str, Any]:
    """Return the arguments that an approval edited as the tool takes them."""
    edited = replace(call, args=json.dumps(context.arguments))
    manager = ctx.tool_manager
    assert manager is not None  # noqa: S101 - it is what has called us
    found = await manager.validate_tool_call(
        edited, approved=True, metadata=ctx.tool_call_metadata, wrap_validation_errors=False
    )
    return found.validated_args or {}


def _told(outcome: Outcome[Any]) -> Any:  # noqa: ANN401
    """Word an outcome as the framework does."""
    if outcome.status is Status.SUCCEEDED:
        return outcome.value
    if outcome.status is Status.DENIED:
        return ai.ToolDenied(outcome.reason or ai.ToolDenied.message)
    error = outcome.error or ""
    for retry in RETRIES:
        if error.startswith(retry):
            raise ai.ModelRetry(error.removeprefix(retry))
    raise ai.ToolFailed(error.removeprefix("ToolFailedError: "))
