"""Views without old facts: equal to those of all facts, at every moment, whatever was snapped."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence

import pytest
from tests.calls_made import calls_made
from tests.views.played import played

from turnlock import Call, Decide, Fact, Interrupt, Kernel, OpenTurn, Report, Run
from turnlock.models.deliveries import Claim, Delivery, Lose
from turnlock.models.errors import CorruptJournal, UnknownRun
from turnlock.models.record import changed
from turnlock.runtime import looking as under_test
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.looking import Looking, view_of
from turnlock.views.run_view import RunView
from turnlock.views.turn_view import TurnView

from ..depth import DEEP

SEEDS = range(24 if DEEP else 8)


class Counting(MemoryJournal):
    """Counts the facts that were read."""

    def __init__(self) -> None:
        super().__init__()
        self.facts_read = 0

    async def read(self, run_id: str, *, after: int = 0, limit: int = 1_000) -> tuple[Fact, ...]:
        page = await super().read(run_id, after=after, limit=limit)
        self.facts_read += len(page)
        return page


async def kept(journal: Journal, kernel: Kernel, facts: Sequence[Fact]) -> None:
    if facts:
        before = facts[0].sequence - 1
        run_id = kernel.run.run_id
        await journal.append(run_id, fence=None, after=before, facts=facts, busy=kernel.busy)


async def moments(
    journal: Journal, seed: int, *, snap_in: int
) -> AsyncIterator[tuple[Kernel, list[Fact]]]:
    """Keep a random journal, with snapshots at random places; yield all facts at each."""
    rng = random.Random(seed)
    so_far: list[Fact] = []
    for kernel, facts in played(seed):
        if not so_far:
            await journal.declare(kernel.run)
        await kept(journal, kernel, facts)
        so_far += facts
        if facts and rng.randrange(snap_in) == 0:
            await journal.keep_snapshot(kernel.snapshot(), fence=None)
        yield kernel, so_far


async def looked_at(
    looking: Looking, journal: Journal, seed: int
) -> AsyncIterator[tuple[Run, list[Fact]]]:
    async for kernel, facts in moments(journal, seed, snap_in=3):
        await looking.look(kernel.run.run_id)
        yield kernel.run, facts


def without_closed(view: RunView) -> RunView:
    return changed(view, recent=())


@pytest.mark.parametrize("snap_in", [1, 4, 1_000])
def test_f_31_a_view_is_that_of_all_facts_at_every_moment(snap_in: int) -> None:
    """Made anew and kept from look to look alike: who decided, times, arguments, all of it."""

    async def play(seed: int) -> int:
        decided = 0
        async with MemoryJournal() as journal:
            looking = Looking(journal)
            rng = random.Random(seed)
            async for kernel, facts in moments(journal, seed, snap_in=snap_in):
                run_id = kernel.run.run_id
                whole = RunView.of(kernel.run, facts)
                anew = await view_of(journal, await journal.entry(run_id))
                assert without_closed(anew) == without_closed(whole), (seed, len(facts))
                if rng.randrange(3) == 0:
                    looked = (await looking.look(run_id)).view
                    assert without_closed(looked) == without_closed(whole), (seed, len(facts))
                turn = anew.turn
                decided += turn is not None and any(it.decision for it in turn.calls)
        return decided

    assert sum(asyncio.run(play(seed)) for seed in SEEDS) > 2 * len(SEEDS), (
        "too few decisions were seen"
    )


def test_f_31_the_property_sees_a_view_that_knows_only_the_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The negative control: without the turn's facts nobody can say who decided."""

    async def forgotten(*_: object) -> None:
        return None

    monkeypatch.setattr(under_test, "fold_turn", forgotten)
    with pytest.raises(AssertionError):
        test_f_31_a_view_is_that_of_all_facts_at_every_moment(1_000)


def test_f_22_a_call_of_a_closed_turn_is_as_its_last_fact_left_it() -> None:
    """Of the last turn with that id, however long ago, made anew and kept alike."""

    async def play(seed: int) -> int:
        async with MemoryJournal() as journal:
            patient = Looking(journal)
            found_all = [it async for it in looked_at(patient, journal, seed)]
            (run, facts) = found_all[-1]
            whole = RunView(run=run)
            closed: dict[str, TurnView] = {}
            for fact in facts:
                whole = whole.after((fact,))
                for turn in whole.recent[-1:]:
                    closed[turn.turn_id] = turn
            if whole.turn is not None:
                closed.pop(whole.turn.turn_id, None)
            for turn in closed.values():
                for looking in (patient, Looking(journal), patient):
                    for call in turn.calls:
                        found = await looking.call(run.run_id, turn.turn_id, call.invocation_id)
                        assert found == call
                    assert await looking.call(run.run_id, turn.turn_id, "nobody") is None
            assert await patient.call(run.run_id, "never", "nobody") is None
            return len(closed)

    assert sum(asyncio.run(play(seed)) for seed in SEEDS) > len(SEEDS)


RUN = Run(run_id="r")


def turn_of(count: int, turn_id: str = "t", *, gated: bool = True) -> OpenTurn:
    calls = tuple(
        Call(invocation_id=f"c{at}", tool_name="pay", arguments={"at": at}, requires_approval=gated)
        for at in range(count)
    )
    return OpenTurn(turn_id=turn_id, calls=calls)


def ended(turn: OpenTurn) -> list[Delivery]:
    to = [(turn.turn_id, call.invocation_id) for call in turn.calls]
    return [
        turn,
        *(Claim(turn_id=turn_id, invocation_id=it, attempt=1) for turn_id, it in to),
        *(Report(turn_id=turn_id, invocation_id=it, attempt=1, result=1) for turn_id, it in to),
    ]


async def told(journal: Journal, *deliveries: Delivery) -> Kernel:
    kernel = Kernel(RUN)
    await journal.declare(RUN)
    for at, delivery in enumerate(deliveries):
        await kept(journal, kernel, kernel.receive(delivery, 1_000.0 + at).facts)
    return kernel


def test_f_31_no_fact_of_an_older_turn_is_read() -> None:
    """After a snapshot a look costs the open turn's facts, rounded up to a page, and no others."""

    async def play() -> None:
        async with Counting() as journal:
            old = [it for at in range(60) for it in ended(turn_of(50, f"old{at}", gated=False))]
            kernel = await told(journal, *old, turn_of(3))
            await journal.keep_snapshot(kernel.snapshot(), fence=None)
            denied = Decide(turn_id="t", invocation_id="c1", approved=False, decided_by="ada")
            await kept(journal, kernel, kernel.receive(denied, 9_000.0).facts)
            assert kernel.sequence > 6_000

            looking = Looking(journal)
            view = (await looking.look("r")).view
            assert journal.facts_read <= 1_001
            assert view.turn is not None
            decision = view.turn.calls[1].decision
            assert decision is not None
            assert (decision.by, decision.at) == ("ada", 9_000.0)

            journal.facts_read = 0
            await looking.look("r")
            assert journal.facts_read == 0, "nothing is new"

    asyncio.run(play())


def test_f_31_a_turn_of_10_000_calls_is_looked_at_in_time() -> None:
    """Each decided; the first look folds its facts, the next ones what is new."""

    async def play() -> None:
        async with Counting() as journal:
            kernel = await told(journal, turn_of(10_000))
            facts = [
                fact
                for at in range(9_000)
                for fact in kernel.receive(
                    Decide(turn_id="t", invocation_id=f"c{at}", approved=True, decided_by="ada"),
                    2_000.0,
                ).facts
            ]
            for at in range(0, len(facts), 1_000):
                await kept(journal, kernel, facts[at : at + 1_000])
            await journal.keep_snapshot(kernel.snapshot(), fence=None)

            looking = Looking(journal)
            with calls_made() as calls:
                first = (await looking.look("r")).view
            assert first.turn is not None
            assert len(first.waiting) == 1_000
            assert calls.made < 1_500_000  # some 600,000

            journal.facts_read = 0
            interrupt = Interrupt(turn_id="t", grace=0.0)
            await kept(journal, kernel, kernel.receive(interrupt, 3_000.0).facts)
            last = (await looking.look("r")).view
            assert last.turn is None
            assert journal.facts_read < 11_000

    asyncio.run(play())


def test_what_is_kept_is_bounded_in_runs_and_in_calls() -> None:
    """The run that nobody asked for longest goes first; one alone keeps its open turn."""

    async def play() -> None:
        async with Counting() as journal:
            for name in "abc":
                run = Run(run_id=name)
                kernel = Kernel(run)
                await journal.declare(run)
                await kept(journal, kernel, kernel.receive(turn_of(10), 1.0).facts)

            looking = Looking(journal, runs=2)
            for name in "abca":
                journal.facts_read = 0
                await looking.look(name)
                assert journal.facts_read, name
            journal.facts_read = 0
            await looking.look("c")
            assert not journal.facts_read

            narrow = Looking(journal, calls=15)
            for name in "ab":
                await narrow.look(name)
            journal.facts_read = 0
            view = (await narrow.look("b")).view
            assert not journal.facts_read
            await narrow.look("a")
            assert journal.facts_read
            alone = Looking(journal, calls=5)
            assert (await alone.look("b")).view.turn == view.turn

    asyncio.run(play())


def test_a_ledger_that_became_shorter_is_read_anew() -> None:
    """A file that was restored: what was kept of it is no more true."""

    async def play() -> None:
        async with MemoryJournal() as longer, MemoryJournal() as shorter:
            await told(longer, *ended(turn_of(2, gated=False)))
            await told(shorter, turn_of(2, gated=False))
            looking = Looking(longer)
            assert (await looking.look("r")).view.turn is None
            looking._journal = shorter  # pyright: ignore[reportPrivateUsage] - put back
            assert (await looking.look("r")).view.turn is not None

    asyncio.run(play())


def test_many_who_look_at_once_read_once() -> None:
    """And a run that nobody knows, or that lost facts, is said to each of them."""

    async def play() -> None:
        async with Counting() as journal:
            await told(journal, turn_of(5), Lose(invocation_id="c0"))
            looking = Looking(journal)
            looked = await asyncio.gather(*(looking.look("r") for _ in range(20)))
            assert all(it.view is looked[0].view for it in looked)
            assert journal.facts_read < 20
            for _ in range(2):
                with pytest.raises(UnknownRun):
                    await looking.look("nobody")

    asyncio.run(play())


def test_a_journal_that_ends_before_its_snapshot_is_told() -> None:
    """A page that is not there is damage, and no turn without decisions."""

    class Short(MemoryJournal):
        async def read(
            self, run_id: str, *, after: int = 0, limit: int = 1_000
        ) -> tuple[Fact, ...]:
            page = await super().read(run_id, after=after, limit=limit)
            return tuple(it for it in page if it.sequence < 3)

    async def play() -> None:
        async with Short() as journal:
            kernel = await told(journal, turn_of(5))
            await journal.keep_snapshot(kernel.snapshot(), fence=None)
            with pytest.raises(CorruptJournal, match="the journal ends before"):
                await Looking(journal).look("r")

    asyncio.run(play())
