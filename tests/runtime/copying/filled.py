"""Journals that hold some of everything, and what they hold, for those that are copied."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

import attrs
from tests.runtime.journal.backends import PLACES
from tests.runtime.journal.stage import RUN, facts, kept, note, said, told_run

from turnlock import Call, Run
from turnlock.models.deliveries import AddCall, Tick
from turnlock.models.facts import ToolExecutionStarted
from turnlock.models.record import changed
from turnlock.runtime.copying import LOG
from turnlock.runtime.journal import ledger
from turnlock.runtime.journal.contract import Journal, Summary, open_journal
from turnlock.runtime.journal.ledger import START, Domain
from turnlock.views.status import Status

NOW: Final = 1_000.0
EMPTY, LONG, GONE, STOOD = "nothing happened", "long\n", "gone", "it's rewound"
WORKER: Final = "w-1"
WHY: Final = "the disk was lost"
SUMMARY: Final = Summary(busy=True, status=Status.EXECUTING, waiting=2, doubts=0, turn_id="t")
PAIRS: Final = [
    pair
    for pair in (
        ("sqlite", "sqlite"),
        ("sqlite", "memory"),
        ("memory", "sqlite"),
        ("sqlite", "postgresql"),
        ("postgresql", "sqlite"),
    )
    if {*pair} <= PLACES.keys()
]
"""From which kind to which."""


async def place(kind: str, folder: Path) -> Journal:
    """Open the journal of a folder."""
    await asyncio.to_thread(folder.mkdir, exist_ok=True)
    return await open_journal(PLACES[kind].url(folder))


async def fill(journal: Journal, *, length: int = 40) -> None:
    """Keep some of everything."""
    await journal.put_worker(WORKER, "host:1:boot")
    await journal.declare(RUN)
    fence = await journal.own(RUN.run_id, owner="ada", now=NOW, lease=1.0)
    before = [note("old", at=0.0), note("manifest", Domain.SESSION), note("older", at=0.0)]
    await journal.note(RUN.run_id, fence=fence, notes=[*before, said("m", id="said/1")])
    told, kernel = told_run()
    told = [
        changed(it, worker=WORKER) if isinstance(it, ToolExecutionStarted) else it for it in told
    ]
    about = [b'{"turn_id":"there"}', *([None] * (len(told) - 1))]
    await journal.append(
        RUN.run_id,
        fence=fence,
        after=0,
        facts=told,
        busy=Summary(busy=False, status=Status.IDLE, waiting=0, doubts=0),
        notes=[note("between", after=told[0].commit), said("late", correlation={"n": 1.5})],
        correlations=about,
    )
    await journal.prune(RUN.run_id, fence=fence, now=ledger.OBSERVED_FOR + 1.0)
    await journal.keep_snapshot(kernel.snapshot(), fence=fence)
    await journal.note(RUN.run_id, fence=fence, notes=[note("last")])
    await journal.post(RUN.run_id, Tick())
    call = Call(invocation_id="c", tool_name="pay", arguments={"to": "x"}, requires_approval=True)
    await journal.post(RUN.run_id, AddCall(turn_id="turn-1", call=call))
    await journal.release(RUN.run_id, fence=fence)
    for run_id in (EMPTY, LONG, GONE, STOOD):
        await journal.declare(Run(run_id=run_id, agent_name=run_id))
    await journal.note(EMPTY, fence=None, notes=[said("hello")])
    for after in range(0, length, 4):
        some = facts(4, after=after, commit=2, run_id=LONG)
        await journal.append(
            LONG, fence=None, after=after, facts=some, busy=SUMMARY, notes=[note(after)]
        )
    await kept(journal, facts(3, run_id=STOOD), None, busy=True)
    await journal.mark_rewound(STOOD, why=WHY)
    entry = await journal.entry(GONE)
    await journal.forget(GONE, fence=entry.fence, after=entry.sequence, at=NOW)
    for log in ("w", "w/c"):
        for number in range(3):
            await journal.append_entry(log, f"e{number}", {"n": number}, at=NOW + number)


async def held(journal: Journal) -> dict[str, Any]:
    """All that is copied, but for what says how far the copy is."""
    found: dict[str, Any] = {"worker": await journal.worker(WORKER)}
    async for entry in journal.run_entries(forgotten=True):
        run_id = entry.run.run_id
        kept_of = attrs.evolve(entry, fence=0, owner=None, owned_until=None, rewound=None)
        if entry.forgotten is not None:
            found[run_id] = (entry.run, entry.forgotten)
            continue
        page = await journal.ledger(run_id, after=START, manifests=True)
        posts = [it.delivery for it in await journal.posts([run_id])]
        found[run_id] = (
            kept_of,
            list(page.entries),
            list(page.gaps),
            await journal.notes(run_id),
            await journal.snapshot(run_id),
            posts,
        )
    for log in await journal.logs():
        if log.name != LOG:
            found[f"log {log.name}"] = await journal.entries(log.name)
    return found
