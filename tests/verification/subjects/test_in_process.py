"""Subjects in this process: what they do spoils nothing, and how they fail is told as theirs."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from typing import Any

import pytest

from turnlock.verification import sampling
from turnlock.verification.errors import SubjectFailed
from turnlock.verification.findings import NO_ANSWER, Profile
from turnlock.verification.fuzz.guided import RUNS, decode
from turnlock.verification.fuzz.machine import TurnlockMachine
from turnlock.verification.oracle.oracle import Oracle
from turnlock.verification.reports.report import Report, Verdict
from turnlock.verification.subjects import in_process
from turnlock.verification.subjects.in_process import InProcess
from turnlock.verification.subjects.subject import Raw
from turnlock.verification.techniques import verify

from ..depth import DEEP
from ..reports.samples import report
from ..wrong_kernels import Right
from .hostile import CRASHES, YES, HostileDict, Reuses, Spoils, forks, interrupted

RUN, _STEPS = decode(bytes([1, *range(256)]))
SCRIPT = [step for step in _STEPS if step["type"] != "recover"]


def verified(kind: type[Right], *only: str) -> Report:
    results, stops = verify(
        InProcess(kind, name="theirs"),
        profile=Profile.DEV,
        seed=0,
        progress=lambda _: None,
        only=only or ("sample", "guided", "edges"),
    )
    return report(*results, stops=stops)


def doing(what: Callable[[], Any]) -> type[Right]:
    """A subject that is right until it gets a `tick`."""

    class Doing(Right):
        def answer(self, delivery: Raw, right: Raw) -> Any:
            return what() if delivery["type"] == "tick" else right

    return Doing


# ------------------------------------------------------------------- it spoils nothing


@pytest.mark.parametrize("kind", [Spoils, Reuses])
def test_what_a_subject_changes_in_place_spoils_nothing(
    kind: type[Right], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its deliveries, its run, its earlier receipts: it is right, and so it holds."""
    scripts, run = [copy.deepcopy(SCRIPT)] * 2, copy.deepcopy(RUN)
    played = InProcess(kind, name="theirs").play(run, scripts)

    assert (scripts, run) == ([SCRIPT] * 2, RUN)
    oracle = Oracle(RUN)
    assert played == [[oracle.receive(step) for step in SCRIPT]] * 2
    if not DEEP:  # each kind of run once
        monkeypatch.setattr(sampling, "BATCHES", {Profile.DEV: len(RUNS)})
    assert verified(kind, *(() if DEEP else ("sample",))).verdict is Verdict.HOLDS


def as_it_is(value: Any, _: object = None) -> Any:
    return value


@pytest.mark.parametrize("kind", [Spoils, Reuses])
def test_without_copies_everything_is_spoilt(
    kind: type[Right], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: as it was, the same right subjects are blamed."""
    monkeypatch.setattr(in_process, "copied", as_it_is)
    monkeypatch.setattr(in_process, "_read", as_it_is)

    scripts = copy.deepcopy([SCRIPT])
    played = InProcess(kind, name="theirs").play(copy.deepcopy(RUN), scripts)

    oracle = Oracle(RUN)
    assert played != [[oracle.receive(step) for step in SCRIPT]]


def test_a_receipt_is_the_json_that_it_is() -> None:
    """A class that claims to equal anything is read like any other."""
    lies = doing(lambda: HostileDict(YES, facts=[{"type": "LIE"}]))
    (told,) = InProcess(lies, name="theirs").play(RUN, [[{"type": "tick", "now": 0.0}]])

    assert told == [{**YES, "facts": [{"type": "LIE"}]}]
    assert type(told[0]) is dict
    assert verified(lies, "sample").verdict is Verdict.VIOLATED


def test_enumerations_and_tuples_are_json_too() -> None:
    """What people return who write Python: it says the same."""

    class Tuples(Right):
        def answer(self, delivery: Raw, right: Raw) -> Any:
            return {**right, "facts": tuple(right["facts"]), "effects": tuple(right["effects"])}

    assert verified(Tuples, "sample").verdict is Verdict.HOLDS


# ------------------------------------------------------------------- its failures are its own


@pytest.mark.parametrize("name", CRASHES)
def test_a_failure_is_told_as_the_subjects(name: str) -> None:
    """Exit status 5, with what happened, the script and its one step; never the harness's."""
    what, said = CRASHES[name]
    made = verified(doing(what))

    assert (made.verdict, made.exit_status) == (Verdict.SUBJECT_FAILED, 5)
    (stop,) = made.stops
    assert said in stop.message
    assert stop.finding is not None
    assert stop.finding.rule == NO_ANSWER
    assert [step["type"] for step in stop.finding.script] == ["tick"]
    assert stop.finding.expected["accepted"] is True


@pytest.mark.parametrize("name", CRASHES)
def test_the_machine_tells_it_so_too(name: str) -> None:
    """Of those who subclass it."""
    what, said = CRASHES[name]
    machine = TurnlockMachine()
    machine.make_subject = doing(what)  # type: ignore[method-assign]
    machine.begin(1)  # of the runs, the one of `RUN`
    with pytest.raises(SubjectFailed) as told:
        machine.send({"type": "tick"})
    assert said in str(told.value)
    assert told.value.run == RUN


def test_a_reset_that_raises_is_told_with_its_place() -> None:
    class NoReset(Right):
        def reset(self, run: Raw) -> None:
            raise OSError("disk full")

    made = verified(NoReset)
    assert made.exit_status == 5
    assert "raised OSError (disk full) at test_in_process.py:" in made.stops[0].message
    assert "in reset" in made.stops[0].message


def test_somebody_who_interrupts_is_obeyed() -> None:
    """Ctrl-C is the user's, not the subject's: it ends the run."""
    with pytest.raises(KeyboardInterrupt):
        verified(doing(interrupted))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork is POSIX")
def test_a_child_that_comes_back_is_no_second_harness() -> None:
    """It ends with its script; the parent goes on."""
    (told,) = InProcess(doing(forks), name="theirs").play(RUN, [[{"type": "tick", "now": 0.0}]])

    assert told[0]["effects"] == [{"type": "child ended 0"}]


def test_a_huge_answer_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_process, "MAX_ANSWER", 10_000)
    made = verified(doing(lambda: {**YES, "text": "x" * 20_000}), "sample")

    assert made.exit_status == 5
    assert "answered more than 10000 bytes" in made.stops[0].message
