"""A chat's stream where its connection is bad: cut at each byte, or never read (F-43, W-71)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from turnlock.server.hub import HubSettings

from .chat_events import ChatStream
from .worlded import CHAT, Served, secret_of, served


def request(it: Served, last: str = "", query: str = "") -> bytes:
    lines = [
        f"GET {CHAT}/events{query} HTTP/1.1",
        f"Host: 127.0.0.1:{it.port}",
        f"Authorization: Bearer {secret_of('eve')}",
        "Accept: text/event-stream",
        *([f"Last-Event-ID: {last}"] if last else []),
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def unchunked(data: bytes) -> bytes:
    """What whole chunks of an answer say."""
    _, _, rest = data.partition(b"\r\n\r\n")
    found = b""
    while rest:
        size, mark, rest = rest.partition(b"\r\n")
        length = int(size or b"0", 16) if mark else 0
        if not length or len(rest) < length:
            return found + rest[:length]
        found, rest = found + rest[:length], rest[length + 2 :]
    return found


async def events(data: bytes) -> tuple[list[dict[str, Any]], str]:
    """The events that a piece of an answer has whole, and the last id."""

    async def parts() -> AsyncGenerator[bytes]:
        yield unchunked(data)

    stream = ChatStream(parts())
    return [told for name, told in await stream.rest() if not name], stream.last_id


async def received(it: Served, most: int, last: str = "", query: str = "") -> bytes:
    """So many bytes of an answer, and then the connection is cut."""
    reader, writer = await asyncio.open_connection("127.0.0.1", it.port)
    try:
        writer.write(request(it, last, query))
        data = b""
        while len(data) < most and (part := await reader.read(most - len(data))):
            data += part
            if b"event: end" in data:
                break
        return data
    finally:
        writer.transport.abort()


def test_a_kill_at_every_byte_and_a_reconnect_give_the_chat() -> None:
    """Whatever prefix came, its last id and the rest equal all at once (section 10)."""

    async def play() -> None:
        async with served() as it:
            world = await it.made("alice", "bob")
            await it.waits()
            for number in range(3):
                await world.chat("plan").say("ada", f"é\n{number}", message_id=f"m{number}")
            await it.waits(agent="bob")
            data = await received(it, 1 << 20, query="?follow=0")
            whole, _ = await events(data)
            assert len(whole) == 5
            for most in range(1, len(data), 11):
                first, last = await events(await received(it, most))
                rest, _ = await events(await received(it, 1 << 20, last, "?follow=0"))
                assert first + rest == whole, most
            while it.hub.subscribers:  # noqa: ASYNC110 - the server sees it in its own time
                await asyncio.sleep(0.01)

    asyncio.run(play())


@pytest.mark.parametrize("reads", [False, True])
def test_f_43_who_reads_nothing_is_cut_off_and_who_reads_slowly_is_not(*, reads: bool) -> None:
    """Nobody else is delayed by either, and what is said is entered at once."""

    async def play() -> None:
        async with served(hub_settings=HubSettings(cut=1.0, poll=0.02)) as it:
            world = await it.made("alice")
            chat, text = world.chat("plan"), "x" * 200_000
            for number in range(50):  # more than the kernel keeps of a connection
                await chat.say("ada", text, message_id=f"m{number}")
            reader, writer = await asyncio.open_connection("127.0.0.1", it.port, limit=1 << 19)
            writer.write(request(it))
            async with asyncio.timeout(30):
                while not it.hub.subscribers:  # noqa: ASYNC110 - it is on its way
                    await asyncio.sleep(0.01)
                if reads:
                    for _ in range(24):
                        assert await reader.read(1 << 18)
                        await asyncio.sleep(0.05)
                    assert (it.hub.counts.cut, it.hub.subscribers) == (0, 1)
                else:
                    whole, _ = await events(await received(it, 1 << 26, query="?follow=0"))
                    assert len(whole) == 50
                    while it.hub.subscribers:  # noqa: ASYNC110 - likewise
                        await asyncio.sleep(0.01)
                    assert it.hub.counts.cut == 1
            writer.transport.abort()

    asyncio.run(play())
