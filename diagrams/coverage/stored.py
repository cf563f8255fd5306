"""Counts in files: what `turnlock verify --json` writes, the pytest plugin, and `to_json` here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast

from ...models.errors import InvalidValue, shown
from ...models.strict_json import parse
from .counts import Counts

FORMAT: Final = 1
"""Of a coverage file. It changes when a key changes its meaning or goes."""
MARK: Final = "turnlock_coverage"
"""The key by which a coverage file is known; its value is the format."""
REPORTS: Final = 1
"""The format of reports of `turnlock verify` that is read here."""

_KEYS: Final = frozenset({MARK, "rows", "either", "reasons"})

Raw: TypeAlias = dict[str, Any]


def to_json(counts: Counts) -> str:
    """Return a coverage file."""
    document: Raw = {
        MARK: FORMAT,
        "rows": dict(counts.rows),
        "either": [{"rows": list(names), "count": count} for names, count in counts.either.items()],
        "reasons": dict(counts.reasons),
    }
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def counts_in(text: str | bytes, *, name: str) -> Counts | None:
    """Read a coverage file or a report of `turnlock verify`; None for what is neither.

    `name` is what messages call the file. Raises `InvalidValue` with the place of what is wrong in
    a file that is one of them.
    """
    try:
        value = parse(text)
    except InvalidValue:
        return None
    if not isinstance(value, dict):
        return None
    document = cast("Raw", value)
    try:
        if MARK in document:
            return _from_file(document)
        if "results" in document and "verdict" in document:
            return from_report(document)
    except InvalidValue as error:
        raise error.inside(name) from None
    return None


def from_report(raw: Mapping[str, Any]) -> Counts:
    """Read the counts of all techniques in a report of `turnlock verify --json`.

    Raises `InvalidValue` for a report without counts of rows: older ones have none.
    """
    if raw.get("format") != REPORTS:
        raise InvalidValue(
            place="format",
            cause=f"{shown(raw.get('format'))} is not a format of reports that this turnlock reads",
            fix=f"give what `turnlock verify --json` wrote, with format {REPORTS}",
        )
    counts = Counts()
    for place, result in enumerate(_list(raw, "results")):
        where = f"results[{place}]"
        coverage = _object(_object(result, where).get("coverage"), f"{where}.coverage")
        rows = coverage.get("rows", {})
        reasons = coverage.get("reasons", {})
        counts += Counts(
            rows=_counts(rows, f"{where}.coverage.rows"),
            reasons=_counts(reasons, f"{where}.coverage.reasons"),
        )
    if not counts.rows:
        raise InvalidValue(
            place="results",
            cause="no technique counted rows",
            fix="verify again with this turnlock, with closure or conformance among the techniques",
        )
    return counts


def _from_file(raw: Raw) -> Counts:
    if raw[MARK] != FORMAT or isinstance(raw[MARK], bool):
        raise InvalidValue(
            place=MARK,
            cause=f"{shown(raw[MARK])} is not a format that this turnlock reads",
            fix=f"use a turnlock that knows it, or a file of format {FORMAT}",
        )
    unknown = raw.keys() - _KEYS
    if unknown:
        raise InvalidValue(place=min(unknown), cause="is no known field here", fix="leave it out")
    either: dict[tuple[str, ...], int] = {}
    for place, item in enumerate(_list(raw, "either")):
        where = f"either[{place}]"
        group = _object(item, where)
        names = _names(group, where)
        either[names] = either.get(names, 0) + _count(group.get("count"), f"{where}.count")
    return Counts(
        rows=_counts(raw.get("rows"), "rows"),
        either=either,
        reasons=_counts(raw.get("reasons"), "reasons"),
    )


def _counts(raw: object, place: str) -> dict[str, int]:
    return {
        key: _count(value, f"{place}[{shown(key)}]") for key, value in _object(raw, place).items()
    }


def _count(value: object, place: str) -> int:
    if type(value) is not int or value < 0:
        raise InvalidValue(
            place=place, cause=f"{shown(value)} is no count", fix="give a whole number, 0 or more"
        )
    return value


def _names(group: Raw, place: str) -> tuple[str, ...]:
    names = _list(group, "rows", place=f"{place}.rows")
    if len(names) < 2 or not all(isinstance(name, str) for name in names):  # noqa: PLR2004
        raise InvalidValue(
            place=f"{place}.rows",
            cause=f"{shown(names)} does not name two rows",
            fix="name the rows that could not be told apart, two or more",
        )
    return tuple(map(str, names))


def _list(raw: Mapping[str, Any], name: str, *, place: str = "") -> list[object]:
    value = raw.get(name)
    if not isinstance(value, list):
        raise InvalidValue(
            place=place or name,
            cause=f"{shown(value)} is no JSON array",
            fix="give a list in brackets",
        )
    return cast("list[object]", value)


def _object(value: object, place: str) -> Raw:
    if not isinstance(value, dict):
        raise InvalidValue(
            place=place, cause=f"{shown(value)} is no JSON object", fix="give an object in braces"
        )
    return cast("Raw", value)
