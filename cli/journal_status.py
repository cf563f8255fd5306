"""``turnlock journal status``: what an operator watches, one line each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import attrs
import click

from ..models.safe_text import harmless
from ..runtime.copying import copied_half, moved_to
from ..runtime.journal.contract import Gauge, Journal
from ..runtime.journal.gauges import REWOUND
from ..runtime.journal.places import shown_place
from .databases import db_option, with_journal

_HELP: Final = """Print what an operator watches in a journal: a number a line, those beyond first.

Nothing is changed, and nobody is waited for. What cannot be told with the rights of the user is
shown as unknown, and is beyond no bound. For a monitor there is --json, with the bounds.

\b
Exit status:
  0  no number is beyond its bound
  1  one is, or the journal failed
  2  wrong usage, or no journal
"""

BEYOND: Final = 1
WAL_BYTES: Final = 1_000_000_000
"""Bytes of a -wal file beyond which nobody seems to close what reads it."""


@click.command("status", help=_HELP, short_help="Print what an operator watches.")
@db_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
def status(*, db: str, as_json: bool) -> None:
    """Print it, and end with the status."""
    found = with_journal(db, _gauges, read_only=True)
    if as_json:
        numbers = [
            {
                "name": it.name,
                "value": it.value,
                "most": it.most,
                "least": it.least,
                "unit": it.unit,
                "beyond": it.is_beyond,
            }
            for it in found
        ]
        click.echo(json.dumps({"journal": shown_place(db), "numbers": numbers}, indent=2))
    else:
        for line in _lines(found):
            click.echo(harmless(line))
    if any(it.is_beyond for it in found):
        raise SystemExit(BEYOND)


async def _gauges(journal: Journal) -> tuple[Gauge, ...]:
    half, moved = await copied_half(journal), await moved_to(journal)
    copies = Gauge(
        name="copies that are not whole",
        value=int(half is not None),
        most=0,
        fix=f"turnlock journal copy {'' if half is None else half} … again",
    )
    found = await journal.gauges()
    if moved is not None:
        there = f"they were moved to {moved}: go on with them there"
        found = tuple(attrs.evolve(it, fix=there) if it.name == REWOUND else it for it in found)
    return (*found, copies, *_files(journal))


def _files(journal: Journal) -> Iterator[Gauge]:
    """Yield what a journal in a file takes of the disk."""
    path: Path | None = getattr(journal, "path", None)
    if path is None:
        return
    for end, most, fix in (("", None, ""), ("-wal", WAL_BYTES, "end what reads it for long")):
        file = path.with_name(f"{path.name}{end}")
        size = file.stat().st_size if file.exists() else 0
        yield Gauge(name=f"size of {file.name}", value=size, most=most, unit="bytes", fix=fix)


def _lines(found: Sequence[Gauge]) -> Iterator[str]:
    for it in sorted(found, key=lambda it: not it.is_beyond):
        value = "unknown" if it.value is None else f"{it.value:,.10g} {it.unit}".rstrip()
        bounds = [
            f"{word} {bound:,.10g}"
            for word, bound in (("at most", it.most), ("at least", it.least))
            if bound is not None
        ]
        allowed = f"  ({', '.join(bounds)})" if bounds else ""
        mark = f"BEYOND: {it.fix}" if it.is_beyond else ""
        yield f"{it.name}: {value}{allowed}  {mark}".rstrip()
