"""What a replay counts, and how it is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Final

import attrs

from ...models.fact import FactType
from ...models.safe_text import harmless

_KEPT: Final = 10
"""Failures that are told one by one."""


class Hostility(StrEnum):
    """What is wrong with a hostile delivery."""

    DUPLICATED = "duplicated"
    """An earlier delivery of this turn, verbatim."""
    STALE = "stale"
    """From an earlier turn, an older attempt or an older epoch."""
    MISMATCHED = "mismatched"
    """Addressed to another turn or run, or approving other arguments than were shown."""
    UNKNOWN = "unknown"
    """About an invocation, turn or grant that never existed."""
    REORDERED = "reordered"
    """Before its time: a claim before its approval, a report before its start …"""
    CONFLICTING = "conflicting"
    """Against what is settled: another decision, another worker, another outcome."""
    RECORDED = "recorded"
    """A result in the recording that answers none of the recorded calls."""


_OUTCOMES: Final = {
    "succeeded": FactType.TOOL_EXECUTION_SUCCEEDED,
    "failed": FactType.TOOL_EXECUTION_FAILED,
    "denied": FactType.TOOL_DENIED,
}


@attrs.define
class Tally:
    """Everything that one command counts. `seconds` is the time that replaying took."""

    files: int = 0
    conversations: int = 0
    batches: int = 0
    continuations: int = 0
    executions: int = 0
    recoveries: int = 0
    states: int = 0
    """Refusals before and after which the whole state was compared."""
    honest: int = 0
    refused: int = 0
    """Hostile deliveries so far: picks the sample of compared states."""
    seconds: float = 0.0
    facts: Counter[str] = attrs.field(factory=Counter[str])
    refusals: Counter[str] = attrs.field(factory=Counter[str])
    hostile: Counter[str] = attrs.field(factory=Counter[str])
    oddities: Counter[str] = attrs.field(factory=Counter[str])
    failures: list[str] = attrs.field(factory=list[str])
    failed: int = 0

    def fail(self, where: str, what: str) -> None:
        """Note a failed check: all are counted, the first are kept."""
        self.failed += 1
        if len(self.failures) < _KEPT:
            self.failures.append(harmless(f"{where}: {what}"))

    @property
    def injected(self) -> int:
        """How many hostile deliveries there were."""
        return self.hostile.total()

    @property
    def deliveries(self) -> int:
        """How many deliveries there were, honest and hostile."""
        return self.honest + self.injected

    @property
    def turns_settled(self) -> int:
        """How many turns settled."""
        return self.facts[FactType.TURN_SETTLED]

    @property
    def outcomes(self) -> dict[str, int]:
        """How many invocations ended which way."""
        return {name: self.facts[fact] for name, fact in _OUTCOMES.items()}

    @property
    def rate(self) -> int:
        """Deliveries a second, the building and checking of each included."""
        return round(self.deliveries / self.seconds) if self.seconds else 0

    def verdict(self, problems: int) -> str:
        """Return the last line: OK, or FAILED with how much of what."""
        if not self.failed and not problems:
            return (
                f"OK {_many(self.turns_settled, 'turn', 'settled')}, "
                f"{_many(self.continuations, 'continuation', 'sent')}, each exactly once; "
                f"{_many(self.injected, 'hostile delivery', 'refused')}, none to any effect"
            )
        parts = [
            _many(self.failed, "check", "failed") if self.failed else "",
            _many(problems, "problem", "with the input") if problems else "",
        ]
        first = f"; first at {self.failures[0]}" if self.failures else ""
        return "FAILED " + ", ".join(filter(None, parts)) + first

    def as_json(self, problems: int) -> dict[str, Any]:
        """Return all of it as one JSON object."""
        return {
            "ok": not self.failed and not problems,
            "verdict": self.verdict(problems),
            "files": self.files,
            "conversations": self.conversations,
            "batches": self.batches,
            "turns_settled": self.turns_settled,
            "continuations": self.continuations,
            "invocations": self.outcomes,
            "executions": self.executions,
            "deliveries": {"honest": self.honest, "hostile": self.injected},
            "hostile": _sorted(self.hostile),
            "refusals": _sorted(self.refusals),
            "oddities": _sorted(self.oddities),
            "states_compared": self.states,
            "recoveries": self.recoveries,
            "seconds": round(self.seconds, 3),
            "deliveries_per_second": self.rate,
            "failed_checks": self.failed,
            "failures": self.failures,
        }

    def tables(self, *, timing: bool) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """Yield the tables to show: the title, and rows of name and number."""
        yield "replayed", list(self._totals(timing=timing))
        for title, counts in (
            ("hostile deliveries, by kind", self.hostile),
            ("refused, by reason", self.refusals),
            ("oddities of the recording, all served", self.oddities),
        ):
            rows = [(name, f"{number:,}") for name, number in _sorted(counts).items()]
            if rows:
                yield title, rows

    def _totals(self, *, timing: bool) -> Iterator[tuple[str, str]]:
        yield "conversations", f"{self.conversations:,}"
        yield "turns settled", f"{self.turns_settled:,} of {self.batches:,}"
        yield "continuations", f"{self.continuations:,}"
        for name, number in self.outcomes.items():
            yield f"invocations {name}", f"{number:,}"
        yield "tool executions", f"{self.executions:,}"
        yield "deliveries, honest", f"{self.honest:,}"
        yield "deliveries, hostile", f"{self.injected:,}"
        yield "whole states compared at a refusal", f"{self.states:,}"
        yield "recoveries compared", f"{self.recoveries:,}"
        if timing:
            yield "deliveries a second", f"{self.rate:,} (for {self.seconds:.1f} s)"


def _sorted(counts: Counter[str]) -> dict[str, int]:
    """Return what was seen at all, the most frequent first, ties by name."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return {str(name): number for name, number in ordered if number}


def _many(number: int, noun: str, rest: str) -> str:
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural} {rest}"
