"""What stands in a row of facts: lines of JSON, with a checksum over all of the row."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final

import attrs

from ...models.codec import to_json
from ...models.errors import CorruptJournal
from ...models.fact import Fact
from .trusted import UNREADABLE, trusted_fact

_NEWLINE: Final = b"\n"


@attrs.frozen
class Row:
    """The facts of one append: the sequences of the first and the last, their lines, the sum."""

    first: int
    last: int
    facts: bytes
    checksum: int


def row_of(run_id: str, facts: Sequence[Fact]) -> Row:
    """Return the row for the facts of one append."""
    first, last = facts[0].sequence, facts[-1].sequence
    lines = _NEWLINE.join(map(to_json, facts))
    return Row(first, last, lines, checksum(lines, run_id, first, last))


def checksum(content: object, *key: object) -> int:
    """Return the CRC-32 of a row's content and of what it is stored under.

    Damage may turn bytes into a text or a number: then there is none.
    """
    if not isinstance(content, bytes):
        return -1
    return zlib.crc32(repr(key).encode(), zlib.crc32(content))


def facts_in(row: Row, run_id: str, *, after: int, limit: int, where: str) -> list[Fact]:
    """Return the facts of a row behind `after`, at most `limit`; `where` says which file it is.

    Raises `CorruptJournal` when the row does not follow or is not as it was written.
    """
    expected = after + 1
    if not row.first <= expected <= row.last:
        raise _corrupt(expected, f"it is missing in {where}; the next ones there are {row.first} …")
    if checksum(row.facts, run_id, row.first, row.last) != row.checksum:
        raise _corrupt(row.first, f"its row in {where} is damaged: the checksum does not fit")
    skipped = expected - row.first
    found: list[Fact] = []
    try:
        for line in row.facts.split(_NEWLINE)[skipped : skipped + limit]:
            found.append(trusted_fact(line))  # noqa: PERF401 - its length says where it failed
    except UNREADABLE as error:
        number = expected + len(found)
        raise _corrupt(number, f"it cannot be read in {where}: {error}") from error
    for number, fact in enumerate(found, expected):
        if fact.sequence != number or fact.run_id != run_id:
            cause = f"{where} holds fact {fact.sequence} of run {fact.run_id!r} in its place"
            raise _corrupt(number, cause)
    return found


def missing(sequence: int, where: str) -> CorruptJournal:
    """Return the error for a fact that was kept once, and of which there is no row."""
    return _corrupt(sequence, f"it is missing in {where}, which once held it")


def _corrupt(sequence: int, cause: str) -> CorruptJournal:
    return CorruptJournal(
        sequence=sequence,
        cause=cause,
        fix="keep the file and its -wal file as they are, and restore them from a copy",
    )
