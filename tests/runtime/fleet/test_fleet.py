"""Hosts in processes of their own on one journal: they come and go, die and stand still.

Real processes need real time; the long form is `make fleet`, and `make crash` plays some.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from tests.postgres.servers import journal_url

from ..crash.depth import DEEP
from . import controls
from .fleet import Fleet, Nemesis, Played, played
from .play import Play


def sqlite_url(folder: Path) -> str:
    return f"sqlite:{folder / 'journal.db'}"


URLS: Final[dict[str, Callable[[Path], str]]] = {"sqlite": sqlite_url, "postgresql": journal_url}
"""By the kind of journal."""
KINDS: Final = tuple(URLS) if DEEP else ("postgresql",)
SEEDS: Final = range(3)
BOTH: Final = (controls.UNFENCED, controls.UNORDERED)


def ended(folder: Path, *, kind: str, seed: int, off: tuple[str, ...] = ()) -> Played:
    """Play a fleet to its end; where something is switched off, hosts only stand still."""
    folder = folder / f"{seed}"
    folder.mkdir()
    play = Play(
        url=URLS[kind](folder),
        ledger=str(folder / "ledger"),
        runs=100 if DEEP else 16,
        turns=3 if DEEP or off else 2,
        lease=2.0 if DEEP else 1.0,
        hosts=3 if DEEP and not off else 2,
        slow=1.0 if off else 0.02,  # then whoever is stopped has much under way
        refused=0.8 if controls.UNASKED in off else 0.1,
        faults=off,
    )
    found = asyncio.run(
        played(
            Fleet(
                play=play,
                seed=str(seed),
                seconds=20.0 if DEEP else 4.0 if off else 3.0,
                nemeses=(Nemesis.STOP,) if off else tuple(Nemesis),
                spared=1 if off else 0,
                within=10.0 if off else 60.0,
            )
        )
    )
    print(found)
    return found


def until(folder: Path, name: str, *, kind: str, off: tuple[str, ...]) -> Counter[str]:
    """Play until a violation of this name is found, a few times at most; return all by name."""
    found: Counter[str] = Counter()
    for seed in SEEDS:
        found += Counter(it.name for it in ended(folder, kind=kind, seed=seed, off=off).violations)
        if found[name]:
            break
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS if DEEP else SEEDS[:1])
def test_a_fleet_does_everything_once(tmp_path: Path, kind: str, seed: int) -> None:
    """Hosts are killed, stopped and asked to leave, with clocks half a minute apart."""
    found = ended(tmp_path, kind=kind, seed=seed)

    assert list(map(str, found.violations)) == [], found
    assert found.executions
    assert sum(found.happened.values())


@pytest.mark.parametrize("kind", KINDS)
def test_without_fence_and_sequence_a_fleet_does_things_twice(tmp_path: Path, kind: str) -> None:
    """The control: whoever stood still goes on, and is told that what it writes is kept."""
    found = until(tmp_path, "ran_twice", kind=kind, off=BOTH)

    assert found["ran_twice"]
    assert found["lost_facts"]


@pytest.mark.skipif(not DEEP, reason="make crash, make fleet: minutes")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("off", BOTH)
def test_one_of_them_alone_is_caught_by_the_other(tmp_path: Path, kind: str, off: str) -> None:
    found = ended(tmp_path, kind=kind, seed=1, off=(off,))

    assert not found.named("ran_twice")


@pytest.mark.skipif(not DEEP, reason="make crash, make fleet: minutes")
@pytest.mark.parametrize("kind", KINDS)
def test_who_makes_sure_of_nothing_hands_over_what_another_has(tmp_path: Path, kind: str) -> None:
    """The control of D-19."""
    found = until(tmp_path, "handed_over_by_the_taken", kind=kind, off=(controls.UNASKED,))

    assert found["handed_over_by_the_taken"]
