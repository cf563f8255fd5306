"""Archives: files of JSON lines that hold what a journal kept of runs, whole and proved.

Any reader of logs reads one (`wire.log`): how each run was declared, its facts, and each note after
the fact that it stands behind. It is written under another name, synced and read back, and only
then has its own name: a file of that name is whole. Beside it lies ``FILE.sha256``, which
``sha256sum -c`` reads.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from os import fsync
from pathlib import Path
from typing import Any, Final

import attrs

from ..models.errors import InvalidValue, TurnlockError, shown
from ..models.fact import Fact
from ..models.run import Run
from ..models.values import Json
from ..wire.log import Entry, FactLine, LogReader
from ..wire.log_lines import LogLines
from .journal.contract import Journal
from .journal.ledger import Cursor, Domain, Note, Noted, body_of
from .journal.sqlite_file import make_private, sync_folder
from .journal.sqlite_guard import beside

SUMS: Final = ".sha256"
"""What ends the name of the file with the checksum."""


class ArchiveError(TurnlockError):
    """An archive cannot be written or read, or is not as it was written; nothing was removed."""


@attrs.frozen(kw_only=True)
class Section:
    """What an archive holds of one run."""

    facts: int
    digest: str
    """SHA-256 of its lines, in hex."""


class _Digested:
    """A section while its lines pass."""

    def __init__(self) -> None:
        self.facts = 0
        self._sha = hashlib.sha256()

    def take(self, line: bytes, *, fact: bool) -> None:
        self._sha.update(line)
        self.facts += fact

    def section(self) -> Section:
        return Section(facts=self.facts, digest=self._sha.hexdigest())


def _nowhere(_: bytes) -> object:
    return None


async def section_of(
    journal: Journal,
    run: Run,
    *,
    write: Callable[[bytes], object] = _nowhere,
    until: Cursor | None = None,
) -> Section:
    """Return what an archive holds of a run, as the journal has it; its lines are written, too.

    What stands in its ledger behind `until` is left out; that is the end of a commit, or a note.
    """
    lines, digested = LogLines(run), _Digested()

    def take(line: bytes, *, fact: bool = False) -> None:
        digested.take(line, fact=fact)
        write(line)

    kept = await journal.notes(run.run_id)
    notes = deque(it for it in kept if until is None or it.cursor <= until)
    take(lines.head())
    async for fact in journal.facts(run.run_id):
        if until is not None and fact.sequence > until.sequence:
            break
        while notes and notes[0].cursor.sequence < fact.sequence:
            take(lines.note(_fields_of(notes.popleft())))
        take(lines.fact(fact), fact=True)
    for noted in notes:
        take(lines.note(_fields_of(noted)))
    return digested.section()


def _fields_of(noted: Noted) -> dict[str, Json]:
    note = noted.note
    fields: dict[str, Json] = {
        "cursor": str(noted.cursor),
        "at": note.at,
        "domain": str(note.domain),
        "kind": note.kind,
        "body": note.body,
    }
    if note.id is not None:
        fields["id"] = note.id
    if note.correlation is not None:
        fields["correlation"] = note.correlation
    return fields


def noted_of(fields: Mapping[str, Any]) -> Noted:
    """Return the note that a line of an archive says. Raises `InvalidValue`."""
    try:
        domain = Domain(fields["domain"])
    except ValueError:
        raise InvalidValue(
            place="note.domain",
            cause=f"{shown(fields['domain'])} is none",
            fix=f"give one of {', '.join(Domain)}",
        ) from None
    about = fields.get("correlation")
    note = Note(
        domain=domain,
        kind=fields["kind"],
        body=body_of(fields["body"], place="note.body"),
        at=float(fields["at"]),
        id=fields.get("id"),
        correlation=None if about is None else body_of(about, place="note.correlation"),
    )
    return Noted(cursor=Cursor.read(fields["cursor"]), note=note)


@attrs.frozen(kw_only=True)
class Archive:
    """An archive as it lies there, read to its end."""

    sections: Mapping[str, Section]
    """By the ids of their runs."""
    digest: str
    """SHA-256 of the whole file, in hex."""


def read_archive(path: Path) -> Archive:
    """Read an archive strictly: every line, and each fact in its place. Raises `ArchiveError`."""
    sha, reader = hashlib.sha256(), LogReader()
    sections: dict[str, _Digested] = {}
    run_id = ""
    try:
        with path.open("rb") as file:
            for line in file:
                sha.update(line)
                entries = tuple(reader.entries([line]))
                if not line.endswith(b"\n"):
                    raise _broken(path, reader, "it breaks off")
                if reader.raw.keys() == {"run"}:
                    run_id = reader.raw["run"]["run_id"]
                    if run_id in sections:
                        raise _broken(path, reader, "that run stands there twice")
                    sections[run_id] = _Digested()
                elif run_id not in sections:
                    raise _broken(path, reader, "it stands before any run")
                _check(path, reader, entries, run_id=run_id, after=sections[run_id].facts)
                sections[run_id].take(line, fact=bool(entries))
    except OSError as error:
        raise _failed(path, error) from error
    except InvalidValue as error:
        raise _broken(path, reader, str(error)) from error
    return Archive(
        sections={name: it.section() for name, it in sections.items()}, digest=sha.hexdigest()
    )


def _check(
    path: Path, reader: LogReader, entries: tuple[Entry, ...], *, run_id: str, after: int
) -> None:
    """Raise `ArchiveError` where a line is not the next of its run."""
    for entry in entries:
        fact = entry.record() if isinstance(entry, FactLine) else None
        if not isinstance(fact, Fact) or (fact.run_id, fact.sequence) != (run_id, after + 1):
            raise _broken(path, reader, f"it is not fact {after + 1} of run {run_id!r}")
    note = reader.raw.get("note")
    if note is not None and not entries and note["run_id"] != run_id:
        raise _broken(path, reader, f"it is no note of run {run_id!r}")


class Draft:
    """An archive that is being written, under another name until `publish` gives it its own."""

    def __init__(self, path: Path) -> None:
        """Make the file, readable by nobody else. Raises `ArchiveError`."""
        self._path = path
        self._draft = beside(path, f".{secrets.token_hex(4)}.new")
        self._sections: dict[str, Section] = {}
        try:
            make_private(self._draft)
            self._file = self._draft.open("wb")
        except OSError as error:
            raise _failed(path, error) from error

    async def add(self, journal: Journal, run: Run) -> Section:
        """Write a run. What the journal raises leaves nothing of it behind."""
        begins = self._file.tell()
        try:
            section = await section_of(journal, run, write=self._file.write)
        except OSError as error:
            raise _failed(self._path, error) from error
        except BaseException:
            self._file.truncate(begins)
            self._file.seek(begins)
            raise
        self._sections[run.run_id] = section
        return section

    def publish(self) -> Archive:
        """Sync the file, read it back, and give it its name; raises `ArchiveError`."""
        try:
            self._file.flush()
            fsync(self._file.fileno())
            self._file.close()
            found = read_archive(self._draft)
            if found.sections != self._sections:
                raise ArchiveError(
                    f"archive {self._path}: what is read back is not what was written; see to the"
                    " disk; nothing was removed"
                )
            keep_sum(self._path, found)
            self._path.hardlink_to(self._draft)
            sync_folder(self._path.parent)
        except OSError as error:
            raise _failed(self._path, error) from error
        return found

    def close(self) -> None:
        """Remove the other name, and what was not published."""
        with suppress(OSError):  # a full disk takes not even what was buffered
            self._file.close()
        self._draft.unlink(missing_ok=True)


def keep_sum(path: Path, archive: Archive) -> None:
    """Write the checksum beside an archive, as `sha256sum` does."""
    sums = beside(path, SUMS)
    draft = beside(sums, f".{secrets.token_hex(4)}.new")
    try:
        make_private(draft)
        with draft.open("w", encoding="utf-8") as file:
            file.write(f"{archive.digest}  {path.name}\n")
            file.flush()
            fsync(file.fileno())
        draft.replace(sums)
    finally:
        draft.unlink(missing_ok=True)


def _broken(path: Path, reader: LogReader, cause: str) -> ArchiveError:
    return ArchiveError(
        f"archive {path}, line {reader.line}: {cause}; it is no archive, or it is damaged: give"
        " another name"
    )


def _failed(path: Path, error: OSError) -> ArchiveError:
    cause = error.strerror or str(error)
    return ArchiveError(
        f"archive {path}: {cause}; nothing was removed: see to that, or give another name"
    )
