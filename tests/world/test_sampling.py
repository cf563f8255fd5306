"""A server asks an agent's model: once a person of the chat agreed, and never otherwise (W-68)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from turnlock.agent import Answer, Ended, Prompt
from turnlock.agent.speaking import Question, Said
from turnlock.runtime import open_journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.toolkits.mcp.sampling import Sample, SampleMessage
from turnlock.world import AgentSpec, World
from turnlock.world.host_file import open_host_file
from turnlock.world.names import member_run
from turnlock.world.questions import Questions
from turnlock.world.sampling import AT_ONCE, TOKENS, Sampling

from ..toolkits.mcp.hosting import HERE, context, failure, play, result

ALICE = "demo/plan/alice"
MODELS = """
from turnlock.agent import Answer, Ended

class Deep:
    async def speak(self, question):
        yield Ended(Answer(text=f"deep, of {question.limit}"))
    async def close(self):
        pass
"""


class Speaker:
    """A model that remembers what it was asked, and how many ask it at once."""

    def __init__(self) -> None:
        self.asked: list[Question] = []
        self.now = self.most = 0

    async def speak(self, question: Question) -> AsyncIterator[Said]:
        self.asked.append(question)
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        self.now -= 1
        yield Ended(Answer(text="fine"))

    async def close(self) -> None:
        """Nothing is open."""


def sample(run_id: str = ALICE, limit: int = 10) -> Sample:
    """What the shop wants a model to be asked."""
    return Sample(
        server="shop",
        run_id=run_id,
        turn_id="t1",
        invocation_id="a",
        attempt=1,
        number=1,
        tool_name="shop__ponder",
        instructions="Be short",
        messages=(SampleMessage("user", "Tea?"), SampleMessage("assistant", "Hm.")),
        limit=limit,
    )


def sampling(story: Callable[[Sampling, Speaker], Awaitable[None]]) -> None:
    """Play it in a world with alice, whose model speaks."""

    async def work() -> None:
        journal, speaker = MemoryJournal(), Speaker()
        world = World(journal, "demo")
        await world.make(title="Demo")
        await world.put_agent("alice", AgentSpec(model="file:Deep", instructions="Her own."))
        await story(Sampling(journal, "demo", lambda _: speaker), speaker)

    play(work())


def test_w_68_the_agents_model_is_asked_that_and_nothing_more() -> None:
    """No tools, no instructions and no words of its own; an answer of a bounded length."""

    async def story(it: Sampling, speaker: Speaker) -> None:
        assert await it.speak(sample()) == "fine"
        assert await it.speak(sample(limit=10**9)) == "fine"
        assert await it.speak(sample(limit=0)) == "fine"
        first = speaker.asked[0]
        assert first.messages == (Prompt(text="Tea?"), Answer(text="Hm."))
        assert (first.instructions, len(first.tools)) == ("Be short", 0)
        assert [asked.limit for asked in speaker.asked] == [10, TOKENS, 1]

    sampling(story)


@pytest.mark.parametrize("run_id", ["r", member_run("other", "plan", "alice"), "demo/plan/bob"])
def test_w_68_where_there_is_no_such_agent_nobody_speaks(run_id: str) -> None:
    """Another world's, one that was removed, a run of none."""

    async def story(it: Sampling, speaker: Speaker) -> None:
        assert await it.speak(sample(run_id)) == ""
        assert speaker.asked == []

    sampling(story)


def test_w_68_so_many_models_speak_for_servers_at_once() -> None:
    """More wait (W-9)."""

    async def story(it: Sampling, speaker: Speaker) -> None:
        await asyncio.gather(*(it.speak(sample()) for _ in range(3 * AT_ONCE)))
        assert len(speaker.asked) == 3 * AT_ONCE
        assert speaker.most <= AT_ONCE

    sampling(story)


@pytest.mark.parametrize("agrees", [True, False], ids=["agrees", "does not agree"])
def test_w_68_a_person_of_the_chat_is_asked_first(tmp_path: Path, *, agrees: bool) -> None:
    """By a host's file alone: the server is named there, its question stands in the chat."""
    shop = [sys.executable, str(HERE / "shop_server.py"), str(tmp_path / "ledger")]
    (tmp_path / "models.py").write_text(MODELS)
    path = tmp_path / "host.toml"
    path.write_text(
        f'[models]\nfiles = ["models.py"]\n[servers.shop]\ncommand = {shop!r}\n'
        '[sampling]\nservers = ["shop"]\n'
    )

    async def work() -> None:
        async with await open_journal(tmp_path / "w.db") as journal:
            world = World(journal, "demo")
            await world.make(title="Demo")
            await world.put_agent("alice", AgentSpec(model="file:Deep"))
            chat = await world.open_chat("plan", members=("alice",))
            async with (
                Questions(journal, "demo") as questions,
                open_host_file(path, questions=questions) as own,
            ):
                assert own.servers is not None
                ponder = own.servers.toolbox()["shop__ponder"]
                calling = asyncio.create_task(
                    (result if agrees else failure)(ponder, context(run_id=ALICE), topic="tea")
                )
                while not (kept := await journal.entries("demo/plan")):  # noqa: ASYNC110 - nothing tells
                    await asyncio.sleep(0.01)
                await chat.reply(kept[0].entry_id, accept={"allow": agrees}, by="me")
                told = await calling
        assert told == "tea: deep, of 10" if agrees else "does not let the model be asked" in told

    play(work())
