"""Plants every bug of the catalogue, and asks every technique whether it sees it.

A kit that finds nothing wrong with a kernel proves something only if it finds what is wrong with a
wrong one. The healthy kernel is the first line: there, every technique must be content.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import nullcontext
from multiprocessing import get_all_start_methods, get_context
from time import perf_counter

import attrs

from turnlock.verification.findings import Profile, Progress

from .bug import Bug
from .bugs import CATALOGUE
from .matrix import Cell, Found, Line, Matrix


@attrs.frozen(kw_only=True)
class Technique:
    """A technique as the self-test uses it: `find` looks at our kernel as it is in this process."""

    name: str
    find: Callable[[], Found | None]
    glance: Callable[[], Found | None] | None = None
    """A quicker look, at bugs that it is not to find; None where it takes the same."""


@attrs.frozen
class _Trial:
    """What every worker inherits when it is forked."""

    techniques: Sequence[Technique]
    bugs: Sequence[Bug | None]


_trials: list[_Trial] = []


def selftest(
    *,
    profile: Profile = Profile.CI,
    progress: Progress,
    techniques: Sequence[Technique] | None = None,
    bugs: Sequence[Bug] = CATALOGUE,
    jobs: int = 2,
) -> Matrix:
    """Run every technique against the healthy kernel and against every bug.

    `techniques` None are those of the kit, as they are in this profile. `jobs` are processes, each
    with its own kernel; where none can be forked without harm it is done in this one.
    """
    began = perf_counter()
    if techniques is None:
        from .techniques import techniques_of  # noqa: PLC0415 - it loads all of the kit

        techniques = techniques_of(profile, progress)
    trial = _Trial(techniques, (None, *bugs))
    lines: dict[int, Line] = {}
    for number, line in _lines(trial, jobs):
        lines[number] = line
        name = "the kernel itself" if line.bug is None else line.bug.name
        progress(f"{len(lines)} of {len(trial.bugs)}: {name}")
    return Matrix(
        techniques=tuple(technique.name for technique in techniques),
        lines=tuple(lines[number] for number in range(len(trial.bugs))),
        seconds=perf_counter() - began,
    )


def _lines(trial: _Trial, jobs: int) -> Iterator[tuple[int, Line]]:
    """Yield each line with its number, in whatever order they are done."""
    alone = threading.active_count() == 1 and "fork" in get_all_start_methods()
    if jobs == 1 or not alone:
        for number in range(len(trial.bugs)):
            yield number, Line(bug=trial.bugs[number], cells=_tried(trial, number))
        return
    gc.freeze()  # what the workers inherit is not theirs to collect, nor to copy
    try:
        with ProcessPoolExecutor(
            jobs, mp_context=get_context("fork"), initializer=_trials.append, initargs=(trial,)
        ) as pool:
            numbers = {pool.submit(_worked, number): number for number in range(len(trial.bugs))}
            for future in as_completed(numbers):
                number = numbers[future]
                yield number, Line(bug=trial.bugs[number], cells=future.result())
    finally:
        gc.unfreeze()


def _worked(number: int) -> tuple[Cell, ...]:
    return _tried(_trials[0], number)


def _tried(trial: _Trial, number: int) -> tuple[Cell, ...]:
    bug = trial.bugs[number]
    with nullcontext() if bug is None else bug.planted():
        return tuple(_cell(technique, bug) for technique in trial.techniques)


def _cell(technique: Technique, bug: Bug | None) -> Cell:
    find = technique.find
    if bug is not None and bug.edge:
        find = technique.glance or find
    began = perf_counter()
    try:
        found, failed = find(), ""
    except Exception as error:  # noqa: BLE001 - one failure of the kit is one cell of the matrix
        found, failed = None, f"{type(error).__name__}: {error}"
    return Cell(found=found, failed=failed, seconds=perf_counter() - began)
