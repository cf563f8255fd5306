"""Who decides about a gated call: a person at the client, one at the journal, or nobody."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from turnlock.cli.main import main
from turnlock.guards import Guard, PendingApproval
from turnlock.guards.mcp.refusals import NOT_APPROVED

from .banking import ERAS, YES, Bank, Mode, Person, pay, play, refused, told, until

RUN = "once/mcp/k1"


async def asked_for(bank: Bank, run: str = RUN) -> PendingApproval:
    """Return what waits in the journal, as soon as it does."""
    async with Guard.open(bank.db) as guard:
        while True:
            for waiting in await guard.awaiting(run):
                return waiting
            await asyncio.sleep(0.02)


async def decided(command: str, bank: Bank, waiting: PendingApproval, *more: str) -> None:
    """Decide as a person does who types what turnlock show prints."""
    words = [command, waiting.at.run, waiting.at.call, "--db", str(bank.db), *more]
    words += ["--turn", str(waiting.at.turn), "--digest", waiting.digest]
    found = await asyncio.to_thread(CliRunner().invoke, main, words)
    assert found.exit_code == 0, found.output


@pytest.mark.parametrize("mode", ERAS)
def test_a_decision_in_the_journal_lets_a_waiting_call_go_on(mode: Mode, tmp_path: Path) -> None:
    """turnlock approve alone, with edited arguments: those are what the server gets."""

    async def work() -> None:
        bank, person = Bank(tmp_path), Person(YES)
        options = ("--gate-all", "--decide", "journal")
        async with bank.guarded(*options, mode=mode, person=person) as client:
            payment = asyncio.create_task(pay(client))
            waiting = await asked_for(bank)
            assert bank.paid() == []
            await decided("approve", bank, waiting, "--arguments", '{"amount": 3}')
            assert told(await payment) == "paid 3"
            assert told(await pay(client)) == "paid 3"
        assert bank.paid() == [3]
        assert person.asked == []

    play(work())


def test_whoever_decides_first_has_decided(tmp_path: Path) -> None:
    """While a person is asked at the client another denies it: the question is taken back."""

    async def work() -> None:
        bank, person = Bank(tmp_path), Person(YES)
        taken_back = asyncio.Event()

        async def slowly() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                taken_back.set()

        person.wait = slowly
        async with bank.guarded("--gate", "pay", mode="legacy", person=person) as client:
            payment = asyncio.create_task(pay(client))
            await until(lambda: person.asked)
            await decided("deny", bank, await asked_for(bank), "--reason", "not today")
            assert told(await payment) == "pay was denied, and not executed: not today"
            await taken_back.wait()
        assert bank.paid() == []

    play(work())


def runs_of(bank: Bank) -> list[str]:
    """Return the runs of a journal."""
    with closing(sqlite3.connect(bank.db)) as journal:
        return [str(run) for (run,) in journal.execute("SELECT run_id FROM runs")]


def test_a_call_that_nobody_can_ask_for_again_is_withdrawn(tmp_path: Path) -> None:
    """Without a name, cancelled or not decided in time: nobody should decide about it any more."""

    async def work() -> None:
        bank = Bank(tmp_path)
        async with bank.guarded("--gate", "pay", "--wait", "0") as client:
            error = await refused(pay(client, key=None))
            assert error.code == NOT_APPROVED
            first = error.error.data["run"]
        async with bank.guarded("--gate", "pay", "--wait", "50") as client:
            payment = asyncio.create_task(pay(client, key=None))
            await until(lambda: len(runs_of(bank)) == 2)
            await asked_for(bank, next(it for it in runs_of(bank) if it != first))
            payment.cancel()
        async with Guard.open(bank.db) as guard:
            assert len(runs_of(bank)) == 2
            for run in runs_of(bank):
                assert await guard.awaiting(run) == (), run
        assert bank.paid() == []

    play(work())


def test_every_journal_conforms(tmp_path: Path) -> None:
    """turnlock check holds each fact of a proxy against the rules."""

    async def work() -> None:
        bank = Bank(tmp_path)
        async with bank.guarded("--gate", "pay", person=Person(YES)) as client:
            await pay(client)
            await refused(pay(client, how="break", key="b"))
            await refused(pay(client, how="refuse", key="r"))
            await pay(client, tool="pay_asking", key="a")
        found = await asyncio.to_thread(CliRunner().invoke, main, ["check", "--db", str(bank.db)])
        assert found.exit_code == 0, found.output
        assert "conforms" in found.output

    play(work())
