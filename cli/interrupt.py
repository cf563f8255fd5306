"""``turnlock interrupt``: stop the turn of a run, from another terminal."""

from __future__ import annotations

from typing import Final

import click

from ..models.deliveries import Interrupt
from .deciding import EXIT_STATUS, Found, deliver, delivering

_HELP: Final = f"""Interrupt the turn of RUN that is open.

What has not started is denied, what runs is asked to stop and may still report while the grace
lasts, and the model is not told (K-53).
{EXIT_STATUS}"""


@click.command("interrupt", help=_HELP, short_help="Interrupt the turn of a run.")
@click.argument("run_id", metavar="RUN")
@delivering
@click.option("--reason", metavar="TEXT", help="For the record.")
@click.option(
    "--grace",
    type=click.FloatRange(min=0.0),
    default=10.0,
    show_default=True,
    metavar="S",
    help="Seconds in which what runs may still report.",
)
def command(*, run_id: str, db: str, wait: float, reason: str | None, grace: float) -> None:
    """Interrupt it, and end with the status."""

    def choose(found: Found) -> Interrupt:
        if found.turn_id is None:
            raise click.UsageError("no turn of this run is open; turnlock show tells what it does")
        return Interrupt(run_id=run_id, turn_id=found.turn_id, reason=reason, grace=grace)

    deliver(db, run_id, wait=wait, choose=choose, done="interrupted turn")
