"""The column MCP of the table of faults, each cell with its bare control, over real stdio."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from mcp import Client, MCPError
from mcp_types import InputRequiredResult

from turnlock.guards import At, Guard, Resolution
from turnlock.guards.mcp.asking import QUESTION, State
from turnlock.guards.mcp.refusals import IN_DOUBT, NOT_APPROVED

from .banking import (
    CANCEL,
    DECLINE,
    ERAS,
    KEY,
    MALFORMED,
    NO,
    YES,
    Bank,
    Mode,
    Person,
    killed,
    pay,
    play,
    refused,
    told,
    until,
)

REALLY = {"action": "accept", "content": {"really": True}}
AT = At(run="once/mcp/k1", turn="once", call="k1")


@pytest.mark.parametrize("mode", ERAS)
def test_g_1_one_approval_repeated_in_sequence(mode: Mode, tmp_path: Path) -> None:
    """G-1: a client that repeats what was approved; also a new client, and a new proxy."""

    async def work() -> None:
        bare = Bank(tmp_path / "bare")
        async with bare.bare(mode=mode) as client:
            await pay(client)
            await pay(client)
        assert bare.paid() == [5, 5], "the server executes each request"

        bank, person = Bank(tmp_path / "guarded"), Person(YES)
        async with bank.guarded("--gate", "pay", mode=mode, person=person) as client:
            assert told(await pay(client)) == "paid 5"
            assert told(await pay(client)) == "paid 5"
        async with bank.guarded("--gate", "pay", mode=mode) as client:
            assert told(await pay(client)) == "paid 5"
        assert bank.paid() == [5]
        assert len(person.asked) == 1
        assert '"amount": 5' in person.asked[0]

    play(work())


def test_g_2_from_two_proxies_at_once(tmp_path: Path) -> None:
    """G-2: two processes with one journal, and one approval of a call that both ask for, or two:
    the second waits, and gets the first one's outcome."""

    async def work() -> None:
        bare = Bank(tmp_path / "bare")
        async with bare.bare() as one, bare.bare() as two:
            await asyncio.gather(pay(one), pay(two))
        assert bare.paid() == [5, 5]

        bank = Bank(tmp_path / "guarded")
        persons = Person(YES), Person(YES)
        async with (
            bank.guarded("--gate", "pay", mode="legacy", person=persons[0]) as one,
            bank.guarded("--gate", "pay", mode="auto", person=persons[1]) as two,
        ):
            both = asyncio.gather(pay(one, how="hang"), pay(two, how="hang"))
            await until(bank.paid)
            assert any(it.asked for it in persons)
            bank.go_on()
            assert [told(it) for it in await both] == ["paid 5", "paid 5"]
        assert bank.paid() == [5]

    play(work())


@pytest.mark.parametrize("who", ["pid", "ppid"])
def test_g_4_killed_in_the_tool_then_asked_again(who: Any, tmp_path: Path) -> None:
    """G-4: kill -9 of the server, and of the proxy: in doubt, until somebody says what became."""

    async def work() -> None:
        bare = Bank(tmp_path / "bare")
        with killed():
            async with bare.bare() as client:
                await refused(pay(client, how="die"))
        async with bare.bare() as client:
            await pay(client)
        assert bare.paid() == [5, 5]

        bank = Bank(tmp_path / "guarded")
        with killed():
            async with bank.guarded() as client:
                payment = asyncio.create_task(refused(pay(client, how="hang")))
                await until(bank.paid)
                bank.kill(who)
                error = await payment
                assert who == "ppid" or error.code == IN_DOUBT
        bank.go_on()
        async with bank.guarded() as client:
            error = await refused(pay(client, how="hang"))
            assert error.code == IN_DOUBT
            assert "run once/mcp/k1" in error.message
            assert f"turnlock show once/mcp/k1 --db {bank.db}" in error.message
            assert bank.paid() == [5]

            async with Guard.open(bank.db) as guard:
                await guard.aresolve(AT, Resolution.RESULT, result={"content": []})
            assert (await pay(client, how="hang")).content == []
        assert bank.paid() == [5]

    play(work())


def test_g_4_what_did_not_happen_is_run_again(tmp_path: Path) -> None:
    """G-4: resolved as never done, the next request executes it."""

    async def work() -> None:
        bank = Bank(tmp_path)
        with killed():
            async with bank.guarded() as client:
                await refused(pay(client, how="die"))
        async with Guard.open(bank.db) as guard:
            await guard.aresolve(AT, Resolution.RETRY)
        with killed():
            async with bank.guarded() as client:
                assert (await refused(pay(client, how="die"))).code == IN_DOUBT
        assert bank.paid() == [5, 5]

    play(work())


@pytest.mark.parametrize("mode", ERAS)
def test_g_4_resolved_with_any_json(mode: Mode, tmp_path: Path) -> None:
    """G-4: what a person says need not be a result of MCP; what is one is told as it is."""

    async def work() -> None:
        bank = Bank(tmp_path)
        said: dict[str, Any] = {
            "text": "paid 5, says the bank",
            "object": {"id": 7},
            "result": {"content": [], "structuredContent": {"paid": 5}},
        }
        async with bank.guarded(mode=mode) as client:
            for key in said:
                assert (await refused(pay(client, how="break", key=key))).code == IN_DOUBT
            async with Guard.open(bank.db) as guard:
                for key, result in said.items():
                    at = At(run=f"once/mcp/{key}", turn="once", call=key)
                    await guard.aresolve(at, Resolution.RESULT, result=result)
            given = await pay(client, how="break", key="text")
            assert (told(given), given.structured_content) == (
                said["text"],
                {"result": said["text"]},
            )
            given = await pay(client, how="break", key="object")
            assert (told(given), given.structured_content) == ('{"id": 7}', {"id": 7})
            given = await pay(client, how="break", key="result")
            assert (given.content, given.structured_content) == ([], {"paid": 5})
        assert bank.paid() == [5, 5, 5]

    play(work())


@pytest.mark.parametrize("mode", ERAS)
def test_g_7_approved_by_the_client_alone(mode: Mode, tmp_path: Path) -> None:
    """G-7: a client that asks nobody, and one that forges the answer; neither executes anything."""

    async def work() -> None:
        bare = Bank(tmp_path / "bare")
        async with bare.bare(mode=mode) as client:
            await pay(client)
        assert bare.paid() == [5], "no server knows whether anybody agreed"

        bank, person = Bank(tmp_path / "guarded"), Person(YES)
        async with bank.guarded("--gate", "pay", "--wait", "0", mode=mode) as client:
            error = await refused(pay(client))
            assert error.code == NOT_APPROVED
            assert error.error.data["run"] == "once/mcp/k1"
        journal = ("--gate-all", "--decide", "journal", "--wait", "0")
        async with bank.guarded(*journal, mode=mode, person=person) as client:
            assert (await refused(pay(client))).code == NOT_APPROVED
        assert person.asked == []
        assert bank.paid() == []

    play(work())


def test_g_7_an_answer_to_what_nobody_was_shown(tmp_path: Path) -> None:
    """G-7: an answer of 2026-07-28 with another digest is none, and the question comes again; with
    other arguments than were shown it is refused."""

    async def forged(client: Client, state: str, amount: int = 5) -> Any:
        return await client.session.call_tool(
            "pay",
            {"amount": amount},
            input_responses=cast("Any", {QUESTION: YES}),
            request_state=state,
            meta=cast("Any", {KEY: "k1"}),
            allow_input_required=True,
        )

    async def work() -> None:
        bank = Bank(tmp_path)
        async with bank.guarded("--gate", "pay", person=Person(YES)) as client:
            found = await forged(client, State(call="k1", digest="0" * 64).written())
            assert isinstance(found, InputRequiredResult)
            state = State.read(found.request_state)
            assert state is not None
            assert bank.paid() == []
            with pytest.raises(MCPError, match="is not that of the call"):
                await forged(client, State(call="k2", digest=state.digest).written())
            with pytest.raises(MCPError, match="with another tool or other arguments"):
                await forged(client, state.written(), 500)
            assert bank.paid() == []
            assert told(await forged(client, state.written())) == "paid 5"
        assert bank.paid() == [5]

    play(work())


@pytest.mark.parametrize(("mode", "no"), [("legacy", NO), ("auto", DECLINE)])
def test_g_8_rejected_then_approved(mode: Mode, no: Any, tmp_path: Path) -> None:
    """G-8: declined stays declined; a server that asks by itself takes the next answer."""

    async def work() -> None:
        bare = Bank(tmp_path / "bare")
        async with bare.bare(mode=mode, person=Person(DECLINE, REALLY)) as client:
            assert (await pay(client, tool="pay_asking")).is_error
            await pay(client, tool="pay_asking")
        assert bare.paid() == [5]

        bank, person = Bank(tmp_path / "guarded"), Person(no, YES)
        async with bank.guarded("--gate", "pay", mode=mode, person=person) as client:
            for _ in range(2):
                denied = await pay(client)
                assert denied.is_error
                assert told(denied).startswith("pay was denied, and not executed")
        assert len(person.asked) == 1
        assert bank.paid() == []

    play(work())


@pytest.mark.parametrize("mode", ERAS)
def test_g_14_a_cancelled_or_malformed_answer_asks_again(mode: Mode, tmp_path: Path) -> None:
    """G-14: what is no decision decides nothing: the same call can be asked about again."""

    async def work() -> None:
        bare, person = Bank(tmp_path / "bare"), Person(MALFORMED)
        async with bare.bare(mode=mode, person=person) as client:
            assert (await pay(client, tool="pay_asking")).is_error
        assert len(person.asked) == 1, "this server takes what is no answer for a no"

        bank, person = Bank(tmp_path / "guarded"), Person(CANCEL, MALFORMED, YES)
        async with bank.guarded("--gate", "pay", mode=mode, person=person) as client:
            assert (await refused(pay(client))).code == NOT_APPROVED
            assert told(await pay(client)) == "paid 5"
        assert len(person.asked) == 3
        assert bank.paid() == [5]

    play(work())
