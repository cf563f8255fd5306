"""A run's facts in the terminal, one line each, drawn with rich.

Colours are those of Okabe and Ito, which people with any colour vision can tell apart, and each has
a sign beside it. Recorded text is cut to the width and made harmless: it is never markup.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import attrs
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..models.calls import Call
from ..models.deliveries import Delivery
from ..models.effects import Continue
from ..models.facts import (
    CallAdded,
    Fact,
    FactType,
    ToolExecutionStarted,
    TurnOpened,
    TurnSettled,
)
from ..models.values import canonical
from ..models.verdicts import Refused, Verdict
from .corpus import Conversation
from .courier import START
from .safe_text import harmless
from .tally import Hostility

_PIPED_WIDTH: Final = 120  # columns where there is no terminal and COLUMNS does not say
_CUT: Final = 400  # characters of a detail; the column cuts further
_TURN: Final = "bold"
_ORANGE, _SKY, _BLUE = "#e69f00", "#56b4e9", "#0072b2"
_GREEN, _VERMILLION, _PURPLE = "#009e73", "#d55e00", "#cc79a7"
_LOOKS: Final[dict[FactType, tuple[str, str]]] = {
    FactType.TOOL_APPROVAL_REQUESTED: ("?", _ORANGE),
    FactType.TOOL_APPROVED: ("+", _SKY),
    FactType.TOOL_DENIED: ("-", _PURPLE),
    FactType.TOOL_EXECUTION_STARTED: (">", _BLUE),
    FactType.TOOL_EXECUTION_SUCCEEDED: ("✓", _GREEN),
    FactType.TOOL_EXECUTION_FAILED: ("✗", _VERMILLION),
    FactType.TURN_OPENED: ("┌", _TURN),
    FactType.CALL_ADDED: ("├", _TURN),
    FactType.TURN_SEALED: ("├", _TURN),
    FactType.TURN_SETTLED: ("└", _TURN),
    FactType.CONTINUATION_TAKEN: ("↩", _TURN),
}
_OTHER: Final = ("·", "")


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


_Key: TypeAlias = tuple[str, str]


class Timeline:
    """Collects what a courier observes of one conversation, and shows it."""

    def __init__(self, conversation: Conversation) -> None:
        """Start without any facts."""
        self._conversation = conversation
        self._lines: list[_Line] = []
        self._calls: dict[_Key, Call] = {}

    def observe(
        self, delivery: Delivery, verdict: Verdict, now: float, as_what: Hostility | None
    ) -> None:
        """Note the facts of a delivery, or its refusal."""
        for fact in verdict.facts:
            self._note(fact, verdict)
        if isinstance(verdict, Refused):
            kind = f", {as_what}" if as_what is not None else ", honest"
            turn_id: str = getattr(delivery, "turn_id", None) or ""
            invocation_id: str = getattr(delivery, "invocation_id", None) or ""
            what = f"  refused {verdict.reason}"
            line = _Line(now, None, turn_id, invocation_id, what, delivery.type + kind, "dim")
            self._lines.append(line)

    def _note(self, fact: Fact, verdict: Verdict) -> None:
        turn_id: str = getattr(fact, "turn_id", None) or ""
        if isinstance(fact, TurnOpened):
            self._calls.update({(turn_id, call.invocation_id): call for call in fact.calls})
        elif isinstance(fact, CallAdded):
            self._calls[turn_id, fact.call.invocation_id] = fact.call
        sign, style = _LOOKS.get(fact.type, _OTHER)
        what = f"{sign} {fact.type}"
        invocation_id: str = getattr(fact, "invocation_id", None) or ""
        if isinstance(fact, CallAdded):
            invocation_id = fact.call.invocation_id
        detail = self._detail(fact, verdict)
        self._lines.append(
            _Line(fact.at, fact.sequence, turn_id, invocation_id, what, detail, style)
        )

    def _detail(self, fact: Fact, verdict: Verdict) -> str:
        if isinstance(fact, ToolExecutionStarted):
            return self._started(fact)
        if isinstance(fact, TurnSettled):
            return _outcomes(verdict)
        tell = _DETAILS.get(fact.type)
        return "" if tell is None else tell(fact)

    def _started(self, fact: ToolExecutionStarted) -> str:
        """Say who runs it and, where nobody was shown them before, the arguments."""
        call = self._calls.get((fact.turn_id, fact.invocation_id))
        shown = "" if call is None or call.requires_approval else f" {canonical(call.arguments)}"
        return f"{fact.worker or 'somebody'}, attempt {fact.attempt}{shown}"

    def show(self) -> None:
        """Print the timeline on standard output."""
        piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
        console = Console(highlight=False, width=_PIPED_WIDTH if piped else None)
        turns = len(self._conversation.turns)
        title = f"run {self._conversation.run_id}, {turns} turn{'' if turns == 1 else 's'}"
        console.print(Text(harmless(title), style="bold"), no_wrap=True, overflow="ellipsis")
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
        table.add_column("seconds", justify="right", no_wrap=True, min_width=7)
        table.add_column("fact", justify="right", no_wrap=True, min_width=4)
        table.add_column("turn", no_wrap=True, overflow="ellipsis", max_width=6)
        table.add_column("invocation", no_wrap=True, overflow="ellipsis", max_width=32)
        table.add_column("what", no_wrap=True, overflow="ellipsis", min_width=29)
        table.add_column("detail", no_wrap=True, overflow="ellipsis", ratio=1)
        for line in self._lines:
            self._add(table, line)
        console.print(table)
        console.print()

    def _add(self, table: Table, line: _Line) -> None:
        call = self._calls.get((line.turn_id, line.invocation))
        invocation = Text(harmless(call.tool_name if call else line.invocation, limit=_CUT))
        if call is not None:
            invocation.append(f" {harmless(line.invocation, limit=_CUT)}", style="dim")
        refused = line.sequence is None
        table.add_row(
            Text(f"{line.at - START:.3f}"),
            Text("" if refused else str(line.sequence)),
            Text(harmless(line.turn_id, limit=_CUT)),
            invocation,
            Text(line.what, style="" if refused else line.style),
            Text(harmless(line.detail, limit=_CUT)),
            style="dim" if refused else "",
            end_section=line.what.endswith(FactType.CONTINUATION_TAKEN),
        )


def _opened(fact: TurnOpened) -> str:
    calls = len(fact.calls)
    how = "sealed" if fact.sealed else "the response is still streaming"
    return f"epoch {fact.epoch}, {calls} call{'' if calls == 1 else 's'}, {how}"


def _outcomes(verdict: Verdict) -> str:
    """Say what the continuation tells the model."""
    results = [
        result
        for effect in verdict.effects
        if isinstance(effect, Continue)
        for result in effect.results
    ]
    counts = Counter(str(result.status) for result in results)
    told = ", ".join(f"{number} {status}" for status, number in counts.items())
    return f"continue with {told}" if told else "nothing to continue with"


_DETAILS: Final[dict[FactType, Callable[[Any], str]]] = {
    FactType.TURN_OPENED: _opened,
    FactType.CALL_ADDED: lambda fact: canonical(fact.call.arguments),
    FactType.TOOL_APPROVAL_REQUESTED: lambda fact: canonical(fact.arguments),
    FactType.TOOL_APPROVED: lambda fact: f"by {fact.decided_by or 'somebody'}, {fact.scope}",
    FactType.TOOL_DENIED: lambda fact: str(fact.reason or fact.error),
    FactType.TOOL_EXECUTION_SUCCEEDED: lambda fact: canonical(fact.result),
    FactType.TOOL_EXECUTION_FAILED: lambda fact: str(fact.error),
}
