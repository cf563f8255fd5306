"""One runtime for many agents: each has its own tools, people and continuations (W-60)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnlock import FactType, InvalidValue, Run
from turnlock.agent import Agent, Approve
from turnlock.runtime import (
    Continuation,
    Keep,
    MemoryJournal,
    Policy,
    RunOpen,
    Runtime,
    Settings,
    Tool,
    Toolbox,
    tool,
)
from turnlock.runtime.journal.contract import Journal
from turnlock.views.call_view import CallView

from ..runtime.secrets import TestCipher
from ..runtime.virtual import LoopClock, run, settled
from .talks import BRIEF
from .test_agent import Speaker, calls


def shared(journal: Journal) -> Runtime:
    """A runtime on the loop's clock that has no tools of its own."""
    return Runtime(journal=journal, settings=BRIEF, clock=LoopClock())


def signed(name: str, done: Counter[str], *, gated: bool = False) -> Tool:
    """A tool called `look` for everybody, that says whose it is."""

    @tool(name="look", policy=Policy(approval=gated))
    async def look() -> str:
        done[name] += 1
        await asyncio.sleep(len(name) % 3)
        return f"{name} looked"

    return look


@settings(max_examples=max(1, settings().max_examples // 4))
@given(
    turns=st.lists(st.integers(0, 3), min_size=1, max_size=6),
    gated=st.integers(0, 63),
    slow=st.lists(st.sampled_from([0.0, 0.5, 2.0]), min_size=6, max_size=6),
)
def test_w_60_nothing_of_one_agent_reaches_another(
    turns: list[int], gated: int, slow: list[float]
) -> None:
    """However many they are, whatever they wait for: each model hears of its own tools alone."""
    done: Counter[str] = Counter()

    async def talk(number: int, runtime: Runtime) -> None:
        name, asked = f"agent {number}", list[str]()

        async def approve(call: CallView) -> Approve:
            asked.append(call.run_id)
            await asyncio.sleep(slow[-number])
            return Approve()

        needs = bool(gated >> number & 1)
        speaker = Speaker([calls("look", "look")] * turns[number], slow=slow[number])
        async with Agent(
            run=name,
            model=speaker,
            tools=[signed(name, done, gated=needs)],
            runtime=runtime,
            approve=approve,
        ) as agent:
            assert (await agent.run(name)).text == f"done: {name}"
        told = [it.result for results in speaker.results for it in results.results]
        assert told == [f"{name} looked"] * (2 * turns[number])
        assert asked == [name] * (2 * turns[number] if needs else 0)

    async def play() -> None:
        async with shared(MemoryJournal()) as runtime:
            await asyncio.gather(*(talk(number, runtime) for number in range(len(turns))))

    run(play())
    assert done == {f"agent {number}": 2 * it for number, it in enumerate(turns) if it}


def test_w_60_a_hundred_agents_converse_on_one_runtime() -> None:
    """All at once: each continuation is acknowledged once, and no run stays busy."""

    async def play() -> None:
        journal, done = MemoryJournal(), Counter[str]()
        async with shared(journal) as runtime, AsyncExitStack() as stack:
            agents = [
                await stack.enter_async_context(
                    Agent(
                        run=f"r{number}",
                        model=Speaker([calls("look")]),
                        tools=[signed(f"r{number}", done)],
                        runtime=runtime,
                    )
                )
                for number in range(100)
            ]
            results = await asyncio.gather(*(it.run(it.run_id) for it in agents))
            assert [it.text for it in results] == [f"done: r{number}" for number in range(100)]
            assert len(runtime.runs) == 100
        assert set(done.values()) == {1}
        for entry in [it async for it in journal.run_entries()]:
            assert not entry.busy
            facts = [fact.type async for fact in journal.facts(entry.run.run_id)]
            assert facts.count(FactType.CONTINUATION_TAKEN) == 1

    run(play())


def test_secrets_of_one_agent_do_not_open_with_anothers_key() -> None:
    """Seals belong to a run's toolbox: what one seals, the other has no key for."""

    async def play() -> None:
        journal = MemoryJournal()

        @tool(policy=Policy(keep_arguments=Keep.SEALED, keep_result=Keep.SEALED))
        async def look(token: str) -> str:
            return token.upper()

        async with shared(journal) as runtime:
            for name in ("a", "b"):
                speaker = Speaker([calls("look", token=f"secret of {name}")])
                tools = Toolbox.of(look, cipher=TestCipher(name.encode() * 16))
                async with Agent(run=name, model=speaker, tools=tools, runtime=runtime) as agent:
                    await agent.run("go")
                    (told,) = speaker.results
                    assert told.results[0].result == f"SECRET OF {name.upper()}"
            other = Toolbox.of(look, cipher=TestCipher(b"b" * 16))
            speaker = Speaker([calls("look")])
            with pytest.raises(Exception, match="does not open here"):
                await Agent(run="a", model=speaker, tools=other, runtime=runtime).__aenter__()
            assert "a" not in runtime.runs
        kept = repr([await journal.notes(it) for it in ("a", "b")])
        assert "ecret of" not in kept

    run(play())


def test_one_run_has_one_agent() -> None:
    """The second is refused, and the first goes on; after it has left another may enter."""

    async def play() -> None:
        async with shared(MemoryJournal()) as runtime:
            async with Agent(run="r", model=Speaker([calls("look")]), runtime=runtime) as agent:
                with pytest.raises(RunOpen, match="'r' is performed here already"):
                    await Agent(run="r", model=Speaker(), runtime=runtime).__aenter__()
                assert (await agent.run("go")).answers == 2
            async with Agent(run="r", model=Speaker(), runtime=runtime) as agent:
                assert (await agent.run()).answers == 2

    run(play())


def test_an_agent_that_leaves_lets_the_others_go_on() -> None:
    """In the middle of its turn: whoever enters its run next has the continuation, once."""

    async def play() -> None:
        journal, done = MemoryJournal(), Counter[str]()
        async with shared(journal) as runtime:
            other = Agent(run="b", model=Speaker([calls("look")]), runtime=runtime)
            speaker = Speaker([calls("look")])
            async with other:
                slow = Speaker([calls("look")], slow=60.0)
                with pytest.raises(TimeoutError):
                    async with (
                        Agent(
                            run="a", model=slow, tools=[signed("a", done)], runtime=runtime
                        ) as agent,
                        asyncio.timeout(90),
                    ):
                        await agent.run("go")  # its results are there, and nobody tells the model
                assert (await other.run("go")).answers == 2
                assert runtime.runs == ("b",)
                async with Agent(
                    run="a", model=speaker, tools=[signed("a", done)], runtime=runtime
                ) as agent:
                    assert (await agent.run("go")).text == "done: go"
        assert done == {"a": 1}
        facts = [fact.type async for fact in journal.facts("a")]
        assert facts.count(FactType.CONTINUATION_TAKEN) == 1

    run(play())


def test_a_crash_with_many_agents_is_gone_on_with_by_each() -> None:
    """All that one process performed, another performs: each tool once."""

    async def play(after: float) -> None:
        journal, done = MemoryJournal(), Counter[str]()
        names = [f"r{number}" for number in range(5)]

        async def life(seconds: float | None) -> None:
            async with (
                shared(journal) as runtime,
                AsyncExitStack() as stack,
                asyncio.timeout(seconds),
            ):
                agents = [
                    await stack.enter_async_context(
                        Agent(
                            run=name,
                            model=Speaker([calls("look")] * 2, slow=0.3 * len(name)),
                            tools=[signed(name, done)],
                            runtime=runtime,
                        )
                    )
                    for name in names
                ]
                await asyncio.gather(*(it.run("go") for it in agents))

        with pytest.raises(TimeoutError):
            await life(after)
        await life(None)
        assert done == dict.fromkeys(names, 2)

    for after in (0.1, 0.7, 1.0, 1.9, 2.6):
        run(play(after))


def test_a_runtime_without_a_callback_takes_nothing_over() -> None:
    """Nobody could be told; a run that is opened so is refused, and left."""

    async def play() -> None:
        journal = MemoryJournal()
        told: list[Continuation] = []

        async def take(continuation: Continuation) -> None:
            told.append(continuation)

        answer = calls("look")
        async with Runtime(journal=journal, clock=LoopClock()) as runtime:
            with pytest.raises(InvalidValue, match="nobody who takes its continuations"):
                await runtime.open_run(Run(run_id="r"))
            assert runtime.runs == ()
            await runtime.open_run(Run(run_id="r"), on_continue=take)
            await runtime.open_turn("r", answer.identified(), turn_id="t1")
            await settled()
        assert [it.results[0].error for it in told] == ["there is no tool 'look'"]
        assert not (await journal.entry("r")).busy

    run(play())


def test_w_60_the_runtime_itself_takes_a_function_of_the_runs_id() -> None:
    """Runs that are opened without tools of their own have those that it says."""

    async def play() -> None:
        done: Counter[str] = Counter()
        boxes: Mapping[str, Toolbox] = {it: Toolbox.of(signed(it, done)) for it in "ab"}
        told: dict[str, object] = {}

        async def take(continuation: Continuation) -> None:
            told[continuation.run_id] = continuation.results[0].result

        async with Runtime(
            journal=MemoryJournal(),
            tools=boxes.__getitem__,
            on_continue=take,
            settings=Settings(),
            clock=LoopClock(),
        ) as runtime:
            for name in "ab":
                await runtime.open_run(Run(run_id=name))
                await runtime.open_turn(name, calls("look").identified(), turn_id="t1")
            with pytest.raises(KeyError):
                await runtime.open_run(Run(run_id="c"))
            await asyncio.sleep(10)
        assert told == {"a": "a looked", "b": "b looked"}

    run(play())


@pytest.mark.parametrize("by_run", [False, True])
def test_w_60_an_agent_without_tools_has_those_of_its_runtime(by_run: bool) -> None:
    """A toolbox, or what the function says of its run; with tools of its own, it has only these."""

    async def play() -> None:
        done: Counter[str] = Counter()
        boxes = {it: Toolbox.of(signed(it, done)) for it in "ab"}
        async with Runtime(
            journal=MemoryJournal(),
            tools=boxes.__getitem__ if by_run else boxes["a"],
            settings=BRIEF,
            clock=LoopClock(),
        ) as runtime:
            for name, own in (("a", None), ("b", None), ("c", [signed("own", done)])):
                speaker = Speaker([calls("look")])
                async with Agent(model=speaker, run=name, runtime=runtime, tools=own) as agent:
                    await agent.run("go")
                assert list(speaker.asked[0].tools) == ["look"]
        assert done == (Counter(a=1, b=1, own=1) if by_run else Counter(a=2, own=1))

    run(play())


def test_w_60_agents_among_the_tools_of_a_runtime_work_for_who_asks() -> None:
    """They have no tools but their own: those of the runtime are not theirs."""

    async def play() -> None:
        below, above = Speaker(), Speaker([calls("research", prompt="find it")])
        research = Agent(model=below).as_tool(name="research", description="Finds out.")
        async with (
            Runtime(
                journal=MemoryJournal(),
                tools=Toolbox([research]),
                settings=BRIEF,
                clock=LoopClock(),
            ) as runtime,
            Agent(model=above, runtime=runtime) as agent,
        ):
            await agent.run("go")
        assert above.results[0].results[0].result == "done: find it"
        assert list(below.asked[0].tools) == []

    run(play())


def test_w_60_an_agent_without_tools_on_a_runtime_of_its_own_has_none() -> None:
    """Nobody gave it any."""

    async def play() -> None:
        speaker = Speaker()
        async with Agent(model=speaker, settings=BRIEF, clock=LoopClock()) as agent:
            await agent.run("go")
        assert list(speaker.asked[0].tools) == []

    run(play())
