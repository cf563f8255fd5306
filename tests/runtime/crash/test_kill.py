"""For real: a host is killed at random instants, with SQLite and a ledger outside of it.

Real processes need real time; the long form is `make crash`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from .checks import violations
from .child import Notebook, lines_of
from .depth import DEEP
from .kills import killed, left_behind

KILLS: Final = 50 if DEEP else 12
"""Of each seed."""
TURNS: Final = 6
"""That there are for each kill: so the last turn is not reached before the last kill."""
SEEDS: Final = range(8) if DEEP else range(1)


@pytest.mark.parametrize("seed", SEEDS)
def test_killed_at_random_instants(tmp_path: Path, seed: int) -> None:
    """Nothing is lost, nothing runs twice in silence, and every turn is settled at last."""
    turns = TURNS * KILLS
    count = killed(tmp_path, seed=seed, kills=KILLS, turns=turns)

    world = left_behind(tmp_path)
    assert violations(world, [f"t{number}" for number in range(1, turns + 1)]) == []
    assert count > KILLS // 2
    print(f"seed {seed}: {count} killed, {len(world.facts())} facts, {len(world.begun)} executions")


def test_a_line_that_a_kill_cut_off_spoils_no_other(tmp_path: Path) -> None:
    """Whoever opens the notebook next says that it was never finished."""
    path = tmp_path / "notes"
    Notebook(path).write(n=1)
    with path.open("a") as file:
        file.write('{"n": 2, "cut')
    Notebook(path).write(n=3)
    Notebook(path).write(n=4)

    assert [line["n"] for line in lines_of(path)] == [1, 3, 4]
