"""Count the product files that one thing touches: how far a newcomer has to read to follow it.

    .venv/bin/python tools/count_files.py             # the figures
    .venv/bin/python tools/count_files.py --list      # and the files

A file is touched when a Python function, method, comprehension or class body of it runs, in any
thread (`call` events of sys.setprofile, by co_filename). Not counted: the body of a module, and
what runs because a module is imported; code that attrs generates; code that is not ours.

- `approve`: a live host owns a run in a SQLite journal, and a call of it waits. Counted from the
  first line of `turnlock approve` to the first line of the tool, in the command and in the host.
- `picture`: `turnlock diagram run --db`, from the command to the SVG file.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType
from typing import Any, Final

from click.testing import CliRunner

from turnlock import Call, Run
from turnlock.cli.main import main as turnlock
from turnlock.runtime import Runtime, Settings, SqliteJournal, Toolbox, tool

ROOT: Final = Path(__file__).resolve().parents[1]
WITHIN: Final = 20.0
"""Seconds for the tool to start."""


class Counter:
    """Notes which files run, in threads that are started after it was installed."""

    def __init__(self) -> None:
        """Count nothing yet."""
        self.touched: set[str] = set()
        self.counting = False
        self._importing = threading.local()

    def install(self) -> None:
        """Watch this thread, and those to come."""
        threading.setprofile(self._event)
        sys.setprofile(self._event)

    def begin(self) -> None:
        """Count from here."""
        self.touched.clear()
        self.counting = True

    def end(self) -> list[str]:
        """Count no more; return the touched files, from the root, sorted."""
        self.counting = False
        return sorted(filter(None, map(_of_ours, self.touched)))

    def _event(self, frame: FrameType, event: str, _: Any) -> None:  # noqa: ANN401 - as Python calls it
        if event not in {"call", "return"}:
            return
        depth = getattr(self._importing, "depth", 0)
        if frame.f_code.co_name == "<module>":
            self._importing.depth = depth + (1 if event == "call" else -1)
        elif event == "call" and self.counting and not depth:
            self.touched.add(frame.f_code.co_filename)


def _of_ours(name: str) -> str | None:
    """Return the path of a product file from the root; None for any other."""
    if name.startswith("<"):  # a file of no directory: generated
        return None
    path = Path(name).resolve()
    if not path.is_relative_to(ROOT):
        return None
    found = path.relative_to(ROOT)
    outside = {"tools", "tests", ".venv"}
    return None if found.parts[0] in outside else found.as_posix()


def approve(counter: Counter, folder: Path) -> list[str]:
    """Return what runs between the command and the tool."""
    db = folder / "journal.db"
    found: list[str] = []
    started = threading.Event()

    @tool(approval=True)
    def pay() -> None:
        found.extend(counter.end())
        started.set()

    async def on_continue(_: object) -> None:
        """Take it."""

    def typed() -> None:
        counter.begin()
        outcome = CliRunner().invoke(turnlock, ["approve", "r", "--db", str(db)])
        if outcome.exit_code:
            raise AssertionError(outcome.output)

    async def host() -> None:
        call = Call(invocation_id="c", tool_name="pay", arguments={}, requires_approval=False)
        async with (
            await SqliteJournal.open(db) as journal,
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


def picture(counter: Counter, folder: Path) -> list[str]:
    """Return what runs between the command and the picture of the run that `approve` has left."""
    command = ["diagram", "run", "--db", str(folder / "journal.db"), "-o", str(folder / "run.svg")]
    counter.begin()
    outcome = CliRunner().invoke(turnlock, command)
    if outcome.exit_code:
        raise AssertionError(outcome.output)
    return counter.end()


def main() -> None:
    """Print the figures."""
    counter = Counter()
    counter.install()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = {
            "from `turnlock approve` to the running tool": approve(counter, folder),
            "from a fact to a picture (`turnlock diagram run`)": picture(counter, folder),
        }
    sys.setprofile(None)
    for what, files in found.items():
        print(f"{len(files):4} files: {what}")
        if "--list" in sys.argv:
            print("".join(f"       {file}\n" for file in files))


main()
