"""``turnlock diagram``: pictures of the enforced tables, and of what was recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from ..diagrams.drawing.engines import Engine
from ..diagrams.graphs.extract import graph_of
from ..diagrams.graphs.picture import MachinePicture, invocation_picture, turn_picture
from ..diagrams.picture import WITH_TABLES, Picture
from .diagram_output import EXIT_STATUS, Output, drawing, with_engine
from .main import LazyGroup

_HELP: Final = f"""Draw the machines as they are enforced, or what was recorded.

The ending of OUT names the form: .svg and .png are pictures, .html a page that needs nothing else,
.mmd and .md Mermaid (which code hosts show), .dot Graphviz, .txt plain text. Machines as SVG, HTML
or DOT, and any PNG, need the extra: pip install 'turnlock[diagrams]'.
{EXIT_STATUS}"""

F = TypeVar("F", bound=Callable[..., Any])
_RECORDED: Final = {
    "run": "diagram_recorded.draw_run",
    "coverage": "diagram_recorded.draw_coverage",
    "world": "diagram_world.draw_world",
}


@click.group(
    "diagram",
    cls=LazyGroup,
    lazy=_RECORDED,
    help=_HELP,
    short_help="Draw the machines, or what was recorded.",
)
def command() -> None:
    """Draw pictures."""


def _with_refusals(function: F) -> F:
    return click.option(
        "--refusals",
        is_flag=True,
        help="Add what each phase refuses, and why: the whole table, in .md, .html and .txt.",
    )(function)


@command.command("invocation", short_help="The machine of one invocation.")
@_with_refusals
@with_engine
@drawing
def draw_invocation(*, output: Output, refusals: bool, engine: str) -> None:
    """Draw the machine that every invocation goes through."""
    _draw_machine(invocation_picture, output, refusals=refusals, engine=engine)


@command.command("turn", short_help="The machine of one turn.")
@_with_refusals
@with_engine
@drawing
def draw_turn(*, output: Output, refusals: bool, engine: str) -> None:
    """Draw the machine that every turn goes through."""
    _draw_machine(turn_picture, output, refusals=refusals, engine=engine)


@command.command("status", short_help="The machine of an agent's status.")
@with_engine
@drawing
def draw_status(*, output: Output, engine: str) -> None:
    """Draw the projection that tells what an agent is doing, by the facts that move it."""
    from ..views.status import STATUS  # noqa: PLC0415 - loads the kernel

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
