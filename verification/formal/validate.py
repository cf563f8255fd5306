"""Trace validation: whether recorded journals are behaviours of the hand-written specification.

As etcd raft does with ``Traceetcdraft.tla``: each line of a journal is one more demand on the steps
that are possible. A journal is no behaviour at the first line that no step says (section 4 of
kernel.md); what stands before is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from ...models.errors import InvalidValue
from ...models.facts import Fact
from ...models.run import Limits, Run
from ...wire.log import FactLine, LogReader
from ..exports.checkers import run_tlc
from .scope import MODULE, text_of
from .trace import MOST, Trace, module

TRACE: Final = f"Trace{MODULE}"
_READ: Final = re.compile(r'^<<"read", (\d+), (\d+)>>$', re.MULTILINE)


@attrs.frozen(kw_only=True)
class Journal:
    """One run's facts as they were read; `lines` are their places in the log, from 1."""

    run: Run
    facts: tuple[Fact, ...]
    lines: tuple[int, ...]


@attrs.frozen(kw_only=True)
class Unreadable:
    """The line of a log that is no fact at all, where its reading ended."""

    line: int
    cause: str


@attrs.frozen(kw_only=True)
class Judged:
    """How far a journal is a behaviour: `told` of its facts are what the specification says."""

    journal: Journal
    told: int

    @property
    def behaviour(self) -> bool:
        """Whether all of it is one."""
        return self.told == len(self.journal.facts)

    @property
    def line(self) -> int:
        """The line of the log that cannot be."""
        return self.journal.lines[self.told]

    @property
    def fact(self) -> Fact:
        """The fact that stands there."""
        return self.journal.facts[self.told]


def read_journals(lines: Iterable[bytes]) -> tuple[list[Journal], Unreadable | None]:
    """Read the runs of a log of facts, and the first line that is none, if there is one.

    What a log says beside facts – diagnostics, notes, deliveries – is passed over.
    """
    reader = LogReader()
    runs: dict[str, Run] = {}
    found: dict[str, list[tuple[Fact, int]]] = {}
    unreadable = None
    try:
        for entry in reader.entries(lines):
            if isinstance(entry, FactLine) and isinstance(fact := entry.record(), Fact):
                runs[fact.run_id] = entry.run
                found.setdefault(fact.run_id, []).append((fact, reader.line))
    except InvalidValue as error:
        unreadable = Unreadable(line=reader.line, cause=str(error))
    journals = [
        Journal(
            run=runs[run_id],
            facts=tuple(fact for fact, _ in told),
            lines=tuple(line for _, line in told),
        )
        for run_id, told in found.items()
    ]
    return journals, unreadable


def first_refused(judged: Iterable[Judged], unreadable: Unreadable | None) -> int | None:
    """Return the first line of a log that cannot be, or None."""
    refused = [it.line for it in judged if not it.behaviour]
    if unreadable is not None:
        refused.append(unreadable.line)
    return min(refused, default=None)


def validate(journals: Sequence[Journal], workdir: Path) -> list[Judged]:
    """Let TLC judge journals, those with the same limits together; in the order given.

    Raises `ToolMissing`, or `HarnessFailed` where TLC fails.
    """
    told: dict[int, int] = {}
    alike: dict[Limits, list[int]] = {}
    for number, journal in enumerate(journals):
        alike.setdefault(journal.run.limits, []).append(number)
    for place, (limits, numbers) in enumerate(alike.items()):
        traces = [Trace(journals[number].run, journals[number].facts) for number in numbers]
        reached = _reached(traces, limits, workdir / str(place))
        told |= {number: reached.get(k, 0) for k, number in enumerate(numbers, start=1)}
    return [Judged(journal=it, told=told[number]) for number, it in enumerate(journals)]


def _reached(traces: Sequence[Trace], limits: Limits, workdir: Path) -> Mapping[int, int]:
    """Return of each trace, counted from 1, the last line that was read; none if none was."""
    files = {
        f"{MODULE}.tla": text_of(f"{MODULE}.tla"),
        "Recorded.tla": module(traces),
        f"{TRACE}.tla": text_of(f"{TRACE}.tla"),
        f"{TRACE}.cfg": f"{text_of(f'{TRACE}.cfg')}{_constants(limits)}",
    }
    run = run_tlc(files, workdir.resolve(), TRACE, "-deadlock")
    _ = run.count  # it ended well, or says why not
    reached: dict[int, int] = {}
    for trace, line in _READ.findall(run.said):
        reached[int(trace)] = max(int(line), reached.get(int(trace), 0))
    return reached


def _constants(limits: Limits) -> str:
    bounds = {
        "MaxCalls": limits.calls,
        "MaxGrants": limits.grants,
        "MaxContinuations": limits.continuations,
        "Capacity": limits.remembered,
    }
    return "CONSTANTS\n" + "".join(
        f"    {name} = {min(bound, MOST)}\n" for name, bound in bounds.items()
    )
