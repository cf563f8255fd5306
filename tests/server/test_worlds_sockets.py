"""Chats on the WebSocket: many on one socket, beside runs, and what is commanded in them (F-50)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from turnlock.agent.transients import SpeechStarted
from turnlock.server.hub import HubSettings
from turnlock.server.websocket import SUBSCRIPTIONS, TOO_MANY
from turnlock.world.passing import pass_on

from . import sockets
from .sockets import Closed, Socket
from .worlded import Served, approval, secret_of, served


@asynccontextmanager
async def socket_of(
    it: Served, name: str = "ada", *, most: int | None = None
) -> AsyncGenerator[Socket]:
    authorization = f"Bearer {secret_of(name)}"
    async with sockets.opened(it.app, None, most=most, Authorization=authorization) as socket:
        yield socket


async def subscribe(socket: Socket, named: int | str = 1, **fields: Any) -> None:
    about = {"world": "demo", "chat": "plan", "after": "", **fields}
    await socket.say(type="subscribe", id=named, **about)


def test_f_50_chats_and_runs_on_one_socket() -> None:
    """subscribed with the head, entry, projection, live, transient; each says of which chat."""

    async def play() -> None:
        async with served() as it:
            world = await it.made("alice")
            await world.open_chat("other")
            await world.chat("plan").say("ada", "hello", message_id="m1")
            run_id = await it.waits()
            named = {"world": "demo", "chat": "plan"}
            async with socket_of(it, "eve") as socket:
                await subscribe(socket)
                told = await socket.until("live")
                assert [each["type"] for each in told] == [
                    "subscribed", "entry", "projection", "live",
                ]  # fmt: skip
                assert told[0] == {"type": "subscribed", "id": 1, "head": told[3]["cursor"]}
                assert all(each.items() >= named.items() for each in told[1:])
                assert told[1]["body"]["text"] == "hello"
                assert (told[2]["role"], told[2]["agent"]) == ("request", "alice")
                await subscribe(socket, "two", chat="other")
                assert (await socket.until("live"))[-1]["chat"] == "other"
                await socket.say(type="subscribe", id="run", run_id=run_id, after="")
                assert (await socket.until("live"))[-1]["run_id"] == run_id
                started = SpeechStarted(entry_id=f"{run_id}/said/2", agent="alice", attempt=1)
                pass_on(it.journal, "demo/plan", started)
                assert await socket.hear() == {
                    **named, "type": "transient", "kind": "start", "agent": "alice", "try": 1,
                    "entry_id": f"{run_id}/said/2",
                }  # fmt: skip
                await world.chat("other").say("ben", "hi", message_id="m1")
                assert (await socket.hear())["chat"] == "other"
                await socket.say(type="unsubscribe", id=1)
                assert await socket.hear() == {"type": "ended", "id": 1}
                await world.chat("plan").say("ada", "more", message_id="m2")
                await subscribe(socket, after=told[1]["cursor"])
                again = await socket.until("live")
                assert [each["type"] for each in again] == [
                    "subscribed", "projection", "entry", "live",
                ]  # fmt: skip

    asyncio.run(play())


def test_f_51_what_cannot_be_followed_is_an_error_with_its_id() -> None:
    """The socket stays; what names a run and a chat, or half of one, is no subscription."""

    async def play() -> None:
        async with served() as it:
            await it.made("alice")
            asked: tuple[tuple[dict[str, Any], str, bool], ...] = (
                ({"chat": "no"}, "not_found", True),
                ({"world": "no"}, "not_found", True),
                ({"world": "no/no"}, "not_found", True),
                ({"after": "junk"}, "bad_cursor", True),
                ({"after": "7"}, "cursor_ahead", True),
                ({"after": 7}, "invalid_value", False),
                ({"run_id": "r"}, "invalid_value", False),
                ({"chat": None}, "invalid_value", False),
                ({"role": "system"}, "invalid_value", False),
            )
            async with socket_of(it) as socket:
                for number, (fields, code, opens) in enumerate(asked):
                    await subscribe(socket, number, **fields)
                    told = await socket.hear()
                    assert (told["type"], told.get("id")) == ("error", number), fields
                    assert told["problem"]["title"] == code, told
                    if opens:
                        assert await socket.hear() == {"type": "ended", "id": number}
                await socket.say(type="ping")
                assert await socket.hear() == {"type": "pong"}
            assert it.hub.subscribers == 0

    asyncio.run(play())


def test_f_51_a_socket_follows_so_many_chats_and_no_more() -> None:
    async def play() -> None:
        async with served(hub_settings=HubSettings(of_a_run=1_000, poll=0.02)) as it:
            await it.made("alice")
            async with socket_of(it) as socket:
                for number in range(SUBSCRIPTIONS + 1):
                    await subscribe(socket, number)
                with pytest.raises(Closed) as closed:
                    await socket.until("never")
                assert closed.value.code == TOO_MANY

    asyncio.run(play())


@pytest.mark.parametrize(
    ("message", "status", "title"),
    [
        ({"type": "resolve", "body": {}}, 400, "bad_request"),
        ({"type": "say", "body": {"message_id": "m", "text": 1}}, 422, "invalid_value"),
        ({"type": "say", "body": []}, 422, "invalid_value"),
        ({"type": "say", "chat": "no", "body": {"message_id": "m", "text": "x"}}, 404, "not_found"),
        ({"type": "decide", "run_id": "r", "body": {}}, 422, "invalid_value"),
        ({"type": "decide", "chat": None, "body": {}}, 422, "invalid_value"),
        ({"type": "say", "world": None, "chat": None, "run_id": "r", "body": {}}, 400,
         "bad_request"),
    ],
)  # fmt: skip
def test_f_50_a_command_that_is_none_is_answered(message: Any, status: int, title: str) -> None:
    async def play() -> None:
        async with served() as it:
            await it.made("alice")
            async with socket_of(it) as socket:
                await socket.say(**{"id": 1, "world": "demo", "chat": "plan", **message})
                told = await socket.hear()
                assert (told["type"], told["id"], told["status"]) == ("answer", 1, status)
                assert told["body"]["title"] == title

    asyncio.run(play())


def test_f_50_what_is_said_and_decided_comes_back_in_the_stream() -> None:
    async def play() -> None:
        async with served() as it:
            await it.made("alice")
            run_id = await it.waits()
            async with socket_of(it) as socket:
                await subscribe(socket)
                await socket.until("live")
                chat = {"world": "demo", "chat": "plan"}
                message = {"message_id": "m1", "text": "hello"}
                await socket.say(type="say", id=2, **chat, body=message)
                await socket.say(type="decide", id=3, **chat, body=approval(run_id))
                heard = [await socket.hear() for _ in range(4)]
                answers = {each["id"]: each for each in heard if each["type"] == "answer"}
                assert answers[2]["body"] == {
                    "number": 1, "entry_id": "say/ada/m1", "new": True,
                }  # fmt: skip
                assert answers[3]["body"]["call"]["decision"]["by"] == "ada"
                assert {each["type"] for each in heard} == {"answer", "entry", "projection"}

    asyncio.run(play())


def test_a_kill_at_every_byte_and_a_reconnect_give_the_chat() -> None:
    """Whatever prefix came, what follows its last cursor is the rest (W-71, section 10)."""

    async def play() -> None:
        async with served() as it:
            world = await it.made("alice")
            await it.waits()
            for number in range(3):
                await world.chat("plan").say("ada", f"é {number}", message_id=f"m{number}")
            async with socket_of(it) as socket:
                await subscribe(socket)
                whole = [each for each in await socket.until("live") if "log" in each]
                size = socket.bytes
            assert len(whole) == 3
            for most in range(1, size, 7):
                first: list[dict[str, Any]] = []
                async with socket_of(it, most=most) as socket:
                    await subscribe(socket)
                    try:
                        while True:
                            first.append(await socket.hear())
                    except Closed:
                        pass
                last = next((each["cursor"] for each in reversed(first) if "cursor" in each), "")
                async with socket_of(it) as socket:
                    await subscribe(socket, after=last)
                    rest = await socket.until("live")
                told = [each for each in first + rest if "log" in each]
                assert told == whole
            while it.hub.subscribers:  # noqa: ASYNC110 - the server sees it in its own time
                await asyncio.sleep(0.01)

    asyncio.run(play())
