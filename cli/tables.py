"""The tables and the progress bar of a replay, drawn with rich."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from .tally import Tally

_NAMES_WIDTH = 42


def show_tally(tally: Tally, *, timing: bool) -> None:
    """Print the tables of a tally on standard output, without its verdict."""
    console = Console(highlight=False)
    for title, rows in tally.tables(timing=timing):
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        table.add_column(title, min_width=_NAMES_WIDTH)
        table.add_column("", justify="right")
        for name, value in rows:
            table.add_row(Text(name), Text(value))
        console.print(table)
        console.print()


def progress() -> Progress:
    """Return a progress bar on standard error that leaves nothing behind."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
