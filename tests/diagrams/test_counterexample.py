"""Counterexamples: what a kernel did wrong, with the two answers side by side."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnlock.diagrams.drawing.lettering import columns_of
from turnlock.diagrams.sequence.answers import SHOWN, answered, compared
from turnlock.diagrams.sequence.counterexample import (
    counterexample_picture,
    findings_in,
    regression_picture,
)
from turnlock.diagrams.sequence.messages import Kind
from turnlock.diagrams.sequence.picture import SequencePicture
from turnlock.models.errors import InvalidValue
from turnlock.verification.findings import Finding
from turnlock.verification.fuzz.guided import follow
from turnlock.verification.regressions import written
from turnlock.verification.rulebook import first_difference
from turnlock.wire.plain import alike

from .runs import CLAIM, OPEN, RESULT, Raw
from .sequence_scenes import INJECTIONS, assert_readable

REPORT = Path(__file__).parent / "data" / "approval-outlives-turn.json"
RIGHT: Raw = {"accepted": False, "reason": "duplicate", "facts": [], "effects": []}
STARTED: Raw = {"type": "TOOL_EXECUTION_STARTED", "sequence": 3, "at": 0.0, "invocation_id": "a"}
WRONG: Raw = {"accepted": True, "facts": [STARTED], "effects": []}


def finding(**fields: Any) -> Raw:
    whole: Raw = {
        "technique": "guided",
        "rule": "K-30",
        "message": "report was to be refused.",
        "run": {"run_id": "r"},
        "script": [OPEN, CLAIM, {**RESULT, "now": 1.0}, {**RESULT, "now": 2.0}],
        "expected": RIGHT,
        "got": WRONG,
    }
    return {**whole, **fields}


def words(picture: SequencePicture, *kinds: Kind) -> list[str]:
    return [
        message.label
        for step in picture.steps
        for message in step.messages
        if message.kind in kinds
    ]


def the_report() -> Raw:
    report: Raw = json.loads(REPORT.read_text(encoding="utf-8"))
    return report


def test_a_real_report_is_listed_and_drawn() -> None:
    """The planted bug: an approval given in a turn lets the same id start in the next."""
    (listed,) = findings_in(the_report())
    picture = counterexample_picture(listed.finding)

    assert listed.id == the_report()["violations"][0]["fingerprint"]
    assert (listed.technique, listed.rule, listed.steps) == ("guided", "K-33", 6)
    assert picture.title == "K-33: claim was to be refused as not_approved and was accepted"
    assert words(picture, Kind.DELIVERY)[-1] == "claim ls a · attempt 0"
    assert words(picture, Kind.EXPECTED) == ["expected: refused: not_approved"]
    assert words(picture, Kind.GOT) == ["got: accepted · TOOL_EXECUTION_STARTED a"]
    assert picture.comparison is not None
    assert picture.comparison.difference == "differs at accepted: expected false, got true"
    assert_readable(picture.svg())


def test_every_form_tells_both_answers() -> None:
    """Expected, got and where they differ stand in text, Markdown, Mermaid, HTML and SVG."""
    picture = counterexample_picture(finding())
    forms = (picture.text(), picture.mermaid(), picture.html(), picture.svg(), picture.markdown())

    for form in forms:
        assert "expected: refused: duplicate" in form
        assert "got: accepted" in form
        assert "differs at accepted: expected false, got true" in form


def test_what_is_right_comes_before_what_is_wrong() -> None:
    """All steps but the last tell what our kernel answers; the last tells the two answers alone."""
    picture = counterexample_picture(finding())

    assert words(picture, Kind.FACT) == [
        "turn T opened · epoch 1 · 1 call",
        "ls a started · attempt 1 · lease 1 s",
        "ls a succeeded · 1",
        "turn T settled",
    ]
    last = picture.steps[-1].messages
    assert [one.kind for one in last] == [
        Kind.DELIVERY,
        Kind.EXPECTED,
        Kind.GOT,
        Kind.DIFFERENCE,
    ]


@pytest.mark.parametrize(
    ("got", "told"),
    [
        (None, "got: no receipt"),
        ("Traceback: boom", 'got: no receipt: "Traceback: boom"'),
        ({"error": {"code": "crash"}}, 'got: no receipt: {"error": {"code": "crash"}}'),
        ({"accepted": 1, "facts": [], "effects": []}, "got: no receipt: "),
    ],
)
def test_an_answer_may_be_no_receipt_at_all(got: object, told: str) -> None:
    """A crash, silence and nonsense are shown as they are, against all that was expected."""
    picture = counterexample_picture(finding(got=got))

    (words_of_it,) = words(picture, Kind.GOT)
    assert words_of_it.startswith(told)
    assert picture.comparison is not None
    assert picture.comparison.difference.startswith("differs at the answer: expected {")
    assert_readable(picture.svg())


def test_steps_of_harnesses_are_told() -> None:
    """A recovery stands as a crash with what is owed then; a digest as itself, even as the last."""
    script = [OPEN, {"type": "recover"}, {**CLAIM, "now": 1.0}, {"type": "digest"}]
    picture = counterexample_picture(
        finding(script=script, expected={"digest": "x"}, got={"digest": "y"})
    )

    assert words(picture, Kind.DELIVERY) == [
        "open turn T · ls a",
        "crash, and recover from the journal",
        "claim ls a · attempt 1 · lease 1 s",
        "digest of the state",
    ]
    assert words(picture, Kind.EFFECT) == ["execute ls a · attempt 1"] * 2
    assert words(picture, Kind.GOT) == ['got: no receipt: {"digest": "y"}']


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"script": [OPEN, {"type": "claim", "now": 0.0}]}, r"^script\[1\]\.turn_id: is missing"),
        ({"script": [OPEN, {"type": "tick"}]}, r"^script\[1\]\.now"),
        ({"script": [3]}, r"^script\[0\]: 3 is no delivery"),
        ({"script": [{"type": "send", "thread": 1}]}, r"^script\[0\]\.type: 'send' is no known"),
        ({"script": None}, "^script: None cannot be the script of a finding"),
        ({"run": {"run_id": ""}}, r"^run\.run_id"),
        ({"run": {"case": 1}}, "^run"),
        ({"rule": 3}, "^rule: 3 cannot"),
    ],
)
def test_what_our_kernel_cannot_read_is_an_error_with_its_place(fields: Raw, place: str) -> None:
    """The message names the step and the field, what is wrong, and what would be right."""
    with pytest.raises(InvalidValue, match=place):
        counterexample_picture(finding(**fields))


@pytest.mark.parametrize("evil", INJECTIONS)
def test_names_of_findings_are_never_markup(evil: str) -> None:
    """What a system under test says, and what a script names, stays text in all forms."""
    call = {**OPEN["calls"][0], "invocation_id": evil}
    got = {"accepted": False, "reason": evil, "facts": [{"type": evil, evil: evil}], "effects": []}
    picture = counterexample_picture(
        finding(message=evil, script=[{**OPEN, "calls": [call]}], got=got)
    )

    assert_readable(picture.svg())
    for form in (picture.html(), picture.svg()):
        assert "<script" not in form
        assert "\u202e" not in form
    assert max(map(columns_of, picture.text().splitlines())) <= 100


def test_findings_without_a_fingerprint_are_numbered() -> None:
    """Where the report names no violation for it, technique and number tell a finding."""
    report: Raw = {"format": 1, "results": [{"findings": [finding(), finding()]}, {"findings": []}]}

    assert [one.id for one in findings_in(report)] == ["guided-1", "guided-2"]


@pytest.mark.parametrize(
    ("report", "place"),
    [
        ({}, "^format"),
        ({"format": 2, "results": []}, "^format"),
        ({"format": 1, "results": 3}, "^format"),
        ({"format": 1, "results": [3]}, "^results: 3 is no object"),
        ({"format": 1, "results": [{"findings": 3}]}, r"^results\[0\]\.findings"),
        ({"format": 1, "results": [], "violations": [None]}, "^violations"),
    ],
)
def test_what_is_no_report_is_an_error(report: Raw, place: str) -> None:
    """Whoever gives another file is told which part of it is wrong."""
    with pytest.raises(InvalidValue, match=place):
        findings_in(report)


def test_a_regression_file_is_drawn_with_what_is_right() -> None:
    """The kit's own file: its script, answered by our kernel, under its message."""
    whole: dict[str, Any] = {**finding(), "script": tuple(finding()["script"])}
    kept = Finding(**whole)

    picture = regression_picture(written(kept))

    assert picture.title == "K-30: report was to be refused"
    assert picture.comparison is None
    assert words(picture, Kind.REFUSAL) == ["refused: late"]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "^line 1"),
        ("[]", "^line 1"),
        ('{"format": 2}', "^line 1"),
        ('{"format": 1}\nnonsense', "^line 2"),
        ('{"format": 1, "rule": "K", "message": "", "run": {"run_id": "r"}}\n{}', r"^script\[0\]"),
    ],
)
def test_what_is_no_regression_file_is_an_error(text: str, place: str) -> None:
    """The line is named."""
    with pytest.raises(InvalidValue, match=place):
        regression_picture(text)


def changed(receipt: Raw, rng: Random) -> Raw:
    """The receipt with one mistake in it, or with none."""
    twin = copy.deepcopy(receipt)
    parts = [*twin["facts"], *twin["effects"]]
    mistake = rng.randrange(6)
    if mistake == 0:
        twin["accepted"] = not twin["accepted"]
    elif mistake == 1:
        twin["reason"] = "late"
    elif mistake == 2 and twin["facts"]:
        twin["facts"].pop(rng.randrange(len(twin["facts"])))
    elif mistake == 3 and parts:
        part = rng.choice(parts)
        part[rng.choice(list(part))] = "changed"
    elif mistake == 4 and twin["effects"]:
        twin["effects"].append(copy.deepcopy(rng.choice(twin["effects"])))
    elif mistake == 5:
        twin["effects"].reverse()
    return twin


@given(st.integers(0, 2**32))
@settings(max_examples=25)
def test_a_difference_is_shown_exactly_where_the_kit_sees_one(seed: int) -> None:
    """Two answers are alike here if and only if the proof kit takes them for alike."""
    rng = Random(seed)
    for expected in follow(rng.randbytes(129)).expected:
        got = changed(expected, rng)
        comparison = compared(expected, got)

        differs = first_difference(expected, got) is not None
        assert bool(comparison.difference) is differs, (expected, got)
        assert any(pair.differs for pair in comparison.pairs) is differs
        assert len(comparison.pairs) <= SHOWN


def test_numbers_are_equal_by_value_and_commit_may_be_left_out() -> None:
    """A kernel in another language writes 1 for 1.0, and nobody is asked for `commit`."""
    fact = {"type": "TURN_SEALED", "turn_id": "T", "at": 1.0, "sequence": 2, "commit": 2}
    ours = {"accepted": True, "facts": [fact], "effects": []}
    theirs = {"accepted": True, "facts": [{**fact, "at": 1}], "effects": []}
    del theirs["facts"][0]["commit"]  # type: ignore[index]

    assert compared(ours, theirs).difference == ""
    assert [pair.field for pair in compared(ours, theirs).pairs] == [
        "accepted",
        "fact TURN_SEALED T",
    ]
    assert alike([{"n": 1}], [{"n": 1.0}])
    assert not alike([1], [True])


def test_what_merely_numbers_is_named_last() -> None:
    """Where a sequence and a worker differ, the worker is the difference that is named."""
    theirs = {**WRONG, "facts": [{**STARTED, "sequence": 9, "worker": "w"}]}

    difference = compared(WRONG, theirs).difference

    assert difference == (
        'differs at fact TOOL_EXECUTION_STARTED a worker: expected nothing, got "w"'
    )


def test_what_differs_is_shown_before_what_is_alike() -> None:
    """Of a long answer the fields that differ are kept, in their places; the others are counted."""
    facts = [{"type": "X", "invocation_id": f"i{place}", "n": place} for place in range(100)]
    ours = {"accepted": True, "facts": facts, "effects": []}
    theirs = {**ours, "facts": [*facts[:-1], {**facts[-1], "n": -1}]}

    comparison = compared(ours, theirs)

    assert [pair.field for pair in comparison.pairs if pair.differs] == ["fact X i99 n"]
    assert len(comparison.pairs) == SHOWN
    assert comparison.left_out == 78
    assert "78 more fields are left out" in comparison.table.note


def test_answers_in_words() -> None:
    """Wakes are alarm clocks, no news."""
    wake = {"type": "wake", "at": 3.0}
    execute = {"type": "execute", "invocation_id": "a"}

    assert answered({**WRONG, "effects": [wake, execute]}) == (
        "accepted · TOOL_EXECUTION_STARTED a · execute a"
    )
    assert answered(None) == "no receipt"
