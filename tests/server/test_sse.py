"""The stream as server-sent events (F-40 … F-46)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

import attrs
import httpx
import pytest

from turnlock.models.diagnostics import Diagnostic
from turnlock.runtime.journal.ledger import Cursor, Domain
from turnlock.server import sse
from turnlock.server.app import App
from turnlock.server.connections import TRANSPORT
from turnlock.server.deltas import Piece
from turnlock.server.hub import Hub, HubSettings
from turnlock.server.routing import Role

from ..runtime.virtual import run, settled
from . import faces
from .ledgers import Heard, WrittenLedgers

R = "r/1"
PATH = "/v1/runs/r%2F1/events"
STREAM = {"Accept": "text/event-stream"}


@attrs.frozen
class Served:
    """A hub of written ledgers, and the face on it."""

    written: WrittenLedgers
    hub: Hub
    it: faces.Opened
    heard: Heard

    def log(self, diagnostic: Diagnostic) -> None:
        self.heard.streams.diagnose(R, diagnostic)

    @property
    def client(self) -> httpx.AsyncClient:
        return self.it.client(Role.LOOK)

    @property
    def app(self) -> App:
        return self.it.app


@asynccontextmanager
async def served(
    written: WrittenLedgers, *, settings: HubSettings | None = None
) -> AsyncGenerator[Served]:
    heard = Heard(written, [R])
    async with (
        Hub(
            journal=written.journal,
            runtime=heard.runtime,
            settings=settings or HubSettings(),
        ) as hub,
        faces.opened(hub=hub, endpoints=sse.ENDPOINTS) as it,
    ):
        yield Served(written, hub, it, heard)


class Events:
    """Reads server-sent events as a browser does, and checks the bytes that they are made of."""

    def __init__(self) -> None:
        self.last_id = ""
        self.events: list[tuple[str, Any]] = []
        self.beats = 0
        self.retry: int | None = None
        self._rest = b""

    def feed(self, data: bytes) -> None:
        assert b"\r" not in data, "F-41: it never occurs"
        *whole, self._rest = (self._rest + data).split(b"\n\n")
        for block in whole:
            self._event(block.split(b"\n"))

    def _event(self, lines: list[bytes]) -> None:
        name, told, found = "", None, None
        for line in lines:
            field, _, value = line.partition(b": ")
            if field == b"":
                self.beats += value == b"beat"
            elif field == b"retry":
                self.retry = int(value)
            elif field == b"event":
                name = value.decode()
            elif field == b"id":
                found = value.decode()
            elif field == b"data":
                told = json.loads(value)
            else:
                raise AssertionError(line)
        if told is None:
            return
        assert (found is not None) == (name == "" and told["run_id"] == R), "F-41: ids are cursors"
        if found is not None:
            assert found == told["cursor"]
            Cursor.read(found)
            self.last_id = found
        self.events.append((name, told))

    @property
    def cursors(self) -> list[str]:
        return [told["cursor"] for name, told in self.events if not name]

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.events if name]


async def whole(client: httpx.AsyncClient, **query: str) -> Events:
    events = Events()
    answer = await client.get(PATH, params={"follow": "0", **query}, headers=STREAM)
    assert answer.status_code == 200
    events.feed(answer.content)
    return events


def test_f_40_the_header_wins_over_the_query() -> None:
    """F-40: a browser reconnects with its first URL; F-41: retry, hello, ids; F-45: end."""

    async def play() -> None:
        written = WrittenLedgers()
        for _ in range(5):
            written.fact(R)
        written.note(R, Domain.MESSAGE, text="a\nb\r\u2028")
        async with served(written) as it:
            client = it.client
            answer = await client.get(PATH, params={"follow": "0"}, headers=STREAM)
            assert answer.headers["content-type"] == "text/event-stream"
            assert answer.headers["cache-control"] == "no-store"
            assert answer.content.startswith(b'retry: 1000\nevent: hello\ndata: {"run_id":"r/1",')
            events = Events()
            events.feed(answer.content)
            assert (events.retry, events.names) == (1_000, ["hello", "end"])
            assert events.cursors == ["1", "2", "3", "4", "5", "5.1"]
            assert (await whole(client, after="4")).cursors == ["5", "5.1"]
            resumed = Events()
            headers = {**STREAM, "Last-Event-ID": "5"}
            answer = await client.get(PATH, params={"follow": "0", "after": "2"}, headers=headers)
            resumed.feed(answer.content)
            assert resumed.cursors == ["5.1"]

    run(play())


@pytest.mark.parametrize(
    ("cursor", "status", "code"),
    [
        *((it, 400, "bad_cursor") for it in ("01", "-1", "+1", "1.0", "1.", ".1", " 1", "1 ", "x")),
        *((it, 400, "bad_cursor") for it in ("1.01", "1e3", "٣", "1.1.1", "0x1", "1,2")),
        *((it, 409, "cursor_ahead") for it in ("6", "5.1", "9" * 19, "9" * 20)),
    ],
)
def test_s_71_malformed_and_ahead_cursors_are_refused_at_once(
    cursor: str, status: int, code: str
) -> None:
    """S-71: 400 or 409, by query and by header; the latter says where the ledger ends."""

    async def play() -> None:
        written = WrittenLedgers()
        for _ in range(5):
            written.fact(R)
        async with served(written) as it:
            client = it.client
            answer = await client.get(PATH, params={"after": cursor}, headers=STREAM)
            assert (answer.status_code, answer.json()["title"]) == (status, code)
            if code == "cursor_ahead":
                assert answer.json()["head"] == "5"
            if cursor.isascii() and cursor.strip() == cursor:
                headers = {**STREAM, "Last-Event-ID": cursor}
                answer = await client.get(PATH, headers=headers)
                assert (answer.status_code, answer.json()["title"]) == (status, code)
            assert it.hub.subscribers == 0

    run(play())


def test_what_is_refused_before_a_stream_begins() -> None:
    """404 for a run that is not known, 406 by Accept, 405, 429 with Retry-After (section 15)."""

    async def play() -> None:
        written = WrittenLedgers()
        written.fact(R)
        async with served(written, settings=HubSettings(of_a_run=0)) as it:
            client = it.client
            for path, headers, method, status, code in (
                (PATH, STREAM, "GET", 429, "overloaded"),
                (PATH, {"Accept": "text/html"}, "GET", 406, "not_acceptable"),
                (PATH, STREAM, "POST", 405, "method_not_allowed"),
            ):
                answer = await client.request(method, path, headers=headers)
                assert (answer.status_code, answer.json()["title"]) == (status, code)
                assert ("retry-after" in answer.headers) == (status == 429)
        async with served(written) as it:
            answer = await it.client.get("/v1/runs/other/events", headers=STREAM)
            assert (answer.status_code, answer.json()["title"]) == (404, "unknown_run")
            for name, value in (("follow", "2"), ("limit", "abc")):
                answer = await it.client.get(PATH, params={name: value}, headers=STREAM)
                assert (answer.status_code, answer.json()["title"]) == (400, "bad_request")
                assert answer.json()["at"] == f"query.{name}"
            head = await it.client.head(PATH, headers=STREAM)
            assert (head.status_code, head.content) == (200, b"")
            assert head.headers["content-type"] == "text/event-stream"
            assert it.hub.subscribers == 0

    run(play())


def test_f_42_a_silent_stream_beats_and_f_46_what_is_ready_is_one_write() -> None:
    """F-42: each 15 s a comment; F-46: written as soon as it is kept, together up to 256."""

    async def play() -> None:
        written = WrittenLedgers()
        for _ in range(600):
            written.fact(R)
        async with served(written) as it, it.client.stream("GET", PATH, headers=STREAM) as answer:
            events = Events()
            chunks = answer.aiter_raw()
            sizes: list[int] = []
            while "live" not in events.names:
                before = len(events.events)
                chunk = await anext(chunks)
                events.feed(chunk)
                sizes.append(len(events.events) - before)
                assert len(chunk) < 64 * 1024 + 2_000
            assert max(sizes) == 256
            assert len([it for it in sizes if it]) <= 6
            now = asyncio.get_running_loop().time()
            events.feed(await anext(chunks))
            assert events.beats == 1
            assert 14 <= asyncio.get_running_loop().time() - now <= 16
            written.fact(R)
            it.hub.pass_on(R, Piece(item="said/1", kind="text", text="hm"))
            at = asyncio.get_running_loop().time()
            while events.cursors[-1] != "601" or "delta" not in events.names:
                events.feed(await anext(chunks))
            assert asyncio.get_running_loop().time() == at, "no time has passed"

    run(play())


def test_f_45_bye_comes_before_connections_are_waited_for() -> None:
    """F-45: the answer ends by itself, whole."""

    async def play() -> None:
        written = WrittenLedgers()
        written.fact(R)
        async with served(written) as it, it.client.stream("GET", PATH, headers=STREAM) as answer:
            events = Events()
            async for chunk in answer.aiter_raw():
                events.feed(chunk)
                if "live" in events.names:
                    it.hub.close()
            assert events.events[-1] == ("bye", {"retry": 2.0})

    run(play())


def test_s_56_entries_of_sub_agents_have_no_id() -> None:
    """F-41: an id is always a cursor of the run that was asked for."""

    async def play() -> None:
        written = WrittenLedgers()
        written.fact(R)
        written.note("r%2F1/t", Domain.SESSION, parent=R)
        written.fact("r%2F1/t")
        async with served(written) as it:
            events = await whole(it.client, children="1")
            assert [told["run_id"] for name, told in events.events if not name] == [R, "r%2F1/t"]
            assert events.last_id == "1"

    run(play())


def test_s_76_an_entry_that_cannot_be_translated_is_an_error_and_the_stream_goes_on() -> None:
    """S-76: translation_failed, with its event_id; what follows names the entry shown before."""

    async def play() -> None:
        written = WrittenLedgers()
        written.fact(R)
        for sequence, content in (
            (2, b"{torn"), (3, b"\xff{}"), (4, b'{"a":\n1}'), (5, b'{"a":"\xff"}'),
            (6, b'{"worker":"turnlock:host:1","a":}'),
        ):  # fmt: skip
            written.raw(R, Cursor(sequence), content)
        written.fact(R)
        async with served(written) as it:
            events = await whole(it.client)
            errors = [told for name, told in events.events if name == "error"]
            assert [it["event_id"] for it in errors] == [f"event/r%2F1/{n}" for n in range(2, 7)]
            assert {it["problem"]["title"] for it in errors} == {"translation_failed"}
            assert events.cursors == ["1", "7"]
            assert events.events[-2][1]["after"] == "1"

    run(play())


async def drive(
    app: App, *, headers: dict[str, str], most: int, query: bytes = b""
) -> tuple[bytes, list[MutableMapping[str, Any]]]:
    """Ask for a stream, and cut the connection once so many bytes were sent."""
    sent = bytearray()
    messages: list[MutableMapping[str, Any]] = []
    gone = asyncio.Event()
    given = {"Host": "127.0.0.1:8420", "Authorization": f"Bearer {faces.SECRETS[Role.LOOK]}"}
    scope: dict[str, Any] = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET",
        "headers": [(name.lower().encode(), value.encode())
                    for name, value in {**given, **STREAM, **headers}.items()],
        "scheme": "http", "path": "/v1/runs/r/1/events", "raw_path": PATH.encode(),
        "query_string": query, "server": ("127.0.0.1", 8420), "client": None,
        "root_path": "",
    }  # fmt: skip

    async def receive() -> MutableMapping[str, Any]:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        messages.append(message)
        sent.extend(message.get("body", b""))
        if len(sent) >= most:
            gone.set()

    await app(scope, receive, send)
    return bytes(sent[:most]), messages


def test_a_kill_at_every_byte_and_a_reconnect_give_the_ledger() -> None:
    """Section 10, UC-012: whatever prefix came, its last id and the rest equal all at once."""

    async def play() -> None:
        written = WrittenLedgers()
        for number in range(2):
            written.fact(R, n=number)
            written.note(R)
            written.note(R, Domain.MESSAGE, id=f"said/{number}", text="é\n")
        written.prune(R)
        everything = written.shown(R)
        async with served(written) as it:
            answer = await it.client.get(PATH, params={"follow": "0"}, headers=STREAM)
            size = len(answer.content)
            for most in range(1, size + 1):
                first, second = Events(), Events()
                data, _ = await drive(it.app, headers={}, most=most)
                first.feed(data)
                headers = {"Last-Event-ID": first.last_id} if first.last_id else {}
                rest, _ = await drive(it.app, headers=headers, most=10**6, query=b"follow=0")
                second.feed(rest)
                assert first.cursors + second.cursors == everything
                told = [told for name, told in first.events + second.events if not name]
                assert [it["after"] for it in told] == ["", "1.1", "1.2", "2.1"]
            await settled()
            assert it.hub.subscribers == 0

    run(play())


def test_f_43_a_connection_that_takes_nothing_is_cut() -> None:
    """F-43: by its transport where it is known, else by ending what answers it."""

    class Stalled:
        aborted = False

        def get_write_buffer_size(self) -> int:
            return 100

        def abort(self) -> None:
            self.aborted = True
            unstalled.set()

    unstalled = asyncio.Event()

    async def play(transport: Stalled | None) -> None:
        nonlocal unstalled
        unstalled = asyncio.Event()
        written = WrittenLedgers()
        written.fact(R)
        async with served(written) as it:
            subscription = it.hub.subscribe(R)
            stream = sse.EventStream(subscription)

            async def receive() -> MutableMapping[str, Any]:
                await asyncio.Event().wait()
                raise AssertionError

            async def send(message: MutableMapping[str, Any]) -> None:
                if message.get("body"):
                    await unstalled.wait()

            scope: dict[str, Any] = {"type": "http", "method": "GET"}
            if transport is not None:
                scope[TRANSPORT] = transport
            began = asyncio.get_running_loop().time()
            await stream(scope, receive, send)
            assert 59 <= asyncio.get_running_loop().time() - began <= 63
            assert (it.hub.subscribers, it.hub.counts.cut) == (0, 1)

    run(play(None))
    stalled = Stalled()
    run(play(stalled))
    assert stalled.aborted
