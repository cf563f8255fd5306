"""Drives a normaliser: what it says is kept, then judged, and only then answered (S-10, S-21).

One task does it, so that what is kept stands in the order in which it was said or learnt. Who reads
the process may be so many messages ahead of what is kept, and no more (section 15).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final, Protocol

import attrs

from ...agent.transients import Transient
from ...models.deliveries import Delivery
from ...models.errors import InvalidValue, TurnlockError
from ...models.fact import Fact
from ...models.reasons import Reason
from ...models.safe_text import harmless
from ...models.verdicts import Refused, Verdict
from ...runtime.errors import JournalError, Overloaded, RunFenced
from ...runtime.journal.ledger import Domain
from ...runtime.log import logger
from ...runtime.scheduling import doubled, retried
from ..contract import Observation, Sink
from .heard import Anomaly, Heard, Odd, Permit, Reply
from .messages import Asked, Notified
from .refusals import explained

_log = logger(__name__)

AHEAD: Final = 500
"""Messages that may be taken from a process and not yet kept; as many wait in its transport, and
then it is not read further (section 15)."""
TOGETHER: Final = 256
"""Messages of which a normaliser makes sense before anything is kept."""
KEPT_WITHIN: Final = 30.0
"""Seconds for which the journal may fail before its process is ended (section 14)."""
SPOKEN: Final = "spoken"
"""Begins the id of the note of a message."""
FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 2.0


class Unkept(TurnlockError):
    """What a process said could not be kept for so long that it is ended."""

    code = "runtime_unavailable"


class Drives(Protocol):
    """What is driven: a `Normaliser`, or several of them."""

    def take(self, message: Notified | Asked, *, at: float) -> Heard:
        """Make sense of a message."""
        ...

    def learn(self, facts: Sequence[Fact], *, at: float) -> Heard:
        """Learn what was kept."""
        ...

    def process_ended(self, *, at: float) -> Heard:
        """Learn that nothing more will come (S-26)."""
        ...


class Driver:
    """Everything that is said of one thread goes through here, in order."""

    def __init__(
        self,
        sink: Sink,
        *,
        within: float = KEPT_WITHIN,
        room: asyncio.Semaphore | None = None,
    ) -> None:
        """Begin with nothing to say; threads of one process share the `room` for what waits."""
        self.answer: Callable[[Reply], Awaitable[bool]] = _unanswered
        """Writes a reply, and says whether it could."""
        self.changed: Callable[[], None] = lambda: None
        """Is called after each step: what is known of the thread may be another by then."""
        self._sink = sink
        self._within = within
        self._messages: deque[Notified | Asked] = deque()
        self._facts: deque[Sequence[Fact]] = deque()
        self._over = False
        self._lets = True
        self._woken = asyncio.Event()
        self.room: Final = room or asyncio.Semaphore(AHEAD)
        self._taken = 0
        """Messages of which sense was made, and which are not all kept."""

    async def put(self, message: Notified | Asked) -> None:
        """Have a message made sense of in its turn; wait while too many are not kept."""
        await self.room.acquire()
        self._messages.append(message)
        self._woken.set()

    def learn(self, facts: Sequence[Fact]) -> None:
        """Have kept facts learnt, before what was read and not looked at yet."""
        self._facts.append(facts)
        self._woken.set()

    def let_nothing(self) -> None:
        """Let nothing more start: the process is about to be ended."""
        self._lets = False

    def end(self) -> None:
        """Learn that the process has ended: `run` returns once all that it said is kept."""
        self._lets = False
        self._over = True
        self._woken.set()

    async def run(self, driven: Drives) -> None:
        """Have sense made of what was put, until the process has ended and all of it is kept.

        Raises `Unkept` where the journal fails for too long, and what says that the run is
        another's.
        """
        while True:
            self._woken.clear()
            if self._facts or self._messages:
                for heard in joined(self._next(driven)):
                    await self._do(heard)
                while self._taken:
                    self._taken -= 1
                    self.room.release()
                self.changed()
                await asyncio.sleep(0)
            elif self._over:
                await self._do(driven.process_ended(at=self._sink.now()))
                self.changed()
                return
            else:
                await self._woken.wait()

    def _next(self, driven: Drives) -> Iterator[Heard]:
        """Make sense of what was learnt, or else of some messages."""
        at = self._sink.now()
        if self._facts:
            while self._facts:
                yield driven.learn(self._facts.popleft(), at=at)
            return
        for _ in range(min(len(self._messages), TOGETHER)):
            message = self._messages.popleft()
            self._taken += 1
            yield self._sense_of(driven, message, at)

    def _sense_of(self, driven: Drives, message: Notified | Asked, at: float) -> Heard:
        try:
            return driven.take(message, at=at)
        except Exception as error:  # noqa: BLE001 - one message of it ends no run (S-13)
            _log.exception("no sense was made of %r: a defect of turnlock", message.method)
            note = Observation(
                domain=Domain.RAW_PROTOCOL,
                kind=harmless(message.method),
                body={"problem": Anomaly.PAYLOAD_INVALID.value},
                at=at,
            )
            odd = Odd(anomaly=Anomaly.PAYLOAD_INVALID, detail=repr(error))
            return Heard(observations=(note,), odd=(odd,))

    async def _do(self, heard: Heard) -> None:
        if heard.observations or heard.deliveries:
            await self._keep([*map(_named, heard.observations)], heard.deliveries)
        for permit in heard.permits:
            await self._let(permit)
        for reply in heard.replies:
            await self._write(reply)
        for transient in heard.transients:
            self._pass_on(transient)
        for odd in heard.odd:
            _log.info("%s: %s", odd.anomaly, harmless(odd.detail))

    async def _let(self, permit: Permit) -> None:
        """Let something start: its claim is kept, the run is ours still, then it is written."""
        if not self._lets:
            return
        if not (await self._keep((), (permit.claim,)))[0]:
            return
        if not await self._sink.owns():
            raise RunFenced("the run is performed by another: nothing is let start (S-44)")
        if self._lets:
            await self._write(permit.reply)

    async def _write(self, reply: Reply) -> None:
        """Write a reply; one that nobody waits for any more is observed (S-28)."""
        if await self.answer(reply):
            return
        note = Observation(
            domain=Domain.APPROVAL,
            kind=Anomaly.ANSWER_UNDELIVERABLE.value,
            body={"request": reply.request},
            at=self._sink.now(),
        )
        await self._keep((note,), ())

    async def _keep(
        self, observations: Sequence[Observation], deliveries: Sequence[Delivery]
    ) -> tuple[bool, ...]:
        """Keep observations and have deliveries judged; return which of them hold.

        The journal may fail for a while: it is asked again, and what it kept all the same is
        refused as a duplicate. Those hold, too.
        """
        failures = 0

        def failed(error: Exception, pause: float) -> None:
            nonlocal failures
            failures += 1
            _log.warning("what was said is not kept yet, in %.3g s again: %s", pause, error)

        async def hear() -> tuple[Verdict, ...]:
            try:
                return await self._sink.hear(observations, deliveries)
            except (JournalError, Overloaded, RunFenced):
                raise
            except InvalidValue as error:
                _log.error("what was said cannot be kept, and is left out: %s", error)
                rest = [it for it in observations if it.id is None]
                left = rest if len(rest) < len(observations) else ()
                return await self._sink.hear(left, deliveries)

        verdicts: tuple[Verdict, ...] = ()
        try:
            async with asyncio.timeout(self._within):
                verdicts = await retried(hear, pauses=pauses(), failed=failed)
        except TimeoutError as error:
            raise Unkept(
                f"the journal has kept nothing for {self._within:g} s; the process is ended, and"
                " what it ran is in doubt"
            ) from error
        for delivery, verdict in zip(deliveries, verdicts, strict=True):
            if isinstance(verdict, Refused) and not failures:
                _tell_of(delivery, verdict)
        return tuple(
            it.accepted or (bool(failures) and it.reason is Reason.DUPLICATE) for it in verdicts
        )

    def _pass_on(self, transient: Transient) -> None:
        with suppress(TurnlockError):
            self._sink.pass_on(transient)


def _named(note: Observation) -> Observation:
    """Return a note as it is kept: a message has an id, so that it is never kept twice (S-61)."""
    said = note.body.get("id")
    if note.domain is not Domain.MESSAGE or note.id is not None or not isinstance(said, str):
        return note
    return attrs.evolve(note, id=f"{SPOKEN}/{said}")


async def _unanswered(_: Reply) -> bool:
    return False


def _tell_of(delivery: Delivery, refused: Refused) -> None:
    why = explained(delivery, refused)
    if why is None:
        _log.warning(
            "the kernel refused what a runtime said, and nobody knows why: %s of %s, %s",
            delivery.type,
            getattr(delivery, "invocation_id", None) or getattr(delivery, "turn_id", None),
            refused.reason,
        )
    else:
        _log.debug("the kernel refused what a runtime said, as is to be expected: %s", why)


def pauses() -> Iterator[float]:
    """Yield the seconds to wait after each failure of the journal."""
    return doubled(FIRST_PAUSE, longest=LONGEST_PAUSE)


def joined(heard: Iterable[Heard]) -> Iterator[Heard]:
    """Join what may be kept together and stands in the journal exactly as if it were not.

    Observations stand before the facts of what is delivered with them, so they are joined with
    earlier ones only as long as nothing is delivered between; nothing is joined to what answers.
    """
    parts: list[Heard] = []
    delivers = False
    for it in heard:
        if parts and (parts[-1].permits or parts[-1].replies or (delivers and it.observations)):
            yield _one(parts)
            parts, delivers = [], False
        parts.append(it)
        delivers = delivers or bool(it.deliveries)
    if parts:
        yield _one(parts)


def _one(parts: Sequence[Heard]) -> Heard:
    if len(parts) == 1:
        return parts[0]
    last = parts[-1]
    return attrs.evolve(
        last,
        observations=tuple(note for it in parts for note in it.observations),
        deliveries=tuple(delivery for it in parts for delivery in it.deliveries),
        transients=tuple(said for it in parts for said in it.transients),
        odd=tuple(odd for it in parts for odd in it.odd),
    )
