"""The rows of a journal: how facts are written into them and read out, and how damage shows.

They are the same in SQLite and in PostgreSQL, checksums included, so that rows can be copied from
one to the other (D-20).

One row of `appends` holds the facts of one append as lines of JSON: a row for each fact took 1.7
times as long to write in batches of 100 (measured: 6.8 and 4.0 µs a fact, with the disk).
`checksum` is CRC-32 over a row's content and what it is stored under.

Facts are read without the checks of the codec (`trusted_fact`): they bear their checksum.

A run's row says what it was declared with, and what its last append told of it (`LastAppend`).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import (
    Any,
    Final,
    Generic,
    NamedTuple,
    TypeVar,
    cast,
)

import attrs

from ...engine.snapshot import Snapshot
from ...models.codec import (
    record_from_json,
    to_json,
)
from ...models.errors import CorruptJournal, InvalidValue, NewerVersion
from ...models.fact import Fact, Foldable
from ...models.run import Run
from ...views.status import Status
from ...views.tally import Asked
from ..errors import JournalError
from .given import check_correlations
from .ledger import Cursor, LedgerEntry
from .trusted import UNREADABLE, decoded, trusted_fact

_NEWLINE: Final = b"\n"
_STATUSES: Final = frozenset(Status)


class Row(NamedTuple):
    """The facts of one append: the sequences of the first and the last, their lines, the sum.

    `began` and `changed` are when the first and the last happened; they stand in the lines, too. A
    tuple, since there is one for each append that is written or read.
    """

    first: int
    last: int
    facts: bytes
    checksum: int
    beside: bytes | None = None
    """When each fact happened, and what it is about elsewhere; None: an older process wrote it."""
    began: float | None = None
    changed: float | None = None


_BEGIN: Final = 8
"""Bytes before a chained digest, which say after which fact it begins: an older process makes none,
and what is appended after that begins a new one."""
_DIGEST: Final = 16


def chained(before: bytes | None, row: Row) -> bytes:
    """Return the digest of all facts to the end of a row; `before` is that of those before it.

    Another row with the same checksum is told from it by that.
    """
    if before is None or len(before) != _BEGIN + _DIGEST:
        before = (row.first - 1).to_bytes(_BEGIN, "big") + bytes(_DIGEST)
    digest = blake2b(row.facts, key=before[_BEGIN:], digest_size=_DIGEST)
    return before[:_BEGIN] + digest.digest()


def row_of(
    run_id: str, facts: Sequence[Fact], correlations: Sequence[bytes | None] | None = None
) -> Row:
    """Return the row for the facts of one append. Raises `InvalidValue` as `append` does."""
    check_correlations(facts, correlations)
    first, last = facts[0].sequence, facts[-1].sequence
    lines = _NEWLINE.join(map(to_json, facts))
    times = [fact.at for fact in facts]
    return Row(
        first,
        last,
        lines,
        checksum(lines, run_id, first, last),
        _packed(times, correlations, run_id, first),
        began=times[0],
        changed=times[-1],
    )


_SUM: Final = 4
"""Bytes of the checksum before what stands beside the facts."""
_TIME: Final = 8


def _packed(
    times: Sequence[float], correlations: Sequence[bytes | None] | None, run_id: str, first: int
) -> bytes:
    """Return times and, if there are any, correlations as they stand beside the facts."""
    content = struct.pack(f"<{len(times)}d", *times)
    if correlations is not None and any(correlations):
        content += _NEWLINE.join(line or b"" for line in correlations)
    return checksum(content, run_id, first).to_bytes(_SUM, "big") + content


def lines_in(row: Row, run_id: str, *, after: int, where: str) -> list[LedgerEntry]:
    """Return the facts of a row behind `after` as the bytes that were kept (F-4).

    Raises as `facts_in` does. Those are decoded alone that an older process wrote.
    """
    expected = after + 1
    _check_row(row, run_id, expected, where)
    lines = row.facts.split(_NEWLINE)
    if len(lines) != row.last - row.first + 1:
        cause = f"its row in {where} has {len(lines)} facts, not {row.last - row.first + 1}"
        raise _corrupt(row.first, cause)
    times, correlations = _beside(row, run_id, lines, where)
    cursors = map(Cursor, range(row.first, row.last + 1))
    found = [*map(LedgerEntry, cursors, times, lines, correlations)]
    return found[expected - row.first :]


_new: Final = cast("Callable[[type, tuple[Any, ...]], Any]", vars(tuple)["__new__"])
"""Makes a named tuple of a tuple that has all its fields."""


def entries_in(
    kept: tuple[Any, ...], run_id: str, *, after: int, where: str
) -> Sequence[LedgerEntry]:
    """Return the facts of a row as `lines_in` does, with less ado where all is as it should be.

    Of catching up with a hundred thousand facts half the time is spent here.
    """
    first, last, content, given, beside = kept
    if type(content) is bytes and type(beside) is bytes and first == after + 1:
        lines = content.split(_NEWLINE)
        count = len(lines)
        times = beside[_SUM:]
        name = f"({run_id!r}, {first}"
        if (
            count == last - after
            and len(times) == _TIME * count
            and zlib.crc32(f"{name}, {last})".encode(), zlib.crc32(content)) == given
            and zlib.crc32(f"{name})".encode(), zlib.crc32(times))
            == int.from_bytes(beside[:_SUM], "big")
        ):
            told = zip(lines, struct.unpack(f"<{count}d", times), strict=True)
            return [
                _new(LedgerEntry, (_new(Cursor, (it, 0)), at, line, None, None))
                for it, (line, at) in enumerate(told, first)
            ]
    return lines_in(Row(*kept), run_id, after=after, where=where)


def _beside(
    row: Row, run_id: str, lines: Sequence[bytes], where: str
) -> tuple[Sequence[float], Sequence[bytes | None]]:
    """Return when each fact of a row happened, and what it is about elsewhere."""
    count = len(lines)
    if row.beside is None:
        return _decoded_times(row, lines, where), (None,) * count
    content = row.beside[_SUM:]
    told = content[_TIME * count :].split(_NEWLINE) if len(content) > _TIME * count else [b""]
    if (
        checksum(content, run_id, row.first).to_bytes(_SUM, "big") != row.beside[:_SUM]
        or len(content) < _TIME * count
        or len(told) not in {1, count}
    ):
        raise _corrupt(row.first, f"what is kept beside its row in {where} is damaged")
    times = struct.unpack_from(f"<{count}d", content)
    return times, [line or None for line in told] if len(told) == count else (None,) * count


def _decoded_times(row: Row, lines: Sequence[bytes], where: str) -> Sequence[float]:
    times: list[float] = []
    try:
        for line in lines:
            times.append(float(decoded(line)["at"]))  # noqa: PERF401 - the loop says where it failed
    except UNREADABLE as error:
        number = row.first + len(times)
        raise _corrupt(number, f"it cannot be read in {where}: {error}") from error
    return times


def _check_row(row: Row, run_id: str, expected: int, where: str) -> None:
    """Raise `CorruptJournal` for a row that does not follow, or is not as it was written."""
    if not row.first <= expected <= row.last:
        raise _corrupt(expected, f"it is missing in {where}; the next ones there are {row.first} …")
    if checksum(row.facts, run_id, row.first, row.last) != row.checksum:
        raise _corrupt(row.first, f"its row in {where} is damaged: the checksum does not fit")


def checksum(content: object, *key: object) -> int:
    """Return the CRC-32 of a row's content and of what it is stored under.

    Damage may turn bytes into a text or a number: then there is none.
    """
    if not isinstance(content, bytes):
        return -1
    return zlib.crc32(repr(key).encode(), zlib.crc32(content))


T = TypeVar("T", bound=Foldable)


@attrs.frozen
class Reader(Generic[T]):
    """What is made of facts that are read: of one line, and of many at once where that is faster.

    `RECORDS` makes the facts, `BARE_FACTS` what is read of them to fold them.
    """

    line: Callable[[bytes], T]
    lines: Callable[[bytes], list[T]] | None = None


def facts_in(  # noqa: PLR0913 - what is asked
    row: Row, run_id: str, *, after: int, limit: int, where: str, read: Reader[T]
) -> list[T]:
    """Return the facts of a row behind `after`, at most `limit`; `where` says which journal it is.

    Raises `CorruptJournal` when the row does not follow, is not as it was written, or was written
    by a newer version, which is no damage: then that is said.
    """
    expected = after + 1
    _check_row(row, run_id, expected, where)
    skipped = expected - row.first
    found: list[T] = []
    if read.lines is not None and not skipped and row.last - row.first < limit:
        found = _read_at_once(row, read.lines)
    if not found:
        found = _read_each(row, skipped, limit, where, read.line)
    for number, fact in enumerate(found, expected):
        if fact.sequence != number or fact.run_id != run_id:
            cause = f"{where} holds fact {fact.sequence} of run {fact.run_id!r} in its place"
            raise _corrupt(number, cause)
    return found


def _read_at_once(row: Row, read: Callable[[bytes], list[T]]) -> list[T]:
    """Return all facts of a row; none where anything is odd: then each line is looked at."""
    try:
        found = read(row.facts)
    except UNREADABLE:
        return []
    # `count` looks at each byte and takes five times as long
    newlines = len(row.facts) - len(row.facts.replace(_NEWLINE, b""))
    return found if len(found) == newlines + 1 else []


def _read_each(
    row: Row, skipped: int, limit: int, where: str, read: Callable[[bytes], T]
) -> list[T]:
    """Return the facts of a row line by line, and say of which one cannot be read."""
    found: list[T] = []
    try:
        for line in row.facts.split(_NEWLINE)[skipped : skipped + limit]:
            found.append(read(line))  # noqa: PERF401 - its length says where it failed
    except NewerVersion as error:
        raise _newer(row.first + skipped + len(found), where, error) from error
    except UNREADABLE as error:
        number = row.first + skipped + len(found)
        raise _corrupt(number, f"it cannot be read in {where}: {error}") from error
    return found


KEEP: Final = "keep it as it is (a file with its -wal file), and restore it from a copy"
"""What is to be done about damage, wherever the journal is kept."""


def snapshot_in(content: bytes, kept: int, sequence: int, *, run_id: str) -> Snapshot | None:
    """Return the snapshot that a row holds, None where it is damaged: the facts are there.

    One that a newer version has written is as good as none, too.
    """
    if checksum(content, run_id) != kept:
        return None
    try:
        found = record_from_json(Snapshot, content)
    except InvalidValue:
        return None
    return found if found.sequence == sequence else None


def damaged(where: str, what: str, cause: str) -> JournalError:
    """Return the error for what is not as it was written; `where` says in which journal."""
    return JournalError(f"journal {where}: {what} is damaged ({cause}); {KEEP}")


def missing(sequence: int, where: str) -> CorruptJournal:
    """Return the error for a fact that was kept once, and of which there is no row."""
    return _corrupt(sequence, f"it is missing in {where}, which once held it")


def _newer(sequence: int, where: str, error: NewerVersion) -> CorruptJournal:
    return CorruptJournal(
        sequence=sequence,
        cause=f"a newer turnlock wrote it in {where} ({error.cause})",
        fix="leave this run to that one: nothing is damaged",
    )


def _corrupt(sequence: int, cause: str) -> CorruptJournal:
    return CorruptJournal(
        sequence=sequence,
        cause=cause,
        fix=KEEP,
    )


STRANGE: Final = (TypeError, ValueError, LookupError, OverflowError)
"""What is met in a damaged row or schema: callers' mistakes were found before."""


RECORDS: Final = Reader(trusted_fact)


def configuration(content: Any, kept: Any, run_id: str, where: str) -> Run:  # noqa: ANN401 - columns
    """Return what a run was declared with. Raises `JournalError` where that is damaged."""
    try:
        run = record_from_json(Run, content) if checksum(content, run_id) == kept else None
    except NewerVersion as error:
        raise JournalError(
            f"journal {where}: a newer turnlock declared run {run_id!r} ({error.cause}); leave it"
            " to that one: nothing is damaged"
        ) from error
    except InvalidValue as error:
        raise damaged(where, f"run {run_id!r}", str(error)) from error
    if run is None or run.run_id != run_id:
        raise damaged(where, f"run {run_id!r}", "the checksum does not fit")
    return run


def run_listed(content: Any, kept: Any, run_id: str, where: str) -> tuple[Run, str | None]:  # noqa: ANN401 - columns
    """Return a run in any case, and what is damaged: one row must not hide the others."""
    try:
        return configuration(content, kept, run_id, where), None
    except JournalError as error:
        return Run(run_id=str(run_id) or "?"), str(error)


@attrs.frozen(kw_only=True)
class LastAppend:
    """What an append told of its run, `of` the sequence with which it ended.

    It counts only where the run ends there still. Damage may turn any into another.
    """

    of: Any
    began: Any
    changed: Any
    status: Any
    waiting: Any
    doubts: Any
    trouble: Any
    turn_id: Any
    asked_id: Any
    asked_tool: Any
    asked_since: Any

    def shown(self, sequence: int) -> dict[str, Any]:
        """Return what a `RunEntry` shows of it, where the run ends with this fact."""
        told = self
        if not sequence:
            told = attrs.evolve(self, status=Status.IDLE, waiting=0, doubts=0, turn_id=None)
        elif self.of != sequence:
            told = attrs.evolve(
                self, changed=None, status=None, waiting=None, doubts=None, trouble=None,
                turn_id=None,
            )  # fmt: skip
        return {
            "began": told.began,
            "changed": told.changed,
            "status": Status(told.status) if told.status in _STATUSES else None,
            "waiting": told.waiting,
            "doubts": told.doubts,
            "trouble": None if told.trouble is None else str(told.trouble),
            "turn_id": None if told.turn_id is None else str(told.turn_id),
            "asked": told.asked,
        }

    @property
    def asked(self) -> Asked | None:
        """The call that waits longest for a person."""
        if self.turn_id is None or self.asked_id is None or not isinstance(self.asked_since, float):
            return None
        return Asked(
            turn_id=str(self.turn_id),
            invocation_id=str(self.asked_id),
            tool_name=str(self.asked_tool),
            since=self.asked_since,
        )
