"""UC-008 on Codex runs: its process, or the server, is killed at any step (S-26, S-49, S-52)."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import attrs
import pytest

from turnlock.adapters.codex.adapter import CodexAdapter
from turnlock.adapters.codex.process import ProcessName, name_of
from turnlock.adapters.codex.settings import KIND
from turnlock.adapters.contract import CommandRefused
from turnlock.adapters.rest import NEVER
from turnlock.models.effects import Execute
from turnlock.models.errors import TurnlockError
from turnlock.models.fact import Fact
from turnlock.models.facts import (
    ExecutionInDoubt,
    ToolDenied,
    ToolExecutionFailed,
    ToolExecutionStarted,
    ToolExecutionSucceeded,
)
from turnlock.models.run import Run
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.writer import fold_run
from turnlock.server.bounds import SessionSettings
from turnlock.views.call_view import Waits
from turnlock.views.live import calls_of

from ...runtime.virtual import run
from ...server.peers import MortalJournal, Served, serve, serving, spec, steps
from .codex_runs import VERSIONS
from .memory_codex import MemoryCodex, MemoryWire


class MortalWire(MemoryWire):
    """A process that is killed after so many messages of its."""

    def says(self, message: Mapping[str, Any]) -> None:
        super().says(message)
        assert isinstance(self.codex, MortalCodex)
        self.codex.left -= 1
        if self.codex.left == 0:
            self.dies(-9, "killed")


@attrs.define(eq=False)
class MortalCodex(MemoryCodex):
    """A Codex whose first process is killed after so many messages."""

    left: int = -1

    async def start(
        self, command: Sequence[str], *, cwd: str | None, env: Mapping[str, str] | None
    ) -> MemoryWire:
        await super().start(command, cwd=cwd, env=env)
        wire = self.wires[-1] = MortalWire(self, len(self.wires))
        return wire


@attrs.define
class Told:
    """A story of one turn, as far as the process and the server live."""

    it: Served
    codex: MemoryCodex

    @property
    def over(self) -> bool:
        return self.it.dead or not self.codex.wires or self.codex.wire.dead

    async def until(self, holds: Any) -> bool:
        await self.it.until(lambda: self.over or holds())
        return not self.over

    async def play(self) -> None:
        """One command is agreed to, one runs free, one is denied; the model says something."""
        codex, it = self.codex, self.it
        with suppress(TurnlockError):
            await it.sessions.create(spec(kind=KIND), prompt="go", message_id="m0")
        if not await self.until(lambda: codex.turn is not None):
            return
        codex.asks_to_run("c1")
        if not await self.until(it.pending):
            return
        with suppress(TurnlockError):
            await it.approve()
        if not await self.until(lambda: ("c1", {"decision": "accept"}) in codex.answers):
            return
        codex.ends("c1")
        codex.runs("c2")
        codex.ends("c2")
        codex.asks_to_run("c3")
        if not await self.until(it.pending):
            return
        (call,) = it.pending()
        runtime = it.sessions.runtime_of("r")
        if runtime is not None:
            with suppress(TurnlockError):
                await runtime.deny("r", turn_id=call.turn_id, invocation_id="c3", reason="no")
        if not await self.until(lambda: ("c3", {"decision": "decline"}) in codex.answers):
            return
        codex.speaks("done")
        codex.completes()
        await self.until(lambda: it.sessions.life.active["r"].idle)


@attrs.frozen
class Left:
    """What is kept of a run."""

    facts: Sequence[Fact]

    @classmethod
    async def of(cls, journal: Journal, run_id: str = "r") -> Left:
        return cls([fact async for fact in journal.facts(run_id)])

    def calls(self, kind: type[Fact]) -> set[str]:
        return {getattr(it, "invocation_id", "") for it in self.facts if isinstance(it, kind)}


async def at_rest(journal: Journal, codex: MemoryCodex) -> str:
    """Hold what must be so once a process is dead; say what it came to."""
    kernel = await fold_run(Run(run_id="r", kind=KIND), journal)
    assert not [one for one in kernel.pending_effects if isinstance(one, Execute)]
    assert {call.waits for call in calls_of(kernel)} <= {Waits.RESOLUTION}
    left = await Left.of(journal)
    started = left.calls(ToolExecutionStarted)
    accepted = {item for item, answer in codex.answers if answer == {"decision": "accept"}}
    assert accepted <= started  # S-21: its claim was kept before
    never = {
        it.invocation_id
        for it in left.facts
        if isinstance(it, ToolExecutionFailed) and it.error == NEVER
    }
    assert not never & (started | accepted)
    declined = {item for item, answer in codex.answers if answer == {"decision": "decline"}}
    assert declined <= left.calls(ToolDenied)
    assert left.calls(ExecutionInDoubt) <= started
    assert not left.calls(ToolExecutionSucceeded) & never
    doubted = {call.invocation_id for call in calls_of(kernel)}
    return f"{sorted(doubted)} {sorted(never)} {sorted(accepted | declined)}"


async def goes_on(it: Served, codex: MemoryCodex) -> None:
    """Restore a run whose process is dead, and have it answer another prompt."""
    await it.sessions.restore("r")
    await it.sessions.prompt("r", "next", message_id="n", doubts="fail")
    last = None
    while last != "n":  # what was kept before, and was never sent, is said first
        await it.until(lambda: codex.turn is not None)
        last = codex.told("turn/start")[-1]["clientUserMessageId"]
        codex.completes()
    await it.idle()
    sent = [told["clientUserMessageId"] for told in codex.told("turn/start")]
    assert len(sent) == len(set(sent))  # nothing is ever sent twice (S-81)


def alone(codex: MemoryCodex) -> dict[str, Any]:
    """What a server has that starts no process but those of runs."""
    return {
        "others": [CodexAdapter(start=codex.start)],
        "settings": SessionSettings(preload=False),
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_s_26_uc_008_a_process_that_is_killed_after_each_message(version: str) -> None:
    """No execute owed, nothing STARTED, unwritten decisions never started; it goes on."""

    async def play() -> None:
        outcomes: set[str] = set()
        for messages in range(3, 100):
            journal = MemoryJournal()
            codex = MortalCodex(version=version, left=messages)
            async with serving(journal, **alone(codex)) as it:
                await Told(it, codex).play()
                if not codex.wires[0].dead:
                    assert len(outcomes) > 4, outcomes
                    return
                await it.until(lambda it=it: not it.sessions.is_active("r"))  # type: ignore[misc]
                if not await steps(journal):
                    continue
                outcomes.add(await at_rest(journal, codex))
                await goes_on(it, codex)
                await at_rest(journal, codex)
        raise AssertionError("it says more than that")

    run(play())


@pytest.mark.parametrize("version", VERSIONS)
def test_s_52_uc_008_a_server_that_is_killed_at_each_write(version: str) -> None:
    """Section 14 on Codex: what was kept stands, the rest is brought to rest; it goes on."""

    async def play() -> None:
        outcomes: set[str] = set()
        for writes in range(2, 100):
            for kept in (False, True):
                journal, codex = MemoryJournal(), MemoryCodex(version=version)
                mortal = MortalJournal(journal, writes=writes, kept=kept)
                killed = await serve(mortal, **alone(codex))
                await Told(killed, codex).play()
                if not killed.dead:
                    await killed.close()
                    assert len(outcomes) > 5, outcomes
                    return
                for wire in codex.wires:
                    wire.dies(-9)  # with its server (S-48)
                await killed.kill()
                for performed in tuple(killed.sessions.life.active.values()):
                    await performed.session.leave()
                if not await journal.runs() or not await steps(journal):
                    continue
                before = (await Left.of(journal)).facts
                answers = list(codex.answers)
                async with serving(journal, **alone(codex)) as it:
                    await it.sessions.restore("r")
                    assert (await Left.of(journal)).facts[: len(before)] == before
                    assert codex.answers == answers
                    outcomes.add(await at_rest(journal, codex))
                    await goes_on(it, codex)
                    await at_rest(journal, codex)
        raise AssertionError("it writes more than that")

    run(play())


@asynccontextmanager
async def killed_while(codex: MemoryCodex, *items: str) -> AsyncGenerator[MemoryJournal]:
    """A server that was killed with its Codex while these commands ran."""
    journal = MemoryJournal()
    killed = await serve(journal, **alone(codex))
    await killed.sessions.create(spec(kind=KIND), prompt="go", message_id="m0")
    await killed.until(lambda: codex.turn is not None)
    codex.runs(*items)
    runtime = killed.sessions.life.runtimes[KIND]
    await killed.until(lambda: _running(runtime, "r") == len(items))
    codex.wire.dies(-9)
    await killed.kill()
    for performed in tuple(killed.sessions.life.active.values()):
        await performed.session.leave()
    yield journal


def _running(runtime: Any, run_id: str) -> int:
    calls = calls_of(runtime._actor(run_id).kernel)
    return sum(call.waits is Waits.REPORT for call in calls)


@pytest.mark.parametrize("version", VERSIONS)
def test_s_27_uc_008_what_the_thread_has_kept_settles_a_doubt(version: str) -> None:
    """An end alone; where the process lists no items, as older ones do not, nothing is proved."""

    async def play() -> None:
        codex = MemoryCodex(version=version)
        async with killed_while(codex, "c1", "c2") as journal:
            item = {**codex.items["c1"], "status": "completed", "exitCode": 0}
            codex.threads["thread-1"][0]["items"].append(item)
            codex.refusing["thread/read"] = "no"
            async with serving(journal, **alone(codex)) as it:
                await it.sessions.restore("r")
                left = await Left.of(journal)
                lists = version == VERSIONS[0]
                assert left.calls(ToolExecutionSucceeded) == ({"c1"} if lists else set())
                doubts = it.sessions.life.runtimes[KIND].doubts("r")
                assert len(doubts) == (1 if lists else 2)

    run(play())


def test_s_27_a_process_that_does_not_answer_proves_nothing() -> None:
    """The session goes on, and the doubt stays."""

    async def play() -> None:
        codex = MemoryCodex()
        async with killed_while(codex, "c1") as journal:
            codex.refusing["thread/items/list"] = "unknown"
            codex.silent.add("thread/read")
            async with serving(journal, **alone(codex)) as it:
                await it.sessions.restore("r")
                assert len(it.sessions.life.runtimes[KIND].doubts("r")) == 1

    run(play())


class LivingWire(MemoryWire):
    """A process that lives, as far as the system says."""

    @property
    def name(self) -> ProcessName:
        return name_of(os.getpid())


class LivingCodex(MemoryCodex):
    """A Codex whose processes live, as far as the system says."""

    async def start(
        self, command: Sequence[str], *, cwd: str | None, env: Mapping[str, str] | None
    ) -> MemoryWire:
        await super().start(command, cwd=cwd, env=env)
        wire = self.wires[-1] = LivingWire(self, len(self.wires))
        return wire


def test_s_49_uc_008_a_thread_is_not_resumed_while_its_process_lives() -> None:
    """Two would run one thread; somebody who knows better says so."""

    async def play() -> None:
        codex = LivingCodex()
        async with killed_while(codex, "c1") as journal:
            before = (await Left.of(journal)).facts
            async with serving(journal, **alone(codex)) as it:
                with pytest.raises(CommandRefused, match="force") as refused:
                    await it.sessions.restore("r")
                assert refused.value.code == "owned_elsewhere"
                assert str(os.getpid()) not in str(refused.value)  # F-6
                assert codex.told("thread/resume") == []
                assert (await Left.of(journal)).facts == before
                await it.sessions.restore("r", force=True)
                assert len(codex.told("thread/resume")) == 1

    run(play())


def test_s_54_uc_008_the_retry_budget_of_codex_runs() -> None:
    """Restored thrice a minute after it has failed; then `runtime_unavailable`, and when again."""

    async def play() -> None:
        codex = MemoryCodex()
        async with serving(MemoryJournal(), **alone(codex)) as it:
            await it.sessions.create(spec(kind=KIND))
            for _ in range(3):
                codex.wire.dies(1, "out of memory")
                await it.until(lambda: not it.sessions.is_active("r"))
                await it.sessions.restore("r")
            codex.wire.dies(1, "out of memory")
            await it.until(lambda: not it.sessions.is_active("r"))
            assert "out of memory" in str(it.sessions.failure_of("r"))
            with pytest.raises(CommandRefused) as refused:
                await it.sessions.restore("r")
            assert refused.value.code == "runtime_unavailable"
            assert 0 < refused.value.extra["retry_after"] <= 60

    run(play())
