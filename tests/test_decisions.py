"""docs/decisions.md: every decision has a number, a date, a title and what was rejected."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "decisions.md"
ITEM = re.compile(
    r"- \*\*ADR-(\d+)\*\* \((\d{4}-\d\d-\d\d)\)\s+\*[^*]+\*.*\s\*Rejected:\*\s+\S", re.DOTALL
)


def items(text: str) -> list[str]:
    """The list items below the first heading of a section, each with its further lines."""
    sections = text.split("\n## ")[1:]
    return [item for part in sections for item in re.split(r"\n(?=- )", part)[1:]]


def test_every_decision_is_numbered_and_dated_and_says_what_was_rejected() -> None:
    """Numbers are given once, without gaps; they say nothing of the order."""
    found = [ITEM.match(item) for item in items(PAGE.read_text(encoding="utf-8"))]

    assert None not in found
    numbers = [int(it[1]) for it in found if it]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    for it in found:
        assert it is not None
        assert dt.date.fromisoformat(it[2])


def test_a_decision_in_another_form_is_told() -> None:
    """The negative control: without a number, a date or a rejected option it is none."""
    kept = "- **ADR-1** (2026-11-21) *Floors.* They go down. *Rejected:* none."

    assert ITEM.match(items(f"# D\n\n## A\n\n{kept}\n")[0])
    for wrong in ("- **Floors.** They go down.", kept.replace("*Rejected:* none.", "")):
        assert not ITEM.match(items(f"# D\n\n## A\n\n{wrong}\n")[0])
