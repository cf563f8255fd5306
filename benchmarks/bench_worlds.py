"""Worlds of agents: what members cost that wait, and how fast those are that talk.

`idle` are members of one world, in chats of two, that have nothing to do: what the process that
hosts them takes of a core, and what one more takes of memory. `answers` is two scripted agents in
each of many chats in which a person says five things at once, on one SQLite file, until all is
said; beside it the bare appends of the same run: as many notes, facts and entries, each in a
transaction of its own, as fast as the file takes them one after the other. `say → heard` is from
when a message is said to when the note that it was heard is kept, in one process, beside two
appends. All times but that
of idling are of a clock on the wall.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import tempfile
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, Final

from timing import QUICK, Line

from turnlock.agent import Answer, Ended, Question, Said
from turnlock.models.run import Run
from turnlock.runtime import open_journal
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.ledger import Domain, Note
from turnlock.world import AgentSpec, Host, World

MEMBERS: Final = 1_000
CHATS: Final = 100
WORDS: Final = 5
"""What is said in each chat, at once."""
SAYINGS: Final = 200
SECONDS: Final = 10.0
IDLE: Final = 0.02
"""What `MEMBERS` idle members may take of a core."""
BYTES: Final = 20_000
"""What each of these may take of memory."""
ANSWERS: Final = 300
"""Answers a second that there are to be at least."""


class Brief:
    """A model that says one word at once."""

    async def speak(self, question: Question) -> AsyncIterator[Said]:  # noqa: ARG002 - as Model
        """Say it."""
        yield Ended(Answer(text="yes"))

    async def close(self) -> None:
        """Nothing is open."""


async def _made(journal: Journal, chats: int) -> World:
    world = World(journal, "w")
    await world.make()
    for name in ("alice", "bob"):
        await world.put_agent(name, AgentSpec(model="test:brief"))
    for number in range(chats):
        await world.open_chat(f"c{number}")
        await world.title(f"c{number}", "A chat", by="me")
    return world


def _host(journal: Journal) -> Host:
    return Host(journal, "w", models={"test:brief": Brief()})


async def _idle(members: int, seconds: float) -> tuple[float, float]:
    """Return the share of a core, and bytes each."""
    with tempfile.TemporaryDirectory() as folder:
        async with await open_journal(Path(folder, "w.db")) as journal:
            await _made(journal, members // 2)
            gc.collect()
            async with _host(journal) as host:
                await host.idle()
                gc.collect()
                began = process_time()
                await asyncio.sleep(seconds)
                share = (process_time() - began) / seconds
            gc.collect()
            tracemalloc.start()
            try:
                async with _host(journal) as host:
                    await host.idle()
                    gc.collect()
                    size, _ = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            return share, size / members


async def _answers(chats: int) -> tuple[float, float]:
    """Return seconds for each answer, and for each bare append of as much."""
    with tempfile.TemporaryDirectory() as folder:
        async with await open_journal(Path(folder, "w.db")) as journal:
            world = await _made(journal, chats)
            async with _host(journal) as host:
                await host.idle()
                began = perf_counter()
                await asyncio.gather(
                    *(
                        world.chat(f"c{number}").say("me", "@alice @bob well?", message_id=f"{it}")
                        for number in range(chats)
                        for it in range(WORDS)
                    )
                )
                await host.idle()
                spent = perf_counter() - began
            answers = 0
            for number in range(chats):
                answers += len(await journal.entries(f"w/c{number}")) - WORDS
            if answers != 2 * chats * WORDS:
                raise AssertionError(answers)
        return spent / answers, await _bare(Path(folder, "bare.db"), answers)


async def _bare(place: Path, answers: int) -> float:
    """Return the seconds of two notes and one entry, one after the other."""
    async with await open_journal(place) as journal:
        await journal.declare(Run(run_id="r"))
        fence = await journal.own("r", owner="o", now=0.0, lease=1e9)
        began = perf_counter()
        for number in range(answers):
            for name in ("heard", "said"):
                note_id = f"{name}/{number}"
                body: dict[str, Any] = {"id": note_id, "text": "yes"}
                note = Note(domain=Domain.MESSAGE, kind="user", body=body, at=1.0, id=note_id)
                await journal.note("r", fence=fence, notes=(note,))
            await journal.append_entry("l", f"{number}", {"text": "yes"}, at=1.0)
        return (perf_counter() - began) / answers


async def _heard(sayings: int) -> tuple[list[float], list[float]]:
    """Return the seconds from each saying to its hearing, and of two appends."""
    with tempfile.TemporaryDirectory() as folder:
        async with await open_journal(Path(folder, "w.db")) as journal:
            world = await _made(journal, 1)
            chat = world.chat("c0")
            heard: list[float] = []
            appends: list[float] = []
            async with _host(journal) as host:
                await chat.say("me", "@alice well?", message_id="m0")
                kept = asyncio.Event()
                host.runtime.when_kept(lambda _: kept.set())
                for number in range(1, sayings + 1):
                    await host.idle()
                    began = perf_counter()
                    await journal.append_entry("bare", f"{number}/a", {"a": 1}, at=1.0)
                    await journal.append_entry("bare", f"{number}/b", {"a": 1}, at=1.0)
                    appends.append(perf_counter() - began)
                    kept.clear()
                    began = perf_counter()
                    await chat.say("me", "@alice well?", message_id=f"m{number}")
                    note = None
                    while note is None:  # what is told late of the answer before is not it
                        await kept.wait()
                        kept.clear()
                        spent = perf_counter() - began
                        note = await journal.find_note("w/c0/alice", f"said/{2 * number + 1}")
                    heard.append(spent)
    return heard, appends


def measure(rounds: int) -> list[Line]:
    """Measure each once: they are long."""
    quick = rounds <= QUICK
    members, chats, sayings = (20, 4, 5) if quick else (MEMBERS, CHATS, SAYINGS)
    share, size = asyncio.run(_idle(members, 0.5 if quick else SECONDS))
    answer, bare = asyncio.run(_answers(chats))
    heard, appends = asyncio.run(_heard(sayings))
    return [
        Line(
            name=f"{members:,} idle members, of a core",
            value=100 * share,
            unit="%",
            bound=None if quick else 100 * IDLE,
        ),
        Line(
            name=f"one of {members:,} idle members",
            value=size,
            unit="bytes",
            bound=None if quick else BYTES,
        ),
        Line(name=f"answers, {chats} chats of 2", value=1 / answer, unit="a second"),
        Line(
            name="one of these answers",
            value=1e3 * answer,
            unit="ms",
            bound=None if quick else 1e3 / ANSWERS,
        ),
        Line(name="bare appends of as much", value=1 / bare, unit="a second"),
        Line(name="an answer / its bare appends", value=answer / bare, unit="ratio"),
        Line(name="say → heard, p50", value=1e3 * statistics.median(heard), unit="ms"),
        Line(name="two appends, p50", value=1e3 * statistics.median(appends), unit="ms"),
        Line(
            name="say → heard / two appends",
            value=statistics.median(heard) / statistics.median(appends),
            unit="ratio",
            bound=None if quick else 1.0,
        ),
    ]
