"""The command in its surroundings: terminals, pipes, signals, full disks, what it loads."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import time
from pathlib import Path

import click
import pytest

from turnlock.cli.main import main
from turnlock.cli.world import command as world

from .recordings import CORPUS, batch, call, launch, lines, turnlock, write


def test_ask_needs_a_terminal() -> None:
    result = turnlock("replay", CORPUS, "--decisions", "ask")

    assert result.exit_code == 2
    assert "--decisions ask needs a terminal on standard input" in result.output
    assert "choose --decisions approve, deny or random" in result.output


def test_ask_shows_tool_and_arguments_and_does_as_told(tmp_path: Path) -> None:
    """One y and one n on a terminal: the first call runs, the second is denied."""
    calls = [call("a", "look", '{"at": "\\u001b[2Jstars"}'), call("b", "dig", '{"deep": 1}')]
    file = write(tmp_path, lines(batch(calls=calls, results=[])))
    keyboard, terminal = pty.openpty()
    command = launch(
        *("-m", "turnlock", "replay", file, "--decisions", "ask", "--json", "--seed", "1"),
        stdin=terminal,
    )
    os.write(keyboard, b"y\nn\n")
    output, prompts = command.communicate(timeout=30)
    os.close(keyboard)
    os.close(terminal)

    assert command.returncode == 0
    assert b'"succeeded": 1' in output
    assert b'"denied": 1' in output
    assert b"look {" in prompts
    assert b'"deep": 1' in prompts
    assert b"\x1b[2J" not in prompts
    assert prompts.count(b"Run it? [y/n]") == 2


def test_a_closed_pipe_shows_no_traceback() -> None:
    for arguments in (("replay", CORPUS), ("trace", CORPUS), ("replay", CORPUS, "--json")):
        command = launch("-m", "turnlock", *arguments)
        assert command.stdout is not None
        command.stdout.close()
        assert command.stderr is not None
        errors = command.stderr.read()
        assert command.wait(timeout=30) == 1
        command.stderr.close()
        assert command.stdin is not None
        command.stdin.close()
        assert b"Traceback" not in errors
        assert b"Exception ignored" not in errors


def test_ctrl_c_shows_no_traceback(tmp_path: Path) -> None:
    file = write(tmp_path, lines(*(batch(turn=turn) for turn in range(20_000))))
    command = launch("-m", "turnlock", "replay", file, "--hostile", "20")
    time.sleep(2)
    command.send_signal(signal.SIGINT)
    output, errors = command.communicate(timeout=30)

    assert command.returncode == 1
    assert output == b""
    assert b"Traceback" not in errors


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_told() -> None:
    with Path("/dev/full").open("wb") as full:
        command = launch("-m", "turnlock", "replay", CORPUS, stdout=full.fileno())
        _, errors = command.communicate(timeout=30)

    assert command.returncode == 1
    assert b"the output cannot be written (No space left on device)" in errors
    assert b"Traceback" not in errors


LOADED = """
import sys
{what}
loaded = {{"rich", "click", "msgspec", "cattrs"}} & set(sys.modules)
print(*sorted(loaded), file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("what", "heavy"),
    [
        ("import turnlock", {"rich", "click", "msgspec", "cattrs"}),
        ("from turnlock.cli.main import main; main(['stdio'], standalone_mode=False)", {"rich"}),
    ],
    ids=["import turnlock", "turnlock stdio"],
)
def test_what_is_not_needed_is_not_loaded(what: str, heavy: set[str]) -> None:
    command = launch("-c", LOADED.format(what=what), stdin=subprocess.DEVNULL)
    _, loaded = command.communicate(timeout=30)

    assert command.returncode == 0
    assert heavy.isdisjoint(loaded.decode().split())


COMMANDS = sorted({*main.list_commands(click.Context(main))} - {"diagram", "export", "stdio"})
OF_WORLDS = [
    f"world {name}" for name in world.list_commands(click.Context(world)) if name != "agent"
]


@pytest.mark.parametrize("name", [*COMMANDS, *OF_WORLDS, "world agent put", "world agent rm"])
def test_every_command_lists_its_exit_status(name: str) -> None:
    """As a list, not in running text."""
    lines = [line.strip() for line in turnlock(*name.split(), "--help").output.splitlines()]
    assert "Exit status:" in lines
    assert lines[lines.index("Exit status:") + 1].startswith("0  ")


def test_help_and_version_tell_the_exit_status() -> None:
    shown = turnlock("--help").output
    assert all(name in shown for name in ("replay", "trace", "stdio"))
    assert turnlock("--version").output.startswith("turnlock ")
    for name in ("replay", "trace"):
        shown = turnlock(name, "--help").output
        assert "Exit status:" in shown
        assert "2  wrong usage, or not one batch could be read" in shown
    assert turnlock("nonsense").exit_code == 2
    assert turnlock("replay").exit_code == 2
