"""Runs of the real kernel, recorded, with the rows that it really read."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import attrs

from turnlock.diagrams.recordings.moves import RefusedStep, Step, events
from turnlock.diagrams.recordings.recording import Moment, Recording
from turnlock.engine.kernel import Kernel
from turnlock.lifecycle import table as invocation_table
from turnlock.machines.rows import Row
from turnlock.models.codec import read, read_delivery
from turnlock.models.facts import Fact
from turnlock.models.record import changed
from turnlock.models.run import Run
from turnlock.models.verdicts import Verdict
from turnlock.turn import table as turn_table

AnyRow = Row[Any, Any]
Raw = dict[str, Any]


class ReadTable(dict[Any, Any]):
    """A table that keeps the rows that are read of it, in order."""

    def __init__(self, table: dict[Any, Any], read_rows: list[AnyRow]) -> None:
        super().__init__(table)
        self._read = read_rows

    def __getitem__(self, key: object) -> AnyRow:
        row: AnyRow = super().__getitem__(key)
        self._read.append(row)
        return row


@contextmanager
def rows_read() -> Generator[list[AnyRow]]:
    """Keep every row that any kernel reads, in order."""
    read_rows: list[AnyRow] = []
    of_invocations: dict[Any, Any] = vars(invocation_table)["_TABLE"]
    of_turns: dict[Any, Any] = vars(turn_table)["_TABLE"]
    with (
        patch.object(invocation_table, "_TABLE", ReadTable(of_invocations, read_rows)),
        patch.object(turn_table, "_TABLE", ReadTable(of_turns, read_rows)),
    ):
        yield read_rows


@attrs.frozen
class Played:
    """One receive of the kernel: the moment, the verdict, and the rows read, in order."""

    moment: Moment
    verdict: Verdict
    rows: tuple[AnyRow, ...]


def played(run: Raw, script: Iterable[Raw]) -> tuple[Run, list[Played]]:
    """Play a script of the wire on the kernel, and keep what it read."""
    kernel = Kernel(read(Run, run))
    journal: list[Fact] = []
    done: list[Played] = []
    for step in script:
        given = {name: value for name, value in step.items() if name != "now"}
        if given["type"] == "recover":
            kernel = Kernel.recover(kernel.run, journal)
            continue
        with rows_read() as rows:
            verdict = kernel.receive(read_delivery(given), step["now"])
        journal += verdict.facts
        moment = Moment(
            at=step["now"],
            delivery=given,
            facts=verdict.facts,
            effects=verdict.effects,
            reason=verdict.reason,
        )
        done.append(Played(moment, verdict, tuple(rows)))
    return kernel.run, done


def recorded(run: Raw, script: Iterable[Raw]) -> Recording:
    """Play a script of the wire on the kernel, and record it whole."""
    configured, done = played(run, script)
    return Recording(run=configured, moments=tuple(one.moment for one in done))


def journal_of(recording: Recording) -> Recording:
    """Forget all but the facts, as a journal does."""
    return attrs.evolve(
        recording,
        moments=tuple(
            Moment(at=moment.facts[0].at, facts=moment.facts)
            for moment in recording.moments
            if moment.facts
        ),
    )


RUN: Raw = {"run_id": "r"}
CALL: Raw = {"invocation_id": "a", "tool_name": "ls", "arguments": {}, "requires_approval": False}
OPEN: Raw = {"type": "open_turn", "now": 0.0, "turn_id": "T", "calls": [CALL]}
ABOUT: Raw = {"turn_id": "T", "invocation_id": "a"}
CLAIM: Raw = {"type": "claim", **ABOUT, "attempt": 1, "lease": 1.0, "now": 0.0}
RESULT: Raw = {"type": "report", **ABOUT, "result": 1}


def story(*deliveries: Raw) -> Recording:
    """A turn T with one free call, a, and what comes to it."""
    return recorded(RUN, [OPEN, *deliveries])


def older(recording: Recording) -> Recording:
    """The same, as a version wrote it whose facts named no input (K-59)."""
    return attrs.evolve(
        recording,
        moments=tuple(
            attrs.evolve(moment, facts=tuple(changed(fact, input=None) for fact in moment.facts))
            for moment in recording.moments
        ),
    )


def steps(recording: Recording) -> Iterator[Step]:
    """Every move of the run, in order."""
    return (event for event in events(recording) if isinstance(event, Step))


def refusals(recording: Recording) -> Iterator[RefusedStep]:
    """Every refusal that was recorded, in order."""
    return (event for event in events(recording) if isinstance(event, RefusedStep))
