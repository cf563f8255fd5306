"""Scripts that once showed a violation, kept as files and played again.

A file is JSON lines: first ``{"format": 1, "rule": …, "message": …, "run": {…}}``, then one
delivery a line, with its `now`, as on the wire. What is right is not in the file: the oracle
answers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, cast

import attrs

from ..models.errors import InvalidValue
from ..models.strict_json import parse
from .findings import Finding, Raw
from .fuzz.differences import difference, expected_receipts
from .subjects.subject import Driver

FORMAT: Final = 1
TECHNIQUE: Final = "regression"
_FIELDS: Final = {"format": int, "rule": str, "message": str, "run": dict}


@attrs.frozen(kw_only=True)
class Regression:
    """One script on one run, and what it once showed: the rule it broke, in words how."""

    rule: str
    message: str
    run: Raw
    script: tuple[Raw, ...]


def written(finding: Finding) -> str:
    """Return the text of the file that keeps a finding."""
    header = {
        "format": FORMAT,
        "rule": finding.rule,
        "message": finding.message,
        "run": finding.run,
    }
    return "".join(f"{json.dumps(line)}\n" for line in (header, *finding.script))


def read_regression(path: Path) -> Regression:
    """Read a file strictly. Raises `InvalidValue` with the file, the line and the field."""
    lines = path.read_text(encoding="utf-8").splitlines()
    values = [_object(line, f"{path}:{number + 1}") for number, line in enumerate(lines)]
    header = values[0] if values else {}
    for name, kind in _FIELDS.items():
        if not isinstance(header.get(name), kind) or header["format"] != FORMAT:
            raise InvalidValue(
                place=f"{path}:1: {name}",
                cause="that is no header of a regression of this format",
                fix='begin with {"format": 1, "rule": "K-…", "message": "…", "run": {…}}',
            )
    script = tuple(values[1:])
    for place, delivery in enumerate(script):
        if "type" not in delivery or "now" not in delivery:
            raise InvalidValue(
                place=f"{path}:{place + 2}",
                cause="that is no delivery",
                fix="give one with its type and its now, as on the wire",
            )
    return Regression(
        rule=header["rule"], message=header["message"], run=header["run"], script=script
    )


def played_again(driver: Driver, run: Raw, script: tuple[Raw, ...]) -> Finding | None:
    """Play a script, and return the first answer that is wrong. Raises what the driver raises."""
    (got,) = driver.play(run, [script])
    return difference(run, script, expected_receipts(run, script), got, technique=TECHNIQUE)


def _object(line: str, place: str) -> Raw:
    try:
        value = parse(line)
    except InvalidValue as error:
        raise error.inside(place) from None
    if not isinstance(value, dict):
        raise InvalidValue(place=place, cause="it is no object", fix="give one JSON object a line")
    return cast("Raw", value)
