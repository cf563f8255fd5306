"""A test class that holds a user's kernel against kernel.md, one test item for each rule.

Write one method::

    from turnlock.verification import ConformanceSuite

    class TestMyKernel(ConformanceSuite):
        def make_sut(self):
            return MyKernel()

`MyKernel` is a `Subject`: `reset` and `receive`, in the words of the wire (kernel.md section 12).
A `Driver` will do, too, and so will the command of a process that speaks the wire, as text. The
techniques run once for the class; every rule, every technique and every regression is an item.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import ClassVar, Final, TypeAlias

import attrs
import pytest

from ..models.errors import InvalidValue, shown
from .errors import HarnessFailed
from .findings import Finding, Profile, Result, Status
from .judging import VISIBLE, not_judged, together, why_broken, why_not_judged
from .regressions import Regression, played_again, read_regression, told
from .reports.report import Stop, Verdict, fingerprint
from .reports.stories import printable
from .reports.terminal import figures_text
from .rulebook import RULES, rule_called
from .session_coverage import SESSION
from .subjects.in_process import InProcess
from .subjects.process import ProcessDriver
from .subjects.subject import Driver, Subject
from .techniques import TECHNIQUES, verify

BLACK_BOX: Final = tuple(technique.name for technique in TECHNIQUES if technique.for_strangers)
"""The techniques that need no view inside: those that a suite can run."""


Tell: TypeAlias = Callable[[Finding], str]
"""Tells a finding as a story, and how it is played again."""


@attrs.frozen
class _Outcome:
    """What the techniques came to, and those that came to nothing."""

    results: tuple[Result, ...]
    stops: tuple[Stop, ...]
    tell: Tell

    @property
    def stopped(self) -> str:
        """Why the system could not be checked; empty where it could."""
        return "; ".join(
            f"{stop.technique} was stopped, {stop.verdict}: {stop.message}" for stop in self.stops
        )

    def findings(self, rule: str) -> list[Finding]:
        """Return what speaks against a rule, each fault once, the shortest script first."""
        found = [one for result in self.results for one in result.findings if one.rule == rule]
        found.sort(key=lambda finding: len(finding.script), reverse=True)
        return [*reversed({fingerprint(finding): finding for finding in found}.values())]

    @property
    def not_judged(self) -> dict[str, int]:
        """The rules that nothing judged, each with the steps that exercised it in vain."""
        return not_judged(self.results)

    def why_not_judged(self, rule: str) -> str:
        """Say why a rule was not judged, and what stood in the way most often."""
        judged = together(self.results)
        first = [
            f"; {what} in {n:,} of {judged.scripts:,} scripts" for what, n in judged.wrong.items()
        ]
        return "".join((why_not_judged(self.not_judged[rule]), *first[:1]))


_RULE_IDS: Final = frozenset(rule.id for rule in RULES)
_DRIVER: Final = pytest.StashKey[Driver]()
_OUTCOME: Final = pytest.StashKey[_Outcome]()
"""Kept at the node of the test class, whose items all share them."""


class ConformanceSuite:
    """Subclass it under a name that pytest collects, and write `make_sut`.

    `regressions` is a file or a folder of files that `regressions.written` made, relative to
    pytest's root directory: each is an item. `techniques` may leave out some of `BLACK_BOX`. A rule
    is green only if a step that exercises it was answered rightly: one that nothing exercises is
    skipped, one that could not be judged for wrong answers fails, and so do all if none was judged.
    """

    regressions: ClassVar[str] = ""
    techniques: ClassVar[tuple[str, ...]] = BLACK_BOX

    def make_sut(self) -> Subject | Driver | str:
        """Return a fresh system under test: a subject, a driver, or a command."""
        raise NotImplementedError(f"write make_sut in {type(self).__name__}")

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Make an item of every rule, technique and regression."""
        if "turnlock_check" in metafunc.fixturenames:
            unknown = sorted({*self.techniques} - {*BLACK_BOX})
            if unknown:
                pytest.fail(
                    f"techniques names {', '.join(unknown)}; there are {', '.join(BLACK_BOX)}",
                    pytrace=False,
                )
            items = [*(rule.id for rule in RULES), *self.techniques]
            ids = [item.replace(" ", "-") for item in items]
            files = _files(metafunc.config.rootpath, self.regressions)
            names = [f"regression-{path.stem}" for path in files]
            metafunc.parametrize("turnlock_item", [*items, *files], ids=[*ids, *names])

    @pytest.fixture
    def turnlock_driver(self, request: pytest.FixtureRequest) -> Driver:
        """Return the driver of the system under test, one for the whole class."""
        stash = _class_of(request).stash
        if _DRIVER not in stash:
            made = _driver(self)
            if isinstance(made, str):
                pytest.fail(made, pytrace=False)
            stash[_DRIVER] = made
            _class_of(request).addfinalizer(made.close)
        return stash[_DRIVER]

    @pytest.fixture
    def turnlock_check(
        self,
        turnlock_item: str | Path,
        turnlock_driver: Driver,
        request: pytest.FixtureRequest,
    ) -> Callable[[], None]:
        """Prepare the check of one item; the techniques run once for the class.

        What fails in here is an error of the item, not its failure: it is the kit's own.
        """
        if isinstance(turnlock_item, Path):
            regression = read_regression(turnlock_item)
            tell = _tell(turnlock_driver, request.config)
            return partial(_hold_regression, regression, turnlock_driver, tell)
        stash = _class_of(request).stash
        if _OUTCOME not in stash:
            stash[_OUTCOME] = _checked(turnlock_driver, request.config, self.techniques)
        outcome = stash[_OUTCOME]
        if any(stop.verdict is Verdict.HARNESS_FAILED for stop in outcome.stops):
            raise HarnessFailed(printable(outcome.stopped))
        hold = _hold_technique if turnlock_item in self.techniques else _hold_rule
        return partial(hold, turnlock_item, outcome)

    def test_conformance(self, turnlock_check: Callable[[], None]) -> None:
        """One rule, one technique, or one regression."""
        turnlock_check()


def _class_of(request: pytest.FixtureRequest) -> pytest.Class:
    node: pytest.Item = request.node
    found = node.getparent(pytest.Class)
    if found is None:
        raise HarnessFailed("a suite is a class: its tests stand in no other place")
    return found


def _driver(suite: ConformanceSuite) -> Driver | str:
    """Return the driver, or say why there is none, and what to do about it."""
    made = suite.make_sut()
    returned = f"{type(suite).__name__}.make_sut returned {shown(made)}"
    if isinstance(made, type):
        return f"{returned}, which is a class; return one of it: {made.__name__}(…)"
    if isinstance(made, Subject):
        return InProcess(lambda: _subject(suite), name=type(suite).__name__)
    if isinstance(made, str | ProcessDriver):
        try:
            driver = ProcessDriver(made) if isinstance(made, str) else made
            driver.start()
        except (InvalidValue, HarnessFailed) as error:
            return f"{returned}: {error}"
        return driver
    if callable(getattr(made, "play", None)) and callable(getattr(made, "close", None)):
        return made
    lacks = [name for name in ("capabilities", "reset", "receive") if not hasattr(made, name)]
    return (
        f"{returned}, which is no system under test: it has no {' and no '.join(lacks)}; "
        "return a Subject, a Driver, or a command as text"
    )


def _tell(driver: Driver, config: pytest.Config) -> Tell:
    """Tell findings of this system: a file that is too long to be shown is kept beside pytest's."""
    command = driver.name if isinstance(driver, ProcessDriver) else ""
    cache: pytest.Cache | None = getattr(config, "cache", None)

    def folder() -> Path | None:
        return None if cache is None else cache.mkdir("turnlock")

    return partial(told, command=command, folder=folder)


def _subject(suite: ConformanceSuite) -> Subject:
    made = suite.make_sut()
    if not isinstance(made, Subject):
        raise TypeError("make_sut returned a subject first, and something else now")
    return made


def _checked(driver: Driver, config: pytest.Config, techniques: tuple[str, ...]) -> _Outcome:
    session = config.stash.get(SESSION, None)
    with session.apart() if session is not None else nullcontext():
        results, stops = verify(
            driver,
            profile=_profile(config),
            seed=int(config.getoption("--turnlock-seed", 0) or 0),
            progress=_ignored,
            only=techniques,
        )
    if session is not None:
        session.add(results)
    return _Outcome(results, stops, _tell(driver, config))


def _profile(config: pytest.Config) -> Profile:
    """Return the profile asked for, or the one of that name that Hypothesis has loaded, or dev."""
    asked = config.getoption("--turnlock-profile", None)
    if asked is None and "hypothesis" in sys.modules:
        asked = sys.modules["hypothesis"].settings.get_current_profile_name()
    return Profile(asked) if asked in set(Profile) else Profile.DEV


def _ignored(_: str) -> None:
    """Leave the progress out: pytest shows its own."""


def _files(root: Path, place: str) -> list[Path]:
    if not place:
        return []
    path = root / place
    if path.is_dir():
        return sorted(path.glob("*.jsonl"))
    if not path.is_file():
        pytest.fail(f"no regressions at {path}: make the folder, or name another", pytrace=False)
    return [path]


def _hold_rule(rule_id: str, outcome: _Outcome) -> None:
    rule = rule_called(rule_id)
    findings = outcome.findings(rule_id)
    if findings:
        others = "".join(f"also: {printable(finding.message)}\n" for finding in findings[1:])
        pytest.fail(f"{outcome.tell(findings[0])}\n{others}", pytrace=False)
    if not rule.visible:
        pytest.skip(f"receipts cannot show it: {rule.held}")
    if outcome.stopped:
        pytest.fail(printable(outcome.stopped), pytrace=False)
    broken = together(outcome.results).broken.get(rule_id)
    if broken:
        pytest.fail(why_broken(broken), pytrace=False)
    left = outcome.not_judged
    if rule_id in left:
        why = printable(outcome.why_not_judged(rule_id))
        if left[rule_id] or len(left) == len(
            VISIBLE
        ):  # it was left by a wrong answer, not by choice
            pytest.fail(why, pytrace=False)
        pytest.skip(why)


def _hold_technique(name: str, outcome: _Outcome) -> None:
    result = next((one for one in outcome.results if one.technique == name), None)
    stop = next((one for one in outcome.stops if one.technique == name), None)
    if stop is not None and stop.finding is not None:
        said = printable(outcome.stopped)
        pytest.fail(f"{said}\n\n{outcome.tell(stop.finding)}", pytrace=False)
    if result is None:
        pytest.fail(printable(outcome.stopped), pytrace=False)
    if result.status is Status.SKIPPED:
        pytest.skip(result.why)
    if result.status is Status.NOT_DONE:
        pytest.fail(f"not done: {result.why}", pytrace=False)
    if result.findings or result.status is Status.VIOLATED:
        broken = ", ".join(dict.fromkeys(finding.rule for finding in result.findings))
        said = f"violated: {broken}; see the items of these rules\n{figures_text(result.figures)}\n"
        strays = [finding for finding in result.findings if finding.rule not in _RULE_IDS]
        pytest.fail(printable(said) + "".join(map(outcome.tell, strays)), pytrace=False)


def _hold_regression(regression: Regression, driver: Driver, tell: Tell) -> None:
    finding = played_again(driver, regression.run, regression.script)
    if finding is not None:
        pytest.fail(f"what was: {regression.message}\n\n{tell(finding)}", pytrace=False)
