"""``turnlock codex play``: what a transcript comes to, told, kept, and judged by its status."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import attrs
import pytest

from turnlock.adapters.codex import playing
from turnlock.adapters.codex.heard import Heard
from turnlock.adapters.codex.messages import Asked, Notified
from turnlock.adapters.codex.normaliser import Normaliser
from turnlock.models.deliveries import Delivery
from turnlock.models.verdicts import Refused

from .recordings import ROOT, turnlock, write

DATA = ROOT / "tests" / "data" / "codex"
ACCEPTED = str(DATA / "02_cmd_accept.jsonl.gz")
LATE = str(DATA / "07_interrupt_pending.jsonl.gz")


def test_all_recordings_come_to_what_they_came_to_before() -> None:
    """Reviewed once; write it anew with the command in the message, and look at what differs."""
    files = sorted(str(it.relative_to(ROOT)) for it in DATA.glob("*.gz"))
    result = turnlock("codex", "play", *(str(ROOT / it) for it in files))

    told = result.output.replace(f"{ROOT}/", "")
    expected = (DATA / "played.txt").read_text(encoding="utf-8")
    assert told == expected, (
        "turnlock codex play tests/data/codex/*.gz > tests/data/codex/played.txt"
    )
    assert result.exit_code == 0


def test_it_tells_turns_calls_and_refusals() -> None:
    result = turnlock("codex", "play", ACCEPTED, LATE)

    assert result.exit_code == 0, result.output
    assert "1 turn, 1 invocation" in result.output
    assert "asked, approved, started, succeeded" in result.output
    assert "refused: seq" in result.output
    assert "the client answered when the turn was over" in result.output
    assert result.output.splitlines()[-1].startswith("2 files: 2 runs, ")
    assert result.output.splitlines()[-1].endswith("each explained")


def test_json_has_all_of_it() -> None:
    result = turnlock("codex", "play", "--json", LATE)

    told = json.loads(result.output)
    assert (told["files"][0]["file"], told["unread"], told["unexplained"]) == (LATE, 0, 0)
    (run,) = told["files"][0]["runs"]
    assert {it["by"] for it in run["refusals"]} <= {"client", "normaliser"}
    assert all(it["why"] for it in run["refusals"])


def test_a_plain_file_and_standard_input_are_played_too(tmp_path: Path) -> None:
    lines = gzip.decompress(Path(ACCEPTED).read_bytes())
    plain = turnlock("codex", "play", write(tmp_path, lines, "plain.jsonl"))
    piped = turnlock("codex", "play", "-", stdin=lines)

    assert (plain.exit_code, piped.exit_code) == (0, 0)
    assert plain.output.splitlines()[1:] == [
        it.replace("run -", "run plain") for it in piped.output.splitlines()[1:]
    ]


def test_what_the_model_said_is_passed_over(tmp_path: Path) -> None:
    """It stands beside the transcripts, and a pattern of the shell names it, too."""
    model = write(tmp_path, b"{}\n", "a.model.jsonl")
    assert turnlock("codex", "play", ACCEPTED, model).exit_code == 0

    alone = turnlock("codex", "play", model)
    assert alone.exit_code == 2
    assert "every FILE ends in .model.jsonl" in alone.output


@pytest.mark.parametrize(
    ("content", "place", "cause"),
    [
        (b"{}\n", ":1: ", "is no line of a transcript"),
        (b'{"dir": "s2c", "msg": {"method": "a"}}\nnothing\n', ":2: ", "is no line"),
        (b"\x1f\x8bbroken", ":1: ", "damaged"),
        (b"SQLite format 3\0", ": ", "it is a SQLite database"),
        (b"", ":1: ", "nothing that a process said"),
        (None, ": ", "No such file"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(
    tmp_path: Path, content: bytes | None, place: str, cause: str
) -> None:
    """Status 2; the other files are played."""
    bad = str(tmp_path / "bad.jsonl")
    if content is not None:
        write(tmp_path, content, "bad.jsonl")
    result = turnlock("codex", "play", bad, ACCEPTED)

    assert result.exit_code == 2
    assert f"{bad}{place}" in result.output
    assert cause in result.output
    assert "1 file: 1 run, " in result.output
    assert result.output.splitlines()[-1].endswith("1 file not read")


def test_wrong_usage_ends_with_two(tmp_path: Path) -> None:
    assert turnlock("codex", "play").exit_code == 2
    assert turnlock("codex", "play", "-", "-", stdin=b"").exit_code == 2
    there = write(tmp_path, b"", "there.db")
    assert turnlock("codex", "play", ACCEPTED, "--db", there).exit_code == 2


class Naive(Normaliser):
    """Takes what is announced for started."""

    def take(self, message: Notified | Asked, *, at: float) -> Heard:
        """Hear of a process where none was named."""
        if message.method == "item/started":
            item = {**message.params["item"], "processId": "1"}
            message = attrs.evolve(message, params={**message.params, "item": item})
        return super().take(message, at=at)


def test_a_demand_that_is_not_met_ends_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: the naive normaliser is red (S-22)."""
    monkeypatch.setattr(playing.Play.__init__, "__kwdefaults__", {"makes": Naive, "late": 0})
    result = turnlock("codex", "play", ACCEPTED)

    assert result.exit_code == 1
    assert "WRONG: " in result.output
    assert "S-22" in result.output
    assert "WRONG" in result.output.splitlines()[-1]


def test_a_refusal_that_nobody_explains_ends_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def unexplained(_: Delivery, __: Refused) -> None:
        """Explain nothing."""

    monkeypatch.setattr(playing, "why_refused", unexplained)
    result = turnlock("codex", "play", LATE)

    assert result.exit_code == 1
    assert "NOT EXPLAINED" in result.output


def test_what_was_played_is_kept_and_looked_at(tmp_path: Path) -> None:
    """Check, show and the diagram of a run work on it as on any."""
    db = str(tmp_path / "played.db")
    assert turnlock("codex", "play", ACCEPTED, LATE, "--db", db).exit_code == 0

    assert turnlock("check", "--db", db).exit_code == 0
    shown = turnlock("show", "02_cmd_accept", "--db", db)
    assert shown.exit_code == 0, shown.output
    assert "TOOL_EXECUTION_SUCCEEDED" in shown.output
    picture = str(tmp_path / "run.txt")
    drawn = turnlock("diagram", "run", "--db", db, "--run", "02_cmd_accept", "-o", picture)
    assert drawn.exit_code == 0, drawn.output
