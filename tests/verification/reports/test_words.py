"""Deliveries and receipts in words: every kind has some, and nothing hostile gets through."""

from __future__ import annotations

import random
from typing import Any

import pytest

from turnlock.verification.oracle.oracle import Oracle
from turnlock.verification.reports.stories import (
    BY_FIELD,
    BY_PART,
    answered,
    differing,
    json_lines,
    marked,
    printable,
    sender,
    steps,
    told,
)

from ...random_scripts import run, script
from .samples import HOSTILE, double_start, wrong_result


def test_every_delivery_has_words() -> None:
    """A sentence, no braces and no field names, whatever optional fields are there."""
    for seed in range(30):
        rng = random.Random(seed)
        of = run(rng)
        oracle = Oracle(of)
        for delivery in script(rng, 40, of):
            words = told(delivery)
            assert words
            assert not words.startswith("{")
            assert "None" not in words
            assert sender(delivery) in {"host", "person", "executor", "clock"}
            assert answered(oracle.receive(delivery)).startswith(("accepted", "refused: "))


@pytest.mark.parametrize(
    ("delivery", "words"),
    [
        ({"type": "tick"}, "time passes"),
        (
            {"type": "claim", "turn_id": "T1", "invocation_id": "a", "attempt": 2, "lease": 1.5},
            "claim a (turn T1), attempt 2, lease 1.5 s",
        ),
        (
            {"type": "report", "invocation_id": "a", "result": None},
            "report a (no turn named): result null",
        ),
        (
            {
                "type": "decide",
                "turn_id": "T1",
                "invocation_id": "a",
                "approved": True,
                "scope": "session",
                "match": "tool",
            },
            "approve a (turn T1) for the session, whatever the arguments",
        ),
        ({"type": "unheard of"}, '{"type": "unheard of"}'),
    ],
)
def test_words(delivery: dict[str, Any], words: str) -> None:
    assert told(delivery) == words


@pytest.mark.parametrize("receipt", [None, "crash", {"accepted": True}, {1}])
def test_what_is_no_receipt_is_shown(receipt: object) -> None:
    assert answered(receipt)


def test_control_characters_are_shown_not_obeyed() -> None:
    r"""ESC, NUL and lone surrogates become \x1b, \x00, \ud800; ordinary text stays."""
    assert printable(HOSTILE).isprintable()
    assert r"\x1b[31m\x00\ud800" in printable(HOSTILE)
    assert printable("é × 漢\n\t ok") == "é × 漢\n\t ok"


def test_the_story_holds_the_right_answers() -> None:
    finding = double_start()
    story = steps(finding)
    assert [step.sender for step in story] == ["host", "person", "executor", "clock", "executor"]
    assert [step.at for step in story] == ["0 s", "1 s", "2 s", "2.5 s", "3 s"]
    assert story[-1].receipt == finding.expected


@pytest.mark.parametrize("depth", [BY_PART, BY_FIELD])
def test_the_line_that_differs_is_marked_and_no_other(depth: int) -> None:
    """In both answers, one line each; the lines are the JSON."""
    finding = wrong_result()
    found = differing(finding)
    assert [one.path for one in found] == ["effects[0].results[0].status"]
    for value, status in ((finding.expected, "succeeded"), (finding.got, "failed")):
        lines = json_lines(value, depth=depth)
        (line,) = [line for line in lines if marked(line, found, got=status == "failed")]
        assert f'"status": "{status}"' in line.text
        assert len(lines) > len([line for line in lines if line.whole])
