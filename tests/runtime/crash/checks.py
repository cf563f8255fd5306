"""What must hold of a world at its end, whoever died in it, and whenever.

Each function yields what is wrong; the negative controls show that each can.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from turnlock import CorruptJournal, Fact, Kernel, Run
from turnlock.models.codec import to_json, write
from turnlock.models.facts import (
    ContinuationTaken,
    ExecutionRetried,
    ToolDenied,
    ToolExecutionFailed,
    ToolExecutionStarted,
    ToolExecutionSucceeded,
    TurnInterrupted,
    TurnOpened,
    TurnSettled,
)
from turnlock.models.workers import OPAQUE
from turnlock.verification.traces.log import check

from .world import Begun, World

TERMINAL: Final = (ToolDenied, ToolExecutionFailed, ToolExecutionSucceeded)


def violations(world: World, turns: Sequence[str]) -> list[str]:
    """Return all that is wrong."""
    found = [f"lives: {failed}" for failed in world.failed]
    for run_id, kept in world.memory._runs.items():
        found += [
            f"{rule.__name__.strip('_')}: {wrong}"
            for rule in RULES
            for wrong in rule(world, run_id)
        ]
        found += _conforms(kept.run, kept.facts)
        found += [
            f"settled: {turn} of {run_id} is not closed"
            for turn in (turns if run_id == "r" else ("t1",))
            if not _is_closed(kept.facts, turn)
        ]
    if not world.memory._runs:
        found.append("settled: there is no run at all")
    return found


def _nothing_lost(world: World, run_id: str) -> Iterator[str]:
    """What was told to anybody was durable before, and still is, as it was."""
    facts = world.facts(run_id)
    for fact, kept in world.shown:
        if fact.run_id != run_id:
            continue
        if fact.sequence > kept:
            yield f"fact {fact.sequence} was shown when {kept} were kept"
        elif facts[fact.sequence - 1] != fact:
            yield f"fact {fact.sequence} was shown as {fact}, and is {facts[fact.sequence - 1]}"


def _every_execution_is_recorded(world: World, run_id: str) -> Iterator[str]:
    """A claim of this very attempt was durable before the tool began (K-33)."""
    for begun in world.begun:
        if begun.run_id == run_id and not _claims(world.facts(run_id)[: begun.kept], begun):
            yield f"attempt {begun.attempt} of {begun.key} began, and no claim was kept"


def _claims(facts: Iterable[Fact], begun: Begun) -> bool:
    return any(
        isinstance(fact, ToolExecutionStarted | ExecutionRetried)
        and (fact.turn_id, fact.invocation_id) == (begun.turn_id, begun.invocation_id)
        and fact.attempt == begun.attempt
        for fact in facts
    )


def _no_attempt_runs_twice(world: World, run_id: str) -> Iterator[str]:
    """Nothing is executed again in silence (K-35)."""
    counted = Counter((begun.key, begun.attempt) for begun in world.begun if begun.run_id == run_id)
    for (key, attempt), times in counted.items():
        if times > 1:
            yield f"attempt {attempt} of {key} ran {times} times"


def _one_outcome(world: World, run_id: str) -> Iterator[str]:
    """At most one terminal fact of each invocation (K-31); and what succeeded was begun."""
    ends = [fact for fact in world.facts(run_id) if isinstance(fact, TERMINAL)]
    for (turn_id, invocation_id), times in Counter(
        (fact.turn_id, fact.invocation_id) for fact in ends
    ).items():
        if times > 1:
            yield f"{turn_id}/{invocation_id} ended {times} times"
    begun = {(one.turn_id, one.invocation_id) for one in world.begun if one.run_id == run_id}
    for fact in ends:
        succeeded = isinstance(fact, ToolExecutionSucceeded)
        if succeeded and (fact.turn_id, fact.invocation_id) not in begun:
            yield f"{fact.turn_id}/{fact.invocation_id} succeeded and never ran"


def _one_continuation(world: World, run_id: str) -> Iterator[str]:
    """Taken once, after the host took it; told only once it was owed, and always the same."""
    facts = world.facts(run_id)
    settled = {fact.turn_id: fact.sequence for fact in facts if isinstance(fact, TurnSettled)}
    acknowledged = [fact for fact in facts if isinstance(fact, ContinuationTaken)]
    for turn_id, times in Counter(fact.turn_id for fact in acknowledged).items():
        if times > 1:
            yield f"the continuation of {turn_id} was accepted {times} times"
    for fact in acknowledged:
        if not any(
            one.turn_id == fact.turn_id and one.run_id == run_id and one.kept < fact.sequence
            for one in world.taken
        ):
            yield f"{fact.turn_id} is off the books, and the host had not taken its continuation"
    missing = settled.keys() - {fact.turn_id for fact in acknowledged}
    yield from (f"the continuation of {turn_id} is owed for ever" for turn_id in sorted(missing))
    first: dict[str, object] = {}
    for told in world.heard:
        if told.run_id == run_id:
            if told.kept < settled.get(told.turn_id, told.kept + 1):
                yield f"{told.effect_id} was told before {told.turn_id} was settled"
            if first.setdefault(told.turn_id, (told.effect_id, told.results)) != (
                told.effect_id,
                told.results,
            ):
                yield f"{told.effect_id} was told in two versions"


def _one_writer(world: World, run_id: str) -> Iterator[str]:
    """Who took the run last is the only one who writes (fencing)."""
    owner = 0
    for one in world.written:
        if one.run_id == run_id:
            owner = one.by if one.taken else owner
            if one.by != owner:
                yield f"life {one.by} wrote at fact {one.last} in a run of life {owner}"


def _notes_stand_first(world: World, run_id: str) -> Iterator[str]:
    """What was noted is kept, under an id once, and before the turn that follows (S-10, S-61)."""
    if run_id != "r":
        return
    kept = [
        (str(it.noted.note.body.get("text")), it.noted.cursor.sequence)
        for it in world.memory._runs[run_id].ledger._notes
    ]
    opened = {it.turn_id: it.sequence for it in world.facts() if isinstance(it, TurnOpened)}
    for text, turn_id in world.noted:
        places = [place for it, place in kept if it == text]
        if not places or (text.startswith("said") and len(places) > 1):
            yield f"{text!r} is noted {len(places)} times"
        elif min(places) >= opened.get(turn_id, 0):
            yield f"{text!r} stands after fact {min(places)}, and {turn_id} was opened before"


def _workers_tell_nothing(world: World, run_id: str) -> Iterator[str]:
    """Claims name workers by ids; what they stand for was kept before (F-6, S-50)."""
    for fact in world.facts(run_id):
        if isinstance(fact, ToolExecutionStarted | ExecutionRetried):
            worker = fact.worker or ""
            if not worker.startswith(OPAQUE) or worker not in world.memory._workers:
                yield f"fact {fact.sequence} names {worker!r}, which nobody knows"


def _only_the_owner_starts(world: World, run_id: str) -> Iterator[str]:
    """No tool and no continuation callback is called by whose run another has taken (D-19)."""
    for one in world.started:
        if one.run_id == run_id and one.by != one.owner:
            yield f"life {one.by} called {one.what} in a run of life {one.owner}"


def _replay_equals_live(world: World, run_id: str) -> Iterator[str]:
    """What the last process had in memory is the fold of the journal (K-2)."""
    run = world.memory._runs[run_id].run
    live = world.live.get(run_id)
    try:
        folded = Kernel.recover(run, world.facts(run_id)).snapshot()
    except CorruptJournal as error:
        yield str(error)
        return
    if live is not None and live != folded:
        yield f"the state in memory at fact {live.sequence} is not the fold of the journal"


RULES: Final[tuple[Callable[[World, str], Iterator[str]], ...]] = (
    _nothing_lost,
    _every_execution_is_recorded,
    _no_attempt_runs_twice,
    _one_outcome,
    _one_continuation,
    _one_writer,
    _only_the_owner_starts,
    _notes_stand_first,
    _workers_tell_nothing,
    _replay_equals_live,
)


def _conforms(run: Run, facts: Sequence[Fact]) -> list[str]:
    """Hold the journal against the specification, as `turnlock check` does."""
    declared = msgspec.json.encode({"run": write(run)})
    lines = [line + b"\n" for line in (declared, *map(to_json, facts))]
    outcome = check(iter(lines))
    found = [] if outcome.broken is None else [f"conforms: {outcome.broken}"]
    return found + [f"conforms: {torn}" for torn in outcome.torn]


def _is_closed(facts: Sequence[Fact], turn_id: str) -> bool:
    return any(
        isinstance(fact, TurnSettled | TurnInterrupted) and fact.turn_id == turn_id
        for fact in facts
    )
