"""What listeners of a conversation hear while a model speaks: passed on live, never kept.

All of it goes by the entry id that the answer will have. Asked again, there is another start with
the next try: what was heard of the former is void, as it is after a failure.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeAlias

import attrs

from .messages import Stop, Tokens
from .speaking import CallBegan, CallText, Elsewhere, Text, Thought

Shown: TypeAlias = Text | Thought | CallBegan | CallText | Elsewhere
"""What is shown of an answer while it comes."""


@attrs.frozen(kw_only=True)
class SpeechStarted:
    """A model is asked for an answer; `attempt` counts from 1."""

    kind: ClassVar[str] = "start"
    entry_id: str
    agent: str
    attempt: int

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON; its kind stands beside."""
        return {"entry_id": self.entry_id, "agent": self.agent, "try": self.attempt}


@attrs.frozen(kw_only=True)
class SpeechChunk:
    """Some more of the answer."""

    kind: ClassVar[str] = "chunk"
    entry_id: str
    said: Shown

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON, with `text`, `thought` or `call`; its kind stands beside."""
        return {"entry_id": self.entry_id, **_shown(self.said)}


@attrs.frozen(kw_only=True)
class SpeechEnded:
    """The answer is kept next: all of it or, with the stop `cut`, as far as it began."""

    kind: ClassVar[str] = "end"
    entry_id: str
    stop: Stop
    tokens: Tokens

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON; its kind stands beside."""
        tokens = attrs.asdict(self.tokens)
        return {"entry_id": self.entry_id, "stop": self.stop.value, "tokens": tokens}


@attrs.frozen(kw_only=True)
class SpeechFailed:
    """There is no answer for now, and what was heard is void."""

    kind: ClassVar[str] = "error"
    entry_id: str
    message: str

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON; its kind stands beside."""
        return {"entry_id": self.entry_id, "message": self.message}


@attrs.frozen(kw_only=True)
class ItemChunk:
    """Some more of an item of another runtime: its `text`, a `thought`, or a call's `output`."""

    kind: ClassVar[str] = "item"
    item: str
    """The id of the message that ends it, or the call's."""
    of: Literal["text", "thought", "output"]
    text: str

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON; its kind stands beside."""
        return {"item": self.item, "of": self.of, "text": self.text}


Transient: TypeAlias = SpeechStarted | SpeechChunk | SpeechEnded | SpeechFailed | ItemChunk
"""What is said while a model speaks, passed on live, and never kept."""


def _shown(said: Shown) -> dict[str, Any]:
    if isinstance(said, Text):
        return {"text": said.text}
    if isinstance(said, Thought):
        return {"thought": said.text}
    call = attrs.asdict(said)
    return {"call": call | {"elsewhere": True} if isinstance(said, Elsewhere) else call}
