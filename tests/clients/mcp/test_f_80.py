"""F-80: the tools of one toolbox for any client of MCP, gated ones by elicitation, in both eras."""

from __future__ import annotations

import asyncio
from pathlib import Path

import mcp_types as types
import pytest

from turnlock.models.deliveries import Decide
from turnlock.runtime.journal.contract import open_journal
from turnlock.runtime.submitting import submit

from .offering import (
    CANCEL,
    DECLINE,
    ERAS,
    LOOKER,
    NO,
    RUNNER,
    YES,
    offering,
    play,
    refused,
    run_of,
    talking,
    told,
)

ANN = {"to": "ann", "amount": 3}

pytestmark = pytest.mark.parametrize("era", ERAS)


def test_f_80_it_offers_the_tools_of_one_toolbox(era: str, tmp_path: Path) -> None:
    """With their schemas; what is not gated runs at once, and what fails says so."""

    async def work() -> None:
        async with offering(tmp_path) as it, talking(it.url, era) as client:
            tools = (await client.client.list_tools()).tools
            assert [each.name for each in tools] == ["look", "pay", "fail"]
            assert tools[1].input_schema["required"] == ["to", "amount"]
            looked = await client.call("look", {"what": "up"})
            assert (told(looked), looked.is_error) == ("saw up", False)
            failed = await client.call("fail", {"why": "rain"})
            assert failed.is_error
            assert "rain" in told(failed)
            wrong = await client.call("pay", {"to": 3})
            assert wrong.is_error
            assert "arguments.amount: is missing" in told(wrong)
            assert (await refused(client.call("steal"))).code == -32_602
            assert it.ledger == ["look up", "fail rain"]
            assert client.asked == []
            assert len(await it.runs()) == 2  # what does not fit is no call

    play(work())


def test_f_80_a_gated_call_asks_and_runs_once_approved(era: str, tmp_path: Path) -> None:
    """The question shows all arguments; who decided is the token (F-12), by the digest (F-20)."""

    async def work() -> None:
        async with offering(tmp_path) as it, talking(it.url, era) as client:
            paid = await client.call("pay", ANN)
            assert paid.structured_content == {"to": "ann", "paid": 3}
            (asked,) = client.asked
            assert '"amount": 3' in asked
            assert '"to": "ann"' in asked
            (approved,) = await it.facts(run_of(paid), "TOOL_APPROVED")
            (question,) = await it.facts(run_of(paid), "TOOL_APPROVAL_REQUESTED")
            assert approved["decided_by"] == "app"
            assert question["arguments_digest"][:12] in asked
            assert it.ledger == ["pay ann 3"]

    play(work())


@pytest.mark.parametrize("says", [NO, DECLINE], ids=["false", "decline"])
def test_f_80_false_and_decline_deny(era: str, says: types.ElicitResult, tmp_path: Path) -> None:
    async def work() -> None:
        async with offering(tmp_path) as it, talking(it.url, era, says) as client:
            denied = await client.call("pay", ANN)
            assert denied.is_error
            assert "was denied, and not executed" in told(denied)
            (fact,) = await it.facts(run_of(denied), "TOOL_DENIED")
            assert fact["decided_by"] == "app"
            assert it.ledger == []

    play(work())


def test_f_80_cancel_decides_nothing_and_the_call_stays_in_the_consoles(
    era: str, tmp_path: Path
) -> None:
    """Abandoned: answered at once; approved in a console it runs, and the key has the outcome."""

    async def work() -> None:
        async with offering(tmp_path) as it, talking(it.url, era, CANCEL) as client:
            left = await client.call("pay", ANN, key="k1")
            assert left.is_error
            assert "waits for approval" in told(left)
            (call,) = await it.waiting()
            assert (call["run_id"], it.ledger) == (run_of(left), [])
            assert (await it.decide(call, approved=True)).status_code == 200
            again = await client.call("pay", ANN, key="k1")
            assert again.structured_content == {"to": "ann", "paid": 3}
            assert (it.ledger, len(client.asked)) == (["pay ann 3"], 1)

    play(work())


def test_f_80_whoever_decides_elsewhere_has_decided(era: str, tmp_path: Path) -> None:
    """While the person at the client is asked: by a console, with other arguments even."""

    async def work() -> None:
        asking = asyncio.Event()

        async def says() -> types.ElicitResult:
            asking.set()
            if era == "2026-07-28":
                await decided.wait()
            else:
                await asyncio.Event().wait()  # taken back: nobody waits for it
            return NO

        decided = asyncio.Event()
        async with (
            offering(tmp_path) as it,
            talking(it.url, era, lambda _: says()) as client,
        ):
            paying = asyncio.create_task(client.call("pay", ANN))
            await asking.wait()
            (call,) = await it.waiting()
            edited = {"to": "ann", "amount": 2}
            assert (await it.decide(call, approved=True, arguments=edited)).status_code == 200
            decided.set()
            paid = await paying
            assert paid.structured_content == {"to": "ann", "paid": 2}
            (approved,) = await it.facts(run_of(paid), "TOOL_APPROVED")
            assert approved["decided_by"] == "anna"
            assert it.ledger == ["pay ann 2"]

    play(work())


def test_f_80_turnlock_approve_decides_by_the_journal(era: str, tmp_path: Path) -> None:
    """As `turnlock approve` does in a process of its own, with a client that cannot be asked."""

    async def work() -> None:
        async with offering(tmp_path) as it, talking(it.url, era, None) as client:
            paying = asyncio.create_task(client.call("pay", ANN))
            (call,) = await it.waiting()
            async with await open_journal(str(tmp_path / "agent.db")) as journal:
                decision = Decide(
                    run_id=call["run_id"],
                    turn_id=call["turn_id"],
                    invocation_id=call["invocation_id"],
                    approved=True,
                    arguments_digest=call["arguments_digest"],
                    decided_by="bo",
                )
                submitted = await submit(journal, call["run_id"], decision, within=10)
            assert submitted.by_owner
            assert (await paying).structured_content == {"to": "ann", "paid": 3}
            assert it.ledger == ["pay ann 3"]

    play(work())


def test_f_80_a_client_that_cannot_be_asked_is_told_that_it_waits(era: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with offering(tmp_path, wait=0.2) as it, talking(it.url, era, None) as client:
            left = await client.call("pay", ANN)
            assert left.is_error
            assert "waits for approval" in told(left)
            assert len(await it.waiting()) == 1

    play(work())


def test_f_11_an_approval_counts_only_with_decide(era: str, tmp_path: Path) -> None:
    """An agent's own client cannot approve what it asked for: nobody there is even asked."""

    async def work() -> None:
        async with offering(tmp_path, wait=0.2) as it:
            async with talking(it.url, era, YES, who=RUNNER) as client:
                left = await client.call("pay", ANN)
                assert "waits for approval" in told(left)
                assert (client.asked, it.ledger) == ([], [])
            async with talking(it.url, era, YES, who=LOOKER) as client:
                assert len((await client.client.list_tools()).tools) == 3
                with pytest.raises(Exception):  # noqa: B017, PT011 - 403, as its transport says it
                    await asyncio.wait_for(client.call("look"), 10)
            assert it.ledger == []

    play(work())


def test_f_11_a_token_that_ends_meanwhile_decides_nothing(era: str, tmp_path: Path) -> None:
    """Asked while it could decide, answered when it cannot any more."""

    async def work() -> None:
        async with offering(tmp_path) as it:

            async def says() -> types.ElicitResult:
                tokens = it.face.tokens
                kept = {name: token for name in ("anna", "runner") if (token := tokens.named(name))}
                tokens.replace(kept)
                return YES

            with pytest.raises(Exception):  # noqa: B017, PT011 - its stream ends, or its answer is 401
                async with talking(it.url, era, lambda _: says()) as client:
                    await asyncio.wait_for(client.call("pay", ANN), 10)
            (call,) = await it.waiting()
            assert (call["waits"], it.ledger) == ("approval", [])

    play(work())


def test_f_80_two_questions_are_two_calls(era: str, tmp_path: Path) -> None:
    async def work() -> None:
        def says(question: str) -> types.ElicitResult:
            return YES if "ann" in question else NO

        async with offering(tmp_path) as it, talking(it.url, era, says) as client:
            paid, denied = await asyncio.gather(
                client.call("pay", ANN), client.call("pay", {"to": "bob", "amount": 4})
            )
            assert paid.structured_content == {"to": "ann", "paid": 3}
            assert "was denied" in told(denied)
            assert run_of(paid) != run_of(denied)
            assert it.ledger == ["pay ann 3"]

    play(work())


def test_w_65_a_repeated_key_gets_the_first_outcome(era: str, tmp_path: Path) -> None:
    """Late, by another client, and after a restart: nobody is asked again, and nothing runs."""

    async def work() -> None:
        async with offering(tmp_path) as it, talking(it.url, era) as client:
            first = await client.call("pay", ANN, key="k1")
            again = await client.call("pay", {"amount": 3, "to": "ann"}, key="k1")
            assert again == first
            other = await refused(client.call("pay", {"to": "ann", "amount": 4}, key="k1"))
            assert other.code == -32_602
            assert "another call" in other.message
            unnamed = await client.call("pay", ANN)
            assert run_of(unnamed) != run_of(first)
            assert it.ledger == ["pay ann 3", "pay ann 3"]
        async with offering(tmp_path) as it, talking(it.url, era, NO) as client:
            assert await client.call("pay", ANN, key="k1") == first
            assert (client.asked, it.ledger) == ([], [])

    play(work())


def test_w_65_a_key_asked_for_twice_at_once_is_one_call(era: str, tmp_path: Path) -> None:
    """Both are asked; one approves, the other says no: whoever was first has decided."""

    async def work() -> None:
        async with (
            offering(tmp_path) as it,
            talking(it.url, era) as one,
            talking(it.url, era, NO) as two,
        ):
            found = await asyncio.gather(
                one.call("pay", ANN, key="k"), two.call("pay", ANN, key="k")
            )
            assert found[0] == found[1]
            assert it.ledger == ([] if found[0].is_error else ["pay ann 3"])
            assert len(await it.runs()) == 1

    play(work())


def test_f_112_ids_of_requests_begin_anew_and_name_no_call(era: str, tmp_path: Path) -> None:
    """A second session with the same ids of JSON-RPC: another call, which is asked about."""

    async def work() -> None:
        async with offering(tmp_path) as it:
            runs: list[str] = []
            for _ in range(2):
                async with talking(it.url, era) as client:
                    runs.append(run_of(await client.call("pay", ANN)))
                    assert len(client.asked) == 1
            assert len(set(runs)) == 2
            assert it.ledger == ["pay ann 3"] * 2

    play(work())


def test_s_96_where_nobody_sits_a_gated_call_is_denied(era: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with (
            offering(tmp_path, on_pending="deny", doubts="fail") as it,
            talking(it.url, era, None) as client,
        ):
            denied = await client.call("pay", ANN)
            assert "nobody is here to decide" in told(denied)
            assert it.ledger == []

    play(work())
