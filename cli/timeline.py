"""A run's facts in the terminal, one line each, drawn with rich.

A fact has the colour and the sign of the phase that it leads to, the same as in pictures. Recorded
text is cut to the width and made harmless: it is never markup.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs
from rich.console import Console
from rich.text import Text

from ..diagrams.palette import look_of
from ..models.deliveries import Delivery
from ..models.facts import (
    CallAdded,
    ContinuationTaken,
    Fact,
    FactType,
    GrantExpired,
    GrantIssued,
    GrantRevoked,
    ToolApproved,
    ToolDenied,
    ToolExecutionStarted,
    TurnFact,
    TurnOpened,
    TurnSettled,
)
from ..models.safe_text import harmless
from ..models.sealed import shown_json, shown_text
from ..models.verdicts import Refused, Verdict
from ..models.workers import opaque
from ..verification.replay.tally import Hostility
from ..views.call_view import CallView
from ..views.grants import Grants, approved_by, covering
from ..views.phrases import PHASE_OF
from ..views.turn_view import TurnView

_PIPED_WIDTH: Final = 120  # columns where there is no terminal and COLUMNS does not say
_CUT: Final = 400  # characters of a detail; the column cuts further
_HEADINGS: Final = ("seconds", "fact", "turn", "invocation", "what", "detail")
_BOUNDS: Final = (10, 7, 6, 30, 31)
"""The most columns of each but the last."""
_RIGHT: Final = (0, 1)
_INVOCATION: Final = 3
_LEAST_INVOCATION: Final = 10
_LEAST_DETAIL: Final = 24
_SIGNS: Final = {FactType.CALL_ADDED: "├", FactType.CONTINUATION_TAKEN: "↩"}
"""Where that of the phase would say that a turn opens, or there is none."""


@attrs.frozen
class _Line:
    """One line of the timeline; `sequence` is None for a refusal."""

    at: float
    sequence: int | None
    turn_id: str
    invocation: str
    what: str
    detail: str
    style: str


def looks_of(fact: FactType) -> tuple[str, str]:
    """Return the sign and the style of a fact: those of the phase that it leads to."""
    look = look_of(PHASE_OF.get(fact, ""))
    return _SIGNS.get(fact, look.sign), look.colour


class Timeline:
    """Collects the facts of one run, and what was refused, and shows them."""

    def __init__(self, title: str, *, start: float) -> None:
        """Start without any facts; times are shown in seconds after `start`, Unix time."""
        self._title = title
        self._start = start
        self._lines: list[_Line] = []
        self._turns: dict[str, TurnView] = {}
        """Each turn as it stands, by its id; of one that is used again, the latest."""
        self._grants = Grants()

    def observe(
        self, delivery: Delivery, verdict: Verdict, now: float, as_what: Hostility | None
    ) -> None:
        """Note the facts of a delivery, or its refusal."""
        for fact in verdict.facts:
            self.note(fact)
        if isinstance(verdict, Refused):
            kind = f", {as_what}" if as_what is not None else ", honest"
            turn_id: str = getattr(delivery, "turn_id", None) or ""
            invocation_id: str = getattr(delivery, "invocation_id", None) or ""
            what = f"  refused {verdict.reason}"
            line = _Line(now, None, turn_id, invocation_id, what, delivery.type + kind, "dim")
            self._lines.append(line)

    def note(self, fact: Fact) -> None:
        """Note the next fact."""
        turn_id: str = getattr(fact, "turn_id", None) or ""
        if isinstance(fact, TurnOpened):
            self._turns[turn_id] = TurnView.opened(fact)
        elif isinstance(fact, TurnFact) and not isinstance(fact, ContinuationTaken):
            self._turns[turn_id] = self._turns[turn_id].after(fact)
        self._grants.take(fact)
        sign, style = looks_of(fact.type)
        what = f"{sign} {fact.type}"
        invocation_id: str = getattr(fact, "invocation_id", None) or ""
        if isinstance(fact, CallAdded):
            invocation_id = fact.call.invocation_id
        detail = self._detail(fact)
        self._lines.append(
            _Line(fact.at, fact.sequence, turn_id, invocation_id, what, detail, style)
        )

    def _detail(self, fact: Fact) -> str:
        if isinstance(fact, ToolExecutionStarted):
            return self._started(fact)
        if isinstance(fact, ToolApproved):
            edited = "" if fact.arguments is None else f", edited to {shown_json(fact.arguments)}"
            return f"by {approved_by(fact, self._grants)}, {fact.scope}{edited}"
        if isinstance(fact, TurnSettled):
            return self._settled(fact.turn_id)
        if isinstance(fact, GrantIssued):
            return f"{fact.grant_id}: {covering(fact)}"
        if isinstance(fact, GrantRevoked | GrantExpired):
            return fact.grant_id
        tell = _DETAILS.get(fact.type)
        return "" if tell is None else tell(fact)

    def _started(self, fact: ToolExecutionStarted) -> str:
        """Say who runs it and, where nobody was shown them before, the arguments."""
        call = self._call(fact.turn_id, fact.invocation_id)
        shown = "" if call is None or call.requires_approval else f" {shown_json(call.arguments)}"
        worker = "somebody" if fact.worker is None else opaque(fact.worker)
        return f"{worker}, attempt {fact.attempt}{shown}"

    def _settled(self, turn_id: str) -> str:
        """Say what the continuation tells the model, in the order of the calls."""
        counts = Counter(str(result.status) for result in self._turns[turn_id].results)
        told = ", ".join(f"{number} {status}" for status, number in counts.items())
        return f"continue with {told}" if told else "nothing to continue with"

    def _call(self, turn_id: str, invocation_id: str) -> CallView | None:
        turn = self._turns.get(turn_id)
        return None if turn is None else turn.calls.get(invocation_id)

    def show(self) -> None:
        """Print the timeline on standard output."""
        piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
        console = Console(highlight=False, width=_PIPED_WIDTH if piped else None)
        rows = [tuple(map(Text, _HEADINGS)), *map(self._cells, self._lines)]
        widths = _widths(rows, console.width)
        _print(console, Text(harmless(self._title), style="bold"))
        for place, cells in enumerate(rows):
            _print(console, _joined(cells, widths))
            if place == 0:
                _print(console, Text("─" * console.width))
            elif self._lines[place - 1].what.endswith(FactType.CONTINUATION_TAKEN):
                console.print()
        console.print()

    def _cells(self, line: _Line) -> tuple[Text, ...]:
        call = self._call(line.turn_id, line.invocation)
        refused = line.sequence is None
        dim = "dim" if refused else ""
        invocation = Text(harmless(call.tool_name if call else line.invocation, limit=_CUT), dim)
        if call is not None:
            invocation.append(f" {harmless(line.invocation, limit=_CUT)}", style="dim")
        return (
            Text(f"{line.at - self._start:.3f}", dim),
            Text("" if refused else str(line.sequence), dim),
            Text(harmless(line.turn_id, limit=_CUT), dim),
            invocation,
            Text(line.what, line.style),
            Text(harmless(line.detail, limit=_CUT), dim),
        )


def _widths(rows: Sequence[tuple[Text, ...]], total: int) -> list[int]:
    """Return the width of each column: what it needs up to its bound, the last one what is left."""
    widths = [
        min(bound, max(cells[column].cell_len for cells in rows))
        for column, bound in enumerate(_BOUNDS)
    ]
    left = total - sum(widths) - len(widths)
    if left < _LEAST_DETAIL:
        widths[_INVOCATION] = max(_LEAST_INVOCATION, widths[_INVOCATION] + left - _LEAST_DETAIL)
        left = total - sum(widths) - len(widths)
    return [*widths, max(left, 1)]


def _joined(cells: tuple[Text, ...], widths: Sequence[int]) -> Text:
    line = Text()
    for column, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        cell.truncate(width, overflow="ellipsis")
        if column in _RIGHT:
            cell.pad_left(width - cell.cell_len)
        elif column < len(widths) - 1:
            cell.pad_right(width - cell.cell_len)
        line.append_text(cell)
        if column < len(widths) - 1:
            line.append(" ")
    return line


def _print(console: Console, line: Text) -> None:
    line.rstrip()
    console.print(line, no_wrap=True, overflow="ellipsis", crop=True)


def _opened(fact: TurnOpened) -> str:
    calls = len(fact.calls)
    how = "sealed" if fact.sealed else "streaming"
    return f"epoch {fact.epoch}, {calls} call{'' if calls == 1 else 's'}, {how}"


def denied(fact: ToolDenied) -> str:
    """Say why a call was denied, and by whom where anybody did."""
    why = str(fact.reason or fact.error)
    return why if fact.decided_by is None else f"{why} (by {fact.decided_by})"


_DETAILS: Final[dict[FactType, Callable[[Any], str]]] = {
    FactType.TURN_OPENED: _opened,
    FactType.CALL_ADDED: lambda fact: shown_json(fact.call.arguments),
    FactType.TOOL_APPROVAL_REQUESTED: lambda fact: shown_json(fact.arguments),
    FactType.TOOL_DENIED: denied,
    FactType.TURN_INTERRUPTING: lambda fact: shown_text(fact.reason) if fact.reason else "",
    FactType.TOOL_EXECUTION_SUCCEEDED: lambda fact: shown_json(fact.result),
    FactType.TOOL_EXECUTION_FAILED: lambda fact: shown_text(fact.error),
}
