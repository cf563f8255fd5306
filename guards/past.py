"""What a run's kernel does not tell, read from its facts when it is needed, and not before.

A kernel keeps little: of a call that has ended no arguments, of a turn that closed only its name,
and after a while not even that (K-54). A guard has to know: the outcome of a call is replayed,
never made again, however old it is (guards.md 5.2). So what is decided about a run is a pure
function of its kernel and its `Past`; where that lacks something it raises `Unread`, the facts are
read (`Past.read`), and it is asked again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Self, TypeAlias, cast

import attrs

from ..engine.kernel import Kernel
from ..models.calls import Call
from ..models.errors import CorruptJournal
from ..models.facts import (
    CallAdded,
    ExecutionRetried,
    Fact,
    ToolExecutionStarted,
    TurnFact,
    TurnInterrupted,
    TurnOpened,
    TurnSettled,
)
from ..runtime.journal.contract import Journal
from ..runtime.looking import facts_of_turn
from ..views.turn_view import TurnView

TURNS: Final = 32
"""Turns of one run whose facts are kept; beyond it the one that nobody asked for longest goes."""

Turn: TypeAlias = tuple[str, Sequence[str]]
"""The name of a turn, and the ids of its calls."""


class Unread(Exception):
    """Facts are needed that nobody has read yet: those of a turn, or the order of all (None)."""

    def __init__(self, turn_id: str | None) -> None:
        """Say of which turn."""
        super().__init__(turn_id)
        self.turn_id = turn_id


@attrs.frozen(kw_only=True)
class Told:
    """One turn, as the facts of its run up to `sequence` tell of it."""

    view: TurnView
    opened: Mapping[str, Call]
    """Its calls by their ids, as the model asked for them."""
    workers: Mapping[str, str | None]
    """By the ids of calls: who has started it last, also when it is lost, or has ended."""
    sequence: int

    @classmethod
    def of(cls, opening: TurnOpened) -> Self:
        """Begin with the fact that opened it."""
        return cls(
            view=TurnView.opened(opening),
            opened={call.invocation_id: call for call in opening.calls},
            workers={},
            sequence=opening.sequence,
        )

    def after(self, facts: Iterable[Fact], *, sequence: int) -> Self:
        """Return it after the next facts of the run, which end at `sequence`."""
        view, opened, workers = self.view, dict(self.opened), dict(self.workers)
        for fact in facts:
            if not isinstance(fact, TurnFact) or fact.turn_id != view.turn_id or view.closed:
                continue
            view = view.after(fact)
            if isinstance(fact, CallAdded):
                opened[fact.call.invocation_id] = fact.call
            elif isinstance(fact, ToolExecutionStarted | ExecutionRetried):
                workers[fact.invocation_id] = fact.worker
        return attrs.evolve(self, view=view, opened=opened, workers=workers, sequence=sequence)


class Past:
    """The turns of one run, as far as somebody has asked for them."""

    def __init__(self, journal: Journal, run_id: str) -> None:
        """Know nothing yet."""
        self._journal = journal
        self._run_id = run_id
        self._told: OrderedDict[str, Told] = OrderedDict()
        self._order: list[Turn] = []
        """The closed ones, in the order in which they were opened."""
        self._places: dict[str, int] = {}
        """Where each stands in it."""

    def told(self, turn_id: str, *, by: int = 0) -> Told:
        """Return what the facts up to `by` tell of a turn, or of more. Raises `Unread`.

        `by` counts while the turn is open: nothing happens to it afterwards.
        """
        found = self._told.get(turn_id)
        if found is None or (found.sequence < by and not found.view.closed):
            raise Unread(turn_id)
        return found

    def has(self, kernel: Kernel, turn_id: str) -> bool:
        """Whether a turn of this name was ever opened. Raises `Unread`."""
        if kernel.turn is not None and kernel.turn.turn_id == turn_id:
            return True
        self._follow(kernel)
        return turn_id in self._places

    def since(self, kernel: Kernel, turn_id: str | None) -> Sequence[Turn] | None:
        """Return the turns that were opened after one, or all (None), in this order.

        None where no such turn was ever opened. Raises `Unread`.
        """
        live = kernel.turn
        if live is not None and live.turn_id == turn_id:
            return ()
        self._follow(kernel)
        if turn_id is not None and turn_id not in self._places:
            return None
        begin = 0 if turn_id is None else self._places[turn_id] + 1
        last = [] if live is None else [(live.turn_id, tuple(live.members))]
        return [*self._order[begin:], *last]

    def turn_of_call(self, kernel: Kernel, invocation_id: str) -> str | None:
        """Return the latest turn that has a call of this id, None: none has. Raises `Unread`."""
        turn = kernel.turn
        if turn is not None and invocation_id in turn.members:
            return turn.turn_id
        self._follow(kernel)
        found = (it for it, calls in reversed(self._order) if invocation_id in calls)
        return next(found, None)

    def _follow(self, kernel: Kernel) -> None:
        """Know the turns that have closed by now: from the kernel, as long as it remembers them."""
        missing = kernel.epoch - (kernel.turn is not None) - len(self._order)
        if missing <= 0:
            return
        known = kernel.closings
        if len(known) < missing:
            raise Unread(None)
        entries = sum(len(it.invocation_ids) + 1 for it in known) if len(known) == missing else 0
        if entries >= kernel.run.limits.remembered:
            raise Unread(None)  # the oldest may have lost some of its calls
        for closed in known[-missing:]:
            self._close(closed.turn_id, closed.invocation_ids)

    def _close(self, turn_id: str, calls: Sequence[str]) -> None:
        self._places[turn_id] = len(self._order)
        self._order.append((turn_id, calls))

    async def read(self, unread: Unread, *, by: int) -> None:
        """Read what is needed of the facts up to `by`, at least. Raises what the journal raises."""
        if unread.turn_id is None:
            await self._read_order(by)
        else:
            await self._read_turn(unread.turn_id, by)

    async def _read_order(self, by: int) -> None:
        """Read which turns there are, from the beginning; the one that is open by then is left."""
        opened: list[Turn] = []
        is_open = False
        async for fact in self._journal.facts(self._run_id):
            if fact.sequence > by:
                break
            if isinstance(fact, TurnOpened):
                opened.append((fact.turn_id, [call.invocation_id for call in fact.calls]))
                is_open = True
            elif isinstance(fact, CallAdded):
                cast("list[str]", opened[-1][1]).append(fact.call.invocation_id)
            elif isinstance(fact, TurnSettled | TurnInterrupted):
                is_open = False
        self._order, self._places = [], {}
        for turn_id, calls in opened[: len(opened) - is_open]:
            self._close(turn_id, calls)

    async def _read_turn(self, turn_id: str, by: int) -> None:
        told = self._told.get(turn_id)
        facts: Sequence[Fact]
        if told is None:
            facts = await facts_of_turn(self._journal, self._run_id, turn_id=turn_id, before=by)
            if not facts:
                raise CorruptJournal(
                    sequence=by,
                    cause=f"no fact up to it has opened turn {turn_id!r}, which the run knows",
                    fix="look at the run with: turnlock check --db JOURNAL",
                )
            told = Told.of(cast("TurnOpened", facts[0])).after(facts[1:], sequence=by)
        else:
            after = told.sequence
            facts = [fact async for fact in self._journal.facts(self._run_id, after=after)]
            told = told.after(facts, sequence=facts[-1].sequence if facts else by)
        self._told[turn_id] = told
        self._told.move_to_end(turn_id)
        while len(self._told) > TURNS:
            self._told.popitem(last=False)
