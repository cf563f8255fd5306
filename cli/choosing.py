"""Which of several runs is meant: shared by the commands that show one of what a file holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs
import click

from ..models.safe_text import harmless

_LISTED: Final = 20
"""Candidates that a message names."""
_REPEATED: Final = 80
"""Characters of what was asked for that a message repeats."""


@attrs.frozen(kw_only=True)
class Listing:
    """What a file holds: for each id a size and words that say what it is."""

    rows: Mapping[str, tuple[int, str]]
    what: str = "run"
    sizes: str = "turns"
    """What the size is a number of."""

    def show(self) -> None:
        """Print all of it."""
        click.echo(f"{self.sizes}  {self.what} (show one with --run)")
        for size, words in self.rows.values():
            click.echo(f"{size:5}  {harmless(words)}")

    def chosen(self, wanted: str) -> str:
        """Return the id that is wanted. Raises `click.UsageError`."""
        return chosen(list(self.rows), wanted, what=self.what)

    def unclear(self, file: str) -> click.UsageError:
        """Return the error that one must be chosen."""
        count = f"{harmless(file)} holds {len(self.rows)} {self.what}s"
        return _error(f"{count}; choose one with --run:", list(self.rows))


def chosen(names: Sequence[str], wanted: str, *, what: str) -> str:
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
    raise _error(message, candidates or names)


def _error(message: str, candidates: Sequence[str]) -> click.UsageError:
    lines = [message, *(f"  {harmless(name)}" for name in candidates[:_LISTED])]
    if len(candidates) > _LISTED:
        lines.append(f"  … and {len(candidates) - _LISTED} more (without --run, all are listed)")
    return click.UsageError("\n".join(lines))
