"""The first line of every report: the verdict, what could be judged, and what was left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..judging import VISIBLE
from .report import Report, Verdict

LONGEST: Final = 300
"""Characters of somebody else's words in the line."""
NAMED: Final = 6
"""So many rules that were not judged are named; of more, only the number is told."""


def headline(report: Report) -> str:
    """Return the verdict and why, in one line."""
    return f"{str(report.verdict).upper()}: {why(report)}"


def why(report: Report) -> str:
    """Say why the verdict is what it is; techniques that were not run are named apart."""
    return "; ".join([*_judged(report), *_reasons(report), *_techniques(report)])


def _reasons(report: Report) -> Iterator[str]:
    stopped = next((one for one in report.stops if one.verdict is report.verdict), None)
    if stopped is not None:
        told = stopped.message.partition("\n")[0]
        yield f"in {stopped.technique}, {told if len(told) <= LONGEST else told[:LONGEST] + '…'}"
    rules = dict.fromkeys(one.finding.rule for one in report.violations if not one.known)
    if rules:
        yield f"broken: {', '.join(rules)}"
    known = sum(one.known for one in report.violations)
    if known:
        yield f"{known} known in the baseline"
    if report.now_passing:
        yield f"{len(report.now_passing)} of the baseline passes now"
    if report.verdict is Verdict.NOT_DONE and not report.results:
        yield "nothing was run"


def _judged(report: Report) -> Iterator[str]:
    """Say of how many rules something was judged, and what stood in the way of the others."""
    judged = report.judged
    if not judged.scripts:
        return
    left = [rule for rule, steps in report.not_judged.items() if steps]
    if not left:
        reached = len(VISIBLE) - len(report.not_judged)
        yield f"{reached} of {len(VISIBLE)} rules were judged, in {judged.steps:,} steps"
        return
    many = f"{len(report.not_judged)} of {len(VISIBLE)} rules were not judged"
    if len(report.not_judged) <= NAMED:
        many += f" ({', '.join(report.not_judged)})"
    almost = "almost nothing could be judged: " if 2 * len(left) >= len(VISIBLE) else ""
    what, scripts = next(iter(judged.wrong.items()))
    yield f"{almost}{what}, in {scripts:,} of {judged.scripts:,} scripts, so {many}"


def _techniques(report: Report) -> Iterator[str]:
    for how, names in report.techniques.items():
        if names:
            yield f"{how}: {', '.join(names)}"
