"""UC-005 on Codex runs: each request is answered once, and `accept` after STARTED is kept."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnlock.adapters.codex.driver import Driver
from turnlock.adapters.codex.heard import Permit
from turnlock.models.lifecycle_facts import ToolApproved, ToolDenied, ToolExecutionStarted
from turnlock.runtime.journal.contract import Journal, open_journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.server.routing import Role

from ...runtime.virtual import run
from ...server import faces
from .codex_runs import VERSIONS, World, codex_world
from .memory_codex import MemoryCodex

ITEMS: Final = ("c1", "c2")


@attrs.define
class Witness:
    """Looks at the journal at the very moment in which a decision is written."""

    journal: Journal
    codex: MemoryCodex
    unseen: list[str] = attrs.field(factory=list[str])
    """Accepted calls whose start was not in the journal then."""

    async def look(self, message: dict[str, Any]) -> None:
        """Look, where something is let start."""
        if message.get("result") != {"decision": "accept"}:
            return
        item = self.codex.waiting[message["id"]]
        facts = [fact async for fact in self.journal.facts("r")]
        if item not in {it.invocation_id for it in facts if isinstance(it, ToolExecutionStarted)}:
            self.unseen.append(item)


@attrs.frozen
class Act:
    """What one of two clients does: about an item, with what was shown or something else."""

    client: int
    item: str
    approved: bool
    stale: bool = False
    times: int = 1
    later: int = 0


acts = st.lists(
    st.builds(
        Act,
        client=st.integers(0, 1),
        item=st.sampled_from((*ITEMS, "c9")),
        approved=st.booleans(),
        stale=st.booleans(),
        times=st.integers(1, 2),
        later=st.integers(0, 20),
    ),
    max_size=8,
)
ends = st.sampled_from(["goes on", "completes", "dies", "terminated"])


@settings(max_examples=20)
@given(acts, st.sampled_from(VERSIONS), ends)
def test_uc_005_any_order_of_decisions_from_two_clients(
    given_acts: list[Act], version: str, end: str
) -> None:
    """At most one answer for each request; `accept` only where STARTED was kept before (S-36)."""

    async def play() -> None:
        codex = MemoryCodex(version=version)
        async with codex_world(codex) as it, faces.opened(
            journal=it.journal, sessions=it.served.sessions
        ) as face:  # fmt: skip
            witness = Witness(it.journal, codex)
            codex.on_write = witness.look
            await it.begun()
            calls = await it.waits(*ITEMS)
            digests = {call.invocation_id: call.arguments_digest for call in calls}
            clients = [face.client(Role.DECIDE), face.client(Role.DECIDE)]

            async def act(one: Act) -> list[int]:
                for _ in range(one.later):
                    await asyncio.sleep(0)
                digest = "0" * 64 if one.stale else digests.get(one.item, "0" * 64)
                body: dict[str, Any] = {
                    "turn_id": calls[0].turn_id,
                    "invocation_id": one.item,
                    "approved": one.approved,
                }
                if one.approved:
                    body["arguments_digest"] = digest
                return [
                    (await clients[one.client].post("/v1/runs/r/decisions", json=body)).status_code
                    for _ in range(one.times)
                ]

            deciding = asyncio.gather(*map(act, given_acts))
            await ends_as(it, end)
            await deciding
            await asyncio.sleep(10)
            facts = await it.facts()
            started = {
                fact.invocation_id for fact in facts if isinstance(fact, ToolExecutionStarted)
            }
            approved = {fact.invocation_id for fact in facts if isinstance(fact, ToolApproved)}
            denied = {fact.invocation_id for fact in facts if isinstance(fact, ToolDenied)}
            written = [(params[0], params[1]) for name, params in codex.pipe if name == "answer"]
            assert len({number for number, _ in written}) == len(written)
            accepted = {item for item, told in codex.answers if told == {"decision": "accept"}}
            declined = {item for item, told in codex.answers if told == {"decision": "decline"}}
            assert witness.unseen == []
            assert accepted <= started <= approved
            assert declined <= denied
            assert not approved & denied
            if end == "goes on":
                assert accepted == started == approved
                assert declined == denied

    run(play())


async def ends_as(it: World, end: str) -> None:
    """End the turn, the process or the session, or nothing."""
    for _ in range(8):
        await asyncio.sleep(0)
    if end == "completes":
        it.codex.completes()
    elif end == "dies":
        it.codex.wire.dies()
    elif end == "terminated":
        await it.served.sessions.terminate("r")


Let = Callable[[Driver, Permit], Awaitable[None]]


async def accept_first(driver: Driver, permit: Permit) -> None:
    """What must never be: the answer is written, and then the claim is kept."""
    await driver.answer(permit.reply)
    await driver._keep((), (permit.claim,))  # pyright: ignore[reportPrivateUsage]


def test_s_21_the_control_an_accept_before_its_claim_is_seen() -> None:
    """The witness is no dummy: a driver that answers first is found out."""

    async def play() -> None:
        codex = MemoryCodex()
        with patch.object(Driver, "_let", accept_first):
            async with codex_world(codex) as it:
                witness = Witness(it.journal, codex)
                codex.on_write = witness.look
                await it.begun()
                await it.waits("c1")
                await it.served.approve()
                await it.served.until(lambda: bool(codex.answers))
                assert witness.unseen == ["c1"]

    run(play())


LOOKER: Final = """
import asyncio, sys
from turnlock.runtime.journal.contract import open_journal
from turnlock.models.lifecycle_facts import ToolExecutionStarted
async def main():
    async with await open_journal(sys.argv[1]) as journal:
        facts = [fact async for fact in journal.facts("r")]
        print(*[it.invocation_id for it in facts if isinstance(it, ToolExecutionStarted)])
asyncio.run(main())
"""


@pytest.mark.parametrize("naive", [False, True])
def test_s_21_started_is_in_the_file_when_accept_is_written(tmp_path: Path, naive: bool) -> None:
    """Read by another process, at that moment; where the claim comes later it is not there."""
    file = str(tmp_path / "journal.db")
    seen: list[str] = []

    async def look(message: dict[str, Any]) -> None:
        if message.get("result") == {"decision": "accept"}:
            command = [sys.executable, "-c", LOOKER, file]
            seen.append(subprocess.check_output(command, text=True, timeout=30).strip())  # noqa: ASYNC221 - nothing else is to happen meanwhile

    async def play() -> None:
        codex = MemoryCodex(on_write=look)
        async with await open_journal(file) as journal, codex_world(
            codex, journal, real=True
        ) as it:  # fmt: skip
            await it.begun()
            await it.waits("c1")
            await it.served.approve()
            await it.served.until(lambda: bool(codex.answers))

    with patch.object(Driver, "_let", accept_first if naive else Driver._let):  # pyright: ignore[reportPrivateUsage]
        asyncio.run(play())
    assert seen == ["" if naive else "c1"]


def test_s_44_an_accept_is_not_written_by_who_stood_still() -> None:
    """Another took the run over between the claim and the answer: nothing is let start."""

    async def play() -> None:
        journal = MemoryJournal()
        codex = MemoryCodex()
        async with codex_world(codex, journal) as it:
            await it.begun()
            await it.waits("c1")
            tenure = it.runtime.tenure
            has = tenure.has

            async def taken_over(run_id: str) -> bool:
                entry = await journal.entry("r")
                now = journal.time()
                await journal.own("r", owner="b", now=now, lease=60.0, gone=entry.owner)
                await asyncio.sleep(5)
                return await has(run_id)

            with patch.object(tenure, "has", taken_over):
                await it.served.approve()
                await it.served.until(lambda: codex.wire.dead)
            assert codex.answers == []
            assert await it.started() == {"c1"}

    run(play())


def test_s_42a_what_the_kind_cannot_is_refused_before_anything_happens() -> None:
    """Edited arguments and a retry: `capability_unsupported`, and the call waits on (S-11)."""

    async def play() -> None:
        async with codex_world() as it, faces.opened(
            journal=it.journal, sessions=it.served.sessions
        ) as face:  # fmt: skip
            await it.begun()
            (call,) = await it.waits("c1")
            client = face.client(Role.DECIDE)
            named = {"turn_id": call.turn_id, "invocation_id": "c1"}
            edited = await client.post(
                "/v1/runs/r/decisions",
                json={
                    **named,
                    "approved": True,
                    "arguments_digest": call.arguments_digest,
                    "arguments": {"command": "ls"},
                },
            )
            retried = await client.post(
                "/v1/runs/r/resolutions", json={**named, "attempt": 1, "resolution": "retry"}
            )
            for answer in (edited, retried):
                assert (answer.status_code, answer.json()["title"]) == (
                    409,
                    "capability_unsupported",
                )
            assert len(it.served.pending()) == 1
            assert it.codex.answers == []

    run(play())


def test_s_84_a_decision_or_resolution_begins_no_process() -> None:
    """What a dead process asked is over; a doubt is settled, and the run stays inactive (S-54)."""

    async def play() -> None:
        async with codex_world() as it, faces.opened(
            journal=it.journal, sessions=it.served.sessions
        ) as face:  # fmt: skip
            await it.begun()
            (call,) = await it.waits("c1")
            it.codex.runs("c2")
            await asyncio.sleep(1)
            it.codex.wire.dies()
            await it.served.until(lambda: not it.served.sessions.is_active("r"))
            started = len(it.codex.wires)
            client = face.client(Role.DECIDE)
            decision = {
                "turn_id": call.turn_id,
                "invocation_id": "c1",
                "approved": True,
                "arguments_digest": call.arguments_digest,
            }
            answer = await client.post("/v1/runs/r/decisions", json=decision)
            assert answer.status_code == 409
            resolution = {
                "turn_id": call.turn_id,
                "invocation_id": "c2",
                "attempt": 1,
                "resolution": "error",
                "error": "nobody knows",
            }
            answer = await client.post("/v1/runs/r/resolutions", json=resolution)
            assert answer.status_code == 200, answer.text
            await asyncio.sleep(30)
            assert len(it.codex.wires) == started
            assert not it.served.sessions.is_active("r")
            assert (await it.journal.entry("r")).doubts == 0

    run(play())


def test_s_43_the_client_is_answered_before_the_runtime_is() -> None:
    """The decision is kept by then; that the runtime took it is observed."""

    async def play() -> None:
        codex = MemoryCodex()
        gate = asyncio.Event()

        async def holds(message: dict[str, Any]) -> None:
            if "result" in message:
                await gate.wait()

        async with codex_world(codex) as it:
            await it.begun()
            await it.waits("c1")
            codex.on_write = holds
            await it.served.approve()
            assert codex.answers == []
            assert "TOOL_APPROVED" in await it.kinds()
            gate.set()
            await it.served.until(lambda: bool(codex.answers))
            await asyncio.sleep(1)
            notes = await it.journal.notes("r")
            assert "serverRequest/resolved" in [one.note.kind for one in notes]

    run(play())
