"""The hand-written specification against the kernel, and its properties against planted bugs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from turnlock.verification.closure.kernel_player import KernelPlayer
from turnlock.verification.errors import HarnessFailed
from turnlock.verification.exports.checkers import Run, ToolMissing, run_tlc
from turnlock.verification.findings import Status
from turnlock.verification.formal import technique
from turnlock.verification.formal.explore import Walk, explore
from turnlock.verification.formal.scope import MODULE, Alphabet, names, parsed, read_scope, text_of
from turnlock.verification.formal.technique import compare, files_of

from .plants import OTHERS, RULES, Plant

ROOT = Path(__file__).resolve().parents[3]
DEEP = os.environ.get("TURNLOCK_FORMAL") == "deep"
"""With `make check-formal` every property has its bug planted; else those that issue rules."""
QUICK = "life"
STATED = re.compile(r"^(?:INVARIANTS|PROPERTIES) (.+)$", re.MULTILINE)


def tlc(files: dict[str, str], workdir: Path) -> Run:
    """What the real TLC says; the test is skipped, with the reason, where it is not here."""
    try:
        return run_tlc(files, workdir, MODULE)
    except ToolMissing as missing:
        pytest.skip(f"not checked: {missing}")


@cache
def walked(scope: str) -> Walk:
    """The kernel's walk of a scope; made once."""
    return explore(read_scope(scope))


def properties(scope: str) -> set[str]:
    return {
        name for line in STATED.findall(text_of(f"{MODULE}-{scope}.cfg")) for name in line.split()
    }


def test_the_kernel_does_what_the_specification_does(tmp_path: Path) -> None:
    """Step by step; `make check-formal` does it for every scope."""
    comparison = compare(read_scope(QUICK), tmp_path)
    if comparison.missing:
        pytest.skip(f"not checked: {comparison.missing}")

    assert comparison.differences == ()
    assert comparison.counted == comparison.ours
    assert comparison.status is Status.HOLDS


@pytest.mark.parametrize(
    ("scope", "states", "transitions"), [(QUICK, 134, 1_346), ("observed", 719, 5_887)]
)
def test_what_the_kernel_does_is_pinned(scope: str, states: int, transitions: int) -> None:
    """Where Java is missing, too: these are the counts of TLC."""
    walk = walked(scope)

    assert (walk.states, walk.transitions) == (states, transitions)


def test_every_scope_checks_every_property() -> None:
    """A property that is left out of a configuration would hold unseen."""
    assert {frozenset(properties(name)) for name in names()} == {frozenset({*RULES, *OTHERS})}


def test_every_action_is_met_in_some_scope() -> None:
    """Each delivery and each deadline of Next, in the kernel's walks of the small scopes."""
    met = {action for name in (QUICK, "observed", "turns") for action in walked(name).actions}

    assert met >= {
        *("OpenTurn", "AddCall", "SealTurn", "Approve", "Deny", "Claim", "Renew", "Reject"),
        *("ReportResult", "ReportError", "Lose", "ResolveRetry", "ResolveResult", "ResolveError"),
        *(
            "Interrupt",
            "Acknowledge",
            "ApprovalOver",
            "LeaseOver",
            "GraceOver",
            "Advance",
            "Recover",
        ),
    }


@pytest.mark.parametrize("name", [*RULES, *(OTHERS if DEEP else ())])
def test_each_property_is_seen_to_break(name: str, tmp_path: Path) -> None:
    """The negative control: TLC names that very property."""
    plant: Plant = {**RULES, **OTHERS}[name]

    run = tlc(files_of(plant.read_scope(), plant.text()), tmp_path)

    assert run.broken
    assert re.match(rf"Error: (Invariant|Action property) {name} is violated", run.fault)


@pytest.mark.parametrize(
    ("plant", "told"),
    [
        # What is lost can be reported no more: there are fewer steps.
        (
            Plant(
                'c.phase \\in {"STARTED", "IN_DOUBT", "RETRY_AUTHORISED"}', 'c.phase = "STARTED"'
            ),
            "ReportResult: ",
        ),
        # A seal says that it was a settlement: as many steps, which say something else.
        (
            Plant('"TURN_SEALED", "seal_turn"', '"TURN_SEALED", "settle"'),
            "steps of the specification",
        ),
    ],
    ids=["fewer", "otherwise"],
)
def test_a_step_that_breaks_no_property_is_told(
    plant: Plant, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control of the comparison: no property sees these two."""
    text = plant.text()

    def planted(_: str) -> str:
        return text

    monkeypatch.setattr(technique, "text_of", planted)

    comparison = compare(read_scope(QUICK), tmp_path)
    if comparison.missing:
        pytest.skip(f"not checked: {comparison.missing}")

    assert comparison.status is Status.VIOLATED
    assert any(told in line for line in comparison.differences)


def test_a_difference_is_red() -> None:
    """Of states, and of one action while the sum is the same."""
    scope, ours = read_scope(QUICK), Walk(states=2, actions={"Claim": 3, "Lose": 1})
    its = Walk(states=3, actions={"Claim": 2, "Lose": 2})

    comparison = technique.Comparison(scope=scope, ours=ours, counted=its)

    assert comparison.status is Status.VIOLATED
    assert comparison.differences == (
        "TLC meets 3 states of the specification, we 2",
        "Claim: 2 by the specification, 3 by the kernel",
        "Lose: 2 by the specification, 1 by the kernel",
    )


def test_steps_that_lead_elsewhere_are_red() -> None:
    """While all counts are equal."""
    scope, actions = read_scope(QUICK), {"Claim": 2}
    said = (("EXECUTION_RETRIED", "claim"),)
    ours = Walk(states=2, actions=actions, steps={("a", said, "b"): 1, ("b", said, "b"): 1})
    its = Walk(states=2, actions=actions, steps={("a", said, "b"): 2})

    comparison = technique.Comparison(scope=scope, ours=ours, counted=its)

    assert comparison.status is Status.VIOLATED
    assert [told.split(",")[0] for told in comparison.differences] == [
        "1 steps of the specification are not",
        "1 steps of the kernel are not",
    ]


def test_steps_are_read_as_tlc_writes_them() -> None:
    """Tuples, sets, words, numbers and None."""
    line = (
        '"<<<<None, {}, << >>>>, << >>, <<<<\\"T1\\", TRUE, -1>>, {<<\\"T1\\", << >>>>}, << >>>>>>"'
    )

    steps = technique.told_steps(f"noise\n{line}\n{line}\n")

    after = (("T1", True, -1), frozenset({("T1", ())}), ())
    assert steps == {((None, frozenset(), ()), (), after): 2}


def test_without_java_it_is_not_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never green: the missing tool is named, with how to get it."""
    monkeypatch.setenv("PATH", "")

    comparison = compare(read_scope(QUICK), tmp_path)

    assert comparison.status is Status.NOT_DONE
    assert "java is missing" in comparison.missing


def test_the_tool_script_says_not_done(tmp_path: Path) -> None:
    """`tools/check_formal.py` without tools: the table, the reason, and a status of its own."""
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "check_formal.py", QUICK],
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 6, done.stderr
    assert done.stdout.splitlines()[1].split() == [QUICK, "kernel", "134", "1,346"]
    assert done.stdout.endswith("NOT DONE\n")


def test_hostile_deliveries_are_fired_too() -> None:
    """Attempts that do not count, epochs that have passed: refused, so they add to no count."""
    scope = read_scope(QUICK)
    letters = list(Alphabet(scope).at(KernelPlayer(scope.run).begin()))

    assert {raw.get("attempt") for _, raw in letters if raw["type"] == "report"} == {None, -1, 0, 1}
    assert {raw.get("epoch") for _, raw in letters if raw["type"] == "open_turn"} == {None, 0, 1, 2}


def test_constants_are_read_as_tlc_reads_them() -> None:
    constants = {"Calls": "2", "Turns": '{"T"}', "Edits": "{None}", "Gated": "{}", "Yes": "{TRUE}"}
    stated = "".join(f"    {name} = {value}\n" for name, value in constants.items())

    scope = parsed("x", f"\\* About it.\nCONSTANTS\n{stated}SPECIFICATION Spec\n")

    assert scope.about == "About it."
    assert scope.constants == {
        "Calls": 2,
        "Turns": {"T"},
        "Edits": {None},
        "Gated": set(),
        "Yes": {True},
    }


def test_a_constant_that_only_tlc_can_read_is_told() -> None:
    with pytest.raises(HarnessFailed, match=r"Calls = a .. b is read by TLC alone"):
        parsed("x", "CONSTANTS\n    Calls = a .. b\n")
