"""`make foreign`: the kernel that is not ours, right and with some thousand mistakes.

Ends with 1 when the right kernel is blamed, or a mistake is found by nothing and not listed in
equivalent.toml, with the reason why no receipt can show it.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from time import perf_counter

import attrs

from turnlock.verification import Driver, Profile, verify

from .bugs import all_bugs, equivalent
from .planting import Bug
from .trial import Outcome, in_process, over_stdio, tried

_work: list[tuple[list[Bug], Callable[[Bug | None], Driver], Profile]] = []


def main(arguments: Sequence[str]) -> int:
    """Print what was found of each kind, and what was not; return the exit status."""
    options = _options(arguments)
    driver_of = over_stdio if options.stdio else in_process
    blamed = [] if options.bugs_only else _false_alarms(driver_of, options.profile)
    same = equivalent()
    bugs = _asked_for(options)
    asked = [bug for bug in bugs if options.all or bug.name not in same]
    began = perf_counter()
    outcomes = _carried(asked, options.carry)
    known_already = {outcome.bug for outcome in outcomes}
    left = [bug for bug in asked if bug.name not in known_already]
    with Path(options.out or os.devnull).open("w", encoding="utf-8") as out:
        for outcome in chain(outcomes[:], _played(left, driver_of, options.profile, options.jobs)):
            if outcome.bug not in known_already:
                outcomes.append(outcome)
            out.write(f"{json.dumps(attrs.asdict(outcome))}\n")
            out.flush()
    outcomes.sort(key=lambda one: one.bug)
    print("\n".join(_told(outcomes, same, options.wrong)))
    known = len(bugs) - len(asked)
    print(f"{len(asked)} bugs in {perf_counter() - began:.0f} s; {known} more are equivalent")
    print(*(f"FALSE ALARM {line}" for line in blamed), sep="\n", end="\n" if blamed else "")
    missed = [one for one in outcomes if not one.found and one.bug not in same]
    return 1 if blamed or missed else 0


def _asked_for(options: argparse.Namespace) -> list[Bug]:
    bugs = all_bugs(options.every, options.only, options.part)
    if options.missed:
        lines = Path(options.missed).read_text("utf-8").splitlines()
        missed = {one["bug"] for one in map(json.loads, lines) if not one["stage"]}
        return [bug for bug in bugs if bug.name in missed]
    return bugs


def _carried(bugs: list[Bug], paths: Sequence[str]) -> list[Outcome]:
    """Take over what earlier runs found out about the very same kernels.

    Whether the rule fits is asked anew. What nothing had found is tried again.
    """
    known: dict[str, Outcome] = {}
    for path in paths:
        for line in Path(path).read_text("utf-8").splitlines():
            outcome = Outcome(**json.loads(line))
            known[outcome.bug] = outcome
    return [
        attrs.evolve(known[bug.name], fits=known[bug.name].rule in bug.rules)
        for bug in bugs
        if bug.name in known and known[bug.name].found and known[bug.name].kernel == bug.kernel
    ]


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make foreign", description=__doc__)
    parser.add_argument("--profile", choices=[*Profile], default=Profile.CI, type=Profile)
    parser.add_argument("--stdio", action="store_true", help="each kernel in its own process")
    parser.add_argument("--only", action="append", default=[], help="a kind, or a part of a name")
    parser.add_argument("--every", type=int, default=6, help="one mutant in so many")
    parser.add_argument("--part", type=int, default=0, help="which of these, from 0")
    parser.add_argument("--carry", action="append", default=[], help="an outcome of an earlier run")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--all", action="store_true", help="the equivalent ones, too")
    parser.add_argument("--bugs-only", action="store_true", help="leave the right kernel out")
    parser.add_argument("--wrong", action="store_true", help="list those whose first rule is wrong")
    parser.add_argument("--missed", help="only those that this outcome of an earlier run missed")
    parser.add_argument("--out", help="write each outcome as a line of JSON")
    return parser.parse_args(arguments)


def _false_alarms(driver_of: Callable[[Bug | None], Driver], profile: Profile) -> list[str]:
    """Return what the kit says against the kernel as it should be."""
    driver = driver_of(None)
    try:
        results, stops = verify(driver, profile=profile, seed=0, progress=_tell)
    finally:
        driver.close()
    said = [f"{one.rule}: {one.message}" for result in results for one in result.findings]
    return [*said, *(stop.message for stop in stops)]


def _played(
    bugs: list[Bug], driver_of: Callable[[Bug | None], Driver], profile: Profile, jobs: int
) -> Iterator[Outcome]:
    """Yield what became of each bug, in whatever order they are done."""
    _work.append((bugs, driver_of, profile))
    if jobs == 1:
        yield from map(_worked, range(len(bugs)))
        return
    gc.freeze()
    with ProcessPoolExecutor(jobs, mp_context=get_context("fork")) as pool:
        futures = [pool.submit(_worked, number) for number in range(len(bugs))]
        for done, future in enumerate(as_completed(futures), start=1):
            outcome = future.result()
            _tell(f"{done} of {len(bugs)}: {outcome.stage or 'MISSED'}: {outcome.bug}")
            yield outcome


def _worked(number: int) -> Outcome:
    bugs, driver_of, profile = _work[-1]
    return attrs.evolve(tried(bugs[number], driver_of, profile), kernel=bugs[number].kernel)


def _told(outcomes: list[Outcome], same: dict[str, str], wrong: bool) -> Iterator[str]:
    for kind in dict.fromkeys(outcome.kind for outcome in outcomes):
        yield _in_short(kind, [one for one in outcomes if one.kind == kind], same)
    yield _in_short("all", outcomes, same)
    stages = Counter(outcome.stage for outcome in outcomes if outcome.found)
    yield "found by " + ", ".join(f"{stage} {count}" for stage, count in stages.most_common())
    steps = [outcome.steps for outcome in outcomes if outcome.length]
    lengths = Counter(outcome.length for outcome in outcomes if outcome.length)
    if steps:
        shown = ", ".join(f"{length}: {count}" for length, count in sorted(lengths.items()))
        yield f"steps until found: median {median(steps):,.0f}; counterexamples by length {shown}"
    for outcome in outcomes:
        if not outcome.found and outcome.bug not in same:
            yield f"MISSED {outcome.kind}: {outcome.bug}"
        if wrong and outcome.rule and not outcome.fits:
            yield f"WRONG RULE {outcome.rule} for {outcome.kind}: {outcome.bug}: {outcome.told}"


def _in_short(kind: str, outcomes: list[Outcome], same: dict[str, str]) -> str:
    real = [one for one in outcomes if one.found or one.bug not in same]
    found = [one for one in real if one.found]
    judged = [one for one in found if one.rule]
    fits = sum(one.fits for one in judged)
    crashed = len(found) - len(judged)
    return (
        f"{kind}: {len(found)} of {len(real)} found{_share(len(found), len(real))}; first rule fits"
        f" {fits} of {len(judged)}{_share(fits, len(judged))}; {crashed} crashed or unsteady"
    )


def _share(part: int, whole: int) -> str:
    return f" ({100 * part / whole:.1f} %)" if whole else ""


def _tell(what: str) -> None:
    """Show progress on a terminal, in one line that the next one overwrites."""
    if sys.stderr.isatty():
        print(f"\r\033[K{what[:150]}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
