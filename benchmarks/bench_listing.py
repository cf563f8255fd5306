"""A list of 1,000 runs that wait for a person: the journal's page, and all that `runs` does.

Nothing is folded, so that how many facts a run has makes no difference. The command is called in
this process: the interpreter's start and its imports are in `imports`. The file is opened, read and
closed each time; the last figure is what it was before: each run folded from its facts.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from click.testing import CliRunner
from timing import QUICK, Line, Samples, Work, measured, timed

from turnlock import Call, Kernel, OpenTurn, Run
from turnlock.cli.main import main
from turnlock.runtime.journal.contract import Appended, Summary
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.views.run_view import RunView
from turnlock.views.status import Status
from turnlock.views.tally import Asked

RUNS: Final = 1_000
BOUND: Final = 50.0
"""Milliseconds that the list may take."""
WAITING: Final = Summary(
    busy=True,
    status=Status.AWAITING_APPROVAL,
    waiting=1,
    doubts=0,
    turn_id="t",
    asked=Asked(turn_id="t", invocation_id="c", tool_name="pay", since=1.0),
)


def measure(rounds: int) -> list[Line]:
    """Fill a journal, and list it."""
    count = RUNS if rounds > QUICK else RUNS // 10
    with TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        asyncio.run(_fill(path, count))
        works: dict[str, Work] = {
            "page": timed(1, lambda: asyncio.run(_page(path))),
            "latest": timed(1, lambda: asyncio.run(_latest(path))),
            "command": timed(1, lambda: _command(path)),
            "folded": timed(1, lambda: asyncio.run(_folded(path))),
        }
        samples = measured(rounds, works)
    return [
        _line(samples["page"], f"Journal.runs, {count:,} runs", BOUND),
        _line(samples["latest"], f"Journal.latest, 50 of {count:,} that wait, and all", BOUND),
        _line(samples["command"], f"turnlock runs, {count:,} runs", BOUND),
        _line(samples["folded"], f"each of {count:,} runs folded", None),
        samples["folded"].over(samples["page"], "folded / Journal.runs"),
    ]


def _line(samples: Samples, name: str, bound: float | None) -> Line:
    return samples.line(name, "ms", scale=1e3, bound=bound)


async def _fill(path: Path, count: int) -> None:
    call = Call(invocation_id="c", tool_name="pay", arguments={}, requires_approval=True)
    async with await SqliteJournal.open(path) as journal:

        async def begin(number: int) -> None:
            run = Run(run_id=f"run-{number:06}")
            await journal.declare(run)
            facts = Kernel(run).receive(OpenTurn(turn_id="t", calls=(call,)), 1.0).facts
            kept = await journal.append(run.run_id, fence=None, after=0, facts=facts, busy=WAITING)
            if kept is not Appended.OK:
                raise AssertionError(kept)

        await asyncio.gather(*map(begin, range(count)))


async def _page(path: Path) -> None:
    async with await SqliteJournal.open(path, create=False) as journal:
        await journal.runs()


async def _latest(path: Path) -> None:
    async with await SqliteJournal.open(path, create=False) as journal:
        first = await journal.latest()
        found = len(first.entries)
        if first.next is not None:
            found += len((await journal.latest(before=first.next, limit=RUNS)).entries)
        if found != first.waiting:
            raise AssertionError(first)


async def _folded(path: Path) -> None:
    async with await SqliteJournal.open(path, create=False) as journal:
        for entry in await journal.runs():
            facts = [fact async for fact in journal.facts(entry.run.run_id)]
            if RunView.of(entry.run, facts).status is not Status.AWAITING_APPROVAL:
                raise AssertionError(entry)


def _command(path: Path) -> None:
    done = CliRunner().invoke(main, ["runs", "--db", str(path)])
    if done.exit_code:
        raise AssertionError(done.output)
