"""What a response of Google's generateContent means (W-51), in pieces or as it came at once.

A piece holds some parts of the candidate's content. A part with a function call that does not say
`willContinue` closes the call (W-53). What the provider runs itself, and every kind of part that we
do not know, is kept as it came and sent back so, signatures included (W-55, W-56).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from ...models.values import Json, freeze
from ..errors import ProviderFailure
from ..messages import Answer, Stop, Tokens, ToolCall
from ..speaking import CallBegan, CallEnded, CallText, Elsewhere, Ended, Said, Text, Thought, Used
from ..whole_text import all_whole, whole
from .calls import NAMELESS, UNCLOSED, Latest, tool_call
from .json_fields import complaint, items, members, number, only_text
from .partial_arguments import PartialArguments

STOPS: Final[Mapping[str | None, Stop]] = {
    "STOP": Stop.DONE,
    "MAX_TOKENS": Stop.LENGTH,
    "CONTINUATION": Stop.PAUSED,
    "SAFETY": Stop.REFUSED,
    "RECITATION": Stop.REFUSED,
    "LANGUAGE": Stop.REFUSED,
    "BLOCKLIST": Stop.REFUSED,
    "PROHIBITED_CONTENT": Stop.REFUSED,
    "SPII": Stop.REFUSED,
    "IMAGE_SAFETY": Stop.REFUSED,
    "IMAGE_PROHIBITED_CONTENT": Stop.REFUSED,
    "IMAGE_RECITATION": Stop.REFUSED,
    "ESCALATION": Stop.REFUSED,
    "MODEL_ARMOR": Stop.REFUSED,
    "PUP_LIMITED_DISABLED": Stop.REFUSED,
    "MALFORMED_FUNCTION_CALL": Stop.CUT,  # the provider could not read what its model said:
    "MALFORMED_RESPONSE": Stop.CUT,  # that is no answer, and is asked again
    "UNEXPECTED_TOOL_CALL": Stop.OTHER,  # holds the call, of a tool that there is not: told so
    "TOO_MANY_TOOL_CALLS": Stop.OTHER,  # the bound of its own tools: asked again, it meets it again
    None: Stop.CUT,
}
"""What the reasons mean; any other is `other` (W-52)."""

_TEXT: Final = frozenset({"text", "thought"})
"""What a part has that is text alone: pieces of it are put together."""
_NOT_KEPT: Final = frozenset({"content", "finishMessage"})
"""What is put together, and words on a reason, which the official client does not hand on."""
_GROWS: Final = frozenset({"args", "partialArgs", "willContinue"})
_RUN: Final = {"executableCode": "code", "codeExecutionResult": "output"}
"""Parts of what the provider runs, and the field that is shown of them."""


@attrs.define
class _Part:
    """A part of the content."""

    sent: dict[str, Any]
    """As it came, less what grows."""
    texts: list[str] = attrs.field(factory=list[str])
    place: int | None = None
    """Of a call among the calls."""
    called: dict[str, Any] = attrs.field(factory=dict[str, Any])
    """What a call is but its arguments: its id, its name, and what we do not know."""
    arguments: PartialArguments = attrs.field(factory=PartialArguments)
    fault: str | None = None
    call: ToolCall | None = None
    """Once it is closed."""
    whole: Mapping[str, Json] | None = None
    """The part, frozen, once nothing more of it comes."""

    def takes(self, sent: Mapping[str, Any]) -> bool:
        """Whether a text goes on with this one; a signature belongs to its own part alone."""
        return (
            bool(self.texts)
            and self.sent.keys() <= _TEXT
            and bool(self.sent.get("thought")) == bool(sent.get("thought"))
        )

    def goes_on(self, called: Mapping[str, Any]) -> bool:
        """Whether this is more of the call: a name begins another, unless the id is the same."""
        call_id = called.get("id")
        return not called.get("name") or bool(call_id and call_id == self.called.get("id"))

    def add(self, called: Mapping[str, Any]) -> None:
        """Take one more piece of the call."""
        self.called.update({key: it for key, it in called.items() if it and key not in _GROWS})
        self.arguments.update(called.get("args") or {})
        for partial in called.get("partialArgs") or ():
            try:
                self.arguments.add(partial)
            except (LookupError, TypeError, ValueError) as error:
                self.fault = f"the arguments cannot be put together: {error}"

    def close(self, fault: str | None = None) -> None:
        """Put the part together; done again, it changes nothing."""
        if self.whole is not None:
            return
        part = dict(self.sent)
        if self.place is not None:
            text = json.dumps(self.arguments.whole())
            call = tool_call(self.called.get("id"), self.called.get("name"), text)
            self.call = attrs.evolve(call, fault=call.fault or self.fault or fault)
            part["functionCall"] = {**self.called, "args": self.call.arguments}
        elif self.texts:
            part["text"] = "".join(self.texts)
        self.whole = freeze(all_whole(part), place="part")


class GoogleFold:
    """The fold of one response's pieces."""

    def __init__(self, *, spec: str | None = None) -> None:
        """Begin before the first piece; `spec` is who answers."""
        self._spec: Final = spec
        self._parts: list[_Part] = []
        self._open: _Part | None = None
        """The call that goes on."""
        self._calls = 0
        self._latest: Final = Latest()
        self._candidate: dict[str, Any] = {}
        """What is said of the content."""
        self._usage: dict[str, Any] = {}

    def feed(self, event: Any) -> list[Said]:  # noqa: ANN401 - any JSON
        """Take a piece. Other candidates than the first are not looked at.

        Raises `ProviderFailure` for an error that was sent, LookupError, TypeError, ValueError or
        AttributeError for what is no piece.
        """
        return [*self._said(event)]

    def _said(self, event: Any) -> Iterator[Said]:  # noqa: ANN401 - any JSON
        if event.get("error"):
            raise ProviderFailure(complaint(event["error"]))
        if event.get("promptFeedback"):
            self._candidate["promptFeedback"] = all_whole(event["promptFeedback"])
        for candidate in items(event.get("candidates")):
            if candidate.get("index"):
                continue
            kept = {key: it for key, it in candidate.items() if key not in _NOT_KEPT}
            self._candidate.update(all_whole(kept))
            stopped = candidate.get("finishReason") is not None
            if stopped:
                self._latest.stop = self._stop()  # its own parts come after it
            for part in items(members(candidate.get("content")).get("parts")):
                yield from self._take(part)
            if stopped:
                yield from self._latest.told(self._stop())
        if event.get("usageMetadata"):
            self._usage.update(members(event["usageMetadata"]))
            yield Used(self._tokens())

    def end(self) -> Ended:
        """Return the answer: `cut` if no reason came."""
        for part in self._parts:
            part.close(UNCLOSED)
        calls = tuple(it.call for it in self._parts if it.call is not None)
        stop = self._stop()
        if stop is Stop.DONE and calls:
            stop = Stop.CALLS
        said = [it for it in self._parts if it.texts and not it.sent.get("thought")]
        return Ended(
            Answer(
                text=whole("".join(text for it in said for text in it.texts)) or None,
                calls=self._latest.among(calls, stop),
                raw=freeze(self._raw(), place="candidate"),
                spec=self._spec,
                stop=stop,
                tokens=self._tokens(),
            )
        )

    def _take(self, sent: Mapping[str, Any]) -> Iterator[Said]:
        called = sent.get("functionCall")
        if called is not None:
            yield from self._take_call(sent, called)
            return
        text = sent.get("text")
        if text == "" and sent.keys() <= _TEXT:
            return
        yield from self._latest.told()
        if text is None:
            self._begin(_Part(sent=dict(sent)))
            yield from _run(sent)
            return
        if not (sent.keys() <= _TEXT and self._parts and self._parts[-1].takes(sent)):
            self._begin(_Part(sent={key: it for key, it in sent.items() if key != "text"}))
        self._parts[-1].texts.append(only_text(text))
        if text:
            yield Thought(text) if sent.get("thought") else Text(text)

    def _take_call(self, sent: Mapping[str, Any], called: Mapping[str, Any]) -> Iterator[Said]:
        """Begin a call, go on with the open one, or close it. One without a name goes on."""
        part = self._open
        if part is None or not part.goes_on(called):
            if not called.keys() - {"willContinue"}:
                return  # closes what was closed
            if part is not None:
                part.close(UNCLOSED)
            yield from self._latest.told()
            self._open = part = _Part(sent={}, place=self._calls)
            self._calls += 1
            self._begin(part)
            yield CallBegan(self._calls - 1, called.get("name") or NAMELESS)
        part.sent.update({key: it for key, it in sent.items() if key != "functionCall"})
        part.add(called)
        if called.get("willContinue"):
            return
        self._open = None
        part.close()
        if part.place is not None and part.call is not None:
            if part.call.arguments:
                yield CallText(part.place, json.dumps(part.call.arguments))
            self._latest.ended = CallEnded(part.place, part.call, self._raw())

    def _begin(self, part: _Part) -> None:
        """Begin a part; nothing is added any more to the one before, unless it is an open call."""
        if self._parts and self._parts[-1] is not self._open:
            self._parts[-1].close()
        self._parts.append(part)

    def _stop(self) -> Stop:
        reason = self._candidate.get("finishReason")
        feedback = members(self._candidate.get("promptFeedback"))
        if reason is None and feedback.get("blockReason") is not None:
            return Stop.REFUSED
        return STOPS.get(reason, Stop.OTHER)

    def _raw(self) -> Json:
        parts = [it.whole for it in self._parts if it.whole is not None]
        return {**self._candidate, "content": {"role": "model", "parts": parts}}

    def _tokens(self) -> Tokens:
        """Return what was used; the provider counts thoughts and its own tools apart."""
        used = self._usage
        thought = number(used.get("thoughtsTokenCount"))
        tools = number(used.get("toolUsePromptTokenCount"))
        return Tokens(
            input=number(used.get("promptTokenCount")) + tools,
            output=number(used.get("candidatesTokenCount")) + thought,
            cached=number(used.get("cachedContentTokenCount")),
            thought=thought,
        )


def as_events(response: Any) -> tuple[Any, ...]:  # noqa: ANN401 - any JSON
    """Return the pieces that a response which came at once would have come in: itself."""
    return (response,)


def _run(sent: Mapping[str, Any]) -> Iterator[Said]:
    """Yield what the provider runs itself (W-55)."""
    for kind, field in _RUN.items():
        if kind in sent:
            yield Elsewhere(kind, only_text(sent[kind].get(field) or ""))
    if "toolCall" in sent:
        yield Elsewhere(str(sent["toolCall"].get("toolType")))
