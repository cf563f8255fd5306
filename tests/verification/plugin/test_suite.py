"""`ConformanceSuite`: an item for each rule; a right kernel passes, a wrong one is told how."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

import pytest

from turnlock.verification import conformance_suite, regressions, sampling
from turnlock.verification.alphabet.slices import DEV
from turnlock.verification.conformance import technique as conformance
from turnlock.verification.findings import Profile, Status
from turnlock.verification.regressions import read_regression
from turnlock.verification.rulebook import RULES
from turnlock.verification.techniques import TECHNIQUES

from ..depth import DEEP
from .suites import (
    ACCEPTS_ALL,
    CRASHES,
    NEVER_THE_SAME,
    REFUSES_ALL,
    RIGHT,
    STARTS_TWICE,
    theirs,
)

Run = Callable[..., pytest.RunResult]

VISIBLE = [rule for rule in RULES if rule.visible]
HIDDEN = len(RULES) - len(VISIBLE)


@pytest.fixture
def some(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some slices of the conformance suite: `make selftest` plays all of dev."""
    if not DEEP:
        monkeypatch.setattr(conformance, "DEV", DEV[:2])


def test_a_right_kernel_passes_rule_by_rule(run_suite: Run) -> None:
    """Every rule that receipts can show passes; the others are skipped, saying what holds them."""
    result = run_suite(RIGHT, "-v")
    result.assert_outcomes(passed=len(VISIBLE) + 1, skipped=HIDDEN)
    result.stdout.fnmatch_lines(
        [
            "*::TestKernel::test_conformance[[]K-33[]] PASSED*",
            "*::TestKernel::test_conformance[[]section-9[]] PASSED*",
            "*::TestKernel::test_conformance[[]sample[]] PASSED*",
        ]
    )
    result.stdout.fnmatch_lines(["SKIPPED*receipts cannot show it: proved on our tables*"])


def test_a_wrong_kernel_fails_at_its_rule(run_suite: Run) -> None:
    """Its rule fails with the story, and names the file to commit; other rules pass."""
    result = run_suite(theirs(STARTS_TWICE), "-v")
    result.stdout.fnmatch_lines(
        [
            "*[[]K-33[]] FAILED*",
            "*[[]K-52[]] PASSED*",
            "*[[]sample[]] FAILED*",
            "K-33: An accepted claim of the owed attempt is the only way to start*",
            "claim was to be refused as already_started and was accepted",
            "*executor: claim*",
            "differs at accepted: expected false, got true",
            "To keep it from coming back, commit this as tests/regressions/K-33-*.jsonl",
            '{"format": 1, "rule": "K-33"*',
        ]
    )
    assert "Traceback" not in result.stdout.str()


def test_what_is_printed_can_be_committed(run_suite: Run, pytester: pytest.Pytester) -> None:
    """The lines are a regression: an item that fails as long as the fault is there, then passes."""
    printed = run_suite(theirs(STARTS_TWICE), "-k", "K-33").outlines
    begin = next(place for place, line in enumerate(printed) if line.startswith('{"format"'))
    lines = [line for line in printed[begin:] if line.startswith("{")]
    assert json.loads(lines[0])["rule"] == "K-33"
    folder = pytester.mkdir("kept")
    (folder / "K-33-double.jsonl").write_text("\n".join(lines), encoding="utf-8")

    named = 'regressions = "kept"'
    wrong = run_suite(theirs(STARTS_TWICE, more=named), "-v", "-k", "regression")
    wrong.assert_outcomes(failed=1, deselected=len(RULES) + 1)
    wrong.stdout.fnmatch_lines(
        ["*[[]regression-K-33-double[]] FAILED*", "*what was: claim was to be refused*"]
    )
    run_suite(theirs(more=named), "-k", "regression").assert_outcomes(
        passed=1, deselected=len(RULES) + 1
    )


def test_an_undeclared_capability_is_skipped_by_name(run_suite: Run) -> None:
    result = run_suite(theirs(techniques='("recovery",)'), "-v", "-k", "recovery")
    result.stdout.fnmatch_lines(["*[[]recovery[]] SKIPPED*", "SKIPPED*capability recover"])


def test_nothing_judged_is_not_green(run_suite: Run) -> None:
    """Without a technique nothing is judged: every visible rule fails, and none is skipped away."""
    result = run_suite(theirs(techniques="()"))
    result.assert_outcomes(failed=len(VISIBLE), skipped=HIDDEN)
    result.stdout.fnmatch_lines(["not judged: no step of what was run exercises it"])


def test_a_rule_that_nothing_chosen_exercises_is_skipped(
    run_suite: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody left it out; the others pass."""
    monkeypatch.setattr(sampling, "BATCHES", {**sampling.BATCHES, Profile.DEV: 1})
    monkeypatch.setattr(sampling, "BATCH", 1)
    result = run_suite(theirs(), "-v")
    outcomes = result.parseoutcomes()
    assert outcomes["passed"] > 1
    assert outcomes["skipped"] > HIDDEN
    assert "failed" not in outcomes
    result.stdout.fnmatch_lines(["SKIPPED*not judged: no step of what was run exercises it"])


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (
            REFUSES_ALL,
            "*not judged: each of *; open_turn was refused as late and not accepted in *",
        ),
        (ACCEPTS_ALL, "*not judged: each of *; open_turn was answered with no TURN_OPENED in *"),
    ],
)
@pytest.mark.usefixtures("some")
def test_a_kernel_that_answers_all_alike_is_green_nowhere(
    run_suite: Run, fault: str, told: str
) -> None:
    """No rule passes of which no step was answered rightly: here none that a turn must open for."""
    result = run_suite(theirs(fault, techniques='("sample", "conformance", "guided")'), "-v")
    passed = [line for line in result.outlines if "PASSED" in line]
    assert [line for line in passed if "K-33" in line or "K-52" in line] == []
    assert len(passed) <= 7
    result.stdout.fnmatch_lines([told])
    if fault == REFUSES_ALL:
        assert passed == []


@pytest.mark.usefixtures("some")
def test_a_rule_that_is_broken_and_told_by_no_script_of_its_own_fails(run_suite: Run) -> None:
    """Guided scripts tell the first failure alone; what the others broke is not green."""
    result = run_suite(theirs(REFUSES_ALL, techniques='("conformance",)'), "-v")
    result.stdout.fnmatch_lines(["*broken by the first wrong answer of * of other rules"])


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (
            CRASHES,
            "*sample was stopped, *: * was not answered: it raised RuntimeError (out of mem*",
        ),
        (NEVER_THE_SAME, "*sample was stopped, *: the same script was answered in two ways*"),
    ],
)
def test_a_system_that_cannot_be_checked_fails_every_rule(
    run_suite: Run, fault: str, told: str
) -> None:
    """It crashed, or answers in two ways: that is said, and no rule is blamed for it."""
    result = run_suite(theirs(fault))
    result.assert_outcomes(failed=len(VISIBLE) + 1, skipped=HIDDEN)
    result.stdout.fnmatch_lines([told])
    assert "breaks" not in result.stdout.str()


def test_a_failure_of_the_kit_is_an_error_not_a_failure(
    run_suite: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody's kernel is blamed for a bug of ours."""
    monkeypatch.setattr(sampling, "check", None)
    result = run_suite(RIGHT)
    assert result.parseoutcomes() == {"errors": len(RULES) + 1}
    result.stdout.fnmatch_lines(["*HarnessFailed: sample was stopped, the harness failed*"])


def test_a_suite_without_make_sut_says_what_to_write(run_suite: Run) -> None:
    source = RIGHT.partition("    def make_sut")[0]
    run_suite(source, "-k", "K-33").stdout.fnmatch_lines(["*write make_sut in TestKernel*"])


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ("None", "*make_sut returned None, which is no system under test: it has no capabilities*"),
        ("Half()", "*which is no system under test: it has no reset; return a Subject*"),
        ("KernelSubject", "*which is a class; return one of it: KernelSubject(…)*"),
        ("'no-such-command-anywhere'", "*'no-such-command-anywhere' cannot be started (No such*"),
        ("ProcessDriver(['no-such-command'])", "*'no-such-command' cannot be started (No such*"),
        ("''", "*make_sut returned '': command: it is empty; give the command that speaks*"),
        ("'node \\'shim.js'", "*command: it cannot be split (No closing quotation); quote it*"),
    ],
)
def test_what_is_no_system_is_told_by_every_item(run_suite: Run, made: str, told: str) -> None:
    """Nothing else is checked in its place, our own kernel least of all."""
    result = run_suite(HALF + RIGHT.replace("KernelSubject()", made))

    assert result.parseoutcomes() == {"errors": len(RULES) + 1}
    result.stdout.fnmatch_lines([told])
    assert result.stdout.str().count("make_sut returned") == len(RULES) + 1
    assert "exception" not in result.stdout.str()


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ('regressions = "nowhere"', "no regressions at *nowhere*"),
        ('techniques = ("sampel",)', "techniques names sampel; there are sample*"),
    ],
)
def test_mistakes_in_the_class_are_told_at_collection(run_suite: Run, more: str, told: str) -> None:
    result = run_suite(theirs(more=more))
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*{told}"])


WRONG_COMMAND = """
import sys
from turnlock.wire.stdio import serve

class Sink:
    def write(self, line):
        sys.stdout.buffer.write(line.replace(b'"no_active_turn"', b'"turn_mismatch"'))
    def flush(self):
        sys.stdout.buffer.flush()

serve(sys.stdin.buffer, Sink())
"""
HALF = """
from turnlock.verification.subjects.process import ProcessDriver

class Half:
    capabilities, receive = (), None
"""
KEPT = """
{"format": 1, "rule": "K-21", "message": "it was empty", "run": {"run_id": "r"}}
{"type": "open_turn", "now": 0.0, "turn_id": "T1", "calls": []}
"""


def test_a_command_will_do_as_a_system(run_suite: Run, pytester: pytest.Pytester) -> None:
    """Text is a command that speaks the wire: here our own, behind a pipe."""
    pytester.makefile(".jsonl", kept=KEPT)
    source = RIGHT.replace("return KernelSubject()", "return f'{sys.executable} -m turnlock stdio'")
    source = source.replace("    def make_sut", "    regressions = 'kept.jsonl'\n    def make_sut")
    run_suite(f"import sys\n{source}", "-k", "regression").assert_outcomes(
        passed=1, deselected=len(RULES) + 1
    )


def test_a_failure_is_judged_again_by_the_command_that_failed(
    run_suite: Run, pytester: pytest.Pytester
) -> None:
    """And a system in this process by the file: our own kernel would answer in its place."""
    pytester.makefile(".py", wrong=WRONG_COMMAND)
    command = f"'{sys.executable} wrong.py'"
    told = run_suite(RIGHT.replace("KernelSubject()", command)).stdout.str()
    again = [line for line in told.splitlines() if "--replay" in line]
    assert again
    assert all(line.endswith(f"--sut {command}") for line in again)
    ours = again[0].replace("turnlock verify", f"{sys.executable} -m turnlock verify")
    done = subprocess.run(ours, shell=True, capture_output=True, check=False)  # noqa: S602
    assert (done.returncode, b"STILL VIOLATED" in done.stdout) == (1, True)

    told = run_suite(theirs(STARTS_TWICE), "-k", "K-33").stdout.str()
    assert "commit this as" in told
    assert "turnlock verify" not in told
    assert "turnlock stdio" not in told


@pytest.fixture
def long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file is too long to be shown."""
    monkeypatch.setattr(regressions, "SHOWN_FILE", 10)


@pytest.mark.usefixtures("long")
def test_a_long_failure_is_kept_as_a_file(run_suite: Run, pytester: pytest.Pytester) -> None:
    """What nobody can read or paste is not printed."""
    told = run_suite(theirs(STARTS_TWICE), "-k", "K-33").outlines
    (kept,) = {line.split()[7] for line in told if "keep it from coming back" in line}
    assert read_regression(pytester.path / kept).rule == "K-33"
    assert not any(line.startswith('{"format"') for line in told)


@pytest.mark.usefixtures("long")
@pytest.mark.parametrize("options", [(), ("-p", "no:cacheprovider")])
def test_a_failure_is_told_where_no_file_can_be_kept(
    run_suite: Run, pytester: pytest.Pytester, options: tuple[str, ...]
) -> None:
    """As every other failure; and a right kernel needs no place at all."""
    (pytester.mkdir(".pytest_cache") / "d").write_text("in the way", "utf-8")
    told = run_suite(theirs(STARTS_TWICE), "-k", "K-33", *options)
    told.assert_outcomes(failed=1, deselected=len(RULES))
    told.stdout.fnmatch_lines(["*commit what turnlock.verification.written makes of it (*"])
    run_suite(RIGHT, "-k", "sample", *options).assert_outcomes(passed=1, deselected=len(RULES))


PROBE = """
    import pytest
    {first}
    from turnlock.verification import conformance_suite

    def test_profile(pytestconfig):
        assert conformance_suite._profile(pytestconfig) == "{profile}"
"""
LOAD = """
    from hypothesis import settings
    settings.register_profile("{0}")
    settings.load_profile("{0}")
"""


@pytest.mark.parametrize(
    ("first", "options", "profile"),
    [
        (LOAD.format("nightly"), [], "nightly"),
        (LOAD.format("theirs"), [], "dev"),
        (LOAD.format("nightly"), ["--turnlock-profile", "ci"], "ci"),
    ],
)
def test_the_profile_is_asked_for_or_that_of_hypothesis(
    run_suite: Run, first: str, options: list[str], profile: str
) -> None:
    """Hypothesis' loaded profile counts where it has one of our names; an option goes before it."""
    from hypothesis import settings  # noqa: PLC0415 - the profile of these very tests is put back

    loaded = settings.get_current_profile_name()
    try:
        source = PROBE.format(first=first, profile=profile)
        run_suite(source, options=options).assert_outcomes(passed=1)
    finally:
        settings.load_profile(loaded)


def test_the_options_offer_our_profiles(run_suite: Run) -> None:
    """The plugin repeats their names, since it imports nothing."""
    result = run_suite("", "--help")
    result.stdout.fnmatch_lines([f"*--turnlock-profile={{{','.join(Profile)}}}*"])
    result.stdout.fnmatch_lines(["*--turnlock-seed=N*"])


def test_a_suite_works_without_the_plugin(run_suite: Run) -> None:
    """The options have defaults: somebody may block plugins, or vendor the package."""
    run_suite(theirs(techniques="()"), options=[], plugin="no:turnlock").assert_outcomes(
        failed=len(VISIBLE), skipped=HIDDEN
    )


def test_every_black_box_technique_can_be_run() -> None:
    """What a suite runs is what `turnlock verify` runs on others; the statuses are all handled."""
    black_box = {one.name for one in TECHNIQUES if one.black_box}
    assert set(conformance_suite.BLACK_BOX) == black_box | {"closure"}
    assert len(Status) == 4
