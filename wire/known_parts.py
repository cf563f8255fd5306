"""Reading requests quickly: what was read before is not read again.

A suite sends the same few deliveries thousands of times. A line that is exactly composed of parts
with one of two known layouts between them needs no other reading than that of its parts, and a part
with known text needs none at all: JSON has no context. Whatever else a line may be, the strict
reader of whole lines judges it, so every error has its text and its place from there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

import attrs
import msgspec

from ..models.errors import InvalidValue
from ..models.values import DEPTH
from .requests import Request, read_id, read_request, read_run, read_step
from .scripts import Step

T = TypeVar("T")

KNOWN_PARTS: Final = 20_000
"""Parts that are kept, with what they say. When one more comes, all are dropped (K-6)."""
LONGEST_KNOWN_PART: Final = 1_024
"""Bytes of a part that is kept; a longer one is read each time (K-6)."""


@attrs.frozen
class _Layout:
    """The text between the parts of a request."""

    before_id: bytes
    before_run: bytes
    before_scripts: bytes
    comma: bytes


_COMPACT: Final = _Layout(b'{"id":', b',"run":', b',"scripts":[', b",")
_SPACED: Final = _Layout(b'{"id": ', b', "run": ', b', "scripts": [', b", ")


class _Parts(msgspec.Struct):
    id: msgspec.Raw
    run: msgspec.Raw
    scripts: list[list[msgspec.Raw]]

    def composed(self, layout: _Layout) -> bytes:
        """Return the line that these parts make."""
        comma = layout.comma
        scripts = comma.join([b"[" + comma.join(script) + b"]" for script in self.scripts])
        before = (layout.before_id, self.id, layout.before_run, self.run, layout.before_scripts)
        return b"".join((*before, scripts, b"]}"))


_split: Final = msgspec.json.Decoder(_Parts).decode


class Known(dict[bytes, T], Generic[T]):
    """What parts say, by their text; an unknown part is read when it is asked for."""

    def __init__(self, read: Callable[[bytes], T]) -> None:
        """Know nothing yet; `read` may raise, and then nothing is kept."""
        super().__init__()
        self._read = read

    def __missing__(self, text: bytes) -> T:
        """Read a part, and keep it."""
        told = self._read(text)
        if len(text) <= LONGEST_KNOWN_PART:
            self._keep(text, told)
        return told

    def _keep(self, text: bytes, told: T) -> None:
        if len(self) >= KNOWN_PARTS:
            self.clear()
        self[text] = told


class Repeated(Known[T]):
    """The same, and kept is only what comes a second time.

    For parts of which most never come again: to keep all that they say would cost more than to
    read some of it twice, most of all in what the collector of cycles goes through.
    """

    def __init__(self, read: Callable[[bytes], T]) -> None:
        """Know nothing yet."""
        super().__init__(read)
        self._once: set[int] = set()
        """Hashes of texts that were read: that two of them share one would do no harm."""

    def _keep(self, text: bytes, told: T) -> None:
        if hash(text) in self._once:
            super()._keep(text, told)
            return
        if len(self._once) >= KNOWN_PARTS:
            self._once.clear()
        self._once.add(hash(text))


class RequestReader:
    """Reads the lines of one stream; each line is read as `read_request` reads it."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._runs = Known(read_run)
        self._steps = Known(_read_step)

    def read(self, line: bytes) -> Request:
        """Read one line, or raise `WireError`."""
        try:
            return self._compose(line.rstrip(b"\r\n"))
        except (InvalidValue, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return read_request(line)

    def _compose(self, line: bytes) -> Request:
        """Read a line by its parts; raise if it is anything but those."""
        parts = _split(line)
        layout = _SPACED if line.startswith(_SPACED.before_id) else _COMPACT
        if parts.composed(layout) != line:  # such as a key that stands twice
            raise msgspec.DecodeError
        steps = self._steps
        scripts = [[steps[bytes(part)] for part in script] for script in parts.scripts]
        return Request(read_id(bytes(parts.id)), self._runs[bytes(parts.run)], scripts)


def _read_step(text: bytes) -> Step:
    """Read a step; what is ignored in one for a harness may not be deeper than a line may be."""
    step = read_step(text)
    if isinstance(step, str) and len(text) > DEPTH:
        raise msgspec.DecodeError
    return step
