"""Messages on their way to notes and back, and to the model: sealed, where a tool declares it."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ..models.values import Json
from ..runtime.tools.sealing import Place, Seals
from .messages import Answer, Message, Prompt, Results, as_note


def as_kept(said: Prompt | Answer, seals: Seals, *, run_id: str, name: str) -> Json:
    """Return the note of a message; one that asks for calls with secret arguments is sealed."""
    note = as_note(said)
    calls = said.calls if isinstance(said, Answer) else ()
    if any(seals.seals_arguments(call.tool_name) for call in calls):
        return seals.note(note, run_id=run_id, name=name)
    return note


def as_said(notes: Mapping[str, Json], seals: Seals, *, run_id: str) -> dict[str, Json]:
    """Return notes as they were before they were sealed. Raises `SealBroken`."""
    return {name: seals.clear_note(note, run_id=run_id, name=name) for name, note in notes.items()}


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
