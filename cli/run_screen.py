"""What `turnlock run` shows: facts as lines, what the model says, and below them what is under way.

All of it goes to standard error, so that standard output holds the model's answer and nothing else.
Where both are a terminal the answer is shown there while it comes, once.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from ..agent.speaking import Said
from ..diagrams.palette import look_of
from ..lifecycle.phases import Phase
from ..models.facts import (
    Fact,
    FactType,
    LifecycleFact,
    ToolApproved,
    ToolExecutionFailed,
    TurnFact,
    TurnOpened,
)
from ..models.lifecycle_facts import FailureCause
from ..models.run import Run
from ..models.safe_text import harmless, harmless_lines
from ..models.sealed import shown_json, shown_text
from ..runtime.log import logger
from ..views.call_view import CallView, Waits
from ..views.grants import Grants, approved_by
from ..views.meanings import stands
from ..views.run_view import RunView
from .run_lines import Lines, is_terminal
from .run_speech import Speech
from .timeline import denied, looks_of

_CUT: Final = 400
"""Characters of a detail; a line of a terminal cuts further."""
_PIPED_WIDTH: Final = 160
_TURN: Final = 16
"""Characters of the id of a turn."""
NOT_KNOWN: Final = "whether it happened is not known"
_SAID: Final = {
    "turnlock.adapters.codex.adapter": ("codex app-server: %s",),
    "turnlock.agent.delegating": ("%s of %r is in doubt",),
    "turnlock.runtime.ownership": ("run %r was let go while",),
}
"""By the logger, how the records begin that say what the screen says."""
_QUIET: Final = frozenset({FactType.LEASE_RENEWED, FactType.CONTINUATION_TAKEN})


class Screen:
    """Shows facts as they come; what happened before it was opened is only folded."""

    def __init__(self, run: Run, *, told_until: int, lines: Lines) -> None:
        """Begin after the fact with this sequence; calls under way stand below, at `lines`."""
        self.view = RunView.of(run)
        """The run, after all facts that were taken."""
        self.console: Final = Console(stderr=True, highlight=False)
        if not self.console.is_terminal:
            self.console.width = _PIPED_WIDTH
        self._grants = Grants()
        self._told_until = told_until
        self._lines = lines
        self._open = False
        """Whether what was written last has not ended its line."""
        watched = is_terminal()
        self.speech: Final = Speech(
            self.tell,
            aside=not (watched and sys.stdout is not None and sys.stdout.isatty()),  # pyright: ignore[reportUnnecessaryComparison] - closed by the caller
            chunk=None if lines.draws or not watched else self._tell_part,
        )

    def take(self, fact: Fact) -> None:
        """Show the next fact."""
        if fact.sequence > self._told_until and fact.type not in _QUIET:
            whole = _is_interrupted(fact)  # what a person has to know of it stands at its end
            (self.show if whole else self.line)(line_of(fact, self.view, self._grants))
        self.view = self.view.after((fact,))
        self._grants.take(fact)
        self.refresh()

    def hear(self, said: Said) -> None:
        """Show what the model says."""
        self.speech.hear(said)
        self.refresh()

    def tell(self, said: Text | str) -> None:
        """Say something, whole, for it may tell what to do.

        It is never markup; a `Text` is harmless already.
        """
        text = Text(harmless_lines(said)) if isinstance(said, str) else said
        self._print(text, soft_wrap=not self.console.is_terminal)

    def line(self, text: Text) -> None:
        """Show something on one line, cut where the terminal ends."""
        self._print(text, no_wrap=True, overflow="ellipsis", crop=True)

    def show(self, text: Text) -> None:
        """Show something whose lines may be longer than the terminal is wide."""
        self._print(text, soft_wrap=True)

    def refresh(self) -> None:
        """Show what is under way as it is now."""
        self._lines.below(self._rows)

    def _rows(self) -> list[Text]:
        turn = self.view.turn
        calls = () if turn is None else turn.unfinished
        return [*map(_row, calls), *self.speech.rows(self.console)]

    def _print(self, text: Text, **how: Any) -> None:  # noqa: ANN401 - as Console.print
        def write() -> None:
            if self._open:
                self.console.print()
            self._open = False
            self.console.print(text, **how)

        self._lines.above(write)

    def _tell_part(self, text: str) -> None:
        """Write a part of a line."""
        if text:
            self.console.file.write(text)
            self.console.file.flush()
            self._open = not text.endswith("\n")


@contextmanager
def said_by_it() -> Generator[None]:
    """Keep out of the log meanwhile what the screen says, too."""
    loggers = [logger(name) for name in _SAID]
    for one in loggers:
        one.addFilter(_is_news)
    try:
        yield
    finally:
        for one in loggers:
            one.removeFilter(_is_news)


def _is_news(record: Any) -> bool:  # noqa: ANN401 - logging is for runtime.log alone
    return not f"{record.msg}".startswith(_SAID.get(record.name, ()))


def line_of(fact: Fact, before: RunView, grants: Grants) -> Text:
    """Return a fact as one line; `before` and `grants` are the run before it."""
    sign, style = looks_of(fact.type)
    line = Text(f"{sign} ", style)
    turn_id = fact.turn_id if isinstance(fact, TurnFact) else None
    line.append(f"{_short(turn_id or '-'):4}", "dim")
    call = before.find(turn_id or "", getattr(fact, "invocation_id", None) or "")
    if call is not None:
        line.append(f" {harmless(call.tool_name, limit=40)}", "bold")
        line.append(f" {harmless(call.invocation_id, limit=24)}", "dim")
    line.append(f" {_WORDS.get(fact.type, str(fact.type).lower().replace('_', ' '))}", style)
    detail = _detail(fact, call, grants)
    if detail:
        line.append(f" {harmless(detail, limit=_CUT)}")
    return line


def _short(turn_id: str) -> str:
    """Return the id of a turn as far as it tells turns apart: of a long one the end counts."""
    if len(turn_id) <= _TURN:
        return harmless(turn_id)
    return f"{harmless(turn_id[: _TURN // 2])}…{harmless(turn_id[1 - _TURN // 2 :])}"


def _detail(fact: Fact, call: CallView | None, grants: Grants) -> str:
    if isinstance(fact, TurnOpened):
        return ", ".join(asked.tool_name for asked in fact.calls)
    if isinstance(fact, ToolApproved):
        scope = "" if fact.scope == "once" else f" for the {fact.scope}"
        edited = "" if fact.arguments is None else f", edited to {shown_json(fact.arguments)}"
        return f"by {approved_by(fact, grants)}{scope}{edited}"
    if _is_interrupted(fact):
        return f"it was interrupted; {NOT_KNOWN}"
    tell = _DETAILS.get(fact.type)
    if tell is not None:
        return tell(fact)
    if isinstance(fact, LifecycleFact) and call is not None:
        return shown_json(call.arguments)
    return ""


def _is_interrupted(fact: Fact) -> bool:
    """Whether a call ended because its turn was interrupted while it ran (K-53)."""
    return isinstance(fact, ToolExecutionFailed) and fact.cause is FailureCause.INTERRUPTED


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
    FactType.TURN_INTERRUPTED: "interrupted",
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


def _row(call: CallView) -> Text:
    running = call.phase is Phase.STARTED
    ready = call.phase is Phase.REQUESTED and call.waits is not Waits.APPROVAL
    look = look_of("" if ready else call.phase)
    row = Text(f"{look.sign} ", look.colour)
    row.append(harmless(call.tool_name, limit=40), "bold")
    row.append(f" {stands(call)}")
    if running and call.since is not None:
        row.append(f" {max(0.0, time.time() - call.since):.0f} s")
    row.append(f" {harmless(shown_json(call.arguments), limit=80)}", "dim")
    return row
