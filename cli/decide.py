"""``turnlock approve``, ``deny`` and ``interrupt``: decide about a run, from another terminal.

The run is read, a delivery is chosen by what waits there, and whoever owns the run judges it; where
nobody does, it is judged here (see `runtime.writer`).
"""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar, cast

import attrs
import click

from ..engine.kernel import Kernel
from ..models.deliveries import Decide, Delivery, Interrupt, Match, Scope
from ..models.errors import InvalidValue
from ..models.reasons import Reason
from ..models.safe_text import harmless
from ..models.strict_json import parse
from ..models.values import Json
from ..runtime.journal.contract import Journal
from ..runtime.writer import Submitted, submit
from ..views.call_view import CallView
from ..views.live import calls_of
from ..views.meanings import refused
from .databases import db_option, entry_of, with_journal

F = TypeVar("F", bound=Callable[..., Any])

_EXIT_STATUS: Final = """
\b
Exit status:
  0  accepted
  1  refused, not answered in time, or the journal failed
  2  wrong usage, no journal, no such run, or nothing there to decide about
"""


def _delivering(command: F) -> F:
    """Add the options that each of them has."""
    for option in (
        click.option(
            "--wait",
            type=click.FloatRange(min=0.0),
            default=10.0,
            show_default=True,
            metavar="S",
            help="Seconds to wait for the process that performs the run.",
        ),
        db_option,
    ):
        command = option(command)
    return command


@attrs.frozen(kw_only=True)
class _Found:
    """What there is to decide about."""

    turn_id: str | None
    """The open turn."""
    waiting: tuple[CallView, ...]

    def call(self, wanted: str | None) -> CallView:
        """Return the call that waits: the one named, by id or tool, or the only one."""
        waiting = self.waiting
        found = [it for it in waiting if wanted in {None, it.invocation_id}] or [
            it for it in waiting if wanted == it.tool_name
        ]
        if len(found) == 1:
            return found[0]
        raise click.UsageError(_unfound(waiting, found, wanted))


def _deliver(
    db: str, run_id: str, *, wait: float, choose: Callable[[_Found], Decide | Interrupt], done: str
) -> None:
    """Read the run, choose what to deliver, have it judged, tell it, and end with the status."""

    def chosen(kernel: Kernel) -> Delivery:
        turn_id = None if kernel.turn is None else kernel.turn.turn_id
        return choose(_Found(turn_id=turn_id, waiting=tuple(calls_of(kernel, gated=True))))

    async def work(journal: Journal) -> Submitted:
        await entry_of(journal, run_id)
        return await submit(journal, run_id, chosen, within=wait)

    submitted = with_journal(db, work)
    receipt = submitted.receipt
    delivery = cast("Decide | Interrupt", submitted.delivery)
    about = delivery.turn_id if isinstance(delivery, Interrupt) else delivery.invocation_id
    what = harmless(about)
    if not receipt["accepted"]:
        reason = Reason(receipt["reason"])
        click.echo(f"{refused(reason, long=True)} ({what}); turnlock explain {reason}", err=True)
        sys.exit(1)
    where = (
        "its owner goes on" if submitted.by_owner else "nobody performs the run now: start it again"
    )
    click.echo(f"{done} {what}; {where}")


def _person() -> str:
    """Return who decides, for the record."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user without a name
        return "somebody"


def _unfound(waiting: Sequence[CallView], found: Sequence[CallView], wanted: str | None) -> str:
    if not waiting:
        return "no call of this run waits for approval; turnlock show tells what it does"
    listed = "\n  ".join(
        harmless(f"{it.invocation_id}  {it.tool_name}") for it in (found or waiting)
    )
    if wanted is None or found:
        return f"{len(found)} calls wait; say which, by its id:\n  {listed}"
    return f"no call {harmless(wanted, limit=80)!r} waits for approval; these do:\n  {listed}"


_APPROVE: Final = f"""Approve a call of RUN that waits.

CALL is its id or its tool; without it the only one that waits is meant.

The decision is about the arguments as `turnlock show` prints them; if others wait by then it is
refused. Where a process performs the run it goes on at once; no tool is ever run by this command.
{_EXIT_STATUS}"""


@click.command("approve", help=_APPROVE, short_help="Approve a call that waits.")
@click.argument("run_id", metavar="RUN")
@click.argument("call", required=False)
@_delivering
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
def approve(  # noqa: PLR0913 - one parameter for each option
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

    def choose(found: _Found) -> Decide:
        waiting = found.call(call)
        try:
            return Decide(
                run_id=run_id,
                turn_id=waiting.turn_id,
                invocation_id=waiting.invocation_id,
                approved=True,
                reason=reason,
                decided_by=_person(),
                scope=Scope(scope),
                match=Match.TOOL if any_arguments else Match.EXACT,
                expires_in=expires_in,
                arguments_digest=waiting.arguments_digest,
                arguments=None if arguments is None else _arguments(arguments),
            )
        except InvalidValue as error:
            raise click.UsageError(str(error)) from error

    _deliver(db, run_id, wait=wait, choose=choose, done="approved")


def _arguments(text: str) -> dict[str, Json]:
    value = parse(text)
    if not isinstance(value, dict):
        raise InvalidValue(place="--arguments", cause="are no JSON object", fix='give {"name": …}')
    return cast("dict[str, Json]", value)


_DENY: Final = f"""Deny a call of RUN that waits.

CALL is its id or its tool; without it the only one that waits is meant. The model is told
the reason.
{_EXIT_STATUS}"""


@click.command("deny", help=_DENY, short_help="Deny a call that waits.")
@click.argument("run_id", metavar="RUN")
@click.argument("call", required=False)
@_delivering
@click.option("--reason", metavar="TEXT", help="Why: for the model.")
def deny(*, run_id: str, call: str | None, db: str, wait: float, reason: str | None) -> None:
    """Deny it, and end with the status."""

    def choose(found: _Found) -> Decide:
        waiting = found.call(call)
        return Decide(
            run_id=run_id,
            turn_id=waiting.turn_id,
            invocation_id=waiting.invocation_id,
            approved=False,
            reason=reason or None,
            decided_by=_person(),
        )

    _deliver(db, run_id, wait=wait, choose=choose, done="denied")


_INTERRUPT: Final = f"""Interrupt the turn of RUN that is open.

What has not started is denied, what runs is asked to stop and may still report while the grace
lasts, and the model is not told (K-53).
{_EXIT_STATUS}"""


@click.command("interrupt", help=_INTERRUPT, short_help="Interrupt the turn of a run.")
@click.argument("run_id", metavar="RUN")
@_delivering
@click.option("--reason", metavar="TEXT", help="For the record.")
@click.option(
    "--grace",
    type=click.FloatRange(min=0.0),
    default=10.0,
    show_default=True,
    metavar="S",
    help="Seconds in which what runs may still report.",
)
def interrupt(*, run_id: str, db: str, wait: float, reason: str | None, grace: float) -> None:
    """Interrupt it, and end with the status."""

    def choose(found: _Found) -> Interrupt:
        if found.turn_id is None:
            raise click.UsageError("no turn of this run is open; turnlock show tells what it does")
        return Interrupt(run_id=run_id, turn_id=found.turn_id, reason=reason, grace=grace)

    _deliver(db, run_id, wait=wait, choose=choose, done="interrupted turn")
