"""Faults at every place of every recording: the run stays whole, and can be gone on with.

A process dies after each message, the server after each fact; one message is lost, said twice,
overtaken by the next, or malformed. Each time: nothing raises, no execute is owed, nothing is left
STARTED, every other demand is met (`demands.py`), and every refusal is explained.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, TypeAlias

import pytest

from turnlock.adapters.codex.demands import Witness
from turnlock.adapters.codex.messages import Asked, Notified
from turnlock.adapters.codex.normaliser import thread_of
from turnlock.adapters.codex.played import PlayedRun
from turnlock.adapters.codex.playing import Play
from turnlock.adapters.codex.restoring import announced as announced_in
from turnlock.adapters.codex.transcripts import Said, Step
from turnlock.adapters.contract import Manifest, SessionSpec
from turnlock.models.fact import Fact
from turnlock.models.facts import ToolExecutionSucceeded
from turnlock.models.values import Json
from turnlock.runtime.journal.ledger import Cursor, Noted

from ...runtime.crash.depth import DEEP
from .recordings import (
    NAMES,
    begun,
    died,
    doubled,
    heard,
    lost,
    malformed,
    overtaken,
    places,
    played,
    recording,
    sequel,
    shape,
    some,
    telling,
    wrong,
)

Fault: TypeAlias = Callable[[Sequence[Step], int], list[Step]]

FAULTS: Final[dict[str, Fault]] = {
    "lost": lost,
    "doubled": doubled,
    "overtaken": overtaken,
}
MALFORMED: Final = 1 if DEEP else 13
"""Of the malformed messages every so-manieth is played, another one of each shape."""
PAIRS: Final = 300 if DEEP else 2
"""Two faults at once: so many pairs of each recording."""


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", NAMES)
def test_one_fault_leaves_the_run_whole(name: str, fault: str) -> None:
    """Lost, said twice, overtaken by the next one: no single message is needed (S-33a, UC-006)."""
    steps = recording(name).steps
    for place in some(name, fault):
        play = played(begun(name), FAULTS[fault](steps, place))
        assert wrong(play) == [], f"{fault} at seq {steps[place].seq}"


@pytest.mark.parametrize("name", NAMES)
def test_after_its_process_died_a_thread_goes_on(name: str) -> None:
    """UC-008: at rest (S-26), another process resumes it; a command is approved, and succeeds."""
    steps = recording(name).steps
    for place in some(name, "died"):
        play = played(begun(name), died(steps[: place + 1], place))
        thread = next(iter(play.runs))
        played(play, sequel(thread))
        assert wrong(play) == [], f"dead after seq {steps[place].seq}"
        assert_went_on(play, thread)


SEVERAL: Final = tuple(it for it in NAMES if any(step.process for step in recording(it).steps))


@pytest.mark.parametrize("name", SEVERAL)
def test_after_its_process_died_the_next_one_is_heard(name: str) -> None:
    """The control of the sequel: the process that was recorded next resumes the thread."""
    steps = recording(name).steps
    for place in telling(name):
        play = played(begun(name), died(steps, place))
        assert wrong(play) == [], f"dead after seq {steps[place].seq}"


@pytest.mark.parametrize("name", NAMES)
def test_the_server_dies_after_every_fact(name: str) -> None:
    """UC-008: what was kept is brought to rest, and the next process goes on with it (S-52).

    A message is kept before what it comes to; so it may be alone, and what it announced is no fact.
    """
    before, said, steps = begun(name), dict[str, Witness](), recording(name).steps
    known, told = dict[str, int](), {*some(name, "dead")}
    for place, step in enumerate(steps):
        before.take(step)
        if heard(step) and isinstance(step, Said) and isinstance(step.message, Notified | Asked):
            thread = str(thread_of(step.message))
            said.setdefault(thread, Witness()).said(step.message, step.process)
        for thread, run in before.runs.items():
            facts = tuple(run.facts)
            first, known[thread] = known.get(thread, 0), len(facts)
            if place in told or len(facts) > first:
                for kept in range(first, len(facts) + 1):
                    dead_after(before, run, facts[:kept], copy.deepcopy(said[thread]))


def dead_after(before: Play, run: PlayedRun, facts: Sequence[Fact], witness: Witness) -> None:
    """Go on with what was kept of a run, all notes and these facts."""
    told = f"dead with {len(facts)} facts"
    play = begun(before.name)
    announced = partial(announced_in, manifest_of(run), noted(run))
    play.resume(run.run, run.thread_id, facts, witness=witness, announced=announced)
    assert wrong(play) == [], told
    played(play, sequel(run.thread_id))
    assert wrong(play) == [], told
    assert_went_on(play, run.thread_id)


def manifest_of(run: PlayedRun) -> Manifest:
    """Return what is known of the process that had it."""
    epoch: dict[str, Json] = {"thread_id": run.thread_id, "settlement": run.settlement}
    return Manifest(spec=SessionSpec(run_id=run.run.run_id, kind="codex"), epoch=epoch)


def noted(run: PlayedRun) -> list[Noted]:
    """Return the notes of a run, each with its place among the facts."""
    found: list[Noted] = []
    sequence = part = 0
    for kept in run.kept:
        for note in kept.notes:
            part += 1
            found.append(Noted(cursor=Cursor(sequence, part), note=note))
        if kept.facts:
            sequence, part = kept.facts[-1].sequence, 0
    return found


def assert_went_on(play: Play, thread: str) -> None:
    """The one command of the sequel has succeeded, and nothing is under way."""
    run = play.runs[thread]
    last = [it for it in run.facts if isinstance(it, ToolExecutionSucceeded)][-1]
    assert (last.turn_id, last.tool_name) == ("01ffffff-0000-7000-8000-000000000000", "command")
    assert not run.kernel.busy


def shapes() -> Iterator[tuple[str, int]]:
    """Yield where each kind of message is said first; all messages where there is time."""
    seen: set[tuple[str, ...]] = set()
    for name in NAMES:
        for place in places(name):
            kind = shape(recording(name).steps[place])
            if DEEP or kind not in seen:
                yield name, place
            seen.add(kind)


SHAPES: Final = tuple(shapes())


@pytest.mark.parametrize(("name", "place"), SHAPES)
def test_what_is_malformed_is_observed_and_the_run_goes_on(name: str, place: int) -> None:
    """Garbage of each type of JSON in params and their fields raises nothing (S-13)."""
    steps = recording(name).steps
    for number, step in enumerate(malformed(steps[place])):
        if number % MALFORMED == place % MALFORMED:
            play = played(begun(name), [*steps[:place], step, *steps[place + 1 :]])
            assert wrong(play) == [], step


@pytest.mark.parametrize("name", NAMES)
def test_two_faults_leave_the_run_whole(name: str) -> None:
    """Any two of them, with facts that are learnt late."""
    drawn = random.Random(name)
    for _ in range(PAIRS if places(name) else 0):
        steps: Sequence[Step] = recording(name).steps
        told: list[str] = []
        for fault in drawn.choices([*FAULTS], k=2):
            place = drawn.choice([it for it in places(name) if it < len(steps) - 1])
            told.append(f"{fault} at {place}")
            steps = FAULTS[fault](steps, place)
        late = drawn.choice([0, 0, 1, 3])
        assert wrong(played(begun(name, late=late), steps)) == [], f"{told}, {late} late"
