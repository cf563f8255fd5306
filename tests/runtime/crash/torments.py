"""Hosts in processes of their own, each of which suffers two things at once, and is killed."""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from enum import StrEnum
from pathlib import Path
from typing import Final

import attrs

from turnlock import Tick
from turnlock.models.codec import to_json
from turnlock.runtime.journal.rows import checksum
from turnlock.runtime.journal.sqlite import SqliteJournal

from .kills import LEASE, Child, child

STEPS: Final = (45.0, -45.0, 86_400.0, -86_400.0)
"""Seconds by which the wall clock of a host is off."""


class Torment(StrEnum):
    """What one host suffers."""

    CLOCK = "its wall clock is off"
    BLOCKED = "its loop is held up for longer than it owns anything"
    HOSTILE = "its tools return what ends whoever reads it"
    HUNG = "its tools hang"
    POSTS = "posts that nobody can read are left for it, and others"
    RIVAL = "it is stopped until another has taken its run, and goes on"


_MODES: Final = {Torment.BLOCKED: "blocked", Torment.HOSTILE: "hostile", Torment.HUNG: "hung"}


@attrs.frozen
class Posted:
    """Posts that were left: those that must be answered, and those that nobody can read."""

    good: list[int] = attrs.field(factory=list[int])
    bad: list[int] = attrs.field(factory=list[int])


def tormented(
    folder: Path,
    *modes: str,
    seed: int,
    rounds: int,
    turns: int,
    torments: Sequence[Torment] = tuple(Torment),
) -> Posted:
    """Have so many hosts suffer two of these each, and be killed; then let one finish in peace.

    `modes` are for all of them.
    """
    draw = random.Random(f"torments {seed}")
    posted = Posted()
    for number in range(rounds):
        suffered = draw.sample(torments, 2)
        suffers = (*modes, *_modes(suffered, draw))
        with ExitStack() as hosts:
            name = f"{seed} {number}"
            host = hosts.enter_context(child(folder, name, turns, *suffers))
            if not host.says("owner"):
                continue
            time.sleep(draw.uniform(0.0, 0.2))
            if Torment.POSTS in suffered:
                _post(folder, posted, draw)
            if Torment.RIVAL in suffered:
                rival = hosts.enter_context(child(folder, f"{name} rival", turns, *suffers))
                _replaced_by(rival, host)
                draw.choice((host, rival)).process.kill()
            time.sleep(draw.uniform(0.0, 0.5))
    with child(folder, f"{seed} last", turns, *modes) as host:
        assert host.end() == 0, (folder / "stderr").read_text()
    return posted


def _modes(suffered: Sequence[Torment], draw: random.Random) -> Iterator[str]:
    for torment in suffered:
        if torment is Torment.CLOCK:
            yield f"ahead={draw.choice(STEPS)}"
        elif torment in _MODES:
            yield _MODES[torment]


def _replaced_by(rival: Child, host: Child) -> None:
    """Stop a host until its rival has its run, which may come to nothing where all is done."""
    host.stop()
    time.sleep(LEASE)
    rival.says("owner")
    host.go_on()


def _post(folder: Path, posted: Posted, draw: random.Random) -> None:
    """Leave posts as another process: a damaged one, one of a newer version, and then good ones."""
    good = to_json(Tick())
    newer = json.dumps({**json.loads(good), "version": 99}).encode()
    rows: list[tuple[bytes, int | None]] = [
        (good, checksum(b"other", "r")),
        (newer, checksum(newer, "r")),
    ]
    draw.shuffle(rows)
    rows += [(good, checksum(good, "r")), (good, None)]
    add = "INSERT INTO posts (run, delivery, checksum) SELECT number, ?, ? FROM runs"
    with closing(sqlite3.connect(folder / "journal.db", timeout=60)) as connection, connection:
        numbers = [connection.execute(add, row).lastrowid or 0 for row in rows]
    posted.bad.extend(numbers[:2])
    posted.good.extend(numbers[2:])


def answers(folder: Path, posted: Posted) -> dict[str, list[int]]:
    """Return which of the posts have no answer, or another than they must have."""

    async def look() -> dict[str, list[int]]:
        found: dict[str, list[int]] = {"unanswered": [], "believed": []}
        async with await SqliteJournal.open(folder / "journal.db", create=False) as journal:
            for number in (*posted.good, *posted.bad):
                answer = await journal.answered("r", number)
                if answer is None:
                    found["unanswered"].append(number)
                elif answer["accepted"] is (number in posted.bad):
                    found["believed"].append(number)
        return found

    return asyncio.run(look())


def replaced(folder: Path) -> None:
    """Move the journal away under its owner, and put a copy of it in its place."""
    path, copied = folder / "journal.db", folder / "copy.db"
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copied)) as copy:
        source.backup(copy)
    for end in ("", "-wal", "-shm"):
        path.with_name(path.name + end).rename(folder / f"moved.db{end}")
    copied.rename(path)


def ends(path: Path) -> int:
    """Return where the run ends in a file."""
    with closing(sqlite3.connect(path)) as connection:
        found: int = connection.execute("SELECT sequence FROM runs").fetchone()[0]
        return found
