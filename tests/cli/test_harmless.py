"""Ids, tool names, model and exception texts never reach a terminal raw, whatever the command."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from turnlock import Decide, Match, Run, Scope
from turnlock.cli.main import main
from turnlock.cli.run_lines import StdinLines
from turnlock.cli.run_screen import Screen
from turnlock.models import safe_text

from .recordings import turnlock
from .sessions import in_pipes, recording
from .waiting import call, deliver, done, doubted, opened

HOSTILE = {
    "terminal": "\x1b[2J\x1b]0;owned\x07",
    "lines": "a\nrun     forged\r\n",
    "bidi": "\u202egnp.exe\u2066\u200b",
    "C1 and separators": "\x9b31m\x85\u2028",
    "an option": "--db",
    "long": "x" * 10_000,
}


def commands(group: click.Group, *words: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, *words, name)
        else:
            yield (*words, name), command


COMMANDS = {
    words: command
    for words, command in commands(main)
    if any(param.name == "db" for param in command.params)
}
"""Every command that takes --db, subcommands too: none can be forgotten here."""


def harmless(text: str) -> bool:
    return text.replace("\n", "").isprintable()


def journal(db: str, text: str) -> None:
    """A run of which every text is this one: a grant, a call that waits, one in doubt."""
    by = Decide(
        turn_id=text,
        invocation_id=text,
        approved=True,
        decided_by=text,
        reason=text,
        scope=Scope.SESSION,
        match=Match.TOOL,
    )
    free = call("2" + text, "2" + text, gated=False, text=text)
    deliver(
        db,
        opened(text, call(text, text, text=text)),
        by,
        *done(text, text),
        opened("t2" + text, call(text, "other" + text, text=text), free),
        *doubted("t2" + text, "2" + text),
        run=Run(run_id=text, agent_id=text, agent_name=text),
    )


def arguments(words: tuple[str, ...], text: str, db: str) -> Iterator[list[str]]:
    """Ways to call a command about this run: with its names, and with others."""
    command = COMMANDS[words]
    places = [it for it in command.params if isinstance(it, click.Argument)]
    options = {name for it in command.params for name in it.opts}
    for it in command.params:  # what must be given
        if isinstance(it, click.Option) and it.required and it.name != "db":
            words = (*words, it.opts[0], "out.file")
    if words == ("serve",):  # alone it serves, and does not end
        yield from ([*words, "--db", db, *more] for more in (["--world", text], ["--", text]))
        return
    names = [text if it.name in {"run_id", "call", "run"} else "1" for it in places]
    for given in (names, ["nope" + text for _ in names], []):
        if words == ("run",):
            yield [*words, "--db", db, "--no-input", "--run", text]
            return
        yield [*words, "--db", db, "--", *given]
        for option in {"--run", "--turn"} & options:
            yield [*words, "--db", db, option, text, "--", *given]
        if "--json" in options:
            yield [*words, "--db", db, "--json", "--", *given]


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_no_command_shows_what_moves_a_cursor(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    kept = tmp_path / "kept.db"
    journal(str(kept), text)
    statuses: set[int] = set()
    for words in COMMANDS:
        db = str(shutil.copy(kept, tmp_path / f"{'-'.join(words)}.db"))  # some remove runs
        for command in arguments(words, text, db):
            ended = turnlock(*command)
            statuses.add(ended.exit_code)
            assert harmless(ended.output), (words, ended.output[:2_000])
            assert ended.exception is None or isinstance(ended.exception, SystemExit), words
    assert {0, 1, 2} <= statuses


def test_control_without_escapes_they_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one function that all of them use, switched off."""
    text = HOSTILE["terminal"]
    db = str(tmp_path / "a.db")
    journal(db, text)

    def raw(character: str) -> str:
        return character

    monkeypatch.setattr(safe_text, "_shown", raw)
    shown = turnlock("show", "--db", db, "--", text).output
    assert not harmless(shown)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_what_a_session_tells_is_harmless(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever forgets it: an error of the runtime, a name."""
    Screen(Run(run_id="r"), told_until=0, lines=StdinLines()).tell(f"  not decided: {text}")
    assert harmless(capsys.readouterr().err)


TOOLS = """
import asyncio, threading
from turnlock.runtime import tool

def fails():
    raise ValueError("\\x1b[2J\\u202e")

async def fails_too():
    fails()

@tool
async def stray() -> str:
    threading.Thread(target=fails).start()
    asyncio.ensure_future(fails_too())
    await asyncio.sleep(0.05)
    return "done"
"""


def test_what_nobody_caught_is_told_harmlessly(tmp_path: Path) -> None:
    """Threads and tasks that a tool leaves behind, whose exceptions Python tells raw."""
    (tmp_path / "tools.py").write_text(TOOLS)
    talk = recording(tmp_path, [("stray", {}, "-")])
    ended = in_pipes("--record", talk, "--gate", "none", "--tools", "tools.py", cwd=tmp_path)
    assert ended.returncode == 0
    assert ended.stderr.count(r"ValueError: \x1b[2J\u202e") == 2, ended.stderr
    assert harmless(ended.stderr)


def test_what_ends_the_process_is_told_harmlessly(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    assert turnlock("explain", "K-32").exit_code == 0
    error = ValueError("\x1b[2J")
    sys.excepthook(ValueError, error, None)
    assert capsys.readouterr().err == "ValueError: \\x1b[2J\n"
