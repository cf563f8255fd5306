"""What tools return, as JSON: plain data as it is, records by their fields, all within a bound."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import pathlib
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

import attrs
import msgspec

from ...models.errors import InvalidValue, shown
from ...models.values import DEPTH, Json, canonical, freeze
from .messages import path

RESULT_BYTES: Final = 1 << 20
"""Bytes of canonical JSON that a result may have: it is kept, and goes to a model."""


def as_json(value: object, *, limit: int = RESULT_BYTES) -> Json:
    """Return what a tool returned as a frozen JSON value of at most `limit` bytes, canonically.

    Dataclasses, attrs classes, msgspec Structs and whatever has pydantic's ``model_dump`` become
    objects; enums their values; dates, times, UUIDs, decimals and paths text. Tuples become arrays.
    Nothing else is guessed at: bytes, sets, NaN and other objects raise `InvalidValue`, and so does
    what contains itself. Integers may have 8,192 bits, though JavaScript reads 53.
    """
    plain = _Reader(limit).read(value, ())
    frozen: Json = freeze(plain, place="")
    size = len(canonical(frozen).encode())
    if size > limit:
        raise _too_large((), limit)
    return frozen


class _Reader:
    """Makes plain data of one result, and stops as soon as it must be too large.

    A value that is in it many times counts many times: sixty lists, each twice in the next, are
    small in memory, and would fill all of it as JSON.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._left = limit
        self._open: set[int] = set()

    def read(self, value: object, steps: tuple[str | int, ...]) -> object:
        self._spend(1, steps)
        if isinstance(value, enum.Enum):
            value = value.value
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            self._spend(len(value), steps)
            return self._checked(str.__str__(value), steps)
        if isinstance(value, int | float):
            plain = int(value) if isinstance(value, int) else float(value)
            return self._checked(plain, steps)
        return self._read_inside(value, steps)

    def _read_inside(self, value: object, steps: tuple[str | int, ...]) -> object:
        key = id(value)
        if key in self._open:
            raise _bad(steps, "contains itself", "return something that ends")
        if len(steps) >= DEPTH:
            raise _bad(steps, f"is nested deeper than {DEPTH} levels", "return it flatter")
        self._open.add(key)
        try:
            if isinstance(value, Mapping):
                return self._object(cast("Mapping[object, object]", value).items(), steps)
            if isinstance(value, list | tuple):
                items = cast("Iterable[object]", value)
                return [self.read(item, (*steps, at)) for at, item in enumerate(items)]
            return self._other(value, steps)
        finally:
            self._open.discard(key)

    def _object(
        self, items: Iterable[tuple[object, object]], steps: tuple[str | int, ...]
    ) -> dict[str, object]:
        read: dict[str, object] = {}
        for key, item in items:
            if not isinstance(key, str):
                raise _bad(steps, f"has the key {shown(key)}, which is no text", "use text keys")
            self._spend(len(key), steps)
            read[str.__str__(key)] = self.read(item, (*steps, str.__str__(key)))
        return read

    def _other(self, value: Any, steps: tuple[str | int, ...]) -> object:  # noqa: ANN401 - anything
        names = _field_names(value)
        if names is not None:
            return self._object(((name, getattr(value, name)) for name in names), steps)
        if isinstance(value, dt.date | dt.time):
            return value.isoformat()
        if isinstance(value, uuid.UUID | decimal.Decimal | pathlib.PurePath):
            return self.read(str(value), steps)
        if not isinstance(value, type) and callable(getattr(value, "model_dump", None)):
            return self.read(value.model_dump(mode="json"), steps)
        raise _bad(
            steps,
            f"{shown(value)} is a {type(value).__name__}, not a JSON value",
            "return None, bool, int, float, str, list, dict or a dataclass",
        )

    def _checked(self, value: object, steps: tuple[str | int, ...]) -> object:
        try:
            return freeze(value, place="")
        except InvalidValue as error:
            raise _bad(steps, f"{error.place} {error.cause}".strip(), error.fix) from None

    def _spend(self, size: int, steps: tuple[str | int, ...]) -> None:
        self._left -= size
        if self._left < 0:
            raise _too_large(steps, self._limit)


def _field_names(value: object) -> tuple[str, ...] | None:
    """Name the fields of a record of the kinds that are read; None for anything else."""
    if isinstance(value, type):
        return None
    if dataclasses.is_dataclass(value):
        return tuple(field.name for field in dataclasses.fields(value))
    if attrs.has(type(value)):
        return tuple(field.name for field in attrs.fields(cast("Any", type(value))))
    if isinstance(value, msgspec.Struct):
        return value.__struct_fields__
    return None


def _bad(steps: tuple[str | int, ...], cause: str, fix: str) -> InvalidValue:
    return InvalidValue(place=path(("result", *steps)), cause=cause, fix=fix)


def _too_large(steps: tuple[str | int, ...], limit: int) -> InvalidValue:
    return _bad(
        steps,
        f"is where the result grows beyond {limit:,} bytes of JSON"
        if steps
        else f"has more than {limit:,} bytes of JSON",
        "return less: a summary, a page, or the name of a file",
    )
