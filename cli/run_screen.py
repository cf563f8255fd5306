"""What `turnlock run` shows: facts as lines, and on a terminal the calls under way below them.

All of it goes to standard error, so that standard output holds the model's answer and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from ..diagrams.palette import look_of
from ..lifecycle.phases import Phase
from ..models.facts import Fact, FactType, LifecycleFact, ToolApproved, TurnFact, TurnOpened
from ..models.run import Run
from ..models.safe_text import harmless, harmless_lines
from ..models.sealed import shown_json, shown_text
from ..views.call_view import CallView, Waits
from ..views.grants import Grants, approved_by
from ..views.meanings import stands
from ..views.run_view import RunView
from .timeline import denied, looks_of

_CUT: Final = 400
"""Characters of a detail; a line of a terminal cuts further."""
_REFRESH: Final = 10
"""Times a second that the calls under way are drawn."""
_PIPED_WIDTH: Final = 160
_QUIET: Final = frozenset({FactType.LEASE_RENEWED, FactType.CONTINUATION_TAKEN})


class Screen:
    """Shows facts as they come; what happened before it was opened is only folded."""

    def __init__(self, run: Run, *, told_until: int) -> None:
        """Begin after the fact with this sequence."""
        self.view = RunView.of(run)
        """The run, after all facts that were taken."""
        self.console: Final = Console(stderr=True, highlight=False)
        if not self.console.is_terminal:
            self.console.width = _PIPED_WIDTH
        self._grants = Grants()
        self._told_until = told_until
        self._live: Live | None = None
        self._asking = False

    def take(self, fact: Fact) -> None:
        """Show the next fact."""
        if fact.sequence > self._told_until and fact.type not in _QUIET:
            line = line_of(fact, self.view, self._grants)
            self.console.print(line, no_wrap=True, overflow="ellipsis", crop=True)
        self.view = self.view.after((fact,))
        self._grants.take(fact)

    def tell(self, said: Text | str) -> None:
        """Say something above what is shown live, whole, for it may tell what to do.

        It is never markup; a `Text` is harmless already.
        """
        text = Text(harmless_lines(said)) if isinstance(said, str) else said
        self.console.print(text, soft_wrap=not self.console.is_terminal)

    def refresh(self) -> None:
        """Show the calls under way, or none: only on a terminal, and not during a question."""
        shown = () if self.view.turn is None else self.view.turn.unfinished
        wanted = bool(shown) and self.console.is_terminal and not self._asking
        if not wanted:
            if self._live is not None:
                self._live.stop()
                self._live = None
            return
        if self._live is None:
            self._live = Live(console=self.console, transient=True, refresh_per_second=_REFRESH)
            self._live.start()
        self._live.update(Group(*map(_row, shown)))

    def ask(self, *, asking: bool) -> None:
        """Make room for a question, or take it back."""
        self._asking = asking
        self.refresh()

    def close(self) -> None:
        """Show nothing more."""
        self._asking = True
        self.refresh()


def line_of(fact: Fact, before: RunView, grants: Grants) -> Text:
    """Return a fact as one line; `before` and `grants` are the run before it."""
    sign, style = looks_of(fact.type)
    line = Text(f"{sign} ", style)
    turn_id = fact.turn_id if isinstance(fact, TurnFact) else None
    line.append(f"{harmless(turn_id or '-', limit=20):4}", "dim")
    call = before.find(turn_id or "", getattr(fact, "invocation_id", None) or "")
    if call is not None:
        line.append(f" {harmless(call.tool_name, limit=40)}", "bold")
        line.append(f" {harmless(call.invocation_id, limit=24)}", "dim")
    line.append(f" {_WORDS.get(fact.type, str(fact.type).lower().replace('_', ' '))}", style)
    detail = _detail(fact, call, grants)
    if detail:
        line.append(f" {harmless(detail, limit=_CUT)}")
    return line


def _detail(fact: Fact, call: CallView | None, grants: Grants) -> str:
    if isinstance(fact, TurnOpened):
        return ", ".join(asked.tool_name for asked in fact.calls)
    if isinstance(fact, ToolApproved):
        scope = "" if fact.scope == "once" else f" for the {fact.scope}"
        edited = "" if fact.arguments is None else f", edited to {shown_json(fact.arguments)}"
        return f"by {approved_by(fact, grants)}{scope}{edited}"
    tell = _DETAILS.get(fact.type)
    if tell is not None:
        return tell(fact)
    if isinstance(fact, LifecycleFact) and call is not None:
        return shown_json(call.arguments)
    return ""


_WORDS: Final = {
    FactType.TURN_OPENED: "the model asks for",
    FactType.TOOL_APPROVAL_REQUESTED: "asks for approval",
    FactType.TOOL_APPROVED: "approved",
    FactType.TOOL_DENIED: "denied:",
    FactType.TOOL_EXECUTION_STARTED: "started",
    FactType.TOOL_EXECUTION_SUCCEEDED: "succeeded:",
    FactType.TOOL_EXECUTION_FAILED: "failed:",
    FactType.TURN_SETTLED: "settled: the results go to the model",
    FactType.TURN_INTERRUPTING: "interrupting: what has not started is denied",
    FactType.TURN_INTERRUPTED: "interrupted: the model is not told",
    FactType.EXECUTION_IN_DOUBT: "in doubt: it was started, and nobody knows whether it happened",
    FactType.RETRY_AUTHORISED: "may be run again",
    FactType.EXECUTION_RETRIED: "started again",
}

_DETAILS: Final[dict[FactType, Callable[[Any], str]]] = {
    FactType.TOOL_DENIED: denied,
    FactType.TOOL_EXECUTION_SUCCEEDED: lambda fact: shown_json(fact.result),
    FactType.TOOL_EXECUTION_FAILED: lambda fact: shown_text(fact.error),
    FactType.EXECUTION_RETRIED: lambda fact: f"attempt {fact.attempt}",
}


def _row(call: CallView) -> Table:
    row = Table.grid(padding=(0, 1))
    running = call.phase is Phase.STARTED
    ready = call.phase is Phase.REQUESTED and call.waits is not Waits.APPROVAL
    look = look_of("" if ready else call.phase)
    mark = Spinner("dots", style="cyan") if running else Text(look.sign, look.colour)
    name = Text(harmless(call.tool_name, limit=40), "bold")
    arguments = Text(harmless(shown_json(call.arguments), limit=80), "dim")
    row.add_row(mark, name, Text(stands(call)), arguments)
    return row
