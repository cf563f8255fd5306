"""`turnlock stdio`: every line is answered, whatever it holds, and the next one is served."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock.models.deliveries import DELIVERIES
from turnlock.models.record import fields_of
from turnlock.models.values import DEPTH
from turnlock.wire import scripts, stdio
from turnlock.wire.known_parts import RequestReader
from turnlock.wire.stdio import MAX_LINE, serve

from ..models.test_codec import raw_of, wire_name, wrong_for

ROOT = Path(__file__).parents[2]
GOOD = b'{"id":"next","run":{"run_id":"r"},"scripts":[[{"type":"tick","now":0}]]}'
GOOD_ANSWER: dict[str, Any] = {
    "id": "next",
    "scripts": [[{"accepted": True, "facts": [], "effects": []}]],
}


def served(*lines: bytes) -> list[dict[str, Any]]:
    """The answers to lines, each of which must be one line of JSON."""
    sink = io.BytesIO()
    serve(io.BytesIO(b"\n".join(lines)), sink)
    told = sink.getvalue()
    assert told.endswith(b"\n") or not told
    return [json.loads(line) for line in told.splitlines()]


def error(line: bytes) -> tuple[Any, str, str]:
    """The id, code and path of the error that a line is answered with, while the next is served."""
    told, after = served(line, GOOD)
    assert after == GOOD_ANSWER
    assert told.keys() == {"id", "error"}
    assert told["error"].keys() == {"code", "message", "at"}
    assert told["error"]["message"]
    return told["id"], told["error"]["code"], told["error"]["at"]


# ---------------------------------------------------------------------------------- the stream


def test_one_answer_a_line_in_order() -> None:
    requests = [
        json.dumps({"id": n, "run": {"run_id": "r"}, "scripts": []}).encode() for n in range(5)
    ]

    assert served(*requests) == [{"id": n, "scripts": []} for n in range(5)]


def test_no_input_no_output() -> None:
    assert served() == []


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b" \t\r\n"])
def test_the_last_line_may_end_or_not(end: bytes) -> None:
    assert served(GOOD, GOOD + end)[:2] == [GOOD_ANSWER, GOOD_ANSWER]
    assert len(served(GOOD + end)) == 1


def test_carriage_returns_are_space() -> None:
    assert served(GOOD + b"\r", GOOD + b"\r") == [GOOD_ANSWER, GOOD_ANSWER]


@pytest.mark.parametrize(("blank", "column"), [(b"", 1), (b"\r", 1), (b"   ", 4)])
def test_a_blank_line_is_answered_too(blank: bytes, column: int) -> None:
    """One answer a line: a client that counts must not fall behind."""
    assert error(blank) == (None, "invalid_json", f"line 1 column {column}")


def test_an_answer_is_flushed_before_the_next_line_is_read() -> None:
    events: list[str] = []

    class Source(io.BytesIO):
        def readline(self, size: int | None = -1, /) -> bytes:
            events.append("read")
            return super().readline(size)

    class Sink(io.BytesIO):
        def flush(self) -> None:
            events.append("flush")

    serve(Source(GOOD + b"\n" + GOOD), Sink())

    assert events == ["read", "flush", "read", "flush", "read"]


def stdio_process(given_input: bytes, *options: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, *options, "-m", "turnlock", "stdio"],
        input=given_input,
        capture_output=True,
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        cwd=ROOT / "tests",
    )


def test_the_process_answers_and_ends_with_0() -> None:
    """Nothing else on stdout; whatever the lines held, end of input is a good end."""
    done = stdio_process(GOOD + b"\n\xff\n[\n" + GOOD, "-W", "error")
    told = [json.loads(line) for line in done.stdout.splitlines()]

    assert done.returncode == 0
    assert done.stderr == b""
    assert [told[0], told[3]] == [GOOD_ANSWER, GOOD_ANSWER]
    assert [one["error"]["at"] for one in told[1:3]] == ["line 1 column 1", "line 1 column 2"]


def test_the_process_ends_with_0_without_any_input() -> None:
    done = stdio_process(b"")

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


# --------------------------------------------------------------------------- lines that are no JSON

DEEP = b'{"id":1,"run":' + b"[" * 100_000


@pytest.mark.parametrize(
    ("line", "at"),
    [
        (b"hello", "line 1 column 1"),
        (b'{"id":1,', "line 1 column 9"),
        (GOOD + GOOD, f"line 1 column {len(GOOD) + 1}"),
        (b'{"id":1,"run":NaN}', "line 1 column 15"),
        (b'{"id":1,"run":{"run_id":"r"},"scripts":[[{"type":"tick","now":-Infinity}]]}',
         "line 1 column 63"),
        (DEEP, f"line 1 column {14 + DEPTH}"),
        (DEEP + b"]" * 100_000 + b"}", f"line 1 column {14 + DEPTH}"),
        (b'{"a":' * 100_000, f"line 1 column {1 + 5 * DEPTH}"),
        (b"\xff\xfe\x00", "line 1 column 1"),
        (bytes(range(256)).replace(b"\n", b""), "line 1 column 128"),
        (b'{"id":"\xc3\xa9\xe9"}', "line 1 column 9"),
        (b"\x00", "line 1 column 1"),
        (b"\xef\xbb\xbf" + GOOD, "line 1 column 1"),
        (b'{"id":"a\tb"}', "line 1 column 9"),
        (b"x" * 10_000_000, "line 1 column 1"),
        (b'{"id":"' + b"x" * 10_000_000, "line 1 column 7"),
    ],
    ids=range(16),
)  # fmt: skip
def test_what_is_no_json_is_answered_with_line_and_column(line: bytes, at: str) -> None:
    request_id, code, told = error(line)

    assert request_id is None
    assert code == "invalid_json"
    assert told == at


@given(st.lists(st.binary(max_size=30).map(lambda raw: raw.replace(b"\n", b" ")), max_size=5))
def test_garbage_is_answered_line_by_line(lines: list[bytes]) -> None:
    answers = served(*lines, GOOD)

    assert len(answers) == len(lines) + 1
    assert answers[-1] == GOOD_ANSWER


@pytest.mark.parametrize("line", [b"[]", b"5", b"null", b'"x"', b"true"])
def test_a_request_is_an_object(line: bytes) -> None:
    assert error(line) == (None, "invalid_request", "line 1 column 1")


def test_a_long_line_is_a_line() -> None:
    """10 MB of arguments in one text, a name of 1 MB, many values: more than any reader buffers."""
    call: dict[str, Any] = {"invocation_id": "a", "tool_name": "t", "requires_approval": False}
    step: dict[str, Any] = {"type": "open_turn", "now": 0, "turn_id": "T"}
    for arguments in ({"x": "y" * 10_000_000}, {"x" * 1_000_000: [0] * 300_000}):
        opening = {**step, "calls": [{**call, "arguments": arguments}]}
        line = json.dumps({"id": 1, "run": {"run_id": "r"}, "scripts": [[opening]]}).encode()
        told, after = served(line, GOOD)
        assert told["scripts"][0][0]["effects"][0]["arguments"] == arguments
        assert after == GOOD_ANSWER


# --------------------------------------------------------------------------------- the longest line


def test_the_bound_of_a_line_has_a_name() -> None:
    assert MAX_LINE == 64 * 1024 * 1024


@pytest.mark.parametrize("end", [b"\n", b""])
@pytest.mark.parametrize("beyond", [1, 2, 300, 1_000])
def test_a_line_beyond_the_bound_is_refused_and_skipped(
    monkeypatch: pytest.MonkeyPatch, beyond: int, end: bytes
) -> None:
    """And what follows it is not taken for the rest of it."""
    monkeypatch.setattr(stdio, "MAX_LINE", 100)
    sink = io.BytesIO()
    serve(io.BytesIO(b"[" * (100 + beyond) + end + (GOOD if end else b"")), sink)
    told = [json.loads(line) for line in sink.getvalue().splitlines()]

    assert told[0]["id"] is None
    assert told[0]["error"]["code"] == "line_too_long"
    assert told[0]["error"]["at"] == "line 1 column 101"
    assert "100 bytes" in told[0]["error"]["message"]
    assert told[1:] == ([GOOD_ANSWER] if end else [])


@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_line_of_just_the_bound_is_served(monkeypatch: pytest.MonkeyPatch, end: bytes) -> None:
    monkeypatch.setattr(stdio, "MAX_LINE", len(GOOD))

    assert served(GOOD + end) == [GOOD_ANSWER]


# ---------------------------------------------------------------------------------- fields, by path

RUN: dict[str, Any] = {"run_id": "r"}


def request(**changes: Any) -> bytes:
    """A request with some of its fields replaced; ABSENT ones are left out."""
    fields: dict[str, Any] = {"id": 1, "run": RUN, "scripts": [], **changes}
    return json.dumps({name: it for name, it in fields.items() if it is not ...}).encode()


def of_step(step: object, *before: object) -> bytes:
    return request(scripts=[[], [*before, step]])


TICK: dict[str, Any] = {"type": "tick", "now": 0}


NO_IDS: list[Any] = [True, [], {}, [1], "\ud800", 2**9000]
NO_TIMES: list[Any] = [None, "0", True, [], 10**400]


@pytest.mark.parametrize(
    ("line", "request_id", "at"),
    [
        *((request(id=it), None, "id") for it in NO_IDS),
        (b'{"id":1e999,"run":{"run_id":"r"},"scripts":[]}', None, "id"),
        (request(run=...), 1, "run"),
        (request(run=None), 1, "run"),
        (request(run=[]), 1, "run"),
        (request(run={}), 1, "run.run_id"),
        *((request(run={"run_id": it}), 1, "run.run_id") for it in ("", 5, None, "\udfff")),
        (request(run={**RUN, "agent_id": ""}), 1, "run.agent_id"),
        (request(run={**RUN, "agent_name": 5}), 1, "run.agent_name"),
        (request(run={**RUN, "colour": 1}), 1, "run.colour"),
        (request(run={**RUN, "colour": None}), 1, "run.colour"),
        (request(run={**RUN, "limits": []}), 1, "run.limits"),
        (request(run={**RUN, "limits": {"calls": -1}}), 1, "run.limits.calls"),
        (request(run={**RUN, "limits": {"grants": 1.0}}), 1, "run.limits.grants"),
        (request(run={**RUN, "limits": {"remember_for": -1}}), 1, "run.limits.remember_for"),
        (request(run={**RUN, "limits": {"turns": 1}}), 1, "run.limits.turns"),
        (request(scripts=...), 1, "scripts"),
        (request(scripts=None), 1, "scripts"),
        (request(scripts={}), 1, "scripts"),
        (request(scripts=[None]), 1, "scripts[0]"),
        (request(scripts=[[], {}]), 1, "scripts[1]"),
        (request(colour=1), 1, "colour"),
        (request(colour=None), 1, "colour"),
        (request(**{"\ud800": 1}), 1, "\\ud800"),
        (of_step(5), 1, "scripts[1][0]"),
        (of_step([], TICK, TICK), 1, "scripts[1][2]"),
        (of_step({}), 1, "scripts[1][0].type"),
        (of_step({"type": "nope", "now": 0}), 1, "scripts[1][0].type"),
        (of_step({"type": ["tick"], "now": 0}), 1, "scripts[1][0].type"),
        (of_step({"type": "TURN_SEALED", "now": 0}), 1, "scripts[1][0].type"),
        (of_step({"type": "tick"}), 1, "scripts[1][0].now"),
        *((of_step({"type": "tick", "now": it}), 1, "scripts[1][0].now") for it in NO_TIMES),
        (of_step({**TICK, "colour": 1}, TICK), 1, "scripts[1][1].colour"),
        (of_step({**TICK, "version": 1}), 1, "scripts[1][0].version"),
        (of_step({**TICK, "\udc80": 1}), 1, "scripts[1][0].\\udc80"),
        (of_step({"type": "recover", "at": 1}), 1, "scripts[1][0].at"),
        (of_step({"type": "digest", "turn_id": "T"}), 1, "scripts[1][0].turn_id"),
        (of_step({"type": "recover", "b": 1, "a": 1, "c": 1}), 1, "scripts[1][0].a"),
    ],
)
def test_a_fault_is_answered_at_its_path(line: bytes, request_id: Any, at: str) -> None:
    assert error(line) == (request_id, "invalid_value", at)


@pytest.mark.parametrize("kind", DELIVERIES)
def test_every_field_of_every_delivery_is_held_to_its_type(kind: Any) -> None:
    good = {**raw_of(kind), "now": 0}
    assert "scripts" in served(of_step(good))[0]

    for field in fields_of(kind):
        name = wire_name(field.name)
        for wrong in wrong_for(kind, field.name):
            line = of_step({**good, name: wrong}).replace(b"Infinity", b"1e999")
            assert error(line) == (1, "invalid_value", f"scripts[1][0].{name}")
    for extra in ("colour", "sequence"):
        assert error(of_step({**good, extra: 1}))[2] == f"scripts[1][0].{extra}"


CALL: dict[str, Any] = {
    "invocation_id": "a",
    "tool_name": "t",
    "arguments": {},
    "requires_approval": True,
}
NAMED: dict[str, Any] = {"turn_id": "T", "invocation_id": "a", "now": 0}


@pytest.mark.parametrize(
    ("step", "at"),
    [
        ({"type": "report", **NAMED}, "result"),
        ({"type": "report", **NAMED, "result": 1, "error": "x"}, "result"),
        ({"type": "report", **NAMED, "result": None, "error": "x"}, "result"),
        ({"type": "report", **NAMED, "error": ""}, "error"),
        ({"type": "claim", **NAMED, "attempt": 1, "lease": -1}, "lease"),
        ({"type": "renew", **NAMED, "lease": -0.1}, "lease"),
        ({"type": "interrupt", "turn_id": "T", "now": 0, "grace": -1}, "grace"),
        ({"type": "decide", **NAMED, "approved": True, "expires_in": -1}, "expires_in"),
        ({"type": "decide", **NAMED, "approved": False, "scope": "turn"}, "scope"),
        ({"type": "resolve", **NAMED, "attempt": 1, "as": "retry", "result": None}, "as"),
        ({"type": "resolve", **NAMED, "attempt": 1, "as": "result"}, "as"),
        ({"type": "resolve", **NAMED, "attempt": 1}, "as"),
        ({"type": "resolve", **NAMED, "attempt": 1, "resolution": "retry", "as": "retry"},
         "resolution"),
        ({"type": "open_turn", "turn_id": "T", "now": 0}, "calls"),
        ({"type": "open_turn", "turn_id": "T", "now": 0, "calls": {}}, "calls"),
        ({"type": "open_turn", "turn_id": "T", "now": 0, "calls": [CALL, CALL, 5]}, "calls[2]"),
        ({"type": "open_turn", "turn_id": "T", "now": 0, "calls": [{**CALL, "now": 0}]},
         "calls[0].now"),
        ({"type": "open_turn", "turn_id": "T", "now": 0,
          "calls": [CALL, {**CALL, "approval_timeout": -1}]}, "calls[1].approval_timeout"),
        ({"type": "open_turn", "turn_id": "T", "now": 0,
          "calls": [CALL, {**CALL, "arguments": {"x": [0, "\ud800"]}}]}, "calls[1].arguments.x[1]"),
        ({"type": "add_call", "turn_id": "T", "now": 0, "call": {**CALL, "arguments_digest": "0"}},
         "call.arguments_digest"),
    ],
)  # fmt: skip
def test_what_section_12_names_is_refused_at_its_path(step: dict[str, Any], at: str) -> None:
    assert error(of_step(step)) == (1, "invalid_value", f"scripts[1][0].{at}")


def test_a_request_is_judged_whole_before_any_of_it_runs() -> None:
    assert error(of_step({**TICK, "now": "x"}, TICK, TICK))[2] == "scripts[1][2].now"


# -------------------------------------------------------------- faults that the parser meets first


@pytest.mark.parametrize(
    ("line", "request_id", "at"),
    [
        (b'{"id":7,"run":{"run_id":"r","run_id":"r"},"scripts":[]}', 7, "run.run_id"),
        (
            b'{"id":"x","run":{"run_id":"r"},"scripts":[[],[{"type":"tick","now":0,"now":0}]]}',
            "x",
            "scripts[1][0].now",
        ),
        (b'{"id":7,"id":8,"run":{"run_id":"r"},"scripts":[]}', None, "id"),
        (b'{"id":7,"run":{"run_id":"r"},"run":{},"scripts":[]}', 7, "run"),
        (b'{"id":{"a":1,"a":2},"run":{"run_id":"r"},"scripts":[]}', None, "id.a"),
        (b'{"id":7,"run":{"run_id":' + b"9" * 5_000 + b'},"scripts":[]}', 7, "run.run_id"),
        (b'{"id":' + b"9" * 5_000 + b',"run":{"run_id":"r"},"scripts":[]}', None, "id"),
    ],
    ids=range(7),
)
def test_a_repeated_key_and_an_endless_number_are_answered_at_their_path(
    line: bytes, request_id: Any, at: str
) -> None:
    """With the id of the request where there was one."""
    assert error(line) == (request_id, "invalid_value", at)


def test_no_depth_of_nesting_is_a_failure_of_ours() -> None:
    """Where the parser can just follow, those who come after it must be able to, too."""
    for depth in (*range(DEPTH - 2, DEPTH + 3), *range(60, 1_100, 40)):
        for open_, close in ((b"[", b"]"), (b'{"a":', b"}")):
            value = open_ * depth + b"0" + close * depth
            for line in (
                b'{"id":1,"run":{"run_id":' + value + b'},"scripts":[]}',
                b'{"id":1,"run":{"run_id":"r"},"scripts":[[{"type":"report","invocation_id":"a",'
                b'"now":0,"result":' + value + b"}]]}",
                b'{"id":' + value + b"}",
            ):
                (told,) = served(line)
                if depth <= DEPTH and b"report" in line:
                    assert "scripts" in told
                else:
                    assert told["error"]["code"] in {"invalid_value", "invalid_json"}


# ------------------------------------------------------------------------------- our own mistakes


class Mistake(Exception):
    """A failure of ours, with a message that is nobody's business."""


def failing(*_: object, **__: object) -> Any:
    raise Mistake("secret")


def test_a_failure_of_the_kernel_costs_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """It names the request and the script, not what went wrong inside."""
    monkeypatch.setattr(scripts, "fingerprint", failing)
    told, after = served(request(id=7, scripts=[[TICK], [{"type": "digest"}]]), GOOD)

    assert told["id"] == 7
    assert told["error"]["code"] == "internal_error"
    assert told["error"]["at"] == "scripts[1]"
    assert "Mistake" in told["error"]["message"]
    assert "secret" not in told["error"]["message"]
    assert after == GOOD_ANSWER


@pytest.mark.parametrize("kind", [Mistake, RecursionError, MemoryError, KeyError])
def test_a_failure_of_the_reader_costs_one_answer(
    monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    real = RequestReader.read
    lines = iter([True, False])

    def once(reader: RequestReader, line: bytes) -> Any:
        if next(lines):
            raise kind
        return real(reader, line)

    monkeypatch.setattr(RequestReader, "read", once)
    told, after = served(GOOD, GOOD)

    assert told["id"] is None
    assert told["error"]["code"] == "internal_error"
    assert told["error"]["at"] == "line 1 column 1"
    assert kind.__name__ in told["error"]["message"]
    assert after == GOOD_ANSWER
