"""Facts as they happen: from the journal, then live; no gap, no repeat, and nobody is harmed."""

# Looks inside: what is held, and who waits.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock import Acknowledge, Call, Claim, Fact, Kernel, OpenTurn, Report, Run
from turnlock.models.diagnostics import ToolLog
from turnlock.runtime.errors import CursorAhead
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.streams import Streams, Subscription

from .virtual import run, settled

RUN = Run(run_id="r")


def journal_of(turns: int) -> list[Fact]:
    """The facts of some turns of one call: four each."""
    kernel = Kernel(RUN)
    facts: list[Fact] = []
    for number in range(turns):
        turn_id = f"t{number}"
        call = Call(invocation_id="a", tool_name="ls", arguments={}, requires_approval=False)
        for delivery in (
            OpenTurn(turn_id=turn_id, calls=(call,)),
            Claim(turn_id=turn_id, invocation_id="a", attempt=1),
            Report(turn_id=turn_id, invocation_id="a", result=1),
            Acknowledge(turn_id=turn_id),
        ):
            facts += kernel.receive(delivery, float(number)).facts
    return facts


FACTS = journal_of(400)


class Stage:
    """A journal, its streams, and facts that are kept and published commit by commit."""

    def __init__(self, *, bound: int = 1_000) -> None:
        self.journal = MemoryJournal()
        self.streams = Streams(journal=self.journal, bound=bound)
        self.at = 0

    async def begin(self) -> None:
        await self.journal.declare(RUN)
        self.fence = await self.journal.own("r", owner="o", now=0.0, lease=1e9)

    async def happen(self, commits: int) -> None:
        for _ in range(commits):
            end = FACTS[self.at].commit
            await self.keep(FACTS[self.at : end])

    async def keep(self, facts: Sequence[Fact]) -> None:
        await self.journal.append("r", fence=self.fence, after=self.at, facts=facts, busy=False)
        self.at = facts[-1].sequence
        self.streams.publish("r", facts)


async def taken(subscription: Subscription, count: int) -> list[int]:
    return [(await anext(subscription)).sequence for _ in range(count)]


def test_the_past_then_the_present() -> None:
    """A subscriber that begins in the middle of a run misses nothing."""

    async def play() -> None:
        stage = Stage()
        await stage.begin()
        await stage.happen(10)
        subscription = stage.streams.subscribe("r", after=3)
        await stage.happen(2)
        first = await taken(subscription, stage.at - 3)
        reading = asyncio.ensure_future(taken(subscription, 1))
        await settled()
        assert not reading.done()

        await stage.happen(1)

        assert first == list(range(4, first[-1] + 1))
        assert await reading == [first[-1] + 1]

    run(play())


@given(st.lists(st.integers(0, 12), min_size=1, max_size=12), st.integers(0, 30), st.data())
def test_whatever_the_order_of_keeping_and_reading_each_fact_comes_once(
    pieces: list[int], after: int, data: st.DataObject
) -> None:
    """Small buffers while the journal is read, pages, pauses: the sequence has no gap."""

    async def play() -> None:
        stage, begin = Stage(bound=40), after
        await stage.begin()
        subscription = None
        got: list[int] = []
        for commits in pieces:
            await stage.happen(commits)
            if subscription is None and stage.at >= begin and data.draw(st.booleans()):
                subscription = stage.streams.subscribe("r", after=begin)
            if subscription is not None:
                readable = stage.at - (got[-1] if got else begin)
                if readable > 0:
                    got += await taken(subscription, data.draw(st.integers(0, readable)))
        if subscription is None:
            begin = min(begin, stage.at)
            subscription = stage.streams.subscribe("r", after=begin)
        got += await taken(subscription, max(0, stage.at - (got[-1] if got else begin)))
        subscription.close()
        assert [fact.sequence async for fact in subscription] == []
        assert got == list(range(begin + 1, stage.at + 1))

    run(play())


def test_who_falls_behind_goes_on_from_the_journal() -> None:
    """Its buffer is bounded, and nothing is lost: the journal has it; nobody is told of it."""

    async def play() -> None:
        stage = Stage(bound=8)
        await stage.begin()
        await stage.happen(1)
        slow = stage.streams.subscribe("r", after=0)
        quick = stage.streams.subscribe("r", after=0)
        assert (await taken(slow, 1), await taken(quick, 1)) == ([1], [1])
        reading = asyncio.ensure_future(taken(slow, 1))
        await settled()  # both are live now
        quicker = asyncio.ensure_future(taken(quick, 40))
        await settled()
        for _ in range(40):
            await stage.happen(1)
            await asyncio.sleep(0)

        assert await reading == [2]
        assert await quicker == list(range(2, 42))
        rest = await taken(slow, stage.at - 2)
        assert rest == list(range(3, stage.at + 1))
        reading = asyncio.ensure_future(taken(slow, 1))
        await settled()
        await stage.happen(1)
        assert await reading == [rest[-1] + 1]

    run(play())


def test_s_71_a_sequence_behind_the_end_is_refused_and_never_waited_for() -> None:
    """Of another journal, or of one that was put back (S-71); at the end it waits."""

    async def play() -> None:
        stage = Stage()
        await stage.begin()
        await stage.happen(2)
        with pytest.raises(CursorAhead, match="read it from the beginning") as caught:
            await taken(stage.streams.subscribe("r", after=stage.at + 1), 1)
        assert caught.value.head == str(stage.at)
        at_end = asyncio.ensure_future(taken(stage.streams.subscribe("r", after=stage.at), 1))
        await settled()
        assert not at_end.done()
        await stage.happen(1)
        assert await at_end

    run(play())


def test_who_stops_listening_is_forgotten_and_who_raises_harms_nobody() -> None:
    """Subscribers pull: what one does in its loop is its own."""

    async def play() -> None:
        stage = Stage()
        await stage.begin()
        gone, stays = (stage.streams.subscribe("r", after=0) for _ in range(2))
        await gone.aclose()
        await stage.happen(2)

        assert await taken(stays, 2) == [1, 2]
        assert stage.streams._facts == {"r": {stays}}

        stage.streams.close()
        rest = [fact.sequence async for fact in stays]
        assert rest == list(range(3, stage.at + 1))

    run(play())


def test_diagnostics_go_their_own_way_and_the_oldest_give_way() -> None:
    """No sequence, no replay: what nobody reads is counted and gone."""

    async def play() -> None:
        stage = Stage(bound=2)
        assert not stage.streams.listened("r")
        listener = stage.streams.diagnostics("r")
        for number in range(3):
            told = ToolLog(run_id="r", at=0.0, text=str(number))
            stage.streams.diagnose("r", told)

        texts = [(await anext(listener)), (await anext(listener))]

        assert [one.text for one in texts if isinstance(one, ToolLog)] == ["1", "2"]
        assert (listener.lost, stage.streams.listened("r")) == (1, True)

    run(play())
