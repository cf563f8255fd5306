"""A conversation that goes on from an earlier turn, as a new run.

What was said until then comes along. The turn's results are the last of it, so the model answers
them again; where the turn was interrupted a person has the word.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..models.safe_text import harmless
from ..models.sealed import is_sealed_body
from ..runtime.forking import Forked, NotForked, fork_run
from ..runtime.journal.contract import Journal
from ..runtime.journal.ledger import Domain, Noted
from .conversation import PREFIX
from .messages import Answer, from_note

__all__ = ["Forked", "NotForked", "fork"]


async def fork(journal: Journal, run_id: str, *, at: str, into: str) -> Forked:
    """Make the run `into` of what was said and done in `run_id` until the turn `at` was closed.

    Raises as `fork_run` does, and `NotForked` where the turn is not one of its conversation.
    """
    notes = await journal.notes(run_id, domain=Domain.MESSAGE)
    said = _said_until(at, notes, run_id=run_id)
    return await fork_run(journal, run_id, turn_id=at, into=into, notes=said)


def _said_until(turn_id: str, notes: Iterable[Noted], *, run_id: str) -> list[Noted]:
    """Return the messages up to the answer whose calls are this turn: the n-th with calls is tn."""
    said: list[Noted] = []
    turn = 0
    for noted in notes:
        note = noted.note
        if note.id is None or not note.id.startswith(PREFIX):
            continue
        said.append(noted)
        if is_sealed_body(note.body):  # it is refused as soon as it is to come along
            continue
        message = from_note(note)
        if isinstance(message, Answer) and message.calls:
            turn += 1
            if turn_id == f"t{turn}":
                return said
    raise NotForked(
        f"run {harmless(run_id)!r}: {harmless(turn_id, limit=80)!r} is no turn of a conversation"
        f" in it; its conversation has {turn}"
    )
