"""Holds one kernel against the techniques of `turnlock verify`, the cheap ones first."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from types import FrameType
from typing import Any, Final

import attrs

from turnlock.verification import (
    TECHNIQUES,
    Capability,
    Driver,
    InProcess,
    ProcessDriver,
    Profile,
    Report,
    Result,
    Stop,
    SubjectFailed,
    Verdict,
    verify,
)

from .planting import Bug, kernel_class

HANGS: Final = 5.0
"""Seconds of processor time that a kernel in this process may take for one batch of scripts: the
right one takes 1.3 for the longest."""

_FIRST: Final = ("sample", "edges", "recovery", "guided", "conformance")
"""The cheap ones: as they are in dev first, then as the profile has them."""


@attrs.frozen(kw_only=True)
class Outcome:
    """What became of one bug: by what it was found, after how many steps, and the story told first.

    `stage` is empty where nothing found it; `rule` where it crashed before it answered wrongly.
    `kernel` stands for the kernel that was tried, so that nobody takes it for another.
    """

    bug: str
    kind: str
    stage: str
    steps: int
    seconds: float
    length: int = 0
    rule: str = ""
    fits: bool = False
    told: str = ""
    kernel: str = ""

    @property
    def found(self) -> bool:
        """Whether any technique found it."""
        return bool(self.stage)


class Watched:
    """A driver that counts the steps it is asked for, and does not wait for ever."""

    def __init__(self, driver: Driver, *, hangs: float = 0.0) -> None:
        self._driver = driver
        self._hangs = hangs
        self.name = driver.name
        self.capabilities = driver.capabilities
        self.steps = 0

    def play(self, run: dict[str, Any], scripts: Sequence[Any]) -> list[list[dict[str, Any]]]:
        """Play scripts. Raises `SubjectFailed` as the driver does, and where it hangs."""
        self.steps += sum(map(len, scripts))
        if not self._hangs:
            return self._driver.play(run, scripts)
        signal.signal(signal.SIGVTALRM, partial(_hung, scripts[0] if scripts else []))
        signal.setitimer(signal.ITIMER_VIRTUAL, self._hangs)
        try:
            return self._driver.play(run, scripts)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    def close(self) -> None:
        """Let go of what the driver holds."""
        self._driver.close()


def _hung(script: Any, number: int, frame: FrameType | None) -> None:
    del number, frame
    raise SubjectFailed("does not come to an end", script=script)


def in_process(bug: Bug | None, hangs: float = HANGS) -> Driver:
    """Return the driver of a kernel in this process."""
    made: Callable[[], Any] = kernel_class(bug)
    return Watched(InProcess(made, name="the foreign kernel"), hangs=hangs)


def over_stdio(bug: Bug | None) -> Driver:
    """Return the driver of a kernel in a process of its own, which speaks the wire."""
    command = [sys.executable, "-m", "tests.foreign.shim", *([bug.name] if bug else [])]
    return Watched(ProcessDriver(command, capabilities=frozenset({Capability.RECOVER})))


def stages(profile: Profile) -> list[tuple[str, Profile]]:
    """Return the techniques that see a stranger, each with the profile, in the order of trial."""
    names = [technique.name for technique in TECHNIQUES if technique.black_box]
    first = [name for name in _FIRST if name in names]
    rest = [name for name in names if name not in first]
    if profile is Profile.DEV:
        return [(name, profile) for name in (*first, *rest)]
    return [
        *((name, Profile.DEV) for name in first),
        *((name, profile) for name in (*first, *rest)),
    ]


def tried(bug: Bug, driver_of: Callable[[Bug | None], Driver], profile: Profile) -> Outcome:
    """Hold a bug against one technique after the other, until one finds it."""
    began = perf_counter()
    try:
        driver = driver_of(bug)
    except Exception as error:  # noqa: BLE001 - it does not even load
        return Outcome(
            bug=bug.name, kind=bug.kind, stage="crash", steps=0, seconds=0.0, told=repr(error)
        )
    steps = 0
    try:
        for name, at in stages(profile):
            results, stops = verify(driver, profile=at, seed=0, progress=_silent, only=[name])
            steps = getattr(driver, "steps", 0)
            outcome = _outcome(bug, f"{name} {at}", results, stops)
            if outcome is not None:
                return attrs.evolve(outcome, steps=steps, seconds=perf_counter() - began)
    finally:
        driver.close()
    seconds = perf_counter() - began
    return Outcome(bug=bug.name, kind=bug.kind, stage="", steps=steps, seconds=seconds)


def _silent(_: str) -> None:
    """Say nothing."""


def _outcome(
    bug: Bug, stage: str, results: tuple[Result, ...], stops: tuple[Stop, ...]
) -> Outcome | None:
    """Return what is told first, where anything was found."""
    report = Report(
        subject="",
        profile=Profile.CI,
        seed=0,
        versions={},
        started="",
        seconds=0.0,
        command="",
        results=results,
        stops=stops,
    )
    if report.stories:
        finding = report.stories[0].violation.finding
        return Outcome(
            bug=bug.name,
            kind=bug.kind,
            stage=stage,
            steps=0,
            seconds=0.0,
            length=len(finding.script),
            rule=finding.rule,
            fits=finding.rule in bug.rules,
            told=finding.message,
        )
    for stop in stops:
        how = {
            Verdict.SUBJECT_FAILED: "crash",
            Verdict.NOT_DETERMINISTIC: "not deterministic",
        }.get(stop.verdict, "HARNESS FAILED")
        return Outcome(
            bug=bug.name, kind=bug.kind, stage=how, steps=0, seconds=0.0, told=stop.message
        )
    return None
