"""What people answer to deferred calls of Pydantic AI: recorded first, then told the framework."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs
from pydantic_ai import (
    DeferredToolRequests,
    DeferredToolResults,
    ModelRetry,
    ToolApproved,
    ToolDenied,
    ToolFailed,
)
from pydantic_ai.messages import ModelMessage, ToolCallPart

from ..lifecycle.phases import Phase
from ..models.choices import Resolution
from ..models.errors import InvalidValue
from ..models.reasons import Reason
from ..models.values import arguments_digest
from ..runtime.tools.errors import said
from .claimed import Claimed
from .errors import DecidedOtherwise, Differs, NotApproved, Stale
from .pydantic_turns import encode, naming_what_opens, turn_in
from .values import At, Look

if TYPE_CHECKING:
    from .guard import Guard

NO_ANSWERS: Final[Mapping[str, Any]] = {}
DENIED: Final = "denied: "
"""How the error of a call begins that asked for approval by itself, and did not get it."""


async def decide(
    guard: Guard,
    messages: Sequence[ModelMessage],
    requests: DeferredToolRequests,
    answers: Mapping[str, Any] = NO_ANSWERS,
    *,
    by: str | None = None,
) -> DeferredToolResults:
    """Record answers to the calls of a history, and return what `deferred_tool_results` is given.

    `answers` by call id: of an approval a bool, `ToolApproved` (its `override_args` run instead) or
    `ToolDenied`; of any other deferred call its result, `ModelRetry` or `ToolFailed`. What is left
    out is as the journal has it: decided by somebody else, or not at all. Raises
    `DecidedOtherwise`, `Differs` and `Stale` for the first answer that cannot be recorded, those
    before it are; and `InvalidValue`, which changes nothing.
    """
    asked = [*requests.approvals, *requests.calls]
    for name in answers.keys() - {it.tool_call_id for it in asked}:
        raise _invalid(name, "waits for no answer", f"of {[it.tool_call_id for it in asked]}")
    at = _answered(messages)
    told = DeferredToolResults()
    approvals = {
        it.tool_call_id: _approval(it.tool_call_id, answers[it.tool_call_id])
        for it in requests.approvals
        if it.tool_call_id in answers
    }
    with naming_what_opens():
        for call in requests.approvals:
            here = attrs.evolve(at, call=call.tool_call_id)
            if call.tool_call_id in approvals:
                given = approvals[call.tool_call_id]
                await _decide(guard, here, call, given, by)
            else:
                found = _decided(await guard.alook(here))
                if found is None:
                    continue
                given = found
            told.approvals[call.tool_call_id] = given
        for call in requests.calls:
            if call.tool_call_id in answers:
                value = answers[call.tool_call_id]
                await _resolve(guard, attrs.evolve(at, call=call.tool_call_id), call, value)
                told.calls[call.tool_call_id] = value
    return told


async def unasked(guard: Guard, at: At, call: ToolCallPart) -> None:
    """Refuse a call that the framework says was approved, and of which the journal knows nothing.

    A tool, its validator or a capability has asked for this approval by itself: the call was opened
    without it.
    """
    look = await guard.alook(at)
    if look.phase is Phase.REQUESTED and look.digest is None:
        arguments = call.args_as_dict()
        raise NotApproved(
            f"{at} ({call.tool_name}) was approved in the framework alone:"
            " give the answer to turnlock.guards.pydantic_ai.decide",
            at=at,
            digest=arguments_digest(arguments),
            arguments=arguments,
        )


def _answered(messages: Sequence[ModelMessage]) -> At:
    """Return the run and the turn of the last answer in a history."""
    run = next((it.conversation_id for it in reversed(messages) if it.conversation_id), None)
    turn = turn_in(messages)
    if run is None or turn is None:
        raise Stale(
            "these messages hold no answer of a model in a conversation: give all_messages()",
            at=At(run or "", turn, ""),
            reason=Reason.NO_ACTIVE_TURN,
        )
    return At(run, turn, "")


def _approval(call: str, answer: object) -> ToolApproved | ToolDenied:
    if isinstance(answer, ToolApproved | ToolDenied):
        return answer
    if not isinstance(answer, bool):
        raise _invalid(call, f"has {answer!r}", "True, False, ToolApproved(…) or ToolDenied(…)")
    return ToolApproved() if answer else ToolDenied()


def _invalid(call: str, cause: str, fix: str) -> InvalidValue:
    return InvalidValue(place=f"answers of {call!r}", cause=cause, fix=f"give one {fix}")


def _decided(look: Look) -> ToolApproved | ToolDenied | None:
    """Return what was decided about a call elsewhere, None for nothing."""
    if look.phase in {Phase.REQUESTED, Phase.IN_DOUBT}:
        return None
    ended = look.outcome
    if ended is not None and ended.reason is not None:
        return ToolDenied(ended.reason)
    if ended is not None and (ended.error or "").startswith(DENIED):
        return ToolDenied((ended.error or "").removeprefix(DENIED))
    return ToolApproved()


async def _decide(
    guard: Guard, at: At, call: ToolCallPart, answer: ToolApproved | ToolDenied, by: str | None
) -> None:
    look = await guard.alook(at)
    reason = answer.message if isinstance(answer, ToolDenied) else None
    edited = answer.override_args if isinstance(answer, ToolApproved) else None
    if look.digest is not None:
        digest = arguments_digest(call.args_as_dict())
        await guard.adecide(
            at, approved=reason is None, digest=digest, by=by, reason=reason, arguments=edited
        )
        return
    if edited is not None:
        raise Differs(
            f"{at} ({call.tool_name}) asked for approval by itself: its arguments can be edited"
            " only where the tool has requires_approval, or its policy",
            at=at,
        )
    decided = _decided(look)
    if decided is not None and type(decided) is not type(answer):
        raise DecidedOtherwise(
            f"{at} ({call.tool_name}): another decision was there first, and this one changes"
            " nothing",
            at=at,
            reason=Reason.ALREADY_DECIDED,
        )
    if decided is None and look.attempt <= 1:  # of a later attempt nobody was asked
        await _begun(guard, look, call)
        if reason is None:
            await guard.aresolve(at, Resolution.RETRY)
        else:
            await guard.aresolve(at, Resolution.ERROR, error=DENIED + reason)


async def _resolve(guard: Guard, at: At, call: ToolCallPart, answer: object) -> None:
    """Record the result of a call whose tool has deferred it."""
    try:
        look = await guard.alook(at)
    except Stale:  # an external tool: nobody guards it
        return
    await _begun(guard, look, call)
    if isinstance(answer, ModelRetry | ToolFailed):
        await guard.aresolve(at, Resolution.ERROR, error=said(answer))
    else:
        await guard.aresolve(at, Resolution.RESULT, result=encode(answer))


async def _begun(guard: Guard, look: Look, call: ToolCallPart) -> None:
    """Begin and lose a call that was deferred before its tool began: then it can be resolved."""
    if look.phase is Phase.REQUESTED:
        claimed = await guard.aclaim(look.at, call.tool_name, call.args_as_dict())
        if isinstance(claimed, Claimed):
            await claimed.alost()
