"""The JSON document: complete, with keys that stay, and readable back."""

from __future__ import annotations

import json

import pytest

from turnlock.models.errors import InvalidValue
from turnlock.verification.reports.json_report import from_json, to_json

from .samples import (
    HELD,
    HOSTILE,
    NOT_DONE,
    SKIPPED,
    STOP,
    broken,
    double_start,
    report,
    wrong_result,
)

EVERYTHING = report(
    broken(double_start(HOSTILE), wrong_result()),
    HELD,
    SKIPPED,
    NOT_DONE,
    stops=(STOP,),
    known=("0123456789abcdef",),
    now_passing=("K-9: x",),
)


def test_a_report_survives_the_way_there_and_back() -> None:
    assert from_json(to_json(EVERYTHING)) == EVERYTHING


def test_the_keys_stay() -> None:
    """Whoever reads format 1 finds these; a change of them is a new format."""
    document = json.loads(to_json(EVERYTHING))
    assert [*document] == [
        *["format", "verdict", "exit_status", "subject", "profile", "seed", "versions"],
        *["started", "seconds", "command", "results", "stops", "known", "now_passing"],
        "violations",
    ]
    assert (document["format"], document["exit_status"]) == (1, 5)
    assert [*document["results"][0]] == [
        *["technique", "status", "guarantee", "figures", "findings", "coverage", "seconds", "why"]
    ]
    assert [*document["results"][0]["findings"][0]] == [
        *["technique", "rule", "message", "run", "script", "expected", "got", "minimal"]
    ]
    assert document["violations"][0]["rule"] == "K-52"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "is no JSON"),
        ("[]", "of this format"),
        ('{"format": 2}', "of this format"),
        ('{"format": 1}', "that is no report"),
        (to_json(EVERYTHING).replace('"seed"', '"sead"'), "that is no report"),
        (to_json(EVERYTHING).replace('"not done"', '"green"'), "that is no report"),
    ],
)
def test_what_is_no_report_is_refused_with_the_place(text: str, told: str) -> None:
    with pytest.raises(InvalidValue, match=told):
        from_json(text)
