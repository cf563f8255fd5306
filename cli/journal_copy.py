"""``turnlock journal copy``: a journal goes on in another place."""

from __future__ import annotations

import time
from typing import Final

import click

from ..models.safe_text import harmless
from ..runtime.copying import Copied, copy_journal
from ..runtime.journal.contract import open_journal
from ..runtime.journal.places import shown_place
from .databases import ended

_HELP: Final = """Copy the journal FROM into TO, from where its runs go on, and from there alone.

Both may be a file or a URL; TO is made where there is none, and must have no run of the same name.
End what performs runs of FROM first, and what says something in its worlds: it is refused while a
host lives. All is read back, entry by entry, before TO can be performed; from then on each run of
FROM says where it went, and takes nothing more. FROM stays as it is, for whoever wants to read it.

Killed or failed half way, nobody performs what is in TO, and the same command goes on. To give it
up, remove TO: as long as no run of FROM says that it was moved, FROM goes on by itself.

\b
Exit status:
  0  all of it is in TO, which was read back
  1  refused, or a journal failed; the same command goes on
  2  wrong usage, or FROM is no journal
"""

_EVERY: Final = 1.0
"""Seconds between two lines that say how far it is."""


@click.command("copy", help=_HELP, short_help="Copy a journal into another one, and go on there.")
@click.argument("origin", metavar="FROM")
@click.argument("target", metavar="TO")
def copy(*, origin: str, target: str) -> None:
    """Copy it, and say what it holds."""
    here, there = harmless(shown_place(origin)), harmless(shown_place(target))

    async def work() -> Copied:
        async with (
            await open_journal(origin, create=False) as source,
            await open_journal(target) as made,
        ):
            return await copy_journal(source, made, origin=here, place=there, tell=_Telling())

    done = ended(work())
    held = f"{done.runs:,} runs, {done.facts:,} facts, {done.entries:,} entries of shared logs"
    if done.before:
        click.echo(f"{there}: it was copied from {here} before; nothing was done")
    else:
        click.echo(f"{there}: {held}; read back, and whole")
        click.echo(f"{here}: its runs were moved; nobody goes on with them there")


class _Telling:
    """Says how far it is, now and then, to whoever sits before it."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, text: str) -> None:
        """Tell it, unless something was told just now."""
        if time.monotonic() - self._last >= _EVERY:
            self._last = time.monotonic()
            click.echo(text, err=True)
