"""One chat as one stream: its log, what the facts of its members say, and transients (W-71).

Each source is told in its own order, and each thing once for a cursor. What is there already comes
by time, the log first; what comes, as it comes. Whoever listens pulls (W-8): nothing is read that
nobody asks for, and of what goes by only so much waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Final, Self, TypeVar

from ..models.errors import UnknownRun
from ..runtime.errors import CursorAhead, JournalError
from ..runtime.journal.ledger import START, Cursor
from ..runtime.scheduling import retried
from . import passing
from .configuration import Configuration
from .entries import Reply
from .events import ChatEvent, EntryEvent, LiveEvent, Places, ProjectionEvent, TransientEvent
from .names import MemberName
from .replying import is_late
from .sources import LogSource, Projected, RunSource, Source, Told
from .watching import unwatch, watch

if TYPE_CHECKING:
    from .chat import Chat

T = TypeVar("T")

RETRIES: Final = (0.05, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Pauses after which a journal that failed is read again; then the stream ends with its error."""


class Events:
    """The events of a chat after a cursor: an iterator for one task; `Chat.events` makes it.

    Close it when done, or enter it; one that is dropped costs nothing more.
    """

    def __init__(self, chat: Chat, *, after: str, follow: bool) -> None:
        """Prepare; nothing is read yet. Raises `BadCursor`."""
        self._chat = chat
        self._journal = chat.journal
        self._follow = follow
        self._places = Places.read(after, world=chat.world.name, chat=chat.name)
        self._log = LogSource(self._journal, chat.log, after=self._places.number)
        self._runs: dict[MemberName, RunSource] = {}
        self._number = 0
        self.listener: passing.Listener = passing.Listener(chat.log)
        self.cursor = after
        """How far it has told."""
        self.head = ""
        """Where the chat ended when this was opened."""
        self._said: deque[ChatEvent] = deque()
        self._opened = self._live = self._closed = False

    async def open(self) -> Self:
        """Begin to listen, and see whether the cursor is a place here; the first event does it too.

        Raises `UnknownWorld`, `UnknownChat`, `CursorAhead` where the chat ends before the cursor
        (S-71), and what the journal raises.
        """
        if self._opened or self._closed:
            return self
        chat = self._chat
        if self._follow:
            self.listener = passing.listen(self._journal, chat.log, chat.world.log)
        try:
            await chat.configuration()
            await self._look()
            self.head = str(await self._check_places())
        except BaseException:
            passing.unlisten(self._journal, self.listener)
            raise
        self._opened = True
        if self._follow:
            watch(self._journal, self)
        return self

    @property
    def world_log(self) -> str:
        """The log of the world, of which a part is followed."""
        return self._chat.world.log

    @property
    def logs_read(self) -> Mapping[str, int]:
        """How far the logs were read: the chat's, and the world's."""
        return {self._chat.log: self._log.read, self.world_log: self._number}

    @property
    def runs_read(self) -> Mapping[str, int]:
        """How far the facts of the members' runs were read."""
        return {member.run_id: source.read for member, source in self._runs.items()}

    async def __aenter__(self) -> Self:
        """Return it, opened."""
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        await self.aclose()

    def __aiter__(self) -> Self:
        """Return itself."""
        return self

    async def aclose(self) -> None:
        """Listen no more; an iteration under way ends at once."""
        self._closed = True
        unwatch(self._journal, self)
        passing.unlisten(self._journal, self.listener)
        self.listener.wake()

    async def __anext__(self) -> ChatEvent:
        """Return the next event, once there is one. Raises what `open` and the journal raise."""
        await self.open()
        while not self._closed:
            if not self._said:
                await self._read_on()
            if self._said:
                event = self._said.popleft()
                if not isinstance(event, TransientEvent):
                    self.cursor = event.cursor
                return event
            if not self._follow:
                await self.aclose()
            else:
                await self.listener.wait()
        raise StopAsyncIteration

    async def _read_on(self) -> None:
        """Find what is told next: what goes by, and one event more behind it."""
        if self.listener.stale or self.listener.grown:
            await self._see_what_grew()
        source = await self._first()
        head = None if source is None else source.head
        late = isinstance(head, Told) and await self._is_late(head)
        if self._live:
            gone_by = self.listener.take()
            self._said.extend(
                TransientEvent(transient=it.what, dropped=it.dropped) for it in gone_by
            )
        if source is not None and head is not None:
            source.pop()
            self._said.append(self._told(head, late=late))
        elif not self._live:
            self._live = True
            self._said.append(LiveEvent(cursor=str(self._places)))

    async def _first(self) -> Source | None:
        """Return the source whose head is told next: the oldest, the log first."""
        sources: list[Source] = [self._log, *self._runs.values()]
        for source in sources:
            if source.head is None and not source.drained:
                await self._kept(source.read_on)
        with_head = [(it.head.at, place) for place, it in enumerate(sources) if it.head is not None]
        return sources[min(with_head)[1]] if with_head else None

    def _told(self, head: Told | Projected, *, late: bool) -> ChatEvent:
        """Return the event; what was said of it while it came is told by it."""
        if isinstance(head, Told):
            entry = head.entry
            self._places = self._places.after(entry.number)
            self.listener.forget(entry.entry_id)
            return EntryEvent(
                cursor=str(self._places),
                log=self._chat.log,
                entry=entry,
                says=head.says,
                late=late,
            )
        self._places = self._places.after_fact(head.member, head.place)
        self.listener.forget(head.projection.id)
        return ProjectionEvent(cursor=str(self._places), projection=head.projection)

    async def _is_late(self, head: Told) -> bool:
        reply = head.says
        if not isinstance(reply, Reply):
            return False
        return await self._kept(lambda: is_late(self._journal, reply, at=head.at))

    async def _see_what_grew(self) -> None:
        """Have those sources read on of which there may be more."""
        listener = self.listener
        grown, listener.grown = listener.grown, set()
        sources: dict[str, Source] = {self._chat.log: self._log}
        sources |= {member.run_id: source for member, source in self._runs.items()}
        if not listener.stale and grown <= sources.keys():
            for name in grown:
                sources[name].drained = False
            return
        listener.stale = False  # what is entered while it looks has it look again
        try:
            await self._kept(self._look)
        except BaseException:
            listener.stale = True
            raise

    async def _look(self) -> None:
        """See which sources have grown, and whether there are others."""
        chat = self._chat
        last = {entry.name: entry.last for entry in await self._journal.logs(chat.world.log)}
        known = await chat.world.configuration()
        self._number = known.number
        for member in members_of(known, chat.name):
            if member not in self._runs:
                after = self._places.runs.get(member, START)
                self._runs[member] = RunSource(self._journal, member, after=after)
        ends = await self._journal.ends([it.run_id for it in self._runs])
        if last.get(chat.log, 0) > self._log.read:
            self._log.drained = False
        for member, source in self._runs.items():
            if ends.get(member.run_id, START).sequence > source.read:
                source.drained = False

    async def _check_places(self) -> Places:
        """Return where the chat ends. Raises `CursorAhead` for a cursor beyond that (S-71)."""
        chat, places = self._chat, self._places
        head = await ends_of(chat, {*self._runs, *places.runs})
        ahead = places.number > head.number
        for member, at in places.runs.items():
            beyond = at > head.runs.get(member, START)
            ahead = ahead or (beyond and not await self._is_forgotten(member))
        if ahead:
            raise CursorAhead(chat.log, asked=places, head=head, what="chat")
        return head

    async def _is_forgotten(self, member: MemberName) -> bool:
        try:
            return (await self._journal.entry(member.run_id)).forgotten is not None
        except UnknownRun:
            return False

    async def _kept(self, read: Callable[[], Awaitable[T]]) -> T:
        """Read what a journal that fails may give a moment later."""
        return await retried(
            read,
            pauses=RETRIES,
            on=(JournalError,),
            is_hopeless=lambda: self._closed,
        )


async def ends_of(chat: Chat, members: Collection[MemberName]) -> Places:
    """Return where a chat ends, and the runs of these members."""
    logs = {entry.name: entry.last for entry in await chat.journal.logs(chat.log)}
    ends = await chat.journal.ends([member.run_id for member in members])
    ended = {it: Cursor(ends.get(it.run_id, START).sequence) for it in members}
    return Places(logs.get(chat.log, 0), {it: at for it, at in ended.items() if at > START})


def members_of(known: Configuration, chat: str) -> list[MemberName]:
    """Return all who are, or were, in a chat, under each of their runs."""
    over = [member for member in known.ended() if member.chat == chat]
    return [*over, *known.members(chat)]
