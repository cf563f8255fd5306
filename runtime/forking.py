"""A run that goes on from an earlier turn of another one: the same facts under an id of its own.

The facts up to the one that closed the turn are kept as the new run's, with its id and the ids of
its own grants. They are history: every call of it has ended, and no effect is owed for one again.
The notes that come along stand among them where they stood. No authority comes along: what is
granted at that point is revoked in the new run at once.

That is more than one append. So the first thing kept is the note `FORKED`, which says where the run
comes from, and the last is `WHOLE`. Whoever finds the one without the other has half a fork, and
the same fork done again finishes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

import attrs

from ..engine.kernel import Kernel
from ..models.deliveries import Delivery, Revoke
from ..models.errors import TurnlockError, UnknownRun
from ..models.facts import (
    CallAdded,
    Fact,
    GrantFact,
    ToolApproved,
    TurnInterrupted,
    TurnOpened,
    TurnSettled,
)
from ..models.ids import grant_id
from ..models.record import changed
from ..models.run import Run
from ..models.safe_text import harmless
from ..models.sealed import TEXT, is_sealed, is_sealed_body
from ..models.values import Json
from ..views.run_view import RunView
from ..views.tally import Tally
from .errors import Conflict, Overloaded, RunFenced
from .journal.contract import Appended, Busy, Journal, Summary
from .journal.ledger import Domain, Note, Noted
from .scheduling import Clock, SteadyClock
from .submitting import SharedRun
from .tools.sealing import SealBroken

FORKED: Final = "forked"
"""The id of the note of a run that was forked: `run`, `turn` and `sequence` of where it goes on
from."""
WHOLE: Final = "forked/whole"
"""The id of the note of one that is finished."""
BATCH: Final = 1_000
"""Facts after which an append ends, with the commit that they are in."""
LISTED: Final = 20
"""Turns that a refusal names, the latest."""


class NotForked(TurnlockError):
    """A run cannot be forked there, or not under that id."""


@attrs.frozen(kw_only=True)
class Forked:
    """A run that was forked."""

    run_id: str
    facts: int
    """How many came along."""
    notes: int
    """How many came along."""
    revoked: int
    """Grants that were in force there, and are not in it."""
    before: bool = False
    """Whether it was finished before: then nothing was done."""


async def fork_run(  # noqa: PLR0913 - which run, where, and what it becomes
    journal: Journal,
    run_id: str,
    *,
    turn_id: str,
    into: str,
    notes: Sequence[Noted],
    clock: Clock | None = None,
) -> Forked:
    """Make the run `into` of what `run_id` was when this turn was closed, with these notes.

    Done again after a crash it finishes what was begun. Raises `NotForked` for a turn that is open
    or unknown and where `into` is another run, `SealBroken` for what is sealed, since an envelope
    opens in its own run alone, `UnknownRun`, and what the journal raises.
    """
    run = (await journal.entry(run_id)).run
    facts = await _until_closed(journal, run_id, turn_id)
    refuse_sealed(run_id, facts, notes)
    twin = changed(run, run_id=into)
    history = tuple(renamed_facts(facts, into))
    kernel = Kernel.recover(twin, history)  # what no run can have written is kept nowhere
    at = (clock or journal.clock or SteadyClock()).now()
    whole = Note(domain=Domain.THREAD, kind="whole", id=WHOLE, at=at, body={"id": WHOLE})
    origin: dict[str, Json] = {"id": FORKED, "run": run_id, "turn": turn_id, "sequence": len(facts)}
    forked = Note(domain=Domain.THREAD, kind="forked", id=FORKED, at=at, body=origin)
    kept = await _begun(journal, twin, forked)
    if WHOLE in kept:
        return Forked(run_id=into, facts=len(facts), notes=len(notes), revoked=0, before=True)
    missing = [it for it in notes if it.note.id not in kept]
    await keep_history(journal, kernel, history, missing)
    shared = await SharedRun.open(journal, into, policies=None, clock=clock)
    revoked = await shared.submit_chosen(_revocations)
    await _note(journal, into, whole)
    gone = sum(verdict.reason is None for verdict in revoked)
    return Forked(run_id=into, facts=len(facts), notes=len(notes), revoked=gone)


async def _until_closed(journal: Journal, run_id: str, turn_id: str) -> list[Fact]:
    """Return the facts up to the one that closed this turn; an id used again means the latest."""
    facts: list[Fact] = []
    closed: dict[str, int] = {}
    latest = None
    async for fact in journal.facts(run_id):
        facts.append(fact)
        if isinstance(fact, TurnOpened):
            latest = fact.turn_id
        elif isinstance(fact, TurnSettled | TurnInterrupted):
            closed[fact.turn_id] = fact.sequence
            latest = None
    if turn_id == latest:
        why = "is open still: interrupt it or let it end"
    elif turn_id in closed:
        return facts[: closed[turn_id]]
    else:
        why = "is none of its turns"
    names = [harmless(name, limit=40) for name in closed][-LISTED:]
    there = f"these are closed: {', '.join(names)}" if names else "none is closed yet"
    raise NotForked(f"run {harmless(run_id)!r}: {harmless(turn_id, limit=80)!r} {why}; {there}")


def renamed_facts(facts: Sequence[Fact], into: str) -> Iterator[Fact]:
    """Yield the facts as those of another run; a commit that goes on behind them ends with them."""
    for fact in facts:
        fields: dict[str, Any] = {"run_id": into, "commit": min(fact.commit, len(facts))}
        if isinstance(fact, GrantFact | ToolApproved) and fact.grant_id is not None:
            fields["grant_id"] = grant_id(into, int(fact.grant_id.rpartition("/")[2]))
        yield changed(fact, **fields)


def refuse_sealed(run_id: str, facts: Iterable[Fact], notes: Iterable[Noted]) -> None:
    """Raise `SealBroken` where anything is sealed: it would open nowhere in the new run."""
    for fact in facts:
        calls = fact.calls if isinstance(fact, TurnOpened) else ()
        held = [call.arguments for call in calls]
        if isinstance(fact, CallAdded):
            held.append(fact.call.arguments)
        said = [getattr(fact, name, None) for name in ("arguments", "result", "error")]
        if any(
            is_sealed(it) or (isinstance(it, str) and it.startswith(TEXT)) for it in (*held, *said)
        ):
            break
    else:
        if not any(is_sealed_body(it.note.body) for it in notes):
            return
    raise SealBroken(
        f"run {harmless(run_id)!r}: it keeps things sealed, which open in this run alone; begin a"
        " new run, and tell it what it has to know"
    )


async def _begun(journal: Journal, twin: Run, forked: Note) -> frozenset[str | None]:
    """Declare the new run and say where it comes from, and return the ids of its notes.

    Raises `NotForked` for a run that comes from elsewhere.
    """
    try:
        there = await journal.entry(twin.run_id)
        kept = {it.note.id: it.note for it in await journal.notes(twin.run_id)}
    except UnknownRun:
        await journal.declare(twin)
        await _note(journal, twin.run_id, forked)
        return frozenset({FORKED})
    ours = FORKED in kept and kept[FORKED].content() == forked.content()
    if not ours and (kept or there.sequence):
        raise NotForked(
            f"run {harmless(twin.run_id)!r}: it is there already, and another one; give a new id"
        )
    await journal.declare(twin)
    await _note(journal, twin.run_id, forked)
    return frozenset(kept)


async def keep_history(
    journal: Journal, kernel: Kernel, history: Sequence[Fact], notes: Sequence[Noted]
) -> None:
    """Keep what is not kept yet, in batches of whole commits; `kernel` is the fold of them all.

    `history` are all facts of the run, `notes` those that are not kept yet. Each note is kept once
    the facts are that stand before it. Raises `RunFenced` and `Conflict` where somebody else has
    come between; done again it goes on.
    """
    run_id = kernel.run.run_id
    summary: Busy = summary_of(kernel, history) if history else False
    after = (await journal.entry(run_id)).sequence

    async def append_to(place: int) -> None:
        nonlocal after
        most = BATCH
        while after < place:
            end = history[min(after + most, place) - 1].commit
            busy = summary if end == len(history) else True
            batch = history[after:end]
            try:
                kept = await journal.append(run_id, fence=None, after=after, facts=batch, busy=busy)
            except Overloaded:
                if end == batch[0].commit:
                    raise
                most = max(1, min(most, len(batch)) // 2)  # each was kept once, in one of its own
                continue
            _check(kept, run_id)
            after = end

    for place, standing in groupby(notes, lambda it: min(it.cursor.sequence, len(history))):
        await append_to(place)
        await _note(journal, run_id, *(it.note for it in standing))
    await append_to(len(history))


def summary_of(kernel: Kernel, history: Sequence[Fact]) -> Summary:
    """Return what a list shows of a run after all its facts, of which there is one at least."""
    view = RunView.of(kernel.run, history)
    asked = (call.asked_at for call in view.waiting if call.asked_at is not None)
    tally = Tally(kernel, since=min(asked, default=0.0))
    return Summary(
        busy=kernel.busy,
        status=tally.status(kernel, latest=history[-1]),
        waiting=tally.waiting,
        doubts=tally.doubts,
        turn_id=None if kernel.turn is None else kernel.turn.turn_id,
        asked=tally.asked(kernel),
    )


async def _note(journal: Journal, run_id: str, *notes: Note) -> None:
    bare = [attrs.evolve(note, after=None) for note in notes]
    _check(await journal.note(run_id, fence=None, notes=bare), run_id)


def _check(appended: Appended, run_id: str) -> None:
    """Raise where somebody else has come between."""
    if appended is Appended.FENCED:
        raise RunFenced(f"run {harmless(run_id)!r} has an owner already: it is not whole yet")
    if appended is Appended.CONFLICT:
        raise Conflict(f"run {harmless(run_id)!r}: somebody else makes it, too; try again")


def _revocations(kernel: Kernel) -> Iterable[Delivery]:
    return [Revoke(run_id=kernel.run.run_id, grant_id=it.grant_id) for it in kernel.grants]
