"""Doubt: what is said of an attempt that nobody runs, and what its tool declares (K-35)."""

from __future__ import annotations

import asyncio
from typing import Final

import attrs

from ..engine.kernel import Kernel
from ..models.deliveries import Delivery, Lose, Resolution, Resolve
from ..models.ids import idempotency_key
from ..runtime.in_doubt import UNKNOWN, resolution_of
from ..runtime.tools.calling import ToolContext
from ..runtime.tools.performing import probe
from ..runtime.tools.policy import InDoubt, Policy
from ..runtime.tools.threads import Threads
from ..runtime.tools.tool import Tool
from ..views.call_view import CallView, Waits, resolved
from ..views.live import call_of
from .past import Past
from .values import At
from .visits import Step

PROBING: Final = Threads(name="turnlock probe", bound="LOST")
"""The threads of the probes of this process."""
NOT_BEGUN: Final = "it was not begun, and its turn was interrupted"
"""The error of an attempt that surely never began, where none may follow it."""


@attrs.frozen
class Losing:
    """An attempt whose executor is surely gone, or knows that it never began."""

    at: At
    attempt: int
    began: bool = True
    """Whether it may have happened; where it surely never began, one more is authorised at once.

    In a turn that is being interrupted none may follow (K-53): there it has failed.
    """

    def __call__(self, kernel: Kernel, _: Past) -> Step[None]:
        """Say that it is lost, if it is this attempt still."""
        call = call_of(kernel, turn_id=self.at.turn or "", invocation_id=self.at.call)
        if call is None or call.ended or call.attempt != self.attempt:
            return Step(answer=None)
        found: list[Delivery] = []
        if not call.in_doubt:
            found.append(
                Lose(
                    run_id=call.run_id,
                    turn_id=call.turn_id,
                    invocation_id=call.invocation_id,
                    attempt=call.attempt,
                )
            )
        if not self.began and not call.retry_authorised:
            found.append(
                resolved(call, Resolution.ERROR, error=NOT_BEGUN)
                if call.interrupting
                else resolved(call, Resolution.RETRY)
            )
        return Step(deliveries=tuple(found), answer=None)


@attrs.frozen
class Settling:
    """What a tool's policy says of an attempt in doubt, which is said if it is in doubt still."""

    resolve: Resolve

    def __call__(self, kernel: Kernel, _: Past) -> Step[bool]:
        """Resolve it; whoever was quicker is right. Say whether it can be resolved so now."""
        told = self.resolve
        call = call_of(kernel, turn_id=told.turn_id, invocation_id=told.invocation_id)
        if call is None or call.waits is not Waits.RESOLUTION or call.attempt != told.attempt:
            return Step(answer=True)
        if told.resolution is Resolution.RETRY and call.interrupting:
            return Step(answer=False)
        return Step(deliveries=(told,), answer=True)


async def answer_of(call: CallView, policy: Policy | None) -> Resolve | None:
    """Return what a tool declares about its call in doubt; None: somebody is to be asked."""
    rule = InDoubt.ASK if policy is None else policy.doubt_rule
    if rule is InDoubt.RETRY_IF_SAFE:
        return resolved(call, Resolution.RETRY)
    if rule is InDoubt.FAIL:
        return resolved(call, Resolution.ERROR, error=UNKNOWN)
    if rule is InDoubt.PROBE and policy is not None:
        return await _probed(call, policy)
    return None


async def _probed(call: CallView, policy: Policy) -> Resolve | None:
    """Ask the tool's probe; it may wait for code of the tool's author, under a bound."""
    tool = Tool(name=call.tool_name, call=_never_called, policy=policy)
    context = ToolContext(
        idempotency_key=idempotency_key(call.path),
        run_id=call.run_id,
        turn_id=call.turn_id,
        invocation_id=call.invocation_id,
        attempt=call.attempt,
        tool_name=call.tool_name,
        loop=asyncio.get_running_loop(),
    )
    with PROBING.lease(call.tool_name) as thread:
        answer = await probe(tool, context, threads=thread)
    return resolution_of(context, answer)


def _never_called() -> None:
    """Stand for a tool that a guard does not have: only its policy is asked."""
