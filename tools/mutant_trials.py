"""The tests, run on one mutant after the other: what tools/mutants.py starts in the copy.

``python tools/mutant_trials.py --jobs N RESULTS`` reads names of mutants, one a line, from standard
input and appends a line of JSON for each to RESULTS: the mutant, and the test that kills it ("" if
it survives). pytest collects once; each mutant is tried in a fork of that process, where it runs
the tests that reach its function, those that killed its neighbours first (the files beside RESULTS
say which did). With ``--anew`` it forks before anything of the package is imported, for what has
an effect on import: its module is imported, then come what killed its neighbours, what is about the
tables and what is named after its module, then all tests.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import json
import os
import signal
import sys
from collections import Counter, deque
from pathlib import Path
from typing import Final, NoReturn

import pytest

TESTS: Final = (
    "tests/machines",
    "tests/models",
    "tests/rules",
    "tests/engine",
    "tests/wire/test_wire.py",
    "tests/property/test_against_oracle.py",
)
LEFT_OUT: Final = " and ".join(
    f"not {name}"
    for name in (
        # of names: they would see the copies that mutmut puts beside each function
        "test_every_method_either_reads_or_refuses",
        "test_spec_coverage",
        # of the digest, and of the pipe: half the time of all, on what shorter tests kill first
        "test_equal_digests_are_answered_alike",
        "test_the_digest_does_not_see_absolute_times",
        "test_refusals_and_recoveries_leave_the_digest_alone",
        "test_seeded_scripts_are_answered",
    )
)
"""Fewer tests never make a mutant look killed."""
STATS: Final = Path("mutmut-stats.json")
VARIABLE: Final = "MUTANT_UNDER_TEST"
"""Names the mutant that is to run, wherever its function is called (mutmut reads it)."""
TOO_LONG: Final = "it ran too long, or ended the process"
NO_IMPORT: Final = "with it the tests cannot be imported"
STRONG: Final = "test_kernel_and_oracle_give_the_same_receipts"
"""Few mutants of the kernel outlive a handful of its scripts."""
HANDFUL: Final = 6
WORDS: Final = "test_messages.py"
"""Many mutants change what an error says, and nothing else."""
OF_TABLES: Final = tuple(
    f"tests/rules/test_{name}.py"
    for name in ("rules_tables", "rules_observed", "every_turn_pair", "every_pair")
)
"""Few mutants of the tables outlive these, which take three seconds."""
READERS: Final = {"turnlock": ("turnlock.engine.kernel",)}
"""What reads the tables when it is imported, by package."""
SECONDS: Final = 60
"""Of CPU: to import everything, and to run what is likely to kill, takes five."""
CONTROL: Final = "turnlock.unchanged__mutmut_0"
"""The name of no mutant: all tests must pass."""
OPTIONS: Final = ("--rootdir=.", "-p", "no:cacheprovider", "-p", "no:terminal")
ANEW: Final = (*OPTIONS, "-W", "ignore:Module already imported")
"""Which hypothesis is, for all of them."""


def function_of(mutant: str) -> str:
    """Return the name of the mutated function, as mutmut writes it."""
    return mutant.partition("__mutmut_")[0]


class Hasty:
    """A pytest plugin that spares what says more of a failure than that it is one."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Have nothing shrunk: whoever fails need not say it in the shortest way."""
        from hypothesis import Phase, settings  # noqa: PLC0415 - pytest must import it first

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", settings.default, phases=phases)
        settings.load_profile("mutants")  # each test keeps what it finds when it is defined

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> pytest.TestReport | None:
        """Say of a failure that it is one, and no more: to quote its source takes half the time."""
        if (
            call.when == "collect"
            or call.excinfo is None
            or call.excinfo.errisinstance(pytest.skip.Exception)
        ):
            return None
        return pytest.TestReport(item.nodeid, item.location, {}, "failed", "", call.when)


class Trials(Hasty):
    """A pytest plugin that runs, in place of the tests, the tests on each of many mutants."""

    def __init__(self, mutants: list[str], results: Path, jobs: int) -> None:
        """Note what to try, and where to say what became of it."""
        self._mutants = mutants
        self._results = results
        self._jobs = jobs
        stats = json.loads(STATS.read_text(encoding="utf-8"))
        self._reached: dict[str, list[str]] = stats["tests_by_mangled_function_name"]
        self._seconds: dict[str, float] = stats["duration_by_test"]
        self._breadth = Counter(test for tests in self._reached.values() for test in tests)
        self._killers: dict[str, deque[str]] = {}
        self._running: dict[int, tuple[str, int]] = {}
        self._items: dict[str, pytest.Item] = {}
        self._new: set[str] = set()
        self._failed = False
        self._since_import = os.environ.get(VARIABLE, "")
        for path in sorted(results.parent.glob("*.jsonl")):
            for mutant, killer in noted(path).items():
                self._learn(mutant, killer)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note whether a test has failed."""
        self._failed = self._failed or report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try every mutant in a process of its own, so many at a time."""
        if session.testsfailed:
            raise session.Interrupted("a file of tests cannot be imported")
        self._items = {item.nodeid: item for item in session.items}
        timed = STATS.stat().st_mtime
        self._new = {
            test
            for test, item in self._items.items()
            if test not in self._seconds or item.path.stat().st_mtime > timed
        }
        gc.freeze()
        for number, mutant in enumerate(self._mutants):
            if len(self._running) == self._jobs:
                self._note_one()
            self._start(mutant)
            print(f"\r{number + 1} of {len(self._mutants)} ", end="", file=sys.__stderr__)
        while self._running:
            self._note_one()
        print(file=sys.__stderr__)
        return True

    def _start(self, mutant: str) -> None:
        reader, writer = os.pipe()
        child = os.fork()
        if child:
            os.close(writer)
            self._running[child] = mutant, reader
            return
        status = 1
        try:
            os.environ[VARIABLE] = mutant
            os.write(writer, self._killer(self._in_order(mutant)).encode())
            status = 0
        finally:
            os._exit(status)  # whatever happened: only the parent goes on

    def _killer(self, items: list[pytest.Item]) -> str:
        """Return the first of these tests that fails, or ""."""
        for item, following in zip(items, [*items, None][1:], strict=True):
            usual = self._seconds.get(item.nodeid, 0)  # either timer ends the process
            signal.setitimer(signal.ITIMER_PROF, 2 + 10 * usual)  # of CPU: others may be busy
            signal.alarm(300 + int(100 * usual))  # whoever waits takes none
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self._failed:
                return item.nodeid
        return ""

    def _note_one(self) -> None:
        """Wait for one of them, and write down what became of it."""
        child, status = os.wait()
        mutant, reader = self._running.pop(child)
        with os.fdopen(reader, "rb") as pipe:
            killer = pipe.read().decode()
        if status:
            killer = TOO_LONG
        self._learn(mutant, killer)
        note(self._results, mutant, killer)

    def _learn(self, mutant: str, killer: str) -> None:
        """Remember what killed it: its neighbours may die of the same."""
        if killer:
            for place in self._neighbours(mutant):
                known = self._killers.setdefault(place, deque(maxlen=HANDFUL))
                if killer not in known:
                    known.appendleft(killer)

    def _in_order(self, mutant: str) -> list[pytest.Item]:
        """Return the tests that reach it, or may since they changed, the best ones first."""
        calling = self._reached.get(function_of(mutant), ())
        reached = {*calling, *self._new}
        if mutant in (CONTROL, self._since_import):
            reached |= self._items.keys()
        first = [
            test for place in self._neighbours(mutant) for test in self._killers.get(place, ())
        ]
        strong = [f"{TESTS[-1]}::{STRONG}[{seed}]" for seed in range(HANDFUL)]
        rest = sorted(  # who reaches little is about this function, or nearly
            reached,
            key=lambda test: (
                test not in calling,
                WORDS not in test,
                self._breadth[test],
                self._seconds.get(test, 0),
            ),
        )
        order = dict.fromkeys([*first, *strong, *rest])
        return [self._items[test] for test in order if test in reached and test in self._items]

    @staticmethod
    def _neighbours(mutant: str) -> tuple[str, str]:
        """Return the function and the module, whose other mutants died of similar tests."""
        function = function_of(mutant)
        return function, function.rpartition(".")[0]


class First(Hasty):
    """A pytest plugin that notes the first test that fails."""

    def __init__(self) -> None:
        """Nothing has failed yet."""
        self.failed = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note it."""
        self.failed = self.failed or (report.nodeid if report.failed else "")


def try_anew(mutants: list[str], results: Path, jobs: int) -> None:
    """Try each in a fork of a process that has imported pytest, but nothing of the package."""
    for name in ("hypothesis", "mutmut.mutation.trampoline", "attrs"):  # each of them needs these
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    waiting, running = deque(mutants), dict[int, str]()
    while waiting or running:
        if waiting and len(running) < jobs:
            mutant = waiting.popleft()
            child = os.fork()
            if not child:
                try_since_import(mutant, results)
            running[child] = mutant
            continue
        child, _ = os.wait()
        mutant = running.pop(child)
        if mutant not in noted(results):
            note(results, mutant, TOO_LONG)
        print(f"\r{len(waiting)} left ", end="", file=sys.stderr)


def try_since_import(mutant: str, results: Path) -> NoReturn:
    """Try it with what killed its neighbours, then with everything, and end the process."""
    os.environ[VARIABLE] = mutant
    signal.alarm(1_800)  # an import may never end
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    first = First()
    if not imports(mutant):
        first.failed = NO_IMPORT
    elif mutant != CONTROL:
        words = ("-x", "-k", LEFT_OUT, *likely(mutant, results))
        status = pytest.main([*ANEW, *words], plugins=[first])
        if status == pytest.ExitCode.INTERRUPTED:
            first.failed = first.failed or NO_IMPORT
    if first.failed:
        note(results, mutant, first.failed)
    else:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # to collect them: each has its own then
        trials = Trials([mutant], results, 1)
        pytest.main([*ANEW, "-k", LEFT_OUT, *TESTS], plugins=[trials])
        if mutant not in noted(results):
            note(results, mutant, NO_IMPORT)
    os._exit(0)


def imports(mutant: str) -> bool:
    """Return whether its module can be imported, and the kernel: the tests import both."""
    module = mutant.rpartition(".")[0]
    package = module.partition(".")[0]
    try:
        for name in [] if mutant == CONTROL else [module, *READERS.get(package, ())]:
            importlib.import_module(name)
    except BaseException:  # noqa: BLE001 - whatever a mutant does
        return False
    return True


def likely(mutant: str, results: Path) -> list[str]:
    """Return the tests that kill most: those of its neighbours, and whole files."""
    function = function_of(mutant)
    module = function.rpartition(".")[0]
    killers = dict.fromkeys(
        killer
        for place in (function, module)
        for path in sorted(results.parent.glob("*.jsonl"))
        for one, killer in reversed(noted(path).items())
        if one.startswith(place) and "::" in killer and Path(killer.partition("::")[0]).exists()
    )
    named = sorted(map(str, Path("tests").glob(f"*/test_{module.rpartition('.')[2]}*.py")))
    files = [one for one in (*OF_TABLES, *named) if Path(one).exists() and one.startswith(TESTS)]
    return [*list(killers)[:HANDFUL], *files]


def noted(path: Path) -> dict[str, str]:
    """Return by mutant the test that kills it, or "", as far as they have been tried."""
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    return dict(map(json.loads, lines))


def note(path: Path, mutant: str, killer: str) -> None:
    """Write down what became of one."""
    with path.open("a", encoding="utf-8") as results:
        print(json.dumps([mutant, killer]), file=results, flush=True)


def main() -> None:
    """Collect the tests and try the mutants."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("results", type=Path)
    parser.add_argument("--jobs", type=int, required=True, metavar="N")
    parser.add_argument("--anew", action="store_true", help="import the package for each mutant")
    asked = parser.parse_args()
    if asked.anew:
        try_anew(sys.stdin.read().split(), asked.results, asked.jobs)
        return
    trials = Trials(sys.stdin.read().split(), asked.results, asked.jobs)
    sys.exit(pytest.main([*OPTIONS, "-k", LEFT_OUT, *TESTS], plugins=[trials]))


if __name__ == "__main__":
    main()
