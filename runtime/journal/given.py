"""What a journal is given, looked at before anything is kept: the mistakes of its callers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Final, TypeGuard, cast

import attrs

from ...models.errors import InvalidValue, shown
from ...models.facts import Fact
from ...models.record import number
from ...models.values import canonical, check_text
from ..errors import NoJournal, Overloaded
from .entries import Told
from .ledger import Note, body_of

APPEND_BYTES: Final = 256_000_000
"""Bytes of JSON that one append may bring; SQLite itself ends at 1,000,000,000."""


def check_size(run_id: str, size: int) -> None:
    """Raise `Overloaded` for an append of more bytes than one may bring."""
    if size > APPEND_BYTES:
        raise Overloaded(
            f"run {run_id!r}: an append of {size:,} bytes; APPEND_BYTES is {APPEND_BYTES:,}: keep"
            " large results elsewhere, and a reference here"
        )


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


@attrs.frozen
class Given:
    """A note as it is to be kept: its content and its correlation as bytes.

    `after` is the sequence of the fact after which it stands, None for the last.
    """

    note: Note
    content: bytes
    correlation: bytes | None
    after: int | None


def given_notes(
    run_id: str, notes: Iterable[Note], *, ends: Sequence[int] | None = None
) -> tuple[Given, ...]:
    """Return notes as they are to be kept.

    `ends` are the sequences after which one may stand, those of an append: the fact before it and
    the last of each commit. Raises `InvalidValue` for what is no note or stands elsewhere, and
    `Overloaded` for what is too large (S-61).
    """
    return tuple(_given(run_id, note, f"notes[{at}]", ends) for at, note in enumerate(notes))


def _given(run_id: str, note: Note, place: str, ends: Sequence[int] | None) -> Given:
    number(note.at, place=f"{place}.at")
    for name, text in (("kind", note.kind), ("id", note.id)):
        if text is not None and not check_text(text, place=f"{place}.{name}"):
            raise InvalidValue(place=f"{place}.{name}", cause="is empty", fix="give a text")
    after = note.after
    if ends is not None:
        after = ends[-1] if after is None else after
        if after not in ends:
            raise InvalidValue(
                place=f"{place}.after",
                cause=f"is {shown(after)}, where no commit of this append ends",
                fix=f"give one of {', '.join(map(str, ends[:10]))}",
            )
    body = body_of(note.body, place=f"{place}.body")
    whole = attrs.evolve(note, body=body, at=float(note.at), after=None)
    correlation = None
    if note.correlation is not None:
        about = body_of(note.correlation, place=f"{place}.correlation")
        correlation, whole = canonical(about).encode(), attrs.evolve(whole, correlation=about)
    kept, content = whole.encoded(run_id)
    return Given(kept, content, correlation, after)


def ends_of(facts: Sequence[Fact], *, after: int) -> Sequence[int]:
    """Return after which facts of an append a note may stand: never inside a commit (S-61)."""
    return (after, *dict.fromkeys(fact.commit for fact in facts))


def given_again(run_id: str, told: Told, *, after: int) -> tuple[Given, ...]:
    """Return the notes of what is to be restored behind this fact, see `Journal.restore`.

    Raises `InvalidValue` for facts that do not follow, and for notes that stand elsewhere.
    """
    if told.facts:
        check_batch(run_id, after=after, facts=told.facts)
        check_correlations(told.facts, told.correlations)
    return given_notes(run_id, told.notes, ends=ends_of(told.facts, after=after))


def check_correlations(facts: Sequence[Fact], correlations: Sequence[bytes | None] | None) -> None:
    """Raise `InvalidValue` for correlations that are not one line for each fact."""
    if correlations is None:
        return
    if len(correlations) != len(facts):
        raise InvalidValue(
            place="correlations",
            cause=f"are {len(correlations)} for {len(facts)} facts",
            fix="give one for each fact, or None for it",
        )
    for at, line in enumerate(correlations):
        if line is not None and (not line or b"\n" in line):
            raise InvalidValue(
                place=f"correlations[{at}]", cause="is no line of JSON", fix="give JSON, or None"
            )


def check_limit(*, after: int = 0, limit: int) -> None:
    """Raise `InvalidValue` for a page of no facts, or one that begins before the first."""
    if after < 0 or limit < 1:
        raise InvalidValue(
            place="after" if after < 0 else "limit",
            cause=f"after {after}, limit {limit} is no page",
            fix="give 0 or more for `after`, 1 or more for `limit`",
        )


def check_parts(parts: int) -> None:
    """Raise `InvalidValue` for what is no gap of notes."""
    if type(parts) is not int or parts < 1:
        raise InvalidValue(
            place="parts", cause=f"is {shown(parts)}, which is no gap", fix="give 1 or more"
        )


def check_lease(owner: str, *, now: float, lease: float) -> None:
    """Raise `InvalidValue` for an owner that is no text, or a time that is no number."""
    if not check_text(owner, place="owner"):
        raise InvalidValue(place="owner", cause="is empty", fix="give a name, see `owners`")
    number(now, place="now")
    number(lease, place="lease")


def check_worker(worker: str, meaning: str) -> None:
    """Raise `InvalidValue` for an id or a meaning that is no text, or is empty."""
    for place, text in (("worker", worker), ("meaning", meaning)):
        if not check_text(text, place=place):
            raise InvalidValue(place=place, cause="is empty", fix="give a text")


def text_of_place(url: object) -> str:
    """Return a path or a URL as text. Raises `NoJournal` for what is neither."""
    place = cast("object", os.fspath(url)) if _is_place(url) else url
    if isinstance(place, str):
        return place
    raise NoJournal(f"journal {shown(place)}: is no text; give a path, as text or a Path, or a URL")


def _is_place(url: object) -> TypeGuard[os.PathLike[str]]:
    return isinstance(url, os.PathLike)
