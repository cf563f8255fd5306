"""What a tool of Pydantic AI is given is what was asked for: no capability changes it on the way.

The framework lets each capability change arguments before and after they are validated, and once
more when the call is claimed already. The guard stands innermost: it sees them first when they are
validated, and last before the tool runs.
"""

# ruff: noqa: ARG002 - as the framework has its hooks

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import pydantic_ai as ai
from pydantic import TypeAdapter, ValidationError
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ToolCallPart

from ..models.values import same_json
from .calling import NeverBegan
from .errors import Differs
from .pydantic_turns import turn_in
from .values import At


class Changed(NeverBegan):
    """Raised where a claimed call would run with other arguments: `refused` says so."""

    def __init__(self, refused: Differs) -> None:
        """Keep what is to be raised when the claim is given back."""
        super().__init__()
        self.refused = refused


@dataclass
class HeldArguments(AbstractCapability[Any]):
    """Keeps what the arguments of each call became when they were validated."""

    _given: dict[str, str | None] = field(
        default_factory=dict[str, str | None], init=False, compare=False
    )
    """By call; None where something else was validated, or what does not fit was mended."""

    async def before_tool_validate(
        self,
        ctx: ai.RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ai.ToolDefinition,
        args: str | dict[str, Any],
    ) -> str | dict[str, Any]:
        """See, after all others, whether what is validated is what the call says."""
        same = same_json(replace(call, args=args).args_as_dict(), call.args_as_dict())
        self._given[call.tool_call_id] = "" if same else None
        return args

    async def on_tool_validate_error(
        self,
        ctx: ai.RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ai.ToolDefinition,
        args: str | dict[str, Any],
        error: ValidationError | ai.ModelRetry,
    ) -> dict[str, Any]:
        """See, before all others, that they do not fit."""
        self._given[call.tool_call_id] = None
        raise error

    async def after_tool_validate(
        self,
        ctx: ai.RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ai.ToolDefinition,
        args: dict[str, Any],
    ) -> dict[str, Any]:
        """See, before all others, what was made of them."""
        if self._given.get(call.tool_call_id, "") is not None:
            self._given[call.tool_call_id] = _shown(args)
        return args

    async def before_tool_execute(
        self,
        ctx: ai.RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ai.ToolDefinition,
        args: dict[str, Any],
    ) -> dict[str, Any]:
        """See, after all others, what runs: the call is claimed, and surely has not begun."""
        try:
            self.hold(ctx, call, args)
        except Differs as refused:
            raise Changed(refused) from None
        return args

    def hold(self, ctx: ai.RunContext[Any], call: ToolCallPart, args: dict[str, Any]) -> None:
        """Refuse what somebody has changed. Raises `Differs`."""
        given = self._given.get(call.tool_call_id, _shown(call.args_as_dict()))
        if given != _shown(args):
            raise Differs(
                f"a capability has changed the arguments of call {call.tool_call_id!r}"
                f" ({call.tool_name}), which run as they were asked for and approved: nothing was"
                " executed; edit them by ToolApproved(override_args=…) in decide",
                at=At(ctx.conversation_id or "", turn_in(ctx.messages), call.tool_call_id),
            )


@cache  # made when it is first needed: an adapter that is only imported costs nothing
def _any() -> TypeAdapter[Any]:
    return TypeAdapter(Any)


def _shown(args: dict[str, Any]) -> str:
    """Return validated arguments as text; what is no JSON stands there by its type."""
    shown = _any().dump_python(args, mode="json", fallback=lambda it: type(it).__qualname__)
    return json.dumps(shown, sort_keys=True)
