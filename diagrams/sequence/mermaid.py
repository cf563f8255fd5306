"""Sequence diagrams in the language of Mermaid, as its own parser reads it.

Names and words from outside are labels only, never identifiers. Whatever means something to Mermaid
is written as an entity: ``;`` and line ends close a statement, ``#`` begins an entity, ``%`` a
comment or a directive, ``$$`` a formula, ``<br>`` breaks a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ...models.safe_text import harmless
from .messages import Kind, Message, Party, Step, parties_of

MOST_TEXT: Final = 45_000
"""Characters of a diagram; Mermaid draws none of more than 50,000 unless it is configured to."""
_LABELS: Final = (120, 80, 50, 30, 12)
"""Characters of a label: the first of these with which the diagram is short enough."""

_PLAIN: Final = re.compile(r"[^\w \-+.,:/()'“”·…×≠=?!→]|:(?! )|[^\S ]")
"""Characters that are written as entities: all but letters, digits and harmless punctuation."""
_ARROWS: Final = {Kind.REFUSAL: "--x", Kind.INFERRED: "--)", Kind.TIME: "--)"}
_ARROW: Final = "-)"


def mermaid_text(steps: tuple[Step, ...]) -> str:
    """Return the diagram, its labels as long as all of it may be."""
    text = ""
    for limit in _LABELS:
        text = "\n".join(_lines(steps, limit)) + "\n"
        if len(text) <= MOST_TEXT:
            break
    return text


def label(words: str, limit: int) -> str:
    """Return words that Mermaid shows as they are, on one line."""
    return _PLAIN.sub(lambda found: f"#{ord(found[0])};", harmless(words, limit=limit))


def _lines(steps: tuple[Step, ...], limit: int) -> Iterator[str]:
    parties = parties_of(steps)
    aliases = {party: f"p{place}" for place, party in enumerate(parties)}
    yield "sequenceDiagram"
    yield "    autonumber"
    yield from (f"    participant {alias} as {_name(one)}" for one, alias in aliases.items())
    for step in steps:
        yield from (f"    {_line(message, aliases, limit)}" for message in step.messages)


def _name(party: Party) -> str:
    return label(party.name, 30)


def _line(message: Message, aliases: dict[Party, str], limit: int) -> str:
    words = label(message.label, limit)
    sender, receiver = aliases[message.sender], aliases[message.receiver]
    if message.is_note:
        return f"Note right of {sender}: {words}"
    return f"{sender}{_ARROWS.get(message.kind, _ARROW)}{receiver}: {words}"
