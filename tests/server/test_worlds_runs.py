"""Runs of the kind `world` on `/v1/runs`: shown and decided on, never prompted (W-3)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from turnlock.adapters.contract import CommandRefused, SessionSpec
from turnlock.models.values import arguments_digest
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.server.face import ServerSettings
from turnlock.server.opening import Options, opened
from turnlock.world.publishing import World

from .scripted import ScriptedAdapter
from .worlded import approval, pays, served

RUN = "/v1/runs/demo%2Fplan%2Falice"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("prompts", {"text": "hello", "message_id": "m1"}),
        ("restore", {}),
        ("restore", {"force": True}),
        ("terminate", {}),
    ],
)
def test_w_3_only_hosts_perform_members(path: str, body: Any) -> None:
    async def play() -> None:
        async with served() as it:
            await it.made("alice")
            await it.waits()
            answer = await it.ada.post(f"{RUN}/{path}", json=body)
            assert (answer.status_code, answer.json()["title"]) == (409, "run_kind_mismatch")

    asyncio.run(play())


def test_w_3_a_member_s_run_is_listed_decided_on_and_interrupted() -> None:
    async def play() -> None:
        async with served() as it:
            await it.made("alice")
            await it.waits(pays("c1"), pays("c2"))
            (entry,) = (await it.ada.get("/v1/runs?waiting=1")).json()["runs"]
            assert (entry["run_id"], entry["waiting"]) == ("demo/plan/alice", 2)
            body = {
                "turn_id": "t1",
                "invocation_id": "c1",
                "approved": True,
                "arguments_digest": arguments_digest({"amount": 12}),
            }
            approved = await it.ada.post(f"{RUN}/decisions", json=body)
            assert approved.json()["call"]["decision"]["by"] == "ada"
            stopped = await it.ada.post(f"{RUN}/interrupt", json={"reason": "enough"})
            assert stopped.json()["turn_id"] == "t1"

    asyncio.run(play())


def test_w_3_what_is_over_is_not_approved_by_its_run_either() -> None:
    """The memory was cleared: its turn is to be interrupted first; a denial harms nobody."""

    async def play() -> None:
        async with served() as it:
            world = await it.made("alice")
            run_id = await it.waits(pays("c1"), pays("c2"))
            await world.clear("plan", "alice")
            body = approval(run_id)
            digest = body["arguments_digest"]
            told = {"turn_id": "t1", "invocation_id": "c1", "approved": True}
            direct = await it.ada.post(
                f"{RUN}/decisions", json={**told, "arguments_digest": digest}
            )
            in_chat = await it.ada.post("/v1/worlds/demo/chats/plan/decisions", json=body)
            for answer in (direct, in_chat):
                assert (answer.status_code, answer.json()["reason"]) == (409, "no_active_turn")
            denied = await it.ada.post(f"{RUN}/decisions", json={**told, "approved": False})
            assert denied.json()["accepted"] is True

    asyncio.run(play())


@pytest.mark.parametrize(
    ("run_id", "is_taken"),
    [
        ("demo", True),
        ("demo/plan/alice", True),
        ("demo/plan/alice#2", True),
        ("demo/anything", True),
        ("demo/", True),
        ("demo2", False),
        ("other/demo", False),
        ("Demo/plan/alice", False),
        ("demo%2Fplan", False),
    ],
)
def test_w_3_no_run_is_created_below_a_world_s_name(run_id: str, is_taken: bool) -> None:
    """Whoever could would speak as a member, in a run that its host finds already there."""

    async def play() -> None:
        options = Options(
            db="memory:",
            agents={},
            settings=ServerSettings(),
            listen=("127.0.0.1",),
            adapters=(ScriptedAdapter(),),
            kind="scripted",
        )
        async with opened(options) as open_face:
            sessions = open_face.face.sessions
            assert sessions is not None
            await World(open_face.face.journal, "demo").make()
            spec = SessionSpec(run_id=run_id, kind="scripted")
            if not is_taken:
                assert (await sessions.create(spec)).is_new
                return
            with pytest.raises(CommandRefused) as refused:
                await sessions.create(spec)
            assert (refused.value.code, refused.value.at) == ("invalid_value", "run_id")

    asyncio.run(play())


def test_w_3_before_there_is_a_world_the_name_is_free() -> None:
    """The negative control: the name alone is no world."""

    async def play() -> None:
        async with MemoryJournal() as journal, served(journal) as it:
            answer = await it.ada.post("/v1/runs", json={"run_id": "demo/x", "kind": "world"})
            assert (answer.status_code, answer.json()["at"]) == (422, "kind")

    asyncio.run(play())
