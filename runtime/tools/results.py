"""What became of an execution, as its performer or a probe can truly say, and results as JSON."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import pathlib
import uuid
from collections.abc import Awaitable, Iterable, Mapping
from itertools import chain
from typing import Any, Final, TypeAlias, cast

import attrs

from ...models.errors import InvalidValue, shown
from ...models.values import DEPTH, FrozenDict, FrozenList, Json, canonical, freeze
from .errors import PLACE, bounded, kind_of, said


@attrs.frozen
class Succeeded:
    """The tool returned; `result` is a frozen JSON value and may be null (K-36)."""

    result: Json


@attrs.frozen
class Failed:
    """The execution has ended without a result. What it did before may stay done.

    `error` is never empty (K-36). `kind` names the sort of failure in one word, for metrics: the
    class of the exception, or one of the constants below.
    """

    error: str
    kind: str = "error"


TIMED_OUT = "timeout"
CANCELLED = "cancelled"
BAD_RESULT = "bad_result"
NOT_STARTED = "not_started"

STOOD_STILL: Final = Failed(
    "it was not started: this process had stood still beyond its lease", NOT_STARTED
)
"""A true report of what was claimed and never ran."""


@attrs.frozen
class Unknown:
    """Nobody knows what the execution came to, or will come to (K-35).

    It may go on still, and nobody waits for it any more: then awaiting `later`, as often as wanted,
    gives what it comes to in the end; that may never come. Otherwise the tool itself has said that
    it cannot tell (W-62), and `later` is None.
    """

    why: str
    later: Awaitable[Outcome] | None = attrs.field(default=None, eq=False, repr=False)


Ended: TypeAlias = Succeeded | Failed
Outcome: TypeAlias = Succeeded | Failed | Unknown


@attrs.frozen
class Happened:
    """A probe's answer: it was done, and this is its result, any JSON value."""

    result: object


@attrs.frozen
class NeverHappened:
    """A probe's answer: it was not done, and will not be: it may be tried again."""


@attrs.frozen
class StillUnknown:
    """A probe's answer: it cannot tell. `why` goes to the person who is asked instead."""

    why: str = "the probe cannot tell"


ProbeAnswer: TypeAlias = Happened | Failed | NeverHappened | StillUnknown


RESULT_BYTES: Final = 1 << 20
"""Bytes of canonical JSON that a result may have: it is kept, and goes to a model."""


_PLAIN: Final = frozenset({type(None), bool, int, float})
_RETURN_LESS: Final = "return less: a summary, a page, or the name of a file"


def as_json(value: object, *, limit: int = RESULT_BYTES) -> Json:
    """Return what a tool returned as a frozen JSON value of at most `limit` bytes, canonically.

    Dataclasses, attrs classes, msgspec Structs and whatever has pydantic's ``model_dump`` become
    objects; enums their values; dates, times, UUIDs, decimals and paths text. Tuples become arrays.
    Nothing else is guessed at: bytes, sets, NaN and other objects raise `InvalidValue`, and so does
    what contains itself. Integers may have 8,192 bits, though JavaScript reads 53.
    """
    try:
        plain = _Reader(limit).read(value, DEPTH)
        frozen: Json = freeze(plain, place="")
    except InvalidValue as error:
        raise InvalidValue(
            place=bounded(f"result{error.place}", limit=PLACE), cause=error.cause, fix=error.fix
        ) from None
    if len(canonical(frozen).encode()) > limit:
        raise InvalidValue(
            place="result", cause=f"has more than {limit:,} bytes of JSON", fix=_RETURN_LESS
        )
    return frozen


SMALL: Final = 2_000
"""Values of plain data that are read at once, on the loop; text counts one for each `TEXT`."""
TEXT: Final = 64
"""Characters, see `SMALL`."""


_OWN_FIELDS: Final = {
    id(Happened): ("result",),
    id(Failed): ("error", "kind"),
    id(StillUnknown): ("why",),
    id(NeverHappened): (),
}
_SCALARS: Final = frozenset(map(id, _PLAIN))
"""By `id`: a class may have a metaclass whose `__hash__` or `__eq__` is a stranger's."""


def is_small(value: object) -> bool:
    """Whether it is a little data of Python's own types, or of ours: reading it runs no code."""
    left, unseen = SMALL, [value]
    while unseen and left >= 0:
        it: Any = unseen.pop()
        kind = cast("object", type(it))
        left -= 1
        if kind is str:
            left -= len(it) // TEXT
        elif kind is dict or kind is FrozenDict:
            left -= 2 * len(it)
            unseen += chain(it.keys(), it.values()) if left >= 0 else ()
        elif kind is list or kind is tuple or kind is FrozenList:
            left -= len(it)
            unseen += it if left >= 0 else ()
        elif id(kind) in _OWN_FIELDS:
            unseen += (getattr(it, name) for name in _OWN_FIELDS[id(kind)])
        elif id(kind) not in _SCALARS:
            return False
    return left >= 0


def outcome_of(value: object, *, limit: int = RESULT_BYTES) -> Ended:
    """Return what a result comes to; whatever it does while it is read, that is an outcome."""
    try:
        return Succeeded(as_json(value, limit=limit))
    except BaseException as error:  # noqa: BLE001 - an object's own code may even exit
        return Failed(f"the tool ran, but its result cannot be kept: {_unkept(error)}", BAD_RESULT)


def answer_of(value: object) -> ProbeAnswer:
    """Return a probe's answer, its texts bounded, with a result that is frozen JSON."""
    try:
        return _answer(value)
    except BaseException as error:  # noqa: BLE001 - as for the result of a tool
        return StillUnknown(f"what the probe answered cannot be read: {said(error)}")


def _answer(value: object) -> ProbeAnswer:
    if isinstance(value, Happened):
        try:
            return Happened(as_json(value.result))
        except BaseException as error:  # noqa: BLE001 - it happened, whatever its result does
            why = f"it happened, but its result cannot be kept: {_unkept(error)}"
            return Failed(why, BAD_RESULT)
    if isinstance(value, NeverHappened):
        return NeverHappened()
    if isinstance(value, Failed):
        return Failed(bounded(value.error))
    if isinstance(value, StillUnknown):
        return StillUnknown(bounded(value.why))
    return StillUnknown(
        f"the probe returned {shown(value)}, not Happened, Failed, NeverHappened or StillUnknown"
    )


def _unkept(error: BaseException) -> str:
    return bounded(str(error)) if type(error) is InvalidValue else said(error)


class _Reader:
    """Makes plain data of one result, and stops as soon as it must be too large.

    A value that is in it many times counts many times: sixty lists, each twice in the next, are
    small in memory, and would fill all of it as JSON. What plain data may not be (NaN, a lone
    surrogate) is for `freeze` to say.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._left = limit
        self._open: set[int] = set()

    def read(self, value: object, depth: int) -> object:
        if type(value) in _PLAIN:
            self._spend(1)
            return value
        if isinstance(value, enum.Enum):
            value = value.value
        if isinstance(value, str):
            self._spend(len(value) + 2)
            return str.__str__(value)
        self._spend(1)
        if isinstance(value, int):
            return int(value)
        return float(value) if isinstance(value, float) else self._inside(value, depth)

    def _inside(self, value: object, depth: int) -> object:
        key = id(value)
        if key in self._open:
            raise _bad("contains itself", "return something that ends")
        if depth == 0:
            raise _bad(f"is nested deeper than {DEPTH} levels", "return it flatter")
        self._open.add(key)
        try:
            if isinstance(value, Mapping):
                return self._object(cast("Mapping[object, object]", value).items(), depth - 1)
            if isinstance(value, list | tuple):
                return self._array(cast("Iterable[object]", value), depth - 1)
            return self._other(value, depth)
        finally:
            self._open.discard(key)

    def _object(self, items: Iterable[tuple[object, object]], depth: int) -> dict[str, object]:
        read: dict[str, object] = {}
        for key, item in items:
            if not isinstance(key, str):
                raise _bad(f"has the key {shown(key)}, which is no text", "use text keys")
            self._spend(len(key) + 2)
            name = str.__str__(key)
            try:
                read[name] = self.read(item, depth)
            except InvalidValue as error:
                raise _within(f".{name}", error) from None
        return read

    def _array(self, items: Iterable[object], depth: int) -> list[object]:
        read: list[object] = []
        try:
            for item in items:
                read.append(self.read(item, depth))  # noqa: PERF401 - its length says where it failed
        except InvalidValue as error:
            raise _within(f"[{len(read)}]", error) from None
        return read

    def _other(self, value: Any, depth: int) -> object:  # noqa: ANN401 - anything
        names = _field_names(value)
        if names is not None:
            return self._object(((name, getattr(value, name)) for name in names), depth - 1)
        if isinstance(value, dt.date | dt.time):
            return self.read(value.isoformat(), depth - 1)
        if isinstance(value, uuid.UUID | decimal.Decimal | pathlib.PurePath):
            return self.read(str(value), depth - 1)
        if not isinstance(value, type) and callable(getattr(value, "model_dump", None)):
            return self.read(value.model_dump(mode="json"), depth - 1)
        raise _bad(
            f"{shown(value)} is a {kind_of(value)}, not a JSON value",
            "return None, bool, int, float, str, list, dict or a dataclass",
        )

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise _bad(f"here the result grows beyond {self._limit:,} bytes of JSON", _RETURN_LESS)


def _field_names(value: object) -> tuple[str, ...] | None:
    """Name the fields of a record of the kinds that are read; None for anything else."""
    if isinstance(value, type):
        return None
    if dataclasses.is_dataclass(value):
        return tuple(field.name for field in dataclasses.fields(value))
    if attrs.has(type(value)):
        return tuple(field.name for field in attrs.fields(cast("Any", type(value))))
    names: tuple[str, ...] | None = getattr(type(value), "__struct_fields__", None)
    return names  # of a msgspec Struct


def _bad(cause: str, fix: str) -> InvalidValue:
    return InvalidValue(place="", cause=cause, fix=fix)


def _within(outer: str, error: InvalidValue) -> InvalidValue:
    """Put the place together on the way out: only what is refused pays for it."""
    return InvalidValue(place=f"{outer}{error.place}", cause=error.cause, fix=error.fix)
