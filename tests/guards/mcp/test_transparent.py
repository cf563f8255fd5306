"""What is no call of a tool goes through a proxy as it came, in both eras of the protocol."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest

from .banking import ERAS, Bank, Mode, Person, pay, play, refused, told, until


@pytest.mark.parametrize("mode", ERAS)
def test_everything_else_goes_through(mode: Mode, tmp_path: Path) -> None:
    """Lists, resources, prompts, progress, logs, questions of the server with ids that the client
    has given, too; and a server that asks is called again without a doubt."""
    logs: list[Any] = []
    progress: list[float] = []

    async def logged(params: types.LoggingMessageNotificationParams) -> None:
        logs.append(params.data)

    async def told_progress(done: float, total: float | None, message: str | None) -> None:
        progress.append(done)

    async def work() -> None:
        bank = Bank(tmp_path)
        person = Person({"action": "accept", "content": {"really": True}})
        how: Any = {"logging_callback": logged, "log_level": "info"}
        async with bank.guarded("--gate", "gone", mode=mode, person=person, **how) as client:
            tools = await client.list_tools()
            assert [it.name for it in tools.tools] == ["pay", "pay_asking"]
            (found,) = (await client.read_resource("bank://x")).contents
            assert isinstance(found, types.TextResourceContents)
            assert found.text == "a text"
            assert [it.name for it in (await client.list_prompts()).prompts] == ["p"]
            result = await client.call_tool(
                "pay", {"amount": 1, "how": "tell"}, progress_callback=told_progress
            )
            assert told(result) == "paid 1"
            assert (progress, logs) == ([1, 2], ["half way"])
            assert told(await pay(client, 2, tool="pay_asking", key=None)) == "paid 2"
            assert person.asked == ["Really?"]
        assert bank.paid() == [1, 2]
        said = bank.errors.read_text()
        assert "the bank is open" in said
        assert "--gate gone guards nothing: the server lists no such tool" in said

    play(work())


@pytest.mark.parametrize("mode", ERAS)
def test_results_are_recorded_as_they_are(mode: Mode, tmp_path: Path) -> None:
    """Structured, of pictures, and of failures: the same once more. Only one too large is not."""

    async def work() -> None:
        bank = Bank(tmp_path)
        hows = ("", "picture", "fail")
        async with bank.guarded(mode=mode) as client:
            first = [await pay(client, how=how, key=f"a {how}") for how in hows]
            again = [await pay(client, how=how, key=f"a {how}") for how in hows]
            assert first == again
            assert first[0].structured_content == {"paid": 5}
            assert first[1].content[0].type == "image"
            assert first[2].is_error
            much = await pay(client, how="much", key="m")
            assert len(told(much)) == 2 << 20
            kept = await pay(client, how="much", key="m")
            assert kept.is_error
            assert "this call was executed, and its result is not kept" in told(kept)
        assert bank.paid() == [5, 5, 5, 5]

    play(work())


def test_calls_without_a_name_are_each_their_own(tmp_path: Path) -> None:
    """Recorded, and another call when they are asked for again."""

    async def work() -> None:
        bank = Bank(tmp_path)
        async with bank.guarded() as client:
            await asyncio.gather(*(pay(client, it, key=None) for it in range(3)))
            await pay(client, 0, key=None)
        assert sorted(bank.paid()) == [0, 0, 1, 2]

    play(work())


def test_a_cancelled_call_is_passed_on_and_what_comes_late_is_kept(tmp_path: Path) -> None:
    """The server hears of it; its late answer is the recorded outcome."""

    async def work() -> None:
        bank = Bank(tmp_path)
        async with bank.guarded() as client:
            payment = asyncio.create_task(pay(client, how="hang"))
            await until(bank.paid)
            payment.cancel()
            await until(lambda: "cancelled" in bank.lines()[-1])
            bank.go_on()
            assert told(await pay(client, how="hang")) == "paid 5"
        assert bank.paid() == [5]

    play(work())


def test_what_a_server_surely_did_not_begin_is_a_failure_and_all_else_a_doubt(
    tmp_path: Path,
) -> None:
    """-32602 comes again as it was; a broken line leaves a doubt; other arguments are another."""

    async def work() -> None:
        bank = Bank(tmp_path)
        async with bank.guarded() as client:
            for data in ({"a": 1}, None):
                error = await refused(pay(client, how="refuse", key="r"))
                assert (error.code, error.message, error.error.data) == (
                    -32_602,
                    "no such thing",
                    data,
                )
            for said in ("the line broke (JSON-RPC error -32000)", "nobody knows"):
                error = await refused(pay(client, how="break", key="b"))
                assert error.code == -32_011
                assert said in error.message
            await pay(client, 1)
            error = await refused(pay(client, 2))
            assert error.code == -32_602
            assert "other arguments" in error.message
        assert bank.paid() == [5, 1]

    play(work())
