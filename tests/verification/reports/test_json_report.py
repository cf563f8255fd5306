"""The JSON document: complete, with keys that stay."""

from __future__ import annotations

import json

import attrs

from turnlock.verification.reports.json_report import to_json

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


def test_the_keys_stay() -> None:
    """Whoever reads format 1 finds these; a change of them is a new format."""
    document = json.loads(to_json(EVERYTHING))
    assert [*document] == [
        *["format", "verdict", "exit_status", "headline", "techniques", "judged", "not_judged"],
        *["subject", "profile", "seed", "versions"],
        *["started", "seconds", "command", "results", "stops", "known", "now_passing", "stdio"],
        *["violations", "stories"],
    ]
    assert (document["format"], document["exit_status"]) == (1, 1)
    assert [*document["results"][0]] == [
        *["technique", "status", "guarantee", "figures", "findings", "coverage", "judged"],
        *["seconds", "why"],
    ]
    assert [*document["results"][0]["findings"][0]] == [
        *["technique", "rule", "message", "run", "script", "expected", "got", "minimal", "also"]
    ]
    assert document["violations"][0]["rule"] == "K-52"


def test_every_figure_and_finding_is_there() -> None:
    """As attrs sees the report, once it is JSON; what is derived stands beside it."""
    document = json.loads(to_json(EVERYTHING))
    whole = json.loads(json.dumps(attrs.asdict(EVERYTHING), default=repr))

    assert {name: document[name] for name in whole} == whole
