"""What listeners of a conversation hear while a model speaks: passed on live, never kept.

All of it goes by the entry id that the answer will have. Asked again, there is another start with
the next try: what was heard of the former is void, as it is after a failure.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import attrs

from .messages import Stop, Tokens
from .speaking import CallBegan, CallText, Elsewhere, Text, Thought

Shown: TypeAlias = Text | Thought | CallBegan | CallText | Elsewhere
"""What is shown of an answer while it comes."""


@attrs.frozen(kw_only=True)
class SpeechStarted:
    """A model is asked for an answer; `attempt` counts from 1."""

    entry_id: str
    agent: str
    attempt: int


@attrs.frozen(kw_only=True)
class SpeechChunk:
    """Some more of the answer."""

    entry_id: str
    said: Shown


@attrs.frozen(kw_only=True)
class SpeechEnded:
    """The answer is there; it is kept next."""

    entry_id: str
    stop: Stop
    tokens: Tokens


@attrs.frozen(kw_only=True)
class SpeechFailed:
    """There is no answer for now, and what was heard is void."""

    entry_id: str
    message: str


Transient: TypeAlias = SpeechStarted | SpeechChunk | SpeechEnded | SpeechFailed
"""What is said while a model speaks, passed on live, and never kept."""


def as_json(transient: Transient) -> dict[str, Any]:
    """Return it as JSON: its kind, its entry id, and what it says."""
    told: dict[str, Any]
    if isinstance(transient, SpeechChunk):
        kind, told = "chunk", _shown(transient.said)
    elif isinstance(transient, SpeechStarted):
        kind, told = "start", {"agent": transient.agent, "try": transient.attempt}
    elif isinstance(transient, SpeechEnded):
        tokens = attrs.asdict(transient.tokens)
        kind, told = "end", {"stop": transient.stop.value, "tokens": tokens}
    else:
        kind, told = "error", {"message": transient.message}
    return {"kind": kind, "entry_id": transient.entry_id, **told}


def _shown(said: Shown) -> dict[str, Any]:
    if isinstance(said, Text):
        return {"text": said.text}
    if isinstance(said, Thought):
        return {"thought": said.text}
    call = attrs.asdict(said)
    return {"call": call | {"elsewhere": True} if isinstance(said, Elsewhere) else call}
