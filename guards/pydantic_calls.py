"""How a call of Pydantic AI is run and told: its arguments, its outcome, an answer that streams."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final

import pydantic_ai as ai
from pydantic_ai.messages import ModelMessage, ToolCallPart
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from ..models.calls import Status
from .errors import GuardRefused
from .values import CallContext, Outcome

SUSPENDS: Final = (ai.ApprovalRequired, ai.CallDeferred, GuardRefused)
"""What ends a call without an outcome; the last comes out of an agent that the tool asked."""
RETRIES: Final = ("ToolRetryError: ", "ModelRetry: ")
"""How the recorded error of a call begins that told the model to ask again."""


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


async def validated(
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


def told(outcome: Outcome[Any]) -> Any:  # noqa: ANN401
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
