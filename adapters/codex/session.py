"""A process that performs a thread now, and what is commanded of it (S-10 … S-54).

What it says goes to its threads, in order; requests of ours go by the gateway, answers to its
requests by the router. Nothing here judges: the kernel does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from ...models.deliveries import Report
from ...models.effects import Cancel, Effect, Execute
from ...models.errors import TurnlockError
from ...models.fact import Fact
from ...models.safe_text import harmless
from ...models.values import Json
from ...runtime.log import logger
from ...views.call_view import CallView
from ..contract import CommandRefused, Ending, Question, Sink, TurnSent, UserMessage
from .connection import Connection
from .driver import Driver
from .gateway import RequestRefused, RequestUnanswered, Thread
from .messages import Asked, Notified, object_of
from .normaliser import thread_of
from .process import Exited
from .restoring import evidence_in, listed_in
from .thread import PerformedThread
from .transport import PipeBroken

_log = logger(__name__)

CONFIRMS_WITHIN: Final = 2.0
"""Seconds in which an interrupt is confirmed, before the process is ended all the same (S-47)."""
SIGNALS: Final = 4.0
"""Seconds that are left of a drain for the signals that end a process."""
SETTLES_WITHIN: Final = 5.0
"""Seconds in which what it said last is kept, once it has ended."""


class ProcessEnded(TurnlockError):
    """The process has ended before it answered; whoever is told of it sees no name (F-6)."""

    code = "runtime_unavailable"

    def __init__(self) -> None:
        """Say it."""
        super().__init__("codex app-server has ended")


class CodexSession:
    """A process, its thread, and those of the sub-agents that it began."""

    def __init__(  # noqa: PLR0913 - what a session is made of
        self,
        *,
        sink: Sink,
        connection: Connection,
        driver: Driver,
        thread: Thread,
        version: str,
        worker: str,
    ) -> None:
        """Take over a process that has begun, or resumed, a thread; it is read already."""
        self._sink: Final = sink
        self._connection: Final = connection
        self._gateway: Final = connection.gateway
        self._thread: Final = thread
        self._version: Final = version
        self._worker: Final = worker
        self._changed = asyncio.Event()
        self._main: Final = PerformedThread(
            thread_id=thread.thread_id,
            settlement=thread.settlement,
            sink=sink,
            connection=connection,
            worker=worker,
            driver=driver,
            changed=self._tell_change,
        )
        self._threads: Final = {thread.thread_id: self._main}
        self._sending = False
        """Whether a turn is asked for whose id is not known yet."""
        self._ending = False
        """Whether we end it."""
        self._over = False
        """Whether nothing more comes of it."""
        self._left = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._driving: set[asyncio.Task[None]] = set()
        connection.put = self._put
        self._watching: Final = asyncio.create_task(self._watch(), name=f"watch {sink.run_id}")

    @property
    def epoch(self) -> Mapping[str, Json]:
        """What its `epoch` note says (S-50)."""
        name = self._connection.wire.name
        return {
            "process": str(name),
            "host": name.host,
            "thread_id": self._thread.thread_id,
            "runtime_version": self._version,
            "settlement": self._thread.settlement,
        }

    @property
    def at_work(self) -> bool:
        """Whether a turn goes on; what waits in it for a person may be all that does."""
        return not self._over and (
            self._sending or any(it.goes_on for it in self._threads.values())
        )

    async def settled(self) -> None:
        """Wait until no turn goes on, upstream or in the kernel (S-83); of a dead process, ever."""
        await self._until(
            lambda: not (self._connection.closed or self._sending or self._main.goes_on)
        )

    async def taken(self, turn_id: str) -> None:
        """Wait until the runtime has gone on from the results of a turn (S-29).

        It hands them to its model itself; that is so, for certain, once the next turn of the kernel
        has opened, or the upstream turn is over.
        """
        thread, upstream = self._with(turn_id)
        await self._until(
            lambda: (
                self._over
                or self._ending
                or upstream is None
                or thread.upstream != upstream
                or thread.open not in {None, turn_id}
            )
        )

    async def send_turn(self, message: UserMessage, *, message_id: str) -> TurnSent:
        """Have it begin a turn, or steer the one that goes on (S-83).

        Raises `CommandRefused` where the runtime would not, and what ends the session where it does
        not say whether it did: nobody knows (S-81).
        """
        thread_id, text = self._thread.thread_id, message.text
        upstream = self._main.upstream
        if upstream is not None:
            try:
                steered = await self._gateway.steer(
                    thread_id, upstream, text, message_id=message_id
                )
            except RequestRefused as error:
                if self._main.upstream == upstream:
                    raise _failed(error) from error
                _log.info("turn %s is over, and another is begun: %s", upstream, error)
            except PipeBroken as error:
                raise ProcessEnded from error
            else:
                return TurnSent(turn_id=steered, steered=True)
        self._sending = True
        try:
            turn_id = await self._gateway.start_turn(thread_id, text, message_id=message_id)
            self._main.began(turn_id)
        except RequestRefused as error:
            raise _failed(error) from error
        except RequestUnanswered:
            self._connection.kill()
            raise
        except PipeBroken as error:
            raise ProcessEnded from error
        finally:
            self._sending = False
            self._tell_change()
        return TurnSent(turn_id=turn_id)

    async def was_sent(self, message_id: str) -> TurnSent | None:
        """Look the message up in the thread, by the id that it was sent with (S-81)."""
        try:
            turn_id = turn_with(await self._listed(), message_id)
        except RequestRefused as error:
            _log.warning("what thread %s holds is not known: %s", self._thread.thread_id, error)
            return None
        except PipeBroken as error:
            raise ProcessEnded from error
        return None if turn_id is None else TurnSent(turn_id=turn_id)

    async def interrupt(self, turn_id: str) -> None:
        """Have it stop the upstream turn, after the kernel's verdict (S-45)."""
        thread, upstream = self._with(turn_id)
        if upstream is not None:
            self._spawn(f"interrupt {upstream}", self._interrupts(thread, upstream))

    async def stop(self, *, reason: str | None, grace: float) -> bool:  # noqa: ARG002 - the kernel knows of no turn
        """Have it stop a turn in which the kernel has none open (S-45).

        Raises `CommandRefused` (`turn_correlation_missing`) where its id is not known yet.
        """
        upstream = self._main.upstream
        if self._over or (upstream is None and not self._sending):
            return False
        if upstream is None:
            raise CommandRefused(
                "turn_correlation_missing",
                "the runtime has not said yet which turn it has begun: ask again in a moment",
            )
        return await self._interrupts(self._main, upstream)

    async def perform(self, effect: Effect) -> None:
        """Ask the user where an owned call says so, and nothing else: tools are not ours (S-28)."""
        if isinstance(effect, Execute | Cancel):
            thread, _ = self._with(effect.turn_id)
            await thread.perform(effect)

    async def learn(self, facts: Sequence[Fact]) -> None:
        """Learn facts once they are kept: what is answered follows from them (S-42)."""
        for run_id in dict.fromkeys(fact.run_id for fact in facts):
            thread = self._of(run_id)
            if thread is not None:
                thread.follow([fact for fact in facts if fact.run_id == run_id])
        self._tell_change()

    def asks(self, turn_id: str, invocation_id: str) -> bool:
        """Whether a call is a question to the user, which a person may answer (S-28)."""
        return any(it.asks(turn_id, invocation_id) for it in self._threads.values())

    def unanswered(self) -> Sequence[Question]:
        """Return the questions to the user that wait, of its run and those of its sub-agents."""
        return [one for it in self._threads.values() for one in it.unanswered()]

    async def evidence(self, doubts: Sequence[CallView]) -> Sequence[Report]:
        """Return how calls in doubt ended, where the runtime has kept that (S-27)."""
        try:
            return evidence_in(await self._listed(), doubts)
        except (RequestRefused, RequestUnanswered, PipeBroken) as error:
            _log.warning("what thread %s holds is not known: %s", self._thread.thread_id, error)
            return ()

    async def _listed(self) -> list[object]:
        """Return all items of the thread; of an older version all that it reads at once."""
        thread_id = self._thread.thread_id
        try:
            return [entry async for entry in self._gateway.items(thread_id)]
        except RequestRefused as error:
            _log.info("thread %s is read whole: %s", thread_id, error)
            return [*listed_in(await self._gateway.read_thread(thread_id))]

    def kill(self) -> None:
        """End the process at once, and write nothing to it any more (S-49)."""
        self._ending = True
        self._let_nothing()
        self._connection.kill()

    async def terminate(self, *, why: str, grace: float) -> Ending:
        """Stop what goes on, and end the process (S-47); the run is owned still."""
        if why == "fenced":
            self.kill()
        self._ending = True
        self._let_nothing()
        self._tell_change()
        try:
            if why == "drained":
                grace = max(0.1, grace - CONFIRMS_WITHIN - SIGNALS)
            if not self._over and why != "fenced":
                await self._wind_down(why, grace)
            exited = await self._connection.wire.end(grace=grace)
            await asyncio.wait([self._watching], timeout=SETTLES_WITHIN)
        except BaseException:
            self._connection.kill()
            raise
        return Ending(why=why, exit_status=exited.status)

    async def leave(self) -> None:
        """Let the run go, once how it ended is kept; done again, it changes nothing."""
        if self._left:
            return
        self._left = True
        self.kill()
        tasks = [*self._tasks, *self._driving, self._watching]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._connection.cease()
        self._end()

    # its threads

    async def _put(self, message: Notified | Asked) -> None:
        """Have its thread make sense of a message; one never heard of is a sub-agent's (S-56)."""
        thread_id = thread_of(message)
        thread = self._main if thread_id is None else self._threads.get(thread_id)
        if thread is None and thread_id is not None:
            thread = self._begin_child(thread_id)
        if thread is not None:
            await thread.driver.put(message)

    def _begin_child(self, thread_id: str) -> PerformedThread:
        settlement = self._thread.settlement
        sink = self._sink.child(thread_id, settlement=settlement)
        thread = self._threads[thread_id] = PerformedThread(
            thread_id=thread_id,
            settlement=settlement,
            sink=sink,
            connection=self._connection,
            worker=self._worker,
            driver=Driver(sink, room=self._main.driver.room),
            changed=self._tell_change,
        )
        self._drive(thread)
        return thread

    def _drive(self, thread: PerformedThread) -> None:
        self._driving.add(asyncio.create_task(thread.run(), name=f"drive {thread.run_id}"))
        self._tell_change()

    def _of(self, run_id: str) -> PerformedThread | None:
        return next((it for it in self._threads.values() if it.run_id == run_id), None)

    def _with(self, turn_id: str) -> tuple[PerformedThread, str | None]:
        """Return the thread of a turn of the kernel, and the upstream turn, where it is known."""
        for thread in self._threads.values():
            upstream = thread.upstream_of(turn_id)
            if upstream is not None:
                return thread, upstream
        return self._main, None

    def _let_nothing(self) -> None:
        for thread in self._threads.values():
            thread.driver.let_nothing()

    # what goes on beside

    async def _watch(self) -> None:
        """Keep what is said until the process has ended; say so, unless it is we who end it."""
        reading = self._connection.reading
        said, status = "", None
        self._drive(self._main)
        try:
            while not reading.done() and not any(task.done() for task in self._driving):
                changed = asyncio.ensure_future(self._changed.wait())
                await asyncio.wait(
                    {*self._driving, reading, changed}, return_when=asyncio.FIRST_COMPLETED
                )
                changed.cancel()
            if reading.done():
                exited = await reading
                said, status = self._last_words(exited), exited.status
                for thread in self._threads.values():
                    thread.driver.end()
            said = await self._driven() or said
        finally:
            self._connection.kill()
            self._end()
        if not self._ending:
            await self._sink.ended(Ending(why="failed", exit_status=status, said=said))

    async def _driven(self) -> str:
        """Wait until all that was said is kept; return why it could not be."""
        said = ""
        while left := [task for task in self._driving if not task.done()]:
            if any(task.exception() for task in self._driving if task.done()):
                break
            await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
        for task in self._driving:
            error = task.exception() if task.done() else None
            if error is None:
                task.cancel()
            elif isinstance(error, TurnlockError):
                said = harmless(str(error))
                _log.warning("run %r is performed no more: %s", self._sink.run_id, error)
            else:
                said = "what it said could not be kept: a defect of turnlock"
                _log.error("run %r is performed no more", self._sink.run_id, exc_info=error)
        return said

    def _last_words(self, exited: Exited) -> str:
        """Return why it ended, as far as that is known."""
        trouble = self._connection.trouble
        words = f"codex app-server ended with status {exited.status}"
        if trouble:
            words = f"codex app-server was ended: {trouble}"
        return f"{harmless(words)}\n{self._connection.wire.stderr_tail}".strip()

    def _end(self) -> None:
        self._over = True
        self._tell_change()

    async def _wind_down(self, why: str, grace: float) -> None:
        """Stop what goes on, first in the kernel and then upstream, and wait for its word."""

        async def stopped(thread: PerformedThread) -> None:
            upstream = thread.upstream
            await thread.stop(reason=why, grace=grace)
            if upstream is not None:
                await self._gateway.interrupt(thread.thread_id, upstream)
                await self._until(lambda: self._over or thread.upstream != upstream)

        with suppress(TurnlockError, TimeoutError):
            async with asyncio.timeout(min(CONFIRMS_WITHIN, grace)):
                await asyncio.gather(*(stopped(it) for it in self._threads.values()))

    async def _interrupts(self, thread: PerformedThread, upstream: str) -> bool:
        """Have it stop a turn; False where it knows of none that goes on."""
        try:
            await self._gateway.interrupt(thread.thread_id, upstream)
        except RequestRefused as error:
            _log.info("turn %s was not interrupted: %s", upstream, error)
            thread.is_over(upstream)
            self._tell_change()
            return False
        except RequestUnanswered:
            _log.warning("run %r: its process does not answer, and is ended", self._sink.run_id)
            self._connection.kill()
        except PipeBroken:
            _log.info("turn %s ended with its process", upstream)
        return True

    def _spawn(self, name: str, work: Coroutine[Any, Any, object]) -> None:
        async def watched() -> None:
            try:
                await work
            except TurnlockError as error:
                _log.info("run %r: %s failed: %s", self._sink.run_id, name, error)

        task = asyncio.create_task(watched(), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _tell_change(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await self._changed.wait()


def _failed(error: RequestRefused) -> CommandRefused:
    return CommandRefused("runtime_command_failed", harmless(str(error)))


def turn_with(listed: Sequence[object], message_id: str) -> str | None:
    """Return the turn of a thread that holds the message of this id; None where none does."""
    for entry in map(object_of, listed):
        if object_of(entry.get("item")).get("clientId") == message_id:
            return str(entry.get("turnId"))
    return None
