"""The whole report as JSON: every figure and every finding, under keys that stay."""

from __future__ import annotations

import json
from typing import Final, cast

import cattrs

from ...models.errors import InvalidValue
from ...models.strict_json import parse
from ..findings import Raw
from .report import Report

FORMAT: Final = 1
"""Of the document. It changes when a key changes its meaning or goes; new keys may come."""

_converter = cattrs.Converter(forbid_extra_keys=True)
_converter.register_structure_hook(int | float | str, lambda figure, _: figure)
_DERIVED: Final = ("verdict", "exit_status", "violations")


def to_json(report: Report) -> str:
    """Return the document, with the verdict and the violations spelt out beside the results."""
    document: Raw = {
        "format": FORMAT,
        "verdict": str(report.verdict),
        "exit_status": report.exit_status,
        **_converter.unstructure(report),
        "violations": [
            {
                "fingerprint": violation.fingerprint,
                "rule": violation.finding.rule,
                "message": violation.finding.message,
                "techniques": list(violation.techniques),
                "known": violation.known,
                "steps": len(violation.finding.script),
            }
            for violation in report.violations
        ],
    }
    return json.dumps(document, ensure_ascii=True, indent=1, default=repr) + "\n"


def from_json(text: str) -> Report:
    """Read a report back. Raises `InvalidValue` with the place of what is wrong."""
    value = parse(text)
    if not isinstance(value, dict) or cast("Raw", value).pop("format", None) != FORMAT:
        raise InvalidValue(
            place="format",
            cause="that is no report of this format",
            fix=f'give what `turnlock verify --json` wrote, with "format": {FORMAT}',
        )
    document = cast("Raw", value)
    try:
        fields = {name: field for name, field in document.items() if name not in _DERIVED}
        return _converter.structure(fields, Report)
    except cattrs.BaseValidationError as error:
        raise InvalidValue(
            place="; ".join(cattrs.transform_error(error, path="report")),
            cause="that is no report",
            fix="give what `turnlock verify --json` wrote, unchanged",
        ) from error
