"""Messages on their way to notes and back, and to the model: sealed, where a tool declares it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import cast

import attrs

from ..models.sealed import FIELD, ID, is_sealed_body
from ..models.values import Json, freeze
from ..runtime.journal.ledger import Domain, Note, Noted
from ..runtime.tools.sealing import Place, Seals
from .messages import Answer, Kind, Message, Prompt, Results


def as_kept(note: Note, said: Prompt | Answer, seals: Seals, *, run_id: str) -> Note:
    """Return the note of a message as it is kept: sealed, where it asks for secret arguments."""
    calls = said.calls if isinstance(said, Answer) else ()
    if not any(seals.seals_arguments(call.tool_name) for call in calls):
        return note
    name, body = note.id or "", cast("Json", freeze(note.body, place="note"))
    envelope = cast("Mapping[str, Json]", seals.note(body, run_id=run_id, name=name))
    return attrs.evolve(note, body={ID: name, **envelope})


def as_stopped(name: str, *, at: float, because: Json = None) -> Note:
    """Return the note that nobody waits any more for an answer; None: a person stopped it."""
    kind = Kind.STOPPED.value
    body: dict[str, Json] = {ID: name}
    if because is not None:
        body["because"] = because
    return Note(domain=Domain.MESSAGE, kind=kind, body=body, at=at, id=name)


def as_said(notes: Iterable[Noted], seals: Seals, *, run_id: str) -> Iterator[Note]:
    """Yield notes as they were before they were sealed. Raises `SealBroken`."""
    for noted in notes:
        note, name = noted.note, noted.note.id or ""
        if is_sealed_body(note.body):
            envelope = {FIELD: note.body[FIELD]}
            clear = seals.clear_note(cast("Json", envelope), run_id=run_id, name=name)
            if isinstance(clear, Mapping):
                note = attrs.evolve(note, body={ID: name, **clear})
        yield note


def as_told(message: Message, seals: Seals, *, run_id: str) -> Message:
    """Return a message as the model is told it. Raises `SealBroken`."""
    if not isinstance(message, Results):
        return message
    turn_id = message.turn_id
    return attrs.evolve(
        message,
        results=seals.results(message.results, run_id, turn_id),
        edited={
            invocation_id: seals.clear_arguments(arguments, Place(run_id, turn_id, invocation_id))
            for invocation_id, arguments in message.edited.items()
        },
    )


def faults_of(answer: Answer, seals: Seals, *, run_id: str, turn_id: str) -> dict[str, str]:
    """Return what is wrong with the calls that could not be read, by invocation, to be kept."""
    return {
        call.invocation_id: seals.error(
            asked.tool_name, asked.fault, Place(run_id, turn_id, call.invocation_id)
        )
        for call, asked in zip(answer.identified(), answer.calls, strict=True)
        if asked.fault is not None
    }
