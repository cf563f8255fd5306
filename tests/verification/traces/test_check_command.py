"""`turnlock check`: what it prints, and the status that it ends with."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from click.testing import CliRunner, Result

from turnlock.cli.check import command
from turnlock.models.codec import to_json

from .recorded import exchanges, journal, journals, recorded, text


def turnlock_check(*arguments: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(command, list(arguments), input=stdin)


def logged(folder: Path, content: bytes) -> str:
    path = folder / "log.jsonl"
    path.write_bytes(content)
    return str(path)


def test_a_log_that_conforms(tmp_path: Path) -> None:
    result = turnlock_check(logged(tmp_path, text(*journal())))

    assert result.exit_code == 0
    assert result.output.splitlines()[-1] == "conforms: 12 judged, 1 run"


def test_a_log_from_standard_input_gzipped_or_not() -> None:
    log = text(*exchanges(next(iter(recorded()))))

    for stdin in (log, gzip.compress(log)):
        assert turnlock_check("-", stdin=stdin).exit_code == 0


def test_the_first_line_that_cannot_have_happened() -> None:
    """Line, run, rule, why, and what was possible; then nothing more."""
    facts = journal()
    del facts[7]
    facts[7:] = []
    facts.append({**journal()[8], "sequence": 8, "commit": 8})

    result = turnlock_check("-", stdin=text(*facts))

    assert result.exit_code == 1
    told = (
        f"line 8, run {facts[0]['run_id']!r}: K-33: TOOL_EXECUTION_STARTED needs claim, which is "
        "refused here: not_approved; 'call~2' is REQUESTED, waiting for approval in turn '0'\n"
        "K-33: An accepted claim of the owed attempt is the only way to start: an executor starts "
        "work only after its claim was accepted, so two executors that hold the same approval "
        "execute once. (turnlock explain K-33)\n"
        "possible there: TOOL_APPROVED of 'call~2' | TOOL_DENIED of 'call~2' | "
        "TOOL_EXECUTION_FAILED (rejected) of 'call~2' | TURN_INTERRUPTING of '0'\n"
    )
    assert result.output.endswith(told)


def test_a_log_that_breaks_off_has_a_status_of_its_own() -> None:
    """Torn inside a line, inside a commit, or inside gzip data: it conforms as far as it goes."""
    log = text(*journal())

    for stdin in (log[:-20], text(*journal()[:10]), gzip.compress(log)[:-40]):
        result = turnlock_check("-", stdin=stdin)

        assert result.exit_code == 6, result.output
        assert "conforms as far as it goes" in result.output


def test_what_cannot_be_read_is_wrong_usage(tmp_path: Path) -> None:
    """Nothing to judge, no file, or garbage from the first line on: status 2."""
    for stdin in (b"", b"\n", b"hello\n"):
        assert turnlock_check("-", stdin=stdin).exit_code == 2

    missing = turnlock_check(str(tmp_path / "none"))
    assert missing.exit_code == 2
    assert "cannot be read (No such file or directory)" in missing.output


def test_garbage_after_lines_that_conform_is_a_failed_check() -> None:
    result = turnlock_check("-", stdin=text(*journal()[:2], b"{]"))

    assert result.exit_code == 1
    assert "line 3 column 2: is no JSON" in result.output


def test_many_runs_are_told_up_to_a_named_number() -> None:
    opened = journal()[0]
    lines = [{**opened, "run_id": f"run-{number:02}"} for number in range(25)]

    told = turnlock_check("-", stdin=text(*lines)).output.splitlines()

    assert len(told) == 22
    assert told[-2:] == ["… and 5 more runs, 5 lines", "conforms: 25 judged, 25 runs"]


def test_the_outcome_as_json() -> None:
    """For programs: the same, as one object."""
    lines = [fact for facts in journals().values() for fact in facts]
    told = json.loads(turnlock_check("-", "--json", stdin=text(*map(to_json, lines))).output)
    assert (told["conforms"], told["judged"], told["broken"], told["torn"]) == (
        True,
        len(lines),
        None,
        [],
    )
    assert told["runs"][0]["kind"] == "facts"

    told = json.loads(turnlock_check("-", "--json", stdin=text(*journal()[1:])).output)
    assert (told["conforms"], told["broken"]["line"], told["broken"]["rule"]) == (False, 1, "K-9")


def test_what_is_printed_moves_no_cursor() -> None:
    """A run id from a stranger's log is shown with its escapes."""
    opened = {**journal()[0], "run_id": "\x1b[2J"}

    assert "\x1b" not in turnlock_check("-", stdin=text(opened)).output
