"""``turnlock check``: a recorded log, held against the specification."""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs
import click

from ..models.safe_text import harmless
from ..verification.replay.lines import LINE_LIMIT, opened
from ..verification.rulebook import rule_called
from ..verification.traces.log import check
from ..verification.traces.outcome import Broken, Outcome, RunCount
from ..wire.log import TooManyRuns
from .naming import db_unless, run_ids

if TYPE_CHECKING:  # it would load the runtime
    from ..runtime.journal.entries import Finding
    from .check_db import Checked

_HELP: Final = """Check a recorded log: could these facts, or these answers, have happened?

LOG holds one JSON object a line, in order, plain or gzipped; - is standard input. Lines are facts
as a journal holds them, deliveries with their receipts ({"run_id", "delivery", "receipt"}), or
requests and answers of the wire. A line {"run": {…}} before the first line of a run says how it was
configured; without it the limits are the default ones. Notes, as turnlock archive writes them, are
passed over. Runs may be interleaved: run_id tells them apart.

It says that the log conforms, or names the first line that cannot have happened, the rule that it
breaks, and what could have stood there instead. Facts are judged by themselves: whether some
deliveries yield these very commits. Receipts are compared with those of a second implementation.

With --db, instead of a LOG, the runs of a journal are checked, or the one of --run; without both
TURNLOCK_DB says which. A line is then a fact, and line n of a run its n-th fact. All else that the
journal holds is looked at, too – checksums of its rows, snapshots, notes, posts, shared logs, where
runs end, the file itself –, and whatever is not as it was kept is told: not the first alone.

\b
Exit status:
  0  conforms
  1  a line cannot have happened, or is no line of a log; a journal is not as it was kept
  2  wrong usage, or not one line could be read
  6  conforms as far as it goes, but breaks off inside a line or a commit
"""

BROKEN: Final = 1
UNREADABLE: Final = 2
TORN: Final = 6

RUNS_SHOWN: Final = 20
"""Runs that are told one by one; the rest are counted."""


@click.command("check", help=_HELP, short_help="Check a recorded log against the specification.")
@click.argument("log", metavar="LOG", type=click.Path(), required=False)
@click.option("--db", metavar="JOURNAL", help="Check this journal instead, as others have --db.")
@click.option(
    "--run", "run_id", metavar="ID", shell_complete=run_ids, help="With --db: this run alone."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
def command(*, log: str | None, db: str | None, run_id: str | None, as_json: bool) -> None:
    """Check the log, tell the outcome, and end with its status."""
    db = db_unless(log, db)
    if (log is None) == (db is None):
        raise click.UsageError("give a LOG, or --db JOURNAL: one of the two")
    if run_id is not None and db is None:
        raise click.UsageError("--run needs --db")
    findings: Sequence[Finding] = ()
    logs = entries = 0
    try:
        if log is not None:
            outcome = check(_lines(log))
        else:
            checked = _checked_db(db or "", run_id)
            outcome, findings = checked.outcome, checked.findings
            logs, entries = checked.logs, checked.entries
    except TooManyRuns as error:
        raise click.UsageError(str(error)) from error
    if as_json:
        held = {"logs": logs, "entries": entries} if entries else {}
        click.echo(json.dumps(_as_json(outcome, findings) | held, indent=2))
    else:
        told = () if entries and not _holds(outcome) else _told(outcome)
        for line in (*_told_findings(findings), *told):
            click.echo(harmless(line))
        if entries:
            click.echo(f"shared logs: {logs:,}, {entries:,} entries")
        if findings and outcome.broken is None:
            click.echo(f"not as it was kept: {len(findings)} found")
    if findings:
        sys.exit(BROKEN)
    sys.exit(0 if entries and not _holds(outcome) else _status(outcome))


def _holds(outcome: Outcome) -> bool:
    """Whether there was anything to judge; a journal may hold logs and no run."""
    return bool(outcome.judged or outcome.broken or outcome.torn or outcome.runs)


def _checked_db(db: str, run_id: str | None) -> Checked:
    from .check_db import check_db  # noqa: PLC0415 - asyncio and the runtime load here

    return check_db(db, run_id)


def _lines(file: str) -> Iterator[bytes]:
    """Yield the lines; gzip data that break off end like any text that does."""
    try:
        with opened(file) as stream:
            while line := stream.readline(LINE_LIMIT + 1):
                if len(line) > LINE_LIMIT:
                    raise click.UsageError(f"a line is longer than {LINE_LIMIT:,} bytes")
                yield line
    except (EOFError, zlib.error, gzip.BadGzipFile):
        yield b"{"  # the beginning of a line, as a plain file would show it
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or str(error)
        raise click.UsageError(
            f"{harmless(file)} cannot be read ({cause}); give a readable file, or -"
        ) from error


def _status(outcome: Outcome) -> int:
    broken = outcome.broken
    if not outcome.judged and (broken is None or not broken.rule):
        return UNREADABLE
    if broken is not None:
        return BROKEN
    return TORN if outcome.torn else 0


def _as_json(outcome: Outcome, findings: Sequence[Finding]) -> dict[str, Any]:
    whole: dict[str, Any] = attrs.asdict(outcome)
    conforms = outcome.broken is None and not findings
    found = [attrs.asdict(it) for it in findings]
    return {"conforms": conforms, "judged": outcome.judged, **whole, "findings": found}


def _told_findings(findings: Sequence[Finding]) -> Iterator[str]:
    for it in findings:
        of = "the journal" if it.run_id is None else f"run {it.run_id!r}"
        yield f"{of}: {it.what}: {it.cause}"


def _told(outcome: Outcome) -> Iterator[str]:
    yield from map(_told_run, outcome.runs[:RUNS_SHOWN])
    left = outcome.runs[RUNS_SHOWN:]
    if left:
        yield f"… and {len(left):,} more runs, {sum(run.count for run in left):,} lines"
    if outcome.broken is not None:
        yield from _told_broken(outcome.broken)
        return
    if not outcome.judged and not outcome.torn:
        yield "the log holds nothing to judge"
        return
    for torn in outcome.torn:
        yield f"line {torn.line}: {torn.cause}"
    as_far = "conforms as far as it goes" if outcome.torn else "conforms"
    runs = len(outcome.runs)
    yield f"{as_far}: {outcome.judged:,} judged, {runs:,} run{'' if runs == 1 else 's'}"


def _told_run(run: RunCount) -> str:
    return f"run {run.run_id!r}: {run.count:,} {run.kind}, the last fact is {run.sequence:,}"


def _told_broken(broken: Broken) -> Iterator[str]:
    place = f"line {broken.line}"
    if broken.column is not None:
        place += f" column {broken.column}"
    if broken.run_id is not None:
        place += f", run {broken.run_id!r}"
    rule = f"{broken.rule}: " if broken.rule else ""
    yield f"{place}: {rule}{broken.cause}"
    if broken.rule:
        yield str(rule_called(broken.rule))
    if broken.instead:
        yield "possible there: " + " | ".join(broken.instead)
