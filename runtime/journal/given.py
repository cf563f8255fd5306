"""What a journal is given, looked at before anything is kept: the mistakes of its callers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ...models.errors import InvalidValue
from ...models.facts import Fact
from ...models.record import number
from ...models.values import Json, canonical, check_text, freeze
from ..errors import Overloaded

NOTE_BYTES: Final = 64_000_000
"""Bytes of JSON that one note may have."""


def check_batch(run_id: str, *, after: int, facts: Sequence[Fact]) -> None:
    """Raise `InvalidValue` for facts that are not whole commits, in order, after `after` (K-9).

    That is a mistake of the writer, whatever the journal holds: half a commit in a journal would be
    dropped by the next recovery, though it was durable.
    """
    if not facts:
        raise InvalidValue(place="facts", cause="is empty", fix="append at least one fact")
    commit = after
    for index, fact in enumerate(facts):
        place = f"facts[{index}]"
        if fact.run_id != run_id:
            raise InvalidValue(
                place=f"{place}.run_id",
                cause=f"is {fact.run_id!r}, not {run_id!r}",
                fix="append each run's facts for itself",
            )
        sequence = after + index + 1
        if fact.sequence != sequence:
            raise InvalidValue(
                place=f"{place}.sequence",
                cause=f"is {fact.sequence}, not {sequence}",
                fix="append the facts that follow `after`, in their order",
            )
        if sequence > commit:
            commit = fact.commit
        if fact.commit != commit or commit < sequence:
            raise InvalidValue(
                place=f"{place}.commit",
                cause=f"is {fact.commit}, which does not fit the facts before it",
                fix="append the facts of each verdict as they are",
            )
    if commit != facts[-1].sequence:
        raise InvalidValue(
            place="facts",
            cause=f"ends at {facts[-1].sequence}, inside the commit that ends at {commit}",
            fix="append whole commits: all facts of each verdict",
        )


def checked_note(run_id: str, *, name: str, value: Json) -> tuple[Any, bytes]:
    """Return the value frozen, and its canonical JSON; see `Journal.note` for what is raised."""
    if not check_text(name, place="name"):
        raise InvalidValue(place="name", cause="is empty", fix="give the note a name")
    frozen = freeze(value, place="value")
    content = canonical(frozen).encode()
    if len(content) > NOTE_BYTES:
        raise Overloaded(
            f"run {run_id!r}: the note {name!r} has {len(content):,} bytes; NOTE_BYTES is"
            f" {NOTE_BYTES:,}: keep it elsewhere, and a reference here"
        )
    return frozen, content


def check_limit(*, after: int = 0, limit: int) -> None:
    """Raise `InvalidValue` for a page of no facts, or one that begins before the first."""
    if after < 0 or limit < 1:
        raise InvalidValue(
            place="after" if after < 0 else "limit",
            cause=f"after {after}, limit {limit} is no page",
            fix="give 0 or more for `after`, 1 or more for `limit`",
        )


def check_lease(owner: str, *, now: float, lease: float) -> None:
    """Raise `InvalidValue` for an owner that is no text, or a time that is no number."""
    if not check_text(owner, place="owner"):
        raise InvalidValue(place="owner", cause="is empty", fix="give a name, see `owners`")
    number(now, place="now")
    number(lease, place="lease")
