"""A run as a client of AG-UI is told it: a function of entries and what it has (F-61 … F-64).

Sent is what its messages lack, the facts above its cursor, and exactly one end.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from ...models.calls import Status
from ...models.values import ABSENT, Json, canonical
from ...runtime.journal.ledger import START, Cursor
from ...views.call_view import CallView
from .agui_messages import ASSISTANT, USER, Messages
from .approval_ids import ApprovalId
from .entries import Entry
from .following import Event
from .story import Answered, CallChanged, Change, Happening, Prompted, Story

NAME: Final = "turnlock"
"""What is ours in metadata and in the state."""
RESULT: Final = "result/"
"""Begins the id of the message that tells the end of a call."""
ANSWER: Final[Mapping[str, Json]] = {
    "type": "object",
    "required": ["approved"],
    "properties": {
        "approved": {"type": "boolean"},
        "reason": {"type": "string"},
        "arguments": {"type": "object"},
        "scope": {"enum": ["once", "turn", "session"]},
    },
}
"""What an answer to a question is (F-64)."""
RESOLUTION: Final[Mapping[str, Json]] = {
    "type": "object",
    "required": ["resolution"],
    "properties": {
        "resolution": {"enum": ["retry", "result", "error"]},
        "result": {},
        "error": {"type": "string"},
    },
}
"""What one is to the question what became of a call."""


class Agui:
    """One stream of one client."""

    def __init__(
        self,
        story: Story,
        *,
        run_id: str,
        messages: Messages | None = None,
        above: Cursor = START,
        keeps_state: bool = True,
    ) -> None:
        """Begin: `run_id` is the client's name for the stream, which is echoed (F-60).

        It has these messages and the facts up to a cursor. `keeps_state`: its state is an object,
        in which our cursor can stand.
        """
        self.is_over = False
        self._story: Final = story
        self._run_id: Final = run_id
        self._messages: Final = messages or Messages(())
        self._above: Final = above
        self._keeps_state: Final = keeps_state
        self._last = above
        self._open: str | None = None
        """The message whose text is being said."""
        self._asked: Final[dict[str, Entry]] = {}
        """The facts that ask, by their calls."""

    def start(self, **more: Json) -> Event:
        """Return what a stream begins with."""
        ids = {"threadId": self._story.run_id, "runId": self._run_id}
        return {"type": "RUN_STARTED", **ids, **more}

    def take(self, entry: Entry, happened: Sequence[Happening]) -> Iterator[Event]:
        """Say what the client lacks of what has happened, and the fact itself."""
        self._last = max(self._last, entry.cursor)
        fact = entry.fact
        if fact is not None and entry.cursor > self._above:
            about = msgspec.json.encode(_about(entry))
            yield {
                "type": "CUSTOM",
                "name": fact.type.value,
                "value": entry.raw,
                "metadata": {NAME: msgspec.Raw(about)},
            }
        for it in happened:
            if isinstance(it, Prompted):
                yield from self._prompted(it)
            elif isinstance(it, Answered):
                yield from self._answered(it)
            elif isinstance(it, CallChanged):
                if it.change in {Change.ASKED, Change.IN_DOUBT}:
                    self._asked[it.call_id] = entry
                elif it.change is Change.ENDED:
                    self._asked.pop(it.call_id, None)
                yield from self._changed(it)

    def hear(self, message_id: str, text: str) -> Iterator[Event]:
        """Say some more of an answer that is not whole yet."""
        if self._open != message_id:
            if self._messages.has(message_id):
                return  # it has some of it already, nobody knows how much
            yield from self._shut()
            self._open = message_id
            yield _said("START", message_id, role=ASSISTANT)
        self._messages.say(message_id, ASSISTANT, text)
        yield _said("CONTENT", message_id, delta=text)

    def _prompted(self, it: Prompted) -> Iterator[Event]:
        if self._messages.has_parts(it.message_id):
            return  # the page has it otherwise than as one text, and it is what was said
        yield from self._whole(it.message_id, USER, it.text)

    def _answered(self, it: Answered) -> Iterator[Event]:
        yield from self._whole(it.message_id, ASSISTANT, it.text)

    def _whole(self, name: str, role: str, text: str) -> Iterator[Event]:
        """Say what the client lacks of a text that is whole now."""
        has = self._messages.text(name)
        if self._open != name and text == has:
            return
        is_right = text.startswith(has)
        if self._open != name and is_right:
            yield from self._shut()
            self._open = name
            yield _said("START", name, role=role)
        if is_right and text != has:
            self._messages.say(name, role, text[len(has) :])
            yield _said("CONTENT", name, delta=text[len(has) :])
        yield from self._shut()
        if not is_right:  # the model began anew, and the client has the beginning of before
            self._messages.correct(name, text)
            yield self._snapshot()

    def _snapshot(self) -> Event:
        return {"type": "MESSAGES_SNAPSHOT", "messages": [dict(it) for it in self._messages.all]}

    def _changed(self, it: CallChanged) -> Iterator[Event]:
        if it.change is Change.REQUESTED:
            yield from self._requested(it)
        elif it.change is Change.ENDED and not self._messages.has_result(it.call_id):
            message_id, content = f"{RESULT}{it.call_id}", _ended(it.call)
            self._messages.end(it.call_id, message_id, content)
            yield {
                "type": "TOOL_CALL_RESULT",
                "messageId": message_id,
                "toolCallId": it.call_id,
                "content": content,
                "role": "tool",
            }

    def _requested(self, it: CallChanged) -> Iterator[Event]:
        name, arguments = it.call_id, canonical(it.call.arguments or {})
        has = self._messages.arguments(name)
        if has == arguments:
            return
        if has is None:
            self._messages.call(name, it.call.tool_name, it.message_id)
            has = ""
        self._messages.argue(name, arguments)
        if not arguments.startswith(has):
            yield self._snapshot()
            return
        started: dict[str, Any] = {"toolCallName": it.call.tool_name}
        if it.message_id is not None:
            started["parentMessageId"] = it.message_id
        yield {"type": "TOOL_CALL_START", "toolCallId": name, **started}
        yield {"type": "TOOL_CALL_ARGS", "toolCallId": name, "delta": arguments[len(has) :]}
        yield {"type": "TOOL_CALL_END", "toolCallId": name}

    def refused(self, interrupt_id: str, reason: str, call: Mapping[str, Any] | None) -> Event:
        """Return what is said of an answer that was not taken (F-65)."""
        told = {"interruptId": interrupt_id, "reason": reason, "call": call}
        return {"type": "CUSTOM", "name": "DELIVERY_REFUSED", "value": told}

    # Its end (F-63).

    def look(self, *, is_late: bool) -> Iterator[Event]:
        """Say the end where it is reached."""
        story = self._story
        trouble = story.trouble
        if trouble is not None and (trouble.is_final or is_late):
            yield from self.fail(trouble.code, trouble.text)
            return
        questions, doubts = story.questions, story.doubts
        if is_late or (questions and not doubts and not story.is_at_work):
            asked = [*map(self._question, questions), *map(self._doubt, doubts)]
            if asked:
                yield from self._finish({"type": "interrupt", "interrupts": asked})
                return
        if story.is_at_rest:
            kind = "cancelled" if story.was_interrupted else "success"
            yield from self._finish({"type": kind})

    def fail(self, code: str, detail: str) -> Iterator[Event]:
        """Say that it went wrong."""
        yield from self._leave()
        yield {"type": "RUN_ERROR", "message": detail, "code": code}

    def _finish(self, outcome: Mapping[str, Any]) -> Iterator[Event]:
        yield from self._leave()
        ids = {"threadId": self._story.run_id, "runId": self._run_id}
        yield {"type": "RUN_FINISHED", **ids, "outcome": outcome}

    def _leave(self) -> Iterator[Event]:
        """Shut what is open, and leave the cursor in the client's state (F-62)."""
        self.is_over = True
        yield from self._shut()
        if self._keeps_state:
            told = {"op": "add", "path": f"/{NAME}", "value": {"cursor": str(self._last)}}
            yield {"type": "STATE_DELTA", "delta": [told]}

    def _shut(self) -> Iterator[Event]:
        if self._open is not None:
            yield _said("END", self._open)
            self._open = None

    def _question(self, call: CallView) -> Event:
        told = self._interrupt(call, str(ApprovalId.of_question(call)), "tool_approval")
        message = f"May {call.tool_name} run with these arguments?"
        if call.deadline is not None:
            told["expiresAt"] = _iso(call.deadline)
        return {**told, "message": message, "responseSchema": ANSWER}

    def _doubt(self, call: CallView) -> Event:
        told = self._interrupt(call, str(ApprovalId.of_doubt(call)), "in_doubt")
        message = f"Nobody knows whether {call.tool_name} has happened. What became of it?"
        return {**told, "message": message, "responseSchema": RESOLUTION}

    def _interrupt(self, call: CallView, name: str, reason: str) -> dict[str, Any]:
        told = CallChanged(change=Change.ASKED, call=call, message_id=None, reply=0).call_id
        entry = self._asked.get(told)
        made: dict[str, Any] = {"id": name, "reason": reason, "toolCallId": told}
        return made if entry is None else {**made, "metadata": {NAME: entry.raw}}


def _about(entry: Entry) -> Mapping[str, Any]:
    return {
        "event_id": entry.event_id,
        "cursor": str(entry.cursor),
        "correlation": entry.correlation,
    }


def _said(part: str, message_id: str, **more: str) -> Event:
    return {"type": f"TEXT_MESSAGE_{part}", "messageId": message_id, **more}


def _ended(call: CallView) -> str:
    """Return what a call came to, as a tool's message says it."""
    outcome = call.outcome
    if outcome is None:
        raise AssertionError(call)
    if outcome.status is Status.DENIED:
        return canonical({"denied": outcome.reason or ""})
    if outcome.status is Status.FAILED:
        return canonical({"error": outcome.error or ""})
    result: Json = None if outcome.result is ABSENT else outcome.result
    return result if isinstance(result, str) else canonical(result)


def _iso(at: float) -> str:
    """Return a moment as ISO 8601 says it, in UTC."""
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at))
    return f"{whole}.{int(at % 1 * 1000):03d}Z"
