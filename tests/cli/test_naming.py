"""How journals, runs and commands are named: TURNLOCK_DB, completion, and what was mistyped."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from click.shell_completion import BashComplete

from turnlock import Run
from turnlock.cli.completion import VARIABLE
from turnlock.cli.main import main

from .recordings import turnlock
from .waiting import call, deliver, opened


@pytest.fixture
def db(tmp_path: Path) -> str:
    """A journal with a run whose call waits, and two others."""
    file = tmp_path / "a.db"
    deliver(file, opened("t1", call("c", "look")))
    for run_id in ("agent-2", "other"):
        deliver(file, opened("t1", call("c", "look")), run=Run(run_id=run_id))
    return str(file)


def completed(line: str) -> list[str]:
    """What bash is offered behind this line."""
    shell = BashComplete(main, {}, "turnlock", VARIABLE)
    *words, last = line.split(" ")
    return [item.value for item in shell.get_completions(words, last)]


@pytest.mark.parametrize("command", ["runs", "show agent", "grants agent", "check", "diagram run"])
def test_the_variable_names_the_journal(
    db: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What --db names goes before it, and so does a file."""
    monkeypatch.delenv("TURNLOCK_DB", raising=False)
    assert turnlock(*command.split()).exit_code == 2
    monkeypatch.setenv("TURNLOCK_DB", db)
    named = turnlock(*command.split())
    assert named.exit_code == 0, named.output

    monkeypatch.setenv("TURNLOCK_DB", "/nowhere/a.db")
    assert turnlock(*command.split()).exit_code == 2
    assert turnlock(*command.split(), "--db", db).exit_code == 0


@pytest.mark.parametrize(
    "command", ["restore b.db", "forget agent --yes", "archive agent -o a.jsonl"]
)
def test_what_removes_or_replaces_does_not_read_the_variable(
    db: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have been set long ago, for another journal. With --db, the control, it is done."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TURNLOCK_DB", db)
    assert turnlock("backup", "-o", "b.db").exit_code == 0
    before = {it: it.read_bytes() for it in tmp_path.iterdir()}

    refused = turnlock(*command.split())
    assert refused.exit_code == 2
    assert "name the journal: --db JOURNAL" in refused.output
    assert "does not read TURNLOCK_DB" in refused.output
    assert {it: it.read_bytes() for it in tmp_path.iterdir()} == before
    assert "name the journal" not in turnlock(*command.split(), "--db", db).output


def test_a_file_goes_before_the_variable(
    db: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TURNLOCK_DB", db)
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    assert "holds nothing to judge" in turnlock("check", str(empty)).output


def test_run_ids_are_completed(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By --db before them or by the variable; without a journal nothing is said, and none made."""
    monkeypatch.delenv("TURNLOCK_DB", raising=False)
    assert completed(f"show --db {db} a") == ["agent", "agent-2"]
    assert completed(f"run --db {db} --run o") == ["other"]
    assert completed(f"recover --db {db} agent o") == ["other"]
    assert completed("show a") == []
    assert completed("show --db /nowhere/a.db a") == []
    monkeypatch.setenv("TURNLOCK_DB", db)
    assert completed("approve a") == ["agent", "agent-2"]
    assert completed("check --run ot") == ["other"]
    assert completed("forget a") == []
    assert completed(f"forget --db {db} a") == ["agent", "agent-2"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_asks_the_command(shell: str) -> None:
    script = turnlock("completion", shell)

    assert script.exit_code == 0
    assert f"{VARIABLE}={shell}_complete" in script.stdout
    if shell == "bash" and (bash := shutil.which("bash")):
        subprocess.run([bash, "-n"], input=script.stdout.encode(), check=True)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("shwo", "No such command 'shwo'. Did you mean 'show'?"),
        ("diagram rnu", "No such command 'rnu'. Did you mean 'run'?"),
        ("runs --frgotten", "'--forgotten'"),
        ("zzzzz", "No such command 'zzzzz'.\n"),
    ],
)
def test_what_was_mistyped_is_told_with_what_is_spelt_like_it(command: str, told: str) -> None:
    done = turnlock(*command.split())

    assert done.exit_code == 2
    assert told in done.output
