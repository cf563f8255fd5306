"""The player of transcripts: it plays what was recorded, and lets nothing else pass."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

import pytest

from .played import TRANSCRIPTS, logged, player, transcript, written
from .player import BESIDE, WRONG, entries_of

DEEP = os.environ.get("TURNLOCK_DEPTH", "gate") != "gate"
GATE = [
    "02_cmd_accept_v0104",
    "04_cmd_cancel",
    "07_interrupt_pending",
    "11_kill_pending_resume",
    "17_dynamic_tool",
    "21_steer",
    "24_accept_for_session",
    "26_unknown_tool",
    "31_sigterm_pending",
    "40_two_threads",
]
NAMES = sorted(path.name.removesuffix(".jsonl.gz") for path in TRANSCRIPTS.glob("*.jsonl.gz"))

Line: TypeAlias = dict[str, Any]


class Client:
    """A client that says what it is told to, line by line."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._part = b""
        pipes = (process.stdin, process.stdout, process.stderr)
        self._in, self._out, self._err = (cast("IO[bytes]", pipe) for pipe in pipes)

    def say(self, message: Line) -> None:
        self._in.write(json.dumps(message).encode() + b"\n")

    def hear(self) -> Line:
        while b"\n" not in self._part:
            data = self._out.read(1 << 16)
            assert data, (self._part, self.ended())
            self._part += data
        line, _, self._part = self._part.partition(b"\n")
        told: Line = json.loads(line)
        return told

    def rest(self) -> bytes:
        said = self._part
        while data := self._out.read(1 << 16):
            said += data
        return said

    def close(self) -> None:
        self._in.close()

    def ended(self) -> tuple[int, str]:
        """Close its input, and return its status and what it wrote to standard error."""
        self.close()
        said = b""
        while data := self._err.read(1 << 16):
            said += data
        return self.process.wait(30), said.decode()


@contextmanager
def playing(name: str | Path, proc: int | str = 0, *options: str) -> Generator[Client]:
    """Start a player, and end it afterwards."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        player(name, proc, *options), stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0
    ) as process:
        late = threading.Timer(3, process.kill)
        late.start()
        try:
            yield Client(process)
        finally:
            late.cancel()
            process.kill()


def ids_left_out(entries: list[Line]) -> set[object]:
    """The requests that our client does not make: beside, and those that were refused."""
    refused = {it["msg"]["id"] for it in entries if it["dir"] == "s2c" and "error" in it["msg"]}
    return {
        it["msg"].get("id")
        for it in entries
        if it["dir"] == "c2s" and "method" in it["msg"] and "id" in it["msg"]
        if it["msg"]["method"] in BESIDE or it["msg"]["id"] in refused
    }


def play_through(client: Client, entries: list[Line]) -> int:
    """Say what the recorded client said, as ours would; return how many messages were heard."""
    left_out, asked, heard = ids_left_out(entries), set[str](), 0
    for entry in entries:
        message = entry["msg"]
        ours = renamed(entry, left_out) if entry["dir"] in {"c2s", "s2c"} else None
        if entry["dir"] == "meta" and message["event"] == "stdin_closed":
            client.close()
        elif ours is not None and entry["dir"] == "s2c":
            assert client.hear() == ours
            heard += 1
            if "method" in message and "id" in message:
                asked.add(json.dumps(message["id"]))
        elif ours is not None and "method" in message:
            client.say(ours)
        elif ours is not None and (request := json.dumps(message["id"])) in asked:
            asked.remove(request)
            answer(client, message)
    return heard


def renamed(entry: Line, left_out: set[object]) -> Line | None:
    """Give requests of ours, and their answers, ids of ours; None for those we do not make."""
    message: Line = entry["msg"]
    is_ours = "id" in message and ("method" in message) == (entry["dir"] == "c2s")
    if not is_ours:
        return message
    return None if message["id"] in left_out else {**message, "id": f"our {message['id']}"}


def answer(client: Client, recorded: Line) -> None:
    """Answer as we would: nothing that codex would remember, and no `cancel` (S-35)."""
    result: Line = recorded.get("result") or {}
    decision = result.get("decision")
    if decision == "cancel":
        client.say({"method": "turn/interrupt", "id": "stop", "params": {}})
        assert client.hear() == {"id": "stop", "result": {}}
    elif decision in (None, "accept", "decline"):
        client.say(recorded)
    else:
        client.say({"id": recorded["id"], "result": {"decision": "accept"}})


@pytest.mark.parametrize("name", NAMES if DEEP else GATE)
def test_a_client_of_our_kind_hears_what_was_recorded(name: str) -> None:
    """Every process of it: each message, in order, with our ids; it ends as it ended."""
    numbers = {int(it["proc"]) for it in _all_of(name) if "proc" in it}
    for number in sorted(numbers):
        entries = entries_of(transcript(name), number)
        with playing(name, number, "--whole") as client:
            assert play_through(client, entries) > 5
            status, said = client.ended()
        metas = [it["msg"] for it in entries if it["dir"] == "meta"]
        ends = [it["returncode"] for it in metas if it["event"] == "stdout_eof"]
        assert status == ends[-1], said
        assert "player:" not in said


def _all_of(name: str) -> list[Line]:
    import gzip  # noqa: PLC0415

    with gzip.open(transcript(name), "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


ASK: Line = {"id": 0, "method": "ask", "params": {}}
STORY: tuple[tuple[str, Line], ...] = (
    ("c2s", {"id": 1, "method": "start", "params": {"threadId": "t"}}),
    ("s2c", {"id": 1, "result": {"thread": "t"}}),
    ("s2c", ASK),
    ("s2c", {**ASK, "id": "0"}),
    ("c2s", {"id": 0, "result": {"decision": "accept"}}),
    ("c2s", {"id": "0", "result": {"decision": "decline"}}),
    ("s2c", {"method": "done"}),
    ("meta", {"event": "stdin_closed"}),
    ("meta", {"event": "stdout_eof", "returncode": 5}),
)
START: Line = {"id": "a", "method": "start", "params": {"threadId": "t", "more": 1}}
YES: Line = {"id": 0, "result": {"decision": "accept"}}
NO: Line = {"id": "0", "result": {"decision": "decline"}}


@pytest.fixture
def story(tmp_path: Path) -> Path:
    return written(tmp_path / "story.jsonl", *STORY)


@pytest.mark.parametrize("answers", [(YES, NO), (NO, YES)])
def test_answers_may_come_in_any_order(story: Path, answers: tuple[Line, Line]) -> None:
    """And ids are compared as JSON has them: `0` is not `"0"` (S-34)."""
    with playing(story, 0, "--whole") as client:
        client.say(START)
        assert client.hear() == {"id": "a", "result": {"thread": "t"}}
        assert [client.hear(), client.hear()] == [ASK, {**ASK, "id": "0"}]
        for answer in answers:
            client.say(answer)
        assert client.hear() == {"method": "done"}
        assert client.ended() == (5, "")


ANYTHING_ELSE: list[tuple[list[Any], str]] = [
    ([{**START, "method": "begin"}], "begin, which is not waited for"),
    ([{**START, "params": {"threadId": "u"}}], "start, which is not waited for"),
    ([START, START], "start, which is not waited for"),
    ([START, {**YES, "id": 7}], "an answer to request 7, which was never made"),
    ([START, {**NO, "id": 0}], "an answer to request 0 that says 'decline', where 'accept'"),
    ([START, YES, YES], "a second answer to request 0"),
    ([START, {"id": 0}], "neither a request nor an answer"),
    ([START, {"id": 0, "error": {}}], "an answer to request 0 that is an error"),
    ([{"method": 3}], "a message without a method"),
    (["nothing"], "a line that is no message"),
]


@pytest.mark.parametrize(("said", "what"), ANYTHING_ELSE)
def test_anything_else_is_told_and_ends_it(story: Path, said: list[Any], what: str) -> None:
    """Each with status 3 and the place: the player is what proves what our side says."""
    with playing(story) as client:
        for number, message in enumerate(said):
            client.say(message)
            if message is START and number == 0:
                assert len([client.hear() for _ in range(3)]) == 3
        client.rest()
        status, told = client.ended()
    assert status == WRONG
    assert told.startswith("player: at seq ")
    assert what in told


def test_a_closed_input_is_an_end_and_a_fault_where_all_is_asked_for(story: Path) -> None:
    """As codex ends when its input is closed; but a test of the whole wants the whole."""
    for options, expected in (((), 0), (("--whole",), WRONG)):
        with playing(story, 0, *options) as client:
            client.say(START)
            client.hear()
            status, told = client.ended()
        assert status == expected
        assert ("its input was closed" in told) == bool(options)


def test_faults_happen_where_they_are_asked_for(story: Path, tmp_path: Path) -> None:
    """Lost, doubled, swapped, garbage, half a line and dead; all of it stands in the log."""
    log = tmp_path / "log"
    with playing(story, 0, "--drop", "3", "--double", "4", "--log", str(log)) as client:
        client.say(START)
        client.hear()
        assert client.hear() == client.hear() == {**ASK, "id": "0"}
    said = [it["seq"] for it in logged(log) if it["event"] == "said"]
    assert said == [2, 4, 4]
    with playing(story, 0, "--swap", "3", "--garbage-after", "3") as client:
        client.say(START)
        client.hear()
        assert [client.hear()["id"], client.hear()["id"]] == ["0", 0]
        with pytest.raises(ValueError, match="Expecting"):
            client.hear()
    with playing(story, 0, "--half-line-after", "2") as client:
        client.say(START)
        client.hear()
        assert client.rest() == b'{"method":"turn/compl'
        assert client.ended()[0] == -signal.SIGKILL
    with playing(story, 0, "--die-after", "1") as client:
        client.say(START)
        assert client.rest() == b""
    with playing(story, 0, "--never-answer", "start") as client:
        client.say(START)
        assert client.hear() == ASK
    with playing(story, 0, "--refuse", "start") as client:
        client.say(START)
        assert client.hear()["error"]["code"] == -32600


def test_it_waits_where_it_is_told_to_and_calls_the_hook(story: Path, tmp_path: Path) -> None:
    """What a test waits for needs no sleep; what it has to see at an answer is seen before."""
    gate, hooks, seen = tmp_path / "gate", tmp_path / "hooks.py", tmp_path / "seen"
    hooks.write_text(f"def answered(it):\n    open({str(seen)!r}, 'a').write(str(it['id']))\n")
    with playing(story, 0, "--wait-after", f"2:{gate}", "--hooks", str(hooks)) as client:
        client.say(START)
        client.hear()
        gate.touch()
        client.hear()
        client.hear()
        client.say(YES)
        client.say(NO)
        assert client.hear() == {"method": "done"}
    assert seen.read_text() == "00"


def test_the_next_process_is_counted(tmp_path: Path) -> None:
    """A server that starts one after the other plays them in their order."""
    count = tmp_path / "count"
    for number in range(2):
        with playing("11_kill_pending_resume", "next", "--count", str(count)) as client:
            client.say({"id": 1, "method": "initialize"})
            client.hear()
            client.say({"id": 2, "method": "thread/read", "params": {}})
            assert ("result" in client.hear()) == (number == 1)
