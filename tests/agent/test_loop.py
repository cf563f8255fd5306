"""The loop: what it says, and that it goes on from wherever it was stopped."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import attrs
import pytest

from turnlock import FactType, OpenTurn, Status
from turnlock.agent.conversation import Owed
from turnlock.agent.errors import ConversationBroken, ModelError
from turnlock.agent.loop import Agent
from turnlock.agent.messages import Answer, Message, Prompt, Results
from turnlock.agent.script import Script, ScriptedModel
from turnlock.agent.speaking import Question, Said
from turnlock.engine.kernel import Kernel
from turnlock.runtime.errors import JournalOwned, RunFenced
from turnlock.runtime.journal.ledger import Note
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.tools.toolbox import Toolbox

from ..runtime.faulty_journal import Fault, FaultyJournal
from ..runtime.kept_notes import message, thread_note
from ..runtime.virtual import LoopClock, run, settled
from .talks import BRIEF, RUN, TALK, World, asked, crash

GOODBYE = "The recording talk ends here: 3 turns, 6 calls."


def test_it_asks_until_the_model_asks_for_no_more() -> None:
    """The model hears prompt, answers and results in order; each tool ran once."""

    async def play() -> None:
        world = World(MemoryJournal())
        async with world.agent() as agent:
            assert (await agent.run("go")).text == GOODBYE

        kinds = [type(message) for message in world.heard[-1]]
        assert kinds == [Prompt, Answer, Results, Answer, Results, Answer, Results]
        (first, second, _) = [it for it in world.heard[-1] if isinstance(it, Results)]
        assert [(it.invocation_id, it.provider_call_id) for it in first.results] == [
            ("a", "a"),
            ("a~2", "a"),
            ("call~3", None),
        ]
        assert [it.result for it in first.results[:2]] == ["sky seen", "sea seen"]
        assert first.results[2].error == "there is no tool 'nope'"
        assert second.results[1].error == "no JSON"
        assert set(world.done.values()) == {1}
        assert not (await world.journal.entry("r")).busy

    run(play())


def test_a_second_prompt_goes_on_in_the_same_run() -> None:
    """Turns count on, epochs with them; without a prompt nothing happens."""

    async def play() -> None:
        world = World(MemoryJournal())
        script = Script(name="s", turns=((asked(at="x"),),))
        async with world.agent(script) as agent:
            assert (await agent.run()).answers == 0
            await agent.run("one")
        async with world.agent(script) as agent:
            assert agent.conversation.last_prompt == Prompt(text="one")
            assert (await agent.run("two")).text.startswith("The recording s ends")
            assert [said.text for said in agent.conversation.said if isinstance(said, Prompt)] == [
                "one",
                "two",
            ]

    run(play())


async def honest() -> tuple[list[Message], dict[str, int]]:
    """What is said when nothing fails, and how often the journal was written."""
    faulty = FaultyJournal(MemoryJournal())
    async with World(faulty).agent() as agent:
        await agent.run("go")
        messages = [*agent.conversation.messages()]
    return messages, {method: faulty.calls[method] for method in ("note", "append")}


def test_a_crash_at_any_write_changes_nothing_that_is_said() -> None:
    """Before and after each note and each append: the next process says and does the same."""
    messages, writes = run(honest())
    assert writes["note"] == 5  # the prompt, three answers with calls, the last one
    cases = [
        (method, number, fault)
        for method, count in writes.items()
        for number in range(1, count + 1)
        for fault in (Fault.DELAYED, Fault.HELD)
    ]

    async def play(method: str, number: int, fault: Fault) -> None:
        faulty = FaultyJournal(MemoryJournal(), {(method, number): fault})
        world = World(faulty)
        first = world.agent()
        await first.__aenter__()
        work = asyncio.ensure_future(first.run("go"))
        await asyncio.sleep(5)
        died_working = not work.done()
        work.cancel()
        await asyncio.wait([work])
        await crash(first)

        async with world.agent() as second:
            if second.conversation.owed is Owed.PROMPT and not second.conversation.said:
                assert method == "note"
                await second.run("go")
            else:
                assert (await second.run()).text == GOODBYE
            assert [*second.conversation.messages()] == messages
        facts = [fact.type async for fact in faulty.facts("r")]
        assert died_working or method == "append"
        assert facts.count(FactType.TURN_SETTLED) == 3
        assert facts.count(FactType.CONTINUATION_TAKEN) == 3
        assert set(world.done.values()) == {1}, (method, number, fault)
        retried = facts.count(FactType.EXECUTION_RETRIED)
        assert sum(world.done.values()) <= 4 + retried

    for case in cases:
        run(play(*case))
    assert len(cases) > 30


@pytest.mark.parametrize("method", ["note", "append"])
@pytest.mark.parametrize("fault", [Fault.FULL, Fault.UNACKNOWLEDGED])
def test_a_journal_that_fails_for_a_while_is_waited_for(method: str, fault: Fault) -> None:
    """Whichever write fails: it is done again, and nothing is said or done twice."""

    async def play() -> None:
        for number in range(1, 6):
            faulty = FaultyJournal(MemoryJournal(), {(method, number): fault})
            world = World(faulty)
            async with world.agent() as agent:
                assert (await agent.run("go")).text == GOODBYE
            assert set(world.done.values()) == {1}

    run(play())


@attrs.define
class Broken:
    """A model that is away for a while."""

    failures: int
    inner: ScriptedModel

    async def speak(self, question: Question) -> AsyncIterator[Said]:
        if self.failures and any(isinstance(message, Results) for message in question.messages):
            self.failures -= 1
            raise ModelError("it is away; wait")
        async for said in self.inner.speak(question):
            yield said

    async def close(self) -> None:
        """Nothing is open."""


def test_a_model_that_fails_leaves_the_turn_owed() -> None:
    """K-52: nothing is acknowledged before the answer is kept; asking again goes on."""

    async def play() -> None:
        journal = MemoryJournal()

        def agent(failures: int) -> Agent:
            model = Broken(failures, ScriptedModel(TALK))
            tools = Toolbox([World(journal).look()])
            return Agent(
                run=RUN, model=model, journal=journal, tools=tools, settings=BRIEF,
                clock=LoopClock(),
            )  # fmt: skip

        for failures in (1, 2):
            with pytest.raises(ModelError, match="away"):
                async with agent(failures) as first:
                    await (first.run("go") if failures == 1 else first.run())
            assert (await journal.entry("r")).busy
            facts = [fact.type async for fact in journal.facts("r")]
            assert facts.count(FactType.CONTINUATION_TAKEN) == 0

        async with agent(1) as second:
            with pytest.raises(ModelError):
                await second.run()
            assert (await second.run()).text == GOODBYE

    run(play())


def test_an_interrupted_turn_gives_the_word_back() -> None:
    """The model is not told (K-53); with the next prompt it hears what became of the calls."""

    async def play() -> None:
        world = World(MemoryJournal())
        script = Script(name="s", turns=((asked(requires_approval=True, at="x"),),))
        async with world.agent(script) as agent:
            work = asyncio.ensure_future(agent.run("go"))
            await settled()
            assert [it.tool_name for it in agent.pending()] == ["look"]
            await agent.runtime.interrupt("r", turn_id="t1")
            assert (await work).interrupted
            assert (await agent.run()).interrupted

        async with world.agent(script) as agent:
            assert agent.conversation.owed is Owed.PROMPT
            await agent.run("never mind")
        told = [it for it in world.heard[-1] if isinstance(it, Results)]
        assert [(it.interrupted, it.results[0].status) for it in told] == [(True, Status.DENIED)]
        assert world.done == {}

    run(play())


def test_a_call_that_cannot_be_read_is_nobodys_to_approve() -> None:
    """It is gated so that a crash before its rejection cannot run it, and no person is asked."""

    async def play() -> None:
        faulty = FaultyJournal(MemoryJournal(), {("append", 2): Fault.HELD})
        world = World(faulty)
        script = Script(name="s", turns=((asked(fault="no JSON", text="{"),),))
        first = world.agent(script)
        await first.__aenter__()
        work = asyncio.ensure_future(first.run("go"))
        await asyncio.sleep(1)
        assert [it.tool_name for it in first.runtime.pending("r")] in ([], ["look"])
        assert first.pending() == ()
        work.cancel()
        await crash(first)
        async with world.agent(script) as second:
            await second.run()
        assert world.done == {}

    run(play())


def test_a_run_that_is_taken_over_says_so() -> None:
    """A loop that waits for results does not wait for ever in a run that is not its own."""

    async def play() -> None:
        world = World(MemoryJournal())
        script = Script(name="s", turns=((asked(requires_approval=True, at="x"),),))
        zombie = world.agent(script)
        await zombie.__aenter__()
        with pytest.raises(JournalOwned):
            await world.agent(script).__aenter__()
        work = asyncio.ensure_future(zombie.run("go"))
        await settled()
        await zombie.runtime._watchers.cancel()
        await asyncio.sleep(2)
        async with world.agent(script):
            with pytest.raises(RunFenced):
                await zombie.runtime.approve("r", turn_id="t1", invocation_id="a")
            with pytest.raises(RunFenced):
                await work
        await zombie.__aexit__(None, None, None)

    run(play())


def test_another_ones_turns_are_told() -> None:
    """Where somebody else opens turns in the run, the loop stops instead of guessing."""

    async def play() -> None:
        journal = MemoryJournal()
        await journal.declare(RUN)
        fence = await journal.own("r", owner="ada", now=0.0, lease=1.0)
        opened = Kernel(RUN).receive(OpenTurn(turn_id="x", calls=(), sealed=False), 0.0)
        await journal.append("r", fence=fence, after=0, facts=opened.facts, busy=True)
        async with World(journal).agent() as agent:
            with pytest.raises(ConversationBroken, match="turn_busy"):
                await agent.run("go")
            await agent.runtime.interrupt("r", turn_id="x")
            with pytest.raises(ConversationBroken, match="stale_epoch"):
                await agent.run()

    run(play())


@pytest.mark.parametrize(
    "note",
    [
        message("said/2", "user", text="x"),
        message("said/1", "?", text="x"),
        message("said/1", "user"),
        message("said/1", "assistant", text="x"),
        message("part/1/1", "user", text="x"),
    ],
)
def test_notes_that_are_no_conversation_are_told(note: Note) -> None:
    """Missing or strange ones; notes of other makes are left alone."""

    async def play() -> None:
        journal = MemoryJournal()
        await journal.declare(RUN)
        fence = await journal.own("r", owner="ada", now=0.0, lease=1.0)
        notes = [thread_note("colour", value="blue"), note]
        await journal.note("r", fence=fence, notes=notes)
        with pytest.raises(ConversationBroken, match=str(note.id)):
            await World(journal).agent().__aenter__()
        assert (await journal.entry("r")).owner is None

    run(play())


def test_leaving_at_the_moment_of_a_change_is_not_lost() -> None:
    """A cancellation that comes together with a fact ends the loop all the same."""

    async def play() -> None:
        async with World(MemoryJournal()).agent() as agent:
            followed = agent._entered.talk._run
            waiting = asyncio.ensure_future(followed.until(lambda: False))
            await settled()
            followed.tell()
            await asyncio.sleep(0)
            waiting.cancel()
            await settled()
            assert waiting.cancelled()

    run(play())


def test_the_example_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What docs/agent.md shows works as it stands, and again on the journal that it left."""
    page = Path(__file__).parents[2].joinpath("docs/agent.md").read_text("utf-8")
    code = page.split("```python\n")[1].split("```")[0]
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        exec(compile(code, "docs/agent.md", "exec"), {"__name__": "page"})  # noqa: S102 - ours
    assert capsys.readouterr().out == "It is sunny in Bern.\n" * 2
