"""Pictures of runs, drawn in processes of their own: two at once, once for a sequence (F-34)."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree as ET

import pytest

from turnlock import Claim, Report
from turnlock.diagrams.palette import Theme
from turnlock.models.errors import TurnlockError
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.server import pictures
from turnlock.server.calls import call_id
from turnlock.server.pictures import Drawings, shipped
from turnlock.server.problems import Problem

from .faces import Opened, opened
from .runs import RUN, free, gated, opened_turn, shared

RUNS = "/v1/runs/r/pictures"
HOSTILE = '</svg><script>alert("x")</script>&\u202e'


@asynccontextmanager
async def facing(*deliveries: Any) -> AsyncGenerator[Opened]:
    async with MemoryJournal() as journal:
        await journal.declare(RUN)
        if deliveries:
            await shared(journal, *deliveries)
        async with opened(journal=journal, endpoints=pictures.ENDPOINTS) as it:
            yield it


def text_of(svg: bytes) -> str:
    """The text of a picture that is well-formed, and in which nothing is run or fetched."""
    root = ET.fromstring(svg)  # noqa: S314 - of our own server
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert root.tag.endswith("svg")
    assert not tags & {"script", "foreignObject", "image", "use", "a"}
    return " ".join(text for element in root.iter() for text in (element.text or "",))


def test_f_34_a_run_and_a_call_are_drawn_and_what_is_recorded_stays_text() -> None:
    """Each for real, in its process; a name that would be markup is spelt."""

    async def play() -> None:
        claim = Claim(turn_id="t", invocation_id="b.%", attempt=1)
        report = Report(turn_id="t", invocation_id="b.%", result=HOSTILE)
        turn = opened_turn(gated("a", tool=HOSTILE), free("b.%", tool="look"))
        async with facing(turn, claim, report) as it:
            client = it.client()
            names = ("timeline.svg", f"calls/{quote(call_id(1, 'b.%'), safe='')}.svg")
            answers = await asyncio.gather(*(client.get(f"{RUNS}/{name}") for name in names))
            for answer in answers:
                assert answer.status_code == 200, answer.text
                assert answer.headers["content-type"] == "image/svg+xml"
                assert "default-src 'none'" in answer.headers["content-security-policy"]
                assert HOSTILE.encode() not in answer.content
            assert "look" in text_of(answers[0].content)
            assert "SUCCEEDED" in text_of(answers[1].content)

    asyncio.run(play())


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Drawings that take no time: what was asked for, in order."""
    asked: list[bytes] = []

    async def drawn(what: bytes, *, within: float) -> bytes:
        asked.append(what)
        await asyncio.sleep(0)
        return b"<svg/>" + str(len(asked)).encode()

    monkeypatch.setattr(pictures, "drawn", drawn)
    return asked


def test_f_34_a_picture_is_drawn_once_for_a_sequence_and_a_theme(counted: list[bytes]) -> None:
    """However many ask at once; a new fact draws it anew."""

    async def play() -> None:
        async with facing(opened_turn(gated(), free("b"))) as it:
            client = it.client()

            async def got(name: str) -> bytes:
                answer = await client.get(f"{RUNS}/{name}")
                assert answer.status_code == 200, answer.text
                return answer.content

            many = await asyncio.gather(*(got("timeline.svg") for _ in range(10)))
            assert len({*many}) == len(counted) == 1
            await got("timeline.svg?theme=light")
            assert len(counted) == 1
            await got("timeline.svg?theme=dark")
            await got("sequence.svg")
            assert len(counted) == 3
            await shared(it.journal, Claim(turn_id="t", invocation_id="b", attempt=1))
            assert await got("timeline.svg") != many[0]
            assert len(counted) == 4
            told = counted[-1].splitlines()
            assert len(told) == 2 + 3, "what is wanted, the run, and its facts"

    asyncio.run(play())


def test_f_34_two_are_drawn_at_once_and_few_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than may wait are told to come again; nothing of it is kept behind."""

    async def play() -> None:
        go, full = asyncio.Event(), asyncio.Event()
        at_once: list[int] = []
        under_way = 0

        async def drawn(_: bytes, *, within: float) -> bytes:
            nonlocal under_way
            under_way += 1
            at_once.append(under_way)
            if under_way == pictures.AT_ONCE:
                full.set()
            await go.wait()
            under_way -= 1
            return b"<svg/>"

        monkeypatch.setattr(pictures, "drawn", drawn)
        async with facing(opened_turn()) as it:
            drawings = Drawings()

            def draw(at: int) -> asyncio.Task[bytes]:
                wanted = {"kind": "life", "epoch": 1, "invocation_id": str(at)}
                return asyncio.create_task(drawings.draw(it.journal, "r", wanted, Theme.LIGHT))

            tasks = [draw(at) for at in range(pictures.WAITING + pictures.AT_ONCE)]
            await full.wait()
            with pytest.raises(TurnlockError, match="try again later"):
                await draw(-1)
            tasks.pop().cancel()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            more = draw(-2)
            go.set()
            await asyncio.gather(more, *tasks)
            assert max(at_once) == pictures.AT_ONCE

    asyncio.run(play())


def test_f_34_what_is_kept_is_bounded(
    counted: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play() -> None:
        monkeypatch.setattr(pictures, "CACHED", 14)
        async with facing(opened_turn()) as it:
            for kind in ("timeline", "sequence", "timeline", "sequence", "sequence"):
                await it.face.drawings.draw(it.journal, "r", {"kind": kind}, Theme.LIGHT)
            assert len(counted) == 2
            await it.face.drawings.draw(it.journal, "r", {"kind": "timeline"}, Theme.DARK)
            await it.face.drawings.draw(it.journal, "r", {"kind": "timeline"}, Theme.LIGHT)
            assert len(counted) == 4

    asyncio.run(play())


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/v1/runs/nobody/pictures/timeline.svg", 404, "unknown_run"),
        (f"{RUNS}/timeline.png", 404, "not_found"),
        (f"{RUNS}/..%2Ftimeline.svg", 404, "not_found"),
        (f"{RUNS}/timeline.svg%0A", 404, "not_found"),
        (f"{RUNS}/calls/1.a", 404, "not_found"),
        (f"{RUNS}/calls/a.svg", 404, "not_found"),
        (f"{RUNS}/calls/1.a.b.svg", 404, "not_found"),
        (f"{RUNS}/timeline.svg?theme=blue", 400, "bad_request"),
        ("/v1/pictures/..%2Fface.py", 404, "not_found"),
        ("/v1/pictures/turn.svg?theme=..%2Fdark", 400, "bad_request"),
    ],
)
def test_f_34_what_is_no_picture(path: str, status: int, code: str, counted: list[bytes]) -> None:
    async def play() -> None:
        async with facing(opened_turn()) as it:
            answer = await it.client().get(path)
            assert (answer.status_code, answer.json()["title"]) == (status, code)
            assert not counted

    asyncio.run(play())


def test_f_34_a_run_without_a_turn_has_nothing_to_draw() -> None:
    """And a call that is not there: its process says so, and the answer does."""

    async def play() -> None:
        async with facing() as it:
            answer = await it.client().get(f"{RUNS}/timeline.svg")
            assert (answer.status_code, answer.json()["title"]) == (404, "not_found")
            assert "opened no turn" in answer.json()["detail"]

    asyncio.run(play())


def test_f_34_a_run_of_too_many_facts_is_not_begun(
    counted: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play() -> None:
        monkeypatch.setattr(pictures, "FACTS", 1)
        async with facing(opened_turn()) as it:
            answer = await it.client().get(f"{RUNS}/timeline.svg")
            assert (answer.status_code, answer.json()["title"]) == (413, "too_large")
            assert not counted

    asyncio.run(play())


def test_f_34_a_drawing_that_takes_too_long_or_is_left_ends_with_its_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[Process] = []
    second = asyncio.Semaphore(0)
    begin = asyncio.create_subprocess_exec

    async def sleeping(*_: str, **pipes: Any) -> Process:
        process = await begin(sys.executable, "-S", "-c", "import time; time.sleep(600)", **pipes)
        begun.append(process)
        second.release()
        return process

    async def play() -> None:
        monkeypatch.setattr(asyncio, "create_subprocess_exec", sleeping)
        with pytest.raises(Problem, match="could not be drawn within"):
            await pictures.drawn(b"", within=0.01)
        await second.acquire()
        left = asyncio.create_task(pictures.drawn(b"", within=60.0))
        await second.acquire()
        left.cancel()
        await asyncio.gather(left, return_exceptions=True)
        assert all(it.returncode is not None for it in begun)

    asyncio.run(play())


def test_f_34_a_drawing_that_fails_is_a_bug_and_says_nothing_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begin = asyncio.create_subprocess_exec

    async def failing(*_: str, **pipes: Any) -> Process:
        return await begin(sys.executable, "-S", "-c", "raise SystemExit('secret')", **pipes)

    async def play() -> None:
        monkeypatch.setattr(asyncio, "create_subprocess_exec", failing)
        async with facing(opened_turn()) as it:
            answer = await it.client().get(f"{RUNS}/timeline.svg")
            assert (answer.status_code, answer.json()["title"]) == (500, "internal_error")
            assert "secret" not in answer.text

    asyncio.run(play())


def test_f_34_the_machines_pictures_are_shipped_and_never_drawn(counted: list[bytes]) -> None:
    """Those of the documentation, which the gate compares with what would be drawn."""

    async def play() -> None:
        async with facing() as it:
            for machine in ("invocation", "turn", "status"):
                answer = await it.client().get(f"/v1/pictures/{machine}.svg")
                assert answer.content == shipped(machine, Theme.LIGHT)
                dark = await it.client().get(f"/v1/pictures/{machine}.svg?theme=dark")
                assert dark.content == shipped(machine, Theme.DARK) != answer.content
                docs = Path(__file__).parents[2] / "docs" / "pictures" / f"{machine}.svg"
                assert answer.content == docs.read_bytes()
            assert not counted

    asyncio.run(play())
