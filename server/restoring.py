"""What precedes and follows the next process of a run that another runtime performs (S-49, S-52).

Its order: the last process is known to be dead; what the journal holds is brought to rest, with
what that process only announced; then the adapter resumes the thread; then what the runtime has
kept of calls in doubt settles them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from ..adapters.contract import Announced, CommandRefused, Ending, RuntimeAdapter, Session
from ..adapters.rest import brought_to_rest
from ..models.deliveries import Acknowledge, Report
from ..models.effects import Continue
from ..models.fact import Fact
from ..models.facts import CallAdded, TurnOpened
from ..models.run import OWN, Run
from ..models.safe_text import harmless
from ..models.values import Json
from ..models.verdicts import Refused
from ..runtime.journal.contract import PAGE, Journal
from ..runtime.journal.ledger import START, Cursor, Domain, Note, Noted
from ..runtime.journal.pruning import turn_there
from ..runtime.log import logger
from ..runtime.owners import Worker
from ..runtime.runtime import Runtime
from ..runtime.writer import fold_run
from ..views.call_view import Waits
from ..views.live import calls_of
from .manifests import Kept
from .performed import Performed

_log = logger(__name__)

UNANSWERED: Final = "nobody answered: the runtime that asked has ended"
"""The error of a question to the user that died with its process."""
ABANDONED: Final = "its process ended before it was kept: the run has another thread"
"""What is said of a thread that nobody goes on with."""
ROUNDS: Final = 2
"""Turns that are brought to rest: the one that is open, and one for what does not fit into it."""


async def check_dead(kept: Kept, adapter: RuntimeAdapter) -> None:
    """Raise `CommandRefused` while the last process of a run may live (S-49).

    Two would speak for one thread. One whose end is kept is dead: we ended it, or saw it end.
    """
    manifest = kept.manifest
    if manifest.epoch is None or manifest.closed is not None:
        return
    why = await adapter.may_live(manifest.epoch)
    if why is not None:
        raise CommandRefused(
            "owned_elsewhere",
            f"run {harmless(manifest.spec.run_id)!r}: {why}; once you know that it has ended,"
            ' restore the run with "force": true',
        )


async def bring_to_rest(
    kept: Kept, adapter: RuntimeAdapter, runtime: Runtime, journal: Journal
) -> None:
    """Deliver what a dead process left, in a run that is owned here now (S-26, S-52)."""
    run = kept.run
    notes: Sequence[Noted] | None = None
    worker = Worker(journal=journal, meaning=runtime.owner)
    announced: Announced | None = None
    for _ in range(ROUNDS):
        kernel = await fold_run(run, journal)
        facts = await _latest(journal, run.run_id, ends=kernel.sequence)
        if notes is None:
            after = Cursor(facts[0].sequence - 1) if facts else START
            notes = await journal.notes(run.run_id, after=after)
        announced = adapter.announced(kept.manifest, notes, facts)
        if kernel.turn is None and announced is None:
            return
        await worker.make_known()
        deliveries = [*brought_to_rest(kernel, worker=worker.name, announced=announced)]
        for verdict in await runtime.hear(run.run_id, [], deliveries):
            if isinstance(verdict, Refused):
                _log.warning("run %r was not brought to rest: %s", run.run_id, verdict.reason)
    if announced is not None:
        _log.info("run %r: what was announced last waits for the doubts of its turn", run.run_id)


async def put_to_rest(performed: Performed, ending: Ending, *, grace: float, over: bool) -> Ending:
    """End the process of a session, and bring to rest what it leaves; return how it ended.

    One that is `over` has ended by itself, as the ending says; what it performed may not have.
    """
    run_id, runtime, kind = performed.run_id, performed.runtime, performed.adapter.kind
    if over and kind == OWN:
        return ending
    questions = await _questions(performed)
    ended = await performed.session.terminate(why=ending.why, grace=grace)
    if kind != OWN and run_id in runtime.runs:
        journal = runtime.journal
        await runtime.hear(run_id, [], questions)
        await bring_to_rest(performed.kept, performed.adapter, runtime, journal)
        await acknowledge_owed(performed.kept.run, runtime)
    return ending if over else ended


async def acknowledge_owed(run: Run, runtime: Runtime) -> None:
    """Acknowledge what nobody takes any more: the process that would have is dead (S-29)."""
    kernel = await fold_run(run, runtime.journal)
    owed = [it.turn_id for it in kernel.pending_effects if isinstance(it, Continue)]
    await runtime.hear(run.run_id, [], [Acknowledge(turn_id=turn_id) for turn_id in owed])


async def _questions(performed: Performed) -> list[Report]:
    """Return what becomes of questions to the user that wait: nobody has answered them (S-28).

    We are their executor, so there is no doubt of it.
    """
    run_id, kind = performed.run_id, performed.adapter.kind
    if kind == OWN or run_id not in performed.runtime.runs:
        return []
    kernel = await fold_run(performed.kept.run, performed.runtime.journal)
    return [
        Report(
            run_id=run_id,
            turn_id=call.turn_id,
            invocation_id=call.invocation_id,
            attempt=call.attempt,
            error=UNANSWERED,
        )
        for call in calls_of(kernel)
        if call.waits is Waits.REPORT
        and not call.observed
        and performed.session.asks(call.turn_id, call.invocation_id)
    ]


async def look_back(kept: Kept, session: Session, runtime: Runtime, journal: Journal) -> None:
    """Keep what a session that has begun tells of those before it: threads that they left, ends."""
    run_id = kept.manifest.spec.run_id
    if kept.manifest.epoch is None:
        await _name_abandoned(run_id, str(session.epoch.get("thread_id")), runtime, journal)
    await _settle_by_evidence(run_id, session, runtime, journal)


async def _name_abandoned(run_id: str, thread_id: str, runtime: Runtime, journal: Journal) -> None:
    """Name the threads that were begun for a run, and were not kept (section 14).

    Nobody goes on with them here; whoever looks at what Codex keeps finds them.
    """
    notes = await journal.notes(run_id, domain=Domain.THREAD)
    heard = [(it.note.correlation or {}).get("thread_id") for it in notes]
    for other in sorted({str(it) for it in heard if it not in {thread_id, None}}):
        body: dict[str, Json] = {"thread_id": other, "text": ABANDONED}
        note = Note(
            domain=Domain.THREAD,
            kind="thread_abandoned",
            body=body,
            at=runtime.now(),
            id=f"abandoned/{other}",
        )
        await runtime.note(run_id, note)


async def _settle_by_evidence(
    run_id: str, session: Session, runtime: Runtime, journal: Journal
) -> None:
    """Settle doubts by what the runtime has kept of its thread: only ends count (S-27).

    An id that was used for two calls proves nothing about either.
    """
    doubts = [call for call in runtime.doubts(run_id) if call.observed]
    if not doubts:
        return
    uses = _uses(await _facts(journal, run_id))
    asked = [call for call in doubts if uses[call.provider_call_id] == 1]
    if asked:
        await runtime.hear(run_id, [], await session.evidence(asked))


async def _latest(journal: Journal, run_id: str, *, ends: int) -> list[Fact]:
    """Return the facts since the turn before the last turn of the other runtime was opened.

    What was told of its last turn stands behind. They are read back from the end.
    """
    facts: list[Fact] = []
    while ends > 0:
        first = max(0, ends - PAGE)
        page: list[Fact] = []
        while (left := ends - first - len(page)) and (
            some := await journal.read(run_id, after=first + len(page), limit=left)
        ):
            page += some
        facts, ends = page + facts, first
        opened = [it for it in facts if isinstance(it, TurnOpened)]
        before = [it for it in opened if turn_there(it.turn_id) != turn_there(opened[-1].turn_id)]
        if before:
            return [it for it in facts if it.sequence >= before[-1].sequence]
    return facts


async def _facts(journal: Journal, run_id: str) -> list[Fact]:
    return [fact async for fact in journal.facts(run_id)]


def _uses(facts: list[Fact]) -> Counter[str | None]:
    """Count the calls of each id of the other runtime; those without one are of no use here."""
    used: Counter[str | None] = Counter()
    for fact in facts:
        calls = fact.calls if isinstance(fact, TurnOpened) else ()
        if isinstance(fact, CallAdded):
            calls = (fact.call,)
        used.update(call.provider_call_id for call in calls)
    used.pop(None, None)
    return used
