"""Notes beside a run's facts: kept under its owner's epoch, as facts are."""

from __future__ import annotations

from ..models.errors import InvalidValue
from ..models.values import Json
from .conductor import Conductor
from .errors import RunFenced
from .journal.contract import Appended, Journal


async def keep_note(journal: Journal, conductor: Conductor, *, name: str, value: Json) -> None:
    """Keep a note. Raises `RunFenced`, and `InvalidValue` where the name has another value."""
    run_id = conductor.run.run_id
    kept = await journal.note(run_id, epoch=conductor.epoch, name=name, value=value)
    if kept is Appended.FENCED:
        raise RunFenced(f"run {run_id!r} was taken over: the note {name!r} was not kept")
    if kept is Appended.CONFLICT:
        raise InvalidValue(
            place=name, cause="another note has this name", fix="give this one another name"
        )
