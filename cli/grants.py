"""``turnlock grants`` and ``turnlock revoke``: approvals that reach further than one call."""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import click

from ..models.deliveries import Match, Revoke
from ..models.ids import grant_id
from ..models.safe_text import harmless
from ..models.sealed import shown_json
from ..models.values import canonical
from ..views.grants import GrantView, grants_in_force
from .decide import EXIT_STATUS, deliver, delivering
from .naming import run_argument
from .places import Place, place_options
from .runs_at import RunsAt, with_runs
from .shown import DIGEST, command_line

_GRANTS: Final = """List the grants of RUN that are in force: approvals for a turn or a session.

Each covers calls that nobody is asked about any more. It ends with its turn or its run, when its
time is over, or by `turnlock revoke`.

\b
Exit status:
  0  they were listed, or there are none
  1  the journal could not be read to its end
  2  wrong usage, no journal, or no such run
"""


@click.command("grants", help=_GRANTS, short_help="List the grants of a run.")
@run_argument()
@place_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array instead.")
def grants(*, run_id: str, place: Place, as_json: bool) -> None:
    """List them."""
    found = with_runs(place, partial(grants_of, run_id=run_id), read_only=True)
    if as_json:
        click.echo(json.dumps([_as_json(it) for it in found], indent=2))
        return
    if not found:
        click.echo("no grant is in force: every call that needs approval is asked about")
    for it in found:
        _tell(it, command_line("revoke", run_id, str(it.number), place=place))


async def grants_of(runs: RunsAt, *, run_id: str) -> tuple[GrantView, ...]:
    """Return the grants of a run that are in force now; an unknown run is wrong usage."""
    return grants_in_force(await runs.facts(run_id), now=time.time())


def _tell(it: GrantView, revoking: str | None) -> None:
    click.echo(f"grant {it.number}  {harmless(it.covers)}")
    if it.match is Match.EXACT:
        click.echo(f"         {harmless(shown_json(it.arguments or {}))}")
        click.echo(f"         digest {it.arguments_digest[:DIGEST]}")
    call = f"for call {harmless(it.invocation_id)}"
    click.echo(f"         {harmless(it.given)}, {call}, {_when(it.at)}")
    if it.expires_at is not None:
        click.echo(f"         until {_when(it.expires_at)}")
    if revoking is not None:
        click.echo(f"         {revoking}")


def _when(at: float) -> str:
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):  # beyond the calendar
        return f"{at:.6g} s after 1970"


def _as_json(it: GrantView) -> dict[str, Any]:
    return {
        "grant_id": it.grant_id,
        "number": it.number,
        "tool_name": it.tool_name,
        "match": str(it.match),
        "scope": str(it.scope),
        "arguments": json.loads(canonical(it.arguments)),
        "arguments_digest": it.arguments_digest,
        "expires_at": it.expires_at,
        "given_by": it.by,
        "turn_id": it.turn_id,
        "invocation_id": it.invocation_id,
        "given_at": it.at,
    }


_REVOKE: Final = f"""Revoke a grant of RUN: from now on people are asked again.

GRANT is its number or its id, as `turnlock grants` lists them; neither is used again in a run, so
it can mean no other grant. What it has approved already stays approved: `turnlock interrupt` stops
that.
{EXIT_STATUS}"""


@click.command("revoke", help=_REVOKE, short_help="Revoke a grant of a run.")
@run_argument()
@click.argument("grant", required=False)
@delivering
@click.option("--all", "every", is_flag=True, help="Revoke all that are in force.")
def revoke(*, run_id: str, grant: str | None, place: Place, wait: float, every: bool) -> None:
    """Revoke it, and end with the status."""
    if every is (grant is not None):
        raise click.UsageError("give GRANT, by its number or its id, or --all")
    if grant is not None:
        wanted = [grant_id(run_id, int(grant)) if grant.isdecimal() else grant]
    else:
        found = with_runs(place, partial(grants_of, run_id=run_id), read_only=True)
        wanted = [it.grant_id for it in found]
    if not wanted:
        click.echo("no grant is in force")
    revoked = [
        deliver(place, Revoke(run_id=run_id, grant_id=it), run_id=run_id, wait=wait, done="revoked")
        for it in wanted
    ]
    sys.exit(0 if all(revoked) else 1)
