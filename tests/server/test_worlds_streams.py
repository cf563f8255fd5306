"""A chat's stream as server-sent events (W-71, F-40 … F-46, S-70 … S-77)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from turnlock.agent.messages import Stop, Tokens
from turnlock.agent.speaking import Text
from turnlock.agent.transients import SpeechChunk, SpeechEnded, SpeechStarted
from turnlock.models.deliveries import Decide
from turnlock.models.values import arguments_digest
from turnlock.runtime.journal.contract import open_journal
from turnlock.runtime.submitting import submit
from turnlock.server.hub import HubSettings
from turnlock.world.passing import pass_on
from turnlock.world.publishing import World

from .chat_events import ChatStream, following, past
from .worlded import CHAT, Served, approval, pays, served

EVENTS = f"{CHAT}/events"


async def say(it: Served, text: str, name: str) -> None:
    await it.world.chat("plan").say("ada", text, message_id=name)


def kinds(told: list[tuple[str, dict[str, Any]]]) -> list[str]:
    return [name or data["type"] for name, data in told]


def test_f_41_the_past_then_live_then_what_happens() -> None:
    """retry, hello with the head, entries and projections with their cursors as ids, live."""

    async def play() -> None:
        async with served() as it:
            await it.made("alice")
            await say(it, "hello", "m1")
            run_id = await it.waits()
            async with following(it.as_("eve")) as stream:
                told = await stream.until("live")
                assert (stream.retry, kinds(told)) == (
                    1000, ["hello", "entry", "projection", "live"],
                )  # fmt: skip
                hello, entry, request, live = (data for _, data in told)
                named = {"world": "demo", "chat": "plan"}
                assert hello == {**named, "head": hello["head"]}
                assert live == {**named, "cursor": stream.last_id}
                assert entry.items() >= {
                    **named, "type": "entry", "log": "demo/plan", "number": 1,
                    "entry_id": "say/ada/m1",
                    "body": {"kind": "message", "role": "person", "sender": "ada",
                             "text": "hello"},
                }.items()  # fmt: skip
                assert request["role"] == "request"
                assert request["asks"]["arguments"] == {"amount": 12}
                await say(it, "more", "m2")
                name, data = await stream.next()
                assert (name, data["number"]) == ("", 2)
                body = approval(run_id)
                assert (await it.ada.post(f"{CHAT}/decisions", json=body)).status_code == 200
                name, data = await stream.next()
                assert (name, data["role"], data["decided_by"]) == ("", "decision", "ada")
            head = (await it.ada.get(CHAT)).json()["cursor"]
            assert await past(it.ada, after=head) == []

    asyncio.run(play())


def test_f_40_the_header_wins_and_each_event_comes_once() -> None:
    """Cut off after each event, and on from there: together it is what an uncut stream has."""

    async def play() -> None:
        async with served() as it:
            await it.made("alice", "bob")
            for number in range(3):
                await say(it, f"hello {number}", f"m{number}")
            await it.waits(pays("c1"), pays("c2"))
            await it.waits(agent="bob")
            await say(it, "last", "m9")
            whole = await past(it.ada)
            assert len(whole) == 7
            found: list[dict[str, Any]] = []
            last = ""
            while True:
                async with following(it.ada, last=last, after="junk", follow="0") as stream:
                    await stream.until("hello")
                    name, data = await stream.next()
                    if name == "end":
                        break
                    found.append(data)
                    last = data["cursor"]
            assert found == whole
            for place, event in enumerate(whole):
                assert await past(it.ada, after=event["cursor"]) == whole[place + 1 :]

    asyncio.run(play())


@pytest.mark.parametrize(
    ("after", "status", "code"),
    [
        ("x", 400, "bad_cursor"),
        ("01", 400, "bad_cursor"),
        ("-1", 400, "bad_cursor"),
        ("1;alice", 400, "bad_cursor"),
        ("1;nobody/x:1", 400, "bad_cursor"),
        ("2", 409, "cursor_ahead"),
        ("1;alice:9", 409, "cursor_ahead"),
        ("1;nobody:9", 409, "cursor_ahead"),
    ],
)
def test_s_71_a_cursor_that_is_none_here_is_refused(after: str, status: int, code: str) -> None:
    async def play() -> None:
        async with served() as it:
            await it.made("alice")
            await say(it, "hello", "m1")
            stream = {"Accept": "text/event-stream"}
            for method in ("GET", "HEAD"):
                answer = await it.ada.request(
                    method, EVENTS, params={"after": after}, headers=stream
                )
                assert answer.status_code == status, answer.text
            told = (await it.ada.get(EVENTS, params={"after": after}, headers=stream)).json()
            assert told["title"] == code
            assert it.hub.subscribers == 0

    asyncio.run(play())


def test_what_cannot_be_followed_is_a_problem() -> None:
    """No chat, no world, a header that stands twice, JSON asked for; HEAD says what GET would."""

    async def play() -> None:
        async with served() as it:
            await it.made("alice")
            stream = {"Accept": "text/event-stream"}
            for path in ("/v1/worlds/none/chats/plan/events", "/v1/worlds/demo/chats/no/events"):
                answer = await it.ada.get(path, headers=stream)
                assert (answer.status_code, answer.json()["title"]) == (404, "not_found")
            twice = [("Accept", "text/event-stream"), ("Last-Event-ID", ""), ("Last-Event-ID", "")]
            answer = await it.ada.get(EVENTS, headers=twice)
            assert (answer.status_code, answer.json()["title"]) == (400, "bad_cursor")
            answer = await it.ada.get(EVENTS, headers={"Accept": "application/json"})
            assert answer.status_code == 406
            answer = await it.ada.head(EVENTS, headers=stream)
            assert (answer.status_code, answer.headers["content-type"]) == (
                200, "text/event-stream",
            )  # fmt: skip
            assert it.hub.subscribers == 0

    asyncio.run(play())


def test_s_75_transients_go_by_live_alone() -> None:
    """They have no id, and who comes later hears none of them."""

    async def play() -> None:
        async with served() as it:
            await it.made("alice")
            async with following(it.ada) as stream:
                await stream.until("live")
                name = "demo/plan/alice/said/2"
                nothing = Tokens()
                for each in (
                    SpeechStarted(entry_id=name, agent="alice", attempt=1),
                    SpeechChunk(entry_id=name, said=Text("It is ")),
                    SpeechChunk(entry_id=name, said=Text("noon.")),
                    SpeechEnded(entry_id=name, stop=Stop.DONE, tokens=nothing),
                ):
                    pass_on(it.journal, "demo/plan", each)
                told = [await stream.next() for _ in range(3)]
                assert [name for name, _ in told] == ["transient"] * 3
                assert [data["kind"] for _, data in told] == ["start", "chunk", "end"]
                assert {data["entry_id"] for _, data in told} == {name}
                assert told[1][1]["text"] == "It is noon."
                assert stream.last_id == ""
            assert await past(it.ada) == []

    asyncio.run(play())


def test_f_45_a_server_that_stops_says_when_to_come_again() -> None:
    async def play() -> None:
        async with served() as it:
            await it.made("alice")
            async with following(it.ada) as stream:
                await stream.until("live")
                it.hub.close()
                assert await stream.rest() == [
                    ("bye", {"world": "demo", "chat": "plan", "retry": 2.0})
                ]
            async with following(it.ada) as late:
                assert kinds(await late.rest())[-1] == "bye"

    asyncio.run(play())


def test_f_42_a_silent_stream_shows_that_it_lives() -> None:
    async def play() -> None:
        settings = HubSettings(beat=0.05, poll=0.02)
        async with served(hub_settings=settings) as it:
            await it.made("alice")
            async with following(it.ada) as stream:
                await stream.until("live")
                waiting = asyncio.ensure_future(stream.next())
                await stream.beaten.wait()
                await say(it, "x", "m1")
                assert (await waiting)[1]["number"] == 1

    asyncio.run(play())


def test_section_15_subscribers_of_a_chat_are_bounded() -> None:
    """One more is 429, and one that leaves makes room; other chats have their own."""

    async def play() -> None:
        async with served(hub_settings=HubSettings(of_a_run=2, poll=0.02)) as it:
            world = await it.made("alice")
            await world.open_chat("other")
            other = "/v1/worlds/demo/chats/other/events"
            stream = {"Accept": "text/event-stream"}
            async with following(it.ada) as one:
                await one.until("live")
                async with following(it.ada) as two, following(it.ada, path=other) as third:
                    await two.until("live")
                    await third.until("live")
                    answer = await it.ada.get(EVENTS, headers=stream)
                    assert (answer.status_code, answer.json()["title"]) == (429, "overloaded")
                while it.hub.subscribers > 1:  # noqa: ASYNC110 - the server sees it in its own time
                    await asyncio.sleep(0.01)
                async with following(it.ada) as again:
                    await again.until("live")

    asyncio.run(play())


async def _decided_elsewhere(file: str, run_id: str) -> None:
    async with await open_journal(file) as journal:
        digest = arguments_digest({"amount": 12})
        named: Any = {"run_id": run_id, "turn_id": "t1", "invocation_id": "c1"}
        decide = Decide(**named, approved=True, decided_by="ben", arguments_digest=digest)
        await submit(journal, run_id, decide, within=5.0)
        await World(journal, "demo").chat("plan").say("ben", "done", message_id="m1")


def test_s_77_two_servers_on_one_journal_tell_the_same(tmp_path: Path) -> None:
    """Through one something is said and decided; who follows by the other sees it, cursors alike.

    What is said while a model speaks goes by in the process that asks it, and nowhere else.
    """

    async def play() -> None:
        file = str(tmp_path / "world.db")
        async with (
            await open_journal(file) as first,
            await open_journal(file) as second,
            served(first) as one,
            served(second) as other,
        ):
            await one.made("alice")
            run_id = await one.waits()
            async with following(one.ada) as near, following(other.ada) as far:
                await near.until("live")
                await far.until("live")
                started = SpeechStarted(entry_id="demo/plan/alice/said/2", agent="alice", attempt=1)
                pass_on(first, "demo/plan", started)
                assert (await near.next())[0] == "transient"
                message = {"message_id": "m1", "text": "hello"}
                assert (await one.ada.post(f"{CHAT}/messages", json=message)).status_code == 201
                again = await other.ada.post(f"{CHAT}/messages", json=message)
                assert (again.status_code, again.json()["new"]) == (200, False)
                assert await near.next() == await far.next()
                await other.ada.post(f"{CHAT}/decisions", json=approval(run_id))
                assert (await near.next())[1] == (await far.next())[1]
            assert await past(one.ada) == await past(other.ada)

    asyncio.run(play())


def test_what_another_program_does_is_told(tmp_path: Path) -> None:
    """A decision by the journal alone, and a message: both come, by looking (S-77)."""

    async def play() -> None:
        file = str(tmp_path / "world.db")
        async with await open_journal(file) as journal, served(journal) as it:
            await it.made("alice")
            run_id = await it.waits()
            async with following(it.ada) as stream:
                await stream.until("live")
                await _decided_elsewhere(file, run_id)
                told = [(await stream.next())[1] for _ in range(2)]
                assert {each["type"] for each in told} == {"projection", "entry"}

    asyncio.run(play())


async def _idle(stream: ChatStream) -> None:
    await stream.until("live")


def test_f_13_a_stream_ends_with_its_token() -> None:
    async def play() -> None:
        async with served() as it:
            await it.made("alice")
            async with following(it.as_("eve")) as stream:
                await _idle(stream)
                it.face.tokens.replace({})
                assert await stream.rest() == []
            while it.hub.subscribers:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.01)

    asyncio.run(play())
