"""``turnlock verify``: what it prints and writes, and how it ends."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from turnlock.cli import verify as under_test
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


def test_a_system_that_does_not_answer_is_told_so() -> None:
    """Exit status 5."""
    ended = verify("--only", "sample", "--sut", f"{sys.executable} -c 'exit(3)'")

    assert ended.exit_code == 5, ended.output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--capability", "recover"), "--sut"),
        (("--sut", "node 'shim.js"), "quote"),
        (("--sut", " "), "empty"),
        (("--sut", "no-such-command-anywhere"), "cannot be started (No such file"),
        *(
            (("--sut", "true", f"--timeout={it}"), "more than 0")
            for it in ("0", "-1", "inf", "nan")
        ),
        (("--junit", "no/such/folder/v.xml"), "no/such/folder/v.xml cannot be written"),
        (("--json", "/dev"), "--json"),
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
    assert "HOLDS" not in ended.output


def test_a_report_that_cannot_be_written_costs_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It could be before, and no more: the verdict is printed, and exit status 2 names the file."""
    report = tmp_path / "gone" / "v.xml"
    report.parent.mkdir()

    def gone_meanwhile(_: object) -> str:
        report.parent.rmdir()
        return ""

    monkeypatch.setattr(under_test, "to_junit", gone_meanwhile)
    ended = verify("--only", "sample", "--junit", str(report))

    assert ended.exit_code == 2
    assert "HOLDS" in ended.output
    assert f"{report} cannot be written" in ended.output


def test_trying_a_report_changes_nothing(tmp_path: Path) -> None:
    """What stands there is kept until there is something to write, and nothing new is left."""
    old, new = tmp_path / "old.xml", tmp_path / "new.json"
    old.write_text("before", encoding="utf-8")

    ended = verify("--junit", str(old), "--json", str(new), "--sut", "no-such-command-anywhere")

    assert ended.exit_code == 2
    assert old.read_text(encoding="utf-8") == "before"
    assert not new.exists()


def test_an_interrupt_is_no_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit status 3: there is no verdict."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(under_test, "verify", interrupted)
    ended = verify("--only", "sample")

    assert ended.exit_code == 3
    assert "interrupted: there is no verdict" in ended.output


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_verdict_that_cannot_be_told_is_none() -> None:
    """Exit status 3: all held, and 1 would say that something did not."""
    command = [sys.executable, "-m", "turnlock", "verify", "--profile", "dev", "--only", "sample"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)

    assert done.returncode == 3
    assert b"the output cannot be written (No space left on device)" in done.stderr


def test_a_baseline_that_is_none_is_refused(tmp_path: Path) -> None:
    """Exit status 2, with the place."""
    file = tmp_path / "known.json"
    file.write_text('{"format": 2}', encoding="utf-8")

    ended = verify("--baseline", str(file))

    assert ended.exit_code == 2
    assert "format" in ended.output


def paste(output: str) -> str:
    """The request that the first finding of a report says to paste."""
    line = next(line for line in output.splitlines() if line.strip().startswith("printf "))
    return shlex.split(line)[2]


def test_a_finding_is_played_again_until_it_holds(sut: dict[str, str], tmp_path: Path) -> None:
    """By its file, and by the line of the report: 1 while it fails, 0 when it holds, ours too."""
    folder = tmp_path / "kept"
    found = verify("--only", "sample", "--sut", sut["wrong"], "--findings", str(folder))
    assert found.exit_code == 1
    file, *_ = sorted(folder.glob("*.jsonl"))
    assert f"kept: {file}" in found.output

    still = verify("--replay", str(file), "--sut", sut["wrong"])
    assert still.exit_code == 1, still.output
    assert "STILL VIOLATED" in still.output
    right = verify("--replay", str(file), "--sut", sut["right"])
    assert (right.exit_code, "HOLDS" in right.output) == (0, True), right.output
    assert verify("--replay", str(file)).exit_code == 0

    line = paste(found.output)
    arguments = ["verify", "--replay", "-", "--sut", sut["wrong"]]
    again = CliRunner().invoke(main, arguments, input=line)
    assert again.exit_code == 1, again.output
    assert CliRunner().invoke(main, arguments[:3], input=line).exit_code == 0


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", ":1: format"),
        ("no", ":1"),
        ('{"format": 1}', ":1: rule"),
        ('{"run": {}, "scripts": [[]]}', ":1.run.run_id"),
        ('{"scripts": [[]]}', ":1.run"),
        ('{"run": {"run_id": "r", "limits": {"calls": "x"}}, "scripts": [[]]}', ".limits.calls"),
        ('{"run": {"run_id": "r"}, "scripts": [[]]}', "scripts[0][0]: there is no delivery"),
        ('{"format": 1, "rule": "K-1", "message": "", "run": {}}', ":1.run.run_id"),
        (
            '{"format": 1, "rule": "K-1", "message": "", "run": {"run_id": "r"}}',
            ":2: there is no delivery",
        ),
        ('{"run": {"run_id": "r"}, "scripts": []}', ":1.scripts: are empty"),
        ('{"run": {"run_id": "r"}, "scripts": [[{"type": "tick"}]]}', "scripts[0][0]"),
        (
            '{"run": {"run_id": "r"}, "scripts": [[{"type": "tock", "now": 0}]]}',
            "scripts[0][0]",
        ),
    ],
)
def test_what_is_no_finding_is_refused(tmp_path: Path, text: str, told: str) -> None:
    """Exit status 2, with the file, the place and the fix."""
    file = tmp_path / "f.jsonl"
    file.write_text(text, encoding="utf-8")

    ended = verify("--replay", str(file))

    assert ended.exit_code == 2, ended.output
    assert told in "".join(ended.output.split("\n")), ended.output


def test_a_finding_that_is_not_there_is_told() -> None:
    ended = verify("--replay", "/no/such/file")

    assert ended.exit_code == 2
    assert "give the file of a finding" in ended.output


def test_a_system_that_does_not_answer_a_replay_is_told_so(tmp_path: Path) -> None:
    """Exit status 5, as of any verification."""
    file = tmp_path / "f.jsonl"
    file.write_text(
        '{"run": {"run_id": "r"}, "scripts": [[{"type": "tick", "now": 0}]]}', encoding="utf-8"
    )

    ended = verify("--replay", str(file), "--sut", "false")

    assert ended.exit_code == 5, ended.output
