"""Concurrency as a technique of `turnlock verify`: threads, tasks and coroutines on our kernel."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from time import perf_counter
from typing import Final, TypeAlias

import attrs

from turnlock.verification.errors import HarnessFailed
from turnlock.verification.findings import Finding, Profile, Progress, Result, Status
from turnlock.verification.subjects.subject import Raw, Script

from .hosts import (
    LockedHost,
    appended_late,
    at_once,
    awaited,
    awaited_behind_lock,
    locked,
    unlocked,
)
from .linearizability import Linearized, Model
from .mixes import ending, mix
from .playing import (
    TECHNIQUE,
    Played,
    judged,
    lock_finding,
    play_awaited,
    play_steps,
    play_threads,
)
from .schedules import Schedule, explored
from .stories import RUN, STORIES, Story

BOUND: Final = {Profile.DEV: 1, Profile.CI: 2, Profile.NIGHTLY: 3}
"""Preemptions of one schedule, at most."""
RUNS: Final = {Profile.DEV: 1, Profile.CI: 10, Profile.NIGHTLY: 400}
"""Runs that real threads share, one after the other."""
TURNS: Final = 5
"""Turns of each that they fight about: one history for each turn."""
THREADS: Final = 6
OPERATIONS: Final = 8
"""Deliveries of each thread in a turn."""
SWITCH_INTERVAL: Final = 1e-5
"""Seconds after which the interpreter lets another thread go on; its default is 5 ms."""

GUARANTEE: Final = (
    "The kernel holds no lock and has one owner at a time; a host with threads holds one lock "
    "around receive and the append to its journal. Behind that lock, every schedule of the stories "
    "that needs no more preemptions than the bound, at the points between reading the state, "
    "working on it, writing it and appending, gave a history that some order of the deliveries "
    "explains (linearizable, per turn, against the oracle) and a journal that recovers to the "
    "kernel's state; so did coroutines of one event loop, behind a lock or awaiting nothing in "
    "between, in every order that departs from the loop's own no more often than the bound. Hosts "
    "without the lock were caught by the same schedules. Real threads gave such histories too, in "
    "the orders that this interpreter and machine happened to choose: that is evidence for the "
    "lock, not a proof, and says nothing about hosts without one, other interpreters, or more "
    "than one process."
)

Play: TypeAlias = Callable[[Story, Schedule], Played]


@attrs.define
class Figures:
    """What was run so far."""

    schedules: int = 0
    histories: int = 0
    operations: int = 0
    concurrent_pairs: int = 0
    steps_of_the_search: int = 0


def check(*, profile: Profile, progress: Progress, seed: int = 0) -> Result:
    """Run every schedule of the stories up to the profile's bound, then real threads.

    Raises `HarnessFailed` when the schedules do not catch hosts that are wrong: then they prove
    nothing.
    """
    began = perf_counter()
    bound = BOUND[profile]
    figures = Figures()
    finding = _explore(bound, figures, progress)
    if finding is None:
        _check_teeth(progress)
        finding = _threads(seed, RUNS[profile], figures, progress)
    return Result(
        technique=TECHNIQUE,
        status=Status.HOLDS if finding is None else Status.VIOLATED,
        guarantee=GUARANTEE,
        figures={
            "preemption_bound": bound,
            "stories": len(STORIES),
            "threads": THREADS,
            **attrs.asdict(figures),
        },
        findings=() if finding is None else (finding,),
        seconds=perf_counter() - began,
    )


RIGHT: Final[dict[str, Play]] = {
    "tasks behind the lock": partial(play_steps, locked),
    "coroutines that await nothing in between": partial(play_awaited, at_once),
    "coroutines behind a lock": partial(play_awaited, awaited_behind_lock),
}
"""Hosts as the documents ask, by how their tasks run."""
WRONG: Final[dict[str, Play]] = {
    "tasks without a lock": partial(play_steps, unlocked),
    "tasks that append when the lock is free again": partial(play_steps, appended_late),
    "coroutines that append without a lock": partial(play_awaited, awaited),
}
"""Hosts that the schedules must catch, with one preemption."""


def first_failure(play: Play, story: Story, *, bound: int, figures: Figures) -> Finding | None:
    """Run every schedule of a story within the bound, up to the first that is wrong."""
    model = Model.of(RUN, story.before)
    for played in explored(partial(play, story), bound=bound):
        figures.schedules += 1
        _, finding = _judged(played, story.before, model, figures)
        if finding is not None:
            return finding
    return None


def _judged(
    played: Played, before: Script, model: Model, figures: Figures
) -> tuple[Linearized, Finding | None]:
    found, finding = judged(played, before, model)
    figures.histories += 1
    figures.operations += len(played.history.operations)
    figures.concurrent_pairs += played.history.overlapping
    figures.steps_of_the_search += found.tried
    return found, finding


def _explore(bound: int, figures: Figures, progress: Progress) -> Finding | None:
    for name, play in RIGHT.items():
        for story in STORIES:
            progress(f"{name}: {story.name}, {figures.schedules} schedules so far")
            finding = first_failure(play, story, bound=bound, figures=figures)
            if finding is not None:
                return finding
    return None


def _check_teeth(progress: Progress) -> None:
    """Raise `HarnessFailed` unless every host that is wrong is caught, with one preemption."""
    progress("hosts that are wrong")
    for name, play in WRONG.items():
        if not any(first_failure(play, story, bound=1, figures=Figures()) for story in STORIES):
            raise HarnessFailed(f"{name} were not caught: these schedules prove nothing")


def _threads(seed: int, runs: int, figures: Figures, progress: Progress) -> Finding | None:
    """Let real threads fight about one turn after the other, a history for each turn."""
    draws = random.Random(seed)
    for number in range(runs):
        progress(f"{THREADS} threads, {number * TURNS} turns so far")
        host, model = LockedHost(RUN), Model.of(RUN)
        before: list[Raw] = []
        for turn in range(1, TURNS + 1):
            scripts = mix(draws, turn, threads=THREADS, operations=OPERATIONS)
            with _switching_often():
                played = play_threads(host, scripts)
            for delivery in ending(turn):
                invoked = played.history.stamp()
                played.history.add(delivery, host.receive(delivery), invoked)
            found, finding = _judged(played, before, model, figures)
            by_lock = model.after(host.taken[len(before) :])
            finding = finding or lock_finding(host.taken, by_lock, found)
            if finding is not None:
                return finding
            before, model = list(host.taken), by_lock
    return None


@contextmanager
def _switching_often() -> Generator[None, None, None]:
    """Let threads interrupt each other far more often than they would."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)
