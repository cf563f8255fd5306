"""`useChat` over its WebSocket transport: frames, many requests on one socket, and ends (F-74)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from turnlock.server.sockets import MESSAGE

from ...agent.speakers import asked
from .. import sockets
from ..fronts import Ledger, Served, paying, serving
from .chat_page import ChatPage

PAY = asked("pay", call_id="c1", amount=12)


@asynccontextmanager
async def opened(it: Served, who: str = "all") -> AsyncGenerator[sockets.Socket]:
    """A socket of the transport, which asks for no subprotocol."""
    scope = sockets.scope_of(None, [], Authorization=f"Bearer secret-of-{who}")
    socket = sockets.Socket(it.app, {**scope, "path": "", "raw_path": b"/v1/chat-ws"})
    try:
        assert await socket.open() is None
        yield socket
    finally:
        await socket.close()


@asynccontextmanager
async def talking(folder: Path) -> AsyncGenerator[tuple[Served, sockets.Socket, Ledger]]:
    ledger = Ledger()
    async with serving(folder, paying(ledger, PAY)) as it, opened(it) as socket:
        yield it, socket, ledger


def send(page: ChatPage, request: str) -> dict[str, Any]:
    """What the transport sends for what a page asks."""
    frame: dict[str, Any] = {"type": "send", "requestId": request, "headers": {}, "body": {}}
    return {**frame, **page.body()}


async def told(socket: sockets.Socket) -> list[dict[str, Any]]:
    """The frames of one request, to its end."""
    frames = [await socket.hear()]
    while frames[-1]["type"] not in {"end", "error", "no-active"}:
        frames.append(await socket.hear())
    return frames


def test_f_74_chunks_are_numbered_from_0_and_stand_between_start_and_end(tmp_path: Path) -> None:
    async def play() -> None:
        async with talking(tmp_path) as (it, socket, ledger):
            page = ChatPage()
            page.say("pay", "m1")
            await socket.say(**send(page, "r1"))
            frames = await told(socket)
            other = ChatPage()
            await other.resume(it.client())
            replayed = {"type": "resume", "requestId": "r2", "id": "c", "lastSequence": 4}
            await socket.say(**replayed, headers={}, body={})
            again = await told(socket)

        kinds = [it["type"] for it in frames]
        assert kinds == ["start", *(["chunk"] * (len(kinds) - 2)), "end"]
        for frames_, name in ((frames, "r1"), (again, "r2")):
            chunks = frames_[1:-1]
            assert {it["requestId"] for it in frames_} == {name}
            assert [it["sequence"] for it in chunks] == [*range(len(chunks))]
        assert [it["chunk"] for it in again[1:-1]] == other.chunks
        assert ledger.paid == []

    asyncio.run(play())


def test_f_74_there_is_nothing_active_where_nothing_was_said(tmp_path: Path) -> None:
    async def play() -> None:
        async with talking(tmp_path) as (_, socket, _):
            await socket.say(type="resume", requestId="r", id="nobody", headers={}, body={})
            assert await told(socket) == [{"type": "no-active", "requestId": "r"}]

    asyncio.run(play())


def test_f_74_what_is_wrong_is_said_to_the_request_and_the_socket_stays(tmp_path: Path) -> None:
    """F-51; a frame that names no request is answered to none."""

    async def play() -> None:
        async with talking(tmp_path) as (_, socket, _):
            for raw, request, code in (
                ("{", "", "invalid_json"),
                ('{"type": "sing", "requestId": "r"}', "r", "invalid_value"),
                ('{"type": "send"}', "", "invalid_value"),
                (
                    '{"type": "send", "requestId": "r", "id": "c", "messages": []}',
                    "r",
                    "unknown_run",
                ),
                (b"bytes", "", "bad_request"),
                (" " * (MESSAGE + 1), "", "too_large"),
            ):
                await socket.raw(raw)
                (frame,) = await told(socket)
                assert (frame["type"], frame["requestId"]) == ("error", request)
                assert frame["errorText"].startswith(f"{code}: ")

    asyncio.run(play())


def test_f_11_each_part_of_a_frame_needs_its_own_role(tmp_path: Path) -> None:
    async def play() -> None:
        ledger = Ledger()
        async with serving(tmp_path, paying(ledger, PAY)) as it:
            page = ChatPage()
            page.say("pay", "m1")
            async with opened(it, "looker") as socket:
                await socket.say(**send(page, "r"))
                (frame,) = await told(socket)
                assert frame["errorText"].startswith("forbidden: ")
            await page.post(it.client())
            page.answer("1.c1", approved=True)
            async with opened(it, "asker") as socket:
                await socket.say(**send(page, "r"))
                chunks = [it["chunk"] for it in (await told(socket))[1:-1]]
        refused = [it["data"] for it in chunks if it["type"] == "data-turnlock-refused"]
        assert [it["reason"] for it in refused] == ["forbidden"]
        assert ledger.paid == []

    asyncio.run(play())


def test_f_74_many_requests_go_on_at_once_and_one_is_given_up_alone(tmp_path: Path) -> None:
    """An id that is in use is refused, and told to nobody who uses it."""

    async def play() -> None:
        async with talking(tmp_path) as (it, socket, _):
            gate = asyncio.Event()
            opened_ = it.face.hub.subscribers
            for chat in ("a", "b"):
                page = ChatPage(chat)
                page.say("pay", "m1")
                await socket.say(**send(page, chat))
            heard = [await told_of(socket), await told_of(socket)]
            assert sorted(heard) == ["a", "b"]
            gate.set()
            while it.face.hub.subscribers > opened_:  # noqa: ASYNC110 - they end by themselves
                await asyncio.sleep(0.01)

    async def told_of(socket: sockets.Socket) -> str:
        while (frame := await socket.hear())["type"] != "end":
            assert frame["type"] in {"start", "chunk"}, frame
        return str(frame["requestId"])

    asyncio.run(play())


@pytest.mark.parametrize("how", ["abort", "close"])
def test_f_74_who_gives_up_is_followed_no_more_and_what_was_said_goes_on(
    tmp_path: Path, how: str
) -> None:
    """What was asked for is done, though nobody hears of it; nothing is left of the stream."""

    async def play() -> None:
        ledger = Ledger()
        async with serving(tmp_path, paying(ledger, PAY)) as it:
            page = ChatPage()
            page.say("pay", "m1")
            async with opened(it) as socket:
                await socket.say(**send(page, "r"))
                assert (await socket.hear())["type"] == "start"
                if how == "abort":
                    await socket.say(type="abort", requestId="r")
                    await socket.say(type="resume", requestId="r2", id="nobody")
                    while (await socket.hear())["type"] != "no-active":
                        pass
            while it.face.hub.subscribers:  # noqa: ASYNC110 - it is let go in its own time
                await asyncio.sleep(0.01)
            other = ChatPage()
            await other.resume(it.client())
            assert other.card()["state"] == "approval-requested"

    asyncio.run(play())


def test_f_13_the_socket_closes_with_its_token(tmp_path: Path) -> None:
    async def play() -> None:
        async with talking(tmp_path) as (it, socket, _):
            it.face.tokens.replace({})
            with pytest.raises(sockets.Closed) as closed:
                await socket.hear()
            assert closed.value.code == 1008

    asyncio.run(play())
