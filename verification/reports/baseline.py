"""Findings that are known: they do not fail a verification, but one that passes now does.

The file is JSON, ``{"format": 1, "known": [{fingerprint, rule, message, run, script}, …]}``,
written by `to_baseline`. An entry keeps its script, so that whether it passes now is found by
playing it, not by a technique's chance of meeting it again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final, cast

import attrs
import cattrs

from ...models.errors import InvalidValue
from ...models.strict_json import parse
from ..findings import Raw, Result
from ..regressions import check_script, played_again
from ..subjects.subject import Driver
from .report import Violation, fingerprint

FORMAT: Final = 1

_converter = cattrs.Converter(forbid_extra_keys=True)


@attrs.frozen(kw_only=True)
class Known:
    """One known violation. `message` says it in words; people may write their own."""

    fingerprint: str
    rule: str
    message: str
    run: Raw
    script: tuple[Raw, ...]

    @property
    def name(self) -> str:
        """How a report names it."""
        return f"{self.rule}: {self.message} ({self.fingerprint})"


@_converter.register_structure_hook
def _text(value: Any, _: type[str]) -> str:  # noqa: ANN401 - any JSON
    if not isinstance(value, str):
        raise TypeError("it is no text")
    return value


def to_baseline(violations: Iterable[Violation]) -> str:
    """Return the file that holds these violations as known."""
    known = [
        Known(
            fingerprint=violation.fingerprint,
            rule=violation.finding.rule,
            message=violation.finding.message,
            run=violation.finding.run,
            script=violation.finding.script,
        )
        for violation in violations
    ]
    entries = [_converter.unstructure(entry) for entry in known]
    return json.dumps({"format": FORMAT, "known": entries}, indent=1) + "\n"


def read_baseline(text: str | bytes) -> tuple[Known, ...]:
    """Read such a file, strictly. Raises `InvalidValue` with the place, the cause and the fix."""
    value = parse(text)
    if not isinstance(value, dict) or cast("Raw", value).get("format") != FORMAT:
        raise InvalidValue(
            place="format",
            cause="that is no baseline of this format",
            fix=f'give what `turnlock verify --write-baseline` wrote, with "format": {FORMAT}',
        )
    document = cast("Raw", value)
    if {*document} != {"format", "known"}:
        raise InvalidValue(
            place=", ".join(sorted({*document} ^ {"format", "known"})),
            cause="a baseline has the fields format and known, and no others",
            fix="leave out what is too many, add what is missing",
        )
    try:
        entries = _converter.structure(document["known"], tuple[Known, ...])
    except (cattrs.BaseValidationError, TypeError) as error:
        raise InvalidValue(
            place="; ".join(cattrs.transform_error(error, path="known")),
            cause="an entry is no known violation",
            fix="give fingerprint, rule, message, run and script, or write the baseline anew",
        ) from error
    for place, entry in enumerate(entries):
        if entry.script:  # no technique left one: then it is known by its fingerprint alone
            step_at = partial("{}[{}]".format, f"known[{place}].script")
            check_script(entry.run, entry.script, run_at=f"known[{place}].run", step_at=step_at)
    _once(entries)
    return entries


def now_passing(
    known: Sequence[Known], results: Iterable[Result], driver: Driver
) -> tuple[str, ...]:
    """Return the names of the entries that nothing finds any more, by playing their scripts.

    An entry without a script (no technique left one) passes when no result holds it.
    """
    found = {fingerprint(finding) for result in results for finding in result.findings}
    return tuple(
        entry.name
        for entry in known
        if entry.fingerprint not in found
        and (not entry.script or played_again(driver, entry.run, entry.script) is None)
    )


def _once(entries: Sequence[Known]) -> None:
    seen: set[str] = set()
    for place, entry in enumerate(entries):
        if entry.fingerprint in seen:
            raise InvalidValue(
                place=f"known[{place}].fingerprint",
                cause=f"{entry.fingerprint} stands twice",
                fix="keep one of the two",
            )
        seen.add(entry.fingerprint)
