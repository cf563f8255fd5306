"""Baselines: what is known fails nothing; what passes now is told by name."""

from __future__ import annotations

import copy
import json
from typing import Any

import attrs
import pytest

from turnlock.models.errors import InvalidValue
from turnlock.verification.reports.baseline import now_passing, read_baseline, to_baseline
from turnlock.verification.subjects.in_process import InProcess

from ..oracle_subject import Right
from .samples import HELD, broken, double_start, report, wrong_result

Raw = dict[str, Any]

FOUND = report(broken(double_start(), wrong_result()))
FILE = to_baseline(FOUND.violations)


class StartsTwice(Right):
    """Accepts the claim of a second worker."""

    def receive(self, delivery: Raw) -> Raw:
        receipt = copy.deepcopy(super().receive(delivery))
        if receipt.get("reason") == "already_started":
            del receipt["reason"]
            receipt["accepted"] = True
        return receipt


def test_a_baseline_makes_its_findings_known() -> None:
    known = read_baseline(FILE)
    again = attrs.evolve(FOUND, known=tuple(entry.fingerprint for entry in known))
    assert [violation.known for violation in again.violations] == [True, True]


def test_an_entry_passes_when_its_script_is_answered_rightly() -> None:
    """Found by playing it: that no technique met it again proves nothing."""
    known = read_baseline(FILE)
    names = [entry.name for entry in known]
    assert [*now_passing(known, [HELD], InProcess(Right, name="right"))] == names
    wrong = InProcess(StartsTwice, name="wrong")
    assert [*now_passing(known, [HELD], wrong)] == [
        name for name in names if not name.startswith("K-33")
    ]


def test_an_entry_that_a_technique_still_finds_does_not_pass() -> None:
    known = read_baseline(FILE)
    assert now_passing(known, FOUND.results, InProcess(Right, name="right")) == ()


def test_an_entry_without_a_script_passes_when_nothing_finds_it() -> None:
    lost = attrs.evolve(read_baseline(FILE)[0], script=())
    assert now_passing([lost], [HELD], InProcess(StartsTwice, name="wrong")) == (lost.name,)


def entry(**change: Any) -> str:
    document = json.loads(FILE)
    document["known"][0] |= change
    return json.dumps(document)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("{", "line 1"),
        ("[]", "format"),
        ('{"format": 2, "known": []}', "format"),
        ('{"format": 1}', "known"),
        ('{"format": 1, "known": [], "more": 1}', "more"),
        ('{"format": 1, "known": 1}', "known"),
        (entry(rule=5), r"known\[0\].rule"),
        (entry(more=5), r"known\[0\]"),
        (entry(script=[1]), r"known\[0\].script\[0\]"),
        (entry(script=[{"type": "tick"}]), r"known\[0\].script\[0\]"),
        (entry(run={}), r"known\[0\].run.run_id"),
        (entry(fingerprint=json.loads(FILE)["known"][1]["fingerprint"]), r"known\[1\].fingerprint"),
    ],
)
def test_what_is_no_baseline_is_refused_with_the_place(text: str, place: str) -> None:
    with pytest.raises(InvalidValue, match=place):
        read_baseline(text)
