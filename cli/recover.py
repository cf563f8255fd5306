"""``turnlock recover``: decide that a run whose journal lost its tail goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import click

from ..adapters.correlation import correlate_of
from ..models.run import Run
from ..models.safe_text import harmless
from ..runtime.journal.contract import Journal
from ..runtime.recovery import Recovered, recover
from ..views.call_view import CallView, Waits
from .databases import db_option, entry_of, with_journal
from .naming import run_argument
from .others_runs import GOES_ON, is_guarded

_HELP: Final = """Let each RUN go on whose journal ends before what it acknowledged.

Such a run stands still: `turnlock show` says so. What its last owner did after the end of what is
left is known to nobody. So every call that is ready there, or was started, may have been run: it is
put in doubt, and its tool's policy settles it, or a person (turnlock resolve). Look at what waits
for approval before you approve it again: it may have been approved and run, too.

A run of a journal that was moved goes on where it was moved to, and is refused here. With --moved
it goes on here all the same: where the copy is lost for good, since otherwise both perform it.

A run whose row in the file is damaged is treated alike, and its row is written anew.

\b
Exit status:
  0  it goes on, or there was nothing to decide
  1  the journal failed, or was moved
  2  wrong usage, no journal, or no such run
"""


@click.command("recover", help=_HELP, short_help="Let a run go on whose journal lost its end.")
@run_argument("run_ids", metavar="RUN...", nargs=-1, required=True)
@click.option("--moved", is_flag=True, help="Also where it was moved to another journal.")
@db_option
def command(*, run_ids: tuple[str, ...], moved: bool, db: str) -> None:
    """Recover them, and say what was put in doubt."""

    async def work(journal: Journal) -> list[tuple[Run, Recovered]]:
        runs = [(await entry_of(journal, run_id)).run for run_id in run_ids]
        return [
            (
                run,
                await recover(
                    journal=journal, run_id=run.run_id, correlating=correlate_of, moved=moved
                ),
            )
            for run in runs
        ]

    for run, recovered in with_journal(db, work):
        for line in _told(run, recovered):
            click.echo(harmless(line))


def _told(run: Run, recovered: Recovered) -> Iterator[str]:
    if recovered.why is None:
        yield f"run {recovered.run_id}: nothing of it was lost; it stays as it is"
        return
    yield f"run {recovered.run_id}: {recovered.why}"
    for call in recovered.doubted:
        was = "was running" if call.waits is Waits.REPORT else "was ready to run"
        yield f"  doubt  {_shown(call)}: it {was}, and may have been run to its end since"
    for call in recovered.waiting:
        yield (
            f"  waits  {_shown(call)}: it may have been approved and run in what is lost; look"
            " before you approve it"
        )
    for effect_id in () if is_guarded(run) else recovered.continued:
        yield f"  again  {effect_id}: its results are handed over once more, under this id"
    doubts = len(recovered.doubted)
    settled = (
        f"; {doubts} in doubt: their tools' policies settle that, or turnlock resolve"
        if doubts
        else ""
    )
    goes_on = GOES_ON if is_guarded(run) else "it goes on once somebody opens it"
    yield f"  {goes_on}{settled}"


def _shown(call: CallView) -> str:
    return f"{call.invocation_id} {call.tool_name}"
