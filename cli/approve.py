"""``turnlock approve``: let a call run, from another terminal."""

from __future__ import annotations

from typing import Final, cast

import click

from ..models.deliveries import Decide, Match, Scope
from ..models.errors import InvalidValue
from ..models.strict_json import parse
from ..models.values import Json
from .deciding import EXIT_STATUS, Found, deliver, delivering, person

_HELP: Final = f"""Approve a call of RUN that waits.

CALL is its id or its tool; without it the only one that waits is meant.

The decision is about the arguments as `turnlock show` prints them; if others wait by then it is
refused. Where a process performs the run it goes on at once; no tool is ever run by this command.
{EXIT_STATUS}"""


@click.command("approve", help=_HELP, short_help="Approve a call that waits.")
@click.argument("run_id", metavar="RUN")
@click.argument("call", required=False)
@delivering
@click.option(
    "--scope",
    type=click.Choice([str(scope) for scope in Scope]),
    default=str(Scope.ONCE),
    show_default=True,
    help="How far it reaches.",
)
@click.option("--any-arguments", is_flag=True, help="With a scope: whatever the tool's arguments.")
@click.option(
    "--expires-in", type=click.FloatRange(min=0.0), metavar="S", help="With a scope: for S seconds."
)
@click.option("--arguments", metavar="JSON", help="Run it with these arguments instead.")
@click.option("--reason", metavar="TEXT", help="For the record.")
def command(  # noqa: PLR0913 - one parameter for each option
    *,
    run_id: str,
    call: str | None,
    db: str,
    wait: float,
    scope: str,
    any_arguments: bool,
    expires_in: float | None,
    arguments: str | None,
    reason: str | None,
) -> None:
    """Approve it, and end with the status."""
    if Scope(scope) is Scope.ONCE and (any_arguments or expires_in is not None):
        raise click.UsageError(
            "--any-arguments and --expires-in need --scope turn or session; give one"
        )

    def choose(found: Found) -> Decide:
        waiting = found.call(call)
        try:
            return Decide(
                run_id=run_id,
                turn_id=waiting.turn_id,
                invocation_id=waiting.invocation_id,
                approved=True,
                reason=reason,
                decided_by=person(),
                scope=Scope(scope),
                match=Match.TOOL if any_arguments else Match.EXACT,
                expires_in=expires_in,
                arguments_digest=waiting.arguments_digest,
                arguments=None if arguments is None else _arguments(arguments),
            )
        except InvalidValue as error:
            raise click.UsageError(str(error)) from error

    deliver(db, run_id, wait=wait, choose=choose, done="approved")


def _arguments(text: str) -> dict[str, Json]:
    value = parse(text)
    if not isinstance(value, dict):
        raise InvalidValue(place="--arguments", cause="are no JSON object", fix='give {"name": …}')
    return cast("dict[str, Json]", value)
