"""Agents as tools: a run of their own, which goes on with the call that it answers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import attrs
import pytest

from turnlock import FactType, Resolution, Run
from turnlock.agent import Agent, Answer, Approve, CallUpdate, Deny, Event, ToolCall, delegating
from turnlock.models.calls import Status
from turnlock.models.fact import Fact
from turnlock.runtime import InDoubt, Settings, Tool, ToolCancelled, ToolContext, tool
from turnlock.runtime.journal.contract import Appended, Busy, Journal
from turnlock.runtime.journal.ledger import Note
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.views.call_view import CallView

from ..runtime.crash.depth import DEEP
from ..runtime.faulty_journal import Fault, FaultyJournal, WrappedJournal
from ..runtime.kept_notes import bodies
from ..runtime.virtual import LoopClock, run
from .talks import BRIEF, end
from .test_agent import Speaker, calls, look, pay

STRIDE = 1 if DEEP else 3
"""Every so-manieth write is one at which it is killed: each of them in `make crash`."""
CHILD = "call/agent/1/t1/call~1"
"""The run of the first call's agent: the key of the call, as K-7 has it."""


def asks(*prompts: str) -> Answer:
    """An answer that has the agent `research` work at each of these prompts."""
    return Answer(
        calls=tuple(
            ToolCall(call_id=None, tool_name="research", arguments={"prompt": it}) for it in prompts
        )
    )


def research(speaker: Speaker, *tools: Tool, **more: object) -> Tool:
    """An agent as a tool."""
    agent = Agent(model=speaker, tools=tools, **more)  # type: ignore[arg-type]
    return agent.as_tool(name="research", description="Finds things out.")


def host(speaker: Speaker, *tools: Tool, **more: object) -> Agent:
    """The agent that has it."""
    given: dict[str, object] = {"settings": BRIEF, "clock": LoopClock()}
    return Agent(model=speaker, tools=tools, **given | more)  # type: ignore[arg-type]


def test_an_agent_answers_a_call_in_a_run_of_its_own() -> None:
    """Its last words are the result; its run is named by the call, and begins and ends there."""

    async def play() -> None:
        journal = MemoryJournal()
        below, above = Speaker([calls("look")]), Speaker([asks("find it", "find more")])
        async with host(above, research(below, tool(look)), journal=journal) as agent:
            result = await agent.run("go")
            assert agent.runtime.runs == ("agent",)
        assert result.answers == 2
        (told,) = above.results
        assert [it.result for it in told.results] == ["done: find it", "done: find more"]
        entries = [entry async for entry in journal.run_entries()]
        assert [it.run.run_id for it in entries] == ["agent", CHILD, CHILD.replace("~1", "~2")]
        assert not any(it.busy for it in entries)
        (declared,) = above.asked[0].tools.as_function_schemas()
        assert declared["function"]["description"] == "Finds things out."
        assert [*declared["function"]["parameters"]["properties"]] == ["prompt"]

    run(play())


def test_a_slow_disk_leaves_no_run_of_an_agent_busy() -> None:
    """What it said last is acknowledged before its run is let go."""

    class Slow(WrappedJournal):
        async def append(
            self,
            run_id: str,
            *,
            fence: int | None,
            after: int,
            facts: Sequence[Fact],
            busy: Busy,
            **more: Any,
        ) -> Appended:
            await asyncio.sleep(0.5)
            return await self.inner.append(
                run_id, fence=fence, after=after, facts=facts, busy=busy, **more
            )

    async def play() -> None:
        journal = Slow(MemoryJournal())
        below, above = Speaker([calls("look")]), Speaker([asks("find it")])
        async with host(above, research(below, tool(look)), journal=journal) as agent:
            assert (await agent.run("go")).answers == 2
        assert not any([entry.busy async for entry in journal.run_entries()])

    run(play())


def test_its_approvals_reach_whoever_is_asked_above() -> None:
    """By the callback, by `pending()`, and in the stream; what it edits runs there."""

    async def play(by_callback: bool) -> None:
        asked: list[tuple[str, object]] = []

        async def approve(call: CallView) -> Approve:
            asked.append((call.run_id, call.arguments))
            return Approve(arguments={"to": "bob"})

        below, above = Speaker([calls("pay", to="eve")]), Speaker([asks("pay her")])
        heard: list[Event] = []
        async with host(
            above, research(below, pay), approve=approve if by_callback else None
        ) as agent:
            async for event in agent.stream("go"):
                heard.append(event)
                for call in () if by_callback else agent.pending():
                    asked.append((call.run_id, call.arguments))
                    await agent.decide(call, Approve(arguments={"to": "bob"}))
        assert asked == [(CHILD, {"to": "eve"})]
        assert below.results[0].results[0].result == "paid bob"
        assert below.results[0].edited == {"call~1": {"to": "bob"}}
        runs = {it.call.run_id for it in heard if isinstance(it, CallUpdate)}
        assert runs == {"agent", CHILD}

    for by_callback in (True, False):
        run(play(by_callback))


@pytest.mark.parametrize("at", ["model", "approval", "tool"])
def test_an_interrupt_above_stops_what_goes_on_below(at: str) -> None:
    """Wherever it is: its tools are cancelled, nobody is asked any more, and no run stays busy."""

    async def play() -> None:
        stopped: list[str] = []

        @tool
        async def hang() -> None:
            try:
                await asyncio.sleep(1_000)
            except asyncio.CancelledError:
                stopped.append("hang")
                raise

        journal = MemoryJournal()
        below = Speaker([calls("pay" if at == "approval" else "hang")])
        below.slow = 100.0 if at == "model" else 0.0
        above = Speaker([asks("go on")])
        async with host(above, research(below, pay, hang), journal=journal) as agent:
            work = asyncio.ensure_future(agent.run("go"))
            await asyncio.sleep(2)
            assert len(agent.pending()) == (at == "approval")
            assert await agent.interrupt(reason="enough")
            assert (await work).interrupted
            assert agent.pending() == ()
            assert (await agent.run("and now?")).text == "done: and now?"
            assert agent.runtime.runs == ("agent",)
        (told,) = above.results
        assert told.results[0].status is Status.FAILED
        assert stopped == (["hang"] if at == "tool" else [])
        assert not any([entry.busy async for entry in journal.run_entries()])

    run(play())


def test_what_goes_wrong_below_is_told_above(caplog: pytest.LogCaptureFixture) -> None:
    """A limit, a model that is away: the call has failed, in words that a model can follow."""

    async def play() -> None:
        journal = MemoryJournal()
        below, above = Speaker([calls("look")] * 3), Speaker([asks("find it")])
        lower = research(below, tool(look), answer_limit=2)
        async with host(above, lower, journal=journal) as agent:
            await agent.run("go")
        (told,) = above.results
        assert told.results[0].error == (
            "the tool failed: LimitReached: the agent was stopped before it was done, since it had"
            " used up what it may for one prompt; what its calls did, they did. Ask it for less at"
            " once"
        )
        assert "answer_limit=2" in caplog.text
        assert not any([entry.busy async for entry in journal.run_entries()])

    run(play())


def test_agents_below_agents_have_runs_below_runs() -> None:
    """As deep as they go; each approval comes up all the way."""

    async def play() -> None:
        journal = MemoryJournal()
        lowest, middle, above = (
            Speaker([calls("pay")]),
            Speaker([asks("pay it")]),
            Speaker([asks("have it paid")]),
        )
        async with host(above, research(middle, research(lowest, pay)), journal=journal) as agent:
            work = asyncio.ensure_future(agent.run("go"))
            await asyncio.sleep(1)
            (call,) = agent.pending()
            assert call.run_id == f"call/{CHILD.replace('/', '%2F')}/1/t1/call~1"
            await agent.decide(call, Deny("no"))
            assert (await work).answers == 2
        assert lowest.results[0].results[0].reason == "no"

    run(play())


def test_agents_take_no_slots_from_their_own_tools() -> None:
    """As many as run at once, each with a call of its own: none waits for ever."""

    async def play() -> None:
        few = Settings(executions=2, executions_of_run=8, ownership=1.0)
        below, above = Speaker([calls("look")]), Speaker([asks(*map(str, range(8)))])
        async with host(above, research(below, tool(look)), settings=few) as agent:
            async with asyncio.timeout(60):
                await agent.run("go")
        assert [it.result for it in above.results[0].results] == [
            f"done: {number}" for number in range(8)
        ]

    run(play())


def test_a_tool_of_nobody_says_so() -> None:
    """Called outside an agent, it is no agent."""

    async def play() -> None:
        with pytest.raises(ToolCancelled, match="no agent has this tool"):
            await research(Speaker())("go")

    run(play())


@pytest.mark.parametrize("below", [False, True])
def test_a_call_in_doubt_is_told_and_waits_for_a_person(
    caplog: pytest.LogCaptureFixture, *, below: bool
) -> None:
    """Of the agent itself, and of one that is its tool: nothing hangs without a word."""

    async def play() -> None:
        paid: list[str] = []

        @tool
        async def transfer() -> str:
            paid.append("once")
            await asyncio.sleep(1_000)
            return "never"

        journal = MemoryJournal()
        lower, above = Speaker([calls("transfer")]), Speaker([asks("transfer it")])

        def process(journal: Journal) -> Agent:
            if below:
                return host(above, research(lower, transfer), journal=journal)
            return host(lower, transfer, journal=journal)

        mortal = Mortal(journal)
        first = await process(mortal).__aenter__()
        work = asyncio.ensure_future(first.run("go"))
        await asyncio.sleep(1)
        assert first.doubts() == ()
        mortal.dead = True
        work.cancel()
        await end(first.runtime)
        await asyncio.sleep(2 * BRIEF.ownership)
        async with process(journal) as second:
            work = asyncio.ensure_future(second.run("go"))
            await asyncio.sleep(5)
            (call,) = second.doubts()
            assert (await second.resolve(call, Resolution.RESULT, result="paid")).reason is None
            await work
            assert second.doubts() == ()
        assert paid == ["once"]
        assert lower.results[0].results[0].result == "paid"

    run(play())
    assert "is in doubt" in caplog.text
    assert "Agent.resolve" in caplog.text


class Mortal(FaultyJournal):
    """The journal of one process: once it has died, nothing of it arrives any more."""

    dead = False

    async def append(
        self,
        run_id: str,
        *,
        fence: int | None,
        after: int,
        facts: Sequence[Fact],
        busy: Busy,
        **more: Any,
    ) -> Appended:
        await self._alive()
        appended = await super().append(
            run_id, fence=fence, after=after, facts=facts, busy=busy, **more
        )
        await self._alive()
        return appended

    async def note(self, run_id: str, *, fence: int | None, notes: Sequence[Note]) -> Appended:
        await self._alive()
        noted = await super().note(run_id, fence=fence, notes=notes)
        await self._alive()
        return noted

    async def release(self, run_id: str, *, fence: int) -> None:
        await self._alive()
        await super().release(run_id, fence=fence)

    async def renew(self, *, owner: str, now: float, lease: float) -> frozenset[str]:
        await self._alive()
        return await super().renew(owner=owner, now=now, lease=lease)

    async def _alive(self) -> None:
        if self.dead:
            await asyncio.Event().wait()


@attrs.define
class World:
    """What outlives a process: the journal, and what the tools really did."""

    journal: Journal = attrs.field(factory=MemoryJournal)
    done: Counter[tuple[str, int]] = attrs.field(factory=Counter[tuple[str, int]])
    asked: Counter[str] = attrs.field(factory=Counter[str])
    above: Speaker = attrs.field(factory=lambda: Speaker([asks("a", "b"), calls("note")]))
    below: Speaker = attrs.field(factory=lambda: Speaker([calls("note", "give")]))

    async def approve(self, call: CallView) -> Approve:
        self.asked[call.path] += 1
        return Approve()

    def agent(self, journal: Journal) -> Agent:
        """A process: both agents have a tool, and one of the lower one's asks a person."""

        async def act(context: ToolContext) -> str:
            self.done[context.idempotency_key, context.attempt] += 1
            await asyncio.sleep(0.1)
            return context.invocation_id

        again = {"safe_to_repeat": True, "in_doubt": InDoubt.RETRY_IF_SAFE}
        note = tool(name="note", **again)(act)  # type: ignore[call-overload]
        give = tool(name="give", approval=True, **again)(act)  # type: ignore[call-overload]
        return host(
            self.above,
            note,
            research(self.below, note, give),
            journal=journal,
            approve=self.approve,
        )


async def story(journal: Journal) -> list[object]:
    """All that a journal tells: what was said in each run, and how its calls ended."""
    told: list[object] = []
    for entry in [it async for it in journal.run_entries()]:
        run_id = entry.run.run_id
        notes = await bodies(journal, run_id)
        facts = [fact async for fact in journal.facts(run_id)]
        kinds = Counter(fact.type for fact in facts)
        told += [
            run_id,
            notes,
            entry.busy,
            kinds[FactType.TOOL_EXECUTION_SUCCEEDED],
            kinds[FactType.TURN_SETTLED],
            kinds[FactType.CONTINUATION_TAKEN],
        ]
    return told


async def honest() -> tuple[list[object], dict[str, int]]:
    """What a journal tells when nothing fails, and how often it was written."""
    world, journal = World(), FaultyJournal(MemoryJournal())
    async with world.agent(journal) as agent:
        await agent.run("go")
    assert set(world.asked.values()) == {1}
    assert len(world.asked) == 2
    assert len(world.done) == 5
    return await story(journal), {it: journal.calls[it] for it in ("note", "append")}


async def killed(method: str, number: int, fault: Fault) -> World:
    """Kill a process at one write, and have another go on."""
    world = World()
    mortal = Mortal(world.journal, {(method, number): fault})
    first = await world.agent(mortal).__aenter__()
    work = asyncio.ensure_future(first.run("go"))
    await asyncio.sleep(5)
    mortal.dead = True
    work.cancel()
    await asyncio.wait([work])
    await end(first.runtime)
    await asyncio.sleep(2 * BRIEF.ownership)
    async with world.agent(world.journal) as second:
        result = await second.run(None if second.conversation.said else "go")
    assert result.text == "done: go"
    return world


def test_a_kill_at_any_write_runs_nothing_twice_below_either() -> None:
    """Two agents as tools with an approval each, killed before and after every write of any run.

    The next process goes on with the same runs: all that is said is the same, each attempt ran
    once, a second attempt was authorised, and who was asked is asked again only after a crash.
    """
    expected, writes = run(honest())
    assert writes["note"] == 3 + 1 + 2 * 3
    asked_again = 0
    for method, count in writes.items():
        for number in range(1, count + 1, STRIDE):
            for fault in (Fault.DELAYED, Fault.HELD):
                world = run(killed(method, number, fault))
                assert run(story(world.journal)) == expected, (method, number, fault)
                assert set(world.done.values()) == {1}, (method, number, fault)
                assert len({key for key, _ in world.done}) == 5
                assert max(world.asked.values()) <= 2
                asked_again += max(world.asked.values()) == 2
    assert sum(writes.values()) > 20  # an opening and its claims are one
    assert asked_again > 0


def test_runs_named_by_the_attempt_would_run_things_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: a run that is not gone on with does its work again."""
    numbers = iter(range(1_000))

    def another_each_time(key: str) -> Run:
        return Run(run_id=f"{key}/{next(numbers)}")

    monkeypatch.setattr(delegating, "run_of", another_each_time)
    _, writes = run(honest())
    worlds = [run(killed("append", it + 1, Fault.HELD)) for it in range(writes["append"])]
    assert any(len({key for key, _ in it.done}) > 5 for it in worlds)


def test_a_kill_in_the_middle_of_an_interrupt_leaves_no_agent_at_work() -> None:
    """Its call is over, so nobody goes on with it: whoever opens the run next stops it."""

    async def play() -> None:
        journal = MemoryJournal()
        below, above = Speaker([calls("pay")]), Speaker([asks("pay it")])

        def process(journal: Journal) -> Agent:
            return host(above, research(below, pay), journal=journal)

        mortal = Mortal(journal)
        first = await process(mortal).__aenter__()
        work = asyncio.ensure_future(first.run("go"))
        await asyncio.sleep(1)
        assert len(first.pending()) == 1
        interrupting = asyncio.ensure_future(first.interrupt(reason="enough"))
        async for fact in first.runtime.subscribe("agent"):
            if fact.type is FactType.TURN_INTERRUPTING:
                break
        mortal.dead = True
        for task in (work, interrupting):
            task.cancel()
        await asyncio.wait([work, interrupting])
        await end(first.runtime)
        await asyncio.sleep(2 * BRIEF.ownership)
        assert (await journal.entry(CHILD)).busy

        async with process(journal) as second:
            assert second.pending() == ()
            assert (await second.run()).interrupted
            assert (await second.run("and now?")).answers == 1
        assert not any([entry.busy async for entry in journal.run_entries()])

    run(play())
