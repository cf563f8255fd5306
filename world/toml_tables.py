"""TOML files of a person's own: read field by field, and refused with place, cause and fix.

What nobody asked for is refused by its name, so that a misspelt field is no default. Values are
repeated in messages only where the caller says so: a file may hold what nobody should see.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, cast

from ..models.errors import InvalidValue
from ..models.safe_text import harmless

FILE_BYTES: Final = 1 << 20
"""Bytes of a file that is read; a larger one is refused."""
NAME_SHOWN: Final = 60
"""Characters of a strange field's name that a message repeats."""


def read_toml(path: Path) -> dict[str, Any]:
    """Return what a TOML file says. Raises `InvalidValue`, whose place is the file."""
    place = f"{path}"
    try:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES + 1)
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise InvalidValue(
            place=place, cause=f"cannot be read ({why})", fix="name a file that can be read"
        ) from None
    except ValueError as error:  # a NUL in its name
        raise InvalidValue(place=place, cause=f"{error}", fix="name a file") from None
    if len(data) > FILE_BYTES:
        raise InvalidValue(
            place=place, cause=f"has more than {FILE_BYTES:,} bytes", fix="name a TOML file"
        )
    try:
        return tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        raise InvalidValue(
            place=place, cause=f"is no UTF-8 (byte {error.start})", fix="save it as UTF-8"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidValue(place=place, cause=f"is no TOML: {error}", fix="correct it") from None
    except RecursionError:
        raise InvalidValue(place=place, cause="is nested too deep", fix="nest it less") from None


class Table:
    """One table: each field is asked for once, and `done` refuses what was not asked for."""

    def __init__(self, fields: Mapping[str, Any], *, place: str = "") -> None:
        """Read this table, which stands at `place` in its file."""
        self._fields: Final = fields
        self._asked: Final[dict[str, None]] = {}
        self.place: Final = place

    def __contains__(self, name: str) -> bool:
        """Whether a field is given."""
        return name in self._fields

    def at(self, name: str) -> str:
        """Return the place of a field."""
        return f"{self.place}.{name}" if self.place else name

    def wrong(self, name: str, cause: str, fix: str) -> InvalidValue:
        """Return the error of a field."""
        return InvalidValue(place=self.at(name), cause=cause, fix=fix)

    def _get(self, name: str, kinds: type | tuple[type, ...], *, what: str) -> Any:  # noqa: ANN401 - of these kinds
        self._asked[name] = None
        value = self._fields.get(name)
        if value is None:
            return None
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
            raise self.wrong(name, f"is no {what}", f"give a {what}")
        return value

    def text(self, name: str) -> str | None:
        """Return a text, None where it is left out."""
        value: str | None = self._get(name, str, what="text")
        if value == "":
            raise self.wrong(name, "is empty", "say something, or leave it out")
        return value

    def flag(self, name: str) -> bool | None:
        """Return true or false, None where it is left out."""
        value: bool | None = self._get(name, bool, what="flag: true or false")
        return value

    def seconds(self, name: str) -> float | None:
        """Return a time above 0, None where it is left out."""
        value: float | None = self._get(name, (int, float), what="number of seconds")
        if value is not None and not 0 < value < math.inf:
            raise self.wrong(name, f"is {value}", "give seconds above 0")
        return value

    def count(self, name: str, *, least: int = 1) -> int | None:
        """Return a whole number, None where it is left out."""
        value: int | None = self._get(name, int, what="whole number")
        if value is not None and value < least:
            raise self.wrong(name, f"is {value}", f"give a whole number from {least}")
        return value

    def texts(self, name: str) -> tuple[str, ...] | None:
        """Return a list of texts, None where it is left out."""
        value: list[object] | None = self._get(name, list, what="list of texts")
        if value is None:
            return None
        for number, it in enumerate(value):
            if not isinstance(it, str) or not it:
                raise self.wrong(
                    f"{name}[{number}]", "is no text", "give texts, none of them empty"
                )
        return tuple(cast("list[str]", value))

    def json(self, name: str) -> dict[str, Any] | None:
        """Return a table as it is, None where it is left out."""
        value: dict[str, Any] | None = self._get(name, dict, what="table")
        return value

    def table(self, name: str) -> Table:
        """Return a table, an empty one where it is left out."""
        return Table(self.json(name) or {}, place=self.at(name))

    def tables(self, name: str) -> dict[str, Table]:
        """Return the tables inside a table, by name."""
        found = self.table(name)
        return {key: found.table(key) for key in found.names()}

    def names(self) -> tuple[str, ...]:
        """Return the names of all fields that are given."""
        return tuple(self._fields)

    def done(self, *, fix: str | None = None) -> None:
        """Refuse the first field that was not asked for, by its name."""
        for name in self._fields:
            if name not in self._asked:
                raise self.wrong(
                    harmless(name, limit=NAME_SHOWN),
                    "is no field of this",
                    fix or known(self._asked),
                )


def known(names: Iterable[str]) -> str:
    """Return the fix of a strange field: which there are."""
    return f"the fields are {', '.join(names) or 'none'}"
