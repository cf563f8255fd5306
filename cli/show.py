"""``turnlock show``: one run of a journal, what it does, what waits, and how it came there."""

from __future__ import annotations

import json
from typing import Any, Final

import click

from ..models.codec import write
from ..models.facts import Fact
from ..models.inputs import Input
from ..models.run import OWN
from ..models.safe_text import harmless
from ..models.sealed import is_sealed, shown_json
from ..models.values import canonical
from ..models.workers import opaque
from ..runtime.leases import is_owned
from ..runtime.owners import short_name
from ..views.call_view import CallView
from .naming import run_argument
from .others_runs import GOES_ON, is_guarded
from .places import Place, place_options
from .runs_at import Told, with_runs
from .shown import SEALED, bound_by, command_line, deciding_line

_ARGUMENTS: Final = 2_000
"""Characters of the arguments of a call that nobody decides about."""

_DOUBTED: Final = ("nobody knows whether it happened: its tool's policy decides, or you:",)
_OBSERVED: Final = ("nobody knows whether it happened: another runtime ran it; you say it:",)
_RETRIED: Final = (
    "nobody knows whether it happened: one more attempt was authorised, and runs",
    "once the run goes on",
)
_RETRIED_ELSEWHERE: Final = (
    "nobody knows whether it happened: one more attempt was authorised, and runs",
    "once its own process asks its guard about it",
)

_WAITING: Final = (
    *("run_id", "turn_id", "epoch", "invocation_id", "tool_name", "arguments"),
    *("arguments_digest", "deadline"),
)
"""What is told as JSON of a call that waits."""
_DOUBT: Final = (
    *("run_id", "turn_id", "epoch", "invocation_id", "tool_name", "arguments", "attempt"),
    "observed",
)
"""What is told as JSON of a call that is in doubt."""
_NAME: Final = 200
"""Characters of an id or a tool; the command below it has all of it."""
_UNSAYABLE: Final = "no command line holds its ids: turnlock {} asks about it at a terminal"

_HELP: Final = """Show RUN: its status, the calls that wait for approval or are in doubt, its facts.

Seconds are counted from the run's first fact.

\b
Exit status:
  0  it was shown
  1  the journal could not be read to its end
  2  wrong usage, no journal, or no such run
"""


@click.command("show", help=_HELP, short_help="Show one run of a journal.")
@run_argument()
@place_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
@click.option("--facts/--no-facts", default=True, help="The facts, or only what is now.")
def command(*, run_id: str, place: Place, as_json: bool, facts: bool) -> None:
    """Read the run, and show it."""
    shown = with_runs(place, lambda runs: runs.told(run_id), read_only=True)
    if as_json:
        click.echo(json.dumps(_as_json(shown, facts=facts), indent=2))
        return
    _tell(shown, place=place)
    if facts and shown.facts:
        from .timeline import Timeline  # noqa: PLC0415 - rich loads only where something is shown

        timeline = Timeline(f"{len(shown.facts):,} facts", start=shown.facts[0].at)
        for fact in shown.facts:
            timeline.note(fact)
        click.echo()
        timeline.show()


def _tell(shown: Told, *, place: Place) -> None:
    standing = shown.view.standing
    about = " ".join(it for it in (standing.tool_name, standing.invocation_id) if it)
    of = shown.forked
    forked = "" if of is None else f", forked from {of['run']} at {of['turn']}"
    click.echo(f"run     {harmless(shown.entry.run.run_id)}{harmless(forked)}")
    guarded = is_guarded(shown.entry.run)
    if shown.entry.run.kind != OWN:
        click.echo(f"kind    {harmless(shown.entry.run.kind, limit=_NAME)}")
    click.echo(f"status  {standing.status.value}{about and f': {harmless(about)}'}")
    stands = shown.entry.rewound is not None or shown.entry.problem is not None
    click.echo(f"owner   {_owner(shown, stands=stands)}")
    for finding in shown.findings:
        click.echo(f"{finding.what:7} {harmless(finding.cause)}")
    if stands and not shown.moved:
        way = command_line("recover", shown.entry.run.run_id, place=place) or "turnlock recover"
        click.echo(f"        it stands still until a person decides: {way}")
    for waiting in shown.view.waiting:
        _tell_call("waits", waiting, whole=True)
        left = None if waiting.deadline is None else waiting.deadline - shown.now
        if left is not None:
            click.echo(f"        for {max(left, 0.0):,.0f} s more, then it is denied")
        for verb in ("approve", "deny"):
            click.echo(
                f"        {deciding_line(verb, waiting, place=place) or _UNSAYABLE.format(verb)}"
            )
    for it in shown.view.in_doubt:
        _tell_doubt(it, place=place, guarded=guarded)
    for it in shown.lost:
        who = opaque(it.worker or "")
        _tell_call("lost", it)
        when = "its guard is asked about it" if guarded else "the run goes on"
        click.echo(f"        {harmless(who)} ran it and is gone: in doubt once {when}")
    if shown.grants:
        listing = command_line("grants", shown.entry.run.run_id, place=place) or "turnlock grants"
        click.echo(f"grants  {len(shown.grants)} in force: {listing}")


def _owner(shown: Told, *, stands: bool) -> str:
    """Say who owns a run, and where nobody does, who goes on with it; not where it stands still."""
    if is_owned(shown.entry, now=shown.now) and shown.entry.owner is not None:
        return harmless(short_name(shown.entry.owner))
    if stands:
        return "nobody"
    if is_guarded(shown.entry.run):
        return f"nobody, as of every guarded run: {GOES_ON}"
    return "nobody" + (": it has something under way, start it again" if shown.entry.busy else "")


def _tell_doubt(it: CallView, *, place: Place, guarded: bool) -> None:
    """Tell a call of which nobody knows whether it happened, and how to settle it."""
    _tell_call("doubt", it, whole=True)
    told: tuple[str, ...] = _OBSERVED if it.observed else _DOUBTED
    if it.retry_authorised:
        told = _RETRIED_ELSEWHERE if guarded else _RETRIED
    for line in told:
        click.echo(f"        {line}")
    way = deciding_line("resolve", it, place=place) or _UNSAYABLE.format("resolve")
    click.echo(f"        {way}")
    retry = "--retry, " if Input.RESOLVE_RETRY in it.allowed else ""
    click.echo(f"        with {retry}--result JSON or --error TEXT")


def _tell_call(what: str, told: CallView, *, whole: bool = False) -> None:
    """Tell a call; `whole` where somebody may decide about it: then nothing of it is cut."""
    name = f"{harmless(told.invocation_id, limit=_NAME)} {harmless(told.tool_name, limit=_NAME)}"
    click.echo(f"{what:7} {name}")
    if whole:
        click.echo(f"        {harmless(canonical(told.arguments))}")
    else:
        click.echo(f"        {harmless(shown_json(told.arguments), limit=_ARGUMENTS)}")
    if whole and is_sealed(told.arguments):
        click.echo(f"      {SEALED}")
    click.echo(f"        turn {harmless(told.turn_id, limit=_NAME)}, {bound_by(told)}")


def _as_json(shown: Told, *, facts: bool) -> dict[str, Any]:
    entry = shown.entry
    told: dict[str, Any] = {
        "run": write(entry.run),
        "status": shown.view.status.value,
        **shown.view.standing.data,
        "open": entry.busy,
        "owner": entry.owner if is_owned(entry, now=shown.now) else None,
        "waiting": [
            {name: getattr(call, name) for name in _WAITING}
            | {"arguments": json.loads(canonical(call.arguments))}
            for call in shown.view.waiting
        ],
        "in_doubt": [call.invocation_id for call in shown.view.in_doubt],
        "doubts": [
            {name: getattr(call, name) for name in _DOUBT}
            | {"arguments": json.loads(canonical(call.arguments))}
            | {"may_retry": Input.RESOLVE_RETRY in call.allowed}
            for call in shown.view.in_doubt
        ],
        "lost": [call.invocation_id for call in shown.lost],
        "forked": None if shown.forked is None else dict(shown.forked),
        "rewound": entry.rewound,
        "findings": [{"what": it.what, "cause": it.cause} for it in shown.findings],
    }
    if facts:
        told["facts"] = [_written(fact) for fact in shown.facts]
    return told


def _written(fact: Fact) -> dict[str, Any]:
    """Return a fact as the wire writes it, but for what names a host or a process (F-6)."""
    written = write(fact)
    worker = written.get("worker")
    return {**written, "worker": opaque(worker)} if isinstance(worker, str) else written
