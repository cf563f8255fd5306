"""The messages that a client of AG-UI has: what it says, and what it builds of what it is sent.

It is kept as that client's own reducer keeps it, so that only what it lacks is sent, and what it
has wrong can be put right (F-61).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from ..problems import Problem

USER: Final = "user"
ASSISTANT: Final = "assistant"
TOOL: Final = "tool"
Message = dict[str, Any]


class Messages:
    """One client's messages, in their order."""

    def __init__(self, told: Sequence[Mapping[str, Any]]) -> None:
        """Take what it says. Raises `Problem` (`invalid_value`) for what is no message."""
        self.all: Final[list[Message]] = []
        self._by_id: Final[dict[str, Message]] = {}
        self._calls: Final[dict[str, dict[str, Any]]] = {}
        self._results: Final[set[str]] = set()
        for place, message in enumerate(told):
            for name in ("id", "role"):
                if not isinstance(message.get(name), str):
                    raise Problem("invalid_value", "give text", at=f"messages[{place}].{name}")
            self._add(_copied(message))

    def _add(self, message: Message) -> None:
        self.all.append(message)
        self._by_id.setdefault(message["id"], message)
        for call in message.get("toolCalls") or ():
            self._calls.setdefault(call["id"], call)
        if message["role"] == TOOL:
            self._results.add(str(message.get("toolCallId")))

    def has(self, message_id: str) -> bool:
        """Whether there is a message of this id."""
        return message_id in self._by_id

    def has_parts(self, message_id: str) -> bool:
        """Whether a message of this id is made of parts, and not one text."""
        return not isinstance(self._by_id.get(message_id, {}).get("content", ""), str)

    def text(self, message_id: str) -> str:
        """Return the text of a message, as far as it has it."""
        content = self._by_id.get(message_id, {}).get("content")
        return content if isinstance(content, str) else ""

    def arguments(self, call_id: str) -> str | None:
        """Return the arguments of a call, as far as it has them; None: not even the call."""
        call = self._calls.get(call_id)
        return None if call is None else call["function"]["arguments"]

    def has_result(self, call_id: str) -> bool:
        """Whether it has the end of a call."""
        return call_id in self._results

    # What it is sent.

    def say(self, message_id: str, role: str, text: str) -> None:
        """Have a message of this id, and append a text to it."""
        if message_id not in self._by_id:
            self._add({"id": message_id, "role": role, "content": ""})
        self.correct(message_id, self.text(message_id) + text)

    def correct(self, message_id: str, text: str) -> None:
        """Have a message say this and nothing else."""
        self._by_id[message_id]["content"] = text

    def call(self, call_id: str, name: str, message_id: str | None) -> None:
        """Have a call, within the message that asks for it."""
        owner = message_id or call_id
        if owner not in self._by_id:
            self._add({"id": owner, "role": ASSISTANT, "toolCalls": []})
        function = {"name": name, "arguments": ""}
        call = {"id": call_id, "type": "function", "function": function}
        self._by_id[owner].setdefault("toolCalls", []).append(call)
        self._calls[call_id] = call

    def argue(self, call_id: str, arguments: str) -> None:
        """Have a call with these arguments."""
        self._calls[call_id]["function"]["arguments"] = arguments

    def end(self, call_id: str, message_id: str, content: str) -> None:
        """Have the end of a call, behind the message that asked for it and its other ends."""
        message = {"id": message_id, "toolCallId": call_id, "role": TOOL, "content": content}
        self._results.add(call_id)
        self._by_id.setdefault(message_id, message)
        at = next((place for place, it in enumerate(self.all) if _asks(it, call_id)), None)
        if at is None:
            self.all.append(message)
            return
        at += 1
        while at < len(self.all) and self.all[at]["role"] == TOOL:
            at += 1
        self.all.insert(at, message)


def _asks(message: Message, call_id: str) -> bool:
    return any(call["id"] == call_id for call in message.get("toolCalls") or ())


def _copied(message: Mapping[str, Any]) -> Message:
    """Return a message that can be changed; calls that are none are left out."""
    made = dict(message)
    if "toolCalls" not in made:
        return made
    calls: object = made["toolCalls"]
    made["toolCalls"] = [
        {**call, "function": dict(call["function"])}
        for call in (cast("Sequence[Any]", calls) if isinstance(calls, list | tuple) else ())
        if _is_call(call)
    ]
    return made


def _is_call(told: object) -> bool:
    if not isinstance(told, Mapping):
        return False
    call = cast("Mapping[str, Any]", told)
    function: object = call.get("function")
    if not isinstance(call.get("id"), str) or not isinstance(function, Mapping):
        return False
    return isinstance(cast("Mapping[str, Any]", function).get("arguments"), str)
