"""What goes by in a process: what models and tools say just now, and that there is more to read.

Nothing here is kept, and nothing is decided by it: whoever misses all of it reads the same from the
journal, a little later (S-77). One who listens pulls (W-8): what waits for it is joined and bounded
(S-75), and whoever is told that there is more only sets a mark.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Final, TypeAlias
from weakref import WeakKeyDictionary, WeakSet

import attrs

from ..agent.speaking import CallText, Text, Thought
from ..agent.transients import ItemChunk, SpeechChunk, SpeechFailed, SpeechStarted, Transient
from ..runtime.journal.contract import Journal
from ..runtime.log import logger
from ..runtime.runtime import Runtime
from .names import member_of

_log = logger(__name__)

WAITING: Final = 256 * 1024
"""Bytes of one answer, or of the log of one call, that wait for one who listens (S-75)."""
ITEMS: Final = 64
"""Answers and calls of which something waits for one who listens; the oldest gives way."""
PIECE: Final = 16 * 1024
"""Characters up to which pieces are put together while they wait."""
BEHIND: Final = 256
"""Pieces of an answer that wait before they are put together."""
_EACH: Final = 64
"""Bytes that a piece counts beside its text."""


@attrs.frozen(kw_only=True)
class ToolLogged:
    """What a tool wrote while it ran (W-43); `entry_id` is the id that its result will have."""

    kind: ClassVar[str] = "log"
    entry_id: str
    text: str

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON; its kind stands beside."""
        return {"entry_id": self.entry_id, "text": self.text}


Passing: TypeAlias = Transient | ToolLogged
"""What goes by in a chat, and is not kept."""


@attrs.frozen
class Passed:
    """Something that went by; `dropped` bytes of the same answer gave way before it (S-75)."""

    what: Passing
    dropped: int = 0


class Listener:
    """What waits for one who listens to a chat: it is taken, never handed over."""

    def __init__(self, *logs: str) -> None:
        """Listen to what goes by in the first of these logs, and to what is entered in any."""
        self.logs: Final = logs
        self.stale = True
        """Whether there may be more to read of anything."""
        self.grown: set[str] = set()
        """Logs and runs of which there may be more to read."""
        self._waiting: dict[str, _Item] = {}
        self._arrived = asyncio.Event()

    def add(self, passing: Passing) -> None:
        """Take in the next one."""
        name = passing.item if isinstance(passing, ItemChunk) else passing.entry_id
        item = self._waiting.get(name)
        if item is None or isinstance(passing, (SpeechStarted, SpeechFailed)):
            self._waiting.pop(name, None)  # asked again, or given up: what waits is void
            if len(self._waiting) >= ITEMS:
                del self._waiting[next(iter(self._waiting))]
            item = self._waiting[name] = _Item()
        item.add(passing)
        self._arrived.set()

    def wake(self, name: str | None = None) -> None:
        """Learn that there may be more to read: of a log or a run, or of anything."""
        if name is None:
            self.stale = True
        else:
            self.grown.add(name)
        self._arrived.set()

    def take(self) -> list[Passed]:
        """Return what waits, and have nothing wait."""
        waiting, self._waiting = self._waiting, {}
        return [passed for item in waiting.values() for passed in item.taken()]

    def forget(self, name: str) -> None:
        """Have nothing wait of an answer or a call that is kept, and told by that."""
        self._waiting.pop(name, None)

    async def wait(self) -> None:
        """Wait until something waits, or there may be more to read."""
        self._arrived.clear()
        if not (self._waiting or self.stale or self.grown):
            await self._arrived.wait()


class _Item:
    """What waits of one answer, or of the log of one call."""

    def __init__(self) -> None:
        self._start: Passing | None = None
        self._pieces: deque[Passing] = deque()
        self._size = 0
        self._dropped = 0
        self._many = BEHIND

    def add(self, passing: Passing) -> None:
        if isinstance(passing, SpeechStarted):
            self._start = passing
            return
        self._pieces.append(passing)
        self._size += _cost(passing)
        if len(self._pieces) >= self._many:
            self._pieces = deque(_joined(self._pieces))
            self._size = sum(map(_cost, self._pieces))
            self._many = max(BEHIND, 2 * len(self._pieces))
        while self._size > WAITING and len(self._pieces) > 1:
            gone = _cost(self._pieces.popleft())
            self._size -= gone
            self._dropped += gone - _EACH

    def taken(self) -> Iterable[Passed]:
        if self._start is not None:
            yield Passed(self._start)
        dropped = self._dropped
        for piece in _joined(self._pieces):
            yield Passed(piece, dropped)
            dropped = 0


def _cost(passing: Passing) -> int:
    return _EACH + len(_text(passing).encode("utf-8", "surrogatepass"))


def _text(passing: Passing) -> str:
    said = passing.said if isinstance(passing, SpeechChunk) else passing
    text: str = getattr(said, "text", "")
    return text


def _joined(pieces: Iterable[Passing]) -> Iterable[Passing]:
    """Put pieces together that are of one text."""
    held: list[Passing] = []
    size = 0
    for piece in pieces:
        if held and (_kind(piece) is None or _kind(piece) != _kind(held[0]) or size > PIECE):
            yield _whole(held)
            held, size = [], 0
        held.append(piece)
        size += len(_text(piece))
    if held:
        yield _whole(held)


def _kind(piece: Passing) -> object:
    """Return what two pieces have in common that are of one text; None: it stays alone."""
    if isinstance(piece, ItemChunk):
        return piece.of
    if not isinstance(piece, SpeechChunk):
        return None
    said = piece.said
    if isinstance(said, CallText):
        return said.place
    return type(said) if isinstance(said, Text | Thought) else None


def _whole(pieces: list[Passing]) -> Passing:
    first = pieces[0]
    if len(pieces) == 1:
        return first
    text = "".join(map(_text, pieces))
    if isinstance(first, SpeechChunk) and isinstance(first.said, Text | Thought | CallText):
        return attrs.evolve(first, said=attrs.evolve(first.said, text=text))
    if isinstance(first, ItemChunk):
        return attrs.evolve(first, text=text)
    raise AssertionError(first)  # others stay alone


class _Bus:
    """All who listen at one journal object."""

    def __init__(self) -> None:
        self._listeners: dict[str, WeakSet[Listener]] = {}
        self._heeding: list[Callable[[str], None]] = []
        self._runtimes: list[Runtime] = []

    def add(self, listener: Listener) -> None:
        for log in listener.logs:
            self._listeners.setdefault(log, WeakSet()).add(listener)

    def remove(self, listener: Listener) -> None:
        for log in listener.logs:
            listening = self._listeners.get(log)
            if listening is not None:
                listening.discard(listener)
                if not listening:
                    del self._listeners[log]

    def listening(self, log: str) -> tuple[Listener, ...]:
        listening = tuple(self._listeners.get(log, ()))
        if not listening:  # who was dropped without a word
            self._listeners.pop(log, None)
        return listening

    def pass_on(self, log: str, passing: Passing) -> None:
        for listener in self.listening(log):
            if listener.logs[0] == log:
                listener.add(passing)

    def entered(self, log: str) -> None:
        self.wake(log, log)

    def wake(self, log: str, name: str | None) -> None:
        for listener in self.listening(log):
            listener.wake(name)
        for told in tuple(self._heeding):
            try:
                told(log)
            except Exception:  # noqa: BLE001 - whoever it is, the others go on (W-8)
                _log.exception("whoever heeds %s has raised", log)

    def heed(self, told: Callable[[str], None]) -> Callable[[], None]:
        self._heeding.append(told)

        def unheed() -> None:
            if told in self._heeding:
                self._heeding.remove(told)

        return unheed

    def attend(self, runtime: Runtime) -> Callable[[], None]:
        self._runtimes.append(runtime)

        def kept(run_id: str) -> None:
            member = member_of(run_id)
            if member is not None:
                self.wake(member.log, run_id)

        unheed = runtime.when_kept(kept)

        def end() -> None:
            unheed()
            if runtime in self._runtimes:
                self._runtimes.remove(runtime)

        return end

    def runtime_of(self, run_id: str) -> Runtime | None:
        return next((it for it in self._runtimes if it.owns(run_id)), None)


_BUSES: Final[WeakKeyDictionary[Journal, _Bus]] = WeakKeyDictionary()
"""By the object through which the journal is written and read: a process has one, as a rule."""


def _bus_of(journal: Journal) -> _Bus:
    bus = _BUSES.get(journal)
    if bus is None:
        bus = _BUSES[journal] = _Bus()
        journal.when_entered(bus.entered)
    return bus


def pass_on(journal: Journal, chat_log: str, passing: Passing) -> None:
    """Pass on what is said just now in a chat, to those in this process who listen to it."""
    _bus_of(journal).pass_on(chat_log, passing)


def wake(journal: Journal, log: str, run_id: str | None = None) -> None:
    """Have those look who listen to this log: there may be more to read, of this run if given."""
    _bus_of(journal).wake(log, run_id)


def heed(journal: Journal, told: Callable[[str], None]) -> Callable[[], None]:
    """Call `told`, on the loop, with the name of each log of which there may be more to read.

    It is told of more than there is, and not of what other processes do. It must not wait; that it
    raises harms nobody (W-8). Returns what ends it.
    """
    return _bus_of(journal).heed(told)


def attend(journal: Journal, runtime: Runtime) -> Callable[[], None]:
    """Know of a runtime that performs members here: it judges at once what is said of their calls.

    Whoever listens is woken by what it keeps. Returns what ends it.
    """
    return _bus_of(journal).attend(runtime)


def runtime_of(journal: Journal, run_id: str) -> Runtime | None:
    """Return the runtime in this process that owns a run; None where none does."""
    return _bus_of(journal).runtime_of(run_id)


def listen(journal: Journal, chat_log: str, *others: str) -> Listener:
    """Begin to listen to a chat; logs beside its own only say that there may be more to read.

    Whoever drops it listens no more; `unlisten` says so at once.
    """
    listener = Listener(chat_log, *others)
    _bus_of(journal).add(listener)
    return listener


def unlisten(journal: Journal, listener: Listener) -> None:
    """Listen no more."""
    _bus_of(journal).remove(listener)
