"""A client of AG-UI as its reducer keeps messages and state, without a browser: what a page has.

It is written from @ag-ui/client 1.0.0 (`apply/default.ts`, `verify.ts`), not from our own code, and
fails where that one would.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import attrs
import httpx

Event = dict[str, Any]


class ProtocolError(AssertionError):
    """What the real client would not take."""


@attrs.define
class Page:
    """One thread in one tab."""

    thread_id: str = "t"
    messages: list[Event] = attrs.field(factory=list[Event])
    state: Any = attrs.field(factory=dict[str, Any])
    interrupts: list[Event] = attrs.field(factory=list[Event])
    events: list[Event] = attrs.field(factory=list[Event])
    """Those of the latest stream."""
    open_texts: set[str] = attrs.field(factory=set[str])
    open_calls: set[str] = attrs.field(factory=set[str])
    over: str | None = None

    def say(self, text: str, message_id: str) -> None:
        """Have a person say something."""
        self.messages.append({"id": message_id, "role": "user", "content": text})

    def asks(self, resume: Sequence[Event] | None = None) -> Event:
        """Return what it sends."""
        body: Event = {
            "threadId": self.thread_id,
            "runId": "run-of-the-page",
            "protocolVersion": "1.0",
            "tools": [],
            "context": [],
            "forwardedProps": {},
            "state": self.state,
            "messages": self.messages,
        }
        return body if resume is None else {**body, "resume": list(resume)}

    def begin(self) -> None:
        """Begin to read a stream."""
        self.events, self.over = [], None
        self.open_texts, self.open_calls = set(), set()

    async def run(
        self, client: httpx.AsyncClient, resume: Sequence[Event] | None = None, *, cut: int = -1
    ) -> list[Event]:
        """Ask, and take the stream, or its first events only: then the connection is lost."""
        self.begin()
        async with client.stream("POST", "/v1/agui", json=self.asks(resume)) as answer:
            if answer.status_code != 200:
                raise AssertionError((await answer.aread()).decode())
            if cut == 0:
                return []
            async for event in events_of(answer):
                self.take(event)
                if len(self.events) == cut:
                    return self.events
        if self.over is None:
            raise ProtocolError("a stream has an end")
        return self.events

    def answers(self, **payload: Any) -> list[Event]:
        """Return what a person says to all that is asked."""
        return [
            {"interruptId": it["id"], "status": "resolved", "payload": payload}
            for it in self.interrupts
        ]

    def named(self, name: str) -> list[Event]:
        """Return the events of the latest stream of one type, or of one custom name."""
        return [it for it in self.events if name in (it["type"], it.get("name"))]

    def _find(self, message_id: str) -> Event | None:
        return next((it for it in self.messages if it["id"] == message_id), None)

    def _call(self, call_id: str) -> Event | None:
        calls = (call for it in self.messages for call in it.get("toolCalls", ()))
        return next((call for call in calls if call["id"] == call_id), None)

    def take(self, event: Event) -> None:
        """Take the next event. Raises `ProtocolError` where the real client does."""
        first = not self.events
        self.events.append(event)
        kind: str = event["type"]
        if first and kind not in {"RUN_STARTED", "RUN_ERROR"}:
            raise ProtocolError(f"begins with {kind}")
        if self.over is not None:
            raise ProtocolError(f"{kind} after {self.over}")
        {
            "RUN_STARTED": self._started,
            "TEXT_MESSAGE_START": self._text_start,
            "TEXT_MESSAGE_CONTENT": self._text_content,
            "TEXT_MESSAGE_END": self._text_end,
            "TOOL_CALL_START": self._call_start,
            "TOOL_CALL_ARGS": self._call_args,
            "TOOL_CALL_END": self._call_end,
            "TOOL_CALL_RESULT": self._call_result,
            "MESSAGES_SNAPSHOT": self._snapshot,
            "STATE_DELTA": self._state,
            "CUSTOM": self._custom,
            "RUN_FINISHED": self._finished,
            "RUN_ERROR": self._error,
        }[kind](event)

    def _started(self, event: Event) -> None:
        if len(self.events) > 1:
            raise ProtocolError("starts twice")
        assert event["threadId"] == self.thread_id

    def _text_start(self, event: Event) -> None:
        name = event["messageId"]
        if name in self.open_texts:
            raise ProtocolError(f"{name} is open")
        self.open_texts.add(name)
        if self._find(name) is None:
            role = event.get("role", "assistant")
            self.messages.append({"id": name, "role": role, "content": ""})

    def _text_content(self, event: Event) -> None:
        name = event["messageId"]
        message = self._find(name)
        if name not in self.open_texts or message is None:
            raise ProtocolError(f"{name} is not open")
        message["content"] = message.get("content", "") + event["delta"]

    def _text_end(self, event: Event) -> None:
        if event["messageId"] not in self.open_texts:
            raise ProtocolError("ends what is not open")
        self.open_texts.remove(event["messageId"])

    def _call_start(self, event: Event) -> None:
        name = event["toolCallId"]
        if name in self.open_calls:
            raise ProtocolError(f"{name} is open")
        self.open_calls.add(name)
        if self._call(name) is not None:
            return
        owner = str(event.get("parentMessageId", name))
        if self._find(owner) is None:
            self.messages.append({"id": owner, "role": "assistant"})
        message = self._find(owner)
        assert message is not None
        function: Event = {"name": event["toolCallName"], "arguments": ""}
        calls: list[Event] = message.setdefault("toolCalls", [])
        calls.append({"id": name, "type": "function", "function": function})

    def _call_args(self, event: Event) -> None:
        call = self._call(event["toolCallId"])
        if event["toolCallId"] not in self.open_calls or call is None:
            raise ProtocolError("arguments of what is not open")
        call["function"]["arguments"] += event["delta"]

    def _call_end(self, event: Event) -> None:
        if event["toolCallId"] not in self.open_calls:
            raise ProtocolError("ends what is not open")
        self.open_calls.remove(event["toolCallId"])

    def _call_result(self, event: Event) -> None:
        name = event["toolCallId"]
        message: Event = {
            "id": event["messageId"],
            "toolCallId": name,
            "role": "tool",
            "content": event["content"],
        }
        owner = next(
            (
                place
                for place, it in enumerate(self.messages)
                if any(call["id"] == name for call in it.get("toolCalls", ()))
            ),
            None,
        )
        if owner is None:
            self.messages.append(message)
            return
        at = owner + 1
        while at < len(self.messages) and self.messages[at]["role"] == "tool":
            at += 1
        self.messages.insert(at, message)

    def _snapshot(self, event: Event) -> None:
        told = {it["id"]: it for it in event["messages"]}
        kept = [told[it["id"]] for it in self.messages if it["id"] in told]
        known = {it["id"] for it in kept}
        self.messages = [*kept, *(it for it in event["messages"] if it["id"] not in known)]

    def _state(self, event: Event) -> None:
        for it in event["delta"]:
            assert it["op"] == "add"
            self.state[it["path"].removeprefix("/")] = it["value"]

    def _custom(self, event: Event) -> None:
        assert isinstance(event["name"], str)
        assert "value" in event

    def _finished(self, event: Event) -> None:
        if self.open_texts or self.open_calls:
            raise ProtocolError(f"open at the end: {self.open_texts | self.open_calls}")
        assert event["threadId"] == self.thread_id
        assert event["runId"] == "run-of-the-page"
        outcome = event["outcome"]
        self.over = outcome["type"]
        self.interrupts = outcome["interrupts"] if self.over == "interrupt" else []

    def _error(self, event: Event) -> None:
        self.over = event["code"]


async def events_of(answer: httpx.Response) -> AsyncIterator[Event]:
    """The events of a stream, as its parser reads them."""
    async for line in answer.aiter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))
