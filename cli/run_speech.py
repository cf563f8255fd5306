"""What the model says, shown while it says it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from rich.console import Console
from rich.text import Text as Shown

from ..agent.messages import Answer, Stop
from ..agent.speaking import Again, CallBegan, Elsewhere, Ended, Said, Text, Thought
from ..models.safe_text import harmless, harmless_lines

_ROWS: Final = 4
"""Rows of a line that is not ended yet."""
_LINE: Final = 4_000
"""Characters after which a line that does not end is broken."""
_THOUGHT: Final = 160
"""Characters of its latest thought."""
_VOID: Final = "what came of it is void"
_WHY: Final = {
    Stop.CUT: f"(the answer was cut off: {_VOID}, and the model is asked again)",
    Stop.LENGTH: "(the answer ends here because a bound of its length was reached)",
    Stop.REFUSED: "(the model, or its provider, refused to go on)",
    Stop.PAUSED: "(the model paused, and is asked to go on)",
    Stop.OTHER: "(the answer ended for a reason that its provider alone knows)",
}
"""What is said of answers that did not simply end."""


class Speech:
    """Text goes to `write` line by line as it comes, what is not ended yet into `rows`.

    Where answers go elsewhere (`aside`), only the text beside calls is written: the rest is not for
    here. Whatever is written first ends a line that is `open`, where there is no bottom for rows.
    """

    def __init__(
        self, tell: Callable[[str], None], *, aside: bool, chunk: Callable[[str], None] | None
    ) -> None:
        """`tell` writes whole lines; `chunk` writes a part of one, where nothing shows `rows`."""
        self._tell = tell
        self._aside = aside
        self._chunk = chunk
        self._begin()
        self.shown: str | None = None
        """The latest answer without calls that was written here."""

    def _begin(self) -> None:
        self._said = self._open = False
        self._tail = self._thought = self._calls = ""

    def hear(self, said: Said) -> None:
        """Take the next thing that is said."""
        if isinstance(said, Text):
            self._take(said.text)
        elif isinstance(said, Thought):
            self._thought = (self._thought + said.text)[-_THOUGHT:]
        elif isinstance(said, CallBegan):
            self._calls = said.tool_name
        elif isinstance(said, Elsewhere):
            self._calls = f"{said.tool_name}, which its provider runs"
        elif isinstance(said, Again):
            if self._said:
                self._end()
                self._tell(f"(the answer begins anew: {_VOID})")
        elif isinstance(said, Ended):
            self._ended(said.answer)

    def fail(self) -> None:
        """Learn that no more of this answer comes."""
        self._end()

    def rows(self, console: Console) -> Iterator[Shown]:
        """Yield what is not ended yet, for the bottom."""
        if self._tail:
            width = max(1, console.width - 1)
            latest = Shown(harmless(self._tail[-_ROWS * width :]))
            yield from list(latest.wrap(console, width))[-_ROWS:]
        elif self._calls:
            yield Shown(f"the model writes a call of {harmless(self._calls, limit=80)} …", "dim")
        elif self._thought:
            yield Shown(f"the model thinks: {harmless(self._thought)}", "dim")

    def _take(self, text: str) -> None:
        self._said = True
        self._thought = ""
        if self._aside:
            self._tail = (self._tail + text).rpartition("\n")[2][-_LINE:]
        elif self._chunk is not None:
            self._chunk(harmless_lines(text))
            self._open = not text.endswith("\n")
        else:
            lines, ends, self._tail = (self._tail + text).rpartition("\n")
            if len(self._tail) > _LINE:
                lines, ends, self._tail = f"{lines}{ends}{self._tail}", "\n", ""
            if ends:
                self._tell(lines)

    def _ended(self, answer: Answer) -> None:
        said, text = self._said, answer.text or ""
        self._end()
        if text and (answer.calls if self._aside else not said):
            self._tell(text)
        self.shown = None if self._aside or answer.calls else text
        if answer.stop in _WHY:
            self._tell(_WHY[answer.stop])

    def _end(self) -> None:
        tail, unended = self._tail, self._open
        self._begin()
        if unended and self._chunk is not None:
            self._chunk("\n")
        elif tail and not self._aside:
            self._tell(tail)
