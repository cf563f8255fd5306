"""One subscription: a run's entries, and beside them what is said of it (S-70, F-40 … F-46)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from ..models.errors import TurnlockError
from ..runtime.errors import CursorAhead
from ..runtime.journal.ledger import Cursor
from . import shown
from .envelope import Envelopes
from .problems import problem_of
from .shown import Hello, Sent, Shown
from .subscriber import BYTES, Subscriber, batch_of
from .tail import Place, Read, Tail

if TYPE_CHECKING:
    from .hub import Hub


class _Followed:
    """One run of a subscription: read from the journal until its end, then live."""

    def __init__(self, run_id: str, after: Cursor, *, wake: Callable[[], None]) -> None:
        self.run_id: Final = run_id
        self.place: Final = Place(after)
        self.envelopes: Final = Envelopes(run_id)
        self.wake = wake
        self.tail: Tail | None = None
        """What it is live on; None while it reads the journal."""
        self.taken = 0
        self.first: Read | None = None
        """A page that was read, and not told."""
        self.waiting: deque[Shown] = deque()
        """What was read, and not handed out."""
        self.heard: dict[tuple[str, str], int] = {}
        self.said = 0
        self.diagnosed = 0

    def join(self, tail: Tail) -> None:
        """Go on live, behind what was read."""
        self.tail, self.taken = tail, tail.end
        self.said, self.heard = tail.deltas.said, tail.deltas.heard()
        self.diagnosed = tail.diagnoses
        tail.members.add(self)

    def leave(self) -> Tail | None:
        """Be live no more."""
        tail, self.tail = self.tail, None
        if tail is not None:
            tail.members.discard(self)
        return tail

    def take(self, tail: Tail) -> None:
        """Take what waits of the run's end; what was read before is left out."""
        for batch in tail.batches(self.taken):
            for it in batch:
                if not isinstance(it, Sent):
                    self.waiting.append(it)
                elif it.cursor > self.place.at:
                    self.waiting.append(it)
                    self.place.at = self.place.shown = it.cursor
        self.taken = tail.end


class HubSubscription(Subscriber):
    """What a subscriber of a run is shown. `Hub.subscribe` makes it."""

    def __init__(  # noqa: PLR0913 - all that can be asked for
        self,
        *,
        hub: Hub,
        run_id: str,
        after: Cursor,
        follow: bool,
        diagnostics: bool,
        children: bool,
    ) -> None:
        """Prepare; nothing is read yet."""
        super().__init__(hub, run_id)
        self.children = children
        self._follow = follow
        self._diagnostics = diagnostics
        self._own = _Followed(run_id, after, wake=self.wake)
        self._followed: dict[str, _Followed] = {run_id: self._own}
        self._said: deque[Shown] = deque()
        self._head: Cursor | None = None

    async def open(self) -> Hello:
        """Read the first page, and say where the run ends.

        Raises `UnknownRun`, `RunForgotten`, `CursorAhead`, and what the journal raises.
        """
        if self._head is None:
            own = self._own
            own.first = await self._hub.read(self.run_id, own.place.at)
            page = own.first.page
            ends = await self._hub.journal.ends([self.run_id])
            head = ends.get(self.run_id, page.head)
            if own.place.at > max(head, page.head):
                raise CursorAhead(self.run_id, asked=own.place.at, head=head)
            self._head = head
            self._said.append(shown.hello(self.run_id, head))
            if self.children:
                self.add_children(await self._hub.family.of(self.run_id))
        return shown.hello(self.run_id, self._head)

    async def __anext__(self) -> tuple[Shown, ...]:
        """Return the next batch, as soon as there is something to say.

        Mostly it is the one batch that all take who are live and not behind: a thousand come here
        for each entry, so it is asked no more than has to be.
        """
        self._since = None
        own, loop = self._own, self._loop
        while self._is_plain and (tail := own.tail) is not None and own.said == tail.deltas.said:
            ahead = tail.end - own.taken
            if ahead:
                batch = tail.latest
                if ahead > 1 or batch is None or batch.before != own.place.at:
                    break
                if batch.size > BYTES:
                    break
                own.taken += 1
                own.place.at, own.place.shown = batch.place.at, batch.place.shown
                self._hub.counts.sent += batch.entries
                self._shown_at = self._since = loop.time()
                return batch
            self._woken = loop.create_future()
            try:
                await self._woken
            finally:
                self._woken = None
        told = await self._slowly()
        self._shown_at = self._since = loop.time()
        return told

    async def _slowly(self) -> tuple[Shown, ...]:
        try:
            if self._head is None:
                await self.open()
            batch = await self._next()
        except TurnlockError as error:
            self._finish(shown.failed(self.run_id, problem_of(error).encoded()))
            batch = batch_of(self._said)
        self._hub.counts.sent += sum(isinstance(it, Sent) for it in batch)
        own = self._own
        self._is_plain = (
            not (self._ending or self._closed or self._beat or self._said or own.waiting)
            and not self._diagnostics
            and len(self._followed) == 1
        )
        return batch

    async def _next(self) -> tuple[Shown, ...]:
        while True:
            if self._ending:
                self._ending = False
                self._finish(shown.bye(self.run_id, self._hub.settings.retry))
            if self._said:
                return batch_of(self._said)
            if self._closed:
                raise StopAsyncIteration
            for it in tuple(self._followed.values()):
                await self._turn(it)
                if it.waiting:
                    self._give_way(it)
                    return batch_of(it.waiting)
            if self._said:
                continue
            if any(it.tail is None for it in self._followed.values()):
                continue
            if self._beat:
                self._beat = False
                return ()
            await self._wait()

    def _give_way(self, it: _Followed) -> None:
        """Look at the other runs first next time."""
        if len(self._followed) > 1:
            self._followed[it.run_id] = self._followed.pop(it.run_id)

    async def _turn(self, it: _Followed) -> None:
        """Have what there is of a run wait to be handed out."""
        if it.waiting:
            return
        tail = it.tail
        if tail is not None and it.taken < tail.begin:
            self._leave(it)
            self._hub.counts.replays += 1
            if it is self._own:
                self._said.append(shown.replay(it.run_id, it.place.at))
            return
        if tail is None:
            try:
                await self._read(it)
            except TurnlockError:
                if it is self._own:
                    raise
                self._followed.pop(it.run_id, None)  # a sub-agent's run was removed, say
            return
        if it.taken < tail.end:
            it.take(tail)
        if it.said < tail.deltas.said:
            it.said = tail.deltas.said
            it.waiting.extend(tail.deltas.since(it.heard))
        if self._diagnostics and it.diagnosed < tail.diagnoses:
            missed = min(tail.diagnoses - it.diagnosed, len(tail.diagnosed))
            it.waiting.extend(tuple(tail.diagnosed)[-missed:])
            it.diagnosed = tail.diagnoses

    async def _read(self, it: _Followed) -> None:
        """Read on in the journal; at its end go on live, or end."""
        read, it.first = it.first, None
        if read is None:
            read = await self._hub.read(it.run_id, it.place.at)
            if self._closed:
                return
        page = read.page
        if page.head < it.place.at and page.head < it.place.shown:
            raise CursorAhead(it.run_id, asked=it.place.at, head=page.head)
        it.waiting.extend(it.place.read(it.envelopes, read))
        has_more = bool(page.entries or page.gaps) and it.place.at < page.head
        if not self._follow:
            self._stop_at_head(it, has_more=has_more)
        elif not has_more:
            self._go_live(it)

    def _stop_at_head(self, it: _Followed, *, has_more: bool) -> None:
        head = self._head
        if it is self._own and head is not None:
            while it.waiting and isinstance(last := it.waiting[-1], Sent) and last.cursor > head:
                it.waiting.pop()
            has_more &= it.place.at < head
        if has_more:
            return
        it.tail = None
        del self._followed[it.run_id]
        self._said.extend(it.waiting)
        it.waiting.clear()
        if not self._followed:
            self._finish(shown.end(self.run_id, self._head or self._own.place.at))

    def _go_live(self, it: _Followed) -> None:
        tail = self._hub.tail(it.run_id, it.place)
        if tail.place.at > it.place.at:
            tail.look()  # unless the journal was put back, it has what was read there
            return
        it.join(tail)
        if self._diagnostics:
            self._hub.diagnose(it.run_id)
        if it is self._own:
            it.waiting.append(shown.live(it.run_id, it.place.shown))
        tail.look()  # what was kept after the page was read, and before anybody looked

    def add_children(self, run_ids: Iterable[str]) -> None:
        """Follow these runs, too, from their beginning (S-56)."""
        for run_id in run_ids:
            if run_id not in self._followed and not self._closed:
                it = _Followed(run_id, Cursor(), wake=self.wake)
                self._followed[run_id], self._is_plain = it, False
                self.wake()

    # How it ends.

    def fail(self, run_id: str, error: TurnlockError) -> None:
        """End it, and say why, once what was read is handed out."""
        it = self._followed.get(run_id)
        if it is None or it.tail is None:
            return
        it.take(it.tail)
        self._leave(it)
        if it is self._own:
            self._said.extend(it.waiting)
            it.waiting.clear()
            self._finish(shown.failed(run_id, problem_of(error).encoded()))
        else:
            del self._followed[run_id]
        self.wake()

    def _finish(self, last: Shown) -> None:
        self._said.append(last)
        self.close()

    def close(self) -> None:
        """End it: nothing is kept of it, and an iteration under way ends."""
        for it in self._followed.values():
            self._leave(it)
        super().close()

    def _leave(self, it: _Followed) -> None:
        tail = it.leave()
        if tail is not None:
            self._hub.left(tail)
