"""What follows from kept facts: effects performed, timers set, subscribers and telemetry informed.

The `Dispatcher` listens to all actors of a runtime; each step comes after the append (K-2). A
continuation is handed to the host until its callback returns, under the same id each time (K-52).
The `Mailbox` takes the deliveries that other processes have posted, has them judged, and writes the
answers into the journal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

import attrs

from ..engine.kernel import Kernel
from ..models.calls import CallResult
from ..models.deliveries import Acknowledge, Claim, Delivery, Tick
from ..models.diagnostics import diagnose
from ..models.effects import Cancel, Continue, Effect, Execute
from ..models.errors import InvalidValue, TurnlockError
from ..models.fact import Fact
from ..models.facts import ExecutionInDoubt
from ..models.lifecycle_facts import LifecycleFact, ToolApprovalRequested
from ..models.verdicts import Refused
from ..views.live import calls_of, count_in_doubt, wake_time
from .actor import Actor, Listener
from .actors import Actors
from .errors import LASTING, Closed, JournalError, JournalReplaced, Overloaded, RunFenced
from .executions import Executions, RuntimeContext
from .in_doubt import InDoubtResolver
from .journal.contract import Journal, Post
from .log import logger
from .scheduling import Tasks, Timers, backoff, retried
from .settings import Settings
from .streams import Streams
from .submitting import receipt_of, receipt_of_unfit
from .telemetry import Observed
from .writer import Judged

_log = logger(__name__)


class Performer(Protocol):
    """Performs the runs of another kind than ours (server.md 18); it may neither raise nor wait."""

    def perform(self, run_id: str, effect: Execute | Cancel) -> None:
        """Begin what is owed; it may be told of one effect again (K-3)."""
        ...

    def learn(self, run_id: str, facts: Sequence[Fact]) -> None:
        """Learn of facts that are kept, in their order."""
        ...

    def lose(self, run_id: str) -> None:
        """Learn that the run is owned here no more: nothing of it may go on (S-49)."""
        ...


class Dispatcher(Listener):
    """Performs the effects of all runs, sets their timers, and informs who subscribed to them."""

    def __init__(
        self,
        *,
        runtime: RuntimeContext,
        streams: Streams,
    ) -> None:
        """Begin with nothing to do."""
        self.executions: Final = Executions(runtime)
        self.doubts: Final = InDoubtResolver(runtime, self.executions)
        self.executions.when_lost(self.doubts.settle)
        self.timers: Final = Timers(clock=runtime.clock, fired=self._timer_fired)
        self.approval_ages: Final = ApprovalAges()
        self._runtime = runtime
        self._streams = streams
        self._continuing: set[str] = set()
        self._waking: set[str] = set()
        self._performing = True
        self._heeds: dict[object, Callable[[str], None]] = {}

    def when_kept(self, heed: Callable[[str], None]) -> Callable[[], None]:
        """Call this with a run's id after anything of it was kept here; return what ends that."""
        key = object()
        self._heeds[key] = heed
        return lambda: self._heeds.pop(key, None) and None

    def noted(self, actor: Actor) -> None:
        """Tell whoever heeds it that something was kept."""
        self._stir(actor.run.run_id)

    def _stir(self, run_id: str) -> None:
        for heed in tuple(self._heeds.values()):
            try:
                heed(run_id)
            except Exception:  # noqa: BLE001 - the host's own code
                _log.exception("who was told that run %r has grown failed", run_id)

    def claims(self, actor: Actor, judged: Sequence[Judged]) -> Sequence[Claim]:
        """Return the claims of what can start as soon as it is kept that it was asked for."""
        if not self._performing or self._runtime.performer is not None:
            return ()
        effects = [effect for one in judged for effect in one.verdict.effects]
        return self.executions.claims(actor, [it for it in effects if isinstance(it, Execute)])

    def kept(self, actor: Actor, judged: Sequence[Judged]) -> None:
        """Publish the facts and refusals of a batch, and perform the effects of its verdicts."""
        run_id = actor.run.run_id
        facts = [fact for one in judged for fact in one.verdict.facts]
        self._runtime.telemetry.kept(facts)
        self._streams.publish(run_id, facts)
        performer = self._runtime.performer
        if facts:
            self.noted(actor)
            if performer is not None and actor.stopped is None:
                performer.learn(run_id, facts)
        self.executions.reserved.kept(actor, judged)  # first: what it drops is performed anew
        for one in judged:
            self._diagnose(actor, one)
            self.perform(actor, one.verdict.effects)
        if actor.stopped is not None:
            return  # the run was released while this was written
        for fact in facts:
            self.approval_ages.take(fact)
            if isinstance(fact, ExecutionInDoubt):
                self.doubts.settle(actor, fact.turn_id, fact.invocation_id)
        self._rearm(actor)

    def folded(self, actor: Actor) -> None:
        """Perform all that is owed: what an earlier kernel brought may be lost (K-3)."""
        self._runtime.telemetry.folded(actor.kernel)
        self._streams.look_again(actor.run.run_id)
        self.noted(actor)
        if self._runtime.performer is not None and actor.writer.missed:
            self._runtime.performer.learn(actor.run.run_id, actor.writer.missed)
        self.executions.reserved.folded(actor)
        self.perform(actor, actor.kernel.pending_effects)
        self.doubts.settle_all(actor)
        self.approval_ages.recovered(actor.kernel, now=self._runtime.clock.now())
        self._rearm(actor)

    def fenced(self, actor: Actor) -> None:
        """Perform nothing more for this run: its next owner does."""
        if self._runtime.actors.failure is None:
            _log.warning("%s", actor.stopped)
        run_id = actor.run.run_id
        self.executions.abandon(run_id)
        if self._runtime.actors.remove(actor):
            self.forget(run_id)
            if self._runtime.performer is not None:
                self._runtime.performer.lose(run_id)
            if isinstance(actor.stopped, (RunFenced, *LASTING)):
                self._streams.fail(run_id, actor.stopped)
        if isinstance(actor.stopped, JournalReplaced):
            self._runtime.actors.fail(actor.stopped)

    def over(self, actor: Actor) -> None:
        """Start nothing of what was being claimed, if anything is left."""
        self.executions.reserved.over(actor)

    def forget(self, run_id: str) -> None:
        """Drop timer and gauges of a run that is not performed here any more, and tell of it."""
        self.timers.set(run_id, None)
        self.approval_ages.forget(run_id)
        if self._runtime.restoring is not None:
            self._runtime.restoring.forget(run_id)
        self._stir(run_id)

    def observed(self) -> Observed:
        """Read the gauges; may be called from any thread."""
        kernels = [actor.kernel for actor in self._runtime.actors.all()]
        return Observed(
            turns_open=sum(kernel.turn is not None for kernel in kernels),
            oldest_pending_approval=self.approval_ages.longest(self._runtime.clock.now()),
            in_doubt=sum(map(count_in_doubt, kernels)),
        )

    def perform(self, actor: Actor, effects: Iterable[Effect]) -> None:
        """Begin each effect, unless it is under way: effects may be given again (K-3)."""
        if not self._performing or actor.stopped is not None:
            return
        performer = self._runtime.performer
        for effect in effects:
            if performer is not None and isinstance(effect, Execute | Cancel):
                performer.perform(actor.run.run_id, effect)
            elif isinstance(effect, Cancel):
                self.executions.cancel(effect)
            elif actor.leaving:
                continue  # it stays owed
            elif isinstance(effect, Execute):
                self.executions.perform(actor, effect)
            elif isinstance(effect, Continue) and effect.effect_id not in self._continuing:
                self._continuing.add(effect.effect_id)
                work = self._continue(actor, effect)
                self._runtime.tasks.spawn(f"continue {effect.effect_id}", work)

    def stop_performing(self) -> None:
        """Begin nothing more: what is owed stays owed."""
        self._performing = False
        self.executions.stop_starting()

    async def _continue(self, actor: Actor, effect: Continue) -> None:
        try:
            await hand_over(actor, effect, runtime=self._runtime)
        finally:
            self._continuing.discard(effect.effect_id)

    def _diagnose(self, actor: Actor, one: Judged) -> None:
        run_id = actor.run.run_id
        if isinstance(one.verdict, Refused):
            self._runtime.telemetry.refused(one.verdict.reason, one.delivery.type)
        if self._streams.listened(run_id):
            told = diagnose(one.delivery, one.verdict, run_id=run_id, at=one.at)
            if told is not None:
                self._streams.diagnose(run_id, told)

    def _rearm(self, actor: Actor) -> None:
        self.timers.set(actor.run.run_id, wake_time(actor.kernel))

    def _timer_fired(self, run_id: str) -> None:
        actor = self._runtime.actors.get(run_id)
        if actor is not None and actor.stopped is None and run_id not in self._waking:
            self._waking.add(run_id)
            self._runtime.tasks.spawn(f"wake {run_id}", self._wake(actor))

    async def _wake(self, actor: Actor) -> None:
        """Deliver a tick, one at a time for each run, however often the journal fails meanwhile."""
        run_id = actor.run.run_id
        try:
            await actor.deliver_surely(Tick())
        finally:
            self._waking.discard(run_id)
            current = self._runtime.actors.get(run_id)
            if current is not None:
                self._rearm(current)  # a timer that fired meanwhile was passed over


@attrs.frozen(kw_only=True)
class Continuation:
    """The results of one turn for the model, in expected order (K-52); what is sealed is opened.

    `effect_id` is the same however often it is handed over: deduplicate by it.
    """

    run_id: str
    turn_id: str
    effect_id: str
    results: tuple[CallResult, ...]


OnContinue: TypeAlias = Callable[[Continuation], Awaitable[None]]
"""Takes a continuation. Once it returns, the continuation is acknowledged; if it raises, it is
called again after a pause."""


async def hand_over(actor: Actor, effect: Continue, *, runtime: RuntimeContext) -> None:
    """Call the run's host until it returns, then acknowledge; never for a run that another has.

    Before each call it is made sure that the run is owned. Raises what stopped it otherwise: then
    its next owner hands it over, as where the host raises while the run is let go (D-49).
    """
    actors = runtime.actors
    run_id = actor.run.run_id

    def failed(error: Exception, pause: float) -> None:
        _log.error(
            "the host did not take %s; it is called again in %.3g s",
            effect.effect_id,
            pause,
            exc_info=error,
        )

    async def tell() -> None:
        current = actors.current(actor)
        await runtime.tenure.make_sure(current)
        told = Continuation(
            run_id=run_id,
            turn_id=effect.turn_id,
            effect_id=effect.effect_id,
            results=current.tools.seals.results(effect.results, run_id, effect.turn_id),
        )
        try:
            await current.on_continue(told)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise  # it is we who are cancelled
            raise RuntimeError(
                "the host's callback was cancelled by something of its own"
            ) from error

    def stopped() -> TurnlockError | None:
        current = actors.current(actor)
        if current.stopped is None and current.leaving:
            return Closed(f"{effect.effect_id} is left to the next owner of run {run_id!r}")
        return current.stopped

    try:
        await retried(
            tell,
            pauses=backoff(runtime.settings),
            on=(Exception,),
            is_hopeless=lambda: stopped() is not None,
            failed=failed,
        )
    except Exception as error:
        raise (stopped() or error) from error
    acknowledgement = Acknowledge(run_id=run_id, turn_id=effect.turn_id)
    await actors.deliver_surely(actor, acknowledgement)


TakesPosts: TypeAlias = Callable[[str, Delivery], Awaitable[Mapping[str, Any] | None]]
"""Takes a post for a run, and answers it; None leaves it to the run."""


class Mailbox:
    """Has the posts for the runs of this process judged, and answers them.

    One that was judged and not answered, because of a crash in between, is judged again and then
    refused as a duplicate: nothing happens twice.
    """

    def __init__(
        self,
        *,
        journal: Journal,
        settings: Settings,
        tasks: Tasks,
        actors: Actors,
    ) -> None:
        """Begin with no post under way."""
        self._journal = journal
        self._settings = settings
        self._tasks = tasks
        self._actors = actors
        self._under_way: set[int] = set()
        self.takes: TakesPosts | None = None
        """Is asked about each post before the run is: what it returns is the answer, and the run
        never hears of it. Where it raises `JournalError` or `Overloaded` it is asked again."""

    async def watch(self) -> None:
        """Look for posts whenever the journal has heard of something, and again and again (D-48).

        Until cancelled.
        """
        pauses = backoff(self._settings)
        while True:
            try:
                self._take(await self._journal.posts(tuple(self._actors)))
                pauses = backoff(self._settings)
                await self._journal.heard(self._settings.poll)
            except JournalReplaced as error:
                self._actors.fail(error)
                return
            except TurnlockError as error:
                pause = max(self._settings.poll, next(pauses))
                _log.warning("posts cannot be read; in %.3g s again: %s", pause, error)
                await asyncio.sleep(pause)

    def _take(self, posts: Iterable[Post]) -> None:
        for post in posts:
            actor = self._actors.get(post.run_id)
            if actor is not None and post.number not in self._under_way:
                self._under_way.add(post.number)
                self._tasks.spawn(f"post {post.number}", self._serve(actor, post))

    async def _serve(self, actor: Actor, post: Post) -> None:
        try:
            await self._answer(post, await self._judged(actor, post))
        except (JournalError, Overloaded):
            return  # the post is unanswered, so the next poll finds it again
        finally:
            self._under_way.discard(post.number)

    async def _judged(self, actor: Actor, post: Post) -> Mapping[str, Any]:
        if self.takes is not None:
            taken = await self.takes(post.run_id, post.delivery)
            if taken is not None:
                return taken
        try:
            return receipt_of(await actor.deliver(post.delivery))
        except InvalidValue as error:
            return receipt_of_unfit(error)

    async def _answer(self, post: Post, receipt: Mapping[str, Any]) -> None:
        """Write the answer until it is kept: a second judgement would be a refusal."""
        await retried(
            lambda: self._journal.answer(post.run_id, post.number, receipt),
            pauses=backoff(self._settings),
        )


class ApprovalAges:
    """Since when calls wait for approval, by run: a fold of facts, for a gauge."""

    def __init__(self) -> None:
        """Begin with none."""
        self._since: dict[str, dict[tuple[str, str], float]] = {}

    def take(self, fact: Fact) -> None:
        """Fold one fact: a request begins the wait, any other fact about the call ends it."""
        if not isinstance(fact, LifecycleFact):
            return
        key = fact.turn_id, fact.invocation_id
        if isinstance(fact, ToolApprovalRequested):
            self._since.setdefault(fact.run_id, {})[key] = fact.at
            return
        since = self._since.get(fact.run_id)
        if since is not None and since.pop(key, None) is not None and not since:
            del self._since[fact.run_id]

    def recovered(self, kernel: Kernel, *, now: float) -> None:
        """Take what waits in a run folded anew; what was not known waits since `now`."""
        known = self._since.pop(kernel.run.run_id, {})
        asked = [(call.turn_id, call.invocation_id) for call in calls_of(kernel, gated=True)]
        if asked:
            self._since[kernel.run.run_id] = {key: known.get(key, now) for key in asked}

    def forget(self, run_id: str) -> None:
        """Forget a run that is not performed here any more."""
        self._since.pop(run_id, None)

    def longest(self, now: float) -> float | None:
        """Return for how many seconds the longest waiting call has waited; None: none waits."""
        times = (tuple(since.values()) for since in tuple(self._since.values()))
        since = min((at for run in times for at in run), default=None)
        return None if since is None else max(0.0, now - since)
