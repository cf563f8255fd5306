"""A real server of the SDK over streamable HTTP, in both protocols: what its tools come to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from turnlock import agent
from turnlock.runtime import MemoryJournal, Policy
from turnlock.runtime.tools.results import RESULT_BYTES
from turnlock.toolkits.mcp import (
    Accept,
    Cancel,
    Decline,
    McpServer,
    McpServers,
    Question,
    Reply,
    Sample,
    http,
)

from .hosting import (
    Notes,
    Shop,
    context,
    done,
    doubt,
    failure,
    outcome,
    play,
    result,
    until,
)

ERAS = pytest.mark.parametrize("old", [False, True], ids=["2026-07-28", "2025-11-25"])


@ERAS
def test_w_65_results_errors_and_keys_come_through(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, *, old: bool
) -> None:
    """A text, a number, a picture, an error, too much; the idempotency key goes along."""
    monkeypatch.setattr(http, "LINE", 4 << 20)

    async def work() -> None:
        async with McpServers({"shop": shop.server(old=old)}) as servers:
            box = servers.toolbox()
            assert await result(box["shop__look"], at="sky") == "sky seen"
            assert await result(box["shop__add"], a=1, b=2) == 3
            picture = await result(box["shop__picture"])
            assert picture["content"][0] == {
                "type": "image",
                "data": "iVBORw==",
                "mimeType": "image/png",
            }
            assert picture["content"][1] == {"type": "text", "text": "a picture"}
            assert await failure(box["shop__fail"], why="no money") == (
                "the tool failed: McpToolError: Error executing tool fail: no money"
            )
            assert await result(box["shop__buy_now"], what="tea") == "bought tea"
            assert done(shop.ledger)[-1]["key"] == "key-1"
            much = await failure(box["shop__much"], count=RESULT_BYTES)
            assert "the tool ran, but its result cannot be kept" in much
            assert "grows beyond 1,048,576 bytes of JSON" in much
            why = await doubt(box["shop__much"], count=5 << 20)
            assert "of more than 4,194,304 bytes" in why or "SSE stream failed" in why
            assert await result(box["shop__look"], at="sea") == "sea seen"

    play(work())


@ERAS
def test_w_66_progress_is_logged_and_an_interrupt_cancels(shop: Shop, *, old: bool) -> None:
    """What it says is made harmless and bounded; the server hears that it is to stop."""

    async def work() -> None:
        async with McpServers({"shop": shop.server(old=old, trusted=True)}) as servers:
            box = servers.toolbox()
            logs: list[str] = []
            given = context("shop__work", logs)
            assert await result(box["shop__work"], given, seconds=0.01) == "worked"
            assert logs == ["1 of 2: half\\x1b[2J way"]

            given = context("shop__work", logs)
            calling = asyncio.create_task(outcome(box["shop__work"], given, seconds=60))
            await until(lambda: len(logs) == 2)
            given.cancel("the turn was interrupted")
            assert "was cancelled: the turn was interrupted" in str(await calling)
            await until(lambda: done(shop.ledger)[-1]["did"] == "work cancelled")

            logs.clear()
            given = context("shop__flood", logs)
            assert await result(box["shop__flood"], given, count=300) == "flooded"
            assert len(logs) < 300
            assert any("more texts dropped" in log for log in logs)

    play(work())


@ERAS
def test_w_64_a_list_that_changes_counts_at_the_next_question(shop: Shop, *, old: bool) -> None:
    """The tool is there soon after; the toolbox is the same one until then."""
    called = "old_bird" if old else "bird"

    async def work() -> None:
        async with McpServers({"shop": shop.server(old=old)}) as servers:
            before = servers.toolbox()
            assert servers.toolbox() is before
            assert f"shop__{called}" not in before
            await result(before["shop__grow"], called=called)
            await until(lambda: f"shop__{called}" in servers.toolbox())
            assert await result(servers.toolbox()[f"shop__{called}"]) == called
            assert f"shop__{called}" not in before

    play(work())


class Curious:
    """A model that has the shop offer something more, and says what it is offered then."""

    async def speak(self, question: agent.Question) -> AsyncIterator[agent.Said]:
        last = question.messages[-1]
        if isinstance(last, agent.Prompt) and last.text == "grow":
            call = agent.ToolCall(
                call_id=None, tool_name="shop__grow", arguments={"called": "agents_bird"}
            )
            yield agent.Ended(agent.Answer(calls=(call,)))
        else:
            yield agent.Ended(agent.Answer(text=" ".join(question.tools)))

    async def close(self) -> None:
        """Nothing is open."""


def test_w_64_an_agent_asks_with_the_tools_that_are_there_now(shop: Shop) -> None:
    """The model is told of the new tool with the next question, in the same run."""

    def pay() -> None:
        """Pay."""

    async def work() -> None:
        server = shop.server(policies={"grow": Policy()})
        async with (
            McpServers({"shop": server}) as servers,
            agent.Agent(
                model=Curious(), tools=servers.beside(pay), journal=MemoryJournal()
            ) as asking,
        ):
            before = str(await asking.run("what is there?"))
            assert before.startswith("pay shop__look ")
            assert "agents_bird" not in before
            await asking.run("grow")
            await until(lambda: "shop__agents_bird" in servers.toolbox())
            assert "shop__agents_bird" in str(await asking.run("what is there?"))

    play(work())


@ERAS
def test_w_67_a_question_is_answered_by_who_is_asked(shop: Shop, *, old: bool) -> None:
    """Accepted, declined, put away, asked again for a misfit; kept, and never asked twice."""
    asked: list[Question] = []
    replies: list[Reply] = []

    async def ask(it: Question) -> Reply:
        asked.append(it)
        return replies.pop(0)

    async def work() -> None:
        async with McpServers({"shop": shop.server(old=old)}, elicit=ask) as servers:
            order = servers.toolbox()["shop__order_then" if old else "shop__order"]
            assert order.policy.concurrency == (1 if old else None)
            replies[:] = [
                Accept({"size": "large"}),
                Accept({"size": 3, "colour": "red"}),
                Accept({"size": 3, "gift": True}),
            ]
            got = await result(order, what="coat")
            assert got == 'coat: {"action":"accept","data":{"size":3,"gift":true}}'
            assert [it.question_id for it in asked] == ["question/r/t1/a/1/1"] * 3
            assert asked[0].message == "Which size\\x1b[1m of coat?"
            assert [(it.name, it.kind, it.required) for it in asked[0].fields] == [
                ("size", "integer", True),
                ("gift", "boolean", False),
            ]
            assert asked[0].mistake is None
            assert "'large' is not of type 'integer'" in str(asked[1].mistake)
            assert "colour: is no field of the form" in str(asked[2].mistake)

            replies[:] = [Decline()]
            assert '"decline"' in await result(order, what="hat")
            replies[:] = [Cancel()]
            assert '"cancel"' in await result(order, what="hat")
            replies[:] = [Accept({})] * 9
            assert '"decline"' in await result(order, what="hat")
            assert len(replies) == 5

            notes = Notes()
            servers.remember(notes)
            replies[:] = [Accept({"size": 4})]
            first = await result(order, what="tie")
            assert list(notes.kept) == ["question/r/t1/a/1/1", "reply/r/t1/a/1/1"]
            assert notes.kept["reply/r/t1/a/1/1"] == {"action": "accept", "content": {"size": 4}}
            assert await result(order, what="tie") == first
            assert replies == []

    play(work())


@ERAS
def test_w_69_nobody_there_declines(shop: Shop, *, old: bool) -> None:
    """Headless: the server hears that it is declined, and why is logged."""

    async def work() -> None:
        async with McpServers({"shop": shop.server(old=old)}) as servers:
            logs: list[str] = []
            name = "shop__order_then" if old else "shop__order"
            order = servers.toolbox()[name]
            assert '"decline"' in await result(order, context(name, logs), what="hat")
            assert logs == ["shop asks, and is declined: nobody answers questions here"]

    play(work())


def test_w_67_secrets_and_pages_are_declined_without_asking(shop: Shop) -> None:
    """Nobody sees the question, and nothing of it is kept."""

    async def ask(_: Question) -> Reply:
        raise AssertionError

    async def work() -> None:
        async with McpServers({"shop": shop.server(old=True)}, elicit=ask) as servers:
            notes = Notes()
            servers.remember(notes)
            box = servers.toolbox()
            assert await result(box["shop__login"]) == "decline"
            assert await result(box["shop__page"]) == "decline"
            assert notes.kept == {}

    play(work())


@ERAS
def test_w_67_two_calls_at_once_are_known_apart(shop: Shop, *, old: bool) -> None:
    """Where questions name no call, calls take turns; where they do, they run side by side."""
    asking: list[str] = []
    most = 0

    async def ask(it: Question) -> Reply:
        nonlocal most
        asking.append(it.invocation_id)
        most = max(most, len(asking))
        await asyncio.sleep(0.05)
        asking.remove(it.invocation_id)
        return Accept({"size": len(it.message)})

    async def work() -> None:
        async with McpServers({"shop": shop.server(old=old)}, elicit=ask) as servers:
            order = servers.toolbox()["shop__order_then" if old else "shop__order"]
            got = await asyncio.gather(*(result(order, what="x" * n) for n in (1, 2, 3)))
            message = len("Which size\\x1b[1m of ?")
            assert [f'"size":{message + n},' in got[n - 1] for n in (1, 2, 3)] == [True] * 3
            assert most == (1 if old else 3)

    play(work())


def test_w_68_the_model_is_asked_once_a_person_agrees(shop: Shop) -> None:
    """Not configured, or not approved: the server is told so; roots are told where they are."""
    seen: list[Sample] = []

    async def speak(it: Sample) -> str:
        seen.append(it)
        return "fine"

    async def work(*, agrees: bool) -> None:
        async def approve(it: Sample) -> bool:
            assert it.shown() == "Be short\nuser: About tea?"
            return agrees

        server = shop.server(roots=("/srv",))
        async with McpServers({"shop": server}, sample=speak, approve_sample=approve) as servers:
            ponder = servers.toolbox()["shop__ponder"]
            if agrees:
                assert await result(ponder, topic="tea") == "tea: fine"
                assert (seen[0].tool_name, seen[0].limit) == ("shop__ponder", 10)
            else:
                assert "does not let the model be asked" in await failure(ponder, topic="tea")
            assert await result(servers.toolbox()["shop__roots"]) == "file:///srv"

    async def without() -> None:
        async with McpServers({"shop": shop.server()}) as servers:
            box = servers.toolbox()
            assert "sampling" in await failure(box["shop__ponder"], topic="tea")
            assert "roots" in await failure(box["shop__roots"])

    play(work(agrees=False))
    assert seen == []
    play(work(agrees=True))
    assert len(seen) == 1
    play(without())


def test_a_url_that_is_no_server_is_named() -> None:
    """Nobody there, and somebody who speaks no MCP."""

    async def work() -> None:
        async def hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno")
            await writer.drain()
            writer.close()

        async with await asyncio.start_server(hello, "127.0.0.1", 0) as web:
            port = web.sockets[0].getsockname()[1]
            for url, why in (
                (f"http://127.0.0.1:{port}/mcp", "HTTP 401 Unauthorized"),
                ("http://127.0.0.1:9/mcp", "could not be reached"),
            ):
                with pytest.raises(Exception, match=why) as caught:
                    async with McpServers({"it": McpServer(url=url)}):
                        pass
                told: Any = str(caught.value)
                assert told.startswith("MCP server it: ")
                assert url in told

    play(work())


def test_w_65_a_server_that_dies_over_http_is_in_doubt(shop: Shop) -> None:
    """Killed in the middle: in doubt. Nobody there: nothing was sent, and that is a failure.

    The last of this module, for the shop is gone then.
    """

    async def work() -> None:
        async with McpServers({"shop": shop.server()}) as servers:
            box = servers.toolbox()
            calling = asyncio.create_task(outcome(box["shop__work"], seconds=60))
            await until(lambda: done(shop.ledger)[-1]["did"] == "work begun")
            shop.process.kill()
            assert "the tool cannot tell" in str(await calling)
            why = await failure(box["shop__look"], at="sky")
            assert "could not be reached" in why
            assert "nothing was sent" in why

    play(work())
