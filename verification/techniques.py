"""Runs the techniques of a profile against one system under test, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from importlib import import_module
from time import perf_counter
from typing import Final, TypeAlias, cast

import attrs

from .closure.rows import counted_rows, read_rows
from .findings import NO_ANSWER, Profile, Progress, Result, Status
from .judging import judging
from .reports.report import Stop, Verdict
from .subjects.in_process import InProcess
from .subjects.kernel import kernel_driver
from .subjects.subject import Capability, Driver
from .subjects.watched import watched

Check: TypeAlias = Callable[..., Result]

INSIDE: Final = "it looks inside the kernel, and runs on our own only"
OUTSIDE: Final = "it copies the system under test, and can copy none but those in this process"


@attrs.frozen(kw_only=True)
class Technique:
    """One way to look for violations, loaded when it is used.

    `at` is the module and function that checks. A technique that is not `black_box` sees the
    inside of our own kernel, and is given no driver; where a `stranger` can show its inside as
    well, that is what checks one. `needs` is what a system under test must declare.
    """

    name: str
    at: str
    black_box: bool
    stranger: str = ""
    needs: tuple[Capability, ...] = ()

    @property
    def for_strangers(self) -> bool:
        """Whether it can be run on other systems than ours, if they declare what it needs."""
        return self.black_box or bool(self.stranger)

    def check(
        self, driver: Driver | None, *, profile: Profile, progress: Progress, seed: int
    ) -> Result:
        """Run it; `driver` None is our own kernel. What it cannot do is skipped by name."""
        why = self._missing(driver)
        if why:
            return Result(technique=self.name, status=Status.SKIPPED, guarantee="", why=why)
        at = self.stranger if driver is not None and self.stranger else self.at
        module, function = at.split(":")
        check = cast("Check", getattr(import_module(module, __package__), function))
        given = self.black_box or at == self.stranger
        system: tuple[Driver, ...] = (driver or kernel_driver(),) if given else ()
        if self.black_box:
            system = tuple(map(watched, system))
        began = perf_counter()
        ours = driver is None and self.black_box
        with counted_rows() if ours else nullcontext() as tables, judging() as tally:
            result = check(*system, profile=profile, progress=progress, seed=seed)
        coverage = attrs.evolve(result.coverage, rules=tally.reached)
        if tables is not None and not coverage.rows:
            coverage = attrs.evolve(coverage, rows=read_rows(tables))
        seconds = perf_counter() - began
        return attrs.evolve(
            result,
            technique=self.name,
            coverage=coverage,
            judged=tally.result,
            seconds=seconds,
        )

    def _missing(self, driver: Driver | None) -> str:
        if driver is None:
            return ""
        if not self.for_strangers:
            return INSIDE
        if not self.black_box and not isinstance(driver, InProcess):
            return OUTSIDE
        missing = " and ".join(it for it in self.needs if it not in driver.capabilities)
        return f"the system under test does not declare the capability {missing}" if missing else ""


TECHNIQUES: Final = (
    Technique(name="sample", at=".sampling:check", black_box=True),
    Technique(
        name="closure",
        at=".closure.technique:check",
        black_box=False,
        stranger=".closure.technique:check_driver",
        needs=(Capability.CLONE, Capability.DIGEST),
    ),
    Technique(name="conformance", at=".conformance.technique:check", black_box=True),
    Technique(name="guided", at=".fuzz.technique:check", black_box=True),
    Technique(name="edges", at=".edges.technique:check", black_box=True),
    Technique(name="rules", at=".fuzz.technique:check_rules", black_box=False),
    Technique(
        name="recovery",
        at=".recovery.technique:check",
        black_box=True,
        needs=(Capability.RECOVER,),
    ),
    Technique(name="journal", at=".recovery.technique:check_journal", black_box=False),
)
"""In the order in which they run: first what tells whether the system is steady at all, then those
that find most in the fewest steps."""

NAMES: Final = tuple(technique.name for technique in TECHNIQUES)


def verify(
    driver: Driver | None,
    *,
    profile: Profile,
    seed: int,
    progress: Progress,
    only: Iterable[str] = NAMES,
) -> tuple[tuple[Result, ...], tuple[Stop, ...]]:
    """Run the techniques named in `only`; `driver` None is our own kernel, seen from inside, too.

    Returns the results, and the techniques that were stopped. A system that crashed, hung or
    answered one script in two ways is asked no further: what is left is not done.
    """
    wanted = set(only)
    results: list[Result] = []
    stops: list[Stop] = []
    for technique in TECHNIQUES:
        if technique.name not in wanted:
            continue
        why = _stopped(stops)
        if why:
            results.append(
                Result(technique=technique.name, status=Status.NOT_DONE, guarantee="", why=why)
            )
            continue
        progress(technique.name)
        try:
            result = technique.check(driver, profile=profile, progress=progress, seed=seed)
        except Exception as error:  # noqa: BLE001 - the report says whose fault it is
            stops.append(Stop.because(technique.name, error))
        else:
            told, crashes = _parted(result)
            results += told
            stops += crashes
    return tuple(results), tuple(stops)


def _stopped(stops: Iterable[Stop]) -> str:
    """Say why the system is asked no further; empty where it is."""
    last = [stop for stop in stops if stop.verdict is not Verdict.HARNESS_FAILED]
    return f"not run, since {last[0].technique} was stopped: {last[0].verdict}" if last else ""


def _parted(result: Result) -> tuple[list[Result], list[Stop]]:
    """Take the crashes out of a result: none is a violation, and alone they leave none."""
    crashes = [finding for finding in result.findings if finding.rule == NO_ANSWER]
    if not crashes:
        return [result], []
    wrong = tuple(finding for finding in result.findings if finding.rule != NO_ANSWER)
    return (
        [attrs.evolve(result, findings=wrong)] if wrong else [],
        [
            Stop(
                technique=result.technique,
                verdict=Verdict.SUBJECT_FAILED,
                message=crashes[0].message,
                finding=crashes[0],
            )
        ],
    )
