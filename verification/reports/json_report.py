"""The whole report as JSON: every figure and every finding, under keys that stay."""

from __future__ import annotations

import json
from typing import Final

import cattrs

from ..findings import Raw
from ..judging import why_not_judged
from .headline import headline
from .report import Report
from .stories import pasted, request_line

FORMAT: Final = 1
"""Of the document. It changes when a key changes its meaning or goes; new keys may come."""


def to_json(report: Report) -> str:
    """Return the document, with the verdict and the violations spelt out beside the results."""
    document: Raw = {
        "format": FORMAT,
        "verdict": str(report.verdict),
        "exit_status": report.exit_status,
        "headline": headline(report),
        "techniques": report.techniques,
        "judged": cattrs.unstructure(report.judged),
        "not_judged": {rule: why_not_judged(steps) for rule, steps in report.not_judged.items()},
        **cattrs.unstructure(report),
        "violations": [
            {
                "fingerprint": violation.fingerprint,
                "rule": violation.finding.rule,
                "also": list(violation.finding.also),
                "message": violation.finding.message,
                "techniques": list(violation.techniques),
                "known": violation.known,
                "steps": len(violation.finding.script),
                "request": request_line(violation.finding),
                "paste": list(pasted(violation.finding, report.stdio)),
            }
            for violation in report.violations
        ],
        "stories": [
            {
                "fingerprint": story.violation.fingerprint,
                "also": [violation.fingerprint for violation in story.also],
            }
            for story in report.stories
        ],
    }
    return json.dumps(document, ensure_ascii=True, indent=1, default=repr) + "\n"
