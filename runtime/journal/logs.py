"""What a journal promises of shared logs: entries in one order, which any process may append to.

A part of the contract of `Journal` (W-10 … W-12). Nobody owns a log, and none is declared: it is
there from its first entry on. Entries never change and are never removed: no `forget`, no `prune`
and no `retire` touches them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, Final, NamedTuple

import attrs

from ...models.errors import InvalidValue, shown
from ...models.record import number
from ...models.values import Json, canonical, check_text, freeze
from ..errors import CorruptLog, Overloaded
from ..log import logger
from .entries import PAGE, Finding
from .rows import KEEP

ENTRY_BYTES: Final = 2 * 1024 * 1024
"""Bytes of JSON that the body of an entry may have: a message of 256 kB, however it is escaped."""
LOG_ENTRIES: Final = 1_000_000
"""Entries of one log."""
LOG_NAME_BYTES: Final = 512
"""Bytes of UTF-8 that a log's name may have."""
ENTRY_ID_BYTES: Final = 4_096
"""Bytes of UTF-8 that an entry's id may have: it holds ids of runs, turns and calls."""

MOST: Final = 2**63 - 1
"""No log comes so far, and every store can say it."""

_log = logger(__name__)


class Entered(NamedTuple):
    """What became of an append: the entry's number, and whether it was not there before."""

    number: int
    new: bool


class LogEntry(NamedTuple):
    """A log as it is listed: its name, and the number of its last entry."""

    name: str
    last: int
    problem: str | None = None
    """Why it is not known where it ends; then `last` is what is found. Nothing can be appended."""


@attrs.frozen
class Entry:
    """An entry as it is kept: its number in its log, from 1, and `at` Unix seconds."""

    number: int
    entry_id: str
    at: float
    body: Json
    """Frozen."""


Heed = Callable[[str], None]
"""Is told the name of a log; it neither waits nor raises."""


class Heeds:
    """Who is told of new entries."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self._heeds: list[Heed] = []

    def add(self, heed: Heed) -> Callable[[], None]:
        """Tell this one, too, until what is returned is called; a second call is harmless."""
        told = _Told(heed)
        self._heeds.append(told)

        def end() -> None:
            if told in self._heeds:
                self._heeds.remove(told)

        return end

    def tell(self, log: str, entered: Entered) -> None:
        """Tell all, if the entry is new. Who raises keeps nobody else from being told."""
        if not entered.new:
            return
        for heed in tuple(self._heeds):
            try:
                heed(log)
            except Exception:  # noqa: BLE001 - the entry is kept, whatever it raises
                _log.exception("log %s: who was to be told of an entry has raised", shown(log))


class _Told:
    """One registration: the same function may be there twice, and each ends for itself."""

    def __init__(self, heed: Heed) -> None:
        self._heed: Final = heed

    def __call__(self, log: str) -> None:
        self._heed(log)


class Logs(ABC):
    """A place where logs are kept beside the runs (W-10 … W-12)."""

    @abstractmethod
    async def append_entry(self, log: str, entry_id: str, body: Json, *, at: float) -> Entered:
        """Keep an entry at the end of a log, once; any process may.

        Its number is one more than the last, from 1: gapless, and the same for all readers. Where
        the id is there with an equal body, that entry is the answer, and it is not `new`, whatever
        `at` says: the first wins. Raises `InvalidValue` where it is there with another body, and
        for what is no name, no id, no JSON or no time; `Overloaded` for a body of more than
        `ENTRY_BYTES`, and where the log has `LOG_ENTRIES`; `CorruptLog` where the end of the log
        is damaged. Then nothing is written.
        """

    @abstractmethod
    async def entries(self, log: str, *, after: int = 0, limit: int = PAGE) -> tuple[Entry, ...]:
        """Return the next entries of a log, at most `limit`; empty only where there are none.

        It may be fewer: where they are large, so that a page fits into memory, and before one that
        is damaged. A log that nobody has appended to has none. Raises `CorruptLog` where the very
        next entry is missing, or is not as it was written; those behind it can be asked for.
        """

    @abstractmethod
    async def find_entry(self, log: str, entry_id: str) -> Entry | None:
        """Return the entry of this id, None where there is none. Raises `CorruptLog`."""

    @abstractmethod
    async def logs(self, prefix: str = "") -> tuple[LogEntry, ...]:
        """Return the logs whose names begin with this very text, by name, with their last numbers.

        Meant to be asked often: nothing new costs little.
        """

    async def check_logs(self) -> list[Finding]:
        """Read all entries, and return what is missing, or not as it was written."""
        found: list[Finding] = []
        for log in await self.logs():
            if log.problem is not None:
                found.append(finding(log.name, None, log.problem))
            after = 0
            while after < log.last:
                try:
                    page = await self.entries(log.name, after=after)
                except CorruptLog as error:
                    found.append(finding(log.name, error.number, error.cause))
                    after = error.number
                else:
                    after = page[-1].number if page else log.last
        return found

    def when_entered(self, heed: Heed) -> Callable[[], None]:
        """Tell `heed` the name of a log after each entry that is new, and appended through this.

        It is called on the loop, and must neither wait nor raise. What others append is seen by
        asking `logs`. Returns what ends it.
        """
        return self._heeds.add(heed)

    @cached_property
    def _heeds(self) -> Heeds:
        return Heeds()


@attrs.frozen
class GivenEntry:
    """An entry as it is to be kept."""

    log: str
    entry_id: str
    at: float
    body: Json
    content: bytes
    """The body as canonical JSON: two are equal if these are."""


def given_entry(log: str, entry_id: str, body: Any, *, at: float) -> GivenEntry:  # noqa: ANN401 - any JSON
    """Return an entry as it is to be kept; raises as `append_entry` does."""
    check_log(log)
    check_id(entry_id)
    moment = number(at, place="at") + 0.0  # no store tells -0.0 from it
    frozen = freeze(body, place="body")
    content = canonical(frozen).encode()
    if len(content) > ENTRY_BYTES:
        raise Overloaded(
            f"log {shown(log)}: the entry {shown(entry_id)} has {len(content):,} bytes, and may"
            f" have {ENTRY_BYTES:,} (ENTRY_BYTES): keep it elsewhere, and a reference here"
        )
    return GivenEntry(log, entry_id, moment, frozen, content)


def check_log(log: str) -> None:
    """Raise `InvalidValue` for what is no name of a log."""
    _check_name(log, "log", LOG_NAME_BYTES)


def check_prefix(prefix: str) -> None:
    """Raise `InvalidValue` for what no name of a log can begin with."""
    if prefix != "":
        _check_name(prefix, "prefix", LOG_NAME_BYTES)


def check_page(log: str, *, after: int, limit: int) -> None:
    """Raise `InvalidValue` for what is no log, or no page of one."""
    check_log(log)
    for place, value, least in (("after", after, 0), ("limit", limit, 1)):
        if type(value) is not int or value < least:
            raise InvalidValue(
                place=place,
                cause=f"is {shown(value)}, which is no page",
                fix="give 0 or more for `after`, 1 or more for `limit`",
            )


def _check_name(text: Any, place: str, most: int) -> None:  # noqa: ANN401 - it is looked at here
    if type(text) is not str:
        raise InvalidValue(place=place, cause=f"{shown(text)} is no text", fix="give a text")
    if not check_text(text, place=place):
        raise InvalidValue(place=place, cause="is empty", fix="give a text")
    if "\0" in text:
        raise InvalidValue(place=place, cause=f"{shown(text)} holds a NUL", fix="take it out")
    size = len(text.encode())
    if size > most:
        raise InvalidValue(
            place=place, cause=f"has {size:,} bytes", fix=f"give at most {most:,} bytes of UTF-8"
        )


def first_won(given: GivenEntry, kept: bytes, number: int) -> Entered:
    """Return the entry that was there; raises `InvalidValue` where it says something else."""
    if kept != given.content:
        raise InvalidValue(
            place="body",
            cause=f"is another than that of entry {number} of log {shown(given.log)}, which has"
            f" the id {shown(given.entry_id)}",
            fix="give the same again, or another id: the first stays",
        )
    return Entered(number, new=False)


def finding(log: str, number: int | None, cause: str) -> Finding:
    """Return what is wrong with an entry, or with the log itself."""
    named = f"log {shown(log)}"
    return Finding(
        run_id=None, what=named if number is None else f"entry {number} of {named}", cause=cause
    )


def check_id(entry_id: str) -> None:
    """Raise `InvalidValue` for what is no id of an entry."""
    _check_name(entry_id, "entry_id", ENTRY_ID_BYTES)


def check_room(log: str, last: int) -> None:
    """Raise `Overloaded` for a log that has all the entries that it may have."""
    if last >= LOG_ENTRIES:
        raise Overloaded(
            f"log {shown(log)}: it has {last:,} entries (LOG_ENTRIES); begin another one"
        )


def damaged_entry(log: str, number: int, cause: str, *, where: str) -> CorruptLog:
    """Return the error for an entry that is not as it was written; `where` says where."""
    return CorruptLog(
        log=log,
        number=number,
        cause=f"{cause}, in {where}",
        fix=KEEP,
    )


def behind(prefix: str) -> str | None:
    """Return the first text behind all that begin with this one; None where there is none.

    The order is that of code points, which is that of their UTF-8, too.
    """
    for place in reversed(range(len(prefix))):
        following = ord(prefix[place]) + 1
        if following <= _LAST_POINT:
            following = _BEHIND_SURROGATES if following == _FIRST_SURROGATE else following
            return prefix[:place] + chr(following)
    return None


_LAST_POINT: Final = 0x10FFFF
_FIRST_SURROGATE: Final = 0xD800
_BEHIND_SURROGATES: Final = 0xE000
