"""The proof of a declared machine (K-5). It raises at the row at fault; silence is the proof.

Total, no overlap, every phase reachable, terminal phases absorbing, rank never falls, and every
fact leads from one phase to one phase (else the fold of a journal would be ambiguous). Of a
projection: that it is total, without overlap and reachable, and that it only follows.
"""

from __future__ import annotations

from collections import defaultdict

from ..models.errors import BadTable
from .rows import ALWAYS, InputT, Machine, PhaseT, Row


def prove(machine: Machine[PhaseT, InputT]) -> None:
    """Raise `BadTable` unless the machine is one, naming the first row at fault."""
    _questions_apart(machine)
    for row in machine.rows:
        _one_kind(machine, row)
        _rank_never_falls(machine, row)
        _terminal_absorbs(machine, row)
    _total_without_overlap(machine)
    _facts_fold_one_way(machine)
    _all_reachable(machine)


def _fault(machine: Machine[PhaseT, InputT], where: object, what: str) -> BadTable:
    return BadTable(f"{machine.name}: {where}: {what}")


def _questions_apart(machine: Machine[PhaseT, InputT]) -> None:
    """Hold questions apart: rows missing from one must not look like another, complete."""
    for name, answers in machine.questions.items():
        for other, fewer in machine.questions.items():
            if other != name and {*fewer} <= {*answers}:
                raise _fault(machine, repr(other), f"its answers are all answers of {name!r} too")


def _one_kind(machine: Machine[PhaseT, InputT], row: Row[PhaseT, InputT]) -> None:
    if row.fact is not None and row.reason is not None:
        raise _fault(machine, row, "moves and refuses at once; keep the fact or the reason")
    if machine.follows and (row.fact is not None or row.reason is not None):
        raise _fault(machine, row, "a projection follows facts; lead on, or rest")
    if row.fact is None and row.target is not row.phase and not machine.follows:
        raise _fault(machine, row, f"goes to {row.target} without a fact; a journal would miss it")
    if not machine.follows and not row.rule:
        raise _fault(machine, row, "names no rule; say which one of kernel.md it enforces")
    rests = row.fact is None and row.reason is None and row.target is row.phase
    if rests and not row.note:
        raise _fault(machine, row, "rests without saying why; add a note")


def _rank_never_falls(machine: Machine[PhaseT, InputT], row: Row[PhaseT, InputT]) -> None:
    if machine.follows and not machine.rank:
        return
    for phase in (row.phase, row.target):
        if phase not in machine.rank:
            raise _fault(machine, row, f"{phase} has no rank")
    if machine.rank[row.target] < machine.rank[row.phase]:
        raise _fault(machine, row, f"the rank falls from {row.phase} to {row.target}")


def _terminal_absorbs(machine: Machine[PhaseT, InputT], row: Row[PhaseT, InputT]) -> None:
    if row.phase in machine.terminal and row.fact is not None:
        raise _fault(machine, row, f"{row.phase} is terminal and yet a fact happens")


def _total_without_overlap(machine: Machine[PhaseT, InputT]) -> None:
    guards: dict[tuple[PhaseT, InputT], list[str]] = defaultdict(list)
    for row in machine.rows:
        given = guards[row.phase, row.input]
        if row.guard in given:
            raise _fault(machine, row, "stands twice; only one of the rows could ever hold")
        if given and ALWAYS in (row.guard, given[0]):
            raise _fault(machine, row, "overlaps a row of this pair that always holds")
        given.append(row.guard)
        if row.guard and not any({*given} <= {*answers} for answers in machine.questions.values()):
            raise _fault(machine, row, "is guarded by no answer of one declared question")
    for phase in machine.phases:
        for input_ in machine.inputs:
            _pair_complete(machine, f"{phase} × {input_}", guards[phase, input_])


def _pair_complete(machine: Machine[PhaseT, InputT], pair: str, given: list[str]) -> None:
    if not given:
        raise _fault(machine, pair, "no row; refuse it with a reason, or let it rest with a note")
    if given != [ALWAYS] and {*given} not in [{*answers} for answers in machine.questions.values()]:
        raise _fault(machine, pair, f"only {', '.join(given)}; a question needs all its answers")


def _facts_fold_one_way(machine: Machine[PhaseT, InputT]) -> None:
    targets: dict[tuple[PhaseT, object], PhaseT] = {}
    for row in machine.rows:
        known = targets.setdefault((row.phase, row.fact), row.target)
        if row.fact is not None and known is not row.target:
            raise _fault(machine, row, f"another row lets {row.fact} lead to {known}")


def _all_reachable(machine: Machine[PhaseT, InputT]) -> None:
    reached = set(machine.initial)
    while True:
        further = {row.target for row in machine.rows if row.phase in reached} - reached
        if not further:
            break
        reached |= further
    for phase in machine.phases:
        if phase not in reached:
            raise _fault(machine, phase, "no path leads here from " + ", ".join(machine.initial))
