"""The runs: those that wait for a person first (F-92)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content

from ..diagrams.palette import Theme, look_of
from ..guards.values import KIND as GUARD
from ..models.run import OWN
from ..models.safe_text import harmless
from .heard import Entry
from .lines import Column, Rows
from .machine import Part, colour_of
from .parts import Told, badge, bottom, waiting_told
from .screens import ConsoleScreen
from .texts import span
from .watched import Badge

_OF_RUNS: Final = (
    Column("run"),
    Column("status", 21),
    Column("waits", 6, right=True),
    Column("doubt", 6, right=True),
    Column("for", 5, right=True),
    Column("facts", 9, right=True),
    Column("changed", 8, right=True),
    Column("performed", 10),
)


def _performed(it: Entry) -> str:
    """Say who goes on with a run, where that is not somebody who owns it."""
    if it.kind == GUARD:
        return "by itself"
    return "" if it.owned else "by nobody"


class RunsScreen(ConsoleScreen):
    """The runs of a journal or a server."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "step(1)"),
        Binding("k", "step(-1)"),
        Binding("w", "worlds"),
    ]

    def compose(self) -> ComposeResult:
        """Yield its parts."""
        with Horizontal(classes="top"):
            yield self._place
            yield self._standing
        yield self._rows
        yield bottom(
            ("j k", "run"), ("Enter", "open"), ("w", "worlds"), ("?", "keys"), ("q", "leave")
        )

    def __init__(self) -> None:
        """Begin without a run."""
        super().__init__()
        self._chosen: str | None = None
        """The run with the cursor."""
        self._place = Told(id="place")
        self._standing = Told(id="standing")
        self._rows = Rows(_OF_RUNS, empty="there is no run", id="runs")

    def on_mount(self) -> None:
        """Show what is known."""
        self._rows.focus()
        self.draw()

    def draw(self) -> None:
        """Show the runs as they are; the cursor stays on its run."""
        app = self.console_app
        entries = app.listing.entries
        cursor = next((n for n, it in enumerate(entries) if it.run_id == self._chosen), None)
        unknown = harmless(app.why, limit=300) or "the list is not known yet"
        self._rows.empty = "there is no run" if app.is_known else unknown
        self._rows.tell(len(entries), self._cells, cursor=cursor)
        if entries and cursor is None:
            self._chosen = entries[self._rows.cursor].run_id
        self._place.tell(Content.assemble(("turnlock  ", "bold"), harmless(app.source.place)))
        kind = Badge.OFF if app.why else Badge.LIVE
        told = f"off: {harmless(app.why, limit=100)}" if app.why else "live"
        self._standing.tell(
            Content.assemble((waiting_told(app.waiting), "bold"), "   ", badge(kind, told), " ")
        )

    def _cells(self, place: int) -> Sequence[Part]:
        app = self.console_app
        it = app.listing.entries[place]
        status = it.status.replace("_", " ")
        style = colour_of(it.status, Theme.DARK)
        run = harmless(it.run_id, limit=200)
        if it.tool_name and it.status == "awaiting_approval":
            run = f"{run}  {harmless(it.tool_name, limit=60)}"
        if it.problem is not None:
            status, style = "stands still", "bold red"
            run = f"{run}  {harmless(it.problem, limit=200)}"
        if it.kind != OWN:
            run = f"{run}  {harmless(it.kind, limit=60)}"
        now = app.now()
        since = "" if it.waiting_since is None else span(now - it.waiting_since)
        changed = "" if it.latest_at is None else span(now - it.latest_at)
        return (
            (run, "bold" if it.waiting or it.in_doubt else ""),
            (f"{look_of(it.status).sign} {status}", style),
            (f"{it.waiting:,}" if it.waiting else "", f"bold {colour_of('REQUESTED', Theme.DARK)}"),
            (f"{it.in_doubt:,}" if it.in_doubt else "", "bold yellow"),
            (since, ""),
            (f"{it.sequence:,}", "dim"),
            (changed, "dim"),
            (_performed(it), "dim"),
        )

    def action_step(self, by: int) -> None:
        """Go to the next run, or the one before."""
        self._rows.action_step(by)

    def on_rows_moved(self, event: Rows.Moved) -> None:
        """Remember which run is meant, wherever it comes to stand."""
        self._chosen = self.console_app.listing.entries[event.place].run_id

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        """Open it."""
        entries = self.console_app.listing.entries
        if event.place < len(entries):
            self._chosen = entries[event.place].run_id
            self.console_app.open(entries[event.place].run_id)

    def action_worlds(self) -> None:
        """Show the worlds and their chats."""
        self.console_app.open_chats()
