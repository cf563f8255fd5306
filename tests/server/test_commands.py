"""The commands over HTTP: bodies, roles and answers, as the face says them (F-23, F-25)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from turnlock.models.errors import TurnlockError
from turnlock.models.run import Run
from turnlock.runtime.errors import JournalError, JournalOwned, JournalReplaced, RunFenced
from turnlock.runtime.journal.contract import Appended, Journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.server.problems import problem_of
from turnlock.server.routing import Role

from ..runtime.faulty_journal import WrappedJournal
from ..runtime.virtual import run
from . import faces
from .peers import Served, World, said, serve, serving, spec
from .scripted import KIND, ScriptedAdapter

PROMPT = {"text": "hi", "message_id": "m"}


@asynccontextmanager
async def facing(
    journal: Journal | None = None, world: World | None = None, **more: Any
) -> AsyncGenerator[tuple[Served, httpx.AsyncClient]]:
    """Sessions behind a face, and a client that may command them."""
    kept = journal or MemoryJournal()
    async with (
        serving(kept, world, **more) as it,
        faces.opened(journal=kept, sessions=it.sessions) as face,
    ):
        yield it, face.client(Role.RUN)


def test_f_23_a_run_is_created_and_answered_with_what_a_client_needs() -> None:
    """201 with its place; the same again 200 with the same body; another configuration 409."""

    async def play() -> None:
        async with facing() as (it, client):
            body = {"run_id": "a/b %", "agent": "reader", "prompt": PROMPT}
            first = await client.post("/v1/runs", json=body)
            assert first.status_code == 201
            assert first.headers["location"] == "/v1/runs/a%2Fb%20%25"
            told = first.json()
            assert set(told) == {"run_id", "kind", "capabilities", "cursor"}
            assert (told["run_id"], told["kind"]) == ("a/b %", "own")
            assert told["capabilities"]["scopes"] == ["once", "turn", "session"]
            again = await client.post("/v1/runs", json=body)
            assert (again.status_code, again.json()) == (200, told)
            other = await client.post("/v1/runs", json={**body, "model": "test:reader"})
            assert (other.status_code, other.json()["title"]) == (409, "run_differs")
            other = await client.post("/v1/runs", json={**body, "prompt": {**PROMPT, "text": "x"}})
            assert (other.status_code, other.json()["title"]) == (409, "conflicting_duplicate")
            await it.idle("a/b %")
            assert await said(it.sessions.journal, "a/b %") == ["hi", "> done: hi"]
            made = [(await client.post("/v1/runs", json={})).json()["run_id"] for _ in range(2)]
            assert len({*made}) == 2

    run(play())


def test_f_25_prompts_are_taken_with_202_and_the_same_answer_again() -> None:
    """Every field of the answer; a run that is not there is 404."""

    async def play() -> None:
        async with facing() as (it, client):
            await it.sessions.create(spec())
            first = await client.post("/v1/runs/r/prompts", json=PROMPT)
            assert first.status_code == 202
            assert first.json() == {
                "message_id": "m",
                "cursor": first.json()["cursor"],
                "steered": False,
                "restored": False,
                "ignored": [],
            }
            again = await client.post("/v1/runs/r/prompts", json=PROMPT)
            assert (again.status_code, again.json()) == (202, first.json())
            gone = await client.post("/v1/runs/none/prompts", json=PROMPT)
            assert (gone.status_code, gone.json()["title"]) == (404, "unknown_run")
            active = await client.post(
                "/v1/runs/r/prompts", json={**PROMPT, "message_id": "n", "model": "x"}
            )
            assert active.json()["ignored"] == ["model"]

    run(play())


@pytest.mark.parametrize(
    ("place", "body", "status", "at"),
    [
        ("/v1/runs", {"run_id": 7}, 422, "run_id"),
        ("/v1/runs", {"kind": "guard"}, 422, "kind"),
        ("/v1/runs", {"agent": "nobody"}, 422, "agent"),
        ("/v1/runs", {"cwd": "/"}, 422, "cwd"),
        ("/v1/runs", {"model": "none"}, 400, None),
        ("/v1/runs", {"options": {"a": 1}}, 422, "options.a"),
        ("/v1/runs", {"prompt": {"text": "hi"}}, 422, "prompt.message_id"),
        ("/v1/runs", {"decided_by": "me"}, 422, "decided_by"),
        ("/v1/runs/r/prompts", {"text": "hi"}, 422, "message_id"),
        ("/v1/runs/r/prompts", {**PROMPT, "message_id": "m" * 129}, 422, "message_id"),
        ("/v1/runs/r/prompts", {**PROMPT, "when": "now"}, 422, "when"),
        ("/v1/runs/r/prompts", {**PROMPT, "when": "steer"}, 409, None),
        ("/v1/runs/r/prompts", {**PROMPT, "doubts": "retry"}, 422, "doubts"),
        ("/v1/runs/r/prompts", {**PROMPT, "agent": "reader"}, 422, "agent"),
        ("/v1/runs/r/restore", {"force": "yes"}, 422, "force"),
        ("/v1/runs/r/terminate", {"grace": "5 s"}, 422, "grace"),
    ],
)
def test_s_86_what_does_not_fit_is_refused_by_name(
    place: str, body: dict[str, Any], status: int, at: str | None
) -> None:
    """Unknown fields, wrong types, what the owner does not allow; nothing is kept of it."""

    async def play() -> None:
        async with facing() as (it, client):
            await it.sessions.create(spec())
            before = await it.sessions.journal.notes("r")
            answer = await client.post(place, json=body)
            assert (answer.status_code, answer.json().get("at")) == (status, at), answer.text
            assert await it.sessions.journal.notes("r") == before
            assert len(await it.sessions.journal.runs()) == 1

    run(play())


def test_f_11_who_may_command() -> None:
    """`run` creates, says, restores and ends; `look` and `decide` do not; no token is 401."""

    async def play() -> None:
        journal = MemoryJournal()
        places = ("/v1/runs", *(f"/v1/runs/r/{it}" for it in ("prompts", "restore", "terminate")))
        bodies: tuple[dict[str, Any], ...] = ({"run_id": "r"}, PROMPT, {}, {})
        async with serving(journal) as it, faces.opened(
            journal=journal, sessions=it.sessions
        ) as face:  # fmt: skip
            for place, body in zip(places, bodies, strict=True):
                for role in (Role.LOOK, Role.DECIDE):
                    assert (await face.client(role).post(place, json=body)).status_code == 403
                assert (await face.client(None).post(place, json=body)).status_code == 401
            assert await journal.runs() == ()
            for place, body in zip(places, bodies, strict=True):
                assert (await face.client(Role.RUN).post(place, json=body)).is_success

    run(play())


def test_s_80_restore_and_terminate_say_what_holds() -> None:
    """`session` and `cursor`, again and again; the cursor is that of an entry that is shown."""

    async def play() -> None:
        async with facing() as (it, client):
            await client.post("/v1/runs", json={"run_id": "r", "prompt": PROMPT})
            await it.idle()
            end = str((await it.sessions.journal.ends(["r"]))["r"])
            for place, state in (("terminate", "inactive"), ("restore", "active")):
                for _ in range(2):
                    answer = await client.post(f"/v1/runs/r/{place}", json={})
                    assert answer.status_code == 200
                    assert answer.json() == {"session": state, "cursor": end}

    run(play())


def test_s_53_run_kind_mismatch_and_owned_elsewhere() -> None:
    """What this server cannot perform, and what another performs: 409 (F-26)."""

    async def play() -> None:
        journal, world = MemoryJournal(), World()
        await journal.declare(Run(run_id="g", kind="guard"))
        first = await serve(journal, world)
        await first.sessions.create(spec())
        async with facing(journal, world) as (_, client):
            answer = await client.post("/v1/runs/g/prompts", json=PROMPT)
            assert (answer.status_code, answer.json()["title"]) == (409, "run_kind_mismatch")
            answer = await client.post("/v1/runs/r/prompts", json=PROMPT)
            assert (answer.status_code, answer.json()["title"]) == (409, "owned_elsewhere")
            assert answer.json()["owned_until"] > 0
            assert "by another process" in answer.json()["detail"]
            answer = await client.post("/v1/runs/r/terminate", json={})
            assert (answer.status_code, answer.json()["title"]) == (409, "owned_elsewhere")
        await first.close()

    run(play())


def test_s_56_the_run_of_an_agent_that_is_a_tool_is_no_conversation_of_its_own() -> None:
    """Its parent's session goes on with it: nothing is begun with another agent's tools."""

    async def play() -> None:
        journal, name = MemoryJournal(), "call/r/1/t1/c1"
        segment = quote(name, safe="")
        async with facing(journal) as (it, client):
            refused = await client.post("/v1/runs", json={"run_id": name})
            assert (refused.status_code, refused.json()["title"]) == (422, "invalid_value")
            await journal.declare(Run(run_id=name))
            for end in (None, 600.0):
                if end is not None:
                    await journal.own(name, owner="somebody", now=journal.time(), lease=end)
                code = "run_inactive" if end is None else "owned_elsewhere"
                for command, body in (("prompts", PROMPT), ("restore", {})):
                    answer = await client.post(f"/v1/runs/{segment}/{command}", json=body)
                    assert (answer.status_code, answer.json()["title"]) == (409, code)
            assert it.sessions.state_of(name) == "inactive"
            assert not await journal.notes(name)
            almost = await client.post("/v1/runs", json={"run_id": "call/r/1/t1"})
            assert almost.status_code == 201  # names no call

    run(play())


@pytest.mark.parametrize(
    "error",
    [
        JournalOwned("run 'r': turnlock:host:589:x owns it until noon; stop that process, or wait"),
        JournalError("journal /var/host/agent.db: the disk is full"),
        JournalReplaced("journal /var/host/agent.db: another file stands in its place"),
        RunFenced("run 'r' was taken over: turnlock:host:589:x has it"),
    ],
)
def test_f_6_no_problem_names_a_host_or_a_file(error: TurnlockError) -> None:
    """F-6: what a journal says of itself stands in the log alone."""
    assert "host" not in str(problem_of(error).body())


@pytest.mark.parametrize("grace", [-1, -0.001])
def test_f_3_no_grace_is_below_zero(grace: float) -> None:
    """F-3: 422 with the field, before anything is ended."""

    async def play() -> None:
        async with facing(MemoryJournal(), World()) as (it, client):
            await it.sessions.create(spec())
            answer = await client.post("/v1/runs/r/terminate", json={"grace": grace})
            assert (answer.status_code, answer.json()["at"]) == (422, "grace")
            assert it.sessions.is_active("r")

    run(play())


def test_s_84_problems_have_their_status() -> None:
    """503 with `Retry-After` where the budget is spent, and where the server ends."""

    async def play() -> None:
        world = World(silent=100)
        async with facing(world=world) as (it, client):
            await client.post("/v1/runs", json={"run_id": "r", "prompt": PROMPT})
            await it.until(lambda: len(world.asked) == 4 and not it.sessions.is_active("r"))
            spent = await client.post("/v1/runs/r/restore", json={})
            assert (spent.status_code, spent.json()["title"]) == (503, "runtime_unavailable")
            assert 0 < int(spent.headers["retry-after"]) <= 60
            await it.sessions.stop()
            ending = await client.post("/v1/runs/r/prompts", json={**PROMPT, "message_id": "n"})
            assert (ending.status_code, ending.json()["title"]) == (503, "shutting_down")

    run(play())


class Full(WrappedJournal):
    """A journal that keeps no notes for a while."""

    full = False

    async def note(self, run_id: str, **more: Any) -> Appended:
        """Fail while it is full."""
        if self.full:
            raise JournalError("the disk is full")
        return await self.inner.note(run_id, **more)

    async def append(self, run_id: str, **more: Any) -> Appended:
        """Fail while it is full."""
        if self.full:
            raise JournalError("the disk is full")
        return await self.inner.append(run_id, **more)


@pytest.mark.parametrize("kind", ["own", KIND])
def test_s_3_nothing_is_answered_before_it_is_kept(kind: str) -> None:
    """Section 14, the journal fails: 503 `journal_failed`, nothing is asked; later it is taken."""

    async def play() -> None:
        journal, world, scripted = Full(MemoryJournal()), World(), ScriptedAdapter()
        async with facing(journal, world, others=[scripted]) as (it, client):
            await it.sessions.create(spec(kind=kind))
            await it.idle()
            journal.full = True
            answer = await client.post("/v1/runs/r/prompts", json=PROMPT)
            assert (answer.status_code, answer.json()["title"]) == (503, "journal_failed")
            created = await client.post("/v1/runs", json={"run_id": "s", "kind": kind})
            assert created.status_code == 503
            assert (world.asked, scripted.told("turn")) == ([], [])
            journal.full = False
            assert (await client.post("/v1/runs/r/prompts", json=PROMPT)).status_code == 202
            assert (
                await client.post("/v1/runs", json={"run_id": "s", "kind": kind})
            ).status_code == 201
            await it.until(lambda: bool(world.asked or scripted.told("took")))

    run(play())
