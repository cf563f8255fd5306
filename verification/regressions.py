"""Scripts that once showed a violation, kept as files and played again.

A file is JSON lines: first ``{"format": 1, "rule": …, "message": …, "run": {…}}``, then one
delivery a line, with its `now`, as on the wire. What is right is not in the file: the oracle
answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, cast

import attrs

from ..models.codec import read, read_delivery
from ..models.errors import InvalidValue
from ..models.record import number
from ..models.run import Run
from ..models.strict_json import parse
from ..wire.plain import RECOVER, scripts_of
from .findings import Finding, Raw
from .fuzz.differences import difference, expected_receipts
from .reports.report import fingerprint
from .reports.stories import printable
from .reports.terminal import finding_lines
from .subjects.subject import Driver, Script
from .subjects.watched import watched

FORMAT: Final = 1
TECHNIQUE: Final = "regression"
SHOWN_FILE: Final = 10_000
"""Characters of a file that a failure shows whole."""
_FIELDS: Final = {"format": int, "rule": str, "message": str, "run": dict}


@attrs.frozen(kw_only=True)
class Regression:
    """One script on one run, and what it once showed: the rule it broke, in words how."""

    rule: str
    message: str
    run: Raw
    script: tuple[Raw, ...]


def file_name(finding: Finding) -> str:
    """Return the name of the file that keeps a finding: its rule and its fingerprint."""
    return f"{finding.rule.replace(' ', '-')}-{fingerprint(finding)}.jsonl"


def written(finding: Finding) -> str:
    """Return the text of the file that keeps a finding."""
    header = {
        "format": FORMAT,
        "rule": finding.rule,
        "message": finding.message,
        "run": finding.run,
    }
    return "".join(f"{json.dumps(line)}\n" for line in (header, *finding.script))


def told(
    finding: Finding, *, command: str = "", folder: Callable[[], Path | None] = lambda: None
) -> str:
    """Tell a finding as a story, and the file that keeps it from coming back.

    `command` is the system under test, where it is a command. A file too long to be shown is
    written into what `folder` makes, where it makes one.
    """
    text, name = written(finding), file_name(finding)
    this = "this" if len(text) <= SHOWN_FILE else _kept(text, name, folder)
    lines = [
        *finding_lines(finding, command),
        "",
        f"To keep it from coming back, commit {this} as tests/regressions/{name}",
        'and name the folder in a ConformanceSuite: regressions = "tests/regressions"',
    ]
    shown = f"\n\n{text}" if this == "this" else "\n"
    return printable("\n".join(lines)) + shown


def _kept(text: str, name: str, folder: Callable[[], Path | None]) -> str:
    """Write a file that is too long to be shown where there is a folder, and say where it is."""
    try:
        if (made := folder()) is not None:
            (made / name).write_text(text, encoding="utf-8")
            return str(made / name)
    except OSError:
        pass  # the failure is told all the same
    return f"what turnlock.verification.written makes of it ({len(text):,} characters)"


def read_regression(path: Path) -> Regression:
    """Read a file strictly. Raises `InvalidValue` with the file, the line and the field."""
    return _read(path.read_text(encoding="utf-8"), str(path))


def _read(text: str, path: str) -> Regression:
    lines = text.splitlines()
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
    check_script(header["run"], script, run_at=f"{path}:1.run", step_at=lambda n: f"{path}:{n + 2}")
    return Regression(
        rule=header["rule"], message=header["message"], run=header["run"], script=script
    )


def read_finding(text: str, *, name: str) -> tuple[Regression, ...]:
    """Read what keeps findings: a file that `written` made, or a request line of the wire.

    Reports show such a line for every finding; each script of it is one. Raises `InvalidValue` with
    the place, the cause and the fix; `name` says where the text is from.
    """
    first = next((line for line in text.splitlines() if line.strip()), "")
    request = _object(first, f"{name}:1") if first else {}
    if "scripts" not in request:
        return (_read(text, name),)
    try:
        run, scripts = _requested(request)
    except InvalidValue as error:
        raise error.inside(f"{name}:1") from None
    return tuple(
        Regression(rule="", message=f"script {number}", run=run, script=script)
        for number, script in enumerate(scripts, start=1)
    )


def _requested(request: Raw) -> tuple[Raw, list[tuple[Raw, ...]]]:
    run = request.get("run")
    scripts = [tuple(script) for script in scripts_of(request)]
    if not scripts:
        raise InvalidValue(place="scripts", cause="are empty", fix="give at least one delivery")
    for which, script in enumerate(scripts):
        step_at = partial("{}[{}]".format, f"scripts[{which}]")
        check_script(run, script, run_at="run", step_at=step_at)
    return cast("Raw", run), scripts


def played_again(driver: Driver, run: Raw, script: Script) -> Finding | None:
    """Play a script, and return the first answer that is wrong, or that never came."""
    (got,) = watched(driver).play(run, [script])
    return difference(run, script, expected_receipts(run, script), got, technique=TECHNIQUE)


_NO_DELIVERY: Final = {
    "cause": "that is no delivery",
    "fix": "give one with its type and its now, as on the wire",
}


def check_script(
    run: object, script: Script, *, run_at: str, step_at: Callable[[int], str]
) -> None:
    """Hold what is to be played to the wire: what no kernel can be asked, or nothing, is no script.

    Raises `InvalidValue`; `run_at` says where the run stands, `step_at` where a step does.
    """
    read(Run, run, place=run_at)
    if not script:
        raise InvalidValue(place=step_at(0), cause="there is no delivery", fix="give at least one")
    for place, delivery in enumerate(script):
        if not _is_step(delivery):
            raise InvalidValue(place=step_at(place), **_NO_DELIVERY)
        _known(delivery, step_at(place))


def _is_step(delivery: Raw) -> bool:
    """Whether it can be played: a delivery with its time, or a recovery, which has none."""
    return delivery.get("type") == RECOVER or ("type" in delivery and "now" in delivery)


def _known(delivery: Raw, place: str) -> None:
    """Hold a delivery to the wire: what no kernel can be asked is no finding."""
    if delivery["type"] == RECOVER:
        return
    fields = {name: value for name, value in delivery.items() if name != "now"}
    try:
        number(delivery["now"], place="now")
        read_delivery(fields)
    except InvalidValue as error:
        raise error.inside(place) from None


def _object(line: str, place: str) -> Raw:
    try:
        value = parse(line)
    except InvalidValue as error:
        raise error.inside(place) from None
    if not isinstance(value, dict):
        raise InvalidValue(place=place, cause="it is no object", fix="give one JSON object a line")
    return cast("Raw", value)
