"""UC-005: what was decided is written to the runtime once, and `accept` after its claim is kept."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnlock.models.lifecycle_facts import ToolApproved, ToolDenied, ToolExecutionStarted
from turnlock.runtime.journal.contract import Journal, open_journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.server.routing import Role

from ..runtime.virtual import run
from . import faces
from .peers import serving, spec
from .scripted import KIND, ScriptedAdapter

ITEMS = ("c1", "c2")


@attrs.define
class Witness(ScriptedAdapter):
    """Looks at the journal whenever an `accept` is written."""

    journal: Journal | None = None
    unseen: list[str] = attrs.field(factory=list[str])
    """Accepted calls whose start was not in the journal then."""

    async def step(self, name: str, *told: str) -> None:
        """Look first."""
        if name == "accept" and self.journal is not None:
            facts = [fact async for fact in self.journal.facts(told[0])]
            started = [it for it in facts if isinstance(it, ToolExecutionStarted)]
            if told[1] not in {it.invocation_id for it in started}:
                self.unseen.append(told[1])
        await super().step(name, *told)


@attrs.frozen
class Act:
    """What one of two clients does: about an item, with what was shown or something else."""

    client: int
    item: str
    approved: bool
    stale: bool = False
    times: int = 1


acts = st.lists(
    st.builds(
        Act,
        client=st.integers(0, 1),
        item=st.sampled_from((*ITEMS, "c9")),
        approved=st.booleans(),
        stale=st.booleans(),
        times=st.integers(1, 2),
    ),
    max_size=8,
)


@settings(max_examples=20)
@given(acts, st.booleans())
def test_uc_005_any_order_of_decisions_from_two_clients(given_acts: list[Act], end: bool) -> None:
    """At most one answer for each request; `accept` only where STARTED was kept before (S-36)."""

    async def play() -> None:
        journal = MemoryJournal()
        scripted = Witness(journal=journal)
        async with (
            serving(journal, others=[scripted]) as it,
            faces.opened(journal=journal, sessions=it.sessions) as face,
        ):
            await it.sessions.create(spec(kind=KIND), prompt="go", message_id="m")
            await it.until(lambda: bool(scripted.told("took")))
            session = scripted.sessions["r"]
            for item in ITEMS:
                await session.asks_for(item, rm=item)
            digests = {one.invocation_id: one.arguments_digest for one in it.pending()}
            clients = [face.client(Role.DECIDE), face.client(Role.DECIDE)]

            async def act(one: Act) -> list[int]:
                digest = "0" * 64 if one.stale else digests.get(one.item, "0" * 64)
                body: dict[str, Any] = {
                    "turn_id": "u1.1", "invocation_id": one.item, "approved": one.approved
                }  # fmt: skip
                if one.approved:
                    body["arguments_digest"] = digest
                return [
                    (await clients[one.client].post("/v1/runs/r/decisions", json=body)).status_code
                    for _ in range(one.times)
                ]

            statuses = await asyncio.gather(*map(act, given_acts))
            if end:
                await session.completes()
            for _ in range(50):
                await asyncio.sleep(0)
            facts = [fact async for fact in journal.facts("r")]
            approved = {fact.invocation_id for fact in facts if isinstance(fact, ToolApproved)}
            denied = {fact.invocation_id for fact in facts if isinstance(fact, ToolDenied)}
            answers = [(name, item) for name, _, item in scripted.told("accept", "decline")]
            assert sorted(answers) == sorted(
                [("accept", item) for item in approved] + [("decline", item) for item in denied]
            )
            assert not approved & denied
            assert scripted.unseen == []
            for one, told in zip(given_acts, statuses, strict=True):
                assert set(told) <= ({404} if one.item == "c9" else {200, 409, 412})

    run(play())


def test_uc_005_the_fence_holds_only_because_the_claim_goes_first() -> None:
    """The witness is no dummy: an `accept` that is written without its claim is seen."""

    async def play() -> None:
        journal = MemoryJournal()
        scripted = Witness(journal=journal)
        async with serving(journal, others=[scripted]) as it:
            await it.sessions.create(spec(kind=KIND), prompt="go", message_id="m")
            await it.until(lambda: bool(scripted.told("took")))
            await scripted.sessions["r"].asks_for("c1")
            await scripted.step("accept", "r", "c1")
        assert scripted.unseen == ["c1"]

    run(play())


LOOKER = """
import asyncio, sys
from turnlock.runtime.journal.contract import open_journal
from turnlock.models.lifecycle_facts import ToolExecutionStarted
async def main():
    async with await open_journal(sys.argv[1]) as journal:
        facts = [fact async for fact in journal.facts("r")]
        print([it.invocation_id for it in facts if isinstance(it, ToolExecutionStarted)])
asyncio.run(main())
"""


def test_s_21_accept_is_written_only_after_started_is_in_the_file(tmp_path: Path) -> None:
    """UC-005: read by another process, at the very moment in which it is about to be written."""
    file = str(tmp_path / "journal.db")
    seen: list[str] = []

    @attrs.define
    class Reader(ScriptedAdapter):
        async def step(self, name: str, *told: str) -> None:
            if name == "accept":
                command = [sys.executable, "-c", LOOKER, file]
                seen.append(subprocess.check_output(command, text=True, timeout=30).strip())  # noqa: ASYNC221 - nothing else is to happen meanwhile
            await super().step(name, *told)

    async def play() -> None:
        scripted = Reader()
        async with (
            await open_journal(file) as journal,
            serving(journal, others=[scripted], real=True) as it,
        ):
            await it.sessions.create(spec(kind=KIND), prompt="go", message_id="m")
            await it.until(lambda: bool(scripted.told("took")))
            await scripted.sessions["r"].asks_for("c1")
            await it.approve()
            await it.until(lambda: bool(scripted.told("accept")))

    asyncio.run(play())
    assert seen == [json.dumps(["c1"]).replace('"', "'")]


@pytest.mark.parametrize("approved", [True, False])
def test_s_42_what_a_grant_or_a_person_decides_is_answered(approved: bool) -> None:
    """A grant of the turn answers the next request by itself; a denial is a `decline`."""

    async def play() -> None:
        scripted = ScriptedAdapter()
        async with serving(others=[scripted]) as it, faces.opened(
            journal=it.sessions.journal, sessions=it.sessions
        ) as face:  # fmt: skip
            await it.sessions.create(spec(kind=KIND), prompt="go", message_id="m")
            await it.until(lambda: bool(scripted.told("took")))
            session = scripted.sessions["r"]
            await session.asks_for("c1", rm=1)
            (call,) = it.pending()
            body: dict[str, Any] = {
                "turn_id": "u1.1", "invocation_id": "c1", "approved": approved, "reason": "why"
            }  # fmt: skip
            if approved:
                body |= {"arguments_digest": call.arguments_digest, "scope": "turn"}
            client = face.client(Role.DECIDE)
            answer = await client.post("/v1/runs/r/decisions", json=body)
            assert answer.status_code == 200
            again = await client.post("/v1/runs/r/decisions", json=body)
            assert (again.status_code, again.json()["reason"]) == (200, "duplicate")
            await session.asks_for("c2", rm=1)
            first = "accept" if approved else "decline"
            await it.until(lambda: bool(scripted.told(first)))
            assert scripted.told("decline" if approved else "accept") == []
            if approved:
                await it.until(lambda: len(scripted.told("accept")) == 2)
            else:
                assert len(it.pending()) == 1

    run(play())


def test_s_42a_what_the_kind_cannot_is_refused_before_anything_happens() -> None:
    """S-11: edited arguments and a retry, `capability_unsupported`, and the call waits on."""

    async def play() -> None:
        scripted = ScriptedAdapter()
        async with serving(others=[scripted]) as it, faces.opened(
            journal=it.sessions.journal, sessions=it.sessions
        ) as face:  # fmt: skip
            await it.sessions.create(spec(kind=KIND), prompt="go", message_id="m")
            await it.until(lambda: bool(scripted.told("took")))
            await scripted.sessions["r"].asks_for("c1", rm=1)
            (call,) = it.pending()
            client = face.client(Role.DECIDE)
            edited = await client.post(
                "/v1/runs/r/decisions",
                json={
                    "turn_id": "u1.1",
                    "invocation_id": "c1",
                    "approved": True,
                    "arguments_digest": call.arguments_digest,
                    "arguments": {"rm": 2},
                },
            )
            retried = await client.post(
                "/v1/runs/r/resolutions",
                json={
                    "turn_id": "u1.1", "invocation_id": "c1", "attempt": 1, "resolution": "retry"
                },
            )  # fmt: skip
            for answer in (edited, retried):
                assert answer.status_code == 409
                assert answer.json()["title"] == "capability_unsupported"
            assert len(it.pending()) == 1
            assert scripted.told("accept", "decline") == []

    run(play())


def test_s_28_a_question_to_the_user_is_answered_once() -> None:
    """It is executed by us: claimed, reported by its executor; what is none is unknown (404)."""

    async def play() -> None:
        scripted = ScriptedAdapter()
        async with serving(others=[scripted]) as it, faces.opened(
            journal=it.sessions.journal, sessions=it.sessions
        ) as face:  # fmt: skip
            client, looker = face.client(Role.DECIDE), face.client(Role.RUN)
            answer = {"turn_id": "u1.1", "invocation_id": "q", "result": {"colour": "red"}}
            await it.sessions.create(spec("own"))
            await it.sessions.create(spec(kind=KIND), prompt="go", message_id="m")
            await it.until(lambda: bool(scripted.told("took")))
            session = scripted.sessions["r"]
            place = "/v1/runs/r/answers"
            assert (await looker.post(place, json=answer)).status_code == 403
            assert (await client.post(place, json=answer)).status_code == 404
            await session.questions_user("q")
            await it.until(lambda: session.questions == {"q"})
            first = await client.post(place, json=answer)
            assert (first.status_code, first.json()["accepted"]) == (200, True)
            again = await client.post(place, json=answer)
            assert (again.status_code, again.json()["reason"]) == (200, "duplicate")
            other = await client.post(place, json={**answer, "result": None})
            assert other.status_code == 409
            own = await client.post("/v1/runs/own/answers", json=answer)
            assert (own.status_code, own.json()["title"]) == (409, "capability_unsupported")
            await it.sessions.terminate("r")
            gone = await client.post(place, json=answer)
            assert (gone.status_code, gone.json()["title"]) == (409, "run_inactive")

    run(play())
