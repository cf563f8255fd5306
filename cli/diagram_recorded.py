"""``turnlock diagram run`` and ``coverage``: pictures of what was recorded."""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final, TypeVar

import click
from click.core import ParameterSource

from ..diagrams.coverage import Counts, coverage_picture
from ..diagrams.drawing.engines import Engine
from ..diagrams.life import life_picture
from ..diagrams.picture import Picture
from ..diagrams.recordings.recording import Recording
from ..diagrams.runs import run_picture
from ..diagrams.sequence.counterexample import counterexample_picture
from ..diagrams.sequence.picture import sequence_picture
from ..diagrams.timeline.picture import timeline_picture
from ..lifecycle.table import INVOCATION
from ..machines.rows import Machine
from ..models.facts import CallAdded, TurnOpened
from ..models.safe_text import harmless
from ..turn.table import TURN
from ..verification.replay.lines import Problems
from ..verification.replay.tally import Tally
from .choosing import Listing, chosen
from .diagram_input import (
    Candidate,
    Kind,
    Source,
    candidates_of,
    candidates_of_db,
    counts_of,
    findings_of,
    regression_of,
    source_of,
)
from .diagram_output import EXIT_STATUS, STANDARD_OUTPUT, Output, drawing, with_engine
from .naming import db_unless, run_ids
from .replay_options import replay_options, settings_of, tell_problems

_RUN_HELP: Final = f"""Draw one run of FILE, which is

\b
- a log as `turnlock check` reads it: facts, or deliveries with their receipts, or the wire;
- a recording as `turnlock replay` reads it, then replayed with the same options;
- what `turnlock verify --json` wrote: --run chooses the finding, its counterexample is drawn;
- a regression that a conformance suite told you to keep.

With --db JOURNAL instead it is a run of a journal, which `turnlock run` or your own runtime keeps.

Without --run the only run is drawn, or the runs are listed. Ids may be shortened. What is drawn is
when each invocation was in which phase; with --invocation its path through the machine; with --view
what is named. A page (.html, .md) of a run holds the sequence of its messages, too.
{EXIT_STATUS}"""

_COVERAGE_HELP: Final = f"""Draw a machine with how often each of its rows was met.

FILE is what `turnlock verify --json` wrote, or anything that `turnlock diagram run` reads: then all
its runs are counted.
{EXIT_STATUS}"""

_MACHINES: Final[dict[str, Machine[Any, Any]]] = {"invocation": INVOCATION, "turn": TURN}

F = TypeVar("F", bound=Callable[..., Any])
_NAMED: Final = 10
"""Turns or invocations that a message names."""


class View(StrEnum):
    """How a run is looked at."""

    TIMELINE = "timeline"
    """When what happened: a bar for each invocation."""
    SEQUENCE = "sequence"
    """Who told whom what, and what was refused."""
    LIFE = "life"
    """The path of one invocation through its machine."""


def _from_file_or_db(function: F) -> F:
    with_db = click.option("--db", metavar="JOURNAL", help="A journal, or TURNLOCK_DB, instead.")
    return click.argument("file", type=click.Path(), required=False)(with_db(function))


@click.command("run", help=_RUN_HELP, short_help="One recorded run, turn or invocation.")
@_from_file_or_db
@click.option(
    "--run",
    "run",
    metavar="ID",
    shell_complete=run_ids,
    help="The run, or the finding of a report.",
)
@click.option("--turn", metavar="ID", help="This turn alone.")
@click.option("--invocation", metavar="ID", help="This invocation alone.")
@click.option("--view", type=click.Choice([str(view) for view in View]), help="What to draw.")
@replay_options
@with_engine
@drawing
def draw_run(  # noqa: PLR0913 - one parameter for each option
    *,
    output: Output,
    file: str | None,
    db: str | None,
    run: str | None,
    turn: str | None,
    invocation: str | None,
    view: str | None,
    engine: str,
    **hosted: Any,  # noqa: ANN401 - passed on as they came
) -> None:
    """Draw one run of a file, or list its runs."""
    db = db_unless(file, db)
    problems, tally = Problems(), Tally()
    source = _source(file, db, problems)
    if source is not None and source.kind is Kind.DOCUMENT:
        _refuse("report", "view", "turn", "invocation", *hosted)
        _draw_finding(source, run, output)
        return
    if source is not None and source.kind is Kind.REGRESSION:
        _refuse("regression", "run", "view", "turn", "invocation", *hosted)
        picture = regression_of(source)
        output.take(lambda: picture)
        return
    candidates = _candidates(source, db, problems, tally, hosted)
    listing = Listing(
        rows={name: (one.size, name) for name, one in candidates.items()},
        sizes="turns" if db is None else "facts",
    )
    picked = _picked(file or db or "", listing, run, output)
    if picked is not None:
        recording = candidates[picked].record()
        output.take(
            lambda: view_of(
                recording,
                view=None if view is None else View(view),
                turn=turn,
                invocation=invocation,
                engine=Engine(engine),
            )
        )
    _end(tally, problems)


@click.command("coverage", help=_COVERAGE_HELP, short_help="A machine, and what was met of it.")
@_from_file_or_db
@click.option(
    "--machine",
    type=click.Choice(list(_MACHINES)),
    default="invocation",
    show_default=True,
    help="Which machine.",
)
@replay_options
@with_engine
@drawing
def draw_coverage(
    *,
    output: Output,
    file: str | None,
    db: str | None,
    machine: str,
    engine: str,
    **hosted: Any,  # noqa: ANN401 - passed on as they came
) -> None:
    """Draw a machine with its counts."""
    db = db_unless(file, db)
    problems, tally = Problems(), Tally()
    source = _source(file, db, problems)
    if source is not None and source.kind is Kind.DOCUMENT:
        _refuse("report", *hosted)
        counts = counts_of(source)
    else:
        candidates = _candidates(source, db, problems, tally, hosted)
        counts = Counts.of(candidate.record() for candidate in candidates.values())
    output.take(lambda: coverage_picture(counts, _MACHINES[machine], engine=Engine(engine)))
    _end(tally, problems)


def _source(file: str | None, db: str | None, problems: Problems) -> Source | None:
    """Begin to read the file; None for a journal, which is read run by run."""
    if (file is None) is (db is None):
        fix = "" if db is None else "; --run names a run of JOURNAL"
        raise click.UsageError(f"give FILE, or --db JOURNAL, and not both{fix}")
    return None if file is None else source_of(file, problems)


def _candidates(
    source: Source | None,
    db: str | None,
    problems: Problems,
    tally: Tally,
    hosted: dict[str, Any],
) -> dict[str, Candidate]:
    """Return the runs that can be drawn, at least one."""
    if source is not None and source.kind is Kind.REGRESSION:
        raise click.UsageError("a regression has no counts; play it with `turnlock verify`")
    if source is None or source.kind is Kind.LOG:
        _refuse("journal" if source is None else "log", *hosted)
    if source is None:
        return candidates_of_db(db or "")
    found = candidates_of(source, problems, settings_of(**hosted), tally)
    tell_problems(problems)
    if not found:
        sys.exit(2)
    return found


def _refuse(what: str, *names: str) -> None:
    """Refuse options that would do nothing for this kind of file."""
    context = click.get_current_context()
    for name in names:
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            raise click.UsageError(f"--{name} means nothing for a {what}; leave it out")


def _draw_finding(source: Source, run: str | None, output: Output) -> None:
    found = findings_of(source)
    rows = {name: (one.steps, f"{name}  {one.rule} {one.message}") for name, one in found.items()}
    listing = Listing(rows=rows, what="finding", sizes="steps")
    picked = _picked(source.file, listing, run, output)
    if picked is not None:
        output.take(lambda: counterexample_picture(found[picked].finding))


def _picked(file: str, listing: Listing, run: str | None, output: Output) -> str | None:
    """Return the id that is meant; None where there are several and they were listed."""
    if run is not None:
        return listing.chosen(run)
    if len(listing.rows) == 1:
        return next(iter(listing.rows))
    if output.target != STANDARD_OUTPUT:
        raise listing.unclear(file)
    listing.show()
    return None


def _end(tally: Tally, problems: Problems) -> None:
    """End with 1 if something was wrong beside the picture, and say what."""
    for failure in tally.failures:
        click.echo(f"failed: {failure}", err=True)
    if tally.failed or problems.count:
        sys.exit(1)


def view_of(
    recording: Recording,
    *,
    view: View | None,
    turn: str | None,
    invocation: str | None,
    engine: Engine,
) -> Picture:
    """Return the picture; without a view an invocation's life, else timeline and sequence.

    Ids may be shortened as a run's may. Raises `click.UsageError` for one that is not there.
    """
    members = _members(recording)
    turn_id = None if turn is None else chosen(list(members), turn, what="turn")
    if view is View.TIMELINE:
        if invocation is not None:
            raise click.UsageError("a timeline shows all invocations; leave --invocation out")
        return timeline_picture(recording, turn_id=turn_id)
    if view is View.LIFE or invocation is not None:
        turn_id, invocation_id = _one(members, turn_id, invocation)
        if view is View.SEQUENCE:
            return sequence_picture(recording, turn_id=turn_id, invocation_id=invocation_id)
        return life_picture(recording, turn_id=turn_id, invocation_id=invocation_id, engine=engine)
    if view is View.SEQUENCE:
        return sequence_picture(recording, turn_id=turn_id)
    return run_picture(recording, turn_id=turn_id)


def _members(recording: Recording) -> dict[str, list[str]]:
    """Return the invocations of each turn, in the order in which they were asked for."""
    members: dict[str, list[str]] = {}
    for fact in recording.facts:
        if isinstance(fact, TurnOpened):
            members.setdefault(fact.turn_id, []).extend(call.invocation_id for call in fact.calls)
        elif isinstance(fact, CallAdded):
            members.setdefault(fact.turn_id, []).append(fact.call.invocation_id)
    return members


def _one(
    members: dict[str, list[str]], turn_id: str | None, invocation: str | None
) -> tuple[str, str]:
    """Find the one invocation that is meant, in the turn that was named or in any."""
    turns = members if turn_id is None else {turn_id: members[turn_id]}
    names = list(dict.fromkeys(name for inside in turns.values() for name in inside))
    if invocation is None:
        if len(names) != 1:
            raise click.UsageError(f"name one with --invocation: {_listed(names)}")
        invocation = names[0]
    name = chosen(names, invocation, what="invocation")
    where = [turn for turn, inside in turns.items() if name in inside]
    if len(where) != 1:
        raise click.UsageError(
            f"{harmless(name)!r} is in several turns; name one with --turn: {_listed(where)}"
        )
    return where[0], name


def _listed(names: list[str]) -> str:
    if not names:
        return "there is none"
    more = f" … and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(harmless(name, limit=60) for name in names[:_NAMED]) + more
