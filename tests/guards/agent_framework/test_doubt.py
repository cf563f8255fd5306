"""What was begun and nobody knows the end of is never run again by itself (G-2, G-3, G-4)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from agent_framework import AgentSession, Content, MiddlewareFailure

from turnlock.guards import Guard, InDoubt, Resolution, StillRunning

from .hosting import PATIENCE, Host
from .speaking import PAY, Bank, Speaker, agent_of, decided, kept, loaded


class Hanging(Bank):
    """Pays, and then never returns, as often as it is told to."""

    def __init__(self, *, times: int = 1) -> None:
        """Hang so many times."""
        super().__init__()
        self.hangs, self.hung = times, asyncio.Event()

    async def after(self, amount: int) -> None:
        """Hang."""
        if self.hangs:
            self.hangs -= 1
            self.hung.set()
            await asyncio.Event().wait()


async def given_up(work: asyncio.Task[object], bank: Hanging) -> None:
    """Cancel a run while its tool hangs, as a host's timeout does."""
    await asyncio.wait_for(bank.hung.wait(), PATIENCE)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work


def test_g_3_a_host_timeout_in_the_tool(either: Guard | None) -> None:
    """The retry pays again; guarded it says who has to be asked, and goes on when that is told."""
    speaker = Speaker(PAY)

    async def play() -> list[int]:
        bank = Hanging()
        agent, session = agent_of(either, speaker, bank.tool()), AgentSession(session_id="s1")
        told = await decided(either, session, await agent.run("pay 5", session=session))
        stored = kept(session)
        await given_up(asyncio.ensure_future(agent.run(told, session=session)), bank)
        if either is None:
            await agent.run(told, session=loaded(stored))
            return bank.paid
        for again in (session, loaded(stored)):  # the one that was given up, and the stored one
            with pytest.raises(InDoubt) as caught:
                await agent.run(told, session=again)
        assert isinstance(caught.value, MiddlewareFailure)
        assert caught.value.at.call == "c1"
        await either.aresolve(caught.value.at, Resolution.RESULT, result="paid 5, says the bank")
        assert (await agent.run(told, session=session)).text == "done"
        assert speaker.told() == ["paid 5, says the bank"]
        return bank.paid

    assert asyncio.run(play()) == ([5] if either else [5, 5])


def test_g_3_the_model_is_not_told_of_a_doubt(guard: Guard) -> None:
    """As a tool's error it would invite the model to try again, under another id."""
    speaker = Speaker(PAY, [("c2", "pay", {"amount": 5})])

    async def play() -> list[int]:
        bank = Hanging()
        agent = agent_of(guard, speaker, bank.tool(asks=False))
        session = AgentSession(session_id="s1")
        await given_up(asyncio.ensure_future(agent.run("pay 5", session=session)), bank)
        with pytest.raises(InDoubt):
            await agent.run("did you pay?", session=session)
        assert not speaker.told()
        return bank.paid

    assert asyncio.run(play()) == [5]


def test_g_2_what_another_host_of_the_loop_runs_is_refused_while_it_runs(db: Path) -> None:
    """It may never end, so a refusal does not wait for it as it does for the calls beside it."""

    async def play() -> list[int]:
        bank, speaker = Hanging(), Speaker(PAY)
        async with Guard.open(db, wait=0.05) as guard, asyncio.timeout(PATIENCE):
            agent, session = agent_of(guard, speaker, bank.tool()), AgentSession(session_id="s1")
            told = await decided(guard, session, await agent.run("pay 5", session=session))
            stored = kept(session)
            first = asyncio.ensure_future(agent.run(told, session=session))
            await bank.hung.wait()
            with pytest.raises(StillRunning):
                await agent.run(told, session=loaded(stored))
            assert not first.done()
            first.cancel()
            await asyncio.wait([first])
        return bank.paid

    assert asyncio.run(play()) == [5]


@pytest.mark.parametrize("guarded", [False, True])
def test_g_4_kill_9_in_the_tool(db: Path, tmp_path: Path, guarded: bool) -> None:
    """The next process pays again; guarded it refuses, and goes on once it is resolved."""
    host = Host(db if guarded else None, tmp_path)
    stored, told = asyncio.run(asked_and_decided(host))
    killed = host.resume(hangs=True)
    assert killed.said() == "paid"
    killed.kill()
    resumed = host.resume()
    if not guarded:
        assert [resumed.said(), resumed.said()] == ["paid", "done paid 5"]
        resumed.end()
        assert host.paid() == ["5", "5"]
        return
    assert resumed.said() == "InDoubt"
    resumed.end()

    async def resolve() -> None:
        bank, speaker = Bank(), Speaker()
        async with Guard.open(db) as guard:
            agent = agent_of(guard, speaker, bank.tool())
            with pytest.raises(InDoubt) as caught:
                await agent.run(told, session=loaded(stored))
            assert str(killed.process.pid) in (caught.value.worker or "")
            await guard.aresolve(caught.value.at, Resolution.RESULT, result="paid 5")
            session = loaded(stored)
            assert (await agent.run(told, session=session)).text == "done"
            assert speaker.told() == ["paid 5"]
            assert not bank.paid
            assert (await agent.run("thanks", session=session)).text == "done"

    asyncio.run(resolve())
    assert host.paid() == ["5"]


def test_g_4_resolved_as_never_done(db: Path, tmp_path: Path) -> None:
    """A person who knows that it did not happen has it run: that is the one that counts."""
    host = Host(db, tmp_path)
    stored, told = asyncio.run(asked_and_decided(host))
    killed = host.resume(hangs=True)
    assert killed.said() == "paid"
    killed.kill()

    async def resolve() -> None:
        bank = Bank()
        async with Guard.open(db) as guard:
            agent = agent_of(guard, Speaker(), bank.tool())
            with pytest.raises(InDoubt) as caught:
                await agent.run(told, session=loaded(stored))
            await guard.aresolve(caught.value.at, Resolution.RETRY)
            assert (await agent.run(told, session=loaded(stored))).text == "done"
        assert bank.paid == [5]

    asyncio.run(resolve())


@pytest.mark.parametrize("guarded", [False, True])
def test_g_2_resumed_from_two_processes(db: Path, tmp_path: Path, guarded: bool) -> None:
    """One of them pays, and both tell the model the same."""
    host = Host(db if guarded else None, tmp_path)
    asyncio.run(asked_and_decided(host))
    both = [host.resume() for _ in range(2)]
    said = [it.said() for it in both]
    said = [it.said() if told == "paid" else told for it, told in zip(both, said, strict=True)]
    assert said == ["done paid 5"] * 2
    for it in both:
        it.end()
    assert host.paid() == (["5"] if guarded else ["5", "5"])


async def asked_and_decided(host: Host) -> tuple[str, list[Content]]:
    """Ask for a payment, have it approved, and store the session, as a web server does."""
    guard = None if host.db is None else Guard.open(host.db)
    agent, session = agent_of(guard, Speaker(PAY), Bank().tool()), AgentSession(session_id="s1")
    told = await decided(guard, session, await agent.run("pay 5", session=session))
    host.store(session, told)
    if guard:
        await guard.aclose()
    return kept(session), told
