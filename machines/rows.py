"""How any machine of this project is declared: rows that can be read aloud.

A row says: in this phase, on this input, when this guard holds, go there and let this fact happen;
or refuse for this reason; or rest, and why. Every (phase, input) pair stands in the table, the
refused ones too (K-4). Where one pair has several rows, their guards are the answers to one
declared question, so that exactly one row holds (K-5, see `proof`).

A *projection* is a machine whose inputs are facts: others decided, it follows. Its rows lead on or
rest; it brings no fact forth and refuses none, and it may go round.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, Generic, TypeAlias, TypeVar

from ..models.fact import FactType
from ..models.lifecycle_facts import DenialCause, FailureCause
from ..models.reasons import Reason
from ..models.record import Record, record, unchecked_maker

PhaseT = TypeVar("PhaseT", bound=StrEnum)
InputT = TypeVar("InputT", bound=StrEnum)

ALWAYS: Final = ""
"""The guard of a row that stands alone for its pair."""


@record
class Row(Record, Generic[PhaseT, InputT]):
    """One row, of exactly one kind.

    It *moves* (`fact` happens, the phase becomes `target`), *refuses* (`reason`), or *rests*
    (neither: nothing happens, `note` says why); in a projection it *leads* on or rests. `rule` is
    the rule of kernel.md that it enforces; a projection's rows have none. `cause` is what its fact
    says of the cause, where that fact says one. `possible` is False for a pair that stands in the
    table for totality alone, because its input cannot come in that phase.
    """

    phase: PhaseT
    input: InputT
    guard: str = ALWAYS
    target: PhaseT
    fact: FactType | None = None
    reason: Reason | None = None
    note: str = ""
    rule: str = ""
    cause: DenialCause | FailureCause | None = None
    possible: bool = True

    def __str__(self) -> str:
        """Read the row aloud."""
        guard = f" [{self.guard}]" if self.guard else ""
        led = "rests" if self.target is self.phase else str(self.target)
        outcome = self.reason or (f"{self.target} / {self.fact}" if self.fact else led)
        return f"{self.phase} × {self.input}{guard} → {outcome}"


_row = unchecked_maker(Row)
"""Two hundred of them are made at each start, and nothing of them is checked."""


@record
class Machine(Record, Generic[PhaseT, InputT]):
    """A declared machine: its rows, and what the proof needs to know beside them.

    `rank` must never fall along a move; the phases of the highest rank are terminal. A projection
    has no ranks. `questions` are the sets of guards of which exactly one holds at a time.
    """

    name: str
    phases: type[PhaseT]
    inputs: tuple[InputT, ...]
    initial: tuple[PhaseT, ...]
    rank: Mapping[PhaseT, int]
    questions: Mapping[str, tuple[str, ...]]
    rows: tuple[Row[PhaseT, InputT], ...]

    @property
    def terminal(self) -> frozenset[PhaseT]:
        """The phases of the highest rank."""
        highest = max(self.rank.values(), default=0)
        return frozenset(phase for phase, rank in self.rank.items() if rank == highest)

    @property
    def follows(self) -> bool:
        """Whether it is a projection: its inputs are facts."""
        return isinstance(self.inputs[0], FactType)


machine = unchecked_maker(Machine)
"""What declares a machine: as for the rows, nothing of it is checked at each start."""

Table: TypeAlias = dict[tuple[PhaseT, InputT, str], Row[PhaseT, InputT]]
Fold: TypeAlias = dict[FactType, dict[PhaseT, PhaseT]]


def moves(  # noqa: PLR0913 - a row is read aloud, in this order
    phase: PhaseT,
    input: InputT,  # noqa: A002 - the word of the spec
    target: PhaseT,
    fact: FactType,
    rule: str,
    *,
    when: str = ALWAYS,
    cause: DenialCause | FailureCause | None = None,
) -> Row[PhaseT, InputT]:
    """Declare: on this input the fact happens, and the phase becomes `target`."""
    return _row(
        phase=phase,
        input=input,
        guard=when,
        target=target,
        fact=fact,
        reason=None,
        note="",
        rule=rule,
        cause=cause,
        possible=True,
    )


def refuses(  # noqa: PLR0913 - a row is read aloud, in this order
    phase: PhaseT,
    input: InputT,  # noqa: A002
    reason: Reason,
    rule: str,
    *,
    when: str = ALWAYS,
    possible: bool = True,
) -> Row[PhaseT, InputT]:
    """Declare: this input is refused here, for this reason."""
    return _row(
        phase=phase,
        input=input,
        guard=when,
        target=phase,
        fact=None,
        reason=reason,
        note="",
        rule=rule,
        cause=None,
        possible=possible,
    )


def leads(
    phase: PhaseT,
    input: InputT,  # noqa: A002
    target: PhaseT,
    *,
    when: str = ALWAYS,
) -> Row[PhaseT, InputT]:
    """Declare, in a projection: this fact leads to `target`."""
    return Row(phase=phase, input=input, guard=when, target=target)


def rests(  # noqa: PLR0913 - a row is read aloud, in this order
    phase: PhaseT,
    input: InputT,  # noqa: A002
    note: str,
    rule: str = "",
    *,
    when: str = ALWAYS,
    possible: bool = True,
) -> Row[PhaseT, InputT]:
    """Declare: on this input nothing happens here, and why."""
    return _row(
        phase=phase,
        input=input,
        guard=when,
        target=phase,
        fact=None,
        reason=None,
        note=note,
        rule=rule,
        cause=None,
        possible=possible,
    )


def table_of(rows: Iterable[Row[PhaseT, InputT]]) -> Table[PhaseT, InputT]:
    """Index rows by (phase, input, guard): what a step looks up."""
    return {(row.phase, row.input, row.guard): row for row in rows}


def fold_of(rows: Iterable[Row[PhaseT, InputT]]) -> Fold[PhaseT]:
    """Index the moves by fact, then by phase: what the fold of a journal looks up (K-2)."""
    fold: Fold[PhaseT] = {fact: {} for fact in FactType}
    for row in rows:
        if row.fact is not None:
            fold[row.fact][row.phase] = row.target
    return fold


def questions_of(machine: Machine[PhaseT, InputT]) -> dict[tuple[PhaseT, InputT], str]:
    """Return which question each guarded pair asks: the one whose answers are its guards."""
    guards: dict[tuple[PhaseT, InputT], set[str]] = {}
    for row in machine.rows:
        if row.guard:
            guards.setdefault((row.phase, row.input), set()).add(row.guard)
    named = {frozenset(answers): name for name, answers in machine.questions.items()}
    return {pair: named[frozenset(given)] for pair, given in guards.items()}
