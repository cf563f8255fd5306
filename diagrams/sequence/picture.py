"""The sequence diagram of a recording, or of what a kernel did wrong."""

from __future__ import annotations

import zlib
from typing import Final

import attrs

from ...models.safe_text import harmless
from ..drawing.lettering import cut_to
from ..drawing.page import page
from ..drawing.tables import WIDTH, Table, markdown_table, plain_markdown, text_table
from ..errors import NoSuchForm
from ..palette import Theme
from ..picture import Format, Picture
from ..recordings.recording import Recording
from .answers import Comparison
from .bounding import bounded
from .mermaid import mermaid_text
from .messages import Kind, Step
from .selection import selected
from .svg import Head, drawn
from .telling import told
from .text import text_lines
from .words import clock

_TITLE: Final = 200
"""Characters of a title."""
_ID: Final = 80
"""Characters of an id in a title."""


@attrs.frozen(kw_only=True, repr=False)
class SequencePicture(Picture):
    """Who said what to whom. `steps` are those that are drawn: at most `MOST_MESSAGES` messages."""

    formats = frozenset(Format) - {Format.DOT}

    name: str
    steps: tuple[Step, ...]
    description: str
    comparison: Comparison | None = None
    """What was expected last, and what was got, where the picture shows that something is wrong."""

    @property
    def title(self) -> str:
        """What it is called, on one line."""
        return harmless(self.name, limit=_TITLE)

    def svg(self, *, theme: Theme = Theme.LIGHT) -> str:
        """Return one `svg` element; the id of each message ends with ``message-`` and its number.

        What stands before that is the same for the same picture, and another for another, so that
        several can stand in one page.
        """
        return drawn(
            self.steps,
            head=Head(name=self._id, title=self.title, description=self.description),
            theme=theme,
            comparison=self.comparison,
        )

    @property
    def _id(self) -> str:
        told = f"{self.name} {self.description} {self.steps and self.steps[-1]}"
        return f"sequence-{zlib.crc32(told.encode('utf-8', 'replace')):08x}"

    def dot(self, *, theme: Theme = Theme.LIGHT) -> str:
        """Raise `NoSuchForm`: Graphviz draws graphs, and this is none."""
        raise NoSuchForm(
            f"a sequence diagram has no form dot in any theme ({theme}); ask for svg, or for mmd, "
            "which is text, too"
        )

    def mermaid(self) -> str:
        """Return a Mermaid `sequenceDiagram`, without a fence."""
        return mermaid_text(self.steps)

    def markdown(self) -> str:
        """Return Markdown with a Mermaid block and the tables."""
        head = f"# {plain_markdown(self.title)}\n\n{plain_markdown(self.description)}\n"
        tables = "\n".join(markdown_table(table) for table in self.tables())
        return f"{head}\n```mermaid\n{self.mermaid()}```\n\n{tables}"

    def html(self, *, theme: Theme = Theme.LIGHT) -> str:
        """Return one whole page that needs no network, no script and no other file."""
        return page(
            title=self.title,
            description=self.description,
            pictures=[self.svg(theme=theme)],
            tables=self.tables(),
            theme=theme,
        )

    def text(self) -> str:
        """Return plain text for a terminal, at most 100 columns wide."""
        lines = [cut_to(self.title, WIDTH), "", *text_lines(self.steps)]
        if self.comparison is not None:
            lines += ["", text_table(self.comparison.table)]
        return "\n".join(lines) + "\n"

    def tables(self) -> tuple[Table, ...]:
        """Return the tables that stand below the picture."""
        compared = () if self.comparison is None else (self.comparison.table,)
        return (*compared, _messages_table(self.steps))


def sequence_picture(
    recording: Recording, *, turn_id: str | None = None, invocation_id: str | None = None
) -> SequencePicture:
    """Draw a recording, or the part of it that is about a turn, or about an invocation.

    Raises `NothingToDraw` for a turn or an invocation that is not in the recording.
    """
    chosen = selected(recording, turn_id=turn_id, invocation_id=invocation_id)
    about = [f"run {harmless(recording.run.run_id, limit=_ID)}"]
    about += [] if turn_id is None else [f"turn {harmless(turn_id, limit=_ID)}"]
    about += [] if invocation_id is None else [f"invocation {harmless(invocation_id, limit=_ID)}"]
    steps = told(chosen)
    return SequencePicture(
        name=", ".join(about), steps=bounded(steps), description=described(steps)
    )


def described(steps: tuple[Step, ...]) -> str:
    """Say in a sentence what a diagram shows, for those who do not see it."""
    counts = dict.fromkeys(Kind, 0)
    for step in steps:
        for message in step.messages:
            counts[message.kind] += 1
    parts = [
        f"{counts[kind]:,} {one if counts[kind] == 1 else many}"
        for kind, (one, many) in _COUNTED.items()
        if counts[kind] or kind in {Kind.DELIVERY, Kind.FACT}
    ]
    sentence = f"A sequence diagram: {', '.join(parts)}."
    if counts[Kind.INFERRED]:
        sentence += " Dashed arrows to the kernel are inferred: only their facts were recorded."
    return sentence


_COUNTED: Final = {
    Kind.DELIVERY: ("delivery", "deliveries"),
    Kind.REFUSAL: ("refusal", "refusals"),
    Kind.FACT: ("fact", "facts"),
    Kind.EFFECT: ("effect", "effects"),
}


def _messages_table(steps: tuple[Step, ...]) -> Table:
    rows: list[tuple[str, ...]] = []
    for step in steps:
        time = clock(step.at)
        for message in step.messages:
            number = str(len(rows) + 1)
            where = (message.sender.name, message.receiver.name)
            rows.append((number, time, *where, message.label))
    return Table(
        title="Messages",
        head=("number", "seconds", "from", "to", "what"),
        rows=tuple(rows),
        note="Seconds count from the first moment of the recording.",
    )
