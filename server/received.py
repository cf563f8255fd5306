"""What a client receives of a stream: events, each entry once and in order (F-41, F-52)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias, cast

import attrs

from ..models.codec import read_fact, upgraded
from ..models.errors import InvalidValue, TurnlockError
from ..models.facts import Fact
from ..runtime.journal.ledger import Cursor

EVENT_BYTES: Final = 32 * 1024 * 1024
"""Bytes that one event of a stream may have."""

Told: TypeAlias = Mapping[str, Any]
"""JSON as a server told it; fields that are not known are let be (F-1)."""


class Unreachable(TurnlockError):
    """No turnlock has answered: what was asked for may have happened; asking again is harmless."""


class NoServer(Unreachable):
    """Nobody listens there: nothing has happened."""


def no_turnlock(why: str) -> Unreachable:
    """Return what is wrong where something else answers than a turnlock."""
    return Unreachable(f"what answers there is no turnlock that this one knows: {why}")


def fact_of(envelope: Told) -> Fact:
    """Return the fact of an envelope (F-7)."""
    return read_told(envelope.get("fact"))


def read_told(raw: object) -> Fact:
    """Return a fact as a server told it."""
    try:
        return read_fact(upgraded(raw))
    except InvalidValue as error:
        raise no_turnlock(f"a fact cannot be read ({error})") from error


@attrs.frozen
class StreamEvent:
    """One event of a stream; an envelope is an `entry`.

    `off` is the client's own: `{"why", "retry"}`. A `gap` with the reason `missed` is too (F-52).
    """

    name: str
    data: Told


def passed_on(event: StreamEvent, last: Cursor) -> tuple[StreamEvent | None, Cursor]:
    """Return what is passed on of an event, and the last entry that is known after it (F-52)."""
    try:
        if event.name == "gap":
            return event, max(last, Cursor.read(str(event.data.get("to", ""))))
        if event.name != "entry":
            return event, last
        cursor = Cursor.read(str(event.data.get("cursor")))
        before = Cursor.read(str(event.data.get("after", "")))
    except InvalidValue as error:
        raise no_turnlock(f"a cursor cannot be read ({error})") from error
    if cursor <= last:
        return None, last
    if before != last:
        missed = {"from": str(last), "to": str(before), "reason": "missed"}
        return StreamEvent("gap", MappingProxyType(missed)), last
    return event, cursor


async def parsed(chunks: AsyncIterator[bytes]) -> AsyncIterator[StreamEvent]:
    """Iterate over the events of a stream; an event that is cut off is none."""
    name, data = "", b""
    rest: list[bytes] = []
    async for chunk in chunks:
        if b"\n" not in chunk:
            rest.append(chunk)  # joined once, however large the event is
            lines: list[bytes] = []
        else:
            *lines, last = b"".join((*rest, chunk)).split(b"\n")
            rest = [last]
        for line in lines:
            if not line:
                if data:
                    yield _event(name, data)
                name, data = "", b""
            elif line.startswith(b"data:"):
                data += (b"\n" if data else b"") + line[5:].removeprefix(b" ")
            elif line.startswith(b"event:"):
                name = line[6:].strip().decode("ascii", "replace")
        if sum(map(len, rest)) + len(data) > EVENT_BYTES:
            raise no_turnlock(f"an event has more than {EVENT_BYTES:,} bytes")


def _event(name: str, data: bytes) -> StreamEvent:
    try:
        told = json.loads(data)
    except ValueError as error:
        raise no_turnlock("an event is no JSON") from error
    if not isinstance(told, dict):
        raise no_turnlock("an event is no JSON object")
    return StreamEvent(name or "entry", cast("Told", told))
