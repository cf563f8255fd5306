"""Doubt: an execution whose outcome nobody knows, settled as its tool declares (K-35).

Nothing is ever executed again in silence: a retry is authorised by a delivery, and so by a fact.
Where the policy is to ask, or cannot tell, it stays in doubt until somebody resolves it.
"""

from __future__ import annotations

import asyncio
from typing import Final, cast

from ..models.deliveries import Lose, Resolution, Resolve
from ..models.values import ABSENT, Json
from ..views.call_view import CallView, Waits
from ..views.live import call_of, calls_of
from .actor import Actor
from .executions import Executions, RuntimeContext
from .journal.contract import Journal
from .owners import meaning_of, was_ours
from .reporting import Key
from .scheduling import pause_after
from .settings import Settings
from .tools.calling import ToolContext
from .tools.performing import PROBING, probe
from .tools.policy import InDoubt, Policy
from .tools.results import Failed, Happened, NeverHappened, ProbeAnswer, StillUnknown
from .tools.tool import Tool

UNKNOWN: Final = "the outcome is unknown: it was started, and nobody knows whether it happened"
"""The error of an execution in doubt whose tool declares that it has then failed."""


PROBED: Final = PROBING + 1.0
"""Seconds after which a probe that was out has surely found nothing out, and a person is asked."""

PROBES: Final = 16
"""Probes that run at once: each may take a thread."""

MEANINGS: Final = 1_000
"""Workers of which is remembered what they stand for."""


def rest_before(policy: Policy, attempt: int, settings: Settings) -> float:
    """Return the seconds that a doubt is left alone before its policy is applied.

    The first is settled at once. A tool that is run again and again, and never can tell what came
    of it, is run less and less often: as with all that fails (`Settings.retry_first`).
    """
    again = policy.doubt_rule in {InDoubt.RETRY_IF_SAFE, InDoubt.PROBE}
    return pause_after(attempt - 1, settings) if again and attempt > 1 else 0.0


def asks_a_person(tool: Tool | None, attempt: int, *, seconds: float, settings: Settings) -> bool:
    """Whether a person is to say what became of a call that has been in doubt for so long.

    So it is where its tool does not say, could not, or is not here.
    """
    if tool is None or tool.policy.doubt_rule is InDoubt.ASK:
        return True
    probing = tool.policy.doubt_rule is InDoubt.PROBE
    return probing and seconds >= PROBED + rest_before(tool.policy, attempt, settings)


class InDoubtResolver:
    """Applies the in-doubt policy of each tool (K-35), to each attempt once at a time."""

    def __init__(self, runtime: RuntimeContext, executions: Executions) -> None:
        """Begin with none; what `executions` runs still is waited for, whatever its lease says."""
        self._runtime = runtime
        self._executions = executions
        self._under_way: set[tuple[Actor, Key]] = set()
        """By the actor, too: what was begun for one that was let go ends with it."""
        self._probing = asyncio.Semaphore(PROBES)
        self._meanings: dict[str, str] = {}
        self._asking = asyncio.Lock()

    def settle_all(self, actor: Actor) -> None:
        """Apply the policy to all calls that are in doubt now: after a recovery."""
        for call in tuple(calls_of(actor.kernel)):
            self._settle(actor, call)

    def settle(self, actor: Actor, turn_id: str, invocation_id: str) -> None:
        """Apply the policy to one call, if it is in doubt still."""
        call = call_of(actor.kernel, turn_id=turn_id, invocation_id=invocation_id)
        if call is not None:
            self._settle(actor, call)

    async def lose_what_died(self, actor: Actor, journal: Journal) -> None:
        """Deliver a `Lose` for each call that a dead runtime had started (K-35).

        Executors of other makes are left to their leases. Raises what stopped the run, and what the
        journal raises, which says what workers stand for.
        """
        meanings: dict[str | None, str | None] = {}
        for call in tuple(calls_of(actor.kernel)):
            if call.waits is not Waits.REPORT or call.worker == self._runtime.worker.name:
                continue
            if call.worker not in meanings:
                meanings[call.worker] = await self._meaning(call.worker, journal)
            if was_ours(meanings[call.worker]):
                lost = Lose(
                    run_id=call.run_id,
                    turn_id=call.turn_id,
                    invocation_id=call.invocation_id,
                    attempt=call.attempt,
                )
                await actor.deliver_surely(lost)

    async def _meaning(self, worker: str | None, journal: Journal) -> str | None:
        """Return what a worker stands for, which never changes: asked once for all its runs."""
        if worker is None:
            return None
        async with self._asking:
            meaning = self._meanings.get(worker) or await meaning_of(worker, journal)
            if meaning is not None:
                if len(self._meanings) >= MEANINGS:
                    self._meanings.clear()
                self._meanings[worker] = meaning
            return meaning

    def _settle(self, actor: Actor, call: CallView, *, rested: bool = False) -> None:
        tool = actor.tools.get(call.tool_name)
        key = f"{call.path}/{call.attempt}"
        if call.waits is not Waits.RESOLUTION or (actor, key) in self._under_way:
            return  # settled, authorised to be retried, or seen to already
        if tool is None or self._executions.runs(key):
            return  # nobody here can say: somebody is asked. Or it runs here, and will say itself
        self._under_way.add((actor, key))
        rest = rest_before(tool.policy, call.attempt, self._runtime.settings)
        if rest and not rested:
            asyncio.get_running_loop().call_later(rest, self._settle_rested, actor, call, key)
            return
        context = ToolContext(
            idempotency_key=f"call/{call.path}",
            run_id=call.run_id,
            turn_id=call.turn_id,
            invocation_id=call.invocation_id,
            attempt=call.attempt,
            tool_name=tool.name,
            fencing_token=actor.fence,
            worker=self._runtime.worker.name,
        )
        work = self._resolve(actor, tool, context, self._executions.why_unknown(key), key)
        self._runtime.tasks.spawn(f"doubt of {context.idempotency_key}", work)

    def _settle_rested(self, actor: Actor, rested: CallView, key: Key) -> None:
        """Apply the policy now, if that attempt is in doubt still and the run is performed here."""
        self._under_way.discard((actor, key))
        call = call_of(actor.kernel, turn_id=rested.turn_id, invocation_id=rested.invocation_id)
        if call is None or call.attempt != rested.attempt:
            return
        if actor.stopped is None and not actor.leaving:
            self._settle(actor, call, rested=True)

    async def _resolve(
        self, actor: Actor, tool: Tool, context: ToolContext, why: str | None, key: Key
    ) -> None:
        try:
            answer = await self._answer(actor, tool, context, why)
            resolution = None if answer is None else resolution_of(context, answer)
            if resolution is not None:
                await actor.deliver_surely(resolution)
        finally:
            self._under_way.discard((actor, key))

    async def _answer(
        self, actor: Actor, tool: Tool, context: ToolContext, why: str | None
    ) -> ProbeAnswer | None:
        """Return what the policy says; None where somebody is to be asked."""
        rule = tool.policy.doubt_rule
        if rule is InDoubt.FAIL:
            return Failed(UNKNOWN if why is None else f"{UNKNOWN}: {why}")
        if rule is InDoubt.RETRY_IF_SAFE:
            return NeverHappened()
        if rule is InDoubt.PROBE:
            async with self._probing:
                with self._runtime.threads.lease(tool.name) as thread:
                    return await self._runtime.tenure.while_held(
                        actor,
                        lambda admitted: probe(tool, context, threads=thread, admitted=admitted),
                    )
        return None


def resolution_of(context: ToolContext, answer: ProbeAnswer) -> Resolve | None:
    """Return the delivery that an answer means; None where it says nothing."""
    if isinstance(answer, StillUnknown):
        return None
    as_ = Resolution.RETRY
    if isinstance(answer, Happened):
        as_ = Resolution.RESULT
    elif isinstance(answer, Failed):
        as_ = Resolution.ERROR
    return Resolve(
        run_id=context.run_id,
        turn_id=context.turn_id,
        invocation_id=context.invocation_id,
        attempt=context.attempt,
        resolution=as_,
        result=cast("Json", answer.result) if isinstance(answer, Happened) else ABSENT,
        error=answer.error if isinstance(answer, Failed) else None,
    )
