"""Real processes that suffer two things at once, and are killed: nothing is lost, or done twice.

Real processes need real time; the long form is `make crash`.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Final

import pytest

from .checks import violations
from .depth import DEEP
from .kills import child, left_behind
from .torments import Torment, answers, ends, replaced, tormented

ROUNDS: Final = 25 if DEEP else 3
"""Hosts of each seed that suffer something."""
TURNS: Final = 4
"""That there are for each of them: so the last turn is not reached before the last."""
SEEDS: Final = range(8) if DEEP else range(1)


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_two_things_happen(tmp_path: Path, seed: int) -> None:
    """Clocks, blocked loops, hostile results, hung threads, bad posts, rivals: two at a time."""
    turns = TURNS * ROUNDS
    posted = tormented(tmp_path, seed=seed, rounds=ROUNDS, turns=turns)

    world = left_behind(tmp_path)
    names = [f"t{number}" for number in range(1, turns + 1)]
    assert violations(world, names) == [], (tmp_path / "stderr").read_text()
    assert answers(tmp_path, posted) == {"unanswered": [], "believed": []}
    print(f"seed {seed}: {len(world.facts())} facts, {len(world.begun)} executions, {posted}")


@pytest.mark.parametrize("modes", [(), ("choking",)], ids=["set aside", "the control"])
def test_bad_posts_stand_in_nobodys_way(tmp_path: Path, modes: tuple[str, ...]) -> None:
    """The control: whoever cannot read a post reads none behind it."""
    torments = (Torment.POSTS, Torment.CLOCK)
    posted = tormented(tmp_path, *modes, seed=1, rounds=1, turns=6, torments=torments)

    found = answers(tmp_path, posted)
    assert found["unanswered"] == ([] if not modes else [*posted.good, *posted.bad])
    assert found["believed"] == []


@pytest.mark.parametrize("modes", [(), ("careless",)], ids=["looks", "the control"])
def test_an_owner_whose_file_was_replaced_stops(tmp_path: Path, modes: tuple[str, ...]) -> None:
    """It ends by itself, and what it has written since is one commit at most, that was under way.

    The control: it goes on for as long as it likes, into a file that nobody will find.
    """
    with child(tmp_path, "owner", 400, *modes) as host:
        assert host.says("owner")
        while ends(tmp_path / "journal.db") < 20:
            time.sleep(0.01)
        replaced(tmp_path)
        before = ends(tmp_path / "moved.db")
        try:
            status = host.process.wait(timeout=2 if modes else 60)
        except subprocess.TimeoutExpired:
            status = None

    written = ends(tmp_path / "moved.db") - before
    assert (status, written < 20) == ((None, False) if modes else (3, True)), written
