"""Files of JSON lines, plain or gzipped: their lines, and what is wrong with them.

Every fault is a `Problem` with file, line, field, cause and fix; everything else is served. Lines
are streamed, and a line is at most `LINE_LIMIT` bytes.
"""

from __future__ import annotations

import errno
import gzip
import io
import sys
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final

import attrs

from ...models.safe_text import harmless

LINE_LIMIT: Final = 64 * 1024 * 1024
"""Bytes of one line; real ones have some hundred."""
_SHOWN: Final = 20
"""Problems that are told one by one."""
_GZIP_MAGIC: Final = b"\x1f\x8b"
_SQLITE_MAGIC: Final = b"SQLite format 3\0"
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


@attrs.frozen
class Problem:
    """What is wrong with the input: where, why, and how to put it right."""

    file: str
    line: int | None
    field: str
    cause: str
    fix: str

    def __str__(self) -> str:
        """Return ``file:line: field: cause; fix``, harmless to print."""
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        field = f"{self.field}: " if self.field else ""
        return harmless(f"{place}: {field}{self.cause}; {self.fix}")


class Problems:
    """All the problems of a command's input: counted, and the first of them kept."""

    def __init__(self) -> None:
        """Start without any."""
        self.kept: list[Problem] = []
        self.count = 0

    def add(
        self, *, file: str, cause: str, fix: str, line: int | None = None, field: str = ""
    ) -> None:
        """Note one."""
        self.count += 1
        if len(self.kept) < _SHOWN:
            self.kept.append(Problem(file=file, line=line, field=field, cause=cause, fix=fix))

    def lines(self) -> Iterator[str]:
        """Return them as lines to print."""
        yield from map(str, self.kept)
        if self.count > len(self.kept):
            yield f"… and {self.count - len(self.kept)} more problems with the input"


def unique(stem: str, taken: dict[str, int]) -> str:
    """Return the stem, or the stem with the first suffix ``~2``, ``~3`` … that makes it new.

    `taken` holds for each name the number of its last suffix, so that many repeats stay cheap.
    """
    name, number = stem, taken.get(stem, 1)
    while name in taken:
        number += 1
        name = f"{stem}~{number}"
    taken[stem] = number
    taken.setdefault(name, 1)
    return name


def numbered_lines(file: str, problems: Problems) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, with their numbers, as far as the file can be read."""
    number = 0
    try:
        with opened(file) as stream:
            while line := stream.readline(LINE_LIMIT + 1):
                number += 1
                if len(line) > LINE_LIMIT:
                    problems.add(
                        file=file,
                        line=number,
                        cause=f"is longer than {LINE_LIMIT} bytes",
                        fix="end each batch with a line feed",
                    )
                    _skip_line(stream, line)
                    continue
                if number == 1:
                    line = line.removeprefix(_BYTE_ORDER_MARK)
                if not line.isspace() and line:
                    yield number, line
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        problems.add(
            file=file,
            line=number + 1,
            cause=f"the gzip data break off or are damaged here ({error})",
            fix="copy the file again; the lines before were read",
        )
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or str(error)
        problems.add(
            file=file,
            line=number + 1 if number else None,
            cause=f"cannot be read ({cause})",
            fix="give the path of a readable file, or - for standard input",
        )


def _skip_line(stream: io.BufferedIOBase, line: bytes) -> None:
    while line and not line.endswith(b"\n"):
        line = stream.readline(LINE_LIMIT)


@contextmanager
def opened(file: str) -> Generator[io.BufferedIOBase]:
    """Open a file, gunzipped if its first bytes say so; standard input is left open.

    Raises `OSError`, and `ValueError` for a journal of the runtime, which holds no lines.
    """
    stream = _standard_input() if file == "-" else open(file, "rb")  # noqa: SIM115, PTH123
    try:
        start = stream.read(len(_GZIP_MAGIC))
        if start == _SQLITE_MAGIC[:2]:  # nothing more is waited for otherwise: a pipe may be slow
            start += stream.read(len(_SQLITE_MAGIC) - len(start))
        if start == _SQLITE_MAGIC:
            raise ValueError("it is a SQLite database; check, diagram run and show take it as --db")
        whole = io.BufferedReader(_Rejoined(start, stream))
        yield gzip.GzipFile(fileobj=whole) if start == _GZIP_MAGIC else whole
    finally:
        if file != "-":
            stream.close()


def _standard_input() -> BinaryIO:
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] - closed by the caller
        raise OSError(errno.EBADF, "standard input is closed")
    return sys.stdin.buffer


class _Rejoined(io.RawIOBase):
    """A stream with the bytes that were read from its start put back."""

    def __init__(self, start: bytes, rest: BinaryIO) -> None:
        super().__init__()
        self._start = start
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        chunk = self._start or self._rest.read(len(buffer))
        self._start = b""
        if len(chunk) > len(buffer):
            chunk, self._start = chunk[: len(buffer)], chunk[len(buffer) :]
        buffer[: len(chunk)] = chunk
        return len(chunk)
