"""Count the product files that one thing touches: how far a newcomer has to read to follow it.

    .venv/bin/python tools/count_files.py             # the figures
    .venv/bin/python tools/count_files.py --list      # and the files

A file is touched when Python code of it runs, in any thread: `call` events of sys.setprofile, by
co_filename. The body of a module counts where it runs anew. Code that attrs and cattrs generate is
in no file, and is not counted; nor are tools, tests and what is not ours.

- `approve`: a live host owns a run in a SQLite journal, and a call of it waits; the command's
  module is imported. Counted from the first line of `turnlock approve` to the first line of the
  tool, in the command and in the host, which are two threads of one process here.
- `drawing`: from the facts of a run, as lines of JSON, to its SVG, with `turnlock.diagrams`.
- `picture`: the same, with all that is imported for it.
- `command`: `turnlock diagram run` on these facts, with all that is imported for it.
"""

# What is counted is imported where it is counted.
# ruff: noqa: PLC0415

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
FACTS: Final = ROOT / "tests/data/journals/0.1/facts.jsonl"
OUTSIDE: Final = frozenset({"tools", "tests", ".venv"})
WITHIN: Final = 20.0
"""Seconds for the tool to start."""


class Counter:
    """Notes which files run, in this thread and in those that are started later."""

    def __init__(self) -> None:
        """Watch, and count nothing yet."""
        self._touched: set[str] = set()
        self._counting = False
        threading.setprofile(self._event)
        sys.setprofile(self._event)

    def begin(self) -> None:
        """Count from here."""
        self._touched.clear()
        self._counting = True

    def end(self) -> list[str]:
        """Count no more; return the touched files, from the root, sorted."""
        self._counting = False
        return sorted(filter(None, map(_of_ours, self._touched)))

    def _event(self, frame: FrameType, event: str, _: Any) -> None:  # noqa: ANN401 - as Python calls it
        if event == "call" and self._counting:
            self._touched.add(frame.f_code.co_filename)


def _of_ours(name: str) -> str | None:
    """Return the path of a product file from the root; None for any other."""
    path = Path(name).resolve()
    if name.startswith("<") or not path.is_relative_to(ROOT):
        return None
    found = path.relative_to(ROOT)
    return None if found.parts[0] in OUTSIDE else found.as_posix()


def approve(db: Path) -> list[str]:
    """Return what runs between the command and the tool."""
    from click.testing import CliRunner

    from turnlock import Call, Run, arguments_digest
    from turnlock.cli.decide import approve as command
    from turnlock.cli.main import main as turnlock
    from turnlock.runtime import Runtime, Settings, Toolbox, open_journal, tool

    counter, started = Counter(), threading.Event()
    found: list[str] = []

    @tool(approval=True)
    def pay() -> None:
        found.extend(counter.end())
        started.set()

    async def on_continue(_: object) -> None:
        """Take it."""

    def typed() -> None:
        counter.begin()
        shown = ["--turn", "t", "--digest", arguments_digest({})]
        outcome = CliRunner().invoke(
            turnlock, [str(command.name), "r", "c", "--db", str(db), *shown]
        )
        if outcome.exit_code:
            raise AssertionError(outcome.output)

    async def host() -> None:
        call = Call(invocation_id="c", tool_name="pay", arguments={}, requires_approval=False)
        async with (
            await open_journal(db) as journal,
            Runtime(
                journal=journal,
                tools=Toolbox([pay]),
                on_continue=on_continue,
                settings=Settings(poll=0.05),
            ) as runtime,
        ):
            await runtime.open_run(Run(run_id="r"))
            await runtime.open_turn("r", [call], turn_id="t")
            await asyncio.to_thread(typed)
            if not await asyncio.to_thread(started.wait, WITHIN):
                raise AssertionError("the tool did not start")

    asyncio.run(host())
    return found


def picture(*, with_imports: bool) -> list[str]:
    """Return what runs between the lines of a recorded run and its picture."""
    counter = Counter()
    if with_imports:
        counter.begin()
    from turnlock.diagrams import read_recordings, run_picture

    lines = FACTS.read_bytes().splitlines(keepends=True)
    if not with_imports:
        run_picture(read_recordings(lines, name="facts")[0]).svg()  # what is imported late
        counter.begin()
    (recording,) = read_recordings(lines, name="facts")
    run_picture(recording).svg()
    return counter.end()


def command(out: Path) -> list[str]:
    """Return what runs when the command is typed."""
    counter = Counter()
    counter.begin()
    from click.testing import CliRunner

    from turnlock.cli.main import main as turnlock

    outcome = CliRunner().invoke(turnlock, ["diagram", "run", str(FACTS), "-o", str(out)])
    if outcome.exit_code:
        raise AssertionError(outcome.output)
    return counter.end()


def main() -> None:
    """Print the figures: each is counted in a process of its own."""
    counted = {
        "approve": "from `turnlock approve` to the running tool",
        "drawing": "from a fact to a picture",
        "picture": "from a fact to a picture, and what is imported for it",
        "command": "`turnlock diagram run`, and what is imported for it",
    }
    if sys.argv[1:] and sys.argv[1] in counted:
        with tempfile.TemporaryDirectory() as folder:
            if sys.argv[1] == "approve":
                found = approve(Path(folder) / "journal.db")
            elif sys.argv[1] == "command":
                found = command(Path(folder) / "run.svg")
            else:
                found = picture(with_imports=sys.argv[1] == "picture")
        sys.setprofile(None)
        print("\n".join(found))
        return
    for name, what in counted.items():
        done = subprocess.run(  # noqa: S603 - this file again
            [sys.executable, __file__, name], capture_output=True, text=True, check=True
        )
        files = done.stdout.split()
        print(f"{len(files):4} files: {what}")
        if "--list" in sys.argv:
            print("".join(f"       {file}\n" for file in files))


main()
