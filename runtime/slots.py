"""How many tools run at once – over all, for each run, for each tool – and who is next.

Runs take turns. In one line for all, a run with one call would wait behind each of the thousand
that another run has ready; so each call is given a round when it asks: `IN_A_ROW` calls of a run
share one, the next have the one after, and none has a round that is over already. Lower rounds go
first, and of one round who asked first (start-time fair queueing, all runs weighing the same). So a
call waits for at most `IN_A_ROW` calls of each other run, and for those of its own before it.

Who waits costs a small record: no task, no future.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from heapq import heappop, heappush
from typing import Final, TypeAlias

import attrs

IN_A_ROW: Final = 8
"""Calls of one run that go together. A turn has rarely more: started together, their claims are one
append. One by one in turn with 999 other runs, a turn of three took nine appends instead of five,
and its run was told no earlier (measured)."""

Line: TypeAlias = tuple[str, str | None]
"""A run, and the tool that is waited for; None: all sequential tools of the run wait in one."""
Bound: TypeAlias = tuple[str, str]
"""The bound that stops a call: of its run, of its tool, of the sequential tools of its run, or of
all tools that run in threads."""
Place: TypeAlias = tuple[int, int]
"""Round and ticket: the order in which calls are let in."""


@attrs.define(eq=False, kw_only=True)
class Slot:
    """What a call asks for, and then holds."""

    run_id: str
    tool: str
    start: Callable[[Slot], None]
    """Called once it is let in: at once, or while another gives a slot back. It may neither raise
    nor ask for anything here."""
    concurrency: int | None = None
    """How many calls of the tool run at once, over all runs; None: as many as there are slots."""
    sequential: bool = False
    """Of the sequential tools of a run one runs at a time, in the order in which they asked."""
    threaded: bool = False
    """Whether it runs in a thread."""
    delegates: bool = False
    """Whether it does nothing but wait for calls of other runs: those find a slot all the same."""
    place: Place = (0, 0)
    """Given by the `Limiter`."""
    taken: bool = False
    """Whether it is held now."""

    @property
    def line(self) -> Line:
        """The line that it waits in."""
        return self.run_id, None if self.sequential else self.tool

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """The bounds that it counts under."""
        bounds: tuple[Bound, ...] = ("run", self.run_id), ("tool", self.tool)
        if self.sequential:
            bounds = (*bounds, ("sequential", self.run_id))
        return (*bounds, ("threads", "")) if self.threaded else bounds


class Limiter:
    """Lets calls in, as many at once as the bounds allow, the runs in turn.

    Who cannot start because of one bound does not stand in the way of others: a call takes all its
    slots together, or none. Calls of one kind wait in a line. The first of a line is either ready
    to be tried, or parked at the one bound that stopped it, until a slot is given back there: so
    that costs the same whether ten calls wait or ten thousand.
    """

    def __init__(self, *, all_runs: int, each_run: int, threads: int | None = None) -> None:
        """Begin with all slots free; of them so many in threads, None: all."""
        self._all = all_runs
        self._each: Final = each_run
        self._threads: Final = threads
        self._taken = 0
        self._of: Counter[Bound] = Counter()
        """How many run under each bound."""
        self._lines: dict[Line, deque[Slot]] = {}
        self._ready: list[tuple[Place, Line, Bound | None]] = []
        """The places of those that are first in their lines and may be tried, and where they were
        parked before. One that is not the first any more is passed over."""
        self._parked: dict[Bound, list[tuple[Place, Line]]] = {}
        self._tickets = 0
        self._round = 0
        """The highest round from which a call was let in."""
        self._asked: dict[str, int] = {}
        """By run: `IN_A_ROW` times the round of its call that asked last, and how many of that
        round had asked before. Nothing of a run in which nobody waits any more."""
        self._waiting: Counter[str] = Counter()

    def __len__(self) -> int:
        """Count the slots that are taken."""
        return self._taken

    def close(self) -> None:
        """Let nobody in any more."""
        self._all = 0

    def ask(self, slot: Slot) -> None:
        """Have it started as soon as all its bounds let it in; give it back when it has ended."""
        slot.place = self._place(slot.run_id)
        self._waiting[slot.run_id] += 1
        line = self._lines.setdefault(slot.line, deque())
        line.append(slot)
        if len(line) == 1:
            self._ready_first(slot.line)
        self._start()

    def has_room(self, run_id: str) -> bool:
        """Whether a call of this run may find a slot, its tool's own bounds left out."""
        return self._taken < self._all and self._of["run", run_id] < self._each

    def take(self, slot: Slot) -> bool:
        """Have it started at once, or not at all: then it does not wait. Say whether it was.

        It passes nobody by: while a slot is free, whoever waits is held back by a bound of his own,
        and where one of its own line is, it stands behind him.
        """
        if self._taken >= self._all or slot.line in self._lines or self._stopped_by(slot):
            return False
        self.ask(slot)
        return slot.taken

    def give_back(self, slot: Slot) -> None:
        """Have others take what it held; if it was not let in yet, it waits no more."""
        if not slot.taken:
            self._leave(slot)
            return
        slot.taken = False
        self._taken -= not slot.delegates
        for bound in slot.bounds:
            self._of[bound] -= 1
            if not self._of[bound]:
                del self._of[bound]
            self._unpark(bound)
        self._start()

    @contextmanager
    def held(self, slot: Slot) -> Generator[None]:
        """Give the slot back in the end; not where a coroutine is destroyed instead of ended.

        Then its loop is gone, and nobody else can start there either.
        """
        try:
            yield
        except GeneratorExit:
            raise
        except BaseException:
            self.give_back(slot)
            raise
        self.give_back(slot)

    def _place(self, run_id: str) -> Place:
        """Return the place of the call that asks now, behind those of its run."""
        self._tickets += 1
        asked = max(self._round * IN_A_ROW, self._asked.get(run_id, -1) + 1)
        self._asked[run_id] = asked
        return asked // IN_A_ROW, self._tickets

    def _leave(self, slot: Slot) -> None:
        line = self._lines.get(slot.line)
        if line is not None and slot in line:
            was_first = line[0] is slot
            line.remove(slot)
            self._waits_no_more(slot)
            if was_first:
                self._ready_first(slot.line)
            self._start()

    def _start(self) -> None:
        """Let in whoever can start, the lowest place first."""
        while self._taken < self._all and self._ready:
            place, line, parked_at = heappop(self._ready)
            first = self._lines[line][0] if line in self._lines else None
            stopped_by = None
            if first is not None and first.place == place:
                stopped_by = self._stopped_by(first)
                if stopped_by is None:
                    self._let_in(first)
                else:
                    heappush(self._parked.setdefault(stopped_by, []), (place, line))
            if parked_at is not None and stopped_by != parked_at:
                self._unpark(parked_at)  # there may be room for another

    def _stopped_by(self, slot: Slot) -> Bound | None:
        most = {
            "run": self._each,
            "tool": slot.concurrency,
            "sequential": 1,
            "threads": self._threads,
        }
        for bound in slot.bounds:
            at_most = most[bound[0]]
            if at_most is not None and self._of[bound] >= at_most:
                return bound
        return None

    def _let_in(self, slot: Slot) -> None:
        self._lines[slot.line].popleft()
        self._ready_first(slot.line)
        self._waits_no_more(slot)
        self._round = max(self._round, slot.place[0])
        self._taken += not slot.delegates
        for bound in slot.bounds:
            self._of[bound] += 1
        slot.taken = True
        slot.start(slot)

    def _waits_no_more(self, slot: Slot) -> None:
        self._waiting[slot.run_id] -= 1
        if not self._waiting[slot.run_id]:
            del self._waiting[slot.run_id]
            del self._asked[slot.run_id]

    def _ready_first(self, line: Line) -> None:
        """Have the first of a line tried; forget a line in which nobody waits."""
        if self._lines[line]:
            heappush(self._ready, (self._lines[line][0].place, line, None))
        else:
            del self._lines[line]

    def _unpark(self, bound: Bound) -> None:
        """Have the lowest place of those that this bound has stopped tried again."""
        parked = self._parked.get(bound)
        if parked:
            place, line = heappop(parked)
            heappush(self._ready, (place, line, bound))
            if not parked:
                del self._parked[bound]
