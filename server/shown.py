"""What a subscriber is shown: entries, and what is said beside them (F-7, F-41, F-50).

Each is made once, as bytes, for all who are shown it, whatever they are connected by.
"""

from __future__ import annotations

from typing import ClassVar, Final, TypeAlias

import attrs
import msgspec

from ..runtime.journal.ledger import Cursor

_json: Final = msgspec.json.encode


ID: Final = b"id: "
DATA: Final = b"\ndata: "
END_OF_EVENT: Final = b"\n\n"
_NAMED: Final = (b'{"run_id":', b'{"world":')
"""How data begins that says itself of what it is."""


@attrs.define(eq=False)
class Sent:
    """An entry: its envelope, one line of JSON (F-7), made as the event that most are sent."""

    run_id: str
    cursor: Cursor
    place: bytes
    """The text of its cursor."""
    sse: bytes
    """Its event, the id first (F-41)."""
    _text: str | None = attrs.field(default=None, init=False)

    @property
    def envelope(self) -> bytes:
        """Its envelope alone."""
        return self.sse[len(ID) + len(self.place) + len(DATA) : -len(END_OF_EVENT)]

    @property
    def nameless(self) -> bytes:
        """Its event without an id: where ids are cursors of another run."""
        return self.sse[len(ID) + len(self.place) + 1 :]

    @property
    def text(self) -> str:
        """Its message (F-50)."""
        if self._text is None:
            whole = b'{"type":"event","run_id":%b,"data":%b}' % (_json(self.run_id), self.envelope)
            self._text = whole.decode()
        return self._text

    def __len__(self) -> int:
        """Count its bytes."""
        return len(self.sse)


@attrs.define(eq=False)
class Told:
    """What is no entry: it has a name, and no id; `data` is a JSON object."""

    name: ClassVar[str]
    run_id: str
    data: bytes
    _sse: bytes | None = attrs.field(default=None, init=False)
    _text: str | None = attrs.field(default=None, init=False)

    @property
    def sse(self) -> bytes:
        """Its event (F-41)."""
        if self._sse is None:
            self._sse = b"event: %b\ndata: %b\n\n" % (self.name.encode(), self.data)
        return self._sse

    @property
    def text(self) -> str:
        """Its message (F-50)."""
        if self._text is None:
            self._text = self._message().decode()
        return self._text

    def _message(self) -> bytes:
        given = self.data[1:] if self.data.startswith(_NAMED) else self._named()
        return b'{"type":"%b",%b' % (self.name.encode(), given)

    def _named(self) -> bytes:
        """Return its fields behind the run that they are of."""
        comma = b"," if self.data != b"{}" else b""
        return b'"run_id":%b%b%b' % (_json(self.run_id), comma, self.data[1:])

    def __len__(self) -> int:
        """Count its bytes."""
        return len(self.data)


class Hello(Told):
    """The stream begins: where the run ends now (F-41)."""

    name = "hello"


class Live(Told):
    """All that the journal held is told (S-70)."""

    name = "live"


class GapShown(Told):
    """Notes that were pruned stood here (S-71)."""

    name = "gap"


class Replay(Told):
    """The stream has fallen behind, and tells what the journal has since (F-43)."""

    name = "replay"


class Delta(Told):
    """Said just now, not kept, and superseded by the message that ends it (F-8, S-75)."""

    name = "delta"


class Diagnosed(Told):
    """A refusal or a log: no fact (F-44)."""

    name = "diagnostic"

    def _message(self) -> bytes:
        name = self.name.encode()
        return b'{"type":"%b","run_id":%b,"data":%b}' % (name, _json(self.run_id), self.data)


class Failed(Told):
    """An entry that could not be told (S-76), or why the stream ends."""

    name = "error"


class End(Told):
    """All up to the head is told, and no more was asked for (F-45)."""

    name = "end"


class Bye(Told):
    """The server stops (F-45)."""

    name = "bye"


@attrs.define(eq=False)
class InChat(Told):
    """What happened in a chat, or is said there just now: a message of its stream (world.md 11).

    As an event it has its cursor as the id; a transient has none, and is named.
    """

    name = "transient"
    cursor: str | None = attrs.field(default=None, kw_only=True)

    @property
    def sse(self) -> bytes:
        """Its event (F-41)."""
        if self.cursor is None:
            return super().sse
        return b"id: %b\ndata: %b\n\n" % (self.cursor.encode(), self.data)

    def _message(self) -> bytes:
        return self.data


Shown: TypeAlias = Sent | Told


def hello(run_id: str, head: Cursor) -> Hello:
    """Say where a run ends."""
    return Hello(run_id, _json({"run_id": run_id, "head": str(head)}))


def live(run_id: str, cursor: Cursor) -> Live:
    """Say that all is told up to a cursor."""
    return Live(run_id, _json({"cursor": str(cursor)}))


def gap(run_id: str, first: Cursor, last: Cursor) -> GapShown:
    """Say what was pruned, both ends included."""
    told = {"from": str(first), "to": str(last), "reason": "pruned"}
    return GapShown(run_id, _json(told))


def replay(run_id: str, cursor: Cursor) -> Replay:
    """Say after what it goes on from the journal."""
    return Replay(run_id, _json({"cursor": str(cursor)}))


def delta(run_id: str, item: str, kind: str, text: str, dropped: int) -> Delta:
    """Say some more of an item, and how many bytes before it gave way."""
    told: dict[str, str | int] = {"run_id": run_id, "item": item, "kind": kind, "text": text}
    if dropped:
        told["dropped"] = dropped
    return Delta(run_id, _json(told))


def end(run_id: str, cursor: Cursor) -> End:
    """Say up to where all is told."""
    return End(run_id, _json({"cursor": str(cursor)}))


def bye(run_id: str, retry: float) -> Bye:
    """Say in how many seconds to come again."""
    return Bye(run_id, _json({"retry": retry}))


def failed(run_id: str, problem: bytes, event_id: str | None = None) -> Failed:
    """Say what could not be told, as a problem (F-5)."""
    told: dict[str, str | msgspec.Raw] = {} if event_id is None else {"event_id": event_id}
    return Failed(run_id, _json({**told, "problem": msgspec.Raw(problem)}))
