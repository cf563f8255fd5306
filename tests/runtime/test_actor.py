"""One run under way: judged, kept, and only then told; what the journal refuses is forgotten."""

# Looks inside: what is held, and who waits.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from turnlock import (
    Call,
    Claim,
    Decide,
    Delivery,
    Fact,
    Kernel,
    OpenTurn,
    Reason,
    Run,
    Tick,
)
from turnlock.models.verdicts import Verdict
from turnlock.runtime.actor import Actor
from turnlock.runtime.errors import JournalError, Overloaded, RunFenced
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.scheduling import Tasks
from turnlock.runtime.settings import Settings
from turnlock.runtime.tools.toolbox import Toolbox
from turnlock.runtime.writer import Judged, fold_run

from .faulty_journal import Fault, FaultyJournal
from .virtual import LoopClock, run, settled

RUN = Run(run_id="r")


TOOLS = Toolbox()


async def nobody(_: object) -> None:
    """Take no continuation: none comes."""


def opened(*names: str, gated: bool = False, turn_id: str = "t1") -> OpenTurn:
    calls = tuple(
        Call(invocation_id=name, tool_name="ls", arguments={}, requires_approval=gated)
        for name in names
    )
    return OpenTurn(turn_id=turn_id, calls=calls)


def claim(name: str) -> Claim:
    return Claim(turn_id="t1", invocation_id=name, attempt=1, worker="w")


class Notes:
    """A listener that notes what it is told, and what the journal held at that moment."""

    def __init__(self, journal: MemoryJournal) -> None:
        self.journal = journal
        self.told: list[Sequence[Judged]] = []
        self.durable: list[int] = []
        self.folds = 0
        self.noted_ = 0
        self.fences = 0
        self.overs = 0

    def claims(self, actor: Actor, judged: Sequence[Judged]) -> Sequence[Claim]:
        return ()

    def kept(self, actor: Actor, judged: Sequence[Judged]) -> None:
        self.told.append(judged)
        self.durable.append(len(self.journal._runs["r"].facts))

    def noted(self, actor: Actor) -> None:
        self.noted_ += 1

    def folded(self, actor: Actor) -> None:
        self.folds += 1

    def fenced(self, actor: Actor) -> None:
        self.fences += 1

    def over(self, actor: Actor) -> None:
        self.overs += 1


class Stage:
    """A actor on a journal that can be made to fail."""

    def __init__(self, *, settings: Settings | None = None) -> None:
        self.inner = MemoryJournal()
        self.journal = FaultyJournal(self.inner)
        self.notes = Notes(self.inner)
        self.failures: list[BaseException] = []
        self.settings = settings or Settings()
        self.tasks = Tasks(failed=lambda _, error: self.failures.append(error))

    async def begin(self) -> Actor:
        await self.inner.declare(RUN)
        fence = await self.inner.own("r", owner="o", now=0.0, lease=1e6)
        return Actor(
            kernel=await fold_run(RUN, self.inner),
            fence=fence,
            journal=self.journal,
            clock=LoopClock(),
            tools_of=lambda _: TOOLS,
            on_continue=nobody,
            settings=self.settings,
            listener=self.notes,
            tasks=self.tasks,
        )

    async def facts(self) -> list[Fact]:
        return [fact async for fact in self.inner.facts("r")]


def test_facts_are_durable_before_anybody_is_told() -> None:
    """When the listener, or the caller, hears of a fact, the journal has it."""

    async def play() -> None:
        stage = Stage()
        actor = await stage.begin()

        verdict = await actor.deliver(opened("a"))

        assert [fact.sequence for fact in verdict.facts] == [1]
        assert stage.notes.durable == [1]
        assert await stage.facts() == list(verdict.facts)

    run(play())


def test_what_arrives_together_is_kept_together() -> None:
    """One tick of the loop, one append; each caller gets the verdict of its own delivery."""

    async def play() -> None:
        stage = Stage()
        actor = await stage.begin()
        await actor.deliver(opened("a", "b", "c"))

        same = claim("a")
        verdicts = await asyncio.gather(
            actor.deliver(same), actor.deliver(claim("b")), actor.deliver(same)
        )

        assert [verdict.reason for verdict in verdicts] == [None, None, Reason.DUPLICATE]
        assert stage.journal.calls["append"] == 2

    run(play())


def test_a_refusal_and_a_tick_without_facts_touch_no_journal() -> None:
    """K-2: a refusal adds nothing, so nothing is to be kept."""

    async def play() -> None:
        stage = Stage()
        actor = await stage.begin()

        refused = await actor.deliver(claim("a"))
        nothing = await actor.deliver(Tick())

        assert (refused.reason, nothing.reason) == (Reason.NO_ACTIVE_TURN, None)
        assert stage.journal.calls["append"] == 0

    run(play())


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.FULL, Fault.LOCKED, Fault.CONFLICT])
def test_what_was_not_kept_has_not_happened(fault: Fault) -> None:
    """The kernel in memory is thrown away; delivered again, it is accepted as at first."""

    async def play() -> None:
        stage = Stage()
        actor = await stage.begin()
        stage.journal.fail("append", fault)

        with pytest.raises(JournalError):
            await actor.deliver(opened("a"))

        assert (await stage.facts(), stage.notes.told) == ([], [])

        verdict = await actor.deliver(opened("a"))

        assert [fact.sequence for fact in verdict.facts] == [1]
        assert stage.notes.folds == 1
        assert await stage.facts() == list(verdict.facts)

    run(play())


def test_a_lost_acknowledgement_is_found_in_the_journal() -> None:
    """What was kept after all has happened: delivered again, it is refused as such."""

    async def play() -> None:
        stage = Stage()
        actor = await stage.begin()
        await actor.deliver(opened("a"))
        stage.journal.fail("append", Fault.UNACKNOWLEDGED)

        with pytest.raises(JournalError):
            await actor.deliver(claim("a"))
        again = await actor.deliver(claim("a"))

        assert again.reason is Reason.DUPLICATE
        assert [fact.sequence for fact in await stage.facts()] == [1, 2]

    run(play())


def test_a_fenced_actor_writes_and_serves_nothing_more() -> None:
    """Who waits is told that another has taken the run, who comes later, too; once is enough."""

    async def play() -> None:
        stage = Stage()
        actor = await stage.begin()
        await stage.inner.own("r", owner="other", now=2e9, lease=1.0)

        first, second = await asyncio.gather(
            actor.deliver(opened("a")), actor.deliver(claim("a")), return_exceptions=True
        )
        with pytest.raises(RunFenced):
            await actor.deliver(Tick())

        assert isinstance(first, RunFenced)
        assert isinstance(second, RunFenced)
        assert (await stage.facts(), stage.notes.fences) == ([], 1)

    run(play())


def test_more_than_the_bound_is_refused_to_the_caller_and_loses_nothing() -> None:
    """Back-pressure: `waiting` deliveries may wait, and each of those is served."""

    async def play() -> None:
        stage = Stage(settings=Settings(waiting=2))
        actor = await stage.begin()

        outcomes = await asyncio.gather(
            *(actor.deliver(Tick()) for _ in range(3)), return_exceptions=True
        )

        assert [type(outcome).__name__ for outcome in outcomes] == [
            "Accepted",
            "Accepted",
            "Overloaded",
        ]
        assert isinstance(outcomes[2], Overloaded)
        assert "'r'" in str(outcomes[2])

    run(play())


def test_a_cancelled_caller_takes_nothing_back() -> None:
    """The delivery was given: it is judged and kept, whoever still waits for the verdict."""

    async def play() -> None:
        stage = Stage()
        actor = await stage.begin()
        stage.journal.fail("append", Fault.DELAYED)

        caller = asyncio.ensure_future(actor.deliver(opened("a")))
        await settled()
        caller.cancel()
        await settled()
        stage.journal.gate.set()
        await settled()

        assert [fact.sequence for fact in await stage.facts()] == [1]
        assert (len(stage.tasks), stage.failures) == (0, [])

    run(play())


def test_cancelled_in_the_middle_of_an_append_nobody_waits_for_ever() -> None:
    """A runtime that is torn down while it writes tells the callers that nothing is known."""

    async def play() -> None:
        stage = Stage()
        actor = await stage.begin()
        stage.journal.fail("append", Fault.DELAYED)

        callers = [asyncio.ensure_future(actor.deliver(one)) for one in (opened("a"), claim("a"))]
        await settled()
        late = asyncio.ensure_future(actor.deliver(Tick()))
        await settled()
        await stage.tasks.cancel()
        outcomes = await asyncio.gather(*callers, late, return_exceptions=True)

        assert {type(outcome) for outcome in outcomes} == {JournalError}

    run(play())


def test_a_snapshot_is_kept_now_and_then_and_the_fold_begins_there() -> None:
    """Recovery from a snapshot and the facts after it is recovery from all facts (K-2)."""

    async def play() -> None:
        stage = Stage(settings=Settings(snapshot_every=3))
        actor = await stage.begin()
        await actor.deliver(opened("a", gated=True))
        await actor.deliver(Decide(turn_id="t1", invocation_id="a", approved=True))
        assert await stage.inner.snapshot("r") is None
        await actor.deliver(claim("a"))

        snapshot = await stage.inner.snapshot("r")
        recovered = await fold_run(RUN, stage.inner)

        assert snapshot is not None
        assert snapshot.sequence == 4
        assert recovered.snapshot() == Kernel.recover(RUN, await stage.facts()).snapshot()

    run(play())


def test_after_a_failure_one_by_one_and_then_more_again() -> None:
    """A batch that is too much for the journal must not fail for ever: it is halved to ones."""

    async def play() -> None:
        stage = Stage()
        actor = await stage.begin()
        await actor.deliver(opened("a", "b", "c", "d"))
        stage.journal.fail("append", Fault.FULL)

        async def delivering(delivery: Delivery) -> Verdict:
            while True:
                try:
                    return await actor.deliver(delivery)
                except JournalError:
                    continue

        await asyncio.gather(*(delivering(claim(name)) for name in "abcd"))

        sizes = [len({id(one) for one in served}) for served in stage.notes.told]
        assert sizes == [1, 1, 2, 1]

    run(play())
