"""Where runs stand, for whoever looks at them: views with who decided what, and no old fact read.

A kernel is made of the journal's snapshot and the facts after it, and knows less than its facts: of
a call that has ended neither the arguments nor who decided. So the facts of the open turn are read
back from the journal's end, page by page, to its TURN_OPENED. What an older turn told is not read.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Final, cast
from weakref import WeakValueDictionary

import attrs

from ..engine.kernel import Kernel
from ..models.errors import CorruptJournal, TurnlockError
from ..models.facts import Fact, TurnFact, TurnOpened
from ..models.record import changed
from ..views.call_view import CallView
from ..views.run_view import RunView
from ..views.turn_view import TurnView
from .journal.contract import PAGE, Journal, RunEntry, run_forgotten

RUNS: Final = 256
"""Runs of which a view is kept."""
CALLS: Final = 50_000
"""Calls that the kept views have, all together; beyond it the one that nobody asked for longest
goes first."""
FIRST_PAGE: Final = 64
"""Facts that are read back first: a turn that closed lately is not far. Each page has twice as
many."""
SLICE: Final = 500
"""Facts that are folded before other tasks are let run: some milliseconds."""


@attrs.frozen(kw_only=True)
class Looked:
    """A run as the journal lists it, and its view, which is of that moment or of a later one."""

    entry: RunEntry
    view: RunView


@attrs.define(kw_only=True)
class _Kept:
    view: RunView
    closed: dict[str, TurnView] = attrs.field(factory=dict[str, TurnView])
    """Closed turns that were read back, by their ids."""

    @property
    def calls(self) -> int:
        turns = (self.view.turn, *self.view.recent, *self.closed.values())
        return sum(len(turn.calls) for turn in turns if turn is not None)


class Looking:
    """Views of the runs of a journal, whoever owns them.

    A view that was made is kept, and the next one costs the facts that are new. They are bounded,
    and of a run that is looked at by many at once one reads.
    """

    def __init__(self, journal: Journal, *, runs: int = RUNS, calls: int = CALLS) -> None:
        """Know nothing yet."""
        self._journal = journal
        self._runs = runs
        self._calls = calls
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._reading: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def look(self, run_id: str) -> Looked:
        """Return where a run stands; the view is a fold of all that was kept when it was asked for.

        Its turn is the fold of all the turn's facts; of the turns before it `recent` has those that
        closed while it was kept here. Raises `UnknownRun`, `RunForgotten`, `CorruptJournal`, and
        what the journal raises.
        """
        async with self._reading.setdefault(run_id, asyncio.Lock()):
            return await self._look(run_id)

    async def call(self, run_id: str, turn_id: str, invocation_id: str) -> CallView | None:
        """Return a call of the open turn, or of a closed one as its last fact left it.

        Of the turns with this id the last. The facts since it was opened are read back: for a turn
        that the kernel remembers (K-54) these are few. None where the run never had it.
        """
        async with self._reading.setdefault(run_id, asyncio.Lock()):
            view = (await self._look(run_id)).view
            turn = view.turn
            if turn is None or turn.turn_id != turn_id:
                turn = await self._closed(view, turn_id)
            return None if turn is None else turn.calls.get(invocation_id)

    async def _look(self, run_id: str) -> Looked:
        try:
            entry = await known(self._journal, run_id)
            kept = self._kept.get(run_id)
            if kept is None or kept.view.run != entry.run or kept.view.sequence > entry.sequence:
                kept = _Kept(view=await view_of(self._journal, entry))
            elif kept.view.sequence < entry.sequence:
                await self._go_on(kept)
        except TurnlockError:
            self._kept.pop(run_id, None)
            raise
        self._keep(run_id, kept)
        return Looked(entry=entry, view=kept.view)

    async def _go_on(self, kept: _Kept) -> None:
        """Fold what is new."""
        view, run_id = kept.view, kept.view.run_id
        while page := await self._journal.read(run_id, after=view.sequence, limit=SLICE):
            view = view.after(page)
            for fact in page:
                if isinstance(fact, TurnOpened):
                    kept.closed.pop(fact.turn_id, None)
        kept.view = view

    def _keep(self, run_id: str, kept: _Kept) -> None:
        self._kept[run_id] = kept
        self._kept.move_to_end(run_id)
        calls = sum(it.calls for it in self._kept.values())
        while len(self._kept) > self._runs or (calls > self._calls and len(self._kept) > 1):
            _, gone = self._kept.popitem(last=False)
            calls -= gone.calls
        if calls > self._calls:  # one alone: what is over goes first
            kept.closed.clear()
            kept.view = changed(kept.view, recent=())

    async def _closed(self, view: RunView, turn_id: str) -> TurnView | None:
        recent = (it for it in reversed(view.recent) if it.turn_id == turn_id)
        found = next(recent, None)
        kept = self._kept.get(view.run_id)
        if found is None and kept is not None:
            found = kept.closed.get(turn_id)
        if found is None:
            found = await turn_before(
                self._journal, view.run_id, turn_id=turn_id, before=view.sequence
            )
            if found is not None and kept is not None:
                kept.closed[turn_id] = found
                self._keep(view.run_id, kept)
        return found


async def known(journal: Journal, run_id: str) -> RunEntry:
    """Return a run's entry. Raises `UnknownRun`, and `RunForgotten` for one that was removed."""
    entry = await journal.entry(run_id)
    if entry.forgotten is not None:
        raise run_forgotten(run_id, at=entry.forgotten)
    return entry


async def view_of(journal: Journal, entry: RunEntry) -> RunView:
    """Return the view of a run, made of its snapshot, the facts after it, and its open turn's.

    It equals that of all facts, but for `recent`: no closed turn is read. Raises `CorruptJournal`
    for what no run can have written.
    """
    run_id = entry.run.run_id
    snapshot = await journal.snapshot(run_id)
    after = 0 if snapshot is None else snapshot.sequence
    tail = [fact async for fact in journal.facts(run_id, after=after)]
    kernel = Kernel.recover(entry.run, (), snapshot=snapshot)
    for some in _commits(tail):
        kernel.catch_up(some)
        await asyncio.sleep(0)
    latest = tail[-1] if tail else await _fact(journal, run_id, kernel.sequence)
    view = RunView.of_kernel(kernel, latest=latest)
    if view.turn is None:
        return view
    begin = next(
        (at for at in range(len(tail) - 1, -1, -1) if isinstance(tail[at], TurnOpened)), None
    )
    if begin is None:
        older = await facts_of_turn(journal, run_id, turn_id=view.turn.turn_id, before=after)
        if not older:
            raise _lost(1)
        told = [*older, *tail]
    else:
        told = tail[begin:]
    return changed(view, turn=await fold_turn(told, view.turn.turn_id))


async def turn_before(
    journal: Journal, run_id: str, *, turn_id: str, before: int
) -> TurnView | None:
    """Return the last turn with this id among the facts up to `before`, None where there is none.

    It reads back to where that turn was opened, and nothing before.
    """
    told = await facts_of_turn(journal, run_id, turn_id=turn_id, before=before)
    return await fold_turn(told, turn_id) if told else None


async def facts_of_turn(
    journal: Journal, run_id: str, *, turn_id: str, before: int
) -> list[TurnFact]:
    """Return the facts up to `before` of the last turn with this id, its TURN_OPENED first.

    Empty where there is none. It reads back to where that turn was opened, and nothing before.
    """
    pages: list[Sequence[TurnFact]] = []
    async for page in _pages_back(journal, run_id, before=before):
        about = [it for it in page if isinstance(it, TurnFact) and it.turn_id == turn_id]
        opened = (at for at in range(len(about) - 1, -1, -1) if isinstance(about[at], TurnOpened))
        begin = next(opened, None)
        pages.append(about[begin:])
        if begin is not None:
            return [fact for some in reversed(pages) for fact in some]
    return []


async def _pages_back(
    journal: Journal, run_id: str, *, before: int
) -> AsyncIterator[Sequence[Fact]]:
    size = FIRST_PAGE
    while before > 0:
        last = begin = max(0, before - size)
        size = min(2 * size, PAGE)
        page: list[Fact] = []
        while last < before:
            some = await journal.read(run_id, after=last, limit=before - last)
            if not some:
                raise _lost(last + 1)
            page += some
            last = page[-1].sequence
        yield page
        before = begin


async def fold_turn(facts: Sequence[Fact], turn_id: str) -> TurnView:
    """Fold the facts of one turn; the first is its TURN_OPENED, and others are passed over."""
    turn = TurnView.opened(cast("TurnOpened", facts[0]))
    for some in _slices(facts[1:]):
        for fact in some:
            if isinstance(fact, TurnFact) and not turn.closed and fact.turn_id == turn_id:
                turn = turn.after(fact)
        await asyncio.sleep(0)
    return turn


def _slices(facts: Sequence[Fact]) -> Iterator[Sequence[Fact]]:
    return (facts[at : at + SLICE] for at in range(0, len(facts), SLICE))


def _commits(facts: Sequence[Fact]) -> Iterator[Sequence[Fact]]:
    """Cut facts into slices of whole commits: a kernel takes no half of one."""
    begin = 0
    for at, fact in enumerate(facts, start=1):
        if at == len(facts) or (at - begin >= SLICE and fact.sequence == fact.commit):
            yield facts[begin:at]
            begin = at


async def _fact(journal: Journal, run_id: str, sequence: int) -> Fact | None:
    if not sequence:
        return None
    page = await journal.read(run_id, after=sequence - 1, limit=1)
    if not page:
        raise _lost(sequence)
    return page[0]


def _lost(sequence: int) -> CorruptJournal:
    return CorruptJournal(
        sequence=sequence,
        cause="the journal ends before its own snapshot",
        fix="look at the run with: turnlock check --db JOURNAL",
    )
