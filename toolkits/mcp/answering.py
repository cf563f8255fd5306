"""How a question comes to its reply, and how both are kept as notes of their run (W-67).

The first reply stands. Every question that was kept gets one: where its call ends first, or asking
failed, the server is told `cancel`, and that is kept; where its process died, who goes on with the
run keeps it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

import attrs

from ...models.errors import InvalidValue
from ...models.ids import escape
from ...models.values import Json
from ...runtime.journal.ledger import Domain, Note, Noted, body_of
from ...runtime.log import logger
from ...runtime.tools.errors import said
from .questions import Accept, Cancel, Decline, Elicit, Question, Reply

_log = logger(__name__)

MISFITS: Final = 3
"""Times that an answer may not fit its form before the question is declined."""
LOOK_FOR_RUNS: Final = 1.0
"""Seconds between two looks for runs that are gone on with here, whose asker may have died."""

_UNDER_WAY: Final[set[str]] = set()
"""The questions of this process, by id, whoever asks them: they get their replies by themselves."""


class Notes(Protocol):
    """Where questions and replies are kept: a `Runtime` that has the run open."""

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs that are gone on with here, and by nobody else."""
        ...

    def now(self) -> float:
        """Return the Unix time that notes bear."""
        ...

    async def note(self, run_id: str, *notes: Note) -> None:
        """Keep notes; raises `InvalidValue` where an id has other content."""
        ...

    async def notes(self, run_id: str, *, domain: Domain | None = None) -> Sequence[Noted]:
        """Return the notes of a run."""
        ...


async def answered(question: Question, elicit: Elicit, notes: Notes | None) -> Reply:
    """Have a question answered, by who answered it before or by a person; the first answer stays.

    An answer that does not fit is asked for again, `MISFITS` times. What `elicit` raises passes.
    """
    if notes is None:
        return await _fitting(question, elicit)
    name, run_id = question.question_id, question.run_id
    told: dict[str, Json] = {
        "server": question.server,
        "message": question.message,
        "form": question.form,
    }
    _UNDER_WAY.add(name)
    try:
        await notes.note(run_id, _note("question", name, told, at=notes.now()))
        known = await _known(run_id, name, notes)
        if known is not None:
            return known
        return await _kept(run_id, name, await _fitting(question, elicit), notes)
    except BaseException:  # the call has ended, or nobody could be asked
        await _cancel(run_id, name, notes)
        raise
    finally:
        _UNDER_WAY.discard(name)


async def cancel_what_the_dead_asked(notes: Notes) -> None:
    """Cancel, for ever, what is open in runs that are gone on with here, and not asked here.

    A run has one process that performs it: any other that asked is dead, or has lost the run.
    """
    known: set[str] = set()
    while True:
        runs = set(notes.runs)
        for run_id in runs - known:
            try:
                kept = await _kept_ids(run_id, notes)
            except Exception as error:  # noqa: BLE001 - the runtime tells what is wrong with it
                _log.info("the notes of run %r cannot be read: %s", run_id, said(error))
                continue
            asked_by = f"question/{escape(run_id)}/"
            for name in kept:
                asked = name.startswith(asked_by) and _reply_id(name) not in kept
                if asked and name not in _UNDER_WAY:
                    await _cancel(run_id, name, notes)
        known = runs
        await asyncio.sleep(LOOK_FOR_RUNS)


async def _fitting(question: Question, elicit: Elicit) -> Reply:
    for _ in range(MISFITS + 1):
        reply = await elicit(question)
        if not isinstance(reply, Accept):
            return reply
        try:
            question.check(reply.content)
        except InvalidValue as error:
            question = attrs.evolve(question, mistake=str(error))
        else:
            return reply
    return Decline()


async def _known(run_id: str, name: str, notes: Notes) -> Reply | None:
    kept = await notes.notes(run_id, domain=Domain.APPROVAL)
    replies = [it.note for it in kept if it.note.id == _reply_id(name)]
    if not replies:
        return None
    reply: Mapping[str, Any] = replies[0].body
    kinds: dict[str, Reply] = {"decline": Decline(), "cancel": Cancel()}
    return kinds.get(reply["action"]) or Accept(reply["content"])


async def _kept(run_id: str, name: str, reply: Reply, notes: Notes) -> Reply:
    """Keep a reply, and return the one that stands."""
    kept: dict[str, Any] = {"action": type(reply).__name__.lower()}
    if isinstance(reply, Accept):
        kept["content"] = dict(reply.content)
    try:
        await notes.note(run_id, _note("reply", _reply_id(name), kept, at=notes.now()))
    except InvalidValue:  # another process has answered: the first stands
        return await _known(run_id, name, notes) or reply
    return reply


async def _cancel(run_id: str, name: str, notes: Notes) -> None:
    """Keep that a question is cancelled, unless it has a reply."""
    try:
        with suppress(InvalidValue):
            cancelled = _note("reply", _reply_id(name), {"action": "cancel"}, at=notes.now())
            await notes.note(run_id, cancelled)
    except Exception as error:  # noqa: BLE001 - who goes on with the run keeps it then
        _log.info("that %r is cancelled was not kept: %s", name, said(error))


async def _kept_ids(run_id: str, notes: Notes) -> frozenset[str]:
    kept = await notes.notes(run_id, domain=Domain.APPROVAL)
    return frozenset(it.note.id for it in kept if it.note.id is not None)


def _note(kind: str, name: str, told: Mapping[str, Any], *, at: float) -> Note:
    body = body_of({"id": name, **told}, place=kind)
    return Note(domain=Domain.APPROVAL, kind=kind, body=body, at=at, id=name)


def _reply_id(question_id: str) -> str:
    return "reply/" + question_id.removeprefix("question/")
