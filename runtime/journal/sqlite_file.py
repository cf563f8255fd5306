"""The file of a SQLite journal: how it is made and opened, its tables, its rows, what can be wrong.

What is not whole is never made anew.

One row of `appends` holds the facts of one append as lines of JSON: a row for each fact took 1.7
times as long to write in batches of 100 (measured: 6.8 and 4.0 µs a fact, with the disk).
`sequence` in `runs` says where a run ends, so that rows lost from the end are missed too. `epoch`
is the fencing token of the run's owner: the column keeps its first name, so that no file has to be
migrated for a word. `checksum` is CRC-32 (see `checksum`); the flags of a run, which change with
every lease, have none.

Facts are read without the checks of the codec: what bears its checksum was written by `to_json`.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import zlib
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Final, cast, get_args, get_origin, get_type_hints

import attrs
import msgspec

from ...models.calls import Call
from ...models.codec import VERSION, Nested, fact_from_json, nested_records, to_json
from ...models.errors import CorruptJournal
from ...models.fact import Fact
from ...models.facts import FACTS
from ...models.record import Record, fields_of, unchecked_maker_from
from ...models.values import FrozenDict, FrozenList, arguments_digest
from ..errors import JournalError


def open_writer(path: Path, *, create: bool, busy_timeout: float) -> sqlite3.Connection:
    """Open the file to write, make it where it is absent, bring it up to date.

    Raises `JournalError` for whatever is no journal of ours.
    """
    _check_place(path, create=create)
    try:
        if not path.exists():
            _make(path)
        connection = _connect(path, busy_timeout=busy_timeout)
        try:
            _check_file(path, connection)
            migrate(connection)
            _set_up(path, connection)
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise failed(str(path), error) from error
    except OSError as error:
        raise JournalError(f"journal {path}: it cannot be opened ({error}); see to that") from error
    return connection


def open_reader(path: Path, *, busy_timeout: float) -> sqlite3.Connection:
    """Open a file that a writer has opened before, to read."""
    try:
        connection = _connect(path, busy_timeout=busy_timeout)
        connection.execute("PRAGMA query_only = ON")
    except sqlite3.Error as error:
        raise failed(str(path), error) from error
    return connection


def _check_place(path: Path, *, create: bool) -> None:
    def wrong(cause: str, fix: str) -> JournalError:
        return JournalError(f"journal {path}: {cause}; {fix}")

    if path.is_dir():
        raise wrong("it is a folder", "give the path of a file in it")
    if not path.parent.is_dir():
        raise wrong("its folder does not exist", "make the folder, or correct the path")
    if not path.exists():
        if not create:
            raise wrong("there is no such file", "correct the path")
        if _beside(path, "-wal").exists():
            raise wrong(
                "it is gone, but its -wal file is there",
                "put both back where they were: what was written last stands in the -wal file",
            )
    elif path.stat().st_size == 0:
        raise wrong(
            "the file is empty: it was cut off, or is no journal",
            "restore it from a copy, or remove it to begin a new one",
        )


def _make(path: Path) -> None:
    """Make a new journal under another name first: under its own it is whole from the beginning.

    So a crash meanwhile leaves no half-made file that would have to be told from a damaged one.
    """
    draft = _beside(path, f".{secrets.token_hex(4)}.new")
    try:
        connection = sqlite3.connect(draft, isolation_level=None)
        try:
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute("PRAGMA journal_mode = WAL")
            migrate(connection)
        finally:
            connection.close()
        try:
            path.hardlink_to(draft)
        except FileExistsError:  # another process was quicker: its file is as good
            return
        _sync_folder(path.parent)
    finally:
        for end in ("", "-wal", "-shm"):
            _beside(draft, end).unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Make the file's name as durable as its content; only POSIX can, and needs to."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _connect(path: Path, *, busy_timeout: float) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",  # never makes a file
        uri=True,
        timeout=busy_timeout,
        isolation_level=None,
    )


def _check_file(path: Path, connection: sqlite3.Connection) -> None:
    """Look whose file it is before anything is changed in it."""
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    found = connection.execute("PRAGMA application_id").fetchone()[0]
    if found != APPLICATION_ID or not tables:
        raise JournalError(
            f"journal {path}: it is a database of another program (application_id {found:#x},"
            f" {tables} tables); give the path of a journal, or of a file that does not exist"
        )
    version = version_of(connection)
    if version > len(MIGRATIONS):
        raise JournalError(
            f"journal {path}: a newer turnlock wrote it (version {version}, this one knows"
            f" {len(MIGRATIONS)}); use that one"
        )


def _set_up(path: Path, connection: sqlite3.Connection) -> None:
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise JournalError(
            f"journal {path}: this file system cannot hold it (journal mode {mode}, not WAL); put"
            " it on a local disk"
        )
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")  # macOS: elsewhere it means nothing
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("PRAGMA user_version = 0")  # whoever may not write is told now
    connection.execute("ROLLBACK")


def _beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


APPLICATION_ID: Final = 0x74726E6C
"""Stands in the header of each journal ("trnl"); ``file`` and we tell by it whose file it is."""

_TABLES: Final = (
    """CREATE TABLE runs (
        number INTEGER PRIMARY KEY,
        run_id TEXT NOT NULL UNIQUE,
        run BLOB NOT NULL,
        checksum INTEGER NOT NULL,
        sequence INTEGER NOT NULL DEFAULT 0,
        busy INTEGER NOT NULL DEFAULT 0,
        epoch INTEGER NOT NULL DEFAULT 0,
        owner TEXT,
        owned_until REAL
    )""",
    "CREATE INDEX runs_of_owner ON runs (owner) WHERE owner IS NOT NULL",
    """CREATE TABLE appends (
        run INTEGER NOT NULL REFERENCES runs (number),
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        facts BLOB NOT NULL,
        checksum INTEGER NOT NULL,
        UNIQUE (run, last)
    )""",
    """CREATE TABLE snapshots (
        run INTEGER PRIMARY KEY REFERENCES runs (number),
        sequence INTEGER NOT NULL,
        snapshot BLOB NOT NULL,
        checksum INTEGER NOT NULL
    )""",
    """CREATE TABLE posts (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        run INTEGER NOT NULL REFERENCES runs (number),
        delivery BLOB NOT NULL,
        receipt BLOB
    )""",
    "CREATE INDEX posts_waiting ON posts (run) WHERE receipt IS NULL",
)

_NOTES: Final = (
    """CREATE TABLE notes (
        number INTEGER PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES runs (number),
        name TEXT NOT NULL,
        value BLOB NOT NULL,
        checksum INTEGER NOT NULL,
        UNIQUE (run, name)
    )""",
)

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (_TABLES, _NOTES)
"""The statements that lead from version n (PRAGMA user_version) to n + 1; 0 is an empty file."""


def version_of(connection: sqlite3.Connection) -> int:
    """Return the version of the file's tables."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def migrate(connection: sqlite3.Connection) -> None:
    """Bring an older file up to date: wholly, or it stays as it was."""
    if version_of(connection) >= len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have been quicker, so the version is asked for again.
        for statements in MIGRATIONS[version_of(connection) :]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


_PRIMARY: Final = 0xFF
"""The bits of an error code that name its kind; those above say more exactly where."""

_TOLD: Final = {
    sqlite3.SQLITE_FULL: ("the disk is full", "free space, then try again"),
    sqlite3.SQLITE_BUSY: (
        "another process holds its lock",
        "let that process end what it does, then try again",
    ),
    sqlite3.SQLITE_READONLY: (
        "it cannot be written",
        "give this user the right to write the file and its folder",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "it cannot be opened",
        "see that the folder exists and this user may write there",
    ),
    sqlite3.SQLITE_CORRUPT: (
        "the file is damaged",
        "keep it and its -wal file as they are, and restore them from a copy",
    ),
    sqlite3.SQLITE_NOTADB: (
        "the file is no SQLite database, or its beginning is damaged",
        "give the path of a journal, or restore it from a copy",
    ),
    sqlite3.SQLITE_IOERR: (
        "the disk failed",
        "see to the disk, and copy the file with its -wal before anything else",
    ),
    sqlite3.SQLITE_TOOBIG: ("a value is too large for SQLite", "append less at once"),
    sqlite3.SQLITE_NOMEM: ("memory is short", "ask for less at once"),
}


def failed(path: str, error: sqlite3.Error, *, settled: bool = True) -> JournalError:
    """Return the error to raise for one of SQLite's; `settled` says that nothing was kept."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & _PRIMARY
    cause, fix = _TOLD.get(code, ("SQLite refused", "see what it says"))
    doubt = "" if settled else "; whether the last write was kept is not known: read it again"
    return JournalError(f"journal {path}: {cause} ({error}); {fix}{doubt}")


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


Raw = dict[str, Any]
Convert = Callable[[Any], Any]

UNREADABLE: Final = (LookupError, TypeError, ValueError, RecursionError, msgspec.MsgspecError)
"""What is met in a line that `to_json` did not write."""

_CONTAINERS: Final = frozenset({dict, list})
_update: Final = cast("Callable[[FrozenDict, Any], None]", vars(dict)["update"])
_extend: Final = cast("Callable[[FrozenList, Any], None]", vars(list)["extend"])
_decode: Final = msgspec.json.Decoder().decode


def trusted_fact(line: bytes) -> Fact:
    """Build a fact from a line that `to_json` wrote; an older version's goes through the codec.

    Raises one of `UNREADABLE` for a line that is none.
    """
    raw = _decode(line)
    if raw["version"] != VERSION:
        return fact_from_json(line)
    fact: Fact = _BUILDERS[raw["type"]](raw)
    return fact


def _builder(cls: type[Record]) -> Convert:
    """Return the function that builds a record of this class from its JSON.

    It reads each field off the JSON itself: handing them over by keyword took three times as long.
    """
    hints = get_type_hints(cls)
    nested = nested_records(cls)
    converters: dict[str, Convert] = {}
    sources: dict[str, str] = {}
    for field in fields_of(cls):
        name = field.name
        value = f"raw[{name!r}]"
        convert = _digest if not field.init else _converter(nested.get(name), hints[name])
        if convert is not None:
            converters[f"to_{name}"] = convert
            value = f"to_{name}({value if field.init else 'raw'})"
        is_optional = field.init and field.default is not attrs.NOTHING
        if is_optional:
            value = f"{value} if {name!r} in raw else {field.default!r}"
        sources[name] = value
    make = unchecked_maker_from(cls, context=(*converters, "raw"), shorthand={}, fields=sources)
    return partial(make, *converters.values())


def _converter(nested: Nested | None, hint: object) -> Convert | None:
    """Return what makes of a JSON value what a field holds; None where it holds it as it is."""
    if nested is not None:
        return _calls if nested.many else _build_call
    options = (hint, *get_args(hint))
    if any(get_origin(kind) is Mapping for kind in options):
        return _frozen
    return next(
        (kind for kind in options if isinstance(kind, type) and issubclass(kind, StrEnum)), None
    )


def _frozen(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Freeze a value that `freeze` has checked before it was stored, without checking again."""
    kind = type(cast("object", value))
    if kind is dict:
        for key, item in value.items():
            if type(item) in _CONTAINERS:
                value[key] = _frozen(item)
        frozen_dict: FrozenDict = FrozenDict.__new__(FrozenDict)
        _update(frozen_dict, value)
        return frozen_dict
    if kind is list:
        frozen_list: FrozenList = FrozenList.__new__(FrozenList)
        _extend(frozen_list, map(_frozen, value))
        return frozen_list
    return value


def _digest(raw: Raw) -> str | None:
    """Return the one thing that is not stored, because it follows from a call's arguments."""
    return arguments_digest(raw["arguments"]) if raw["requires_approval"] else None


def _calls(raws: list[Raw]) -> tuple[Any, ...]:
    return tuple(map(_build_call, raws))


_build_call: Final = _builder(Call)
_BUILDERS: Final = {str(cls.type): _builder(cls) for cls in FACTS}
