"""A task: the fold of a run of one prompt, as A2A tells it (F-82). It is read from the journal.

What comes after the end of the first prompt is not the task's: its end is its last state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final, Self

import attrs
import msgspec

from ....guards.once import joined
from ....models.facts import (
    ContinuationTaken,
    ExecutionInDoubt,
    ToolApprovalRequested,
    TurnSettled,
)
from ....models.safe_text import harmless
from ..entries import Entry
from ..story import Answered, Happening, Prompted, Story
from .wire import written_time

PREFIX_OF_RUNS: Final = "a2a"
LONGEST_CONTEXT: Final = 100
"""Characters of a `contextId`, which stands in the ids of its tasks."""
_DIGEST: Final = 32


class State(StrEnum):
    """How a task stands."""

    SUBMITTED = "TASK_STATE_SUBMITTED"
    WORKING = "TASK_STATE_WORKING"
    INPUT_REQUIRED = "TASK_STATE_INPUT_REQUIRED"
    COMPLETED = "TASK_STATE_COMPLETED"
    FAILED = "TASK_STATE_FAILED"
    CANCELED = "TASK_STATE_CANCELED"


TERMINAL: Final = frozenset({State.COMPLETED, State.FAILED, State.CANCELED})


@attrs.frozen(kw_only=True)
class Status:
    """How a task stands, since when, and what its agent says about it."""

    state: State
    at: float = attrs.field(eq=False)
    parts: tuple[Mapping[str, Any], ...] = ()
    message_id: str = ""

    @property
    def is_terminal(self) -> bool:
        """Whether nothing follows."""
        return self.state in TERMINAL


@attrs.frozen(kw_only=True)
class Name:
    """Which task of which context it is."""

    context_id: str
    digest: str

    @classmethod
    def of(cls, who: str, context_id: str, message_id: str) -> Self:
        """Return the task that a message begins: the same for the same message of the same name."""
        digest = digest_of(who, context_id, message_id)
        return cls(context_id=context_id or digest, digest=digest)

    @classmethod
    def read(cls, task_id: str) -> Self | None:
        """Return what a task's id names; None for what is none."""
        first, _, rest = task_id.partition("/")
        context, _, digest = rest.partition("/")
        if first != PREFIX_OF_RUNS or not context or len(digest) != _DIGEST:
            return None
        found = cls(context_id=context.replace("%2F", "/").replace("%25", "%"), digest=digest)
        return found if found.run_id == task_id else None

    @property
    def run_id(self) -> str:
        """The run, and the task's id."""
        return joined(PREFIX_OF_RUNS, self.context_id, self.digest)


def digest_of(who: str, context_id: str, message_id: str) -> str:
    """Return what tells messages of one context apart, and of whom they are."""
    told = msgspec.json.encode([who, context_id, message_id])
    return sha256(told).hexdigest()[:_DIGEST]


class Task:
    """The fold of one task. Its story is folded by whoever follows the run."""

    def __init__(self, name: Name, story: Story, *, began: float) -> None:
        """Begin before the first entry."""
        self.name: Final = name
        self.artifacts: list[Mapping[str, Any]] = []
        """One for each fact, in their order."""
        self.history: list[Mapping[str, Any]] = []
        self._story = story
        self._asks: dict[tuple[str, str], tuple[int, msgspec.Raw]] = {}
        """The fact that asks about each call, and its sequence."""
        self._owed: set[str] = set()
        """Turns that have settled, and whose results nobody has taken."""
        self._said: Answered | None = None
        self.at = began
        """When something of it was kept last."""
        self._end: Status | None = None

    def take(self, entry: Entry, happened: Sequence[Happening]) -> None:
        """Take the next entry, which the story has taken."""
        if self._end is not None:
            return
        self.at = entry.at
        if entry.fact is not None:
            self._take_fact(entry)
        for it in happened:
            if isinstance(it, Prompted):
                self.history.append(self._message("ROLE_USER", it.message_id, _text(it.text)))
            elif isinstance(it, Answered):
                self._said = it
                if it.text:
                    self.history.append(self._message("ROLE_AGENT", it.message_id, _text(it.text)))
        self._end = self._ended()

    def status(self, *, asks_late: bool, fails_late: bool) -> Status:
        """Return how it stands.

        A question counts once nothing else runs, or it is late; a trouble that may pass once it is.
        """
        if self._end is not None:
            return self._end
        story = self._story
        asks = story.questions or story.doubts
        if asks and (asks_late or not story.is_at_work):
            return self._asking()
        if story.trouble is not None and fails_late:
            parts = (_part(text=story.trouble.text),)
            return Status(state=State.FAILED, at=self.at, parts=parts, message_id="trouble")
        state = State.WORKING if story.prompts else State.SUBMITTED
        said = self._said
        if said is None or not said.text:
            return Status(state=state, at=self.at)
        return Status(state=state, at=self.at, parts=_text(said.text), message_id=said.message_id)

    def told(
        self, status: Status, *, artifacts: bool = True, history: int | None = None
    ) -> dict[str, Any]:
        """Return the task as the protocol writes it."""
        told: dict[str, Any] = {
            "id": self.name.run_id,
            "contextId": self.name.context_id,
            "status": self.told_status(status),
        }
        if artifacts:
            told["artifacts"] = self.artifacts
        kept = self.history if history is None else self.history[len(self.history) - history :]
        return {**told, "history": kept} if kept else told

    def told_status(self, status: Status) -> dict[str, Any]:
        """Return a status as the protocol writes it."""
        told: dict[str, Any] = {"state": status.state.value, "timestamp": written_time(status.at)}
        if status.parts:
            told["message"] = self._message("ROLE_AGENT", status.message_id, status.parts)
        return told

    def _take_fact(self, entry: Entry) -> None:
        fact = entry.fact
        if isinstance(fact, ToolApprovalRequested | ExecutionInDoubt):
            self._asks[fact.turn_id, fact.invocation_id] = entry.cursor.sequence, entry.raw
        elif isinstance(fact, TurnSettled):
            self._owed.add(fact.turn_id)
        elif isinstance(fact, ContinuationTaken):
            self._owed.discard(fact.turn_id)
        artifact = {
            "artifactId": f"fact/{entry.cursor.sequence}",
            "name": "" if fact is None else str(fact.type),
            "parts": [_part(data=entry.raw)],
        }
        self.artifacts.append(artifact)

    def _ended(self) -> Status | None:
        story, trouble = self._story, self._story.trouble
        if not story.prompts:
            if trouble is None or not trouble.is_final:
                return None
        elif trouble is None or not trouble.is_final:
            if not story.is_at_rest or self._owed:  # the last fact follows the last word
                return None
            if story.was_interrupted:
                return Status(state=State.CANCELED, at=self.at)
            said = self._said
            parts = _text(said.text) if said is not None and said.text else ()
            name = "" if said is None else said.message_id
            return Status(state=State.COMPLETED, at=self.at, parts=parts, message_id=name)
        parts = (_part(text=trouble.text),)
        return Status(state=State.FAILED, at=self.at, parts=parts, message_id="trouble")

    def _asking(self) -> Status:
        story = self._story
        parts: list[Mapping[str, Any]] = []
        names = ["ask"]
        for call in (*story.questions, *story.doubts):
            name = harmless(call.tool_name, limit=80)
            what = "waits for approval" if call in story.questions else "is in doubt"
            sequence, raw = self._asks[call.turn_id, call.invocation_id]
            parts += [_part(text=f"{name} {what}"), _part(data={"ask": raw})]
            names.append(str(sequence))
        return Status(
            state=State.INPUT_REQUIRED, at=self.at, parts=tuple(parts), message_id="/".join(names)
        )

    def _message(
        self, role: str, message_id: str, parts: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        return {
            "messageId": message_id,
            "contextId": self.name.context_id,
            "taskId": self.name.run_id,
            "role": role,
            "parts": [*parts],
        }


def _part(**content: Any) -> dict[str, Any]:  # noqa: ANN401 - a text, or JSON
    media = "application/json" if "data" in content else "text/plain"
    return {**content, "mediaType": media}


def _text(text: str) -> tuple[Mapping[str, Any], ...]:
    return (_part(text=text),)
