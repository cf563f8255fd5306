"""A world written into a file while it runs (W-72).

The file is one moment of the logs, and of each run what was kept by then or soon after it, up to
the first note that refers to what the logs have later: so whatever is referred to is there, and
each run is as a crash might have left it.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from os import fsync
from pathlib import Path
from typing import Final, Self

import attrs

from ..models.run import Run
from ..models.values import Json
from ..runtime.archive import section_of
from ..runtime.journal.contract import Entry, Journal
from ..runtime.journal.ledger import Cursor, Domain, Note
from ..runtime.journal.sqlite_file import make_private, sync_folder
from ..runtime.journal.sqlite_guard import beside
from ..runtime.scheduling import Clock, SteadyClock
from .configuration import Configuration
from .errors import UnknownWorld
from .export_lines import VERSION, WHAT, ExportError, LineWriter, items_of
from .names import KIND, chat_of, check_id, member_of, world_log

PAGE: Final = 200
"""Entries of a log that are read at once."""


@attrs.frozen(kw_only=True)
class Exported:
    """What a file holds."""

    world: str
    chats: int
    entries: int
    runs: int
    facts: int
    digest: str


async def export_world(
    journal: Journal,
    world: str,
    path: str | os.PathLike[str],
    *,
    clock: Clock | None = None,
) -> Exported:
    """Write a world into a file of JSON lines, which nobody else may read.

    It may run meanwhile. A file of that name is whole. Raises `UnknownWorld`, `ExportError` where
    the file is there already or cannot be written, and what the journal raises.
    """
    name = check_id(world, place="world")
    now = (clock or journal.clock or SteadyClock()).now()
    with _Draft(Path(path)) as draft:
        exporting = _Exporting(journal, name, draft.lines)
        exported = await exporting.write(at=now)
        draft.publish()
    return exported


class _Draft:
    """An export that is being written, under another name until it is whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._draft = beside(path, f".{secrets.token_hex(4)}.new")
            if path.exists():
                raise FileExistsError(17, "it is there already")
            make_private(self._draft)
            self._file = self._draft.open("wb")
        except (OSError, ValueError) as error:
            raise self._failed(error) from error
        self.lines: Final = LineWriter(self._write)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the other name, and what was not published."""
        with suppress(OSError):  # a full disk takes not even what was buffered
            self._file.close()
        self._draft.unlink(missing_ok=True)

    def publish(self) -> None:
        """Sync the file, read it back, and give it its name."""
        try:
            self._file.flush()
            fsync(self._file.fileno())
            self._file.close()
            for _ in items_of(self._draft):
                pass
            self._path.hardlink_to(self._draft)
            sync_folder(self._path.parent)
        except OSError as error:
            raise self._failed(error) from error

    def _write(self, line: bytes) -> None:
        try:
            self._file.write(line)
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> ExportError:
        why = getattr(error, "strerror", None) or str(error)
        return ExportError(f"export {self._path}: {why}; see to that, or give another name")


class _Exporting:
    """A world on its way into a file."""

    def __init__(self, journal: Journal, world: str, lines: LineWriter) -> None:
        self._journal = journal
        self._world = world
        self._lines = lines
        self._last: dict[str, int] = {}
        """By log: its last entry at the one moment that the file tells of."""
        self._facts = 0

    async def write(self, *, at: float) -> Exported:
        self._last = await self._heads()
        configuration = await self._configuration()
        chats = sorted(self._last.keys() - {world_log(self._world)})
        self._lines.say({"turnlock": WHAT, "version": VERSION, "world": self._world, "at": at})
        for log in (world_log(self._world), *chats):
            await self._log(log)
        runs = 0
        async for entry in self._journal.run_entries(kind=KIND):
            if is_known(entry.run, configuration):
                await self._run(entry.run)
                runs += 1
        self._lines.end()
        return Exported(
            world=self._world,
            chats=len(chats),
            entries=sum(self._last.values()),
            runs=runs,
            facts=self._facts,
            digest=self._lines.sum,
        )

    async def _heads(self) -> dict[str, int]:
        """Return where the logs end now, all in one moment."""
        heads: dict[str, int] = {}
        for log in await self._journal.logs(world_log(self._world)):
            chat = chat_of(log.name)
            if log.name == self._world or (chat is not None and chat.world == self._world):
                heads[log.name] = log.last
        return heads

    async def _configuration(self) -> Configuration:
        it = Configuration(world=self._world)
        async for entry in self._entries(world_log(self._world)):
            it = it.after([entry])
        if not it.made:
            raise UnknownWorld(self._world)
        return it

    async def _log(self, log: str) -> None:
        self._lines.say({"log": {"name": log, "last": self._last[log]}})
        async for entry in self._entries(log):
            said: dict[str, Json] = {
                "number": entry.number,
                "entry_id": entry.entry_id,
                "at": entry.at,
                "body": entry.body,
            }
            self._lines.say({"entry": said})

    async def _entries(self, log: str) -> AsyncIterator[Entry]:
        number, last = 0, self._last.get(log, 0)
        while number < last:
            page = await self._journal.entries(log, after=number, limit=min(PAGE, last - number))
            for entry in page:
                number = entry.number
                yield entry
            if not page:
                raise ExportError(f"log {log}: entry {number + 1} is missing; see to the journal")

    async def _run(self, run: Run) -> None:
        """Write a run, up to the first note that refers to what the logs of the file lack."""
        head = (await self._journal.entry(run.run_id)).sequence
        member = member_of(run.run_id)
        chat = 0 if member is None else self._last.get(member.log, 0)
        until = Cursor()
        for noted in await self._journal.notes(run.run_id):
            is_ahead = heard_in(noted.note) > chat or configured_in(noted.note) > self._last.get(
                world_log(self._world), 0
            )
            if is_ahead or noted.cursor.sequence > head:
                head = min(head, noted.cursor.sequence)
                break
            until = noted.cursor
        section = await section_of(
            self._journal, run, write=self._lines.add, until=max(until, Cursor(head))
        )
        self._facts += section.facts


def is_known(run: Run, configuration: Configuration) -> bool:
    """Whether a run is a member's of this world, of now or of before."""
    member = member_of(run.run_id)
    if member is None or member.world != configuration.world or run.kind != KIND:
        return False
    over = configuration.over.get((member.chat, member.agent), 0)
    return member.nth <= over or configuration.is_present(member)


def heard_in(note: Note) -> int:
    """Return which entry of the chat a note was made of; 0 for a note of something else."""
    if note.domain is not Domain.MESSAGE:
        return 0
    for body in (note.body, note.body.get("heard"), note.body.get("because")):
        number = body.get("number") if isinstance(body, Mapping) else None
        if type(number) is int:
            return number
    return 0


def configured_in(note: Note) -> int:
    """Return which entry of the world's log an answer was asked for under; 0 for none."""
    number = note.body.get("configuration") if note.domain is Domain.MESSAGE else None
    return number if type(number) is int else 0
