"""A crash is an answer: what was wrong before it is the finding, in whatever technique."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from turnlock.verification import sampling, techniques
from turnlock.verification.alphabet.slices import DEV
from turnlock.verification.conformance import technique as conformance
from turnlock.verification.edges import technique as edges
from turnlock.verification.edges.edges import EDGES
from turnlock.verification.findings import NO_ANSWER, UNSTEADY, Profile
from turnlock.verification.fuzz import shorten
from turnlock.verification.regressions import played_again, read_regression, written
from turnlock.verification.reports.headline import headline
from turnlock.verification.reports.html import to_html
from turnlock.verification.reports.junit import to_junit
from turnlock.verification.reports.report import Report, Verdict
from turnlock.verification.reports.terminal import to_text
from turnlock.verification.subjects import process
from turnlock.verification.subjects.child import Child
from turnlock.verification.subjects.in_process import InProcess
from turnlock.verification.subjects.process import ProcessDriver
from turnlock.verification.subjects.subject import Capability, Driver, Raw
from turnlock.verification.subjects.watched import Watched, watched
from turnlock.verification.techniques import verify

from ..depth import DEEP
from ..reports.samples import report
from ..wrong_kernels import Right

COMMAND = [sys.executable, str(Path(__file__).with_name("behind_a_pipe.py"))]
RUN: Raw = {"run_id": "r"}
TICK: Raw = {"type": "tick", "now": 0.0}
INTERRUPT: Raw = {"type": "interrupt", "now": 0.0, "turn_id": "T1"}
CLAIM: Raw = {"type": "claim", "now": 0.0, "turn_id": "T1", "invocation_id": "a", "attempt": 1}


class Crashes(Right):
    """At an interrupt."""

    def answer(self, delivery: Raw, right: Raw) -> Any:
        if delivery["type"] == "interrupt":
            raise RuntimeError("no interrupts here")
        return right


class WrongThenCrashes(Right):
    """It accepts a claim that is to be refused, and whatever comes next makes it raise."""

    capabilities = frozenset({Capability.RECOVER})

    def reset(self, run: Raw) -> None:
        super().reset(run)
        self.wrong = False

    def recover(self) -> Raw:
        receipt: Raw = self.receive({"type": "recover"})
        return receipt

    def answer(self, delivery: Raw, right: Raw) -> Any:
        if self.wrong:
            raise RuntimeError("what now?")
        if delivery["type"] == "claim" and not right["accepted"]:
            self.wrong = True
            return {"accepted": True, "facts": [], "effects": []}
        return right


def verified(driver: Driver, *only: str) -> Report:
    results, stops = verify(
        driver,
        profile=Profile.DEV,
        seed=0,
        progress=lambda _: None,
        only=only or ("sample", "conformance", "guided"),
    )
    return report(*results, stops=stops)


@pytest.fixture
def some(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the techniques that play a list, a part of it: `make selftest` plays the whole."""
    if not DEEP:
        monkeypatch.setattr(conformance, "DEV", DEV[:2])
        monkeypatch.setattr(edges, "EDGES", EDGES[:8])


def behind_a_pipe(way: str, **more: Any) -> ProcessDriver:
    return ProcessDriver([*COMMAND, way], **more)


# ------------------------------------------------------------------- what is heard of a crash


def test_what_was_answered_before_a_crash_is_heard() -> None:
    """Of the scripts before it, and of its own steps; what is behind it was not played."""
    scripts = [[TICK], [TICK, TICK, INTERRUPT, TICK], [TICK]]
    for driver in (InProcess(Crashes, name="theirs"), behind_a_pipe("crash")):
        first, second, third = watched(driver).play(RUN, scripts)
        driver.close()

        assert [receipt["accepted"] for receipt in first] == [True]
        assert [receipt.get("accepted") for receipt in second] == [True, True, None]
        assert third == []


def test_a_crash_behind_a_pipe_is_told_with_how_it_ended() -> None:
    with behind_a_pipe("crash") as driver:
        ((told,),) = watched(driver).play(RUN, [[INTERRUPT]])

    assert told[NO_ANSWER] == (
        "ended without an answer; exit status 3; its stderr ended with:\nout of cheese"
    )


def test_a_crash_is_told_in_one_line_with_its_last_words() -> None:
    """The last line that stood on stderr says what it was: it stands in the first of a report."""
    with behind_a_pipe("crash") as driver:
        found = played_again(driver, RUN, [INTERRUPT])

    assert found is not None
    assert found.message == (
        "interrupt was not answered: it ended without an answer; exit status 3: out of cheese"
    )


def test_batches_end_where_it_crashes() -> None:
    """Also those that were sent ahead."""
    batches = [[[TICK]], [[TICK], [INTERRUPT]], [[TICK]], [[TICK]]]
    for driver in (InProcess(Crashes, name="theirs"), behind_a_pipe("crash")):
        played = [*watched(driver).play_each(RUN, batches)]
        driver.close()

        assert [len(answers) for answers in played] == [1, 2]
        assert NO_ANSWER in played[1][1][0]


class OnlyOnce(Right):
    """It crashes once in the life of the process."""

    crashed = False

    def answer(self, delivery: Raw, right: Raw) -> Any:
        if delivery["type"] == "interrupt" and not OnlyOnce.crashed:
            OnlyOnce.crashed = True
            raise RuntimeError("never again")
        return right


@pytest.mark.usefixtures("some")
def test_a_crash_that_does_not_come_again_is_told_all_the_same() -> None:
    OnlyOnce.crashed = False
    made = verified(InProcess(OnlyOnce, name="theirs"))

    assert made.exit_status == 5
    assert made.stops[0].finding is not None
    assert made.stops[0].finding.got.endswith("and not when the same script was played again")


def test_watching_twice_is_watching_once() -> None:
    once = Watched(InProcess(Right, name="theirs"))
    assert watched(once) is once


# ------------------------------------------------------------------- in every technique


@pytest.mark.parametrize("technique", ["sample", "conformance", "guided", "edges", "recovery"])
@pytest.mark.usefixtures("some")
def test_a_crash_after_a_wrong_answer_is_the_wrong_answer(technique: str) -> None:
    """Every crash of it comes after one: none may be told."""
    made = verified(InProcess(WrongThenCrashes, name="theirs"), technique)

    assert (made.verdict, made.exit_status) == (Verdict.VIOLATED, 1)
    assert made.stops == ()
    assert {one.finding.script[-1]["type"] for one in made.violations} == {"claim"}
    assert min(len(one.finding.script) for one in made.violations) <= 3


def unwatched(driver: Driver) -> Driver:
    return driver


def test_unwatched_the_crash_is_all_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control."""
    monkeypatch.setattr(techniques, "watched", unwatched)

    assert verified(InProcess(WrongThenCrashes, name="theirs"), "sample").exit_status == 5


def test_behind_a_pipe_too_though_a_batch_goes_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "SECONDS", dict.fromkeys(Profile, 0.0))
    monkeypatch.setattr(sampling, "PLAYS", dict.fromkeys(Profile, 20))
    with behind_a_pipe("wrong then crash") as driver:
        made = verified(driver, "sample")

    assert made.exit_status == 1
    assert made.stops == ()
    assert {one.finding.script[-1]["type"] for one in made.violations} == {"claim"}


# ------------------------------------------------------------------- shrunk, shown, kept


@pytest.mark.parametrize("technique", ["sample", "conformance", "guided", "edges", "recovery"])
@pytest.mark.usefixtures("some")
def test_a_crash_is_shrunk_and_shown(technique: str) -> None:
    """Status 5 in every technique: the script, its last step, what it raised, and no rule."""

    class Here(Crashes):
        capabilities = frozenset({Capability.RECOVER})

        def recover(self) -> Raw:
            return self.oracle.receive({"type": "recover"})

    made = verified(InProcess(Here, name="theirs"), technique)

    assert (made.verdict, made.exit_status) == (Verdict.SUBJECT_FAILED, 5)
    assert made.violations == ()
    finding = made.stops[0].finding
    assert finding is not None
    assert [step["type"] for step in finding.script] == ["interrupt"]
    text = to_text(made)
    assert text.startswith(
        f"CRASHED OR TIMED OUT: in {technique}, interrupt was not answered: it raised RuntimeError"
        " (no interrupts here) at test_watched.py:"
    )
    assert "  1. at " in text.replace("   1. at", "  1. at")
    assert "  got:\n    raised RuntimeError (no interrupts here) at test_watched.py:" in text
    for document in (to_html(made), to_junit(made)):
        assert "raised RuntimeError (no interrupts here) at test_watched.py:" in document


def test_what_is_left_after_a_crash_is_named_as_not_done() -> None:
    made = verified(InProcess(Crashes, name="theirs"))

    assert made.techniques["not done"] == ("conformance", "guided")
    assert headline(made).endswith("; not done: conformance, guided; stopped: sample")
    assert "not run, since sample was stopped: crashed or timed out" in to_text(made)


@pytest.mark.parametrize("technique", ["sample", "edges"])
def test_a_system_that_answers_nothing_is_waited_for_three_times(
    monkeypatch: pytest.MonkeyPatch, technique: str
) -> None:
    """With the request, with its first script, and with that script's first step."""
    started: list[Sequence[str]] = []

    class Counted(Child):
        def __init__(self, command: Sequence[str]) -> None:
            started.append(command)
            super().__init__(command)

    monkeypatch.setattr(process, "Child", Counted)
    with ProcessDriver([sys.executable, "-c", "input(); input()"], timeout=0.5) as driver:
        made = verified(driver, technique)

    assert made.exit_status == 5
    assert len(started) <= 3


def test_a_crash_can_be_kept_as_a_regression(tmp_path: Path) -> None:
    """It fails as long as it crashes, and passes once it does not."""
    finding = verified(InProcess(Crashes, name="theirs")).stops[0].finding
    assert finding is not None
    file = tmp_path / "crash.jsonl"
    file.write_text(written(finding), encoding="utf-8")
    kept = read_regression(file)

    again = played_again(InProcess(Crashes, name="theirs"), kept.run, kept.script)
    assert again is not None
    assert (again.rule, again.got) == (NO_ANSWER, finding.got)
    assert played_again(InProcess(Right, name="theirs"), kept.run, kept.script) is None


def test_a_crash_among_wrong_answers_hides_none() -> None:
    """Both are told; what is wrong decides (status 1)."""

    class Both(Crashes):
        def answer(self, delivery: Raw, right: Raw) -> Any:
            receipt = super().answer(delivery, right)
            wrong = receipt.get("reason") == "already_started"
            return {**receipt, "reason": "late"} if wrong else receipt

    made = verified(InProcess(Both, name="theirs"), "sample")

    assert made.exit_status == 1
    assert [stop.verdict for stop in made.stops] == [Verdict.SUBJECT_FAILED]
    assert "already_started" in to_text(made)


# ------------------------------------------------------------------- hangs, garbage, two answers


def test_a_system_that_hangs_is_tried_no_longer_than_it_must() -> None:
    """Each try takes a whole time limit: it is not shrunk, and not asked again and again."""
    with behind_a_pipe("hang second", timeout=1.5) as driver:
        made = verified(driver)

    assert made.exit_status == 5
    assert "did not answer within 1.5 s" in headline(made)
    assert made.stops[0].finding is not None
    assert made.techniques["not done"] == ("conformance", "guided")


def test_garbage_on_stdout_is_no_answer() -> None:
    with behind_a_pipe("babble") as driver:
        made = verified(driver, "sample")

    assert made.exit_status == 5
    assert "answered what is no JSON" in headline(made)


def test_slow_shrinking_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The finding stays, and is not called the shortest."""
    monkeypatch.setattr(shorten, "SECONDS", 0.0)
    finding = verified(InProcess(Crashes, name="theirs")).stops[0].finding

    assert finding is not None
    assert not finding.minimal
    assert len(finding.script) > 1


class Wavers(Right):
    """Every third answer in its life has another reason."""

    asked = 0

    def answer(self, delivery: Raw, right: Raw) -> Any:
        Wavers.asked += 1
        wavers = Wavers.asked % 7 == 0 and not right["accepted"]
        return {**right, "reason": "late"} if wavers else right


def test_two_answers_to_one_script_are_shown_both() -> None:
    """Status 4: the script up to the step, the two answers, and the difference marked."""
    made = verified(InProcess(Wavers, name="theirs"))
    finding = made.stops[0].finding

    assert made.exit_status == 4
    assert finding is not None
    assert finding.rule == UNSTEADY
    text = to_text(made)
    assert text.startswith("NOT DETERMINISTIC: in sample, the same script was answered in two ways")
    assert "\n  first:\n" in text
    assert "\n  then:\n" in text
    assert '  >   "reason": "late"' in text
    page = to_html(made)
    assert "<h3>First</h3>" in page
    assert "<mark>" in page
