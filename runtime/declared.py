"""What tools declare, applied to a delivery before it is judged: approval, and fitting arguments.

Code of the tools' authors runs here, predicates and the classes that type hints name: in threads,
and under a bound, because the run waits for it. A predicate that does not answer means that a
person is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from operator import is_
from typing import Final

import attrs

from ..engine.kernel import Kernel
from ..models.calls import Call
from ..models.deliveries import AddCall, Decide, Delivery, OpenTurn
from ..models.errors import InvalidValue
from ..models.record import changed
from ..models.values import Json
from ..views.live import call_of
from .log import logger
from .tools.arguments import misfit
from .tools.calling import Ending, Raised, Returned, begin
from .tools.errors import BadArguments
from .tools.policy import ApprovalNeed, Policy
from .tools.threads import Threads
from .tools.tool import Tool

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
    tools: Mapping[str, Tool] = attrs.field(factory=dict[str, Tool])
    """Those whose arguments can be checked here."""

    async def apply(self, delivery: Delivery, kernel: Kernel) -> Delivery:
        """Return a delivery with its calls as their tools declare them.

        Raises `InvalidValue` for calls of which is not known what their tools declare, and
        `BadArguments` for edited arguments that the tool of the call does not take.
        """
        if isinstance(delivery, OpenTurn):
            until = _now() + ANSWER
            calls = tuple([await self._gated(call, until) for call in delivery.calls])
            same = all(map(is_, calls, delivery.calls))
            return delivery if same else changed(delivery, calls=calls)
        if isinstance(delivery, AddCall):
            call = await self._gated(delivery.call, _now() + ANSWER)
            return delivery if call is delivery.call else changed(delivery, call=call)
        if isinstance(delivery, Decide) and delivery.arguments is not None:
            await self._check(delivery, delivery.arguments, kernel)
        return delivery

    async def _gated(self, call: Call, until: float) -> Call:
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
        policy = self.policies.get(call.tool_name)
        if policy is None:
            return call
        need = await _need(policy, call, until)
        if need.why is not None:
            _log.warning("%r: a person is asked, because %s", call.tool_name, need.why)
        if not need.needed:
            return call
        return changed(call, requires_approval=True, approval_timeout=policy.approval_timeout)

    async def _check(self, decision: Decide, arguments: Mapping[str, Json], kernel: Kernel) -> None:
        """Refuse edited arguments that cannot run, while the call still waits for a decision.

        What preprocessors make of them is not known before they run.
        """
        call = call_of(kernel, turn_id=decision.turn_id, invocation_id=decision.invocation_id)
        tool = None if call is None else self.tools.get(call.tool_name)
        if tool is None or tool.preprocessors:
            return
        if tool.is_plain:
            wrong = misfit(tool, arguments)
        else:
            ending = await _asked(tool.name, misfit, (tool, arguments), until=_now() + ANSWER)
            wrong = ending.value if isinstance(ending, Returned) else _unchecked(ending)
        if wrong is not None:
            raise wrong


async def _need(policy: Policy, call: Call, until: float) -> ApprovalNeed:
    if isinstance(policy.approval, bool):
        return policy.needs_approval(call.arguments)
    ending = await _asked(call.tool_name, policy.needs_approval, (call.arguments,), until=until)
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
