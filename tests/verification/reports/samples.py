"""Reports to render: of a kernel that is right, and of one that lets two executors start."""

from __future__ import annotations

import copy
from typing import Any

import attrs

from turnlock.verification.findings import (
    Coverage,
    Finding,
    Judged,
    Profile,
    Result,
    Status,
)
from turnlock.verification.oracle.oracle import Oracle
from turnlock.verification.reports.report import Report, Stop, Verdict
from turnlock.verification.rulebook import blamed, described

Raw = dict[str, Any]

RUN: Raw = {"run_id": "r", "limits": {"remembered": 1024}}
HOSTILE = '</script><b onload="x">&\x1b[31m\x00\ud800'
"""A tool's name that breaks out of HTML, colours a terminal, and may not stand in XML."""


def opening(tool_name: str) -> Raw:
    call = {"invocation_id": "a", "tool_name": tool_name, "arguments": {"n": 1}}
    gated = {**call, "requires_approval": True, "approval_timeout": 5.0}
    return {"type": "open_turn", "now": 0.0, "turn_id": "T1", "calls": [gated]}


def claim(worker: str, now: float) -> Raw:
    about = {"turn_id": "T1", "invocation_id": "a", "attempt": 1}
    return {"type": "claim", "now": now, **about, "worker": worker, "lease": 2.0}


def double_start(tool_name: str = "pay", **change: Any) -> Finding:
    """One approval, two starts: the claim of a second worker is accepted."""
    approve = {"type": "decide", "now": 1.0, "turn_id": "T1", "invocation_id": "a"}
    script = (
        opening(tool_name),
        {**approve, "approved": True, "decided_by": "ann"},
        claim("w1", 2.0),
        {"type": "tick", "now": 2.5},
        claim("w2", 3.0),
    )
    oracle = Oracle(RUN)
    receipts = [oracle.receive(delivery) for delivery in script]
    got = copy.deepcopy(receipts[2])
    got["facts"][0].update(at=3.0, sequence=5, worker="w2")
    found = Finding(
        technique="closure",
        rule=blamed(script[-1], receipts[-1], got),
        message=described(script[-1], receipts[-1], got),
        run=RUN,
        script=script,
        expected=receipts[-1],
        got=got,
        minimal=True,
    )
    return attrs.evolve(found, **change)


def wrong_result() -> Finding:
    """The continuation says something else than the report did: one field differs."""
    call = {**opening("ls")["calls"][0], "requires_approval": False}
    script = (
        {**opening("ls"), "calls": [call]},
        claim("w1", 1.0),
        {"type": "report", "now": 2.0, "turn_id": "T1", "invocation_id": "a", "result": None},
    )
    oracle = Oracle(RUN)
    expected = [oracle.receive(delivery) for delivery in script][-1]
    got = copy.deepcopy(expected)
    got["effects"][0]["results"][0].update(status="failed")
    return Finding(
        technique="guided",
        rule=blamed(script[-1], expected, got),
        message=described(script[-1], expected, got),
        run=RUN,
        script=script,
        expected=expected,
        got=got,
    )


COVERAGE = Coverage(
    reasons={"late": 1204, "turn_busy": 88, "lease_lost": 0},
    pairs={
        "REQUESTED × approve": 9000,
        "REQUESTED × claim": 40,
        "STARTED × claim": 3,
        "STARTED × lose": 0,
        "OPEN × add_call": 120,
        "SEALED × add_call": 0,
    },
    rules={"K-33": 4100, "K-52": 77, "K-20": 0, "section 12": 9000},
)
JUDGED = Judged(scripts=100, steps=9000, rules=COVERAGE.rules)
HELD = Result(
    technique="closure",
    status=Status.HOLDS,
    guarantee="No script of any length over this alphabet is answered otherwise.",
    figures={"states": 3266, "transitions": 444_000},
    coverage=COVERAGE,
    judged=JUDGED,
    seconds=2.9,
)
SKIPPED = Result(
    technique="recovery",
    status=Status.SKIPPED,
    guarantee="",
    why="the system under test does not declare the capability recover",
)
NOT_DONE = Result(
    technique="exports", status=Status.NOT_DONE, guarantee="", why="java is missing: apt install it"
)
STOP = Stop(technique="conformance", verdict=Verdict.SUBJECT_FAILED, message="no answer for 10 s")


def broken(*findings: Finding, technique: str = "closure") -> Result:
    return attrs.evolve(
        HELD, technique=technique, status=Status.VIOLATED, guarantee="", findings=findings
    )


def report(*results: Result, **change: Any) -> Report:
    """A report of these results; at a fixed time, with fixed versions."""
    made = Report(
        subject="their kernel",
        profile=Profile.CI,
        seed=7,
        versions={"turnlock": "0.1.0", "python": "3.11.9", "platform": "linux"},
        started="2026-11-21T18:00:00Z",
        seconds=12.3,
        command="turnlock verify --profile ci --seed 7 --sut 'node shim.js'",
        results=results,
    )
    return attrs.evolve(made, **change)
