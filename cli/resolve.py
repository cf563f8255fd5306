"""``turnlock resolve``: say what became of a call in doubt, or have it run again (K-35)."""

from __future__ import annotations

from typing import Final

import click

from ..models.deliveries import Resolution, Resolve
from ..models.inputs import Input
from ..models.safe_text import harmless
from ..models.values import ABSENT
from ..views.call_view import CallView, resolved
from .decide import BOUND, EXIT_STATUS, Decision, delivering, json_option, toolbox_of
from .naming import run_argument
from .places import Place
from .shown import Named, Waiting, about, naming_options

_HELP: Final = f"""Settle a call of RUN that is in doubt: nobody knows whether it happened.

CALL is its id or its tool. One of --result, --error and --retry says what became of it: it
happened, with this result (any JSON); it failed; or it did not happen, or may happen twice, and is
run again. A call that another runtime starts is not ours to run again (K-58).

{BOUND.format(by="--attempt")} Of a call that was started once --digest says as much.
{EXIT_STATUS}"""

_AGAIN: Final = {
    True: "another runtime starts it, and it is not ours to run again; give --result or --error",
    False: "it cannot be run again now: it may be already, or its turn is being stopped",
}
"""Why a call in doubt may not be retried; whether it is observed."""


@click.command("resolve", help=_HELP, short_help="Settle a call that is in doubt.")
@run_argument()
@click.argument("call")
@delivering
@naming_options(attempt=True)
@click.option("--result", metavar="JSON", help="It happened, with this result.")
@click.option("--error", metavar="TEXT", help="It failed, or counts as failed: for the model.")
@click.option(
    "--tools",
    type=click.Path(),
    metavar="FILE",
    help="The file of the tools, which seals the result where its tool keeps it so.",
)
@click.option("--retry", is_flag=True, help="Run it again, with the same idempotency key.")
def command(  # noqa: PLR0913 - one parameter for each option
    *,
    run_id: str,
    place: Place,
    wait: float,
    named: Named,
    result: str | None,
    error: str | None,
    tools: str | None,
    retry: bool,
) -> None:
    """Settle it, and end with the status."""
    if [result is not None, error is not None, retry].count(True) != 1:
        raise click.UsageError(
            "give one of --result, --error and --retry, which say what became of it"
        )
    if error is not None and not error.strip():
        raise click.UsageError("--error is empty; say what is known")
    value = ABSENT if result is None else json_option("--result", result)
    as_ = Resolution.RETRY
    if not retry:
        as_ = Resolution.ERROR if result is None else Resolution.RESULT

    def delivery(call: CallView) -> Resolve:
        return resolved(call, as_, result=value, error=error)

    def question(call: CallView) -> str:
        if retry and Input.RESOLVE_RETRY not in call.allowed:
            raise click.ClickException(f"{about(call)}: {_AGAIN[call.observed]}")
        says = "run it again: it may happen twice"
        if not retry:
            says = f"it failed: {error}" if result is None else f"it happened, with {result}"
        return f"{about(call)}: {harmless(says)}?"

    decision = Decision(
        waiting=Waiting.in_doubt,
        question=question,
        delivery=delivery,
        done="resolved",
        tools=toolbox_of(tools),
        begins=retry,
    )
    decision.make(place, run_id, named=named, wait=wait)
