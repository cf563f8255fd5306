"""What `approve`, `deny` and `interrupt` share: whom they are about, and how it is delivered."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar, cast

import attrs
import click

from ..engine.kernel import Kernel
from ..models.deliveries import Decide, Delivery, Interrupt
from ..models.safe_text import harmless
from ..runtime.journal.contract import Journal
from ..runtime.writer import Submitted, submit
from ..views.call_view import CallView
from ..views.live import calls_of
from .databases import db_option, entry_of, with_journal

F = TypeVar("F", bound=Callable[..., Any])

EXIT_STATUS: Final = """
\b
Exit status:
  0  accepted
  1  refused, not answered in time, or the journal failed
  2  wrong usage, no journal, no such run, or nothing there to decide about
"""


def delivering(command: F) -> F:
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
class Found:
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


def deliver(
    db: str, run_id: str, *, wait: float, choose: Callable[[Found], Decide | Interrupt], done: str
) -> None:
    """Read the run, choose what to deliver, have it judged, tell it, and end with the status."""

    def chosen(kernel: Kernel) -> Delivery:
        turn_id = None if kernel.turn is None else kernel.turn.turn_id
        return choose(Found(turn_id=turn_id, waiting=tuple(calls_of(kernel, gated=True))))

    async def work(journal: Journal) -> Submitted:
        await entry_of(journal, run_id)
        return await submit(journal, run_id, chosen, within=wait)

    submitted = with_journal(db, work)
    receipt = submitted.receipt
    delivery = cast("Decide | Interrupt", submitted.delivery)
    about = delivery.turn_id if isinstance(delivery, Interrupt) else delivery.invocation_id
    what = harmless(about)
    if not receipt["accepted"]:
        reason = receipt["reason"]
        click.echo(f"refused: {reason} ({what}); turnlock explain {reason}", err=True)
        sys.exit(1)
    where = (
        "its owner goes on" if submitted.by_owner else "nobody performs the run now: start it again"
    )
    click.echo(f"{done} {what}; {where}")


def person() -> str:
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
