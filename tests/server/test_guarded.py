"""Runs of kind `guard`: shown and decided on, and never performed here (K-61, S-5)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import httpx
import pytest

from turnlock import Claim, Decide, Delivery, FactType, Report, Run
from turnlock.guards.values import KIND
from turnlock.models.deliveries import Lose
from turnlock.models.values import arguments_digest
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.server.app import App
from turnlock.server.face import Face
from turnlock.server.hub import HubSettings
from turnlock.server.opening import Options, opened
from turnlock.server.shown import Sent

from ..runtime.virtual import run
from .faces import BASE, Streaming
from .runs import approval, denial, free, gated, opened_turn, shared, told
from .scripted import ScriptedAdapter
from .test_kinds import options

GUARDED = Run(run_id="g", kind=KIND)
RUNS = "/v1/runs"

NOTHING = options()
EACH = pytest.mark.parametrize(
    "given",
    [NOTHING, options(ScriptedAdapter()), options(own=True, kind="own")],
    ids=["performs nothing", "another kind", "agents"],
)


@asynccontextmanager
async def serving(
    tmp_path: Path, *deliveries: Delivery, given: Options = NOTHING
) -> AsyncGenerator[tuple[Face, httpx.AsyncClient]]:
    """A server, and a guarded run in its file, which some other process has written."""
    path = tmp_path / "agent.db"
    if deliveries:
        await guarded(path, *deliveries)
    async with opened(attrs.evolve(given, db=str(path))) as it:
        assert it.token_file is not None
        headers = {"Authorization": f"Bearer {it.token_file.read_text().strip()}"}
        transport = Streaming(App(it.face))
        async with httpx.AsyncClient(transport=transport, base_url=BASE, headers=headers) as client:
            yield it.face, client


async def guarded(path: Path, *deliveries: Delivery) -> None:
    """What a guard in another process does: it visits the run, and owns nothing."""
    async with await SqliteJournal.open(path) as journal:
        _, verdicts = await shared(journal, *deliveries, run=GUARDED)
        assert [it.reason for it in verdicts] == [None] * len(verdicts)


async def facts(face: Face) -> list[Any]:
    return [fact async for fact in face.journal.facts(GUARDED.run_id)]


def claim(name: str, *, worker: str | None = None, lease: float | None = None) -> Claim:
    return Claim(turn_id="t", invocation_id=name, attempt=1, worker=worker, lease=lease)


@EACH
def test_s_5_k_61_no_server_performs_a_guarded_run(tmp_path: Path, given: Options) -> None:
    """S-5: approved, owed, running and lost calls of it stay as they are, and so do its results."""

    async def play() -> None:
        turn = opened_turn(gated(), free("b"), free("c"))
        before = turn, claim("b", worker="w/nobody", lease=60.0)
        async with serving(tmp_path, *before, given=given) as (face, client):
            assert face.sessions is not None
            was = await facts(face)
            answer = await client.post(f"{RUNS}/g/prompts", json={"text": "hi", "message_id": "m"})
            assert told(answer)[0] == 409
            assert answer.json()["title"] == "run_kind_mismatch"
            assert "shows and decides on, and does not perform" in answer.json()["detail"]
            answer = await client.post(f"{RUNS}/g/restore", json={})
            assert answer.json()["title"] == "run_kind_mismatch"
            answer = await client.post(RUNS, json={"run_id": "new", "kind": KIND})
            assert (answer.status_code, answer.json()["title"]) == (422, "invalid_value")
            for runtime in (face.runtime, *face.sessions.life.runtimes.values()):
                assert runtime is not None
                assert await runtime.take_over() == ()
            assert await facts(face) == was

            assert told(await client.post(f"{RUNS}/g/decisions", json=approval())) == (200, True)
            await asyncio.sleep(2 * HubSettings().poll)
            assert [it.type for it in (await facts(face))[len(was) :]] == [FactType.TOOL_APPROVED]
            entry = await face.journal.entry("g")
            assert (entry.owner, entry.busy) == (None, True)
            assert not face.sessions.is_active("g")

    asyncio.run(play())


@EACH
def test_s_11_people_see_it_and_what_they_may_say(tmp_path: Path, given: Options) -> None:
    """F-30, F-31: the list and the view name the kind; what waits may be edited, too."""

    async def play() -> None:
        async with serving(tmp_path, opened_turn(), given=given) as (_, client):
            (listed,) = (await client.get(RUNS)).json()["runs"]
            assert (listed["kind"], listed["owned"], listed["waiting"]) == (KIND, False, 1)
            assert listed["tool_name"] == "pay"
            view = (await client.get(f"{RUNS}/g")).json()
            assert (view["kind"], view["session"]) == (KIND, "inactive")
            can = view["capabilities"]
            assert {name for name, able in can.items() if able is False} == {
                *("terminate", "restore", "models", "steer"),
            }
            (call,) = view["turn"]["calls"]
            assert call["allowed"] == ["approve", "deny"]
            assert call["arguments"] == {"amount": 12}
            assert call["arguments_digest"] == arguments_digest({"amount": 12})

    asyncio.run(play())


def test_f_30_a_run_of_our_own_names_no_kind(tmp_path: Path) -> None:
    async def play() -> None:
        async with serving(tmp_path) as (face, client):
            await shared(face.journal, opened_turn(), run=Run(run_id="r"))
            (listed,) = (await client.get(RUNS)).json()["runs"]
            assert "kind" not in listed

    asyncio.run(play())


def test_f_20_a_decision_edits_denies_grants_and_is_first(tmp_path: Path) -> None:
    """The verdict is the kernel's: who is late is told who was first."""

    async def play() -> None:
        turn = opened_turn(gated("a"), gated("b"), gated("c", "look"))
        async with serving(tmp_path, turn) as (face, client):
            post = f"{RUNS}/g/decisions"
            edited = approval(gated("a"), arguments={"amount": 7})
            answer = (await client.post(post, json=edited)).json()
            assert answer["call"]["decision"]["arguments"] == {"amount": 7}
            assert answer["call"]["decision"]["by"] == "local"
            stale = approval(gated("b"), arguments_digest="0" * 64)
            assert told(await client.post(post, json=stale)) == (412, "arguments_mismatch")
            assert told(await client.post(post, json=denial(gated("b")))) == (200, True)
            late = await client.post(post, json=approval(gated("b")))
            assert told(late)[0] == 409
            assert late.json()["call"]["decision"]["approved"] is False

            reach = approval(gated("c", "look"), scope="session", match="tool")
            assert told(await client.post(post, json=reach)) == (200, True)
            (grant,) = (await client.get(f"{RUNS}/g")).json()["grants"]
            gone = await client.delete(f"{RUNS}/g/grants/{grant['grant_id'].replace('/', '%2F')}")
            assert told(gone) == (200, True)
            assert (await face.journal.entry("g")).owner is None

    asyncio.run(play())


def test_k_35_a_doubt_is_resolved_or_has_one_more_attempt_authorised(tmp_path: Path) -> None:
    """It runs where its guard is: nothing of it is executed here."""

    async def play() -> None:
        lost = [Lose(turn_id="t", invocation_id=name, attempt=1) for name in "bc"]
        started = opened_turn(free("b"), free("c")), claim("b"), claim("c"), *lost
        async with serving(tmp_path, *started) as (face, client):
            (listed,) = (await client.get(RUNS)).json()["runs"]
            assert listed["in_doubt"] == 2
            which = {"turn_id": "t", "invocation_id": "b", "attempt": 1}
            again = {**which, "resolution": "retry"}
            answer = await client.post(f"{RUNS}/g/resolutions", json=again)
            assert told(answer) == (200, True)
            assert answer.json()["call"]["allowed"] == ["resolve_result", "resolve_error"]
            told_so = {**which, "resolution": "result", "result": {"id": 7}}
            answer = await client.post(f"{RUNS}/g/resolutions", json=told_so)
            assert answer.json()["call"]["outcome"]["result"] == {"id": 7}
            stopped = await client.post(f"{RUNS}/g/interrupt", json={"grace": 0.0})
            assert told(stopped) == (200, True)
            assert FactType.EXECUTION_RETRIED not in {it.type for it in await facts(face)}

    asyncio.run(play())


def test_s_77_what_another_process_writes_is_heard_like_that_of_other_foreign_runs() -> None:
    """Within one look: nothing is asked of a process that might sleep."""

    async def play() -> None:
        async with opened(options()) as it:
            face = it.face
            writer, _ = await shared(face.journal, opened_turn(), run=GUARDED)
            subscription = face.hub.subscribe("g")
            while not any(getattr(one, "name", "") == "live" for one in await anext(subscription)):
                pass
            loop = asyncio.get_running_loop()
            before = loop.time()
            digest = arguments_digest({"amount": 12})
            decided = Decide(turn_id="t", invocation_id="a", approved=True, arguments_digest=digest)
            await writer.submit(decided)
            while not any(
                isinstance(one, Sent) and b"TOOL_APPROVED" in one.envelope
                for one in await anext(subscription)
            ):
                pass
            assert loop.time() - before <= HubSettings().poll
            subscription.close()

    run(play())


def test_a_server_that_begins_leaves_what_guards_have_under_way(tmp_path: Path) -> None:
    """It goes on with runs of its kinds and lists the others: the control is a run of its own."""

    async def play() -> None:
        path = tmp_path / "agent.db"
        async with await SqliteJournal.open(path) as journal:
            own = (
                opened_turn(free("b")),
                claim("b"),
                Report(turn_id="t", invocation_id="b", attempt=1, result=1),
            )
            await shared(journal, *own, run=Run(run_id="own"))
        await guarded(path, *own)
        async with serving(tmp_path, given=options(own=True, kind="own")) as (face, client):
            was = await facts(face)
            runs = (await client.get(RUNS)).json()["runs"]
            assert {it["run_id"] for it in runs} == {"g", "own"}
            assert await facts(face) == was

    asyncio.run(play())
