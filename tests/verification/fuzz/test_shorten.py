"""Shortening: what is found becomes as short as can be, and says whether it is."""

from __future__ import annotations

import operator
import random
from collections.abc import Sequence
from itertools import islice, takewhile
from typing import Final

import pytest

from turnlock.verification.findings import Finding
from turnlock.verification.fuzz import differences
from turnlock.verification.fuzz.differences import Expected
from turnlock.verification.fuzz.guided import STEP_BYTES, decode
from turnlock.verification.fuzz.shorten import (
    judge_by,
    shortened,
    shortest,
    simpler_scripts,
    without_suspects,
)
from turnlock.verification.fuzz.technique import first_failure
from turnlock.verification.oracle.oracle import Oracle
from turnlock.verification.oracle.reading import canonical
from turnlock.verification.subjects.in_process import InProcess
from turnlock.verification.subjects.kernel import KernelSubject
from turnlock.verification.subjects.subject import Raw, Script

from .wrong import (
    CoversNothing,
    EndsGrants,
    ForgetsWorkers,
    LeaseByTheClock,
    LeaseIsAnEnd,
    LosesEffects,
    NoDuplicates,
    TruthIsOne,
    WrongReason,
)

CALL: Final[Raw] = {
    "invocation_id": "a",
    "tool_name": "ls",
    "arguments": {},
    "requires_approval": False,
}
KNOWN = [(WrongReason, 4, "K-30"), (TruthIsOne, 3, "K-30"), (LosesEffects, 2, "K-3")]


def logs(texts: str) -> tuple[Raw, ...]:
    """A script whose deliveries are told apart by one letter."""
    return tuple({"type": "log", "invocation_id": "a", "text": text, "now": 0.0} for text in texts)


def texts(script: Script) -> str:
    return "".join(step["text"] for step in script)


def finding(script: Script) -> Finding:
    return Finding(
        technique="test",
        rule="K-1",
        message="",
        run={"run_id": "r"},
        script=tuple(script),
        expected=None,
        got=None,
    )


def shortest_of(failing: Sequence[str], first: str, plays: int = 1_000) -> Finding:
    def fails(script: Script) -> Finding | None:
        return finding(script) if texts(script) in failing else None

    return shortest(finding(logs(first)), judge_by(fails), plays=plays)


@pytest.mark.parametrize(("wrong", "length", "rule"), KNOWN)
def test_a_planted_mistake_is_found_and_shortened_to_its_known_length(
    wrong: type[KernelSubject], length: int, rule: str
) -> None:
    """From dozens of steps to the fewest there can be, and the last is the one that differs."""
    driver = InProcess(wrong, name="wrong")
    found = first_failure(driver, seed=1, examples=500)
    assert found is not None

    short = shortened(found, driver)

    assert len(short.script) == length <= len(found.script)
    assert short.minimal
    assert short.rule == rule
    assert shortened(found, driver) == short, "deterministic"


@pytest.mark.parametrize("number", range(4))
def test_candidates_are_held_against_what_each_is_answered_alone(number: int) -> None:
    """What they share from their start is asked once; crashes, and text to the last byte."""
    run, script = decode(random.Random(number).randbytes(1 + 24 * STEP_BYTES))
    script.insert(len(script) // 2, {"type": "recover"})
    candidates = [script, *islice(simpler_scripts(script), 60), script[:9], script[:0], script]
    asked = Expected(run)

    for candidate in candidates:
        alone = Oracle(run)
        expected = [alone.receive(step) for step in candidate]
        assert canonical(asked.receipts(candidate)) == canonical(expected)


def begin_equally(one: Script, other: Script) -> int:
    """With how many deliveries both begin that Python holds equal."""
    return len([*takewhile(operator.truth, map(operator.eq, one, other))])


def test_candidates_share_no_answer_because_they_are_equal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To `==` a result of true is one of 1; the control shares by that, and is wrong."""
    claimed: list[Raw] = [
        {"type": "open_turn", "turn_id": "T", "calls": [CALL], "now": 0.0},
        {"type": "claim", "turn_id": "T", "invocation_id": "a", "attempt": 1, "now": 0.0},
    ]
    one, true = (
        [*claimed, {"type": "report", "turn_id": "T", "invocation_id": "a", "result": it, "now": 0}]
        for it in (1, True)
    )

    def answers() -> list[str]:
        asked = Expected({"run_id": "r"})
        return [canonical(asked.receipts(script)[-1]) for script in (one, true)]

    right = answers()
    monkeypatch.setattr(differences, "shared", begin_equally)
    wrong = answers()

    assert '"result":true' in right[1]
    assert right[0] != right[1]
    assert wrong == [right[0], right[0]]


def test_fields_and_times_are_made_plain() -> None:
    """What does not matter is gone: time, workers, leases, calls, arguments."""
    driver = InProcess(TruthIsOne, name="wrong")
    found = first_failure(driver, seed=0, examples=500)
    assert found is not None

    opening, claim, report = shortened(found, driver).script

    (call,) = opening["calls"]
    assert call["arguments"] == {}
    assert call["tool_name"] == "ls"
    assert set(claim) == {"type", "turn_id", "invocation_id", "attempt", "now"}
    assert report["result"] == 1
    assert [step["now"] for step in (opening, claim, report)] == [0.0, 0.0, 0.0]


def test_a_null_is_left_out_wherever_it_stands() -> None:
    """What fails without it is not for want of reading a null (section 3); a result is a value."""
    call: Raw = {
        "invocation_id": "a",
        "tool_name": "ls",
        "arguments": {},
        "requires_approval": False,
    }
    nulls: Raw = {"approval_timeout": None, "observed": None, "provider_call_id": None}
    script: list[Raw] = [
        {"type": "open_turn", "turn_id": "T", "calls": [{**call, **nulls}], "epoch": None},
        {"type": "claim", "turn_id": None, "invocation_id": "a", "attempt": None, "lease": None},
        {"type": "report", "turn_id": "T", "invocation_id": "a", "result": None, "attempt": None},
    ]
    calls = [one[0]["calls"] for one in simpler_scripts(script)]
    for name in nulls:
        assert [{**call, **{it: None for it in nulls if it != name}}] in calls
    while (simpler := next(simpler_scripts(script), None)) is not None:
        script = [*simpler]
    opening, claim, report = script
    assert None not in (*opening.values(), *claim.values())
    assert "attempt" not in report

    (alone,) = simpler_scripts([{**script[1], "observed": None}])
    assert alone == [script[1]]


def opened(turn: str, call: Raw, now: float = 0.0) -> Raw:
    return {"type": "open_turn", "turn_id": turn, "calls": [call], "now": now}


GATED: Final = {**CALL, "requires_approval": True}
OF_A: Final[Raw] = {"turn_id": "T1", "invocation_id": "a", "now": 0.0}
LATER_TURN: Final[list[Raw]] = [
    opened("T1", GATED),
    {"type": "decide", **OF_A, "approved": True, "scope": "session"},
    {"type": "interrupt", "turn_id": "T1", "now": 0.0},
    opened("T2", GATED),
]
SET_BACK: Final[list[Raw]] = [
    opened("T1", CALL, now=0.5),
    {"type": "claim", **OF_A, "attempt": 1, "lease": 0.0},
]


@pytest.mark.parametrize(
    ("wrong", "script", "rule"),
    [
        (CoversNothing, LATER_TURN, "K-41"),
        (EndsGrants, LATER_TURN, "K-42"),
        (LeaseIsAnEnd, SET_BACK, "K-34"),
        (LeaseByTheClock, SET_BACK, "K-10"),
    ],
)
def test_what_has_no_part_in_it_draws_no_blame(
    wrong: type[KernelSubject], script: Script, rule: str
) -> None:
    """The end of a turn, and a clock that was set back: it may fail without them, too."""
    driver = InProcess(wrong, name="wrong")
    run = {"run_id": "r"}
    expected = Expected(run).receipts(script)
    (got,) = driver.play(run, [script])
    found = differences.difference(run, script, expected, got, technique="test")
    assert found is not None
    assert found.rule in {"K-10", "K-42"}

    assert shortened(found, driver, plays=2_000).rule == rule


def test_a_recovery_sets_no_clock_back() -> None:
    """It has no time: there is nothing to be taken away, again and again."""
    assert [*without_suspects([opened("T1", CALL, now=0.5), {"type": "recover"}])] == []


@pytest.mark.parametrize(("wrong", "rule"), [(ForgetsWorkers, "K-2"), (NoDuplicates, "section 6")])
def test_a_recovery_is_blamed_though_nothing_can_be_made_shorter(
    wrong: type[KernelSubject], rule: str
) -> None:
    """What is cut off before it is minimal is played without the recovery all the same."""
    driver = InProcess(wrong, name="wrong")
    claim = {"type": "claim", **OF_A, "attempt": 1, "worker": "w"}
    script = [opened("T1", CALL), claim, {"type": "recover"}, claim]
    run = {"run_id": "r"}
    (got,) = driver.play(run, [script])
    found = differences.difference(
        run, script, Expected(run).receipts(script), got, technique="test"
    )
    assert found is not None

    cut_off = shortened(found, driver, plays=0)

    assert (cut_off.rule, cut_off.minimal) == (rule, False)


def test_chunks_are_dropped() -> None:
    assert texts(shortest_of(["abcdef", "bc", "bcd", "abc"], "abcdef").script) == "bc"


def test_what_dropping_cannot_reach_is_found_by_search() -> None:
    """`abc` loses nothing without passing; one of its letters twice fails as well, and is less."""
    found = shortest_of(["abc", "bb"], "abc")

    assert texts(found.script) == "bb"
    assert found.minimal


def test_search_goes_on_from_what_it_found() -> None:
    """After the first shorter one, everything starts again: shrinking, and the search."""
    assert texts(shortest_of(["abcde", "eaea", "ee"], "abcde", plays=5_000).script) == "ee"


def test_a_search_that_was_cut_off_claims_nothing() -> None:
    """With too few plays there may be something shorter: `minimal` says so."""
    cut = shortest_of(["abc", "cc"], "abc", plays=12)

    assert texts(cut.script) == "abc"
    assert not cut.minimal


def test_candidates_are_played_in_batches() -> None:
    """One, two, four … scripts at once: a pipe is not asked for each of them."""
    sizes: list[int] = []

    def judge(scripts: Sequence[Script]) -> list[Finding | None]:
        sizes.append(len(scripts))
        return [None] * len(scripts)

    assert shortest(finding(logs("abcdef")), judge, plays=3_000).script == logs("abcdef")

    assert sum(sizes) == 3_000
    assert max(sizes) == 256
    assert len(sizes) < 30


def test_simpler_scripts_come_to_an_end() -> None:
    """Taking the first simpler one again and again ends, at the plainest."""
    call = {"invocation_id": "a", "tool_name": "pay", "requires_approval": True}
    call |= {"arguments": {"n": 1}, "approval_timeout": 2.0}
    script: Script = [
        {"type": "open_turn", "turn_id": "T", "calls": [call, call], "sealed": False, "now": 3.0},
        {"type": "renew", "turn_id": "T", "invocation_id": "a", "lease": 2.0, "now": 9.0},
        {"type": "recover"},
        {"type": "interrupt", "turn_id": "T", "grace": 5.0, "reason": "x", "now": 4.0},
    ]
    taken = 0
    while (simpler := next(simpler_scripts(script), None)) is not None:
        script, taken = simpler, taken + 1
        assert taken < 50

    assert [step.get("now") for step in script] == [0.0, 0.0, None, 0.0]
    assert script[0] == {"type": "open_turn", "turn_id": "T", "calls": [], "now": 0.0}
    assert script[1]["lease"] == 0.0
    assert set(script[3]) == {"type", "turn_id", "now"}
