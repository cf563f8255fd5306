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
    TurnOpened,
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
        """In the order in which they were opened; those of the last may not all be there."""
        self._ordered = 0
        """The sequence up to which they are known."""

    def told(self, turn_id: str, *, by: int = 0) -> Told:
        """Return what the facts up to `by` tell of a turn, or of more. Raises `Unread`.

        `by` counts while the turn is open: nothing happens to it afterwards.
        """
        found = self._told.get(turn_id)
        if found is None or (found.sequence < by and not found.view.closed):
            raise Unread(turn_id)
        return found

    def order(self, kernel: Kernel) -> Sequence[Turn]:
        """Return the turns of a run in the order in which they were opened. Raises `Unread`.

        No fact is read as long as the kernel remembers them all.
        """
        known: list[Turn] = [(it.turn_id, it.invocation_ids) for it in kernel.closings]
        size = sum(len(calls) + 1 for _, calls in known)
        if known and size >= kernel.run.limits.remembered:
            del known[0]  # it may have lost some of its calls
        if kernel.turn is not None:
            known.append((kernel.turn.turn_id, tuple(kernel.turn.members)))
        forgotten = kernel.epoch - len(known)
        if forgotten > len(self._order):
            raise Unread(None)
        return [*self._order[:forgotten], *known] if forgotten else known

    def has(self, kernel: Kernel, turn_id: str) -> bool:
        """Whether a turn of this name was ever opened. Raises `Unread`."""
        turn = kernel.turn
        if (turn is not None and turn.turn_id == turn_id) or turn_id in self._told:
            return True
        return any(turn_id == known for known, _ in self.order(kernel))

    def turn_of_call(self, kernel: Kernel, invocation_id: str) -> str | None:
        """Return the latest turn that has a call of this id, None: none has. Raises `Unread`."""
        turn = kernel.turn
        if turn is not None and invocation_id in turn.members:
            return turn.turn_id
        for closed in reversed(kernel.closings):
            if invocation_id in closed.invocation_ids:
                return closed.turn_id
        found = (it for it, calls in reversed(self.order(kernel)) if invocation_id in calls)
        return next(found, None)

    async def read(self, unread: Unread, *, by: int) -> None:
        """Read what is needed of the facts up to `by`, at least. Raises what the journal raises."""
        if unread.turn_id is None:
            await self._read_order()
        else:
            await self._read_turn(unread.turn_id, by)

    async def _read_order(self) -> None:
        async for fact in self._journal.facts(self._run_id, after=self._ordered):
            if isinstance(fact, TurnOpened):
                calls = tuple(call.invocation_id for call in fact.calls)
                self._order.append((fact.turn_id, calls))
            self._ordered = fact.sequence

    async def _read_turn(self, turn_id: str, by: int) -> None:
        told = self._told.get(turn_id)
        facts: Sequence[Fact]
        if told is None:
            facts = await facts_of_turn(self._journal, self._run_id, turn_id=turn_id, before=by)
            if not facts:
                raise CorruptJournal(
                    sequence=by,
                    cause=f"no fact up to it has opened turn {turn_id!r}, which the run knows",
                    fix="look at the run with: turnlock check-db",
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
