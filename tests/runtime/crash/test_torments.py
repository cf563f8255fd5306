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
from .kills import Child, child, left_behind
from .torments import Torment, answers, ends, replaced, tormented

ROUNDS: Final = 25 if DEEP else 3
"""Hosts of each seed that suffer something."""
TURNS: Final = 4
"""That there are for each of them: so the last turn is not reached before the last."""
SEEDS: Final = range(8) if DEEP else range(1)


def ended(host: Child, *, within: float) -> int | None:
    """Return the status with which a host ends; None if it goes on."""
    try:
        return host.process.wait(timeout=within)
    except subprocess.TimeoutExpired:
        return None


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


@pytest.mark.parametrize("modes", [(), ("trusting",)], ids=["elsewhere", "the control"])
def test_results_that_end_whoever_reads_them_end_nobody(
    tmp_path: Path, modes: tuple[str, ...]
) -> None:
    """The control: read on the loop, or in a thread that minds its `Exception` alone, the first of
    them ends the process, or leaves it waiting for ever."""
    with child(tmp_path, "host", 6, "hostile", *modes) as host:
        status = ended(host, within=3 if modes else 60)

    assert (status == 0) is not bool(modes)
    errors = [getattr(fact, "error", "") for fact in left_behind(tmp_path).facts()]
    assert any("its result cannot be kept" in error for error in errors) is not bool(modes)


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
        status = ended(host, within=2 if modes else 60)

    written = ends(tmp_path / "moved.db") - before
    assert (status, written < 20) == ((None, False) if modes else (3, True)), written
