"""An entry of a shared log, and where the log ends, as rows of a journal (W-10 … W-12)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from ...models.errors import InvalidValue, shown
from ...models.strict_json import parse
from ...models.values import freeze
from ..errors import CorruptLog
from . import pages
from .entries import Finding
from .logs import Entered, Entry, GivenEntry, LogEntry, damaged_entry, finding, first_won
from .rows import checksum

_UNFIT: Final = "the checksum does not fit"


def entry_sum(body: object, log: str, number: int, entry_id: str, at: float) -> int:
    """Return the checksum of an entry."""
    return checksum(body, log, number, entry_id, at)


def log_sum(name: object, last: int) -> int:
    """Return the checksum of where a log ends."""
    return checksum(name.encode() if isinstance(name, str) else None, last)


@attrs.frozen
class EntryRow:
    """A row of `entries`, its columns in this order. Damage may turn any into another."""

    number: int
    entry_id: str
    at: float
    body: bytes
    kept: int
    """The checksum that it bears."""

    def entry(self, log: str, where: str) -> Entry:
        """Return the entry. Raises `CorruptLog` where it is not as it was written."""
        if entry_sum(self.body, log, self.number, self.entry_id, self.at) != self.kept:
            raise damaged_entry(log, self.number, f"it is damaged ({_UNFIT})", where=where)
        try:
            body = freeze(parse(self.body), place="body")
        except InvalidValue as error:
            cause = f"it cannot be read ({error})"
            raise damaged_entry(log, self.number, cause, where=where) from error
        return Entry(self.number, self.entry_id, self.at, body)

    def again(self, given: GivenEntry, where: str) -> Entered:
        """Answer who gives its id once more: it is the entry, if it says the same."""
        self.entry(given.log, where)
        return first_won(given, self.body, self.number)


@attrs.frozen
class LogRow:
    """A row of `logs`: its key, the number of the last entry, and the checksum that it bears."""

    key: int
    name: str
    last: int
    kept: int

    @property
    def problem(self) -> str | None:
        """What is wrong with the row itself."""
        fits = log_sum(self.name, self.last) == self.kept
        return None if fits else f"where it ends is damaged ({_UNFIT})"

    def check_end(self, ends: int, where: str) -> None:
        """Raise `CorruptLog` for a log that does not end where it says: a number would come again.

        `ends` is the number of the last entry that is there.
        """
        cause = self.problem
        if cause is None and ends != self.last:
            cause = f"it is missing: the log ends with {ends}, and should with {self.last}"
        if cause is not None:
            raise damaged_entry(self.name, ends + 1, cause, where=where)

    def listed(self, ends: int, where: str) -> LogEntry:
        """Return it as it is listed; `ends` counts where its own word is damaged."""
        problem = self.problem
        if problem is None:
            return LogEntry(self.name, self.last)
        return LogEntry(self.name, ends, f"{problem}, in {where}")

    def page(self, rows: Iterable[EntryRow], *, after: int, where: str) -> tuple[Entry, ...]:
        """Return the entries that follow one another, as many as fit a page.

        Raises `CorruptLog` where the very next one is missing or damaged. Where the log ends was
        asked before its rows were: rows can only be added since.
        """
        found: list[Entry] = []
        size = 0
        for expected, it in enumerate(rows, after + 1):
            try:
                if it.number != expected:
                    raise self._missing(expected, where)
                found.append(it.entry(self.name, where))
            except CorruptLog:
                if found:  # those before it are as they should be
                    return tuple(found)
                raise
            size += len(it.body)
            if size >= pages.PAGE_BYTES:
                return tuple(found)
        if not found and self.problem is not None:
            raise damaged_entry(self.name, after + 1, self.problem, where=where)
        if not found and after < self.last:
            raise self._missing(after + 1, where)
        return tuple(found)

    def _missing(self, number: int, where: str) -> CorruptLog:
        return damaged_entry(self.name, number, "it is missing", where=where)


class LogChecked:
    """A log that is read through, each entry by itself, and whether any is missing between them."""

    def __init__(self, row: LogRow, where: str) -> None:
        """Begin before its first entry."""
        self._row: Final = row
        self._where: Final = where
        self._after = 0

    def of_row(self) -> Iterator[Finding]:
        """Look at the row of the log itself."""
        if self._row.problem is not None:
            yield finding(str(self._row.name), None, self._row.problem)

    def next(self, it: EntryRow) -> Iterator[Finding]:
        """Look at the next entry that is there."""
        number = self._after + 1
        if it.number != number:
            cause = f"it is missing: the next one there is {shown(it.number)}, not {number}"
            yield finding(self._row.name, number, cause)
        try:
            it.entry(self._row.name, self._where)
        except CorruptLog as error:
            yield finding(self._row.name, it.number, error.cause)
        self._after = it.number if type(it.number) is int else number

    def of_end(self) -> Iterator[Finding]:
        """See whether it ends where it says."""
        if self._row.problem is None and self._after != self._row.last:
            cause = f"the log ends with {self._after}, and should with {self._row.last}"
            yield finding(self._row.name, self._after + 1, cause)
