"""``turnlock verify``: what it prints and writes, and how it ends."""

from __future__ import annotations

import json
import shlex
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from turnlock.cli.main import main

# A kernel behind a pipe, right but for what `change` does to each answer.
SHIM = """
import sys
from turnlock.wire.stdio import serve

class Sink:
    def write(self, line):
        sys.stdout.buffer.write(change(line))
    def flush(self):
        sys.stdout.buffer.flush()

def change(line):
    return {change}

serve(sys.stdin.buffer, Sink())
"""
RIGHT = "line"
WRONG = """line.replace(b'"no_active_turn"', b'"turn_mismatch"')"""
UNSTEADY = """line.replace(b'"no_active_turn"', b'"turn_mismatch"', 1)"""


def verify(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["verify", "--profile", "dev", *arguments])


@pytest.fixture
def sut(tmp_path: Path) -> dict[str, str]:
    """Commands that speak the wire: a right one, a wrong one, one that is not deterministic."""
    commands: dict[str, str] = {}
    for name, change in (("right", RIGHT), ("wrong", WRONG), ("unsteady", UNSTEADY)):
        script = tmp_path / f"{name}.py"
        script.write_text(SHIM.replace("{change}", change), encoding="utf-8")
        commands[name] = shlex.join([sys.executable, str(script)])
    return commands


def test_our_kernel_holds_and_every_report_is_written(tmp_path: Path) -> None:
    """Exit status 0; JUnit has a case for each rule, JSON is JSON, the page stands alone."""
    junit, html, found = (tmp_path / name for name in ("v.xml", "v.html", "v.json"))

    ended = verify(
        *("--only", "sample", "--junit", str(junit)), *("--html", str(html), "--json", str(found))
    )

    assert ended.exit_code == 0, ended.output
    assert "HOLDS" in ended.output
    cases = ET.parse(junit).iter("testcase")  # noqa: S314 - our own file
    assert {"K-20", "K-53"} <= {str(case.get("name")).split()[0].rstrip(":") for case in cases}
    assert json.loads(found.read_text(encoding="utf-8"))["format"] == 1
    assert "<script" not in html.read_text(encoding="utf-8")


def test_a_wrong_system_is_told_with_its_script(sut: dict[str, str], tmp_path: Path) -> None:
    """Exit status 1; as a known violation 0; and 1 again once it passes."""
    baseline = str(tmp_path / "known.json")

    ended = verify("--only", "sample", "--sut", sut["wrong"], "--write-baseline", baseline)

    assert ended.exit_code == 1
    assert "no_active_turn" in ended.output
    assert "VIOLATED" in ended.output
    known = verify("--only", "sample", "--sut", sut["wrong"], "--baseline", baseline)
    assert known.exit_code == 0, known.output
    passing = verify("--only", "sample", "--sut", sut["right"], "--baseline", baseline)
    assert passing.exit_code == 1


def test_what_a_system_does_not_declare_is_skipped_by_name(sut: dict[str, str]) -> None:
    """A technique that was skipped is never silent, and nothing but skipped is no verdict."""
    ended = verify("--only", "recovery", "--only", "closure", "--sut", sut["right"])

    assert ended.exit_code == 3
    assert "recover" in ended.output
    assert "closure" in ended.output
    declared = verify("--only", "recovery", "--sut", sut["right"], "--capability", "recover")
    assert declared.exit_code == 0, declared.output


def test_a_system_that_is_not_deterministic_is_told_so(sut: dict[str, str]) -> None:
    """Exit status 4: it is blamed for nothing else."""
    ended = verify("--only", "sample", "--sut", sut["unsteady"])

    assert ended.exit_code == 4, ended.output


@pytest.mark.parametrize("command", ["no-such-command-anywhere", f"{sys.executable} -c 'exit(3)'"])
def test_a_system_that_does_not_answer_is_told_so(command: str) -> None:
    """Exit status 5."""
    ended = verify("--only", "sample", "--sut", command)

    assert ended.exit_code == 5, ended.output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--capability", "recover"), "--sut"),
        (("--sut", "node 'shim.js"), "quote"),
        (("--sut", " "), "empty"),
        (("--baseline", "no/such/file"), "no/such/file"),
        (("--selftest",), "No such option"),
        (("--profile", "slow"), "nightly"),
    ],
)
def test_wrong_usage_names_the_fix(arguments: tuple[str, ...], told: str) -> None:
    """Exit status 2, before anything runs."""
    ended = CliRunner().invoke(main, ["verify", *arguments])

    assert ended.exit_code == 2
    assert told in ended.output


def test_a_report_that_cannot_be_written_costs_no_verdict() -> None:
    """The verdict was printed before; then exit status 2 names the file."""
    ended = verify("--only", "sample", "--junit", "no/such/folder/v.xml")

    assert ended.exit_code == 2
    assert "HOLDS" in ended.output
    assert "no/such/folder/v.xml" in ended.output


def test_a_baseline_that_is_none_is_refused(tmp_path: Path) -> None:
    """Exit status 2, with the place."""
    file = tmp_path / "known.json"
    file.write_text('{"format": 2}', encoding="utf-8")

    ended = verify("--baseline", str(file))

    assert ended.exit_code == 2
    assert "format" in ended.output
