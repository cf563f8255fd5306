"""Servers of the official SDK that ask people of a chat: other processes reply, some die."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest

from turnlock.models.values import canonical
from turnlock.runtime import open_journal
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.tools.tool import Tool
from turnlock.toolkits.mcp import McpServer, McpServers
from turnlock.world import AgentSpec, World
from turnlock.world.questions import Questions

from ..toolkits.mcp.hosting import (
    Shop,
    context,
    done,
    doubt,
    play,
    result,
    shop_as_program,
    shop_over_http,
)

ROOT = Path(__file__).resolve().parents[2]
ALICE = "demo/plan/alice"
QUESTION = "question/demo%2Fplan%2Falice/t1/a/1/1"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Generator[Shop]:
    """One shop over HTTP for all tests here."""
    with shop_over_http(tmp_path_factory.mktemp("shop") / "ledger") as it:
        yield it


def server_of(kind: str, shop: Shop, tmp_path: Path) -> McpServer:
    """The shop, reached in one of four ways."""
    if kind.startswith("http"):
        return shop.server(old=kind.endswith("old"))
    return shop_as_program(tmp_path / "ledger", *(["old"] if kind.endswith("old") else []))


KINDS = pytest.mark.parametrize("kind", ["stdio", "stdio, old", "http", "http, old"])


def order_of(servers: McpServers, kind: str) -> Tool:
    """The tool that asks: those that ask in the middle of their work can do so in the old way."""
    return servers.toolbox()["shop__order_then" if kind.endswith("old") else "shop__order"]


@attrs.frozen
class Here:
    """A world with a chat, and the shop in it."""

    journal: Journal
    servers: McpServers
    questions: Questions

    async def said(self) -> list[dict[str, Any]]:
        """The entries of the chat."""
        return [
            {"id": it.entry_id, **json.loads(canonical(it.body))}
            for it in await self.journal.entries("demo/plan")
        ]

    async def replied(self, question: str = QUESTION) -> dict[str, Any]:
        """The reply to a question, once it is there."""
        name = question.replace("question", "reply", 1)
        while True:
            for it in await self.said():
                if it["id"] == name:
                    return it
            await asyncio.sleep(0.01)

    async def is_asked(self) -> None:
        """Wait until a question stands in the chat."""
        while not any(it["kind"] == "question" for it in await self.said()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def made(journal: Journal) -> None:
    """Make the world."""
    world = World(journal, "demo")
    await world.make(title="Demo")
    await world.put_agent("alice", AgentSpec(model="file:nobody"))
    await world.open_chat("plan", members=("alice",))


@asynccontextmanager
async def here(tmp_path: Path, server: McpServer, **how: Any) -> AsyncGenerator[Here]:
    """Make the world in a file of its own, and start the shop."""
    async with await open_journal(tmp_path / "w.db") as journal:
        await made(journal)
        async with (
            Questions(journal, "demo", **how) as questions,
            McpServers({"shop": server}, elicit=questions.ask) as servers,
        ):
            yield Here(journal, servers, questions)


@contextmanager
def replier(tmp_path: Path, by: str, size: int) -> Generator[subprocess.Popen[str]]:
    """Start a person in another process."""
    command = [sys.executable, "-m", "tests.world.replier", str(tmp_path / "w.db"), by, str(size)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.kill()


def printed(process: subprocess.Popen[str]) -> str:
    """What a person in another process came to."""
    assert process.stdout is not None
    return process.stdout.read().strip()


@KINDS
def test_w_67_a_person_in_another_process_replies(kind: str, shop: Shop, tmp_path: Path) -> None:
    """Over stdio and HTTP, before 2026-07-28 and since: the server gets what was said there."""

    async def work() -> None:
        async with here(tmp_path, server_of(kind, shop, tmp_path)) as it:
            with replier(tmp_path, "me", 3) as person:
                got = await result(order_of(it.servers, kind), context(run_id=ALICE), what="tea")
                assert json.loads(got.removeprefix("tea: "))["data"]["size"] == 3
                assert await asyncio.to_thread(printed, person) == "new"
            question, reply = await it.said()
            assert question["id"] == QUESTION
            assert (question["run"], question["server"]) == (ALICE, "shop")
            assert question["text"] == "Which size\\x1b[1m of tea?"
            assert (reply["by"], reply["content"]) == ("me", {"size": 3})

    play(work())


def test_w_67_of_two_who_reply_at_once_one_is_heard(tmp_path: Path) -> None:
    """The other is told; the server gets what stands in the log."""

    async def work() -> None:
        async with here(tmp_path, shop_as_program(tmp_path / "ledger")) as it:
            with replier(tmp_path, "me", 3) as one, replier(tmp_path, "you", 4) as other:
                got = await result(
                    it.servers.toolbox()["shop__order"], context(run_id=ALICE), what="tea"
                )
                told = [await asyncio.to_thread(printed, person) for person in (one, other)]
            assert told.count("new") == 1
            reply = await it.replied()
            assert reply["content"]["size"] == (3, 4)[told.index("new")]
            assert json.loads(got.removeprefix("tea: "))["data"]["size"] == reply["content"]["size"]

    play(work())


@pytest.mark.parametrize("tool", ["login", "page"])
def test_w_67_who_asks_for_a_secret_or_a_page_is_declined_unseen(
    tool: str, shop: Shop, tmp_path: Path
) -> None:
    """No question stands in the chat, so no secret answer can."""

    async def work() -> None:
        async with here(tmp_path, shop.server(old=True)) as it:
            called = it.servers.toolbox()[f"shop__{tool}"]
            if tool == "login":
                assert await result(called, context(run_id=ALICE)) == "decline"
            else:  # the client says that no pages may be asked: the server's own error, or decline
                await asyncio.gather(result(called, context(run_id=ALICE)), return_exceptions=True)
            assert await it.said() == []

    play(work())


def test_w_69_headless_it_is_declined_and_kept(shop: Shop, tmp_path: Path) -> None:
    """The server is told so at once, and the chat shows it."""

    async def work() -> None:
        async with here(tmp_path, shop.server(), headless=True) as it:
            got = await result(
                it.servers.toolbox()["shop__order"], context(run_id=ALICE), what="tea"
            )
            assert json.loads(got.removeprefix("tea: ")) == {"action": "decline"}
            assert [it["kind"] for it in await it.said()] == ["question", "reply"]

    play(work())


def test_w_67_a_server_that_dies_has_its_question_cancelled(tmp_path: Path) -> None:
    """The call is in doubt, and who replies then is late."""

    async def work() -> None:
        async with here(tmp_path, shop_as_program(tmp_path / "ledger")) as it:
            calling = asyncio.create_task(
                doubt(it.servers.toolbox()["shop__order"], context(run_id=ALICE), what="tea")
            )
            await it.is_asked()
            process = it.servers.process("shop")
            assert process is not None
            os.kill(process, signal.SIGKILL)
            assert "ended by signal 9" in await calling
            reply = await it.replied()
            assert (reply["action"], reply["by"]) == ("cancel", "world")
            with replier(tmp_path, "me", 3) as person:
                assert await asyncio.to_thread(printed, person) == "there"

    play(work())


def test_w_67_a_host_that_dies_has_its_question_cancelled_by_the_next(tmp_path: Path) -> None:
    """Killed while it waits: as long as nobody hosts it the question stays, the next cancels it.

    Negative control: before there is a next one, nothing has cancelled it.
    """
    db, ledger = tmp_path / "w.db", tmp_path / "ledger"

    async def prepare() -> None:
        async with await open_journal(db) as journal:
            await made(journal)

    async def work() -> None:
        async with await open_journal(db) as journal:
            it = Here(journal, McpServers({}), Questions(journal, "demo"))
            await it.is_asked()
            async with Questions(journal, "demo") as other:  # its process lives
                await other.cancel_what_is_left()
                assert [one["kind"] for one in await it.said()] == ["question"]
            host.kill()
            await asyncio.to_thread(host.wait)
            assert [one["kind"] for one in await it.said()] == ["question"]
            async with Questions(journal, "demo"):
                reply = await it.replied()
            assert (reply["action"], reply["by"]) == ("cancel", "world")
            with replier(tmp_path, "me", 3) as person:
                assert await asyncio.to_thread(printed, person) == "there"

    play(prepare())
    command = [sys.executable, "-m", "tests.world.asking_host", str(db), str(ledger)]
    with subprocess.Popen(command, cwd=ROOT) as host:
        try:
            play(work())
        finally:
            host.kill()
    assert [it["did"] for it in done(ledger)] == []
