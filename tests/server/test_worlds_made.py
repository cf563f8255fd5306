"""Worlds, agents and chats over HTTP: made, shown, changed, and by whom (world.md 11, W-13)."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from turnlock.server.face import ServerSettings

from .chat_events import following
from .worlded import CHAT, SPEC, Served, served


async def told(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json().get("title", "")


def test_f_23_a_world_is_made_once() -> None:
    """Again with the same fields it is the world that is there; with others a conflict."""

    async def play() -> None:
        async with served() as it:
            made = await it.ada.post("/v1/worlds", json={"world": "demo", "title": "Demo"})
            assert (made.status_code, made.json()["new"]) == (201, True)
            assert made.headers["location"] == "/v1/worlds/demo"
            again = await it.ada.post("/v1/worlds", json={"world": "demo", "title": "Demo"})
            assert (again.status_code, again.json()["new"]) == (200, False)
            other = await it.ada.post("/v1/worlds", json={"world": "demo", "title": "Other"})
            assert (other.status_code, other.json()["title"]) == (409, "conflicting_duplicate")
            slug = await it.ada.post("/v1/worlds", json={"title": "My  Trip, 2026!"})
            assert slug.json()["world"] == "my-trip-2026"
            listed = (await it.as_("eve").get("/v1/worlds")).json()["worlds"]
            assert [each["world"] for each in listed] == ["demo", slug.json()["world"]]
            assert listed[0] == {
                "world": "demo", "title": "Demo", "agents": 0, "chats": 0, "performed": False,
            }  # fmt: skip

    asyncio.run(play())


@pytest.mark.parametrize(
    ("body", "at"),
    [
        ({}, "world"),
        ({"world": "Demo"}, "world"),
        ({"world": "a/b"}, "world"),
        ({"world": ""}, "world"),
        ({"world": "demo", "title": "x" * 101}, "title"),
        ({"world": "demo", "owner": "me"}, "owner"),
        ({"world": "demo", "settings": []}, "settings"),
        ({"title": "!!"}, "title"),
    ],
)
def test_f_3_what_is_no_world_is_refused_by_name(body: Any, at: str) -> None:
    async def play() -> None:
        async with served() as it:
            answer = await it.ada.post("/v1/worlds", json=body)
            assert (answer.status_code, answer.json()["at"]) == (422, at), answer.json()
            assert (await it.ada.get("/v1/worlds")).json() == {"worlds": []}

    asyncio.run(play())


def test_w_13_agents_are_put_shown_and_removed() -> None:
    """Each spec is an entry of the world's log; the one that is there already is none."""

    async def play() -> None:
        async with served() as it:
            await it.made()
            path = "/v1/worlds/demo/agents/bob"
            body = {"model": "openai:m", "instructions": "Be kind.", "tools": ["pay", "mail__*"]}
            put = await it.ada.put(path, json=body)
            assert (put.status_code, put.headers["location"]) == (201, path)
            assert put.json()["spec"]["tools"] == ["pay", "mail__*"]
            assert (await it.ada.put(path, json=body)).json() == put.json()
            changed = await it.ada.put(path, json={**body, "turn_limit": 2})
            assert changed.status_code == 200
            assert changed.json()["entry"] == put.json()["entry"] + 1
            shown = await it.as_("eve").get(path)
            assert shown.json() == changed.json()
            world = (await it.as_("eve").get("/v1/worlds/demo")).json()
            assert world["agents"] == [changed.json()]
            assert (await it.ada.delete(path)).status_code == 200
            assert (await it.ada.get(path)).status_code == 404
            assert (await it.ada.get("/v1/worlds/demo")).json()["agents"] == []

    asyncio.run(play())


@pytest.mark.parametrize(
    ("name", "body", "at"),
    [
        ("bob", {}, "model"),
        ("bob", {"model": "no provider"}, "model"),
        ("bob", {"model": "openai:m", "role": "system"}, "role"),
        ("bob", {"model": "openai:m", "turn_limit": 0}, "turn_limit"),
        ("bob", {"model": "openai:m", "hears": "some"}, "hears"),
        ("bob", {"model": "openai:m", "options": {"api_key": "x"}}, "options.api_key"),
        ("human", {"model": "openai:m"}, "agent"),
        ("user1", {"model": "openai:m"}, "agent"),
        ("Bob", {"model": "openai:m"}, "agent"),
        ("a%2Fb", {"model": "openai:m"}, "agent"),
        ("ben", {"model": "openai:m"}, "agent"),  # W-10: a token has the name
    ],
)
def test_w_15_what_is_no_agent_is_refused_by_name(name: str, body: Any, at: str) -> None:
    async def play() -> None:
        async with served() as it:
            await it.made()
            before = await it.journal.entries("demo")
            answer = await it.ada.put(f"/v1/worlds/demo/agents/{name}", json=body)
            assert (answer.status_code, answer.json().get("at")) == (422, at), answer.json()
            assert await it.journal.entries("demo") == before

    asyncio.run(play())


def test_w_13_chats_are_opened_closed_and_forget() -> None:
    async def play() -> None:
        async with served() as it:
            await it.made("bob", "carol")
            path = "/v1/worlds/demo/chats"
            body = {"title": "The Trip", "members": ["bob"]}
            made = await it.ada.post(path, json=body)
            assert made.status_code == 201
            assert made.headers["location"] == f"{path}/the-trip"
            assert made.json() == {
                "chat": "the-trip", "title": "The Trip", "members": ["bob"], "closed": False,
            }  # fmt: skip
            again = await it.ada.post(path, json=body)
            assert (again.status_code, again.json()) == (200, made.json())
            listed = (await it.as_("eve").get(path)).json()["chats"]
            assert [each["chat"] for each in listed] == ["plan", "the-trip"]
            assert listed[0]["members"] is None
            cleared = await it.ada.delete(f"{path}/the-trip/memories/bob")
            assert cleared.json() == {"agent": "bob", "run_id": "demo/the-trip/bob#2"}
            assert (await it.ada.delete(f"{path}/the-trip/memories/carol")).status_code == 404
            assert (await it.ada.delete(f"{path}/the-trip")).json()["closed"] is True
            strange = await it.ada.post(path, json={"chat": "other", "members": ["nobody"]})
            assert (strange.status_code, strange.json()["at"]) == (422, "members")
            long = await it.ada.post(path, json={"chat": "other", "title": "x" * 101})
            assert (long.status_code, long.json()["at"]) == (422, "title")
            assert (await it.ada.get(f"{path}/other")).status_code == 404

    asyncio.run(play())


def test_w_11_a_world_that_cannot_be_read_hides_no_other() -> None:
    """It is told of where it is asked for."""

    async def play() -> None:
        async with served() as it:
            await it.made()
            body: dict[str, Any] = {"kind": "WORLD_MADE", "title": 5}
            await it.journal.append_entry("bad", "made", body, at=1.0)
            listed = (await it.ada.get("/v1/worlds")).json()["worlds"]
            assert [each["world"] for each in listed] == ["demo"]
            told = await it.ada.get("/v1/worlds/bad")
            assert told.json()["at"] == "log bad, entry 1 (WORLD_MADE).title"

    asyncio.run(play())


def test_what_is_not_there_is_not_found() -> None:
    """No world, chat or agent is made by asking for it."""

    async def play() -> None:
        async with served() as it:
            await it.made("bob")
            say = {"message_id": "m", "text": "x"}
            decide = {"request_id": "request/a/b/c", "approved": False}
            asked = [
                ("GET", "/v1/worlds/other", None),
                ("GET", "/v1/worlds/Other%2F", None),
                ("GET", "/v1/worlds/other/chats", None),
                ("POST", "/v1/worlds/other/chats", {"chat": "c"}),
                ("PUT", "/v1/worlds/other/agents/a", SPEC.as_json()),
                ("GET", "/v1/worlds/demo/agents/other", None),
                ("DELETE", "/v1/worlds/demo/agents/other", None),
                ("POST", "/v1/worlds/demo/chats/other/messages", say),
                ("POST", "/v1/worlds/demo/chats/other/decisions", decide),
                ("POST", "/v1/worlds/demo/chats/other/interrupt", {"agent": "bob"}),
                ("POST", f"{CHAT}/interrupt", {"agent": "other"}),
                ("DELETE", "/v1/worlds/demo/chats/other", None),
            ]
            for method, path, body in asked:
                answer = await it.ada.request(method, path, json=body)
                assert await told(answer) == (404, "not_found"), (method, path, answer.json())
            assert [log.name for log in await it.journal.logs()] == ["demo"]

    asyncio.run(play())


async def _rights(it: Served, name: str) -> dict[str, int]:
    asked: list[tuple[str, str, str, Any]] = [
        ("look", "GET", "/v1/worlds/demo", None),
        ("make", "POST", "/v1/worlds", {"world": "demo", "title": "Demo"}),
        ("put", "PUT", "/v1/worlds/demo/agents/bob", SPEC.as_json()),
        ("open", "POST", "/v1/worlds/demo/chats", {"chat": "plan"}),
        ("say", "POST", f"{CHAT}/messages", {"message_id": "m", "text": "x"}),
        ("decide", "POST", f"{CHAT}/decisions", {"request_id": "x", "approved": False}),
        ("reply", "POST", f"{CHAT}/replies", {"question_id": "x", "action": "cancel"}),
        ("stop", "POST", f"{CHAT}/interrupt", {"agent": "nobody"}),
        ("clear", "DELETE", f"{CHAT}/memories/bob", None),
    ]
    found = {
        what: (await it.as_(name).request(method, path, json=body)).status_code
        for what, method, path, body in asked
    }
    return {what: status for what, status in found.items() if status != 403}


@pytest.mark.parametrize(
    ("name", "may"),
    [
        ("eve", {"look"}),
        ("decider", {"look", "decide", "reply", "stop"}),
        ("runner", {"look", "say"}),
        ("keeper", {"look", "make", "put", "open", "clear"}),
    ],
)
def test_f_11_each_part_needs_its_role(name: str, may: set[str]) -> None:
    """F-11: deciding, speaking and keeping worlds are apart; without a token there is nothing."""

    async def play() -> None:
        async with served() as it:
            await it.made("bob")
            assert set(await _rights(it, name)) == may
            nobody = httpx.AsyncClient(base_url=f"http://127.0.0.1:{it.port}")
            async with nobody:
                assert (await nobody.get("/v1/worlds")).status_code == 401
                assert (await nobody.get("/v1/worlds/none")).status_code == 401

    asyncio.run(play())


def test_f_14_a_page_that_may_ask_may_put_agents() -> None:
    async def play() -> None:
        settings = ServerSettings(origins=("https://desk.example",))
        async with served(settings=settings) as it:
            asked = {"Origin": "https://desk.example", "Access-Control-Request-Method": "PUT"}
            answer = await it.ada.options("/v1/worlds/demo/agents/bob", headers=asked)
            assert answer.status_code == 204
            assert "PUT" in answer.headers["access-control-allow-methods"].split(", ")

    asyncio.run(play())


def test_f_35_who_follows_a_chat_is_counted() -> None:
    async def play() -> None:
        async with served() as it:
            await it.made("bob")
            async with following(it.ada) as stream:
                await stream.until("live")
                told = (await it.ada.get("/metrics")).text
                assert "turnlock_stream_subscribers 1.0" in told

    asyncio.run(play())
