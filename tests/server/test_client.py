"""The client of the face: problems are errors, tokens stay in headers, streams lose nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import httpx
import pytest

from turnlock import Decide, Interrupt, Resolution, Resolve, Revoke
from turnlock.models.deliveries import Match, Scope
from turnlock.models.errors import TurnlockError
from turnlock.runtime.journal.ledger import Cursor
from turnlock.server import client as module
from turnlock.server.chats_client import ChatsClient
from turnlock.server.client import Client
from turnlock.server.credentials import checked_url, read_token
from turnlock.server.problems import Problem
from turnlock.server.received import StreamEvent, Unreachable

URL = "http://127.0.0.1:8420"
TOKEN = "s3cret"  # noqa: S105 - of no server


def answering(answer: Callable[[httpx.Request], httpx.Response], token: str = TOKEN) -> Client:
    return Client(URL, token=token, retry=0.0, transport=httpx.MockTransport(answer))


def problem(code: str, status: int, **extra: Any) -> httpx.Response:
    told = {"type": f"urn:turnlock:{code}", "title": code, "status": status, "detail": "no"}
    return httpx.Response(status, json={**told, **extra})


async def asked(answer: httpx.Response) -> Any:
    async with answering(lambda _: answer) as client:
        return await client.view("r")


CURSORS = ("0.1", "1", "2", "2.1", "2.2", "3", "4")
"""Of a ledger of seven entries."""


def entry(cursor: str) -> bytes:
    place = CURSORS.index(cursor)
    after = CURSORS[place - 1] if place else ""
    told = {"cursor": cursor, "after": after, "run_id": "r", "fact": {"text": "\u2028 \x85 …"}}
    return f"id: {cursor}\ndata: {json.dumps(told, ensure_ascii=False)}\n\n".encode()


def streamed(after: str) -> bytes:
    """What a server sends after a cursor: the past, and that it is told."""
    known = Cursor.read(after)
    entries = b"".join(entry(it) for it in CURSORS if Cursor.read(it) > known)
    hello = b'retry: 1000\nevent: hello\ndata: {"run_id": "r", "head": "4"}\n\n'
    return hello + entries + b': beat\n\nevent: live\ndata: {"cursor": "4"}\n\n'


def serving(cut: Callable[[bytes], bytes]) -> Client:
    """A server whose connections each end where `cut` says."""

    def answer(request: httpx.Request) -> httpx.Response:
        assert "after" not in request.url.params
        content = cut(streamed(request.headers.get("Last-Event-ID", "")))
        return httpx.Response(
            200, headers={"Content-Type": "text/event-stream"}, content=_chunks(content)
        )

    return answering(answer)


async def _chunks(content: bytes) -> AsyncIterator[bytes]:
    for place in range(0, len(content), 100):
        yield content[place : place + 100]


async def until_live(client: Client) -> list[StreamEvent]:
    heard: list[StreamEvent] = []
    async for event in client.follow("r"):
        heard.append(event)
        if event.name == "live":
            break
    return heard


def cursors(heard: list[StreamEvent]) -> list[str]:
    return [it.data["cursor"] for it in heard if it.name == "entry"]


def test_f_52_a_stream_that_is_cut_at_any_byte_is_followed_without_gap_or_repeat() -> None:
    """However far a connection comes: what it brought is not asked for again, none is lost."""

    async def followed(length: int) -> None:
        lengths = iter([length])

        def cut(content: bytes) -> bytes:
            return content[: next(lengths, len(content))]

        async with serving(cut) as client:
            heard = await until_live(client)
        assert cursors(heard) == list(CURSORS)
        assert "gap" not in [it.name for it in heard]

    async def all_lengths() -> None:
        for length in range(0, len(streamed("")), 3):
            await followed(length)

    asyncio.run(all_lengths())


def test_f_52_a_missing_entry_is_a_gap_and_asked_for_again() -> None:
    dropped = iter([entry("2.1")])

    async def run() -> None:
        async with serving(lambda it: it.replace(next(dropped, b"-"), b"")) as client:
            heard = await until_live(client)
        assert cursors(heard) == list(CURSORS)
        (gap,) = [it for it in heard if it.name == "gap"]
        assert dict(gap.data) == {"from": "2", "to": "2.1", "reason": "missed"}

    asyncio.run(run())


def test_f_52_control_who_believes_every_entry_shows_a_hole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def believed(event: StreamEvent, last: Cursor) -> tuple[StreamEvent, Cursor]:
        return event, last

    monkeypatch.setattr(module, "passed_on", believed)

    async def run() -> None:
        async with serving(lambda it: it.replace(entry("2.1"), b"")) as client:
            assert cursors(await until_live(client)) != list(CURSORS)

    asyncio.run(run())


def test_f_52_what_comes_twice_is_heard_once_and_a_pruned_range_is_passed_over() -> None:
    gap = b'event: gap\ndata: {"from": "2.1", "to": "2.2", "reason": "pruned"}\n\n'

    def doubled(content: bytes) -> bytes:
        content = content.replace(entry("1"), entry("1") * 2)
        return content.replace(entry("2.1") + entry("2.2"), gap)

    async def run() -> None:
        async with serving(doubled) as client:
            heard = await until_live(client)
        assert cursors(heard) == ["0.1", "1", "2", "3", "4"]
        assert [it.name for it in heard].count("gap") == 1

    asyncio.run(run())


def of_a_run(client: Client) -> AsyncGenerator[StreamEvent]:
    return client.follow("r")


def of_a_chat(client: Client) -> AsyncGenerator[StreamEvent]:
    return ChatsClient(client).follow("w", "c")


@pytest.mark.parametrize("stream", [of_a_run, of_a_chat])
def test_f_52_who_follows_waits_as_long_as_the_server_says(
    stream: Callable[[Client], AsyncGenerator[StreamEvent]],
) -> None:
    busy = httpx.Response(429, headers={"Retry-After": "7"}, json=problem("busy", 429).json())
    unknown = problem("unknown", 404)

    async def first(answer: httpx.Response) -> StreamEvent:
        async with answering(lambda _: answer) as client, aclosing(stream(client)) as events:
            return await anext(events)

    told = asyncio.run(first(busy))
    assert (told.name, told.data["retry"]) == ("off", 7.0)
    with pytest.raises(Problem):  # the control: it is not asked for again
        asyncio.run(first(unknown))


def test_f_5_a_problem_is_raised_as_what_it_is() -> None:
    with pytest.raises(Problem) as raised:
        asyncio.run(asked(problem("unknown_run", 404, at="run", retry_after=3)))

    assert (raised.value.code, raised.value.status, raised.value.at) == ("unknown_run", 404, "run")
    assert raised.value.extra == {"retry_after": 3}


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(200, text="<html>"),
        httpx.Response(200, json=[]),
        httpx.Response(302, headers={"Location": "http://elsewhere/"}, json={}),
        httpx.Response(500, text="oops"),
        httpx.Response(200, content=b'{"a": 1, "a": 2}'),
        httpx.Response(404, json={"detail": "Not Found"}),
    ],
    ids=["a page", "no object", "elsewhere", "no problem", "a key twice", "another face"],
)
def test_f_5_what_is_no_turnlock_is_said_so(answer: httpx.Response) -> None:
    with pytest.raises(Unreachable, match="no turnlock that this one knows"):
        asyncio.run(asked(answer))


def test_f_22_a_refusal_is_an_answer_with_what_holds() -> None:
    call = {"call_id": "1.c", "decision": {"approved": True, "by": "anna"}}

    def answer(_: httpx.Request) -> httpx.Response:
        return problem("already_decided", 409, accepted=False, reason="already_decided", call=call)

    async def run() -> None:
        async with answering(answer) as client:
            refused = await client.deliver("r", Interrupt(turn_id="t"))
            assert (refused.accepted, refused.reason) == (False, "already_decided")
            assert refused.call == call

    asyncio.run(run())


def test_f_26_a_post_is_waited_for_until_it_is_answered() -> None:
    answers: Iterator[httpx.Response] = iter(
        [
            httpx.Response(202, json={"accepted": None, "post": 7}),
            httpx.Response(202, json={"accepted": None, "post": 7}),
            httpx.Response(200, json={"accepted": True, "facts": []}),
        ]
    )
    paths: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        paths.append(request.url.path)
        return next(answers)

    async def run() -> None:
        async with answering(answer) as client:
            posted = await client.deliver("r", Interrupt(turn_id="t"))
            assert (posted.accepted, posted.post) == (None, 7)
            assert (await client.posted("r", 7, within=5.0)).accepted is True

    asyncio.run(run())
    assert paths == ["/v1/runs/r/interrupt", "/v1/runs/r/posts/7", "/v1/runs/r/posts/7"]


DECIDE = Decide(
    turn_id="t",
    invocation_id="c",
    approved=True,
    arguments_digest="ab",
    arguments={"n": 1},
    decided_by="somebody else",
    scope=Scope.TURN,
    match=Match.TOOL,
)


@pytest.mark.parametrize(
    ("delivery", "path", "body"),
    [
        (
            DECIDE,
            "decisions",
            {"turn_id": "t", "invocation_id": "c", "approved": True, "arguments_digest": "ab",
             "arguments": {"n": 1}, "scope": "turn", "match": "tool"},
        ),
        (
            Decide(turn_id="t", invocation_id="c", approved=False, reason="no"),
            "decisions",
            {"turn_id": "t", "invocation_id": "c", "approved": False, "reason": "no"},
        ),
        (
            Resolve(turn_id="t", invocation_id="c", attempt=1, resolution=Resolution.RESULT,
                    result=None),
            "resolutions",
            {"turn_id": "t", "invocation_id": "c", "attempt": 1, "resolution": "result",
             "result": None},
        ),
    ],
    ids=["approve", "deny", "resolve"],
)  # fmt: skip
def test_f_12_a_delivery_is_sent_without_who_decides(
    delivery: Decide | Resolve, path: str, body: dict[str, Any]
) -> None:
    """Who it is says the token, in a header and nowhere else (F-13)."""
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200, json={"accepted": True, "facts": []})

    async def run() -> None:
        async with answering(answer) as client:
            await client.deliver("r", delivery)

    asyncio.run(run())
    (request,) = sent
    assert request.url.path == f"/v1/runs/r/{path}"
    assert json.loads(request.content) == body
    assert request.headers["Authorization"] == "Bearer s3cret"
    assert "s3cret" not in str(request.url)


@pytest.mark.parametrize("run_id", ["a/b", "..", "a%2Fb", "ü\n", "?x=1#y", "a b"])
def test_f_2_an_id_is_one_segment_whatever_it_holds(run_id: str) -> None:
    paths: list[bytes] = []

    def answer(request: httpx.Request) -> httpx.Response:
        paths.append(request.url.raw_path)
        return httpx.Response(200, json={"accepted": True})

    async def run() -> None:
        async with answering(answer) as client:
            await client.deliver(run_id, Revoke(grant_id="grant/a/1"))

    from turnlock.server.routing import decoded  # noqa: PLC0415 - what the server reads

    asyncio.run(run())
    _, v1, runs, segment, grants, grant = paths[0].split(b"/")
    assert (v1, runs, grants) == (b"v1", b"runs", b"grants")
    assert (decoded(segment), decoded(grant)) == (run_id, "grant/a/1")


@pytest.mark.parametrize(
    "url",
    ["", "agent.db", "ftp://a", "http://", "http://u:p@h", "http://token@h", "http://h/?token=x",
     "http://h#code=x", "http://h\x1b[2J", "http://h:99999999"],
)  # fmt: skip
def test_f_13_an_address_holds_no_secret_and_is_one(url: str) -> None:
    with pytest.raises(TurnlockError):
        checked_url(url)


def test_an_address_loses_its_last_slash() -> None:
    assert checked_url("https://h:1/base/") == "https://h:1/base"


def test_a_token_is_read_from_the_file_else_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.write_text("from-the-file\n")
    monkeypatch.delenv("TURNLOCK_TOKEN", raising=False)
    monkeypatch.delenv("TURNLOCK_TOKEN_FILE", raising=False)
    assert read_token() is None
    monkeypatch.setenv("TURNLOCK_TOKEN_FILE", str(file))
    assert read_token() == "from-the-file"
    monkeypatch.setenv("TURNLOCK_TOKEN", "from-the-environment")
    assert read_token() == "from-the-environment"
    assert read_token(file) == "from-the-file"


@pytest.mark.parametrize("content", [b"", b"\n", b"a b\x1b", b"\xff\xfe", b"a\nb", b"x" * 5_000])
def test_what_is_no_token_is_never_sent(tmp_path: Path, content: bytes) -> None:
    """It would be a header of its own, or a fault that shows it."""
    file = tmp_path / "token"
    file.write_bytes(content)
    with pytest.raises(TurnlockError) as raised:
        read_token(file)
    assert "x" * 20 not in str(raised.value)


def test_where_nobody_listens_is_unreachable() -> None:
    async def run() -> None:
        async with Client("http://127.0.0.1:1") as client:
            with pytest.raises(Unreachable, match="is turnlock serve running there"):
                await client.runs()

    asyncio.run(run())
