"""Requests of ours: each answered within its bound, written once, and nothing looser than said."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias, cast

import pytest

from turnlock.adapters.codex import gateway as of_gateway
from turnlock.adapters.codex.gateway import (
    Gateway,
    RequestRefused,
    RequestUnanswered,
    Thread,
)
from turnlock.adapters.codex.messages import Answered, Message, object_of
from turnlock.adapters.codex.process import Exited, ProcessName
from turnlock.adapters.codex.transport import PipeBroken, Transport
from turnlock.adapters.contract import ModelInfo

from .played import logged, player

Json: TypeAlias = dict[str, Any]
Call: TypeAlias = Callable[[Gateway], Awaitable[Any]]
NEW = "x/0.169.0 (Debian 12.0.0; x86_64) unknown (x; 1)"
THREAD = {"thread": {"id": "t"}, "approvalPolicy": "on-request", "approvalsReviewer": "user"}


class Peer:
    """What stands for a process: it answers by method; None: not at all."""

    name = ProcessName(host="h", pid=7, started="b:n:1")
    stderr_tail = ""

    def __init__(self, **answers: Any) -> None:
        self.answers: dict[str, Any] = {"initialize": {"userAgent": NEW}, **answers}
        self.written: list[Mapping[str, Any]] = []
        self.gateway = Gateway(self)

    async def read(self) -> Message | None:
        return None

    async def write(self, message: Mapping[str, Any]) -> None:
        self.written.append(message)
        answer = self.answer_to(message)
        if answer is None or "id" not in message:
            return
        found = object_of(answer)
        wrong = set(found) == {"code", "message"}
        told = Answered(message["id"], error=found) if wrong else Answered(message["id"], answer)
        asyncio.get_running_loop().call_soon(self.gateway.take, told)

    def answer_to(self, message: Mapping[str, Any]) -> Any:
        answer: Any = self.answers.get(message["method"])
        if callable(answer):
            answer = answer(message.get("params", {}))
        return cast("list[object]", answer).pop(0) if isinstance(answer, list) else answer

    async def end(self, *, grace: float) -> Exited:
        return Exited(status=0)

    def kill(self) -> None: ...

    def asked(self, method: str) -> list[Json]:
        return [dict(it.get("params", {})) for it in self.written if it["method"] == method]


def refusal(message: str, code: int = -32600) -> Json:
    return {"code": code, "message": message}


async def hello(**answers: Any) -> Peer:
    peer = Peer(**{name.replace("__", "/"): it for name, it in answers.items()})
    await peer.gateway.initialize()
    return peer


def test_we_say_who_we_are_and_learn_its_version() -> None:
    """What is experimental is asked for, and left out where just that is refused."""

    async def story() -> None:
        peer = await hello()
        assert peer.gateway.version == "0.169.0"
        first, second = peer.written
        assert first["params"]["clientInfo"]["name"] == "turnlock"
        assert first["params"]["capabilities"] == {"experimentalApi": True}
        assert second == {"method": "initialized"}

        old = await hello(initialize=[refusal("unknown field capabilities"), {"userAgent": "odd"}])
        assert old.gateway.version == ""
        assert [set(it) for it in old.asked("initialize")] == [
            {"clientInfo", "capabilities"},
            {"clientInfo"},
        ]

    asyncio.run(story())


def test_s_30_a_thread_is_ours_to_decide_on() -> None:
    """The reviewer is pinned each time; one whom others may review is refused."""

    async def story() -> None:
        peer = await hello(thread__start=THREAD, thread__resume=THREAD)
        await peer.gateway.start_thread()
        await peer.gateway.resume_thread("t")
        for method in ("thread/start", "thread/resume"):
            assert [it["approvalsReviewer"] for it in peer.asked(method)] == ["user"]
        for reviewer in ("auto_review", "guardian_subagent", 3):
            other = await hello(thread__start={**THREAD, "approvalsReviewer": reviewer})
            with pytest.raises(RequestRefused, match="would be reviewed by"):
                await other.gateway.start_thread()

    asyncio.run(story())


@pytest.mark.parametrize(
    ("asked", "holds", "fits"),
    [
        ({"approval_policy": "on-request"}, {"approvalPolicy": "untrusted"}, True),
        ({"approval_policy": "on-request"}, {"approvalPolicy": "never"}, False),
        ({"approval_policy": "untrusted"}, {"approvalPolicy": "on-request"}, False),
        ({}, {"approvalPolicy": "never"}, True),
        ({"sandbox": "read-only"}, {"sandbox": {"type": "readOnly"}}, True),
        ({"sandbox": "read-only"}, {"sandbox": {"type": "workspaceWrite"}}, False),
        ({"sandbox": "workspace-write"}, {"sandbox": {"type": "dangerFullAccess"}}, False),
        ({"sandbox": "workspace-write"}, {"sandbox": {"type": "readOnly"}}, True),
        ({"sandbox": "workspace-write"}, {"sandbox": {"type": "of later"}}, True),
    ],
)
def test_s_30_a_thread_that_asks_less_than_it_was_told_to_is_refused(
    asked: Json, holds: Json, fits: bool
) -> None:
    """A managed configuration may make it stricter, and nobody may make it looser unseen."""

    async def story() -> None:
        peer = await hello(thread__start={**THREAD, **holds}, thread__resume={**THREAD, **holds})
        for call in (
            peer.gateway.start_thread(**asked),
            peer.gateway.resume_thread("t", **asked),
        ):
            if fits:
                assert (await call).thread_id == "t"
            else:
                with pytest.raises(RequestRefused, match="would be"):
                    await call

    asyncio.run(story())


@pytest.mark.parametrize(
    ("agent", "answers", "settlement", "asks"),
    [
        (NEW, [THREAD], "response", [True]),
        ("x/0.170.2-alpha.1 (y)", [THREAD], "response", [True]),
        ("x/1.0 (y)", [THREAD], "response", [True]),
        ("x/0.168.9 (y)", [THREAD], "turn", [None]),
        ("x/0.104.0 (y)", [THREAD], "turn", [None]),
        ("nobody", [THREAD], "turn", [None]),
        (NEW, [refusal("thread/start.experimentalRawEvents …"), THREAD], "turn", [True, None]),
        (NEW, [refusal("requires experimentalApi capability"), THREAD], "turn", [True, None]),
    ],
)
def test_s_31_raw_events_are_asked_for_where_they_are_whole(
    agent: str, answers: list[Json], settlement: str, asks: list[object]
) -> None:
    """S-32: otherwise a turn of the kernel is one of its own, and that is said."""

    async def story() -> None:
        peer = await hello(initialize={"userAgent": agent}, thread__start=list(answers))
        thread = await peer.gateway.start_thread(cwd="/w", model="m", options={"a": 1})
        assert thread.settlement == settlement
        told = peer.asked("thread/start")
        assert [it.get("experimentalRawEvents") for it in told] == asks
        assert all((it["cwd"], it["model"], it["config"]) == ("/w", "m", {"a": 1}) for it in told)

    asyncio.run(story())


def test_what_is_refused_for_another_reason_is_not_asked_again() -> None:
    """Its words are harmless to look at."""

    async def story() -> None:
        peer = await hello(thread__start=refusal("no such model \x1b[31m"))
        with pytest.raises(RequestRefused) as told:
            await peer.gateway.start_thread()
        assert len(peer.asked("thread/start")) == 1
        assert str(told.value) == "thread/start was refused: no such model \\x1b[31m"
        assert told.value.error == {"code": -32600, "message": "no such model \x1b[31m"}

    asyncio.run(story())


def test_s_32_a_resumed_thread_has_no_raw_events_and_not_its_past() -> None:
    """All settings are named again; the past might be longer than any line."""

    async def story() -> None:
        answers = [refusal("unknown field excludeTurns"), THREAD]
        peer = await hello(thread__resume=answers)
        thread = await peer.gateway.resume_thread("t", sandbox="read-only")
        assert thread == Thread(thread_id="t", settlement="turn", approval_policy="on-request")
        first, second = peer.asked("thread/resume")
        assert first == {**second, "excludeTurns": True}
        assert second == {"threadId": "t", "sandbox": "read-only", "approvalsReviewer": "user"}

        other = await hello(thread__resume={"thread": {"id": "another"}})
        with pytest.raises(RequestRefused, match="another thread"):
            await other.gateway.resume_thread("t")

    asyncio.run(story())


def test_turns_are_asked_for_by_the_id_of_the_message() -> None:
    """S-81: it is found by that after a crash; a steer names the turn that it is for."""

    async def story() -> None:
        peer = await hello(
            turn__start={"turn": {"id": "u"}}, turn__steer={"turnId": "u"}, turn__interrupt={}
        )
        gateway = peer.gateway
        assert await gateway.start_turn("t", "go", message_id="m") == "u"
        assert await gateway.steer("t", "u", "left", message_id="n") == "u"
        await gateway.interrupt("t", "u")
        said: Json = {"type": "text", "text": "go", "text_elements": []}
        assert peer.asked("turn/start") == [
            {"threadId": "t", "input": [said], "clientUserMessageId": "m"}
        ]
        assert peer.asked("turn/steer") == [
            {
                "threadId": "t",
                "expectedTurnId": "u",
                "input": [{**said, "text": "left"}],
                "clientUserMessageId": "n",
            }
        ]
        assert peer.asked("turn/interrupt") == [{"threadId": "t", "turnId": "u"}]

    asyncio.run(story())


def test_lists_are_read_page_by_page() -> None:
    """And no further than somebody looks, nor round in circles."""

    def items(asked: Json) -> Json:
        number: int = asked.get("cursor", 0)
        return {"data": [{"turnId": "u", "item": number}], "nextCursor": number + 1}

    async def story() -> None:
        models = [
            {"data": [{"id": "i", "model": "a", "isDefault": True}, 3], "nextCursor": "2"},
            {"data": [{"id": "b", "modelProvider": "p"}, {}], "nextCursor": "2"},
        ]
        peer = await hello(model__list=models, thread__items__list=items)
        assert await peer.gateway.models() == (
            ModelInfo(name="a", default=True),
            ModelInfo(name="b", provider="p"),
        )
        found: list[Any] = []
        async for entry in peer.gateway.items("t", turn_id="u", newest_first=True):
            found.append(entry["item"])
            if len(found) == 3:
                break
        assert found == [0, 1, 2]
        asked = peer.asked("thread/items/list")
        assert [it.get("cursor") for it in asked] == [None, 1, 2]
        assert {it["sortDirection"] for it in asked} == {"desc"}
        assert {it["turnId"] for it in asked} == {"u"}

    asyncio.run(story())


READING: list[tuple[str, Call]] = [
    ("thread/read", lambda it: it.read_thread("t")),
    ("model/list", lambda it: it.models()),
    ("initialize", lambda it: it.initialize()),
]


@pytest.mark.parametrize(("method", "call"), READING)
def test_s_55_what_changes_nothing_is_asked_again(
    method: str, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a process that has too much to do, a few times, within its bound."""
    monkeypatch.setattr(of_gateway, "AGAIN", (0, 0, 0))
    answer: Json = {"thread": {}, "data": [], "userAgent": NEW}
    busy = refusal("Server overloaded; retry later.", -32001)

    async def story() -> None:
        peer = Peer(**{method: [busy, busy, answer]})
        await call(peer.gateway)
        assert len(peer.asked(method)) == 3
        peer = Peer(**{method: busy})
        with pytest.raises(RequestRefused, match="overloaded"):
            await call(peer.gateway)

    asyncio.run(story())


CHANGING: list[tuple[str, Call]] = [
    ("thread/start", lambda it: it.start_thread()),
    ("thread/resume", lambda it: it.resume_thread("t")),
    ("turn/start", lambda it: it.start_turn("t", "x", message_id="m")),
    ("turn/steer", lambda it: it.steer("t", "u", "x", message_id="m")),
    ("turn/interrupt", lambda it: it.interrupt("t", "u")),
]


@pytest.mark.parametrize(("method", "call"), CHANGING)
@pytest.mark.parametrize("answer", [refusal("busy", -32001), None, 3])
def test_s_55_what_changes_something_is_asked_but_once(
    method: str, call: Call, answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused, unanswered, or answered so that nobody knows: sent twice, it would run twice."""
    monkeypatch.setattr(of_gateway, "REQUEST", 0.02)
    monkeypatch.setattr(of_gateway, "START", 0.02)

    async def story() -> None:
        peer = Peer(**{method: answer})
        with pytest.raises((RequestRefused, RequestUnanswered)) as told:
            await asyncio.wait_for(call(peer.gateway), 20)
        assert isinstance(told.value, RequestRefused) == isinstance(answer, dict)
        assert len(peer.asked(method)) == 1
        assert vars(peer.gateway)["_waiting"] == {}
        late = Answered(1, {"turn": {"id": "late"}})
        peer.gateway.take(late)

    asyncio.run(story())


def test_answers_go_to_who_asked_whatever_their_order() -> None:
    """One that nobody waits for is nothing; nor is one whose id is another's as text."""

    async def story() -> None:
        peer = Peer(**{"turn/start": None})
        both = [
            asyncio.create_task(peer.gateway.start_turn("t", text, message_id="m"))
            for text in ("a", "b")
        ]
        await asyncio.sleep(0)
        for request in ("1", 7, 2, 2, 1):
            peer.gateway.take(Answered(request, {"turn": {"id": f"u{request}"}}))
        assert await asyncio.gather(*both) == ["u1", "u2"]

    asyncio.run(story())


def test_nobody_waits_for_a_process_that_says_no_more() -> None:
    """Those that wait hear it at once, and those that come after are not written."""

    async def story() -> None:
        peer = Peer(**{"turn/start": None})
        waits = asyncio.create_task(peer.gateway.start_turn("t", "a", message_id="m"))
        await asyncio.sleep(0)
        peer.gateway.close()
        with pytest.raises(PipeBroken, match="turn/start is lost"):
            await waits
        with pytest.raises(PipeBroken):
            await peer.gateway.interrupt("t", "u")
        assert len(peer.written) == 1

    asyncio.run(story())


# UC-009 on this floor: against recorded processes


@asynccontextmanager
async def connected(command: tuple[str, ...]) -> AsyncGenerator[tuple[Gateway, Transport]]:
    """Start a process, and read it; end it afterwards."""
    transport = await Transport.start(command, cwd=None, env=None)
    gateway = Gateway(transport)

    async def read() -> None:
        while (message := await transport.read()) is not None:
            if isinstance(message, Answered):
                gateway.take(message)
        gateway.close()

    reading = asyncio.create_task(read())
    try:
        async with asyncio.timeout(60):
            yield gateway, transport
    finally:
        await transport.end(grace=20)
        await reading


async def started(gateway: Gateway) -> Thread:
    await gateway.initialize()
    return await gateway.start_thread()


@pytest.mark.parametrize(
    ("name", "version", "settlement"),
    [
        ("26_unknown_tool", "0.169.0", "response"),
        ("01_hello", "0.169.0", "turn"),
        ("02_cmd_accept_v0104", "0.104.0", "turn"),
    ],
)
def test_uc_009_a_thread_is_started(name: str, version: str, settlement: str) -> None:
    """S-31, S-32: with raw events where they come, without them where they do not."""

    async def story() -> None:
        async with connected(player(name)) as (gateway, transport):
            assert await gateway.initialize() == version
            thread = await gateway.start_thread(cwd="/workspace", approval_policy="on-request")
            assert thread.settlement == settlement
            assert (thread.cwd, thread.sandbox) == ("/workspace", "workspace-write")
            assert len(await gateway.models()) == 2
            assert await gateway.start_turn(thread.thread_id, "go", message_id="m")
            exited = await transport.end(grace=20)
            assert exited.status == 0
            assert "player:" not in exited.said

    asyncio.run(story())


def test_uc_009_a_thread_is_resumed_and_what_it_kept_is_read(tmp_path: Path) -> None:
    """In a second process, under the same id; the items of its turns are read by pages."""
    log = tmp_path / "log"

    async def story() -> None:
        async with connected(player("13_resume_clean", 0)) as (gateway, _):
            await gateway.initialize()
            thread_id = (await gateway.start_thread()).thread_id
        async with connected(player("13_resume_clean", 1, "--log", str(log))) as (gateway, _):
            await gateway.initialize()
            thread = await gateway.resume_thread(thread_id)
            assert thread == Thread(
                thread_id=thread_id,
                settlement="turn",
                model=thread.model,
                cwd=thread.cwd,
                approval_policy=thread.approval_policy,
                sandbox=thread.sandbox,
            )
            kinds = [it["item"]["type"] async for it in gateway.items(thread_id)]
            assert kinds == ["userMessage", "commandExecution", "agentMessage"]
            with pytest.raises(RequestRefused, match="no thread/read was recorded"):
                await gateway.read_thread(thread_id)

    asyncio.run(story())
    assert not [it for it in logged(log) if it["event"] == "fault"]


@pytest.mark.parametrize("method", ["initialize", "thread/start"])
def test_uc_009_a_start_that_is_refused_says_why(method: str) -> None:
    """In its words, made harmless; it is over with that process."""

    async def story() -> None:
        async with connected(player("01_hello", 0, "--refuse", method)) as (gateway, _):
            with pytest.raises(RequestRefused, match=r"is refused \\x1b\[31m"):
                await started(gateway)

    asyncio.run(story())


@pytest.mark.parametrize("method", ["initialize", "thread/start"])
def test_uc_009_a_process_that_never_answers_is_not_waited_for(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """30 s, and 60 s for a thread (section 15), of which a test takes less."""
    assert (of_gateway.REQUEST, of_gateway.START) == (30, 60)
    bound = "REQUEST" if method == "initialize" else "START"
    monkeypatch.setattr(of_gateway, bound, 0.5)

    async def story() -> None:
        async with connected(player("01_hello", 0, "--never-answer", method)) as (gateway, _):
            with pytest.raises(RequestUnanswered, match=f"{method}: nothing was answered"):
                await started(gateway)

    asyncio.run(story())


@pytest.mark.parametrize("option", ["--die-after", "--half-line-after", "--exit-after"])
def test_uc_009_a_process_that_dies_while_it_starts_lets_nobody_wait(option: str) -> None:
    """Killed, or broken off amid a line, or ended by itself."""

    async def story() -> None:
        async with connected(player("01_hello", 0, option, "7")) as (gateway, _):
            with pytest.raises(PipeBroken):
                await started(gateway)

    asyncio.run(story())


def test_uc_009_what_is_no_codex_lets_nobody_wait() -> None:
    """A program that ends at once, as one does that knows no `app-server`."""

    async def story() -> None:
        command = (sys.executable, "-I", "-S", "-c", "import sys; sys.exit('what?')")
        async with connected(command) as (gateway, transport):
            with pytest.raises(PipeBroken):
                await gateway.initialize()
            exited = await transport.end(grace=20)
            assert (exited.status, exited.said) == (1, "what?\n")

    asyncio.run(story())
