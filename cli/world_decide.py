"""``turnlock world approve`` and ``deny``: decide about a request of a chat, from any terminal.

A request names one call of one turn of one run (W-42); what is decided is judged by whoever
performs the member, or here where nobody does. So this is `turnlock approve`, by the request's id.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from ..models.errors import InvalidValue
from ..models.safe_text import harmless, harmless_lines
from .asking import at_terminal, name_of_person
from .decide import Decision, approval, approving, delivering, denial
from .places import Place
from .shown import Named, digest_option
from .world_naming import with_world

if TYPE_CHECKING:  # it would load the runtime
    from ..world.names import CallAt
    from ..world.publishing import World

F = TypeVar("F", bound=Callable[..., Any])

EXIT_STATUS: Final = """
\b
Exit status:
  0  accepted, or what it asks for holds already
  1  refused: what was shown does not wait any more, or for a reason of the
     kernel; or nothing was decided at the terminal, nobody answered in time,
     or the journal failed
  2  wrong usage, no journal, no such run, or no id of a request
"""

BOUND: Final = """It is about what you were shown and about nothing else: --digest says what the
arguments were, and `turnlock world show` and `follow` print the whole command. In a terminal it may
be left out: the call is shown, all of it, and you are asked."""


def as_option(function: F) -> F:
    """Add the option that says who decides."""
    return click.option(
        "--as", "by", metavar="NAME", help="Who decides, for the record.  [default: you]"
    )(function)


_APPROVE: Final = f"""Approve the call that REQUEST asks about.

{BOUND} Whoever performs the member goes on at once; no tool is ever run by this command.
{EXIT_STATUS}"""


@click.command("approve", help=_APPROVE, short_help="Approve a request of a chat.")
@click.argument("request")
@delivering
@as_option
@approving
@digest_option
def approve(
    *,
    request: str,
    place: Place,
    wait: float,
    by: str | None,
    digest: str | None,
    **how: Any,  # noqa: ANN401 - as `approval` takes it
) -> None:
    """Approve it, and end with the status."""
    call, by = _call(request), by or name_of_person()
    decision = approval(call.run_id, by=by, **how)
    _decide(decision, call, place, digest=digest, wait=wait, by=by)


_DENY: Final = f"""Deny the call that REQUEST asks about. The model is told the reason.

{BOUND}
{EXIT_STATUS}"""


@click.command("deny", help=_DENY, short_help="Deny a request of a chat.")
@click.argument("request")
@delivering
@as_option
@click.option("--reason", metavar="TEXT", help="Why: for the model.")
@digest_option
def deny(  # noqa: PLR0913 - one parameter for each option
    *,
    request: str,
    place: Place,
    wait: float,
    by: str | None,
    digest: str | None,
    reason: str | None,
) -> None:
    """Deny it, and end with the status."""
    call, by = _call(request), by or name_of_person()
    decision = denial(call.run_id, by=by, reason=reason)
    _decide(decision, call, place, digest=digest, wait=wait, by=by)


def _call(request: str) -> CallAt:
    """Return the call that a request asks about; what is no request is wrong usage."""
    from ..world.names import call_at  # noqa: PLC0415 - the runtime loads here

    try:
        return call_at(request, place="REQUEST")
    except InvalidValue as error:
        raise click.UsageError(harmless_lines(str(error))) from error


def _decide(  # noqa: PLR0913 - what is decided, about what, where, and by whom
    decision: Decision,
    call: CallAt,
    place: Place,
    *,
    digest: str | None,
    wait: float,
    by: str,
) -> None:
    _check_member(call, place, by=by)
    if digest is None and not at_terminal():
        raise click.UsageError(
            "standard input is no terminal, so nobody can be shown what is decided: give --digest"
            " of what you were shown; turnlock world show prints the whole command"
        )
    named = Named(call=call.invocation_id, turn_id=call.turn_id, digest=digest, by_id=True)
    decision.make(place, call.run_id, named=named, wait=wait)


def _check_member(call: CallAt, place: Place, *, by: str) -> None:
    """Refuse whoever is no person of the world; a server looks at that itself."""
    from ..world.names import member_of  # noqa: PLC0415 - the runtime loads here
    from ..world.people import check_person  # noqa: PLC0415 - as above

    member = member_of(call.run_id)
    if member is None:
        raise click.UsageError(
            f"{harmless(call.run_id, limit=200)!r} is no run of a member; turnlock approve decides"
            " about calls of other runs"
        )
    if place.db is None:
        return

    async def work(world: World) -> None:
        check_person(by, await world.configuration(), place="--as")

    with_world(place.db, member.world, work, read_only=True)
