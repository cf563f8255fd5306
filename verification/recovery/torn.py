"""White box, our own kernel: its journal torn at every byte, its snapshots at every byte (K-9).

The journal is the bytes that a host appends: a line for each fact. Cut anywhere, it must give the
state after the last commit that is whole, and never anything between two commits.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, TypeAlias

import attrs

from ...engine.kernel import Kernel
from ...engine.snapshot import Snapshot
from ...models.codec import fact_from_json, read, read_delivery, record_from_json, to_json, write
from ...models.effects import Effect
from ...models.errors import CorruptJournal, InvalidValue
from ...models.facts import Fact
from ...models.run import Run
from ..findings import Finding
from ..fuzz.guided import RUNS, STEP_BYTES, decode
from ..subjects.subject import Raw

TECHNIQUE: Final = "journal"

STEPS: Final = 40
"""Deliveries of one script."""

Recover: TypeAlias = Callable[..., Kernel]
"""As `Kernel.recover`: tests plant a wrong one."""


@attrs.define
class Tally:
    """What was torn so far, and what was found."""

    journals: int = 0
    facts: int = 0
    cuts: int = 0
    recoveries: int = 0
    finding: Finding | None = None


@attrs.frozen
class _Lived:
    """A state as it was lived, and what it owed."""

    snapshot: Snapshot
    owed: tuple[Effect, ...]

    @classmethod
    def of(cls, kernel: Kernel) -> _Lived:
        return cls(kernel.snapshot(), kernel.pending_effects)


@attrs.frozen
class _Recorded:
    """One run as it was lived: its journal, and the state after each commit, by sequence."""

    run: Raw
    script: list[Raw]
    facts: list[Fact]
    lived: dict[int, _Lived]

    @property
    def configured(self) -> Run:
        return read(Run, self.run)

    def finding(self, rule: str, message: str, expected: object, got: object) -> Finding:
        return Finding(
            technique=TECHNIQUE,
            rule=rule,
            message=message,
            run=self.run,
            script=tuple(self.script),
            expected=expected,
            got=got,
        )


def torn_journals(
    *, seed: int, journals: int, recover: Recover = Kernel.recover
) -> Iterator[Tally]:
    """Tear the journals of so many guided scripts, and stop at the first finding.

    Yields the same `Tally` after each journal.
    """
    tally = Tally()
    draws = random.Random(seed)  # noqa: S311 - draws cases, not secrets
    for number in range(journals):
        data = bytes([number % len(RUNS)]) + draws.randbytes(STEPS * STEP_BYTES)
        recorded = _recorded(data)
        tally.journals += 1
        tally.facts += len(recorded.facts)
        tally.finding = (
            _torn_journal(recorded, tally, recover)
            or _snapshot_and_tail(recorded, tally, recover)
            or _torn_snapshot(recorded, tally)
        )
        yield tally
        if tally.finding is not None:
            return


def _recorded(data: bytes) -> _Recorded:
    run, decoded = decode(data)
    script = [step for step in decoded if step["type"] != "recover"]
    kernel = Kernel(read(Run, run))
    facts: list[Fact] = []
    lived = {0: _Lived.of(kernel)}
    for step in script:
        fields = {name: value for name, value in step.items() if name != "now"}
        verdict = kernel.receive(read_delivery(fields), step["now"])
        if verdict.facts:
            facts += verdict.facts
            lived[kernel.sequence] = _Lived.of(kernel)
    return _Recorded(run, script, facts, lived)


def _torn_journal(recorded: _Recorded, tally: Tally, recover: Recover) -> Finding | None:
    """Cut after each byte: the lines that can be read back recover to the last whole commit."""
    for whole, fact in enumerate(recorded.facts):
        line = to_json(fact)
        for end in range(len(line)):
            tally.cuts += 1
            if _is_read(line[:end]):
                return recorded.finding(
                    "K-9", "a torn line is read as a fact", "an error", line[:end].decode()
                )
        wrong = _recovers(recorded, whole, tally, recover)
        if wrong is not None:
            return wrong
    return _recovers(recorded, len(recorded.facts), tally, recover)


def _is_read(line: bytes) -> bool:
    """Tell whether a host takes what stands at the end of its journal for a fact."""
    try:
        fact_from_json(line)
    except InvalidValue:
        return False
    return True


def _recovers(recorded: _Recorded, whole: int, tally: Tally, recover: Recover) -> Finding | None:
    """Recover from the first facts alone: the state must be that after the last whole commit."""
    committed = max(sequence for sequence in recorded.lived if sequence <= whole)
    tally.recoveries += 1
    return _compared(
        recorded,
        committed,
        partial(recover, recorded.configured, recorded.facts[:whole]),
        f"the journal torn behind fact {whole} does not recover to the state after fact"
        f" {committed}, which ended the last whole commit",
    )


def _snapshot_and_tail(recorded: _Recorded, tally: Tally, recover: Recover) -> Finding | None:
    """Recover from each snapshot, written and read back, and the facts after it."""
    for sequence, lived in recorded.lived.items():
        stored = record_from_json(Snapshot, to_json(lived.snapshot))
        tally.recoveries += 1
        wrong = _compared(
            recorded,
            len(recorded.facts),
            partial(recover, recorded.configured, recorded.facts[sequence:], snapshot=stored),
            f"the snapshot at fact {sequence} and the facts after it do not give the state that all"
            " the facts give",
        )
        if wrong is not None:
            return wrong
    return None


def _torn_snapshot(recorded: _Recorded, tally: Tally) -> Finding | None:
    """Cut the last snapshot after each byte: nothing but the whole of it may be read."""
    stored = to_json(recorded.lived[len(recorded.facts)].snapshot)
    for end in range(len(stored)):
        tally.cuts += 1
        try:
            record_from_json(Snapshot, stored[:end])
        except InvalidValue:
            continue
        return recorded.finding(
            "K-2", "a torn snapshot is read", "an error", stored[:end].decode(errors="replace")
        )
    return None


def _compared(
    recorded: _Recorded, sequence: int, recovered: Callable[[], Kernel], message: str
) -> Finding | None:
    """Hold a recovered kernel against the one that was lived (K-9), and what both owe (K-3)."""
    lived = recorded.lived[sequence]
    try:
        kernel = recovered()
    except CorruptJournal as error:
        return recorded.finding("K-9", message, f"the state after fact {sequence}", str(error))
    if kernel.snapshot() != lived.snapshot:
        return recorded.finding("K-9", message, write(lived.snapshot), write(kernel.snapshot()))
    if kernel.pending_effects != lived.owed:
        owed = [write(effect) for effect in lived.owed]
        return recorded.finding("K-3", message, owed, [*map(write, kernel.pending_effects)])
    return None
