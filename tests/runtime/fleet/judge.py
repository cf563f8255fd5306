"""What must hold of a fleet in the end, of its ledger and its journal: each violation by its name.

Nothing is read here, and nobody is asked: what happened is given. Each rule yields what is wrong.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Final, TypeAlias, TypeVar

import attrs
import msgspec

from turnlock import CorruptJournal, Fact, Kernel, Run
from turnlock.models.codec import to_json, write
from turnlock.models.facts import (
    ContinuationTaken,
    ExecutionInDoubt,
    ExecutionRetried,
    ToolDenied,
    ToolExecutionFailed,
    ToolExecutionStarted,
    ToolExecutionSucceeded,
    TurnOpened,
    TurnSettled,
)
from turnlock.models.ids import idempotency_key, invocation_path, turn_scope
from turnlock.verification.traces.log import check

from .ledger import (
    Began,
    Ended,
    Event,
    Heard,
    Kept,
    Killed,
    Opened,
    Owned,
    Raised,
    Stopped,
    Unrenewed,
    WentOn,
    checksum,
)

E = TypeVar("E", bound=Event)
TERMINAL: TypeAlias = ToolDenied | ToolExecutionFailed | ToolExecutionSucceeded


@attrs.frozen(kw_only=True)
class Violation:
    """One thing that must not be."""

    name: str
    run: str
    cause: str

    def __str__(self) -> str:
        return f"{self.name}: run {self.run}: {self.cause}"


@attrs.frozen(kw_only=True)
class Recorded:
    """A run as the journal has it."""

    run: Run
    facts: Sequence[Fact]


@attrs.frozen
class Standstill:
    """Some time in which a host did nothing, or did not live."""

    begin: float
    end: float

    def meets(self, begin: float, end: float) -> bool:
        """Whether any of it is between two moments."""
        return self.begin <= end and begin <= self.end


@attrs.define(slots=False)
class Case:
    """What is judged: all that the ledger tells, and all that the journal has."""

    events: Sequence[Event]
    journal: Mapping[str, Recorded]
    turns: Mapping[str, int]
    """How many turns each run was to have, by its id."""

    def all(self, kind: type[E]) -> Iterator[E]:
        """Yield the events of a kind, in their order."""
        return (event for event in self.events if isinstance(event, kind))

    @cached_property
    def standstills(self) -> Mapping[str, Sequence[Standstill]]:
        """By host: when it stood still, for whatever reason. The dead do for ever."""
        found: defaultdict[str, list[Standstill]] = defaultdict(list)
        stopped: dict[str, float] = {}
        for event in self.events:
            if isinstance(event, Killed):
                found[event.by].append(Standstill(event.since, float("inf")))
            elif isinstance(event, Stopped):
                stopped[event.by] = event.since
            elif isinstance(event, WentOn):
                found[event.by].append(Standstill(stopped.pop(event.by), event.at))
            elif isinstance(event, Unrenewed):
                found[event.by].append(Standstill(event.since, event.at))
        for host, since in stopped.items():
            found[host].append(Standstill(since, float("inf")))
        return found

    def stood_still(self, host: str, begin: float, end: float) -> bool:
        """Whether a host did nothing for some time between these moments."""
        return any(it.meets(begin, end) for it in self.standstills.get(host, ()))


def violations(case: Case) -> list[Violation]:
    """Return all that is wrong."""
    return [
        Violation(name=rule.__name__, run=run, cause=cause)
        for rule in RULES
        for run, cause in rule(case)
    ]


Wrong: TypeAlias = Iterator[tuple[str, str]]
"""Runs, and what is wrong with each."""


def unfinished(case: Case) -> Wrong:
    """A run was opened, and not all of its turns were settled and taken."""
    for run_id, turns in case.turns.items():
        recorded = case.journal.get(run_id)
        facts = () if recorded is None else recorded.facts
        settled = {fact.turn_id for fact in facts if isinstance(fact, TurnSettled)}
        taken = {fact.turn_id for fact in facts if isinstance(fact, ContinuationTaken)}
        for turn_id in (f"t{number}" for number in range(1, turns + 1)):
            if turn_id not in settled:
                yield run_id, f"{turn_id} is not settled"
            elif turn_id not in taken:
                yield run_id, f"the continuation of {turn_id} is owed"


def ran_twice(case: Case) -> Wrong:
    """The tool was called twice for one attempt (K-35)."""
    times = Counter((event.run, event.key, event.attempt) for event in case.all(Began))
    for (run_id, key, attempt), count in times.items():
        if count > 1:
            yield run_id, f"attempt {attempt} of {key} ran {count} times"


def started_without_a_fact(case: Case) -> Wrong:
    """The tool was called, and the journal has no claim of this attempt by this worker (K-33)."""
    claims = {
        (run_id, fact.turn_id, fact.invocation_id, fact.attempt, fact.worker)
        for run_id, recorded in case.journal.items()
        for fact in recorded.facts
        if isinstance(fact, ToolExecutionStarted | ExecutionRetried)
    }
    for event in case.all(Began):
        claim = event.run, event.turn, event.invocation, event.attempt, event.worker
        if claim not in claims:
            yield event.run, f"attempt {event.attempt} of {event.turn}/{event.invocation} began"


def lost_result(case: Case) -> Wrong:
    """What a tool returned is not its outcome, and nobody was ever in doubt about that attempt."""
    outcomes: dict[tuple[str, str], str | None] = {}
    doubted: set[tuple[str, str, int]] = set()
    for run_id, recorded in case.journal.items():
        scopes: dict[str, str] = {}
        for fact in recorded.facts:
            if isinstance(fact, TurnOpened):
                scopes[fact.turn_id] = turn_scope(run_id, fact.epoch, fact.turn_id)
            elif isinstance(fact, TERMINAL | ExecutionInDoubt) and fact.turn_id in scopes:
                path = invocation_path(scopes[fact.turn_id], fact.invocation_id)
                key = idempotency_key(path)
                if isinstance(fact, ExecutionInDoubt):
                    doubted.add((run_id, key, fact.attempt))
                else:
                    outcomes[run_id, key] = _outcome(fact)
    for event in case.all(Ended):
        if (event.run, event.key, event.attempt) in doubted:
            continue
        if outcomes.get((event.run, event.key)) != event.value:
            found = outcomes.get((event.run, event.key))
            yield event.run, f"attempt {event.attempt} of {event.key} returned, and is {found!r}"


def made_up_result(case: Case) -> Wrong:
    """The journal has a result that no tool ever returned."""
    returned = {event.value for event in case.all(Ended)}
    for run_id, recorded in case.journal.items():
        for fact in recorded.facts:
            if isinstance(fact, ToolExecutionSucceeded) and fact.result not in returned:
                yield run_id, f"fact {fact.sequence} has {fact.result!r}"


def told_otherwise(case: Case) -> Wrong:
    """The model was told other results than the journal has."""
    outcomes = {
        (run_id, fact.turn_id, fact.invocation_id): _outcome(fact)
        for run_id, recorded in case.journal.items()
        for fact in recorded.facts
        if isinstance(fact, TERMINAL)
    }
    for event in case.all(Heard):
        for invocation, result in event.results.items():
            if outcomes.get((event.run, event.turn, invocation)) != result:
                yield event.run, f"{event.effect} told {invocation} as {result!r}"


def _outcome(fact: TERMINAL) -> str | None:
    return str(fact.result) if isinstance(fact, ToolExecutionSucceeded) else None


def lost_facts(case: Case) -> Wrong:
    """The journal said that facts are kept, and they are not there as they were."""
    for event in case.all(Kept):
        recorded = case.journal.get(event.run)
        facts = () if recorded is None else recorded.facts[event.first - 1 : event.last]
        if checksum(facts) != event.checksum:
            yield event.run, f"facts {event.first} to {event.last}, kept by {event.by}"


def two_writers(case: Case) -> Wrong:
    """An owner wrote behind what a later one had written, or both wrote one fact (fencing)."""
    written: defaultdict[str, list[Kept]] = defaultdict(list)
    for event in case.all(Kept):
        written[event.run].append(event)
    for run_id, kept in written.items():
        kept.sort(key=lambda event: (event.first, event.fence))
        for before, event in pairwise(kept):
            if event.fence < before.fence:
                yield run_id, f"fence {event.fence} wrote fact {event.first} after {before.fence}"
            elif event.first <= before.last:
                yield run_id, f"fact {event.first} was kept twice"


def opened_twice(case: Case) -> Wrong:
    """A turn was opened, and opened again (K-55)."""
    for run_id, recorded in case.journal.items():
        opened = Counter(it.turn_id for it in recorded.facts if isinstance(it, TurnOpened))
        for turn_id, times in opened.items():
            if times > 1:
                yield run_id, f"{turn_id} stands there {times} times"
    told = Counter((event.run, event.turn) for event in case.all(Opened))
    for (run_id, turn_id), times in told.items():
        if times > 1:
            yield run_id, f"{times} were told that they had opened {turn_id}"


def continued_twice(case: Case) -> Wrong:
    """A continuation was handed over again, and whoever had it was well and did not refuse it.

    Who died or stood still inside its callback is not well. Nor is one that stood still between
    making sure of its run and the first line of the callback: nobody can close that gap.
    """
    heard: dict[str, Heard] = {}
    for event in case.events:
        if isinstance(event, Raised):
            heard.pop(event.effect, None)
        elif isinstance(event, Heard):
            before = heard.get(event.effect)
            if before is not None and not (
                case.stood_still(before.by, _begin(before), event.at)
                or case.stood_still(event.by, _begin(event), event.at)
            ):
                yield event.run, f"{event.effect} by {before.by}, then by {event.by}"
            heard[event.effect] = event


def handed_over_by_the_taken(case: Case) -> Wrong:
    """A continuation was handed over by a host whose run another had taken before (D-19)."""
    owners: dict[str, Owned] = {}
    for event in case.events:
        if isinstance(event, Owned):
            owner = owners.setdefault(event.run, event)
            if event.fence > owner.fence:
                owners[event.run] = event
        elif isinstance(event, Heard) and event.run in owners:
            owner = owners[event.run]
            stood = event.sure is not None and case.stood_still(event.by, event.sure, event.at)
            if owner.by != event.by and not stood:
                yield event.run, f"{event.effect} by {event.by}, and {owner.by} has the run"


def _begin(heard: Heard) -> float:
    return heard.at if heard.sure is None else heard.sure


def broken_journal(case: Case) -> Wrong:
    """The facts of a run cannot have been written by any kernel (`turnlock check`)."""
    for run_id, recorded in case.journal.items():
        declared = msgspec.json.encode({"run": write(recorded.run)})
        lines = [line + b"\n" for line in (declared, *map(to_json, recorded.facts))]
        outcome = check(iter(lines))
        if outcome.broken is not None:
            yield run_id, str(outcome.broken)
        for torn in outcome.torn:
            yield run_id, str(torn)
        try:
            Kernel.recover(recorded.run, recorded.facts)
        except CorruptJournal as error:
            yield run_id, str(error)


RULES: Final[tuple[Callable[[Case], Wrong], ...]] = (
    unfinished,
    ran_twice,
    started_without_a_fact,
    lost_result,
    made_up_result,
    told_otherwise,
    lost_facts,
    two_writers,
    opened_twice,
    continued_twice,
    handed_over_by_the_taken,
    broken_journal,
)
