"""Sub-agents of Codex: threads that it begins, each a run beside its parent's (S-56)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import attrs
import pytest

from turnlock.adapters.codex.settings import KIND
from turnlock.adapters.contract import CommandRefused
from turnlock.models.facts import ExecutionInDoubt, ToolExecutionFailed
from turnlock.runtime.journal.ledger import Domain
from turnlock.server.children import child_id

from ...runtime.virtual import run
from .codex_runs import VERSIONS, World, codex_world
from .memory_codex import MemoryCodex

KID = "0199-kid"
RUN = child_id("r", KID)


@attrs.define
class Kid:
    """What a Codex says of a thread that it has begun, first heard of by its status."""

    codex: MemoryCodex
    turn: str = "kid-turn"

    def says(self, method: str, request: int | None = None, **params: Any) -> None:
        told: dict[str, Any] = {"method": method, "params": {"threadId": KID, **params}}
        if request is not None:
            told["id"] = request
        self.codex.wire.says(told)

    def begins(self) -> None:
        self.says("thread/status/changed", status={"type": "idle"})
        turn: dict[str, Any] = {"id": self.turn, "items": [], "status": "inProgress", "error": None}
        self.says("turn/started", turn=turn)

    def item(self, item: str, **more: Any) -> dict[str, Any]:
        return {
            "type": "commandExecution",
            "id": item,
            "command": f"run {item}",
            "cwd": "/workspace",
            "status": "inProgress",
            **more,
        }

    def runs(self, item: str) -> None:
        told = self.item(item, processId=f"p-{item}")
        self.says("item/started", turnId=self.turn, item=told)

    def asks(self, item: str, request: int) -> None:
        self.says("item/started", turnId=self.turn, item=self.item(item))
        self.codex.waiting[request] = item
        self.says(
            "item/commandExecution/requestApproval",
            request,
            turnId=self.turn,
            itemId=item,
            command=f"run {item}",
            cwd="/workspace",
        )


async def begun(it: World) -> Kid:
    """A turn in which another thread was begun."""
    await it.begun()
    kid = Kid(it.codex)
    kid.begins()
    await it.served.until(lambda: it.served.sessions.life.sub_agents.of("r") == (RUN,))
    return kid


@pytest.mark.parametrize("version", VERSIONS)
def test_s_56_what_another_thread_asks_is_decided_on_its_own_run(version: str) -> None:
    """The answer goes to the one process, by the request's id; its parent's run knows nothing."""

    async def play() -> None:
        async with codex_world(MemoryCodex(version=version)) as it:
            kid = await begun(it)
            kid.asks("c1", 70)
            await it.served.approve(RUN)
            await it.served.until(lambda: ("c1", {"decision": "accept"}) in it.codex.answers)
            kid.says("item/completed", turnId=kid.turn, item=kid.item("c1", status="completed"))
            kid.asks("c1", 71)  # its ids are its own
            await it.served.until(lambda: bool(it.served.pending(RUN)))
            (call,) = it.served.pending(RUN)
            denied = await it.runtime.deny(
                RUN, turn_id=call.turn_id, invocation_id=call.invocation_id, reason="no"
            )
            assert denied.accepted
            await it.served.until(lambda: ("c1", {"decision": "decline"}) in it.codex.answers)
            assert await it.facts() == []
            page = await it.journal.ledger(RUN)
            about = [json.loads(entry.correlation or b"{}") for entry in page.entries]
            assert {one["thread_id"] for one in about} == {KID}
            assert {one["turn_id"] for one in about if one["item_id"]} == {kid.turn}

    run(play())


def test_s_56_what_follows_from_its_parents_turn_is_its_parents() -> None:
    """Both ask under one id, in two threads: each answer is that of its own request."""

    async def play() -> None:
        async with codex_world() as it:
            kid = await begun(it)
            kid.asks("c1", 70)
            await it.served.until(lambda: bool(it.served.pending(RUN)))
            (own,) = await it.waits("c1")
            assert own.run_id == "r"
            runtime = it.runtime
            await runtime.deny("r", turn_id=own.turn_id, invocation_id="c1", reason="no")
            await it.served.approve(RUN)
            await it.served.until(lambda: len(it.codex.answers) == 2)
            answers = {told[1][0]: told[1][1] for told in it.codex.pipe if told[0] == "answer"}
            assert answers[70] == {"decision": "accept"}
            assert {"decision": "decline"} in answers.values()

    run(play())


@pytest.mark.parametrize("how", ["terminated", "died"])
def test_s_56_it_ends_with_the_process(how: str) -> None:
    """What it asked never started, what it ran is in doubt, and it is owned by nobody."""

    async def play() -> None:
        async with codex_world() as it:
            kid = await begun(it)
            kid.runs("c1")
            kid.asks("c2", 70)
            await it.served.until(lambda: bool(it.served.pending(RUN)))
            if how == "terminated":
                await it.served.sessions.terminate("r")
            else:
                it.codex.wire.dies(9)
            await it.served.until(lambda: not it.served.sessions.is_active("r"))
            await asyncio.sleep(1)
            facts = await it.facts(RUN)
            lost = [fact for fact in facts if isinstance(fact, ExecutionInDoubt)]
            failed = [fact for fact in facts if isinstance(fact, ToolExecutionFailed)]
            assert [fact.invocation_id for fact in lost] == ["c1"]
            never = [it for it in failed if it.invocation_id == "c2"]
            assert how == "terminated" or never[0].error.startswith("never started")
            assert (await it.journal.entry(RUN)).owner is None
            notes = await it.journal.notes(RUN, domain=Domain.SESSION)
            assert [noted.note.kind for noted in notes] == ["session", "epoch", "closed"]
            with pytest.raises(CommandRefused) as refused:
                await it.served.sessions.prompt(RUN, "hi", message_id="x")
            assert refused.value.code == "run_inactive"
            await it.served.sessions.restore("r")
            assert len(it.codex.told("thread/resume")) == 1  # its parent's thread alone
            assert await it.served.sessions.kind_of(RUN) == KIND

    run(play())
