"""The runtime: many runs, performed. What the kernels ask for is done; what happens is kept first.

    async with Runtime(journal=journal, tools=toolbox, on_continue=tell_the_model) as runtime:
        await runtime.open_run(Run(run_id="r"))
        await runtime.open_turn("r", calls, turn_id="t1")

A crash at any instant loses nothing: whoever starts next with the same journal goes on (K-2, K-9).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Final, Self

from ..models.deliveries import Delivery
from ..models.errors import TurnlockError, UnknownRun
from ..models.run import OWN, Run
from ..models.values import NO_ARGUMENTS, Json
from ..models.verdicts import Verdict
from ..views.call_view import CallView, Waits
from ..views.live import calls_of
from ..views.run_view import RunView
from ..views.standing import Standing
from .actor import Actor
from .actors import Actors
from .correlating import Correlate
from .delivering import Delivering
from .dispatcher import Dispatcher, Mailbox, OnContinue, Performer
from .errors import Closed, JournalReplaced
from .executions import RuntimeContext
from .journal.contract import Journal
from .journal.ledger import Domain, Note, Noted
from .leases import clock_of_leases
from .log import defects, logger
from .owners import Worker, new_owner
from .ownership import Ownership
from .restoring import restoring_of
from .scheduling import CANCEL_WITHIN, Clock, SteadyClock, Tasks
from .settings import Settings
from .slots import Limiter
from .streams import DiagnosticSubscription, Streams, Subscription
from .telemetry import FailsafeTelemetry, Telemetry
from .tenure import Tenure
from .tools.sealing import Place
from .tools.threads import Threads
from .tools.toolbox import Toolbox, ToolsOf, tools_of_each
from .watchdog import Watchdog
from .writer import fold_run

_log, _defect = logger(__name__), defects(__name__)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class Runtime(Delivering):
    """Performs the runs that it owns. Enter it in the loop that it is to live in."""

    def __init__(  # noqa: PLR0913 - each has a default that serves
        self,
        *,
        journal: Journal,
        tools: Toolbox | ToolsOf | None = None,
        on_continue: OnContinue | None = None,
        settings: Settings | None = None,
        clock: Clock | None = None,
        telemetry: Telemetry | None = None,
        owner: str | None = None,
        kind: str = OWN,
        performer: Performer | None = None,
        correlate: Correlate | None = None,
    ) -> None:
        """Prepare; nothing is owned before it is entered.

        The journal is the caller's to close, afterwards. `tools` are those of every run, or a
        function of a run's id (W-60); they and `on_continue` count for runs that are opened without
        their own. Without `on_continue` nothing is taken over: nobody could be told. `clock` is
        what kernels count by, and leases, if the journal has no clock of its own; it is read in
        tools' threads, too. `owner` names this process in the journal and must never have been used
        before; leave it out unless you know better. Runs of another `kind` than our own (K-61) are
        performed by a `performer`; here they are owned, judged and kept, and `correlate` says what
        their facts are about there (S-63).
        """
        self.owner: Final = owner or new_owner()
        self.settings: Final = settings or Settings()
        self.journal: Final = journal
        self._actors = Actors()
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks = Tasks(failed=self._failed)
        self._watchers = Tasks(failed=self._failed)
        self._streams = Streams(journal=journal, bound=self.settings.buffer)
        clock = clock or journal.clock or SteadyClock()
        lost = self.settings.lost_threads
        self._threads = Threads(lost=lost, now=clock.now)
        self._reading = Threads(lost=lost, now=clock.now, name="turnlock reader")
        self.tenure: Final = Tenure(
            journal=journal,
            clock=clock_of_leases(journal, clock),
            owner=self.owner,
            actors=self._actors,
            settings=self.settings,
        )
        self._runtime = RuntimeContext(
            slots=Limiter(
                all_runs=self.settings.executions,
                each_run=self.settings.executions_of_run,
                threads=self.settings.threads,
            ),
            tasks=self._tasks,
            threads=self._threads,
            reading=self._reading,
            clock=clock,
            settings=self.settings,
            telemetry=FailsafeTelemetry(telemetry or Telemetry()),
            owner=self.owner,
            worker=Worker(journal=journal, meaning=self.owner),
            actors=self._actors,
            tenure=self.tenure,
            tools_of=tools_of_each(tools),
            on_continue=on_continue,
            kind=kind,
            performer=performer,
            correlate=correlate,
            restoring=restoring_of(journal, self.tenure, self.settings),
        )
        self._dispatcher = Dispatcher(runtime=self._runtime, streams=self._streams)
        self._ownership = Ownership(
            journal=journal, runtime=self._runtime, dispatcher=self._dispatcher
        )
        self.mailbox: Final = Mailbox(
            journal=journal, settings=self.settings, tasks=self._tasks, actors=self._actors
        )

    async def __aenter__(self) -> Self:
        """Take over, unless told not to, what has something under way and no living owner."""
        self._loop = asyncio.get_running_loop()
        self._unobserve = self._runtime.telemetry.observe(self._dispatcher.observed)
        self._watchers.spawn("renew the ownership", self._ownership.renew())
        self._watchers.spawn("watch for posts", self.mailbox.watch())
        self._watchers.spawn("end what waits too long", Watchdog(self._runtime).watch())
        self._watchers.spawn("follow others", self._streams.watch(self._actors, self.settings.poll))
        try:
            if self.settings.takes_over:
                await self._ownership.take_over()
                self._watchers.spawn("take over", self._ownership.watch())
        except BaseException:
            await self._close(drain=0.0)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Let what runs come to its end, for a while, and hand everything over."""
        await self._close(drain=0.0 if kind is not None else self.settings.drain)

    async def take_over(self) -> tuple[str, ...]:
        """Own and recover the runs that have something under way, but for those of living owners.

        It is done on entering, too, unless `Settings.takes_over` is False. Returns the ids of those
        that are owned now and were not.
        """
        self._check_open()
        return await self._ownership.take_over()

    async def open_run(
        self,
        run: Run,
        *,
        tools: Toolbox | ToolsOf | None = None,
        on_continue: OnContinue | None = None,
    ) -> None:
        """Begin a run, or go on with it; one that is owned here already stays as it is.

        `tools` and `on_continue` are those of this run alone, as an agent of many on one runtime
        brings them (W-60); given for a run that is owned here already they raise `RunOpen`. Raises
        `RunDiffers` if it has another configuration, `JournalOwned` if another process performs it,
        `ForeignRun` if another runtime does (K-61), and `CorruptJournal` for what no run can write.
        """
        self._check_open()
        tools_of = None if tools is None else tools_of_each(tools)
        await self._ownership.own(run, tools_of=tools_of, on_continue=on_continue)

    async def close_run(self, run_id: str, *, drain: float | None = None) -> tuple[str, ...]:
        """Let a run go, whatever it owes: whoever opens it next goes on. Raises `UnknownRun`.

        Nothing more is begun for it here. What runs has `drain` seconds to end and to be kept,
        `Settings.drain` unless given; then it is asked to stop, and kept if it does. What goes on
        all the same, a sync tool that heeds nothing, is dropped: those calls are returned and
        logged, and are in doubt for the next owner.
        """
        self._actor(run_id)
        drain = self.settings.drain if drain is None else drain
        return await self._ownership.let_go(run_id, drain=drain)

    async def deliver(self, run_id: str, delivery: Delivery) -> Verdict:
        """Have a delivery judged; what it brought is durable when the verdict is returned.

        What the tools declare about approval is added to the calls that it brings. Raises
        `UnknownRun` for a run that is not open here, and what `Actor.deliver` raises.
        """
        actor = self._actor(run_id)
        self._runtime.telemetry.delivering(run_id, delivery)
        return await actor.deliver(delivery)

    async def note(self, run_id: str, *notes: Note) -> None:
        """Keep notes beside the facts of a run that is open here: all of them, or none.

        They are kept before the facts of whatever is delivered after this was asked for (S-10).
        Raises `InvalidValue` where an id has other content, and what `Actor.deliver` raises; with
        an id it may be asked for again.
        """
        await self._actor(run_id).hear(notes)

    async def hear(
        self, run_id: str, notes: Sequence[Note], deliveries: Sequence[Delivery] = ()
    ) -> tuple[Verdict, ...]:
        """Keep notes, then have deliveries judged, in this order; it is durable on return (S-10).

        Raises as `note` and `deliver` do. Where the journal failed it is not known what was kept:
        facts that were are refused as duplicates, notes without an id would be kept twice.
        """
        actor = self._actor(run_id)
        for delivery in deliveries:
            self._runtime.telemetry.delivering(run_id, delivery)
        return await actor.hear(notes, deliveries)

    async def notes(self, run_id: str, *, domain: Domain | None = None) -> tuple[Noted, ...]:
        """Return the notes of a run, or those of one domain, in the order in which they stand."""
        return await self.journal.notes(run_id, domain=domain)

    def now(self) -> float:
        """Return the Unix time by which facts are stamped here, and notes ought to be."""
        return self._runtime.clock.now()

    def pending(self, run_id: str) -> tuple[CallView, ...]:
        """Return the calls of a run that wait for a person. Raises `UnknownRun`."""
        return tuple(calls_of(self._actor(run_id).kernel, gated=True))

    def doubts(self, run_id: str) -> tuple[CallView, ...]:
        """Return the calls of a run of which nobody knows what became. Raises `UnknownRun`."""
        calls = calls_of(self._actor(run_id).kernel)
        return tuple(call for call in calls if call.waits is Waits.RESOLUTION)

    def tools(self, run_id: str) -> Toolbox:
        """Return the tools of a run that is open here, as they are now. Raises `UnknownRun`."""
        return self._actor(run_id).tools

    @property
    def tools_of(self) -> ToolsOf:
        """Which tools a run has that is opened without its own (W-60)."""
        return self._runtime.tools_of

    def clear_arguments(self, call: CallView) -> Mapping[str, Json]:
        """Return the arguments of a call as its tool takes them, to show them to who decides.

        Views, like facts, have them as they are kept: sealed, where the tool declares it. Raises
        `SealBroken` where they do not open, and `UnknownRun` for a run that is not open here.
        """
        place = Place(call.run_id, call.turn_id, call.invocation_id)
        seals = self._actor(call.run_id).tools.seals
        return seals.clear_arguments(call.arguments or NO_ARGUMENTS, place)

    async def status(self, run_id: str) -> Standing:
        """Return what the agent of a run does, as the journal has it; it need not be open here."""
        return (await self.view(run_id)).standing

    async def view(self, run_id: str) -> RunView:
        """Return where a run stands, as the journal has it; it need not be open here.

        It is made of the journal's snapshot and the facts after it, so what no kernel remembers is
        None in it (`RunView.of_kernel`).
        """
        run = (await self.journal.entry(run_id)).run
        kernel = await fold_run(run, self.journal)
        latest = None
        if kernel.sequence:
            (latest,) = await self.journal.read(run_id, after=kernel.sequence - 1, limit=1)
        return RunView.of_kernel(kernel, latest=latest)

    def subscribe(self, run_id: str, *, after: int = 0) -> Subscription:
        """Return the facts of a run after a sequence, those to come included, as an iterator.

        What others perform is looked for in the journal (`Settings.poll`). Close it when done.
        """
        self._check_open()
        return self._streams.subscribe(run_id, after=after)

    def diagnostics(self, run_id: str) -> DiagnosticSubscription:
        """Return the refusals and logs of a run from now on, as an iterator."""
        self._check_open()
        return self._streams.diagnostics(run_id)

    def when_kept(self, heed: Callable[[str], None]) -> Callable[[], None]:
        """Call this, on the loop, with a run's id after facts or notes of it were kept here.

        It is called, too, when the run is owned here no more. It must neither wait nor raise; it
        may be told of more than was kept. Returns what ends it.
        """
        return self._dispatcher.when_kept(heed)

    @property
    def failure(self) -> JournalReplaced | None:
        """Why nothing is performed here any more; None as long as all is well.

        The journal is gone: its file was removed, replaced or written over. All runs are let go,
        subscribers are told, and every call raises it. Stop the process, and see to the file.
        """
        return self._actors.failure

    async def failed(self) -> JournalReplaced:
        """Wait until nothing is performed here any more, and return why."""
        await self._actors.failed.wait()
        if self._actors.failure is None:
            raise AssertionError(self.owner)
        return self._actors.failure

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs that are owned here."""
        return tuple(self._actors)

    def owns(self, run_id: str) -> bool:
        """Whether a run is owned here."""
        return run_id in self._actors

    def busy(self, run_id: str) -> bool:
        """Whether a run is owned here and has something under way."""
        actor = self._actors.get(run_id)
        return actor is not None and actor.kernel.busy

    def _actor(self, run_id: str) -> Actor:
        self._check_open()
        actor = self._actors.get(run_id)
        if actor is None:
            raise UnknownRun(f"run {run_id!r} is not open here; open it with open_run(Run(…))")
        return actor

    def _check_open(self) -> None:
        if self._closed:
            raise Closed("the runtime is closed; make another one")
        if self._loop is None:
            raise TurnlockError(
                "the runtime was not entered; write async with Runtime(…) as runtime"
            )
        if _running_loop() not in {self._loop, None}:
            raise TurnlockError(
                "the runtime lives in another event loop; call it there, from a thread by"
                " asyncio.run_coroutine_threadsafe(…, its loop)"
            )
        if self.failure is not None:
            raise self.failure

    async def _close(self, *, drain: float) -> None:
        if self._closed:
            return
        self._closed = True
        for actor in self._actors.all():
            actor.leaving = True
        self._dispatcher.stop_performing()
        try:
            await self._tasks.ended(within=drain)
        finally:  # also when whoever waits for it is cancelled
            await self._end()

    async def _end(self) -> None:
        try:
            await self._watchers.cancel(within=CANCEL_WITHIN)
            await self._tasks.cancel(within=CANCEL_WITHIN)
            await self._ownership.close()
        finally:
            self._dispatcher.timers.close()
            self._streams.close()
            self._unobserve()
            self._threads.shutdown()
            self._reading.shutdown()

    def _failed(self, name: str, error: BaseException) -> None:
        """Learn what a task let out: of a run that was stopped, or a mistake of ours."""
        if isinstance(error, TurnlockError):
            _log.info("%s ended: %s", name, error)
        elif not isinstance(error, Exception):
            _log.error("%s ended the process: %s", name, type(error).__name__)
        else:
            _defect(name, error)
