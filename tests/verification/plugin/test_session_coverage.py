"""`--turnlock-coverage FILE`: what a session met of the tables, from all of its processes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from turnlock.diagrams.coverage import Counts, counts_in
from turnlock.verification.alphabet.slices import DEV
from turnlock.verification.closure.rows import POSSIBLE
from turnlock.verification.conformance import technique
from turnlock.verification.conformance.reach import Reach
from turnlock.verification.conformance.suite import suite

from .suites import RIGHT, theirs

Run = Callable[..., pytest.RunResult]
COVERAGE = ("--turnlock-coverage", "met.json")

THEIR_TESTS = """
import os

import pytest

from turnlock import Call, Claim, Kernel, OpenTurn, Report, Run

@pytest.mark.parametrize("number", range(4))
def test_theirs(number):
    kernel = Kernel(Run(run_id="r"))
    call = Call(invocation_id="a", tool_name="ls", arguments={}, requires_approval=False)
    kernel.receive(OpenTurn(turn_id="T", calls=(call,)), 0.0)
    claim = Claim(turn_id="T", invocation_id="a", attempt=1, worker="w")
    assert kernel.receive(claim, 0.0).accepted
    assert not kernel.receive(claim, 0.0).accepted
    kernel.receive(Report(turn_id="T", invocation_id="a", result=1), 0.0)
    assert not kernel.receive(claim, 0.0).accepted
    {more}
"""
MET = {
    "REQUESTED × claim [free]": 4,
    "STARTED × claim [same_worker]": 4,
    "STARTED × report_result": 4,
    "SEALED × settle [complete]": 4,
}
REASONS = {"duplicate": 4, "late": 4}


def written(pytester: pytest.Pytester) -> Counts:
    """What the reader of pictures reads in the file."""
    counts = counts_in((pytester.path / "met.json").read_bytes(), name="met.json")
    assert counts is not None
    return counts


def positive(counts: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}


def test_what_kernels_in_tests_met_is_written(run_suite: Run, pytester: pytest.Pytester) -> None:
    """Each row that was read, each reason told by admission or table; what was not counts 0."""
    result = run_suite(THEIR_TESTS.replace("{more}", ""), *COVERAGE)

    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines([f"turnlock coverage: 4 of {len(POSSIBLE)} rows met, written to *"])
    counts = written(pytester)
    assert positive(dict(counts.rows)) == MET
    assert positive(dict(counts.reasons)) == REASONS
    assert counts.rows.keys() == set(POSSIBLE)


def test_nothing_is_counted_unless_asked(run_suite: Run, pytester: pytest.Pytester) -> None:
    """The tables are plain dicts then, and no file is there."""
    more = "from turnlock.lifecycle import table; assert type(table._TABLE) is dict"
    run_suite(THEIR_TESTS.replace("{more}", more)).assert_outcomes(passed=4)

    assert not (pytester.path / "met.json").exists()


def test_the_tables_are_as_they_were_afterwards(run_suite: Run) -> None:
    """Whatever ran in this process: nested sessions end in order."""
    from turnlock.lifecycle import table  # noqa: PLC0415 - as it stands now
    from turnlock.turn import table as turn_table  # noqa: PLC0415

    before = vars(table)["_TABLE"], vars(turn_table)["_TABLE"]
    run_suite(THEIR_TESTS.replace("{more}", ""), *COVERAGE)
    assert (vars(table)["_TABLE"], vars(turn_table)["_TABLE"]) == before
    assert vars(table)["_TABLE"] is before[0]


def test_workers_are_added_up(run_suite: Run, pytester: pytest.Pytester) -> None:
    """pytest-xdist: one file, with what each worker met; none writes over another."""
    source = THEIR_TESTS.replace("{more}", "print('worker', os.environ['PYTEST_XDIST_WORKER'])")
    result = in_workers(pytester, source)

    result.assert_outcomes(passed=4)
    assert {line for line in result.outlines if line.startswith("worker ")} == {
        "worker gw0",
        "worker gw1",
    }
    counts = written(pytester)
    assert positive(dict(counts.rows)) == MET
    assert positive(dict(counts.reasons)) == REASONS


def in_workers(pytester: pytest.Pytester, source: str) -> pytest.RunResult:
    """Run in two workers, in processes of their own."""
    pytester.makepyfile(source)
    plugins = ("-p", "xdist.plugin", "-p", "turnlock_pytest")
    return pytester.runpytest_subprocess(*plugins, "-n", "2", "-rP", *COVERAGE)


def test_a_worker_that_crashes_is_told(run_suite: Run, pytester: pytest.Pytester) -> None:
    """What it met is lost, and that is said."""
    del run_suite
    result = in_workers(pytester, THEIR_TESTS.replace("{more}", "number == 3 and os._exit(1)"))

    result.stdout.fnmatch_lines(["turnlock coverage: * 1 workers crashed, *is lost, written to *"])


def test_what_a_suite_reached_is_written(
    run_suite: Run, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a kernel that reads none of our tables: as its technique tells it."""
    monkeypatch.setattr(technique, "DEV", DEV[:1])
    reach = Reach()
    reach.add(suite(DEV[0].without("recover"), k=0))

    run_suite(theirs(techniques='("conformance",)'), "-k", "K-33", *COVERAGE)

    counts = written(pytester)
    assert counts.rows == reach.coverage.rows
    assert counts.reasons == reach.coverage.reasons


def test_what_a_suite_does_to_our_kernel_is_not_counted_twice(
    run_suite: Run, pytester: pytest.Pytester
) -> None:
    """Its technique tells reasons only: no row is there, rather than zeros or what it read."""
    run_suite(RIGHT, "-k", "K-33", *COVERAGE)
    counts = written(pytester)

    assert counts.rows == {}
    assert counts.reasons["late"] > 0


def test_a_folder_that_is_not_there_is_told_first(run_suite: Run) -> None:
    result = run_suite(RIGHT, "--turnlock-coverage", "nowhere/met.json")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--turnlock-coverage: there is no folder *nowhere; make it*"])


def test_a_file_that_cannot_be_written_fails_the_session(
    run_suite: Run, pytester: pytest.Pytester
) -> None:
    """It is a folder: the tests pass, and yet what was asked was not done."""
    pytester.mkdir("met.json")
    result = run_suite(THEIR_TESTS.replace("{more}", ""), *COVERAGE)

    assert result.ret == pytest.ExitCode.INTERNAL_ERROR
    result.stdout.fnmatch_lines(["turnlock coverage was not written: *Is a directory*"])


def test_it_is_imported_only_where_it_is_asked_for(pytester: pytest.Pytester) -> None:
    """As the plugin's own test, the other way round: asked, it is there."""
    root = Path(__file__).resolve().parents[3]
    pytester.makepyfile(
        test_it="import sys\ndef test(): assert 'turnlock.verification.session_coverage' in "
        "sys.modules"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "turnlock_pytest", *COVERAGE]
    environment = [f"PYTHONPATH={root / 'src'}", "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1"]
    assert pytester.run("env", *environment, *command).ret == 0
