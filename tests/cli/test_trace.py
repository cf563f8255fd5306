"""``turnlock trace``: one run as a timeline that can be read, and that nothing in it can spoil."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .recordings import CORPUS, answer, batch, call, lines, replayed, turnlock, write

RUN = "pydantic-ai/complex_agent_run"


def test_without_a_run_the_runs_are_listed() -> None:
    result = turnlock("trace", CORPUS)

    assert result.exit_code == 0
    assert f"    3  {RUN}" in result.output.splitlines()
    assert len(result.output.splitlines()) == 1 + 24


@pytest.mark.parametrize("run", [RUN, "pydantic-ai/complex", "complex_agent"])
def test_a_run_is_found_by_its_id_a_prefix_or_a_part(run: str) -> None:
    result = turnlock("trace", CORPUS, "--run", run)

    assert result.exit_code == 0
    assert result.output.startswith(f"run {RUN}, 3 turns\n")


def test_an_exact_id_wins_over_longer_ones(tmp_path: Path) -> None:
    file = write(tmp_path, lines(batch(conv="a"), batch(conv="ab"), batch(conv="abc")))

    assert turnlock("trace", file, "--run", "a").output.startswith("run a, 1 turn\n")


@pytest.mark.parametrize(
    ("run", "told"),
    [
        ("mirascope/", "runs match 'mirascope/'; give more of the id of one:"),
        ("nobody", "no run matches 'nobody'; give the id of one of these:"),
        ("", "24 runs match ''"),
        ("\x1b[2J", r"no run matches '\\x1b[2J'"),
    ],
)
def test_an_unclear_run_lists_the_candidates(run: str, told: str) -> None:
    result = turnlock("trace", CORPUS, "--run", run)

    assert result.exit_code == 2
    assert told in result.output
    assert "  mirascope/" in result.output
    assert "\x1b" not in result.output


def test_the_timeline_shows_every_fact_in_order() -> None:
    """Sequence numbers without a gap, each phase with its sign, and a verdict at the end."""
    result = turnlock("trace", CORPUS, "--run", RUN)

    rows = result.output.splitlines()
    numbers = [int(row.split()[1]) for row in rows[3:-2] if row.strip()]
    assert numbers == list(range(1, len(numbers) + 1))
    for sign in ("┌ TURN_OPENED", "? TOOL_APPROVAL_REQUESTED", "+ TOOL_APPROVED", "└ TURN_SETTLED"):
        assert sign in result.output
    assert "continue with 2 succeeded" in result.output
    assert rows[-1].startswith("OK 3 turns settled")


def test_it_is_the_run_that_replay_replays(tmp_path: Path) -> None:
    """Alone or among others, the same seed gives the same deliveries."""
    whole = Path(CORPUS).read_bytes().splitlines(keepends=True)
    alone = write(tmp_path, b"".join(line for line in whole if json.loads(line)["conv"] == RUN))
    options = ("--run", RUN, "--hostile", "2", "--decisions", "random", "--seed", "4")

    assert turnlock("trace", CORPUS, *options).output == turnlock("trace", alone, *options).output
    told = replayed(alone, *options[2:])
    shown = turnlock("trace", alone, *options).output
    assert shown.count("  refused ") == sum(told["refusals"].values())


def test_refusals_stand_between_the_facts_with_their_reason() -> None:
    result = turnlock("trace", CORPUS, "--run", RUN, "--hostile", "3")

    refused = [row for row in result.output.splitlines() if "refused " in row]
    assert len(refused) > 50
    kinds = ("duplicated", "stale", "mismatched", "unknown", "reordered", "conflicting")
    for kind in kinds:
        assert any(row.endswith(f", {kind}") for row in refused)


HOSTILE_TEXT = "\x1b]0;owned\x07\x1b[31m\r\n\u202e\u200b[bold]x[/bold] :skull:\x9b2J"


def test_recorded_text_cannot_touch_the_terminal(tmp_path: Path) -> None:
    """Escapes, bidirectional overrides, markup and emoji codes are shown, never obeyed."""
    file = write(
        tmp_path,
        lines(
            batch(
                conv=f"talk{HOSTILE_TEXT}",
                calls=[call(HOSTILE_TEXT, HOSTILE_TEXT, json.dumps({HOSTILE_TEXT: HOSTILE_TEXT}))],
                results=[answer(HOSTILE_TEXT, HOSTILE_TEXT, "error")],
                streaming=True,
            )
        ),
    )

    for arguments in ((), ("--run", "talk", "--hostile", "2"), ("--run", "nobody")):
        output = turnlock("trace", file, *arguments).output
        assert all(character == "\n" or character.isprintable() for character in output)
        assert "[bold]" in output
        assert "\\x1b" in output


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
def test_long_text_is_cut_to_the_width(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    """Whatever the width, each fact is one line, and the numbers stay whole."""
    monkeypatch.setenv("COLUMNS", str(columns))
    long = json.dumps({"words": "word " * 10_000})
    file = write(tmp_path, lines(batch(calls=[call("i" * 500, "n" * 500, long)], results=[])))

    output = turnlock("trace", file, "--run", "talk").output

    rows = output.splitlines()
    assert all(len(row) <= columns for row in rows[:-1])
    assert len(rows) == 3 + 7 + 3
    assert "0.001    1 0" in output
    assert ("…" in output) is True


def test_colours_appear_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b" not in turnlock("trace", CORPUS, "--run", RUN).output
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" in turnlock("trace", CORPUS, "--run", RUN).output


def test_input_that_is_wrong_is_told_here_too(tmp_path: Path) -> None:
    """Status 2 where there is nothing to show, 1 where there is but something was wrong."""
    assert turnlock("trace", str(tmp_path / "missing")).exit_code == 2
    file = write(tmp_path, lines(batch()) + b"nonsense\n")
    for arguments in ((), ("--run", "talk")):
        result = turnlock("trace", file, *arguments)
        assert f"{file}:2: column 1: is no JSON" in result.output
        assert result.exit_code == 1


def test_a_recording_may_come_from_standard_input() -> None:
    result = turnlock("trace", "-", "--run", "talk", stdin=lines(batch()))

    assert result.exit_code == 0
    assert "TOOL_EXECUTION_SUCCEEDED" in result.output
