"""A whole world by its files: a host's configuration, a server that asks, people elsewhere."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest

from turnlock.models.deliveries import Resolution, Scope
from turnlock.models.values import canonical
from turnlock.runtime import Settings, open_journal
from turnlock.runtime.journal.contract import Journal
from turnlock.views.call_view import CallView
from turnlock.world import AgentSpec, Chat, Host, World
from turnlock.world.headless import DENIED
from turnlock.world.host_file import open_host_file
from turnlock.world.names import doubt_id, request_id
from turnlock.world.questions import Questions

from ..toolkits.mcp.hosting import HERE, done, play
from .playing import said
from .test_mcp_questions import printed, replier

MODELS = '''
from turnlock.agent import Answer, Ended, Results
from turnlock.agent.messages import Stop, ToolCall

class Orders:
    """Orders tea at each prompt, and says what became of it."""

    async def speak(self, question):
        last = question.messages[-1]
        if isinstance(last, Results):
            it = last.results[0]
            told = it.result if it.error is None and it.reason is None else it.error or it.reason
            yield Ended(Answer(text=f"{told}"))
        else:
            call = ToolCall(call_id=None, tool_name="shop__order", arguments={"what": "tea"})
            yield Ended(Answer(calls=(call,), stop=Stop.CALLS))

    async def close(self):
        pass
'''


@attrs.frozen
class Hosted:
    """A host of the world, and its chat."""

    journal: Journal
    chat: Chat
    host: Host


@asynccontextmanager
async def hosted(
    tmp_path: Path, *, gated: bool = False, headless: bool = False
) -> AsyncGenerator[Hosted]:
    """A world with alice, who orders in the shop, performed by what its files say."""
    shop = [sys.executable, str(HERE / "shop_server.py"), str(tmp_path / "ledger")]
    (tmp_path / "models.py").write_text(MODELS)
    (tmp_path / "host.toml").write_text(
        f'[models]\nfiles = ["models.py"]\n[servers.shop]\ncommand = {shop!r}\n'
        f"[servers.shop.policies.order]\napproval = {'true' if gated else 'false'}\n"
    )
    async with await open_journal(tmp_path / "w.db") as journal:
        world = World(journal, "demo")
        await world.make(title="Demo")
        await world.put_agent("alice", AgentSpec(model="file:Orders", tools=("shop__*",)))
        chat = await world.open_chat("plan", members=("alice",))
        async with (
            Questions(journal, "demo", headless=headless) as questions,
            open_host_file(tmp_path / "host.toml", questions=questions) as own,
            Host(
                journal,
                "demo",
                models=own.models,
                toolboxes=own.toolboxes,
                questions=questions,
                headless=headless,
                settings=Settings(poll=0.05),
            ) as host,
        ):
            yield Hosted(journal, chat, host)


def test_w_60_a_member_has_the_tools_of_the_hosts_file_and_its_questions_are_answered(
    tmp_path: Path,
) -> None:
    """Heard, asked, replied to in another process, told to the model, published."""

    async def work() -> None:
        async with hosted(tmp_path) as it:
            await it.chat.say("anna", "@alice tea, please", message_id="m1")
            with replier(tmp_path, "bert", 3) as person:
                await it.host.idle("plan")
                assert await asyncio.to_thread(printed, person) == "new"
            first, answer = await said(it.journal, "demo/plan")
            assert first == "anna: @alice tea, please"
            assert answer.startswith('alice: tea: {"action":"accept"')
            assert '"size":3' in answer
            entries = await it.journal.entries("demo/plan")
            kinds = [entry.entry_id.partition("/")[0] for entry in entries]
            assert kinds == ["say", "question", "reply", "demo"]

    play(work())
    assert [it["did"] for it in done(tmp_path / "ledger")] == ["asked"]


def test_w_64_a_call_of_a_strangers_server_waits_for_a_person(tmp_path: Path) -> None:
    """And asks only once it is approved."""

    async def work() -> None:
        async with hosted(tmp_path, gated=True) as it:
            await it.chat.say("anna", "@alice tea, please", message_id="m1")
            while not (calls := [*_waiting(it)]):  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.01)
            (call,) = calls
            assert len(await it.journal.entries("demo/plan")) == 1
            request = request_id(call.run_id, call.turn_id, call.invocation_id)
            judged = await it.chat.decide(
                request,
                approved=True,
                scope=Scope.ONCE,
                arguments_digest=call.arguments_digest,
                decided_by="anna",
            )
            assert judged.accepted
            with replier(tmp_path, "bert", 4):
                await it.host.idle("plan")
            assert '"size":4' in (await said(it.journal, "demo/plan"))[-1]

    play(work())


def _waiting(it: Hosted) -> Iterator[CallView]:
    for run_id in it.host.runtime.runs:
        yield from it.host.runtime.pending(run_id)


@pytest.mark.parametrize("gated", [True, False], ids=["a request", "a question"])
def test_w_69_a_headless_host_comes_to_rest_by_itself(tmp_path: Path, *, gated: bool) -> None:
    """The request is denied, or the question declined, and the model is told why."""

    async def work() -> None:
        async with hosted(tmp_path, gated=gated, headless=True) as it:
            await it.chat.say("anna", "@alice tea, please", message_id="m1")
            await it.host.idle("plan")
            answer = (await said(it.journal, "demo/plan"))[-1]
            assert (DENIED if gated else '{"action":"decline"}') in answer

    play(work())


def test_w_67_a_host_that_is_killed_while_it_asks_leaves_a_doubt_and_no_question(
    tmp_path: Path,
) -> None:
    """The next one cancels the question and orders nothing again; a person says what became of it.

    Negative control: as long as nobody hosts the world, the question stands.
    """

    async def killed() -> None:
        async with await open_journal(tmp_path / "w.db") as journal:
            while len(await journal.entries("demo/plan")) < 2:  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.02)
            first.kill()
            await asyncio.to_thread(first.wait)
            kinds = [it.entry_id.partition("/")[0] for it in await journal.entries("demo/plan")]
            assert kinds == ["say", "question"]

    async def work() -> None:
        async with hosted(tmp_path) as it:
            while not (doubts := [*_in_doubt(it)]):  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.01)
            (call,) = doubts
            while len(await it.journal.entries("demo/plan")) < 3:  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.01)
            question, reply = (await it.journal.entries("demo/plan"))[1:]
            assert reply.entry_id == question.entry_id.replace("question", "reply", 1)
            assert '"cancel"' in canonical(reply.body)
            doubt = doubt_id(call.run_id, call.turn_id, call.invocation_id, call.attempt)
            error = "the host has died"
            await it.chat.resolve(doubt, resolution=Resolution.ERROR, error=error)
            await it.host.idle("plan")
            assert (await said(it.journal, "demo/plan"))[-1] == f"alice: {error}"

    command = [sys.executable, "-m", "tests.world.killed_host", str(tmp_path)]
    with subprocess.Popen(command, cwd=Path(__file__).resolve().parents[2]) as first:
        try:
            play(killed_once_there(tmp_path, killed))
        finally:
            first.kill()
    play(work())
    assert done(tmp_path / "ledger") == []


async def killed_once_there(folder: Path, killed: Callable[[], Awaitable[None]]) -> None:
    """Wait until the first process has made its file."""
    while not (folder / "w.db").exists():  # noqa: ASYNC110 - nothing tells
        await asyncio.sleep(0.02)
    await killed()


def _in_doubt(it: Hosted) -> Iterator[CallView]:
    for run_id in it.host.runtime.runs:
        yield from it.host.runtime.doubts(run_id)
