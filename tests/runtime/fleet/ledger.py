"""The ledger of a fleet: one file outside of the journal, to which all its processes append.

Each line is one `write` to a file opened with O_APPEND, made before anything else happens: what
stands there has happened, in this order, whatever the journal says. Lines are not synced: only
processes die here, and never the machine. Times are of the clock that all processes of a machine
share and that nobody sets.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias
from zlib import crc32

import attrs

from turnlock import Fact
from turnlock.models.codec import to_json


@attrs.frozen(kw_only=True)
class _Event:
    """What every line says: which process, and when."""

    by: str
    """The host that it is about; each process has a name of its own."""
    at: float


@attrs.frozen(kw_only=True)
class Ended(_Event):
    """A tool is done; `value` is what it returns, and nobody else ever does."""

    key: str
    attempt: int
    value: str
    run: str


@attrs.frozen(kw_only=True)
class Began(_Event):
    """The first line of a tool."""

    key: str
    attempt: int
    run: str
    turn: str
    invocation: str
    worker: str


@attrs.frozen(kw_only=True)
class Heard(_Event):
    """The first line of the callback that takes a continuation, with the results by invocation."""

    effect: str
    run: str
    turn: str
    results: dict[str, str | None]
    sure: float | None
    """When it was made sure for this very call that the run is owned; None: nobody asked."""


@attrs.frozen(kw_only=True)
class Raised(_Event):
    """The callback does not take it: it is to be called again."""

    effect: str


@attrs.frozen(kw_only=True)
class Opened(_Event):
    """Whoever opened a turn was told that it was not there before."""

    run: str
    turn: str


@attrs.frozen(kw_only=True)
class Owned(_Event):
    """The journal said that the run is this host's."""

    run: str
    fence: int


@attrs.frozen(kw_only=True)
class Kept(_Event):
    """The journal said that these facts are kept."""

    run: str
    fence: int
    first: int
    last: int
    checksum: int


@attrs.frozen(kw_only=True)
class Joined(_Event):
    """A host has begun."""

    ahead: float
    """Seconds that its wall clock is ahead."""


@attrs.frozen(kw_only=True)
class Left(_Event):
    """A host has ended as it was asked to."""


@attrs.frozen(kw_only=True)
class Killed(_Event):
    """A host was killed, at some time `since` then."""

    since: float


@attrs.frozen(kw_only=True)
class Stopped(_Event):
    """A host stands still, at the latest since `at`."""

    since: float


@attrs.frozen(kw_only=True)
class WentOn(_Event):
    """A host that stood still goes on."""


@attrs.frozen(kw_only=True)
class Unrenewed(_Event):
    """A host finds that its leases were over by themselves: the machine is busy."""

    since: float


Event: TypeAlias = (
    Ended
    | Began
    | Heard
    | Raised
    | Opened
    | Owned
    | Kept
    | Joined
    | Left
    | Killed
    | Stopped
    | WentOn
    | Unrenewed
)

_KINDS: Final[dict[str, type[Event]]] = {
    kind.__name__: kind
    for kind in (
        *(Ended, Began, Heard, Raised, Opened, Owned, Kept),
        *(Joined, Left, Killed, Stopped, WentOn, Unrenewed),
    )
}


class Ledger:
    """The file, as one process appends to it."""

    def __init__(self, path: Path, *, by: str) -> None:
        self.path: Final = path
        self.by: Final = by
        self._file = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)

    def note(self, kind: type[Event], *, by: str | None = None, **more: Any) -> None:
        """Append one line; the key of a tool's end stands first, see `value_of`."""
        event = kind(by=by or self.by, at=time.monotonic(), **more)
        told = attrs.asdict(event)
        key = {"key": told.pop("key")} if "key" in told else {}
        line = json.dumps({"what": kind.__name__, **key, **told})
        os.write(self._file, line.encode() + b"\n")

    def value_of(self, key: str) -> str | None:
        """Return what a tool returned under this key, None where it has not: who asks is a probe,
        or a person. Only its line is parsed: there are many.
        """
        content = self.path.read_bytes()
        begin = content.find(json.dumps({"what": "Ended", "key": key})[:-1].encode() + b",")
        if begin < 0:
            return None
        value: str = json.loads(content[begin : content.index(b"\n", begin)])["value"]
        return value


def events_of(path: Path) -> Iterator[Event]:
    """Read a ledger in its order; a line that a kill cut off has never been."""
    for line in path.read_bytes().split(b"\n")[:-1]:
        told = json.loads(line)
        yield _KINDS[told.pop("what")](**told)


def checksum(facts: Iterable[Fact]) -> int:
    """Return what tells facts from others."""
    return crc32(b"\n".join(to_json(fact) for fact in facts))
