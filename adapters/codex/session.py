"""One thread that a process performs now, and what is commanded of it (S-10 … S-54).

What the process says goes to the driver, in order; requests of ours go by the gateway, answers to
its requests by the router. Nothing here judges: the kernel does.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from ...models.deliveries import Claim, Delivery, Interrupt, Reject, Report
from ...models.effects import Cancel, Effect, Execute
from ...models.errors import TurnlockError
from ...models.fact import Fact
from ...models.safe_text import harmless
from ...models.turn_facts import TurnInterrupted, TurnOpened, TurnSettled
from ...models.values import Json
from ...runtime.log import logger
from ...runtime.scheduling import retried
from ...views.call_view import CallView
from ..contract import CommandRefused, Ending, SessionSpec, Sink, TurnSent, UserMessage
from .connection import Connection
from .driver import Driver, pauses
from .gateway import RequestRefused, RequestUnanswered, Thread
from .heard import Heard
from .messages import Asked, Notified
from .normaliser import Normaliser, thread_of
from .process import Exited

_log = logger(__name__)

NAMED: Final = 64
"""Upstream turns of which it is remembered that something was said."""
CONFIRMS_WITHIN: Final = 2.0
"""Seconds in which an interrupt is confirmed, before the process is ended all the same (S-47)."""
SIGNALS: Final = 4.0
"""Seconds that are left of a drain for the signals that end a process."""
SETTLES_WITHIN: Final = 5.0
"""Seconds in which what it said last is kept, once it has ended."""
NO_TOOL: Final = "there is no such tool here: this session declares none"
NOT_ASKED: Final = "interrupted: nobody is asked any more"


class Followed:
    """The normaliser of a thread, and which upstream turns it was told of."""

    def __init__(self, normaliser: Normaliser, *, thread_id: str) -> None:
        """Follow it from its beginning."""
        self.normaliser: Final = normaliser
        self._thread_id = thread_id
        self._named: deque[str] = deque(maxlen=NAMED)
        self._awaited: str | None = None

    @property
    def upstream(self) -> str | None:
        """The upstream turn that goes on; it may be one of which nothing was said yet."""
        return self.normaliser.upstream_turn or self._awaited

    def began(self, turn_id: str) -> None:
        """Learn that a turn was begun at our request: its messages are on their way."""
        if turn_id not in self._named:
            self._awaited = turn_id

    def is_over(self, turn_id: str) -> None:
        """Learn that the runtime knows of no such turn that goes on."""
        if self._awaited == turn_id:
            self._awaited = None

    def take(self, message: Notified | Asked, *, at: float) -> Heard:
        """Have it made sense of."""
        heard = self.normaliser.take(message, at=at)
        turn_id = _turn_in(message)
        if turn_id is not None and thread_of(message) in {None, self._thread_id}:
            if turn_id not in self._named:
                self._named.append(turn_id)
            self.is_over(turn_id)
        return heard

    def learn(self, facts: Sequence[Fact], *, at: float) -> Heard:
        """Have facts learnt."""
        return self.normaliser.learn(facts, at=at)

    def process_ended(self, *, at: float) -> Heard:
        """Learn that nothing more will come."""
        self._awaited = None
        return self.normaliser.process_ended(at=at)


def _turn_in(message: Notified | Asked) -> str | None:
    """Return the upstream turn that a message names."""
    turn = message.params.get("turn")
    named = turn.get("id") if isinstance(turn, Mapping) else message.params.get("turnId")
    return named if isinstance(named, str) else None


class CodexSession:
    """A thread, and the process that performs it."""

    def __init__(  # noqa: PLR0913 - what a session is made of
        self,
        *,
        spec: SessionSpec,
        sink: Sink,
        connection: Connection,
        reading: asyncio.Task[Exited],
        driver: Driver,
        thread: Thread,
        version: str,
        worker: str,
    ) -> None:
        """Take over a process that has begun, or resumed, a thread."""
        self._run_id: Final = spec.run_id
        self._sink: Final = sink
        self._connection: Final = connection
        self._gateway: Final = connection.gateway
        self._driver: Final = driver
        self._thread: Final = thread
        self._version: Final = version
        self._worker: Final = worker
        normaliser = Normaliser(
            run_id=spec.run_id,
            thread_id=thread.thread_id,
            settlement=thread.settlement,
            worker=worker,
        )
        self._followed: Final = Followed(normaliser, thread_id=thread.thread_id)
        self._sending = False
        """Whether a turn is asked for whose id is not known yet."""
        self._open: str | None = None
        """The kernel's open turn, by its facts."""
        self._questions: set[tuple[str, str]] = set()
        """Those to the user that were claimed: a person may answer them (S-28)."""
        self._changed = asyncio.Event()
        self._ending = False
        """Whether we end it."""
        self._over = False
        """Whether nothing more comes of it."""
        self._left = False
        self._tasks: set[asyncio.Task[None]] = set()
        driver.changed = self._tell_change
        self._watching: Final = asyncio.create_task(
            self._watch(reading), name=f"watch {spec.run_id}"
        )

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
        return not self._over and self._goes_on

    @property
    def _goes_on(self) -> bool:
        upstream = self._followed.upstream
        return self._sending or upstream is not None or self._open is not None

    async def settled(self) -> None:
        """Wait until no turn goes on, upstream or in the kernel (S-83)."""
        await self._until(lambda: not self._over and not self._goes_on)

    async def taken(self, turn_id: str) -> None:
        """Wait until the runtime has gone on from the results of a turn (S-29).

        It hands them to its model itself; that is so, for certain, once the next turn of the kernel
        has opened, or the upstream turn is over.
        """
        upstream = upstream_of(turn_id)
        await self._until(
            lambda: (
                self._over
                or self._ending
                or self._open not in {None, turn_id}
                or self._followed.upstream != upstream
            )
        )

    async def send_turn(self, message: UserMessage, *, message_id: str) -> TurnSent:
        """Have it begin a turn, or steer the one that goes on (S-83).

        Raises `CommandRefused` where the runtime would not, and what ends the session where it does
        not say whether it did: nobody knows (S-81).
        """
        thread_id, text = self._thread.thread_id, message.text
        upstream = self._followed.upstream
        if upstream is not None:
            try:
                steered = await self._gateway.steer(
                    thread_id, upstream, text, message_id=message_id
                )
            except RequestRefused as error:
                if self._followed.upstream == upstream:
                    raise _failed(error) from error
                _log.info("turn %s is over, and another is begun: %s", upstream, error)
            else:
                return TurnSent(turn_id=steered, steered=True)
        self._sending = True
        try:
            turn_id = await self._gateway.start_turn(thread_id, text, message_id=message_id)
            self._followed.began(turn_id)
        except RequestRefused as error:
            raise _failed(error) from error
        except RequestUnanswered:
            self._connection.kill()
            raise
        finally:
            self._sending = False
            self._tell_change()
        return TurnSent(turn_id=turn_id)

    async def was_sent(self, message_id: str) -> TurnSent | None:
        """Look the message up in the thread, by the id that it was sent with (S-81)."""
        try:
            thread = await self._gateway.read_thread(self._thread.thread_id)
        except RequestRefused as error:
            _log.warning("what thread %s holds is not known: %s", self._thread.thread_id, error)
            return None
        turn_id = turn_with(thread, message_id)
        return None if turn_id is None else TurnSent(turn_id=turn_id)

    async def interrupt(self, turn_id: str) -> None:
        """Have it stop the upstream turn, after the kernel's verdict (S-45)."""
        self._spawn(f"interrupt {turn_id}", self._interrupts(upstream_of(turn_id)))

    async def stop(self, *, reason: str | None, grace: float) -> bool:  # noqa: ARG002 - the kernel knows of no turn
        """Have it stop a turn in which the kernel has none open (S-45).

        Raises `CommandRefused` (`turn_correlation_missing`) where its id is not known yet.
        """
        upstream = self._followed.upstream
        if self._over or (upstream is None and not self._sending):
            return False
        if upstream is None:
            raise CommandRefused(
                "turn_correlation_missing",
                "the runtime has not said yet which turn it has begun: ask again in a moment",
            )
        return await self._interrupts(upstream)

    async def perform(self, effect: Effect) -> None:
        """Ask the user where an owned call says so, and nothing else: tools are not ours (S-28)."""
        if isinstance(effect, Execute):
            await self._execute(effect)
        elif isinstance(effect, Cancel):
            key = effect.turn_id, effect.invocation_id
            if key in self._questions:
                report = Report(
                    run_id=self._run_id,
                    turn_id=effect.turn_id,
                    invocation_id=effect.invocation_id,
                    error=NOT_ASKED,
                )
                await self._deliver(report)

    async def learn(self, facts: Sequence[Fact]) -> None:
        """Learn facts once they are kept: what is answered follows from them (S-42)."""
        for fact in facts:
            if isinstance(fact, TurnOpened):
                self._open = fact.turn_id
                self._questions.clear()
            elif isinstance(fact, TurnSettled | TurnInterrupted) and fact.turn_id == self._open:
                self._open = None
        self._driver.learn(facts)
        self._tell_change()

    def asks(self, turn_id: str, invocation_id: str) -> bool:
        """Whether a call is a question to the user, which a person may answer (S-28)."""
        return (turn_id, invocation_id) in self._questions

    async def evidence(self, doubts: Sequence[CallView]) -> Sequence[Report]:  # noqa: ARG002
        """Return how calls in doubt ended, where the runtime has kept that (S-27)."""
        return ()

    def kill(self) -> None:
        """End the process at once, and write nothing to it any more (S-49)."""
        self._ending = True
        self._driver.let_nothing()
        self._connection.kill()

    async def terminate(self, *, why: str, grace: float) -> Ending:
        """Stop what goes on, and end the process (S-47); the run is owned still."""
        if why == "fenced":
            self.kill()
        was_over, self._ending = self._over, True
        self._driver.let_nothing()
        self._tell_change()
        try:
            if why == "drained":
                grace = max(0.1, grace - CONFIRMS_WITHIN - SIGNALS)
            if not was_over and why != "fenced":
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
        tasks = [*self._tasks, self._watching]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._connection.cease()
        self._end()

    # what goes on beside

    async def _watch(self, reading: asyncio.Task[Exited]) -> None:
        """Keep what is said until the process has ended; say so, unless it is we who end it."""
        driving = asyncio.create_task(self._driver.run(self._followed), name=f"drive {self._run_id}")
        said, status = "", None
        try:
            await asyncio.wait({driving, reading}, return_when=asyncio.FIRST_COMPLETED)
            if not driving.done():
                exited = await asyncio.shield(reading)
                said, status = self._last_words(exited), exited.status
                self._driver.end()
            try:
                await driving
            except TurnlockError as error:
                said = harmless(str(error))
                _log.warning("run %r is performed no more: %s", self._run_id, error)
            except Exception:
                said = "what it said could not be kept: a defect of turnlock"
                _log.exception("run %r is performed no more", self._run_id)
        finally:
            driving.cancel()
            self._connection.kill()
            self._end()
        if not self._ending:
            await self._sink.ended(Ending(why="failed", exit_status=status, said=said))

    def _last_words(self, exited: Exited) -> str:
        """Return why it ended, as far as that is known."""
        trouble = self._connection.trouble
        words = [f"codex app-server ended with status {exited.status}"]
        if trouble:
            words = [f"codex app-server was ended: {trouble}"]
        return harmless("\n".join([*words, self._connection.wire.stderr_tail]).strip())

    def _end(self) -> None:
        self._over = True
        self._tell_change()

    async def _wind_down(self, why: str, grace: float) -> None:
        """Stop what goes on, first in the kernel and then upstream, and wait for its word."""
        upstream = self._followed.upstream
        with suppress(TurnlockError, TimeoutError):
            async with asyncio.timeout(min(CONFIRMS_WITHIN, grace)):
                if self._open is not None:
                    stop = Interrupt(
                        run_id=self._run_id, turn_id=self._open, reason=why, grace=grace
                    )
                    for verdict in await self._sink.hear((), [stop]):
                        self._driver.learn(verdict.facts)
                if upstream is not None:
                    await self._gateway.interrupt(self._thread.thread_id, upstream)
                    await self._until(lambda: self._over or self._followed.upstream != upstream)

    async def _interrupts(self, upstream: str) -> bool:
        """Have it stop a turn; False where it knows of none that goes on."""
        try:
            await self._gateway.interrupt(self._thread.thread_id, upstream)
        except RequestRefused as error:
            _log.info("turn %s was not interrupted: %s", upstream, error)
            self._followed.is_over(upstream)
            self._tell_change()
            return False
        except RequestUnanswered:
            _log.warning("run %r: its process does not answer, and is ended", self._run_id)
            self._connection.kill()
        return True

    async def _execute(self, effect: Execute) -> None:
        """Claim a question to the user, which waits for its answer; a tool of ours there is none."""
        key = effect.turn_id, effect.invocation_id
        if not self._followed.normaliser.asks(*key):
            reject = Reject(
                run_id=self._run_id,
                turn_id=effect.turn_id,
                invocation_id=effect.invocation_id,
                error=NO_TOOL,
            )
            await self._deliver(reject)
            return
        claim = Claim(
            run_id=self._run_id,
            turn_id=effect.turn_id,
            invocation_id=effect.invocation_id,
            attempt=effect.attempt,
            worker=self._worker,
        )
        await self._deliver(claim)
        self._questions.add(key)

    async def _deliver(self, delivery: Delivery) -> None:
        """Have something judged, however long the journal fails: it is told so by its owner."""
        await retried(lambda: self._sink.hear((), [delivery]), pauses=pauses())

    def _spawn(self, name: str, work: Coroutine[Any, Any, object]) -> None:
        async def watched() -> None:
            try:
                await work
            except TurnlockError as error:
                _log.info("run %r: %s failed: %s", self._run_id, name, error)

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


def upstream_of(turn_id: str) -> str:
    """Return the upstream turn of a turn of the kernel (S-31, S-32)."""
    upstream, hash_, number = turn_id.rpartition("#")
    return upstream if hash_ and number.isdecimal() else turn_id


def turn_with(thread: Mapping[str, Any], message_id: str) -> str | None:
    """Return the turn of a thread that holds the message of this id; None where none does."""
    turns = thread.get("turns")
    for turn in turns if isinstance(turns, list) else ():
        items = turn.get("items") if isinstance(turn, Mapping) else None
        for item in items if isinstance(items, list) else ():
            if isinstance(item, Mapping) and item.get("clientId") == message_id:
                return str(turn.get("id"))
    return None
