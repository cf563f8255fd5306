"""What ``turnlock verify --replay`` does: a finding that was kept is played and judged again."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from ..models.errors import InvalidValue
from ..verification.findings import NO_ANSWER
from ..verification.regressions import Regression, played_again, read_finding
from ..verification.reports.stories import OWN_COMMAND, printable
from ..verification.reports.terminal import finding_lines
from ..verification.subjects.kernel import kernel_driver
from ..verification.subjects.subject import Driver

STDIN: Final = "-"


def replayed(findings: Sequence[str], driver: Driver | None) -> int:
    """Play findings on a system under test, None being ours; tell each, and return the status.

    0 where all are answered rightly now, 1 where one is not, 5 where the system did not answer.
    Raises `click.UsageError` for what is no finding, before anything is played.
    """
    kept = [(name, finding) for name in findings for finding in _read(name)]
    command = OWN_COMMAND if driver is None else driver.name
    status = 0
    for name, finding in kept:
        told, ended = _played(driver or kernel_driver(), finding, command)
        click.echo(printable(f"{_called(name, finding)}: {told}"))
        status = max(status, ended)
    return status


def _read(name: str) -> tuple[Regression, ...]:
    try:
        text = sys.stdin.read() if name == STDIN else Path(name).read_text(encoding="utf-8")
        return read_finding(text, name="stdin" if name == STDIN else name)
    except UnicodeDecodeError as error:
        raise click.UsageError(f"--replay {name}: is no UTF-8 ({error.reason})") from error
    except OSError as error:
        raise click.UsageError(
            f"--replay {name}: {error.strerror}; give the file of a finding, or - for the line "
            "that a report shows"
        ) from error
    except InvalidValue as error:
        raise click.UsageError(f"--replay {error}") from error


def _called(name: str, finding: Regression) -> str:
    place = "stdin" if name == STDIN else name
    return " ".join(part for part in (place, finding.rule, finding.message) if part)


def _played(driver: Driver, kept: Regression, command: str) -> tuple[str, int]:
    found = played_again(driver, kept.run, kept.script)
    if found is None:
        return "HOLDS: every step is answered as kernel.md says", 0
    said, status = ("IT DID NOT ANSWER", 5) if found.rule == NO_ANSWER else ("STILL VIOLATED", 1)
    return "\n".join([said, *(f"  {it}" for it in finding_lines(found, command))]), status
