"""``turnlock runs``: the runs of a journal."""

from __future__ import annotations

import json
from typing import Any, Final

import click

from ..models.safe_text import harmless
from ..runtime.journal.contract import RUNS, RunEntry
from ..runtime.leases import Leases
from ..runtime.owners import short_name
from .durations import told_duration
from .naming import run_ids
from .others_runs import is_guarded
from .places import Place, place_options
from .runs_at import with_runs

_HELP: Final = """List the runs of a journal: how each stands, and who performs it.

WAITS are the calls that wait for a decision, DOUBT those of which nobody knows whether they
happened; BEGAN and CHANGED say how long ago the first and the latest fact happened. Behind a run
stands what went wrong: what is damaged, what was lost, or why a call of its latest turn could not
begin. A run whose owner is "-" goes on when somebody opens it, for instance `turnlock run` with the
same --db and --run. One whose owner is "guard" is guarded: its own process goes on by itself.

Runs come in the order in which they were declared, those of a server (--url) as it lists them: what
waits for a person first. Where there are more than --limit, the last line says how to go on.

\b
Exit status:
  0  they were listed, or there are none
  1  the journal could not be read to its end
  2  wrong usage, or no journal
"""

_OWNER: Final = 32
"""Characters of an owner's name."""
_WORDS: Final = 200
"""Characters of what went wrong."""


@click.command("runs", help=_HELP, short_help="List the runs of a journal.")
@place_options
@click.option("--open", "only_open", is_flag=True, help="Only those with something under way.")
@click.option("--forgotten", is_flag=True, help="Those that were removed, too.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=RUNS,
    show_default=True,
    metavar="N",
    help="How many to list at most.",
)
@click.option("--after", metavar="RUN", shell_complete=run_ids, help="Begin behind this run.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array instead.")
def command(  # noqa: PLR0913 - one for each option
    *, place: Place, only_open: bool, forgotten: bool, limit: int, after: str | None, as_json: bool
) -> None:
    """List them, a line each."""
    listed = with_runs(
        place,
        lambda runs: runs.listed(
            only_open=only_open, forgotten=forgotten, after=after, limit=limit
        ),
        read_only=True,
    )
    shown, now = listed.entries, listed.now
    leases = Leases(now=now)
    if as_json:
        click.echo(json.dumps([_as_json(it, leases) for it in shown], indent=2))
        return
    click.echo(
        f"{'facts':>7}  {'status':18}  {'waits':>5}  {'doubt':>5}  {'began':>5}  {'changed':>7} "
        f" {'owner':16}  run"
    )
    for entry in shown:
        click.echo(_line(entry, leases, now=now))
    if listed.next is not None:
        click.echo(f"… and more: go on with --after {harmless(listed.next)}", err=True)


def _line(entry: RunEntry, leases: Leases, *, now: float) -> str:
    nobody = entry.run.kind if is_guarded(entry.run) else "-"
    owner = short_name(entry.owner) if leases.is_owned(entry) and entry.owner else nobody
    ago = [
        "-" if at is None else told_duration(max(0.0, now - at))
        for at in (entry.began, entry.changed)
    ]
    cause = entry.problem or entry.rewound or entry.trouble
    why = "" if cause is None else f" – {harmless(cause, limit=_WORDS)}"
    return (
        f"{entry.sequence:7,}  {_word(entry):18}  {_count(entry.waiting):>5} "
        f" {_count(entry.doubts):>5}  {ago[0]:>5}  {ago[1]:>7}  {harmless(owner, limit=_OWNER):16} "
        f" {harmless(entry.run.run_id)}{why}"
    )


def _word(entry: RunEntry) -> str:
    """Return the status, or what goes before it."""
    if entry.forgotten is not None:
        return "forgotten"
    if entry.problem is not None:
        return "damaged"
    if entry.rewound is not None:
        return "rewound"
    return "unreadable" if entry.status is None else entry.status.value


def _count(count: int | None) -> str:
    return "-" if count is None else f"{count:,}" if count else "-"


def _as_json(entry: RunEntry, leases: Leases) -> dict[str, Any]:
    return {
        "run_id": entry.run.run_id,
        "kind": entry.run.kind,
        "facts": entry.sequence,
        "status": None if entry.status is None else entry.status.value,
        "waiting": entry.waiting,
        "doubts": entry.doubts,
        "open": entry.busy,
        "began": entry.began,
        "changed": entry.changed,
        "owner": entry.owner if leases.is_owned(entry) else None,
        "trouble": entry.trouble,
        "rewound": entry.rewound,
        "problem": entry.problem,
        "forgotten": entry.forgotten,
    }
