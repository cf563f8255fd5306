"""Executions: from an execute effect to the report, with the claim between (K-33).

A tool starts only after its claim was accepted and kept. What it comes to is reported until the
journal has it. Where that cannot be known – a thread that did not stop in time – it is lost, in the
kernel's sense, and reported when it ends after all (K-35).
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import attrs

from ..models.deliveries import Claim, Log
from ..models.effects import Cancel, Execute
from ..models.reasons import Reason
from ..models.sealed import shown_text
from ..models.verdicts import Accepted, Verdict
from .actor import Actor
from .actors import Actors
from .claiming import (
    Attempt,
    Reservations,
    Reserved,
    claim_of,
    is_over,
    is_owed,
    let_in,
    place_of,
    renewal_of,
)
from .correlating import Correlate
from .log import logger
from .owners import Worker
from .reporting import Key, Lost, Reporting, key_of
from .restoring import Restoring
from .scheduling import Beat, Clock, Tasks, backoff, retried
from .settings import Settings
from .slots import Limiter, Line, Slot
from .telemetry import Telemetry
from .tenure import Tenure
from .tools.calling import ToolContext
from .tools.errors import Rejected
from .tools.performing import checked, perform, prepare
from .tools.results import STOOD_STILL, Failed, Outcome, Succeeded, Unknown
from .tools.sealing import SealBroken
from .tools.threads import Lease, NoThread, Threads
from .tools.tool import Tool
from .tools.toolbox import ToolsOf

if TYPE_CHECKING:
    from .dispatcher import OnContinue, Performer

_log = logger(__name__)

RENEWALS: Final = 3
"""Times that a lease is renewed before it would be over."""

INTERRUPTED: Final = "the turn was interrupted"
"""Why a tool is asked to stop whose turn is stopped (K-53)."""


@attrs.frozen(kw_only=True)
class RuntimeContext:
    """What the parts of one runtime share."""

    slots: Limiter
    tasks: Tasks
    threads: Threads
    """For tools that cannot do without one."""
    reading: Threads
    """For what async tools return and raise, where reading that runs code of theirs."""
    clock: Clock
    settings: Settings
    telemetry: Telemetry
    owner: str
    """Who owns the runs: this process."""
    worker: Worker
    """Who claims their calls."""
    actors: Actors
    tenure: Tenure
    tools_of: ToolsOf
    """The tools of the runs that are opened without their own."""
    on_continue: OnContinue | None
    """Who takes their continuations."""
    kind: str
    """That of its runs: it performs no others (K-61)."""
    performer: Performer | None
    """Who performs them in its place; None for runs of our own kind."""
    correlate: Correlate | None = None
    """Says what their facts are about in another runtime (S-63)."""
    restoring: Restoring | None = None
    """Keeps anew what the journal may lose (D-62); None: it loses nothing while it is open."""


class Executions:
    """All attempts that this process has under way, or waiting for a slot."""

    def __init__(self, runtime: RuntimeContext) -> None:
        """Begin with none."""
        self._runtime = runtime
        self._under_way: dict[Key, Attempt] = {}
        self.reserved: Final = Reservations(
            worker=runtime.worker.name, clock=runtime.clock, dropped=self._forget
        )
        self._starting = True
        self._reporting = Reporting(runtime.actors)

    def when_lost(self, told: Lost) -> None:
        """Call this for an attempt that was in doubt while it ran here, and is lost indeed."""
        self._reporting.lost = told

    def runs(self, key: Key) -> bool:
        """Whether the tool of this attempt runs here, and will be reported."""
        attempt = self._under_way.get(key)
        return attempt is not None and attempt.runs

    def why_unknown(self, key: Key) -> str | None:
        """Why nobody knows what this attempt came to, if it ended so just now, and here."""
        attempt = self._under_way.get(key)
        return None if attempt is None else attempt.why_unknown

    def perform(self, actor: Actor, effect: Execute) -> None:
        """Begin an attempt, unless it is under way: an effect may be asked for again.

        What was under way when the run was let go, and is opened here again, claims nothing more.
        """
        if self._starting and not self._is_under_way(actor, effect):
            attempt = Attempt.of(actor, effect, start=self._start)
            self._under_way[attempt.key] = attempt
            if attempt.declared is None:
                self._spawn(attempt, self._refuse(attempt))
            else:
                self._runtime.slots.ask(attempt)

    def claims(self, actor: Actor, effects: Iterable[Execute]) -> Sequence[Claim]:
        """Return the claims of what can start as soon as it is kept that it was asked for.

        All that these take to start is reserved: see `claiming`. What must be prepared by code of a
        tool's author, has no slot or thread now, or stands in a line behind such, claims by itself
        once it is performed, as does all of it where it is not certain who owns the run.
        """
        runtime, claims, passed = self._runtime, list[Claim](), set[Line]()
        if not (self._may_start(actor) and runtime.worker.is_known and runtime.tenure.holds(actor)):
            return ()
        for effect in effects:
            if not runtime.slots.has_room(actor.run.run_id):
                break
            if not is_owed(actor, effect) or self._is_under_way(actor, effect):
                continue  # it is over before it began, say
            attempt = Attempt.of(actor, effect, start=let_in)
            claim = None if attempt.line in passed else self._reserved(attempt)
            if claim is None:
                passed.add(attempt.line)
            else:
                claims.append(claim)
        return claims

    def _reserved(self, attempt: Attempt) -> Claim | None:
        """Reserve all that an attempt takes to start, and return its claim; None: not all is there.

        Nothing of the author's runs here: it would keep the opening from the disk.
        """
        actor, effect, tool = attempt.actor, attempt.effect, attempt.declared
        slots, worker = self._runtime.slots, self._runtime.worker.name
        if tool is None or tool.preprocessors or not tool.is_plain:
            return None
        try:
            given = actor.tools.seals.clear_arguments(effect.arguments, place_of(actor, effect))
        except SealBroken:
            return None
        arguments = checked(tool, given)
        if isinstance(arguments, Rejected) or not slots.take(attempt):
            return None
        thread = self._lease(tool)
        try:
            if tool.needs_thread:
                thread.take()
        except NoThread:
            slots.give_back(attempt)
            return None
        attempt.context = self._context(actor, effect, tool)
        attempt.claimed = True
        claim = claim_of(actor, effect, tool, worker=worker)
        ours = asyncio.get_running_loop().create_future()
        self.reserved.add(
            attempt, Reserved(claim=claim, thread=thread, arguments=arguments, ours=ours)
        )
        self._under_way[attempt.key] = attempt
        self._start(attempt)
        return claim

    def _is_under_way(self, actor: Actor, effect: Execute) -> bool:
        known = self._under_way.get(key_of(effect))
        return known is not None and known.actor is actor

    def _forget(self, attempt: Attempt) -> None:
        """Know no more of an attempt, unless it is another's by then."""
        if self._under_way.get(attempt.key) is attempt:
            del self._under_way[attempt.key]

    def cancel(self, effect: Cancel) -> None:
        """Ask a running tool to stop (K-53); it may still report truthfully."""
        attempt = self._under_way.get(key_of(effect))
        if attempt is not None and attempt.context is not None:
            attempt.context.cancel(INTERRUPTED)

    def abandon(self, run_id: str) -> None:
        """Ask what runs for this run to stop: it is not performed here any more."""
        for attempt in self._under_way.values():
            if attempt.actor.run.run_id == run_id and attempt.context is not None:
                attempt.context.cancel("the run is not performed by this process any more")

    def to_be_told(self, actor: Actor) -> dict[asyncio.Task[None], str]:
        """Return the claimed attempts whose outcome is not kept yet: their tasks, and what runs."""
        return {
            attempt.task: f"{attempt.effect.invocation_id} ({attempt.tool})"
            for attempt in self._under_way.values()
            if attempt.actor is actor and attempt.claimed and attempt.task is not None
        }

    def stop_starting(self) -> None:
        """Start nothing more: what is owed stays owed, for whoever owns the run next."""
        self._starting = False
        self._runtime.slots.close()

    def _may_start(self, actor: Actor) -> bool:
        return self._starting and not actor.leaving

    def _start(self, slot: Slot) -> None:
        attempt = cast("Attempt", slot)
        self._spawn(attempt, self._execute(attempt))

    def _spawn(self, attempt: Attempt, work: Coroutine[Any, Any, None]) -> None:
        attempt.task = self._runtime.tasks.spawn(f"execute {attempt.effect.effect_id}", work)

    def _context(self, actor: Actor, effect: Execute, tool: Tool) -> ToolContext:
        runtime, run_id, timeout = self._runtime, actor.run.run_id, tool.policy.timeout

        def log(text: str) -> None:
            said = Log(
                run_id=run_id,
                turn_id=effect.turn_id,
                invocation_id=effect.invocation_id,
                text=text,
            )
            work = self._reporting.quietly(actor, said)
            runtime.tasks.spawn(f"log of {effect.effect_id}", work)

        return ToolContext(
            idempotency_key=effect.idempotency_key,
            run_id=run_id,
            turn_id=effect.turn_id,
            invocation_id=effect.invocation_id,
            attempt=effect.attempt,
            tool_name=effect.tool_name,
            fencing_token=actor.fence,
            deadline=None if timeout is None else runtime.clock.now() + timeout,
            worker=runtime.worker.name,
            on_log=log,
            loop=asyncio.get_running_loop(),
        )

    async def _refuse(self, attempt: Attempt) -> None:
        with self._ended(attempt):
            why = f"there is no tool {attempt.tool!r}"
            await self._reporting.reject(attempt.actor, attempt.effect, why)

    async def _execute(self, attempt: Attempt) -> None:
        with self._ended(attempt):
            outcome = await self._attempted(attempt, attempt.effect)
            if outcome is not None:
                await self._reporting.report(attempt.actor, attempt.effect, outcome)

    @contextmanager
    def _ended(self, attempt: Attempt) -> Generator[None]:
        """Know no more of the attempt in the end, unless it is another's by then."""
        try:
            yield
        finally:
            attempt.actor.writer.running.is_told(attempt.effect.effect_id)
            self._forget(attempt)

    async def _attempted(self, attempt: Attempt, effect: Execute) -> Outcome | None:
        """Return what the attempt came to; None where it was not to be started."""
        actor, tool, reserved = attempt.actor, attempt.declared, attempt.reserved
        if tool is None:
            raise AssertionError(effect)
        with self._runtime.slots.held(attempt):
            if reserved is not None:
                with reserved.thread as thread:
                    attempt.claimed = await reserved.ours
                    if not attempt.claimed:
                        return None
                    return await self._started(attempt, effect, tool, reserved.arguments, thread)
            context = self._context(actor, effect, tool)
            if not self._may_start(actor) or is_over(actor, effect):
                return None  # it was interrupted while it waited, say
            attempt.context = context
            with self._lease(tool) as thread:
                return await self._with_thread(attempt, effect, tool, thread)

    def _lease(self, tool: Tool) -> Lease:
        """Return the right to a thread. Hung sync tools leave async ones their own threads."""
        runtime = self._runtime
        threads = runtime.threads if tool.needs_thread else runtime.reading
        return threads.lease(tool.name)

    async def _with_thread(
        self, attempt: Attempt, effect: Execute, tool: Tool, thread: Lease
    ) -> Outcome | None:
        """Prepare, claim and perform; a tool that needs a thread has it before it is claimed."""
        actor, context = attempt.actor, attempt.context
        if context is None:
            raise AssertionError(effect)
        seals, place = actor.tools.seals, place_of(actor, effect)
        try:
            given = seals.clear_arguments(effect.arguments, place)
        except SealBroken as error:
            _log.error("%r is not started, and waits: %s", effect.effect_id, error)
            return None
        try:
            if tool.needs_thread:
                thread.take()
            arguments = await self._runtime.tenure.while_held(
                actor,
                lambda admitted: prepare(tool, context, given, threads=thread, admitted=admitted),
            )
        except Rejected as error:
            why = seals.error(tool.name, str(error), place, kind="bad arguments")
            await self._reporting.reject(actor, effect, why)
            return None
        except NoThread as error:
            await self._reporting.reject(actor, effect, str(error))
            return None
        attempt.claimed = self._may_start(actor)
        if not attempt.claimed or not await self._claimed(actor, effect, tool):
            attempt.claimed = False
            return None
        return await self._started(attempt, effect, tool, arguments, thread)

    async def _started(
        self,
        attempt: Attempt,
        effect: Execute,
        tool: Tool,
        arguments: Mapping[str, Any],
        thread: Lease,
    ) -> Outcome:
        """Perform what is claimed; return what it came to, as it is kept."""
        actor, context = attempt.actor, attempt.context
        if context is None:
            raise AssertionError(effect)
        seals, place = actor.tools.seals, place_of(actor, effect)
        with self._runtime.telemetry.execution(actor.run.run_id, effect) as told:
            attempt.runs = True
            try:
                with self._renewed(actor, effect, tool):
                    outcome = await self._performed(attempt, effect, tool, arguments, thread)
            finally:
                attempt.runs = False
            attempt.why_unknown = outcome.why if isinstance(outcome, Unknown) else None
            outcome = seals.outcome(tool.name, outcome, place)
            if isinstance(outcome, Succeeded):
                told.succeeded(outcome.result)
            elif isinstance(outcome, Failed):
                told.failed(outcome.error, kind=outcome.kind)
            else:
                told.unknown(outcome.why)
                why = shown_text(outcome.why)
                context.log(f"the outcome is unknown: {why}")
                _log.warning("the outcome of %s is unknown: %s", effect.effect_id, why)
        return outcome

    async def _claimed(self, actor: Actor, effect: Execute, tool: Tool) -> bool:
        """Claim the attempt; only an accepted claim starts a tool.

        Where the journal failed, it is not known whether the claim was kept. Then it is made again;
        that it is this very worker's already, who has one task for it, says that it was.
        """
        claim = claim_of(actor, effect, tool, worker=self._runtime.worker.name)
        deliveries = 0

        async def deliver() -> Verdict:
            nonlocal deliveries
            await self._runtime.worker.make_known()
            deliveries += 1
            return await actor.deliver(claim)

        verdict = await retried(
            deliver,
            pauses=backoff(self._runtime.settings),
            is_hopeless=lambda: actor.stopped is not None,
        )
        kept_before = deliveries > 1 and verdict.reason is Reason.DUPLICATE
        return isinstance(verdict, Accepted) or kept_before

    async def _performed(
        self,
        attempt: Attempt,
        effect: Execute,
        tool: Tool,
        arguments: Mapping[str, Any],
        thread: Lease,
    ) -> Outcome:
        """Run the tool, unless the run is another's by then.

        The time is compared with the ownership again in the frame that makes the call: the loop may
        be blocked before. What was not begun because of that is begun once the journal has said
        that the run is ours still. A few instructions remain between that look at the clock and the
        first line of the tool: nobody can close that gap.
        """
        actor, context = attempt.actor, attempt.context
        if context is None:
            raise AssertionError(effect)
        holds = partial(self._runtime.tenure.holds, actor)
        while await self._still_owned(actor, effect, tool):
            actor.writer.running.begins(effect.effect_id, renewal_of(actor, effect, tool))
            outcome = await perform(tool, context, arguments, threads=thread, admitted=holds)
            if outcome is not STOOD_STILL:
                return outcome
        return STOOD_STILL

    async def _still_owned(self, actor: Actor, effect: Execute, tool: Tool) -> bool:
        """Ask the journal again before the tool starts, if this process stood still meanwhile.

        A run that was taken over is fenced there, and this raises. False where the tool's own lease
        was over, too: then it is in doubt.
        """
        if self._runtime.tenure.holds(actor):
            return True
        await self._runtime.tenure.make_sure(actor)
        renewal = renewal_of(actor, effect, tool)
        verdict = await actor.deliver_surely(renewal)
        return isinstance(verdict, Accepted)

    @contextmanager
    def _renewed(self, actor: Actor, effect: Execute, tool: Tool) -> Generator[None]:
        """Keep the lease alive meanwhile: as long as this process lives, it is no doubt.

        Most tools end before the first renewal: there is a task for one that is due alone.
        """
        beat = Beat(
            period=tool.policy.lease / RENEWALS,
            name=f"renew {effect.effect_id}",
            work=lambda: self._reporting.quietly(actor, renewal_of(actor, effect, tool)),
            tasks=self._runtime.tasks,
        )
        try:
            yield
        finally:
            beat.stop()
