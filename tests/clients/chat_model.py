"""What `useChat` makes of chunks, in Python: a test holds it against the client's own fold.

Only what is ever sent is known here; anything else is a defect of the server's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

Part = dict[str, Any]


@attrs.define
class Message:
    """One message of an assistant, and what the stream that adds to it has begun."""

    id: str = "made-by-the-client"
    parts: list[Part] = attrs.field(factory=list[Part])
    speaking: dict[str, Part] = attrs.field(factory=dict[str, Part])
    finished: str | None = None
    error: str | None = None

    def take(self, chunks: Iterable[Mapping[str, Any]]) -> Message:
        for it in chunks:
            assert self.finished is None, "nothing follows the end"
            self._folds()[it["type"]](it)
        return self

    def again(self) -> Message:
        """The message as a new request finds it: what was begun is forgotten."""
        return Message(id=self.id, parts=json.loads(json.dumps(self.parts)))

    def plain(self) -> list[Part]:
        """Its parts, as they are compared."""
        found: list[Part] = json.loads(json.dumps(self.parts))
        return found

    # Its folds.

    def _folds(self) -> Mapping[str, Callable[[Mapping[str, Any]], None]]:
        return {
            "start": self._start,
            "finish": self._finish,
            "error": self._failed,
            "start-step": self._start_step,
            "finish-step": self._nothing,
            "reset-step": self._reset,
            "text-start": self._text_start,
            "text-delta": self._text_delta,
            "text-end": self._text_end,
            "tool-input-available": self._input,
            "tool-approval-request": self._request,
            "tool-approval-response": self._response,
            "tool-output-available": self._output,
            "tool-output-error": self._error,
            "tool-output-denied": self._denied,
            "data-turnlock": self._nothing,
            "data-turnlock-refused": self._nothing,
        }

    def _start(self, it: Mapping[str, Any]) -> None:
        self.id = it["messageId"]

    def _finish(self, it: Mapping[str, Any]) -> None:
        self.finished = it["finishReason"]

    def _failed(self, it: Mapping[str, Any]) -> None:
        self.error = it["errorText"]

    def _start_step(self, _: Mapping[str, Any]) -> None:
        self.parts.append({"type": "step-start"})

    def _nothing(self, _: Mapping[str, Any]) -> None:
        pass

    def _reset(self, _: Mapping[str, Any]) -> None:
        steps = [place for place, it in enumerate(self.parts) if it["type"] == "step-start"]
        del self.parts[steps[-1] + 1 if steps else 0 :]
        self.speaking.clear()

    def _text_start(self, it: Mapping[str, Any]) -> None:
        self.speaking[it["id"]] = {"type": "text", "text": "", "state": "streaming"}
        self.parts.append(self.speaking[it["id"]])

    def _text_delta(self, it: Mapping[str, Any]) -> None:
        self.speaking[it["id"]]["text"] += it["delta"]

    def _text_end(self, it: Mapping[str, Any]) -> None:
        self.speaking.pop(it["id"])["state"] = "done"

    def _input(self, it: Mapping[str, Any]) -> None:
        assert it["dynamic"] is True
        steps = [place for place, part in enumerate(self.parts) if part["type"] == "step-start"]
        here = self.parts[steps[-1] + 1 if steps else 0 :]
        found = [part for part in here if part.get("toolCallId") == it["toolCallId"]]
        if not found:
            found = [{"type": "dynamic-tool", "toolCallId": it["toolCallId"]}]
            self.parts += found
        for name in ("output", "errorText"):
            found[0].pop(name, None)
        told = {"toolName": it["toolName"], "state": "input-available", "input": it["input"]}
        found[0].update(told)

    def _card(self, call: str) -> Part:
        return [it for it in self.parts if it.get("toolCallId") == call][-1]

    def _request(self, it: Mapping[str, Any]) -> None:
        card = self._card(it["toolCallId"])
        card.update(state="approval-requested", approval={"id": it["approvalId"]})

    def _response(self, it: Mapping[str, Any]) -> None:
        cards = [
            part for part in self.parts if part.get("approval", {}).get("id") == it["approvalId"]
        ]
        card = cards[0]
        told = {name: it[name] for name in ("approved", "reason") if name in it}
        card.update(state="approval-responded", approval={**card["approval"], **told})

    def _output(self, it: Mapping[str, Any]) -> None:
        card = self._card(it["toolCallId"])
        card.pop("errorText", None)
        card.update(state="output-available", output=it["output"])

    def _error(self, it: Mapping[str, Any]) -> None:
        card = self._card(it["toolCallId"])
        card.pop("output", None)
        card.update(state="output-error", errorText=it["errorText"])

    def _denied(self, it: Mapping[str, Any]) -> None:
        self._card(it["toolCallId"])["state"] = "output-denied"
