"""Recordings that are wrong: each fault is told with place, cause and fix, the rest is served."""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path

import pytest

from turnlock.verification.replay import lines as corpus
from turnlock.verification.replay.lines import Problems
from turnlock.verification.replay.recording import read_recording

from .recordings import answer, batch, call, lines, replayed, turnlock, write

GOOD = lines(batch())


def told(folder: Path, content: bytes) -> list[str]:
    """What is told of a recording: the problems, without the file's path."""
    problems = Problems()
    file = write(folder, content)
    read_recording(file, problems)
    return [line.removeprefix(f"{file}:") for line in problems.lines()]


WRONG_LINES = [
    (lines(batch(turn="1")), "turn: '1' is not a whole number; give a whole number"),
    (lines(batch(turn=True)), "turn: True is not a whole number"),
    (lines(batch(turn=1.0)), "turn: 1.0 is not a whole number"),
    (lines(batch(conv="")), "conv: is empty; give a non-empty text"),
    (lines(batch(conv=None)), "conv: None is no text; give a text"),
    (lines(batch(source=7)), "source: 7 is no text"),
    (lines(batch(streaming="yes")), "streaming: 'yes' is not true or false"),
    (lines(batch(calls={})), "calls: {} is not a list"),
    (lines(batch(results=None)), "results: None is not a list"),
    (lines(batch(calls=[3])), "calls[0]: 3 is not an object {id, name, args}"),
    (lines(batch(calls=[call(), call(name="")])), "calls[1].name: is empty"),
    (lines(batch(calls=[{**call(), "id": 3}])), "calls[0].id: 3 is no text"),
    (
        lines(batch(calls=[{**call(), "args": {}}])),
        "calls[0].args: {} is no text; give the arguments as JSON text",
    ),
    (lines(batch(calls=[{"id": "a", "name": "look"}])), "calls[0].args: is missing; give the"),
    (lines(batch(results=["x"])), "results[0]: 'x' is not an object {id, status, content}"),
    (
        lines(batch(results=[answer(status="good")])),
        "results[0].status: 'good' is not one of ok, error, denied; give one of",
    ),
    (lines(batch(results=[{**answer(), "content": None}])), "results[0].content: None is no text"),
    (b"{}\n", "conv: is missing"),
    (b'{"conv": "talk"}\n', "turn: is missing; give the number of the batch"),
    (b'{"conv": "talk", "turn": 1}\n', "calls: is missing; give a list, [] if there are none"),
    (b"[]\n", "[] is not a JSON object, one batch a line; give a JSON object"),
    (b"nonsense\n", "column 1: is no JSON (Expecting value); send one valid JSON value"),
    (b'{"turn": NaN}\n', "NaN is no JSON number; send a finite number or null"),
    (b'{"turn": -Infinity}\n', "-Infinity is no JSON number"),
    (b'{"conv": "one", "conv": "two"}\n', "conv: the key 'conv' stands twice; send each key once"),
    (
        lines(batch(results=[answer(content="\ud800")])),
        "results[0].content: holds a lone surrogate at character 0; replace it",
    ),
    (lines(batch(conv="\udfff")), "conv: holds a lone surrogate"),
    (b"[" * 200_000 + b"\n", "is nested too deeply; send it flatter"),
    (b'{"turn": ' + b"9" * 5_000 + b"}\n", "turn: is an integer of 5000 digits; send it as text"),
    (b"\xff\xfe\n", "is no UTF-8 (byte 0xff); encode the text as UTF-8"),
]


@pytest.mark.parametrize(("wrong", "fault"), WRONG_LINES, ids=[fault for _, fault in WRONG_LINES])
def test_a_wrong_line_is_told_and_the_rest_is_served(
    tmp_path: Path, wrong: bytes, fault: str
) -> None:
    """The fault names file, line, field, cause and fix; the status is 1, not 2."""
    file = write(tmp_path, GOOD + wrong + lines(batch(turn=1)))

    result = turnlock("replay", file)

    problem = next(line for line in result.output.splitlines() if line.startswith(f"{file}:2: "))
    assert fault in problem
    assert "; " in problem
    assert re.search("turns settled +2 of 2", result.output)
    assert result.output.endswith("FAILED 1 problem with the input\n")
    assert result.exit_code == 1


@pytest.mark.parametrize("wrong", [wrong for wrong, _ in WRONG_LINES], ids=lambda _: "")
def test_a_file_of_wrong_lines_alone_is_status_2(tmp_path: Path, wrong: bytes) -> None:
    """Where not one batch could be read, nothing was replayed."""
    result = turnlock("replay", write(tmp_path, wrong))

    assert result.exit_code == 2
    assert "talk.jsonl:1: " in result.output


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (b"", "holds no batch; give a recording"),
        (b"\n  \n\n", "holds no batch; give a recording"),
        (bytes(range(256)) * 50, "is no"),
        (os.urandom(50_000), "talk.jsonl:"),
        ('{"conv": "talk"}'.encode("utf-16"), "is no UTF-8"),
        (b"\x1f\x8b", "the gzip data break off or are damaged here"),
        (b"\x1f\x8b" + bytes(100), "the gzip data break off or are damaged here"),
    ],
    ids=["empty", "blank", "every-byte", "garbage", "utf-16", "gzip-magic", "no-gzip"],
)
def test_what_is_no_recording_is_status_2(tmp_path: Path, content: bytes, cause: str) -> None:
    result = turnlock("replay", write(tmp_path, content))

    assert result.exit_code == 2
    assert cause in result.output
    assert result.output.splitlines()[-1].startswith("FAILED ")


def test_what_cannot_be_opened_is_told_by_name(tmp_path: Path) -> None:
    """A missing file and a folder; what can be read beside them is served."""
    missing = str(tmp_path / "missing.jsonl")

    result = turnlock("replay", missing, str(tmp_path))
    assert f"{missing}: cannot be read (No such file or directory); give the path" in result.output
    assert f"{tmp_path}: cannot be read (Is a directory)" in result.output
    assert result.exit_code == 2

    result = turnlock("replay", missing, write(tmp_path, GOOD))
    assert result.exit_code == 1


def test_gzip_is_known_by_its_first_bytes_not_by_its_name(tmp_path: Path) -> None:
    assert replayed(write(tmp_path, gzip.compress(GOOD), "packed.jsonl"))["turns_settled"] == 1
    assert replayed(write(tmp_path, GOOD, "plain.jsonl.gz"))["turns_settled"] == 1
    assert replayed("-", stdin=gzip.compress(GOOD))["turns_settled"] == 1
    assert replayed("-", stdin=GOOD)["turns_settled"] == 1
    assert replayed(write(tmp_path, b"\xef\xbb\xbf" + GOOD, "bom"))["turns_settled"] == 1


def test_standard_input_is_read_once() -> None:
    result = turnlock("replay", "-", "-", stdin=GOOD)

    assert result.exit_code == 2
    assert "standard input (-) can be read once; give - once" in result.output


def test_a_truncated_gzip_is_served_as_far_as_it_goes(tmp_path: Path) -> None:
    """What was read before the break counts; the problem names the line that was reached."""
    batches = [batch(turn=turn, noise=os.urandom(100).hex()) for turn in range(2_000)]
    whole = gzip.compress(lines(*batches))
    file = write(tmp_path, whole[: len(whole) // 2])

    served = replayed(file)

    assert 500 < served["turns_settled"] < 1_900
    (problem,) = served["problems"]
    assert problem.startswith(f"{file}:{served['turns_settled'] + 1}: the gzip data break off")
    assert "the lines before were read" in problem


def test_a_line_of_ten_megabytes_is_served(tmp_path: Path) -> None:
    file = write(tmp_path, lines(batch(results=[answer(content="x" * 10_000_000)]), batch(turn=1)))

    assert replayed(file)["turns_settled"] == 2


def test_a_line_beyond_the_bound_is_told_and_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus, "LINE_LIMIT", 200)
    long = lines(batch(results=[answer(content="x" * 1_000)]))

    assert told(tmp_path, GOOD + long + GOOD) == [
        "2: is longer than 200 bytes; end each batch with a line feed"
    ]


def test_many_problems_are_counted_and_the_first_told(tmp_path: Path) -> None:
    problems = told(tmp_path, b"nonsense\n" * 50)

    assert len(problems) == 21
    assert problems[-1] == "… and 30 more problems with the input"
