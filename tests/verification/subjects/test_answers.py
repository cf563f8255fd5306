"""Answers are read alike, whether their parts were read before or not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from turnlock.verification.errors import SubjectFailed
from turnlock.verification.subjects.answers import AnswerReader, receipts_of

SCRIPTS: list[list[dict[str, Any]]] = [[{"type": "tick"}, {"type": "tick"}], [{"type": "log"}]]
YES: dict[str, Any] = {"accepted": True, "facts": [], "effects": []}
NO: dict[str, Any] = {
    "accepted": False,
    "reason": "late",
    "facts": [],
    "effects": [{"type": "wake"}],
}


def line(scripts: Any, **more: Any) -> bytes:
    return json.dumps({"id": 7, "scripts": scripts, **more}).encode()


def test_receipts_are_those_of_the_answer() -> None:
    """Read once or again, packed or with spaces: the same receipts."""
    reader = AnswerReader()
    for _ in range(2):
        assert reader.read(line([[YES, NO], [YES]]), 7, SCRIPTS) == [[YES, NO], [YES]]


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b"[" * 5_000,
        line([[YES, NO], [YES]], id=8),
        line([[YES, NO], [YES]], id="7"),
        line([[YES, NO], [YES]], error={"code": "x"}),
        line([[YES, NO], [YES]], error=None),
        line([[YES], [YES]]),
        line([[YES, NO]]),
        line([[YES, NO], YES]),
        line([[YES, NO], [5]]),
        line([[YES, {**NO, "reason": None}], [YES]]),
        line([[YES, {**NO, "facts": [{}]}], [YES]]),
        line([[YES, {"digest": "d"}], [YES]]),
    ],
)
def test_a_wrong_answer_is_told_in_the_same_words(answer: bytes) -> None:
    """The quick reader never accepts what the careful one refuses, and says what that says."""
    reader = AnswerReader()
    reader.read(line([[YES, NO], [YES]]), 7, SCRIPTS)  # its parts are known now
    with pytest.raises(SubjectFailed) as careful:
        receipts_of(answer, 7, SCRIPTS)

    with pytest.raises(SubjectFailed) as quick:
        reader.read(answer, 7, SCRIPTS)

    assert str(quick.value) == str(careful.value)


def test_a_receipt_is_no_digest() -> None:
    """Where a digest was asked for, a receipt that is known will not do."""
    reader = AnswerReader()
    reader.read(line([[YES, NO], [YES]]), 7, SCRIPTS)

    with pytest.raises(SubjectFailed, match="digest"):
        reader.read(line([[YES]]), 7, [[{"type": "digest"}]])
    assert reader.read(line([[{"digest": "d"}]]), 7, [[{"type": "digest"}]]) == [[{"digest": "d"}]]
