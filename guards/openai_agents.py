"""Guards for the OpenAI Agents SDK: what `guarded_tool` wraps runs once, and only when approved.

`GuardHooks` opens a turn for each answer of the model, and each guarded call is claimed in it. A
second answer to the same results is a fork, whatever ids it brings (`openai_places`). What is
refused comes out of `Runner.run` as it is (`except InDoubt`), and ends the run (`openai_calls`).
"""

# ruff: noqa: ANN401, ARG002, D102 - as the SDK has its hooks and the options of its tools

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from ..models.lazy import needs_extra

try:
    import agents as sdk
    from openai.types.responses import ResponseFunctionToolCall
except ModuleNotFoundError as missing:
    raise needs_extra(__name__, missing, extra="guard-openai") from missing

from ..models.calls import Call
from ..models.choices import Match, Scope
from ..models.values import Json, arguments_digest
from .errors import Differs, Forked, Stale
from .openai_calls import Guarded, arguments_of
from .openai_places import last_of, note, place_of, run_of
from .tested import warn_if_untested
from .values import At, Outcome

if TYPE_CHECKING:
    from .guard import Guard

_asking: Final[WeakKeyDictionary[object, dict[str, Any]]] = WeakKeyDictionary()
"""Of a run that waits for an answer: its place, and the claim of it."""


def guarded_tool(
    guard: Guard,
    tool: Callable[..., Any] | sdk.FunctionTool,
    **options: Any,
) -> sdk.FunctionTool:
    """Return `function_tool(tool, **options)`, or a tool made so, each call of which runs once.

    An agent as a tool, `agent.as_tool(…, hooks=GuardHooks(guard))`, gets runs of its own instead.
    """
    warn_if_untested("openai-agents")
    if not isinstance(tool, sdk.FunctionTool):
        options.setdefault("timeout_behavior", "raise_exception")  # a text would hide the doubt
        tool = sdk.function_tool(tool, **options)
    tool = copy.copy(tool)
    tool.on_invoke_tool = guarded = Guarded(guard, tool)
    if callable(tool.needs_approval):
        tool.needs_approval = guarded.asks
    return tool


class GuardHooks(sdk.RunHooks[Any]):
    """Opens a turn for each answer; `one_continuation`: only one host asks the model to go on."""

    def __init__(self, guard: Guard, *, one_continuation: bool = False) -> None:
        """Open turns with this guard."""
        self._guard, self._one = guard, one_continuation

    async def on_llm_start(
        self, context: Any, agent: Any, system_prompt: str | None, input_items: list[Any]
    ) -> None:
        run, place = run_of(context), place_of(context, input_items)
        if (claim := _asking.pop(context, {}).get("claim")) is not None:
            await claim.anever_began()  # the model has failed: nobody has its answer
        if self._one and place["after"]:
            claim = await self._guard.acontinuation(run, place["after"])
            if isinstance(claim, Outcome):
                raise _forked(run, place["after"], str(claim.value))
            place["claim"] = claim
        _asking[context] = place

    async def on_llm_end(self, context: Any, agent: Any, response: sdk.ModelResponse) -> None:
        run, place = run_of(context), _asking.pop(context, None) or place_of(context, None)
        claim, calls = place.pop("claim", None), dict[str, Call]()
        tools = {it.name: getattr(it, "on_invoke_tool", None) for it in agent.tools}
        asked = [it for it in response.output if isinstance(it, ResponseFunctionToolCall)]
        for it in asked:
            tool, arguments = tools.get(it.name), arguments_of(it.arguments)
            if isinstance(tool, Guarded) and not tool.is_agent and arguments is not None:
                calls[it.call_id] = Call(
                    invocation_id=it.call_id,
                    tool_name=it.name,
                    arguments=arguments,
                    requires_approval=await tool.asks(context, arguments, it.call_id),
                )
        turn = f"{place['root']}.{place['number']}" + ("" if calls else "-text")
        try:
            await self._guard.aopen_turn(run, turn, [*calls.values()], after=place["after"])
        except (Differs, Forked) as error:
            if calls:
                raise _forked(run, turn, getattr(error, "came", turn)) from error
            return  # a late text executes nothing, and closes nothing
        if claim is not None:
            await claim.asucceeded(turn)
        note(context, {**place, "turn": turn, "calls": [it.call_id for it in asked]})

    async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
        if (last := last_of(context).get(run_of(context))) is not None:
            # The other agent is shown what filters leave of it: nothing is expected there.
            note(context, {**last, "asked": "", "calls": []})


async def approve(  # noqa: PLR0913 - what a decision has
    guard: Guard,
    state: sdk.RunState[Any],
    item: sdk.ToolApprovalItem,
    *,
    approved: bool = True,
    by: str | None = None,
    reason: str | None = None,
    arguments: Mapping[str, Json] | None = None,
    scope: Scope = Scope.ONCE,
    match: Match = Match.EXACT,
) -> None:
    """Decide a call in turnlock, then in the state. Raises `Stale`, `DecidedOtherwise`, `Differs`.

    `arguments` are those that run instead. The SDK asks again for all but what is approved for the
    session and whatever its arguments (`always_approve`).
    """
    call, digest = item.call_id or "", arguments_digest(arguments_of(item.arguments) or {})
    last = last_of(state._context)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    found = [At(run, it["turn"], call) for run, it in last.items() if call in it["calls"]]
    if len(found) > 1:  # agents that are tools, and give their calls the same ids
        waiting = [it for at in found for it in await guard.awaiting(at.run)]
        found = [it.at for it in waiting if it.at in found and it.digest == digest]
    if len(found) != 1:
        why = f"{len(found)} calls {call!r} of this state are guarded: there has to be one"
        raise Stale(why, at=At("", None, call), reason="unknown_invocation")
    said: dict[str, Any] = {"by": by, "reason": reason, "arguments": arguments, "scope": scope}
    await guard.adecide(found[0], approved=approved, digest=digest, match=match, **said)
    if approved:
        state.approve(item, always_approve=scope is Scope.SESSION and match is Match.TOOL)
    else:
        state.reject(item, rejection_message=reason)


def _forked(run: str, turn: str, came: str) -> Forked:
    return Forked(
        f"run {run!r}: another answer, {came!r}, was there first: go on from that one, or give this"
        " conversation a turnlock_run of its own",
        at=At(run, turn, ""),
        came=came,
    )
