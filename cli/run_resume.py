"""Where a conversation was left, for whoever goes on with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from rich.text import Text

from ..agent.conversation import PREFIX, Conversation
from ..agent.messages import Answer, Prompt
from ..models.safe_text import harmless
from ..models.sealed import shown_json
from ..runtime.journal.ledger import Noted
from ..views.meanings import stands

_LINES: Final = 8
"""Lines of the last prompt, and of the last answer."""
_WIDTH: Final = 400
"""Characters of a line."""
_CALLS: Final = 8
"""Calls that are named."""
_OPENING: Final = "(the recorded conversation "


def opening_of(name: str) -> str:
    """Return the prompt with which a recording begins."""
    return f"{_OPENING}{name})"


def has_begun(notes: Iterable[Noted]) -> bool:
    """Whether anything was said."""
    return any(it.note.id == f"{PREFIX}1" for it in notes)


def recording_of(notes: Iterable[Noted]) -> str | None:
    """Return the name of the recording with which a run began, None if it began otherwise."""
    first = [it.note.body for it in notes if it.note.id == f"{PREFIX}1"]
    text = first[0].get("text") if first else None
    if not isinstance(text, str) or not text.startswith(_OPENING):
        return None
    return text.removeprefix(_OPENING).removesuffix(")")


def spec_of(notes: Iterable[Noted]) -> str | None:
    """Return the model that answered last, as PROVIDER:NAME, if its answer says so."""
    specs = [it.note.body.get("spec") for it in notes]
    return next((it for it in reversed(specs) if isinstance(it, str)), None)


def end_of(conversation: Conversation) -> Iterator[Text]:
    """Yield its end: the last prompt, the last answer, and the calls that have not ended."""
    places = [place for place, it in enumerate(conversation.said) if isinstance(it, Prompt)]
    latest = conversation.said[places[-1] :] if places else conversation.said
    answers = [it for it in latest if isinstance(it, Answer)]
    if places:
        yield from quoted("you", conversation.said[places[-1]].text or "")
    for answer in answers[-1:]:
        if answer.text:
            yield from quoted("model", answer.text)
        turn = conversation.turns.get(conversation.turn_id or "") if answer.calls else None
        left = () if turn is None else turn.unfinished
        for call in left[:_CALLS]:
            name = f"{harmless(call.tool_name, limit=40)} {stands(call)}"
            arguments = harmless(shown_json(call.arguments), limit=80)
            yield Text(f"  {name} {arguments}", "dim")
        if len(left) > _CALLS:
            yield Text(f"  … and {len(left) - _CALLS} calls more", "dim")


def quoted(who: str, text: str) -> Iterator[Text]:
    """Yield the first lines of what somebody said."""
    lines = text.strip("\n").split("\n")
    for number, line in enumerate(lines[:_LINES]):
        before = f"  {who}: " if not number else " " * (len(who) + 4)
        yield Text(before + harmless(line, limit=_WIDTH), "dim")
    if len(lines) > _LINES:
        yield Text(f"  … and {len(lines) - _LINES} lines more", "dim")
