"""What tools declare, applied to a delivery before it is judged: approval, fit, and secrets.

Code of the tools' authors runs here, predicates and the classes that type hints name: in threads,
and under a bound, because the run waits for it. A predicate that does not answer means that a
person is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from operator import is_
from typing import Final, Self

import attrs

from ..engine.kernel import Kernel
from ..models.calls import Call
from ..models.deliveries import AddCall, Decide, Delivery, OpenTurn, Report, Resolve
from ..models.errors import InvalidValue
from ..models.record import changed
from ..models.sealed import is_sealed
from ..models.values import ABSENT, Absent, Json
from ..views.call_view import CallView
from ..views.live import call_of
from .log import logger
from .tools.arguments import MISSING, NOT_TAKEN, misfit
from .tools.calling import Ending, Raised, Returned, begin
from .tools.errors import BadArguments
from .tools.policy import ApprovalNeed, Keep, Policy, is_secretive
from .tools.sealing import Place, SealBroken
from .tools.threads import Threads
from .tools.tool import Tool
from .tools.toolbox import Toolbox

_log = logger(__name__)

ANSWER: Final = 5.0
"""Seconds that a tool's own code has for one delivery, all its calls together."""

ASKING: Final = Threads(name="turnlock question", bound="LOST")
"""The threads of whoever judges in this process."""


@attrs.frozen(kw_only=True)
class Declared:
    """What is known of the tools of a run, where it is judged."""

    policies: Mapping[str, Policy] | None
    """By the names of the tools; None where that is not known."""
    tools: Toolbox | None = None
    """Those whose arguments can be checked here, and sealed."""

    @classmethod
    def of(cls, policies: Mapping[str, Policy] | None, tools: Toolbox | None) -> Self:
        """Know as much as there is: tools say their policies, too."""
        known = tools.policies if policies is None and tools is not None else policies
        return cls(policies=known, tools=tools)

    async def apply(self, delivery: Delivery, kernel: Kernel) -> Delivery:
        """Return a delivery as the tools of its calls declare it: gated, checked and sealed.

        Raises `InvalidValue` for calls of which is not known what their tools declare,
        `BadArguments` for edited arguments that the tool of the call does not take.
        """
        try:
            return await self._applied(delivery, kernel)
        except SealBroken as error:
            raise InvalidValue(
                place="sealed", cause=str(error), fix="mend the cipher, and deliver it again"
            ) from error

    async def gated(self, call: Call) -> Call:
        """Return a call with the approval that its tool declares, whatever else that does."""
        policy = None if self.policies is None else self.policies.get(call.tool_name)
        return await self._gated(call, policy, call.arguments, _now() + ANSWER)

    async def _applied(self, delivery: Delivery, kernel: Kernel) -> Delivery:
        if isinstance(delivery, OpenTurn):
            until = _now() + ANSWER
            applied = [
                await self._call(call, delivery.turn_id, kernel, until) for call in delivery.calls
            ]
            same = all(map(is_, applied, delivery.calls))
            return delivery if same else changed(delivery, calls=tuple(applied))
        if isinstance(delivery, AddCall):
            call = await self._call(delivery.call, delivery.turn_id, kernel, _now() + ANSWER)
            return delivery if call is delivery.call else changed(delivery, call=call)
        if isinstance(delivery, Decide) and delivery.arguments is not None:
            return await self._edited(delivery, delivery.arguments, kernel)
        if isinstance(delivery, Report | Resolve):
            return self._outcome(delivery, kernel)
        return delivery

    async def _call(self, call: Call, turn_id: str, kernel: Kernel, until: float) -> Call:
        """Return the call as its tool declares it; the predicate sees its arguments as they are."""
        policy = None if self.policies is None else self.policies.get(call.tool_name)
        if policy is None or policy.keep_arguments is Keep.CLEAR:
            return await self._gated(call, policy, call.arguments, until)
        if self.tools is None:
            raise _without_cipher(call.tool_name)
        place = Place(kernel.run.run_id, turn_id, call.invocation_id)
        clear = self.tools.seals.given_arguments(call.arguments, place)
        gated = await self._gated(call, policy, clear, until)
        known = call_of(kernel, turn_id=turn_id, invocation_id=call.invocation_id)
        kept = self.tools.seals.arguments(
            call.tool_name,
            call.arguments,
            place,
            known=None if known is None else known.arguments,
        )
        return gated if kept is call.arguments else changed(gated, arguments=kept)

    async def _gated(
        self, call: Call, policy: Policy | None, clear: Mapping[str, Json], until: float
    ) -> Call:
        """Return the call with the approval that its tool declares, and for how long it waits.

        A call that is gated already stays as it is: a host may ask for more than the tool does.
        """
        if call.requires_approval:
            return call
        if self.policies is None:
            raise InvalidValue(
                place=f"call {call.invocation_id}",
                cause="what its tool declares about approval is not known here",
                fix="give the tools' policies, or deliver it while a process owns the run",
            )
        if policy is None:
            return call
        need = await _need(policy, call.tool_name, clear, until)
        if need.why is not None:
            secret = policy.keep_arguments is not Keep.CLEAR
            why = "of its predicate" if secret else need.why
            _log.warning("%r: a person is asked, because %s", call.tool_name, why)
        if not need.needed:
            return call
        return changed(call, requires_approval=True, approval_timeout=policy.approval_timeout)

    async def _edited(
        self, decision: Decide, arguments: Mapping[str, Json], kernel: Kernel
    ) -> Decide:
        """Refuse edited arguments that cannot run, while the call still waits for a decision.

        Those of an observed call cannot: another runtime runs what it asked for (S-42a).
        What preprocessors make of them is not known before they run.
        """
        call = call_of(kernel, turn_id=decision.turn_id, invocation_id=decision.invocation_id)
        if call is None:
            return decision
        if call.observed:
            raise BadArguments(
                place="arguments",
                cause="are another runtime's, which runs what it asked for",
                fix="approve the call as it is, or deny it and say what to do instead",
            )
        if self.tools is None:
            if is_sealed(call.arguments):
                raise _without_cipher(call.tool_name)
            return decision
        seals, place = self.tools.seals, _place_of(call)
        tool = self.tools.get(call.tool_name)
        if tool is not None and not tool.preprocessors:
            wrong = await _misfit(tool, seals.given_arguments(arguments, place))
            if wrong is not None and is_secretive(tool.policy):
                quotes = wrong.cause not in {MISSING, NOT_TAKEN}
                cause = "does not fit" if quotes else wrong.cause
                wrong = BadArguments(place=wrong.place, cause=cause, fix=wrong.fix)
            if wrong is not None:
                raise wrong
        kept = seals.arguments(call.tool_name, arguments, place, known=call.arguments)
        return decision if kept is arguments else changed(decision, arguments=kept)

    def _outcome(self, told: Report | Resolve, kernel: Kernel) -> Delivery:
        """Return what became of an execution as it is kept."""
        call = call_of(kernel, turn_id=told.turn_id or "", invocation_id=told.invocation_id)
        policy = None if call is None else (self.policies or {}).get(call.tool_name)
        told_all = told.result is ABSENT and told.error is None
        if call is None or told_all:
            return told
        secret = is_sealed(call.arguments) if policy is None else is_secretive(policy)
        if not secret:
            return told
        if self.tools is None:
            raise _without_cipher(call.tool_name)
        seals, place, outcome = self.tools.seals, _place_of(call), call.outcome
        result, error = told.result, told.error
        if not isinstance(result, Absent):
            known = None if outcome is None else outcome.result
            result = seals.result(call.tool_name, result, place, known=known)
        if error is not None:
            known = None if outcome is None else outcome.error
            error = seals.error(call.tool_name, error, place, known=known)
        same = result is told.result and error is told.error
        return told if same else changed(told, result=result, error=error)


def _place_of(call: CallView) -> Place:
    return Place(call.run_id, call.turn_id, call.invocation_id)


def _without_cipher(tool: str) -> InvalidValue:
    return InvalidValue(
        place=f"tool {tool}",
        cause="keeps secret what this delivery brings, and the key is not here",
        fix="deliver it in a process that has the tools and their cipher (tools=Toolbox…)",
    )


async def _misfit(tool: Tool, arguments: Mapping[str, Json]) -> BadArguments | None:
    if tool.is_plain:
        return misfit(tool, arguments)
    ending = await _asked(tool.name, misfit, (tool, arguments), until=_now() + ANSWER)
    if isinstance(ending, Returned):
        wrong: BadArguments | None = ending.value
        return wrong
    return _unchecked(ending)


async def _need(
    policy: Policy, tool: str, arguments: Mapping[str, Json], until: float
) -> ApprovalNeed:
    if isinstance(policy.approval, bool):
        return policy.needs_approval(arguments)
    ending = await _asked(tool, policy.needs_approval, (arguments,), until=until)
    if isinstance(ending, Returned):
        need: ApprovalNeed = ending.value
        return need
    why = ending.told if isinstance(ending, Raised) else f"did not answer within {ANSWER:g} s"
    return ApprovalNeed(needed=True, why=f"the approval predicate {why}")


def _unchecked(ending: Ending | None) -> BadArguments:
    told = ending.told if isinstance(ending, Raised) else f"did not end within {ANSWER:g} s"
    return BadArguments(
        place="arguments", cause=f"the check of their types {told}", fix="mend the tool's types"
    )


async def _asked(
    tool: str, question: Callable[..., object], about: tuple[object, ...], *, until: float
) -> Ending | None:
    """Ask in a thread; None where there was no answer in time."""
    if until <= _now():
        return None
    with ASKING.lease(tool) as thread:
        calling = begin(question, about, {}, threads=thread)
        asked = asyncio.ensure_future(calling.ended())
        await asyncio.wait({asked}, timeout=until - _now())
        if not asked.done():
            calling.stop()
            asked.cancel()
            return None
        return _of(asked.result())


def _of(ending: object) -> Ending:
    if isinstance(ending, Returned | Raised):
        return ending
    raise AssertionError(ending)  # what runs in a thread was admitted, and has been read


def _now() -> float:
    return asyncio.get_running_loop().time()
