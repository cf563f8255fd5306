"""The power fails, at any moment: nothing that was acknowledged is lost.

A thousand cuts of each story with ``make crash``; here a sample of them.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs
import pytest

from turnlock import TurnlockError
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.runtime.journal.sqlite_file import PRIVATE

from ..crash.depth import DEEP
from . import stories
from .disk import Disk, Files, Written, cuts
from .ledger import Ledger, broken, goes_on
from .recorder import recorded

CUTS: Final = 1_000 if DEEP else 24
"""Of each story."""
CONTROLS: Final = 300 if DEEP else 45
"""Cuts of a story whose disk is not waited for."""
PAGES: Final = 12
"""After so many pages of the -wal file comes a checkpoint: many of them in a short story."""


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """A torn line beside the journal is passed over with a word of warning: thousands of them."""
    caplog.set_level(logging.CRITICAL)


Story: TypeAlias = Callable[[Path, Ledger], Coroutine[Any, Any, None]]


@attrs.frozen
class Recording:
    """What was done to the disk in a story, and what was acknowledged, and when."""

    disk: Disk
    ledger: Ledger


def played(folder: Path, story: Story, *, synchronous: str | None = None) -> Recording:
    """Have a story happen in a folder; `synchronous` instead of what the journal asks for."""
    place = folder / "played"
    place.mkdir()
    with recorded(place, synchronous=synchronous, checkpoint=PAGES) as disk:
        ledger = Ledger(disk)
        asyncio.run(story(place, ledger))
    return Recording(disk, ledger)


def cut(told: Recording, folder: Path, *, times: int, seed: int = 1) -> list[str]:
    """Cut the power so often, at any moment, and return what is wrong then.

    Half of the cuts fall into checkpoints, when the main file is being written.
    """
    draw = random.Random(seed)
    main = told.disk.names[stories.NAME]
    writes = [
        moment
        for moment, change in enumerate(told.disk.changes)
        if isinstance(change, Written) and change.file == main and moment >= told.ledger.start
    ]
    moments = [
        draw.choice(writes) if number % 2 else draw.randint(told.ledger.start, told.disk.now)
        for number in range(times)
    ]

    async def look() -> list[str]:
        found: list[str] = []
        for number, (moment, files) in enumerate(cuts(told.disk.changes, moments, seed)):
            place = folder / f"cut-{number}"
            place.mkdir()
            wrong = await _left(told.ledger, moment, files, place)
            found += [f"{one} (cut {number}, at {moment} of {told.disk.now})" for one in wrong]
        return found

    return asyncio.run(look())


async def _left(ledger: Ledger, moment: int, files: Files, place: Path) -> list[str]:
    """Start the machine again, and hold what is there to what was acknowledged."""
    for name, content in files.items():
        (place / name).write_bytes(content)
        (place / name).chmod(PRIVATE)
    path = place / stories.NAME
    if not path.exists() and not ledger.promised(moment):
        return []
    try:
        async with await SqliteJournal.open(path, create=False) as journal:
            return await broken(journal, ledger, moment) or await goes_on(journal, ledger)
    except TurnlockError as error:
        return [f"refused: {error}"]


def kinds(wrong: Sequence[str]) -> set[str]:
    return {one.partition(":")[0] for one in wrong}


@pytest.mark.parametrize("story", [stories.many_hands, stories.runtime, stories.migration])
def test_nothing_acknowledged_is_lost_with_the_power(tmp_path: Path, story: Story) -> None:
    """Not a fact, claim, fence, snapshot, note, post or answer; nothing is taken for damage, and
    each run goes on."""
    told = played(tmp_path, story)

    assert cut(told, tmp_path, times=CUTS) == []
    print(f"{story.__name__}: {CUTS} cuts among {told.disk.now} changes of the disk")


def test_without_waiting_for_the_disk_facts_are_lost(tmp_path: Path) -> None:
    """Control, ``synchronous=OFF``: facts are gone, the file is damaged, or no journal any more."""
    told = played(tmp_path, stories.many_hands, synchronous="OFF")

    wrong = cut(told, tmp_path, times=CONTROLS)
    assert kinds(wrong) >= {"lost", "refused"}
    print(f"{len(wrong)} losses in {CONTROLS} cuts, such as {wrong[0]}")


def test_without_waiting_for_the_disk_tools_run_unrecorded(tmp_path: Path) -> None:
    """Control, ``synchronous=OFF``: a tool has begun, and its claim is gone with the power."""
    told = played(tmp_path, stories.runtime, synchronous="OFF")

    assert "unrecorded" in kinds(cut(told, tmp_path, times=CONTROLS))


def test_waiting_at_checkpoints_alone_loses_what_came_last(tmp_path: Path) -> None:
    """Control, ``synchronous=NORMAL``: the file stays whole, and the last commits are gone.

    Of some runs it is noticed that they end before what was acknowledged.
    """
    told = played(tmp_path, stories.many_hands, synchronous="NORMAL")

    found = kinds(cut(told, tmp_path, times=CONTROLS))
    assert "lost" in found
    assert found <= {"lost", "rewound"}


def test_what_the_recorder_does_not_see_it_complains_of(tmp_path: Path) -> None:
    """Otherwise a file that is written in a new way would be cut as if nothing were written."""
    with pytest.raises(AssertionError, match="unseen"), recorded(tmp_path):
        (tmp_path / "unseen").write_bytes(b"by io, not by os")
