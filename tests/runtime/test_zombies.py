"""An owner that stands still beyond its lease, and wakes up when another has its runs."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Final

import attrs
import pytest

from turnlock.models.facts import ExecutionInDoubt, RetryAuthorised

from .crash import explore
from .crash.checks import violations
from .crash.child import LONG_LEASE
from .crash.depth import DEEP
from .crash.explore import Stage, haunted, played, points
from .crash.kills import LEASE, TIMEOUT, child, left_behind
from .crash.usecase import UseCase
from .crash.usecases import CHAINED, FREE, SECOND, TWO_RUNS, USE_CASES
from .crash.world import RUN, Slow, World

DAY: Final = 86_400.0
STRIDE: Final = 1 if DEEP else 3
"""Steps from one pause to the next; 3, because no divisor of it divides the number of `WAKING`."""
SLOWLY: Final = USE_CASES if DEEP else (FREE, CHAINED, TWO_RUNS)
WAKING: Final = (0.0, 0.5, 1.5, None)
"""Seconds after the next owner began at which the one before goes on; None: after its end."""


@pytest.mark.parametrize("case", USE_CASES, ids=lambda case: case.name)
def test_a_zombie_at_every_step(case: UseCase) -> None:
    """It may stand still anywhere: what it does when it goes on changes nothing that was done."""
    plays = [
        haunted(case, step, wakes_after=wakes_after)
        for step, wakes_after in zip(range(1, points(case) + 1, STRIDE), cycle(WAKING))
    ]

    assert [(one.deaths, one.steps, one.wrong) for one in plays if one.wrong][:3] == []
    assert all(one.world.lives == 2 for one in plays)


@pytest.mark.parametrize("case", SLOWLY, ids=lambda case: case.name)
def test_a_zombie_whose_claim_is_on_its_way_with_the_opening(case: UseCase) -> None:
    """A slow disk: it stands still before both are kept, and before it is told that they are."""
    stage = Stage(wrapped=Slow)
    (steps,) = played(case, stage=stage).steps
    plays = [
        haunted(case, step, wakes_after=wakes_after, stage=stage)
        for step, wakes_after in zip(range(1, steps + 1, 2 * STRIDE), cycle(WAKING))
    ]

    assert [(one.deaths, one.steps, one.wrong) for one in plays if one.wrong][:3] == []


def test_two_hosts_that_hold_a_run_each_and_wait_for_the_others_do_not_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The control: each was told who has it (`JournalOwned`), and asks again for ever.

    A host that does for a run what it can, whoever has the other, is `TWO_RUNS`.
    """
    monkeypatch.setattr(explore, "TIMEOUT", 400.0)
    waiting = attrs.evolve(TWO_RUNS, first=(RUN, SECOND))
    stage = Stage(wrapped=Slow)
    (steps,) = played(waiting, stage=stage).steps
    plays = (haunted(waiting, step, wakes_after=0.5, stage=stage) for step in range(1, steps + 1))

    assert any("lives: life 2 does not end" in one.wrong for one in plays)


def comes(seen: Callable[[], bool]) -> None:
    """Wait until something is seen, for as long as a busy machine may need."""
    give_up = time.monotonic() + TIMEOUT
    while not seen():
        assert time.monotonic() < give_up
        time.sleep(0.05)


def done(folder: Path, what: str) -> int:
    """How often tools have said so in their ledger."""
    return (folder / "ledger").read_text().count(f'"what": "{what}"')


def is_fenced(folder: Path) -> bool:
    """Whether a process there has learned that its run is another's."""
    return "was taken over" in (folder / "stderr").read_text()


def stopped(folder: Path, *modes: str) -> World:
    """Stop a host for real while its tool runs; another takes over; then let the first go on.

    The tool sits in a thread, which ends and reports when the process goes on: while the heir asks
    a person about it, who says afterwards to try again.
    """
    with child(folder, "zombie", 1, "hold", *modes) as zombie:
        assert zombie.says("running")
        zombie.stop()
        time.sleep(2 * LEASE)
        with child(folder, "heir", 1, "hold") as heir:
            assert heir.says("doubt")
            zombie.go_on()
            comes(lambda: done(folder, "end") > 0)  # its tool has done what it does
            if modes:
                time.sleep(3 * LEASE)
            else:
                comes(lambda: is_fenced(folder))
            (folder / "answer").touch()
            heir.end()
        time.sleep(LEASE)
    return left_behind(folder)


def beside(folder: Path, *modes: str, sleeps: bool = False) -> World:
    """Have a tool run in one process, and another that wants its run, for a while.

    The first mode is of both, and the others of the other.
    """
    with child(folder, "owner", 1, "hold", "long", *modes[:1]) as owner:
        assert owner.says("running")
        with child(folder, "other", 1, "hold", "long", *modes) as other:
            assert other.says("doubt" if "alone" in modes else "up")
            if sleeps:
                (folder / "slept.new").write_text("3600")
                (folder / "slept.new").rename(folder / "slept")
            time.sleep(LONG_LEASE)
            (folder / "end").touch()
            (folder / "answer").touch()
            owner.end()
            other.end()
    return left_behind(folder)


def is_undisturbed(world: World) -> bool:
    """Whether the tool was run once and is in no doubt."""
    doubted = any(isinstance(fact, ExecutionInDoubt) for fact in world.facts())
    return [begun.attempt for begun in world.begun] == [1] and not doubted


@pytest.mark.parametrize("step", [-DAY, -45.0, 45.0, DAY] if DEEP else [45.0])
def test_a_host_whose_clock_was_set_robs_nobody(tmp_path: Path, step: float) -> None:
    """The result is kept; the other finds everything done when it has the run.

    Real processes, which agree on a clock that nobody sets.
    """
    world = beside(tmp_path, "as it is", f"ahead={step}")

    assert violations(world, ["t1"]) == []
    assert is_undisturbed(world)


def test_a_host_that_counts_by_its_wall_clock_robs_the_owner(tmp_path: Path) -> None:
    """The control."""
    assert not is_undisturbed(beside(tmp_path, "as it is", "ahead=45", "alone"))


def test_a_machine_that_sleeps_while_two_hosts_run_robs_nobody(tmp_path: Path) -> None:
    """Both wake up an hour later by their clock; the one that waits for the run looks twice."""

    world = beside(tmp_path, "sleeps", sleeps=True)

    assert violations(world, ["t1"]) == []
    assert is_undisturbed(world)
    assert world.facts()[-1].at - world.facts()[0].at > 3_600.0


def stopped_before_its_tool(folder: Path, *modes: str) -> World:
    """Stop a host for real when its tool is claimed and not begun; then let it go on.

    The heir's person is asked meanwhile, sees nothing done, and says to try again.
    """
    with child(folder, "zombie", 1, "hold", "late", *modes) as zombie:
        assert zombie.says("running")
        zombie.stop()
        time.sleep(2 * LEASE)
        with child(folder, "heir", 1, "hold") as heir:
            assert heir.says("doubt")
            (folder / "answer").touch()
            heir.end()
        zombie.go_on()
        comes(lambda: is_fenced(folder) if not modes else done(folder, "begin") > 1)
    return left_behind(folder)


def test_a_host_stopped_before_its_tool_does_not_begin_it(tmp_path: Path) -> None:
    """SIGSTOP between the claim and the call, SIGCONT when another has done it: done once."""
    world = stopped_before_its_tool(tmp_path)

    assert violations(world, ["t1"]) == []
    assert [begun.attempt for begun in world.begun] == [2]


def test_without_a_look_at_the_clock_it_begins_it(tmp_path: Path) -> None:
    """The control: the tool's first line runs after the heir did it."""
    world = stopped_before_its_tool(tmp_path, "unasked")

    assert [begun.attempt for begun in world.begun] == [2, 1]


def test_a_stopped_owner_is_fenced_when_it_goes_on(tmp_path: Path) -> None:
    """SIGSTOP beyond its lease, SIGCONT: what it says is not kept, and no execution is unrecorded.

    Real processes need real time.
    """
    world = stopped(tmp_path)

    assert violations(world, ["t1"]) == []
    assert "was taken over" in (tmp_path / "stderr").read_text()
    attempts = Counter(begun.key for begun in world.begun)
    assert attempts.most_common(1)[0][1] == 2
    assert any(isinstance(fact, RetryAuthorised) for fact in world.facts())


def test_without_the_fence_a_stopped_owner_writes(tmp_path: Path) -> None:
    """The control: a journal that does not heed the fence lets it."""
    world = stopped(tmp_path, "unfenced")

    assert any(wrong.startswith("one_writer") for wrong in violations(world, ["t1"]))
