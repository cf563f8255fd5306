"""A guarded call of the OpenAI Agents SDK: claimed, run once, worded as the SDK words it.

What failed is told to the model as the tool says (`failure_error_function`): outside of the claim,
for inside it would be a success. What is refused ends the run: it is handed on as an error of the
SDK's own as well, which rewords all others, and when the calls beside it are through, which the SDK
would cancel otherwise.
"""

# ruff: noqa: ANN401 - contexts and results are a user's

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from agents import AgentsException, FunctionTool, ModelBehaviorError, ToolOriginType
from agents import tool as tools
from agents.tool_context import ToolContext
from agents.util._approvals import evaluate_function_tool_approval
from pydantic import BaseModel

from ..models.calls import Status
from ..models.errors import TurnlockError
from ..models.values import Json, same_json
from .claimed import from_json
from .errors import Stale
from .openai_places import inside, last_of, run_of
from .siblings import beside
from .values import At, CallContext

if TYPE_CHECKING:
    from .guard import Guard

_THEIRS: Final[dict[type[TurnlockError], type[TurnlockError]]] = {}


class Guarded:
    """What a guarded tool does when it is invoked."""

    def __init__(self, guard: Guard, tool: FunctionTool) -> None:
        """Stand before a tool."""
        self._guard, self._tool = guard, tool
        self._bare = tools.set_function_tool_failure_error_function(copy.copy(tool), None)
        origin = tools.get_function_tool_origin(tool)
        self.is_agent = origin is not None and origin.type is ToolOriginType.AGENT_AS_TOOL

    async def asks(self, context: Any, arguments: Mapping[str, Any], call: str) -> bool:
        """Say whether the SDK asks somebody about this call."""
        raw = json.dumps(arguments)
        found = await evaluate_function_tool_approval(self._bare, context, raw, call)
        return found.outcome != "invoke"

    async def __call__(self, context: ToolContext[Any], raw: str) -> Any:
        """Run it once, or an agent in a run of its own."""
        try:
            at = self._at(context)
            with inside(context, at):
                if self.is_agent:
                    return await self._bare.on_invoke_tool(context, raw)
                return await self._once(context, at, raw)
        except TurnlockError as error:
            raise _let_through(error) from error.__cause__
        except Exception as error:
            told = await tools.maybe_invoke_function_tool_failure_error_function(
                function_tool=self._tool, context=context, error=error
            )
            if told is None:
                raise
            return told

    def _at(self, context: ToolContext[Any]) -> At:
        run, call = run_of(context), context.tool_call_id
        if (last := last_of(context).get(run)) is None:
            raise Stale(
                f"tool {self._tool.name!r} is guarded, and no turn of run {run!r} is open here:"
                " give Runner.run hooks=GuardHooks(guard), and an agent as a tool"
                " guarded_tool(guard, agent.as_tool(…, hooks=GuardHooks(guard)))",
                at=At(run, None, call),
                reason="no_active_turn",
            )
        return At(run, last["turn"], call)

    async def _once(self, context: ToolContext[Any], at: At, raw: str) -> Any:
        raised: list[Exception] = []
        if (arguments := arguments_of(raw)) is None:
            raise ModelBehaviorError(f"Invalid JSON input for tool {self._tool.name}")

        async def run(call: CallContext) -> Any:
            same = same_json(call.arguments, arguments)
            try:
                text = raw if same else json.dumps(from_json(call.arguments))
                return await self._bare.on_invoke_tool(context, text)
            except Exception as error:
                raised.append(error)
                raise

        async with beside(at.run, at.turn, id(context.usage)):  # which each run of the SDK has
            outcome = await self._guard.acall(at, self._tool.name, arguments, run, encode=_kept)
        if outcome.status is Status.FAILED:
            raise raised[0] if raised else RuntimeError(outcome.error)
        return outcome.value if outcome.status is Status.SUCCEEDED else outcome.reason


def arguments_of(raw: str | None) -> dict[str, Any] | None:
    """Return the arguments of a call; None for what is no JSON object: it is never run."""
    try:
        found = json.loads(raw or "{}", parse_constant=int)  # NaN and Infinity are no integers
    except ValueError:
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def _kept(value: object) -> Json:  # the SDK's texts, images and files as their fields
    if isinstance(value, list):
        return [_kept(it) for it in cast("list[object]", value)]
    return cast("Json", value.model_dump(mode="json") if isinstance(value, BaseModel) else value)


def _let_through(error: TurnlockError) -> TurnlockError:
    kind = type(error)
    if not issubclass(kind, AgentsException):
        theirs = {"__module__": kind.__module__, "run_data": None}
        _THEIRS.setdefault(kind, type(kind.__name__, (kind, AgentsException), theirs))
        error.__class__ = _THEIRS[kind]
    return error
