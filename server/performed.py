"""A session at work: what waits in line is said in its turn, what is kept is told to it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from ..adapters.contract import (
    CommandRefused,
    Ending,
    Observation,
    RuntimeAdapter,
    Session,
    Settlement,
    Sink,
    UserMessage,
)
from ..adapters.own import OwnSession
from ..agent.transients import Transient
from ..models.deliveries import Delivery
from ..models.effects import Cancel, Execute
from ..models.fact import Fact
from ..models.facts import TurnInterrupting
from ..models.verdicts import Verdict
from ..runtime.dispatcher import Performer
from ..runtime.errors import JournalError
from ..runtime.log import logger
from ..runtime.owners import Worker
from ..runtime.runtime import Runtime
from ..runtime.scheduling import backoff, retried
from ..views.call_view import CallView
from .line import Line, Waiting
from .manifests import Kept

_log = logger(__name__)

Told = Sequence[Fact] | Execute | Cancel
"""What a session of another kind is told of its run, in order."""


class RunSink(Sink):
    """What an adapter says of one run is kept and judged by the runtime that owns it (S-10)."""

    def __init__(
        self,
        run_id: str,
        runtime: Runtime,
        *,
        pass_on: Callable[[str, Transient], None],
        ended: Callable[[str, Ending], None],
        child: Callable[[str, Settlement], Sink],
    ) -> None:
        """Say it of this run; `child` makes what says it of a sub-agent's, by its thread."""
        self._run_id = run_id
        self._runtime = runtime
        self._pass_on = pass_on
        self._ended = ended
        self._child = child

    async def hear(
        self, observations: Sequence[Observation], deliveries: Sequence[Delivery]
    ) -> tuple[Verdict, ...]:
        """Keep the observations, then have the deliveries judged; all is durable then."""
        return tuple(await self._runtime.hear(self._run_id, observations, deliveries))

    def pass_on(self, transient: Transient) -> None:
        """Pass on what is not kept."""
        self._pass_on(self._run_id, transient)

    async def ended(self, ending: Ending) -> None:
        """Learn that the session has ended by itself."""
        self._ended(self._run_id, ending)

    def child(self, thread_id: str, *, settlement: Settlement) -> Sink:
        """Return what is said of a sub-agent's thread (S-56)."""
        return self._child(thread_id, settlement)

    @property
    def run_id(self) -> str:
        """The run that it is said of."""
        return self._run_id

    async def owns(self) -> bool:
        """Whether the run is ours still, for which the journal is asked if need be (S-44)."""
        return await self._runtime.tenure.has(self._run_id)

    def now(self) -> float:
        """Return the Unix time by which observations are stamped."""
        return self._runtime.now()

    async def worker_for(self, process: str) -> str:
        """Return an opaque id for a process; the journal keeps what it stands for (S-50)."""
        worker = Worker(journal=self._runtime.journal, meaning=process)
        await worker.make_known()
        return worker.name


class Performers(Performer):
    """Tells the sessions of another kind than ours what was kept, and what is owed, in order."""

    def __init__(self, *, lost: Callable[[str], None]) -> None:
        """Begin with no run; `lost` is told of one that is owned here no more."""
        self._told: dict[str, asyncio.Queue[Told]] = {}
        self._roots: dict[str, str] = {}
        self._lost = lost

    def told(self, run_id: str) -> asyncio.Queue[Told]:
        """Return what waits to be told of a run; it is told from when it is owned."""
        return self._told.setdefault(self._roots.get(run_id, run_id), asyncio.Queue())

    def adopt(self, run_id: str, root: str) -> None:
        """Tell the session of `root` of a sub-agent's run, too (S-56)."""
        self._roots[run_id] = root

    def forget(self, run_id: str) -> None:
        """Tell nothing more of a run."""
        if self._roots.pop(run_id, None) is None:
            self._told.pop(run_id, None)

    def perform(self, run_id: str, effect: Execute | Cancel) -> None:
        """Have an effect performed."""
        self.told(run_id).put_nowait(effect)

    def learn(self, run_id: str, facts: Sequence[Fact]) -> None:
        """Have facts learnt."""
        self.told(run_id).put_nowait(tuple(facts))

    def lose(self, run_id: str) -> None:
        """Have the session ended at once: another owns its run (S-49)."""
        self._lost(run_id)


class Performed:
    """One session that is active here."""

    def __init__(  # noqa: PLR0913 - what a session is made of
        self,
        *,
        kept: Kept,
        adapter: RuntimeAdapter,
        runtime: Runtime,
        session: Session,
        line: Line,
        told: asyncio.Queue[Told] | None,
    ) -> None:
        """Take over a session that has begun."""
        self.run_id: Final = line.run_id
        self.kept: Final = kept
        self.adapter: Final = adapter
        self.runtime: Final = runtime
        self.session: Final = session
        self.line: Final = line
        self.idle = False
        """Whether nothing is owed, and nothing waits."""
        self.at_rest: Final = asyncio.Event()
        """Set while it is idle; a prompt that is kept clears it."""
        self.went_on: Callable[[str], None] = lambda _: None
        """Is told of the run each time that nothing is owed any more."""
        self._told = told
        self._woken = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def counts(self) -> bool:
        """Whether it is one of those that there may be so many of at once (section 15)."""
        return self._is_process or (not self.idle and self.session.at_work)

    @property
    def may_rest(self) -> bool:
        """Whether it may be put to rest: nothing goes on, in a sub-agent either (S-56)."""
        return self.idle and not (self._is_process and self.session.at_work)

    @property
    def _is_process(self) -> bool:
        return self.adapter.capabilities.execution != "owned"

    def doubts(self) -> tuple[CallView, ...]:
        """Return the calls of which a person has to say what became (K-35)."""
        if isinstance(self.session, OwnSession):
            return self.session.doubts()
        return self.runtime.doubts(self.run_id) if self.run_id in self.runtime.runs else ()

    def begin(self, failed: Callable[[Performed, Exception], None]) -> None:
        """Begin to say what waits; `failed` is told why that ended by itself."""

        def ended(task: asyncio.Task[None]) -> None:
            error = None if task.cancelled() else task.exception()
            if isinstance(error, Exception):
                failed(self, error)

        works = [self._pump()] if self._told is None else [self._pump(), self._tell(self._told)]
        for work in works:
            task = asyncio.create_task(work, name="session")
            task.add_done_callback(ended)
            self._tasks.append(task)

    async def cease(self) -> None:
        """Say nothing more; what is being kept is kept."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def wake(self) -> None:
        """Look at the line: something waits there."""
        self.at_rest.clear()
        self._woken.set()

    async def send(self, prompt: Waiting) -> None:
        """Have a prompt taken: kept as said, sent, and kept as sent (S-81)."""
        message = UserMessage(text=prompt.text)
        if self.adapter.keeps_messages:
            await self.session.send_turn(message, message_id=prompt.message_id)
            self.line.was_said(prompt)
            return
        await self._kept(partial(self.line.say, prompt))
        try:
            sent = await self.session.send_turn(message, message_id=prompt.message_id)
        except CommandRefused as error:
            await self._kept(partial(self.line.was_refused, prompt.message_id, str(error)))
            raise
        await self._kept(partial(self.line.was_sent, prompt.message_id, sent))

    async def _pump(self) -> None:
        """Go on with what is owed, and then with what waits, as long as the session lives."""
        await self._find_out()
        while True:
            await self.session.settled()
            self.went_on(self.run_id)
            self._woken.clear()
            first = self.line.first
            if first is not None and not self._waits_for_doubts():
                try:
                    await self.send(first)
                except CommandRefused as error:  # kept in the run, and shown there
                    _log.info("run %r: a prompt was not taken: %s", self.run_id, error)
                continue
            self.idle = True
            self.at_rest.set()
            try:
                await self._woken.wait()
            finally:
                self.idle = False

    def _waits_for_doubts(self) -> bool:
        """Whether a turn of another runtime is in doubt: nothing is said before it is settled."""
        return self._told is not None and bool(self.doubts())

    async def _find_out(self) -> None:
        """Find out what became of messages between which and their runtime a crash came."""
        if self.adapter.keeps_messages:
            return
        for message_id in tuple(self.line.unsent):
            sent = await self.session.was_sent(message_id)
            if sent is None:
                await self._kept(partial(self.line.is_unknown, message_id))
            else:
                await self._kept(partial(self.line.was_sent, message_id, sent))

    async def _kept(self, work: Callable[[], Awaitable[None]]) -> None:
        """Keep what may be kept again until the journal has it."""
        pauses = backoff(self.runtime.settings)
        await retried(work, pauses=pauses, on=(JournalError,))

    async def _tell(self, told: asyncio.Queue[Told]) -> None:
        while True:
            it = await told.get()
            if isinstance(it, Execute | Cancel):
                await self.session.perform(it)
                continue
            await self.session.learn(it)
            self.wake()
            for fact in it:
                if isinstance(fact, TurnInterrupting):
                    await self.session.interrupt(fact.turn_id)
