"""Which of several runs is meant: shared by the commands that show one run of a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import click

from ..models.safe_text import harmless

_LISTED: Final = 20
"""Candidates that an unclear choice is told."""
_REPEATED: Final = 80
"""Characters of what was asked for that the message repeats."""


def list_runs(runs: Iterable[tuple[int, str]]) -> None:
    """Print the runs, each with the number of its turns."""
    click.echo("turns  run (show one with --run)")
    for turns, run_id in runs:
        click.echo(f"{turns:5}  {harmless(run_id)}")


def chosen(names: Sequence[str], wanted: str, *, what: str = "run") -> str:
    """Return the name that is wanted, else the one that begins with it, else the one that holds it.

    Raises `click.UsageError`, with the candidates, where that is none or more than one.
    """
    exact = [name for name in names if name == wanted]
    starts = [name for name in names if name.startswith(wanted)]
    inside = [name for name in names if wanted in name]
    for found in (exact, starts, inside):
        if len(found) == 1:
            return found[0]
    candidates = starts or inside
    asked = repr(harmless(wanted, limit=_REPEATED))
    if candidates:
        message = f"{len(candidates)} {what}s match {asked}; give more of the id of one:"
    else:
        message = f"no {what} matches {asked}; give the id of one of these:"
    raise click.UsageError("\n".join((message, *_listed(candidates or names))))


def _listed(candidates: Sequence[str]) -> Iterator[str]:
    for name in candidates[:_LISTED]:
        yield f"  {harmless(name)}"
    if len(candidates) > _LISTED:
        yield f"  … and {len(candidates) - _LISTED} more (without --run, all are listed)"
