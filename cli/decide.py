"""``turnlock approve``, ``deny`` and ``interrupt``: decide about a run, from another terminal.

A decision is about what its maker was shown: that is said with it, or shown and asked about here.
Whoever owns the run judges it; where nobody does, it is judged here (see `runtime.submitting`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeVar, cast

import attrs
import click

from ..models.calls import Call
from ..models.deliveries import Decide, Delivery, Interrupt, Match, Scope
from ..models.errors import InvalidValue, TurnlockError
from ..models.fact import FactType
from ..models.reasons import Reason
from ..models.record import changed
from ..models.run import Run
from ..models.safe_text import harmless, harmless_lines
from ..models.sealed import is_sealed
from ..models.strict_json import parse
from ..models.values import Json, arguments_digest, freeze
from ..runtime.submitting import Submitted
from ..runtime.tools.sealing import Place as SealedAt
from ..runtime.tools.toolbox import Toolbox
from ..views.call_view import CallView
from ..views.meanings import REASONS, refused
from ..views.turn_view import TurnView
from .asking import at_terminal, confirm, person
from .naming import run_argument
from .others_runs import GOES_ON, interrupted_member, is_guarded, refuse_over
from .places import Place, place_options
from .runs_at import Choose, RunsAt, with_runs
from .shown import (
    LikeAnother,
    Named,
    Waiting,
    about,
    calls_asked,
    demand,
    digest_of,
    naming_options,
    whole,
    whole_arguments,
)

F = TypeVar("F", bound=Callable[..., Any])

EXIT_STATUS: Final = """
\b
Exit status:
  0  accepted, or what it asks for holds already
  1  refused: what was shown does not wait any more, or for a reason of the
     kernel; or nothing was decided at the terminal, nobody answered in time,
     or the journal failed
  2  wrong usage, no journal, no such run, or nothing there to decide about
"""


def delivering(command: F) -> F:
    """Add the options that each command has which delivers something."""
    for option in (
        click.option(
            "--wait",
            type=click.FloatRange(min=0.0),
            default=10.0,
            show_default=True,
            metavar="S",
            help="Seconds to wait for the process that performs the run.",
        ),
        place_options,
    ):
        command = option(command)
    return command


@attrs.frozen(kw_only=True)
class Decision:
    """What is to be decided about one call, and what its maker is asked."""

    waiting: Callable[[TurnView | None], Waiting]
    question: Callable[[CallView], str]
    """What is asked about the call that was shown; it says what the answer yes does."""
    delivery: Callable[[CallView], Delivery]
    done: str
    tools: Toolbox | None = None
    """What the tools take, where nobody performs the run: an owner knows it itself."""
    covers: Callable[[CallView, CallView], bool] = lambda _, __: False
    """Whether another call that waits is decided with the first one: a grant reaches further."""
    begins: bool = False
    """Whether it has a call begin."""

    def make(self, place: Place, run_id: str, *, named: Named, wait: float) -> None:
        """Find the call, ask about it where nobody has said what was shown, and have it judged."""
        if self.begins:
            refuse_over(place, run_id)
        bound = named.bound
        if not bound and at_terminal():
            found = partial(self._found, run_id=run_id, named=named)
            call, others = with_runs(place, found, read_only=True)
            if others:
                click.echo(f"{self.done} at once with what is asked about below:", err=True)
            for line in (line for it in (*others, call) for line in whole(self._clear(it))):
                click.echo(line, err=True)
            confirm(self.question(call))
            named, bound = Named.of(call), True

        asked: Mapping[str, Call] = {}

        def chosen(turn: TurnView | None) -> Delivery:
            nonlocal named
            call = self.waiting(turn).call(named, bound=bound, asked=asked)
            if not bound:
                demand(call, place=place)
            named = Named.of(call)  # chosen again, after a conflict, it is this call or none
            return self.delivery(call)

        done = partial(
            deliver, place, chosen, run_id=run_id, wait=wait, done=self.done, tools=self.tools
        )
        try:
            accepted = done()
        except LikeAnother:  # by all that is known of it; its facts say more
            asked = calls_asked(with_runs(place, lambda runs: runs.facts(run_id), read_only=True))
            accepted = done()
        if not accepted:
            sys.exit(1)

    def _clear(self, call: CallView) -> CallView:
        """Return a call with the arguments that its tool gets, where the key is here."""
        if self.tools is None or not is_sealed(call.arguments):
            return call
        place = SealedAt(call.run_id, call.turn_id, call.invocation_id)
        return changed(call, arguments=self.tools.seals.clear_arguments(call.arguments, place))

    async def _found(
        self, runs: RunsAt, *, run_id: str, named: Named
    ) -> tuple[CallView, tuple[CallView, ...]]:
        """Return the call, and those that are decided with it."""
        waiting = self.waiting(await runs.open_turn(run_id))
        call = waiting.call(named, bound=False)
        here = (it for it in waiting.calls if it.invocation_id != call.invocation_id)
        return call, tuple(it for it in here if self.covers(call, it))


def deliver(  # noqa: PLR0913 - what is delivered, where, and how it is told
    place: Place,
    delivery: Delivery | Choose,
    *,
    run_id: str,
    wait: float,
    done: str,
    tools: Toolbox | None = None,
) -> bool:
    """Have a delivery judged, or what is chosen from the run; tell what came of it, and return it.

    Errors end the command, as in `with_runs`.
    """

    async def work(runs: RunsAt) -> tuple[Submitted, Run]:
        submitted = await runs.submit(run_id, delivery, within=wait, tools=tools)
        return submitted, await runs.run(run_id)

    submitted, run = with_runs(place, work)
    receipt, judged = submitted.receipt, cast("Any", submitted.delivery)
    names = (getattr(judged, name, None) for name in ("invocation_id", "grant_id", "turn_id"))
    what = harmless(next(name for name in names if name is not None))
    if not receipt["accepted"]:
        reason = Reason(receipt["reason"])
        if reason is Reason.DUPLICATE:  # somebody was quicker, or it was judged once before (F-22)
            click.echo(f"{REASONS[reason]}: {what}")
            return True
        click.echo(f"{refused(reason, long=True)} ({what}); turnlock explain {reason}", err=True)
        return False
    where = GOES_ON if is_guarded(run) else "nobody performs the run now: start it again"
    click.echo(f"{done} {what}; {'its owner goes on' if submitted.by_owner else where}")
    for it in receipt["facts"]:
        if it["type"] == FactType.TOOL_APPROVED and harmless(it["invocation_id"]) != what:
            click.echo(f"approved {harmless(it['invocation_id'])} with it: the grant covers it")
    return True


BOUND: Final = """It is about what you were shown and about nothing else: --turn and {by} say what
that was, and `turnlock show` prints the whole command. If anything else is there by then, nothing
is decided. In a terminal they may be left out: the call is shown, all of it, and you are asked."""

_APPROVE: Final = f"""Approve a call of RUN that waits.

CALL is its id or its tool; without it the only one that waits is meant.

{BOUND.format(by="--digest")} Where a process performs the run it goes on at once; no tool is ever
run by this command. Its tools say whether --arguments fit, and if not, nothing is decided; where
nobody performs it, --tools is asked, else that is seen when the call starts.
{EXIT_STATUS}"""


def approving(command: F) -> F:
    """Add the options that say how far an approval reaches, and with which arguments."""
    for option in (
        click.option("--reason", metavar="TEXT", help="For the record."),
        click.option(
            "--tools",
            type=click.Path(),
            metavar="FILE",
            help="Hold --arguments against this file's tools, and open what they keep sealed.",
        ),
        click.option("--arguments", metavar="JSON", help="Run it with these arguments instead."),
        click.option(
            "--expires-in",
            type=click.FloatRange(min=0.0),
            metavar="S",
            help="With a scope: for S seconds.",
        ),
        click.option(
            "--any-arguments", is_flag=True, help="With a scope: whatever the tool's arguments."
        ),
        click.option(
            "--scope",
            type=click.Choice([str(scope) for scope in Scope]),
            default=str(Scope.ONCE),
            show_default=True,
            help="How far it reaches.",
        ),
    ):
        command = option(command)
    return command


@click.command("approve", help=_APPROVE, short_help="Approve a call that waits.")
@run_argument()
@click.argument("call", required=False)
@delivering
@naming_options()
@approving
def approve(*, run_id: str, place: Place, wait: float, named: Named, **how: Any) -> None:  # noqa: ANN401 - as `approval` takes it
    """Approve it, and end with the status."""
    approval(run_id, by=person(), **how).make(place, run_id, named=named, wait=wait)


def approval(  # noqa: PLR0913 - one parameter for each option
    run_id: str,
    *,
    by: str,
    scope: str,
    any_arguments: bool,
    expires_in: float | None,
    arguments: str | None,
    tools: str | None,
    reason: str | None,
) -> Decision:
    """Return the decision that approves a call of a run. Raises `click.UsageError`."""
    if Scope(scope) is Scope.ONCE and (any_arguments or expires_in is not None):
        raise click.UsageError(
            "--any-arguments and --expires-in need --scope turn or session; give one"
        )
    edited = None if arguments is None else _object(arguments)
    toolbox = toolbox_of(tools)

    def delivery(call: CallView) -> Decide:
        return Decide(
            run_id=run_id,
            turn_id=call.turn_id,
            invocation_id=call.invocation_id,
            approved=True,
            reason=reason,
            decided_by=by,
            scope=Scope(scope),
            match=Match.TOOL if any_arguments else Match.EXACT,
            expires_in=expires_in,
            arguments_digest=call.arguments_digest,
            arguments=edited,
        )

    def covers(call: CallView, other: CallView) -> bool:
        """As K-40 has it: of the same tool, and with the arguments that are approved."""
        digest = digest_of(call) if edited is None else arguments_digest(edited)
        return (
            Scope(scope) is not Scope.ONCE
            and other.tool_name == call.tool_name
            and (any_arguments or digest_of(other) == digest)
        )

    def question(call: CallView) -> str:
        asked = f"Approve {about(call)}"
        if edited is not None:
            asked = f"{whole_arguments(edited)}\n{asked} with these arguments instead"
        if Scope(scope) is not Scope.ONCE:
            which = "whatever the arguments" if any_arguments else "with these very arguments"
            asked += f", and every call of the tool in this {scope} {which}"
        return asked + "?"

    return Decision(
        waiting=Waiting.for_approval,
        question=question,
        delivery=delivery,
        done="approved",
        tools=toolbox,
        covers=covers,
        begins=True,
    )


def toolbox_of(path: str | None) -> Toolbox | None:
    """Return the tools of --tools; a file that has none is wrong usage."""
    try:
        return None if path is None else Toolbox.from_file(path)
    except TurnlockError as error:
        raise click.UsageError(harmless_lines(str(error))) from error


def json_option(name: str, text: str) -> Json:
    """Return the value that an option gives as JSON; what is none is wrong usage."""
    try:
        value: Json = freeze(parse(text), place=name)
    except InvalidValue as error:
        where = "" if error.place.startswith(name) else f"{name}: "
        raise click.UsageError(harmless_lines(f"{where}{error}")) from error
    return value


def _object(text: str) -> Mapping[str, Json]:
    value = json_option("--arguments", text)
    if not isinstance(value, Mapping):
        raise click.UsageError('--arguments: are no JSON object; give {"name": …}')
    return value


_DENY: Final = f"""Deny a call of RUN that waits.

CALL is its id or its tool; without it the only one that waits is meant. The model is told
the reason.

{BOUND.format(by="--digest")}
{EXIT_STATUS}"""


@click.command("deny", help=_DENY, short_help="Deny a call that waits.")
@run_argument()
@click.argument("call", required=False)
@delivering
@naming_options()
@click.option("--reason", metavar="TEXT", help="Why: for the model.")
def deny(*, run_id: str, place: Place, wait: float, named: Named, reason: str | None) -> None:
    """Deny it, and end with the status."""
    denial(run_id, by=person(), reason=reason).make(place, run_id, named=named, wait=wait)


def denial(run_id: str, *, by: str, reason: str | None) -> Decision:
    """Return the decision that denies a call of a run."""

    def delivery(call: CallView) -> Decide:
        return Decide(
            run_id=run_id,
            turn_id=call.turn_id,
            invocation_id=call.invocation_id,
            approved=False,
            reason=reason or None,
            decided_by=by,
            arguments_digest=call.arguments_digest,
        )

    return Decision(
        waiting=Waiting.for_approval,
        question=lambda call: f"Deny {about(call)}?",
        delivery=delivery,
        done="denied",
    )


_INTERRUPT: Final = f"""Interrupt the turn of RUN that is open.

What has not started is denied, what runs is asked to stop and may still report while the grace
lasts, and the model is not told (K-53). With --turn only that turn is meant: if another is open by
then, nothing is done. A member of a world, W/C/A, is stopped while its model speaks, too.
{EXIT_STATUS}"""


@click.command("interrupt", help=_INTERRUPT, short_help="Interrupt the turn of a run.")
@run_argument()
@delivering
@click.option("--turn", "turn_id", metavar="ID", help="The turn that is meant.")
@click.option("--reason", metavar="TEXT", help="For the record.")
@click.option(
    "--grace",
    type=click.FloatRange(min=0.0),
    default=10.0,
    show_default=True,
    metavar="S",
    help="Seconds in which what runs may still report.",
)
def interrupt(  # noqa: PLR0913 - one parameter for each option
    *, run_id: str, place: Place, wait: float, turn_id: str | None, reason: str | None, grace: float
) -> None:
    """Interrupt it, and end with the status."""
    if turn_id is None and interrupted_member(place, run_id, wait=wait, reason=reason, grace=grace):
        return

    def chosen(turn: TurnView | None) -> Interrupt:
        nonlocal turn_id
        if turn_id is None:
            if turn is None:
                raise click.UsageError(
                    "no turn of this run is open; turnlock show tells what it does"
                )
            turn_id = turn.turn_id  # chosen again, after a conflict, it is this turn or none
        return Interrupt(run_id=run_id, turn_id=turn_id, reason=reason, grace=grace)

    if not deliver(place, chosen, run_id=run_id, wait=wait, done="interrupted turn"):
        sys.exit(1)
