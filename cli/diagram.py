"""``turnlock diagram``: pictures of the enforced tables, and of what was recorded."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click
from click.core import ParameterSource

from ..diagrams.coverage.counts import Counts
from ..diagrams.drawing.graphviz import Engine
from ..diagrams.graphs.extract import graph_of
from ..diagrams.graphs.picture import MachinePicture
from ..diagrams.picture import Format, Picture
from ..diagrams.pictures import coverage_picture, invocation_picture, turn_picture
from ..diagrams.sequence.counterexample import counterexample_picture
from ..lifecycle.table import INVOCATION
from ..machines.rows import Machine
from ..turn.table import TURN
from ..verification.replay.lines import Problems
from ..verification.replay.tally import Tally
from .choosing import Listing
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
from .diagram_output import EXIT_STATUS, STANDARD_OUTPUT, Output, drawing
from .diagram_views import View, view_of
from .replay_options import replay_options, settings_of, tell_problems

_HELP: Final = f"""Draw the machines as they are enforced, or what was recorded.

The ending of OUT names the form: .svg and .png are pictures, .html a page that needs nothing else,
.mmd and .md Mermaid (which code hosts show), .dot Graphviz, .txt plain text. Machines as SVG, HTML
or DOT, and any PNG, need the extra: pip install 'turnlock[diagrams]'.
{EXIT_STATUS}"""

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

WITH_TABLES: Final = frozenset({Format.MARKDOWN, Format.HTML, Format.TEXT})
"""Forms that hold tables beside the picture."""

_MACHINES: Final[dict[str, Machine[Any, Any]]] = {"invocation": INVOCATION, "turn": TURN}

F = TypeVar("F", bound=Callable[..., Any])


@click.group("diagram", help=_HELP, short_help="Draw the machines, or what was recorded.")
def command() -> None:
    """Draw pictures."""


def _with_engine(function: F) -> F:
    return click.option(
        "--engine",
        type=click.Choice([str(engine) for engine in Engine]),
        default=str(Engine.AUTO),
        show_default=True,
        help="What lays a machine out: the program dot, Graphviz as WebAssembly, or what is there.",
    )(function)


def _from_file_or_db(function: F) -> F:
    with_db = click.option("--db", metavar="JOURNAL", help="A journal, instead.")
    return click.argument("file", type=click.Path(), required=False)(with_db(function))


def _with_refusals(function: F) -> F:
    return click.option(
        "--refusals",
        is_flag=True,
        help="Add what each phase refuses, and why: the whole table, in .md, .html and .txt.",
    )(function)


@command.command("invocation", short_help="The machine of one invocation.")
@_with_refusals
@_with_engine
@drawing
def draw_invocation(*, output: Output, refusals: bool, engine: str) -> None:
    """Draw the machine that every invocation goes through."""
    _draw_machine(invocation_picture, output, refusals=refusals, engine=engine)


@command.command("turn", short_help="The machine of one turn.")
@_with_refusals
@_with_engine
@drawing
def draw_turn(*, output: Output, refusals: bool, engine: str) -> None:
    """Draw the machine that every turn goes through."""
    _draw_machine(turn_picture, output, refusals=refusals, engine=engine)


@command.command("status", short_help="The machine of an agent's status.")
@_with_engine
@drawing
def draw_status(*, output: Output, engine: str) -> None:
    """Draw the projection that tells what an agent is doing, by the facts that move it."""
    from ..runtime.status.table import STATUS  # noqa: PLC0415 - loads the runtime

    picture = MachinePicture(graph=graph_of(STATUS), engine=Engine(engine))
    output.take(lambda: picture)


def _draw_machine(
    picture_of: Callable[..., Picture], output: Output, *, refusals: bool, engine: str
) -> None:
    if refusals and output.form not in WITH_TABLES:
        raise click.UsageError(
            f"a {output.form} has no room for --refusals; ask for md, html or txt, or leave it out"
        )
    output.take(lambda: picture_of(refusals=refusals, engine=Engine(engine)))


@command.command("run", help=_RUN_HELP, short_help="One recorded run, turn or invocation.")
@_from_file_or_db
@click.option("--run", "run", metavar="ID", help="The run, or the finding of a report.")
@click.option("--turn", metavar="ID", help="This turn alone.")
@click.option("--invocation", metavar="ID", help="This invocation alone.")
@click.option("--view", type=click.Choice([str(view) for view in View]), help="What to draw.")
@replay_options
@_with_engine
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


@command.command("coverage", help=_COVERAGE_HELP, short_help="A machine, and what was met of it.")
@_from_file_or_db
@click.option(
    "--machine",
    type=click.Choice(list(_MACHINES)),
    default="invocation",
    show_default=True,
    help="Which machine.",
)
@replay_options
@_with_engine
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
        raise click.UsageError("give FILE, or --db JOURNAL, and not both")
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
