"""``turnlock world follow``: a chat as people read it, and as a client does, with cursors."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnlock import Decide, Resolution, Resolve
from turnlock.cli.places import Place
from turnlock.cli.world_lines import ChatLines, as_line
from turnlock.runtime import SqliteJournal
from turnlock.world.names import request_id

from .sessions import TIMEOUT
from .test_world_decide import ALICE, DIGITS, MEMBER, PAY, asked
from .test_world_make import refused, told
from .waiting import call, deliver, done, doubted, opened

REQUEST = request_id(ALICE, "t1", "c1")


@pytest.fixture
def db(tmp_path: Path) -> str:
    """A chat in which alice was asked for a payment, which waits."""
    db = str(tmp_path / "w.db")
    told("new", "demo", db=db)
    told("agent", "put", "demo", "alice", "--model", "file:m", db=db)
    told("chat", "demo", "plan", db=db)
    told("say", "demo", "plan", "@alice pay\x1b[2J\nplease", "--id", "a", db=db)
    deliver(db, opened("t1", PAY), run=MEMBER)
    return db


def followed(db: str, *options: str) -> list[str]:
    return told("follow", "demo", "plan", "--no-wait", *options, db=db).splitlines()


def events(db: str, *options: str) -> list[dict[str, Any]]:
    """What it prints as JSON, but for what says that all of before is told, which is the last."""
    *told, live = [json.loads(line) for line in followed(db, "--json", *options)]
    assert live["type"] == "live"
    return told


def test_a_chat_is_told_with_the_commands_that_answer_what_waits(db: str) -> None:
    """Which then work as they stand; and what was answered is not told to wait."""
    lines = followed(db)
    assert lines[:4] == [
        "    1  human: @alice pay\\x1b[2J",
        "       please",
        '    ?  alice asks for approval: pay {"amount":5,"to":"Ada"}',
        "    ?  waits for you: pay of alice",
    ]
    approve, deny = lines[4:]
    assert deny.strip().startswith("turnlock world deny request/")
    words = approve.split()
    assert words[:3] == ["turnlock", "world", "approve"]
    told("approve", *words[3:-2], "--as", "me", db=db)
    deliver(db, *done("t1", "c1")[:-1], run=MEMBER)

    assert followed(db)[3:] == [
        "    +  me approves pay of alice",
        '    ✓  pay of alice: "done"',
    ]


def test_other_ends_and_doubts_are_told(db: str) -> None:
    deliver(
        db,
        Decide(turn_id="t1", invocation_id="c1", approved=False, decided_by="me", reason="no"),
        opened("t2", call("c2", "look", gated=False)),
        *doubted("t2", "c2"),
        run=MEMBER,
    )
    lines = followed(db)
    assert lines[3:7] == [
        "    -  me denies pay of alice: no",
        "    ✗  pay of alice was denied: no",
        "    ~  alice does not know whether this happened: look {}",
        "    ?  waits for you: look of alice",
    ]
    (resolve,) = lines[7:]
    assert resolve.strip().startswith(f"turnlock resolve {ALICE} c2 --turn t2 --attempt 1 --db")
    assert resolve.endswith("  # with --retry, --result JSON, --error TEXT")
    settle = Resolve(
        turn_id="t2", invocation_id="c2", attempt=1, resolution=Resolution.ERROR, error="lost"
    )
    deliver(db, settle, run=MEMBER)
    assert followed(db)[6:] == ["    ✗  look of alice failed: lost"]


def test_questions_and_replies_are_told(db: str) -> None:
    question = asked(db, text="Which\u202e city?")
    lines = followed(db)
    assert "    2  hotel asks, for alice: Which\\u202e city?" in lines
    line = lines[lines.index("    ?  waits for you: hotel, for alice") + 1]
    assert line.strip().startswith(f"turnlock world reply {question} --db")
    assert '--accept \'{"city": …, "nights": …}\', or --decline' in line
    told_late = refused("reply", question, "--decline", "--as", "me", db=db, status=1)
    assert "too late" in told_late
    assert "    3  me replies: decline (too late)" in followed(db)


def test_w_71_json_goes_on_exactly_behind_each_cursor(db: str) -> None:
    """Each event once, whichever cursor it is gone on from."""
    told("approve", REQUEST, "--digest", DIGITS, db=db)
    told("say", "demo", "plan", "and?", db=db)
    whole = events(db)
    assert [it["type"] for it in whole] == ["entry", "projection", "projection", "entry"]
    for place, event in enumerate(whole, start=1):
        assert events(db, "--after", event["cursor"]) == whole[place:]
    for wrong in ("x", "99", "1;alice:99", "1;alice:2;alice:2", "\x1b", "1;bob"):
        refused("follow", "demo", "plan", "--no-wait", "--after", wrong, db=db)
    refused("follow", "demo", "none", "--no-wait", db=db)


def test_it_goes_on_with_what_other_processes_do_until_it_is_stopped(db: str) -> None:
    """Live, from another terminal; Ctrl-C ends it with 0."""
    with following(db) as lines:
        read = iter(lines)
        until(read, "waits for you")
        told("approve", REQUEST, "--digest", DIGITS, "--as", "me", db=db)
        until(read, "me approves pay of alice")
        told("say", "demo", "plan", "and?", db=db)
        until(read, "2  human: and?")


class following:  # noqa: N801 - read as what it does
    """A `turnlock world follow` of its own, and its lines."""

    def __init__(self, db: str) -> None:
        program = [sys.executable, "-m", "turnlock", "world", "follow", "demo", "plan", "--db", db]
        self._process = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Iterator[str]:
        assert self._process.stdout is not None
        return iter(self._process.stdout)

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGINT)
        assert self._process.stdout is not None
        self._process.stdout.read()
        self._process.stdout.close()
        assert self._process.wait(TIMEOUT) == 0


def until(lines: Iterator[str], wanted: str) -> None:
    deadline = time.monotonic() + TIMEOUT
    for line in lines:
        if wanted in line:
            return
        assert time.monotonic() < deadline, wanted
    raise AssertionError(wanted)


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "later"},
        {"kind": "message"},
        {"kind": "question", "run": 1, "schema": {"properties": []}},
        {"kind": "reply", "to": [1], "content": {"x": "\x1b"}},
        [1],
        "text",
        None,
    ],
)
def test_entries_of_other_versions_are_told(db: str, body: Any) -> None:
    """Whatever stands there: a line, harmless."""

    async def work() -> None:
        async with await SqliteJournal.open(Path(db)) as journal:
            await journal.append_entry("demo/plan", "x", body, at=1.0)

    asyncio.run(work())
    lines = followed(db)
    assert any(line.startswith("    2  ") for line in lines)
    assert "".join(lines).isprintable()
    assert events(db)[-1]["type"] in {"entry", "projection"}


def speech(*events: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    told = ChatLines(lines.append, place=Place(db="a.db"), stream=True)
    for event in events:
        told.take({"type": "transient", "entry_id": f"{ALICE}/said/2", **event}, chat="plan")
    return lines


def test_what_is_said_just_now_is_told_line_by_line() -> None:
    """What a try before had said is said to be void; nothing is told twice."""
    lines = speech(
        {"kind": "start", "agent": ALICE, "try": 1},
        {"kind": "chunk", "text": "one\ntw\x1b"},
        {"kind": "chunk", "thought": "hm"},
        {"kind": "error", "message": "cut"},
        {"kind": "start", "agent": ALICE, "try": 2},
        {"kind": "chunk", "text": "three"},
        {"kind": "end", "stop": "done", "tokens": {}},
    )
    assert [line.partition("┆ ")[2].removesuffix("\x1b[0m") for line in lines] == [
        "one",
        "tw\\x1b",
        "(no answer: cut)",
        "(asked again, try 2: what came before is void)",
        "three",
    ]


@given(texts=st.lists(st.text(max_size=20), max_size=10))
@settings(max_examples=50)
def test_all_that_is_said_is_told_once(texts: list[str]) -> None:
    """However it is cut into pieces."""
    chunks = [{"kind": "chunk", "text": text} for text in texts]
    lines = speech({"kind": "start", "try": 1}, *chunks, {"kind": "end"})
    whole = "".join(texts)
    assert len(lines) == (whole.count("\n") + bool(whole.rpartition("\n")[2]) if whole else 0)


@given(st.recursive(st.text() | st.integers() | st.none(), lambda it: st.lists(it, max_size=3)))
@settings(max_examples=50)
def test_a_line_of_json_is_one_line_that_moves_nothing(value: Any) -> None:
    line = as_line({"type": "entry", "body": value})
    assert line.isascii()
    assert line.isprintable()
