"""What a message of Anthropic means (W-51), out of its events or as it came at once.

A message is a list of content blocks. Each begins, grows by deltas, and is closed; a closed
`tool_use` is a call, whole (W-53). What the provider runs itself, and every kind of block that we
do not know, is kept as it came and sent back so (W-55, W-56).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from ...models.values import Json, freeze
from ..errors import ProviderFailure
from ..messages import Answer, Stop, Tokens, ToolCall
from ..speaking import (
    Again,
    CallBegan,
    CallEnded,
    CallText,
    Elsewhere,
    Ended,
    Said,
    Text,
    Thought,
    Used,
)
from ..whole_text import all_whole, whole
from .calls import NAMELESS, UNCLOSED, Latest, tool_call
from .json_fields import complaint, members, number, only_text

STOPS: Final[Mapping[str | None, Stop]] = {
    "end_turn": Stop.DONE,
    "stop_sequence": Stop.DONE,
    "tool_use": Stop.CALLS,
    "max_tokens": Stop.LENGTH,
    "model_context_window_exceeded": Stop.LENGTH,
    "refusal": Stop.REFUSED,
    "pause_turn": Stop.PAUSED,
    "compaction": Stop.PAUSED,  # asked for as pause_after_compaction
    None: Stop.CUT,
}
"""What the reasons mean; any other is `other` (W-52)."""


@attrs.define
class _Block:
    """A content block that grows."""

    sent: dict[str, Any]
    """As it began, and what was set since."""
    place: int | None
    """Of a call among the calls; None for what is no call of ours."""
    texts: dict[str, list[str]] = attrs.field(factory=dict[str, list[str]])
    """What was added to its texts, by field, piece by piece."""
    arguments: list[str] = attrs.field(factory=list[str])
    """The text of its input, piece by piece; empty if it began with all of it."""
    citations: list[Any] = attrs.field(factory=list[Any])
    call: ToolCall | None = None
    whole: Mapping[str, Json] | None = None
    """The block, frozen, once it is closed."""

    def close(self, fault: str | None = None) -> None:
        """Put the block together."""
        for field, pieces in self.texts.items():
            self.sent[field] = "".join((self.sent.get(field) or "", *pieces))
        if self.citations:
            self.sent["citations"] = [*(self.sent.get("citations") or ()), *self.citations]
        if self.place is not None or self.arguments:
            given, text = self.sent.get("input"), "".join(self.arguments)
            text = text if text or not given else json.dumps(given)
            call = tool_call(self.sent.get("id"), self.sent.get("name"), text)
            self.call = attrs.evolve(call, fault=call.fault or fault)
            self.sent["input"] = call.arguments
        self.whole = freeze(all_whole(self.sent), place="content block")


class AnthropicFold:
    """The fold of one message's events."""

    def __init__(self, *, spec: str | None = None) -> None:
        """Begin before the first event; `spec` is who answers."""
        self._spec: Final = spec
        self._begin({})

    def _begin(self, message: Mapping[str, Any]) -> None:
        self._message = dict(all_whole(message))
        self._blocks: list[_Block] = []
        self._open: dict[int, _Block] = {}
        self._calls = 0
        self._latest = Latest()
        self._usage: dict[str, Any] = {}

    def feed(self, event: Any) -> list[Said]:  # noqa: ANN401 - any JSON
        """Take an event; one of a kind that we do not know says nothing.

        Raises `ProviderFailure` for an error that was sent, LookupError, TypeError, ValueError or
        AttributeError for what is no event.
        """
        return [*self._said(event)]

    def _said(self, event: Any) -> Iterable[Said]:  # noqa: ANN401 - any JSON
        match event["type"]:
            case "message_start":
                return self._start(event["message"])
            case "content_block_start":
                return self._begin_block(event["index"], event["content_block"])
            case "content_block_delta":
                return self._grow(self._open[event["index"]], event["delta"])
            case "content_block_stop":
                return self._close(self._open.pop(event["index"]))
            case "message_delta":
                return self._know(event["delta"], members(event.get("usage")))
            case "error":
                raise ProviderFailure(complaint(event.get("error")))
            case _:
                return ()

    def end(self) -> Ended:
        """Return the answer: `cut` if no reason came, whether the message was closed or not."""
        stop = STOPS.get(self._message.get("stop_reason"), Stop.OTHER)
        while self._open:
            self._open.popitem()[1].close(UNCLOSED)
        calls = tuple(it.call for it in self._blocks if it.place is not None and it.call)
        if stop in {Stop.DONE, Stop.CALLS}:
            stop = Stop.CALLS if calls else Stop.DONE
        texts = (it.sent.get("text") for it in self._blocks if it.sent["type"] == "text")
        text = "".join(it or "" for it in texts)
        return Ended(
            Answer(
                text=whole(text) or None,
                calls=self._latest.among(calls, stop),
                raw=freeze(self._raw(), place="message"),
                spec=self._spec,
                stop=stop,
                tokens=self._tokens(),
            )
        )

    def _start(self, message: Mapping[str, Any]) -> Iterator[Said]:
        """Begin, anew if something came before: whoever stands between asked again (W-54)."""
        again = bool(self._message or self._blocks)
        self._begin(message)
        self._usage.update(members(self._message.pop("usage", None)))
        if (reason := self._message.get("stop_reason")) is not None:  # it came at once
            self._latest.stop = STOPS.get(reason, Stop.OTHER)
        if again:
            yield Again()
        yield Used(self._tokens())

    def _begin_block(self, index: int, sent: Mapping[str, Any]) -> Iterator[Said]:
        if index in self._open:
            raise ValueError(f"content block {index} begins before it was closed")
        kind = sent["type"]
        block = _Block(sent=dict(sent), place=self._calls if kind == "tool_use" else None)
        self._blocks.append(block)
        self._open[index] = block
        yield from self._latest.told()
        if block.place is not None:
            self._calls += 1
            yield CallBegan(block.place, only_text(sent.get("name") or NAMELESS))
        elif "name" in sent:
            yield Elsewhere(only_text(sent["name"]))
        if sent.get("input"):
            yield from self._input(block, json.dumps(sent["input"]))
        yield from _shown(kind, sent)

    def _grow(self, block: _Block, delta: Mapping[str, Any]) -> Iterator[Said]:
        """Add to a block; what a delta of a kind that we do not know holds, the block has."""
        kind = delta["type"]
        match kind:
            case "text_delta" | "thinking_delta":
                field = kind.removesuffix("_delta")
                block.texts.setdefault(field, []).append(only_text(delta[field]))
                yield from _shown(field, delta)
            case "input_json_delta":
                block.arguments.append(only_text(delta["partial_json"]))
                yield from self._input(block, delta["partial_json"])
            case "citations_delta":
                block.citations.append(delta["citation"])
            case _:  # signature_delta, compaction_delta
                block.sent.update({key: it for key, it in delta.items() if key != "type"})

    def _input(self, block: _Block, text: str) -> Iterator[Said]:
        if text and block.place is not None:
            yield CallText(block.place, text)
        elif text:
            yield Elsewhere(str(block.sent.get("name")), text)

    def _close(self, block: _Block) -> Iterable[Said]:
        block.close()
        if block.place is not None and block.call is not None:
            self._latest.ended = CallEnded(block.place, block.call, self._raw())
        return ()

    def _know(self, delta: Mapping[str, Any], usage: Mapping[str, Any]) -> Iterator[Said]:
        self._message.update(all_whole(_given(delta)))
        self._usage.update(_given(usage))
        if (reason := delta.get("stop_reason")) is not None:
            yield from self._latest.told(STOPS.get(reason, Stop.OTHER))
        yield Used(self._tokens())

    def _raw(self) -> Json:
        content = [it.whole for it in self._blocks if it.whole is not None]
        return {**self._message, "content": content}

    def _tokens(self) -> Tokens:
        """Return what was used; the provider counts what it reads from a cache apart."""
        used = self._usage
        cached = number(used.get("cache_read_input_tokens"))
        written = number(used.get("cache_creation_input_tokens"))
        return Tokens(
            input=number(used.get("input_tokens")) + cached + written,
            output=number(used.get("output_tokens")),
            cached=cached,
            thought=number(members(used.get("output_tokens_details")).get("thinking_tokens")),
        )


def as_events(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the events that a message which came at once would have come in."""
    if message.get("type") == "error":
        yield dict(message)
        return
    reason = {"stop_reason": message.get("stop_reason")}
    yield {"type": "message_start", "message": {**message, "content": []}}
    for index, block in enumerate(message["content"]):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": reason, "usage": message.get("usage")}
    yield {"type": "message_stop"}


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: it for key, it in fields.items() if it is not None}


def _shown(kind: str, sent: Mapping[str, Any]) -> Iterator[Said]:
    """Yield the text or the thought that a block begins with, or that a delta adds."""
    text = sent.get(kind)
    if kind == "text" and text:
        yield Text(only_text(text))
    elif kind == "thinking" and text:
        yield Thought(only_text(text))
