"""Regressions: a finding is kept as a file, read strictly, and played again."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import attrs
import pytest

from turnlock.models.errors import InvalidValue
from turnlock.verification.findings import Finding
from turnlock.verification.oracle.oracle import Oracle
from turnlock.verification.regressions import played_again, read_regression, told, written
from turnlock.verification.reports.terminal import WIDE, finding_lines
from turnlock.verification.subjects.in_process import InProcess
from turnlock.verification.subjects.kernel import KernelSubject
from turnlock.verification.subjects.subject import Capability

Raw = dict[str, Any]

RUN: Raw = {"run_id": "r"}
OPEN: Raw = {"type": "open_turn", "now": 0.0, "turn_id": "T1", "calls": [], "sealed": False}
SEAL: Raw = {"type": "seal_turn", "now": 1.0, "turn_id": "T1"}
FINDING = Finding(
    technique="closure",
    rule="K-50",
    message="the turn was not settled",
    run=RUN,
    script=(OPEN, SEAL),
    expected={},
    got={},
)


class NeverSettles:
    """Forgets to settle."""

    capabilities: frozenset[Capability] = frozenset()

    def reset(self, run: Raw) -> None:
        self.oracle = Oracle(run)

    def receive(self, delivery: Raw) -> Raw:
        receipt = copy.deepcopy(self.oracle.receive(delivery))
        receipt["facts"] = [fact for fact in receipt["facts"] if fact["type"] != "TURN_SETTLED"]
        return receipt


def kept(folder: Path, text: str) -> Path:
    path = folder / "K-50.jsonl"
    path.write_text(text, encoding="utf-8")
    return path


def test_what_is_written_is_read(tmp_path: Path) -> None:
    regression = read_regression(kept(tmp_path, written(FINDING)))
    assert (regression.rule, regression.message) == (FINDING.rule, FINDING.message)
    assert (regression.run, regression.script) == (RUN, (OPEN, SEAL))


def test_what_nobody_can_read_is_cut() -> None:
    """A thousand calls are a line of 100 kB: the file and --findings have it, whole."""
    call: Raw = {"tool_name": "ls", "arguments": {}, "requires_approval": False}
    calls = [{"invocation_id": f"c{number}", **call} for number in range(1_000)]
    finding = attrs.evolve(FINDING, script=({**OPEN, "calls": calls}, SEAL), got=None)

    for lines in (told(finding).splitlines(), [*finding_lines(finding, "node shim.js")]):
        assert max(map(len, lines)) < WIDE + 50
    assert "too many to paste" in "\n".join(finding_lines(finding, "node shim.js"))
    assert "--replay" not in told(finding)


def test_a_right_system_passes_and_a_wrong_one_is_found() -> None:
    """Our kernel answers rightly; the one that forgets to settle breaks K-50 at the last step."""
    assert played_again(InProcess(KernelSubject, name="turnlock"), RUN, (OPEN, SEAL)) is None
    found = played_again(InProcess(NeverSettles, name="wrong"), RUN, (OPEN, SEAL))
    assert found is not None
    assert (found.rule, len(found.script)) == ("K-50", 2)


HEADER, *DELIVERIES = written(FINDING).splitlines(keepends=True)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", ":1: format"),
        ("[]\n", ":1: it is no object"),
        (HEADER.replace('"format": 1', '"format": 2'), ":1: format"),
        (HEADER.replace('"run"', '"ran"'), ":1: run"),
        (f"{HEADER}{{", ":2"),
        (f"{HEADER}{json.dumps({'type': 'tick'})}\n", ":2: that is no delivery"),
    ],
)
def test_what_is_no_regression_is_refused_with_the_place(
    tmp_path: Path, text: str, place: str
) -> None:
    with pytest.raises(InvalidValue, match=place):
        read_regression(kept(tmp_path, text))
