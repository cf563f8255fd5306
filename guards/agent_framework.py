"""Guards under Microsoft Agent Framework: two middlewares and one function (guards.md section 2).

Run = `session.session_id`; the turn is a nonce, noted in `session.state["turnlock"]` and in each
call, both of which the framework serializes. TurnMiddleware stands first, ClaimMiddleware last.
Each refusal is a `MiddlewareFailure`, too: of any other error the framework makes a tool's result.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from copy import copy, deepcopy
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import uuid4
from weakref import WeakSet

from ..models.lazy import needs_extra

try:
    import agent_framework as af
    from agent_framework.exceptions import ToolExecutionException, UserInputRequiredException
except ModuleNotFoundError as missing:
    raise needs_extra(__name__, missing, extra="guard-agent-framework") from missing

from ..models.calls import Status
from ..models.values import arguments_digest, same_json
from .agent_framework_calls import asked, calls_of, decode, encode, noted
from .agent_framework_session import (
    APPROVALS,
    KEY,
    beside_siblings,
    conversation,
    ending_the_run,
    within,
)
from .errors import Stale
from .tested import warn_if_untested
from .values import BEGINNING, At, CallContext, gated

if TYPE_CHECKING:
    from .guard import Guard

Next = Callable[[], Awaitable[None]]
SUSPENDS: Final = (af.MiddlewareFailure, UserInputRequiredException)

_claiming: WeakSet[Guard] = WeakSet()  # those that a ClaimMiddleware has


class TurnMiddleware(af.ChatMiddleware):
    """Opens a turn for each answer of the model; tools in `gate` wait for a decision."""

    def __init__(self, guard: Guard, *, gate: Collection[str] = ()) -> None:
        """Open turns with this guard; tools that always require approval are in the gate, too."""
        warn_if_untested("agent-framework-core")
        self._guard, self._gate = guard, gated(gate)

    async def process(self, context: af.ChatContext, call_next: Next) -> None:
        """Ask the model and open its answer: `Forked`, `InDoubt` … where it cannot be."""
        with ending_the_run():
            run, notes = conversation(context.session)
            if self._guard not in _claiming:
                message = "nothing claims the calls: add ClaimMiddleware(guard) as last middleware"
                raise Stale(message, at=At(run, None, ""), reason="no_active_turn")
        after: str = notes.get("turn", BEGINNING)

        async def opened(answer: af.ChatResponse[Any]) -> af.ChatResponse[Any]:
            turn, tools = uuid4().hex, cast("list[Any]", (context.options or {}).get("tools") or [])
            with ending_the_run():
                calls = calls_of(answer, tools, at=At(run, turn, ""), gate=self._gate)
                await self._guard.aopen_turn(run, turn, calls, after=after)
                asks = {it.tool for it in await self._guard.awaiting(run)} if calls else ()
            notes.clear()
            notes.update(noted(turn, calls))
            for place, it in enumerate(tools):  # this run's own list: the framework asks for them
                if isinstance(it, af.FunctionTool) and it.name in asks:
                    tools[place] = copy(it)
                    tools[place].approval_mode = "always_require"
            return answer

        context.stream_result_hooks.append(opened)
        try:
            await call_next()
        finally:  # the answer of a cache, too, which comes with MiddlewareTermination
            if isinstance(context.result, af.ChatResponse):
                await opened(context.result)


class ClaimMiddleware(af.FunctionMiddleware):
    """Claims each call before its tool runs; a call that has ended gives its recorded outcome."""

    def __init__(self, guard: Guard) -> None:
        """Claim with this guard."""
        self._guard = guard
        _claiming.add(guard)

    async def process(self, context: af.FunctionInvocationContext, call_next: Next) -> None:
        """Run the tool, if it may and has not yet; `NotApproved`, `InDoubt` … otherwise."""
        tool, raised = context.function, list[Exception]()

        async def execute(it: CallContext) -> Any:  # noqa: ANN401 - whatever the tool returns
            inner = f"{run}:{at.turn}:{at.call}:{it.attempt}"
            token = within.set((context.session.session_id if context.session else "", inner, {}))
            try:
                if same_json(it.arguments, arguments):
                    await call_next()
                else:  # a decision has edited them: in its own context the framework asks again
                    edited = af.FunctionInvocationContext(
                        tool, dict(it.arguments), context.session, kwargs=context.kwargs
                    )
                    context.result = await tool.invoke(context=edited, tool_call_id=at.call)
            except af.MiddlewareTermination as ended:  # a handoff ends the loop, with a result
                raised.append(ended)
                return ended.result if context.result is None else context.result
            except Exception as error:
                raised.append(error)
                raise
            finally:
                within.reset(token)
            return context.result

        async with beside_siblings(context.session) as (run, notes):
            at, arguments = asked(context, run, notes)
            outcome = await self._guard.acall(
                at, tool.name, arguments, execute, encode=encode, decode=decode, suspends=SUSPENDS
            )
        if raised:
            raise raised[0]
        if outcome.status is Status.FAILED:
            raise ToolExecutionException(outcome.error or "failed")
        if outcome.status is Status.DENIED:
            context.result = f"Error: Tool call invocation was rejected: {outcome.reason}"
        elif outcome.replayed:
            context.result = outcome.value


async def answer(  # noqa: PLR0913 - whose session, about what, by whom
    guard: Guard,
    session: af.AgentSession,
    request: af.Content,
    approved: bool,  # noqa: FBT001 - as Content.to_function_approval_response has it
    *,
    by: str | None = None,
    reason: str | None = None,
) -> af.Content:
    """Decide in turnlock, and return what `agent.run` takes; raises `Stale`, `DecidedOtherwise`."""
    run, notes = conversation(session)
    call = request.function_call
    if call is None or not (turn := call.additional_properties.get(KEY)):
        message = "this request was made without TurnMiddleware(guard): no turn has its call"
        raise Stale(message, at=At(run, None, request.id or ""), reason="no_active_turn")
    at = At(run, turn, call.call_id or call.id or "")
    if (await guard.alook(at)).digest is not None:  # of others the framework alone asks
        digest = arguments_digest(call.parse_arguments() or {})
        await guard.adecide(at, approved=approved, digest=digest, by=by, reason=reason)
    notes["approvals"] = deepcopy(session.state.get(APPROVALS))
    return request.to_function_approval_response(approved)
