"""``turnlock deny``: keep a call from running, from another terminal."""

from __future__ import annotations

from typing import Final

import click

from ..models.deliveries import Decide
from .deciding import EXIT_STATUS, Found, deliver, delivering, person

_HELP: Final = f"""Deny a call of RUN that waits.

CALL is its id or its tool; without it the only one that waits is meant. The model is told
the reason.
{EXIT_STATUS}"""


@click.command("deny", help=_HELP, short_help="Deny a call that waits.")
@click.argument("run_id", metavar="RUN")
@click.argument("call", required=False)
@delivering
@click.option("--reason", metavar="TEXT", help="Why: for the model.")
def command(*, run_id: str, call: str | None, db: str, wait: float, reason: str | None) -> None:
    """Deny it, and end with the status."""

    def choose(found: Found) -> Decide:
        waiting = found.call(call)
        return Decide(
            run_id=run_id,
            turn_id=waiting.turn_id,
            invocation_id=waiting.invocation_id,
            approved=False,
            reason=reason or None,
            decided_by=person(),
        )

    deliver(db, run_id, wait=wait, choose=choose, done="denied")
