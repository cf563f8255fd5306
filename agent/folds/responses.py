"""What a stream of the responses API means: items, each of which its provider closes (W-53)."""

from __future__ import annotations

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
from .calls import CUT_OFF, NAMELESS, UNCLOSED, bounded, tool_call
from .json_fields import complaint, items, members, number, text
from .response_items import Kind, call_of, kind_of, tool_name

STOPS: Final = {"max_output_tokens": Stop.LENGTH, "content_filter": Stop.REFUSED}
"""Why a response is incomplete; any other reason is `Stop.OTHER` (W-52)."""

_TEXTS: Final = frozenset({"response.output_text.delta", "response.refusal.delta"})
_THOUGHTS: Final = frozenset(
    {"response.reasoning_summary_text.delta", "response.reasoning_text.delta"}
)
_OF_ITEMS: Final = frozenset({"response.output_item.added", "response.output_item.done"})
_LAST: Final = frozenset(
    {"response.completed", "response.incomplete", "response.failed", "response.cancelled"}
)
HOSTED: Final = "the provider ran this call itself"
"""The fault of a call that turned out to be none of ours (W-55)."""
_BETWEEN: Final = "\n\n"
"""Stands between two messages of one response."""


def as_events(body: Any) -> Iterator[Any]:  # noqa: ANN401 - any JSON
    """Yield a response that came whole as the last event of a stream."""
    if body.get("error"):
        raise ProviderFailure(complaint(body["error"]))
    whole_body = {**body, "output": items(body["output"])}
    yield {"type": f"response.{body.get('status') or 'completed'}", "response": whole_body}


@attrs.define
class _Open:
    """An item as far as it has come."""

    item: Mapping[str, Any]
    kind: Kind | None
    place: int | None
    """That of the call, if it is one that is ours."""
    done: bool = False
    said: list[str] = attrs.field(factory=list[str])
    """The pieces of its text, of its arguments, or of its thoughts."""

    def call(self) -> ToolCall:
        """Return the call that it is; one that was never closed is faulty (W-53)."""
        assert self.kind is not None  # noqa: S101 - asked of calls alone
        if not self.done:
            name, arguments = tool_name(self.item, self.kind), "".join(self.said)
            call = tool_call(self.item.get("call_id"), name, arguments)
            return attrs.evolve(call, fault=call.fault or UNCLOSED)
        call = call_of(self.item, self.kind)
        if kind_of(self.item) is None:  # known only now: it began as one of ours
            return attrs.evolve(call, fault=HOSTED)
        cut = self.item.get("status") == "incomplete"
        return attrs.evolve(call, fault=call.fault or CUT_OFF) if cut else call


class ResponsesFold:
    """One answer, from the events of its stream."""

    def __init__(self, *, spec: str) -> None:
        """Begin an answer of this model."""
        self._spec: Final = spec
        self._begin()

    def _begin(self) -> None:
        self._stop = Stop.CUT
        self._tokens = Tokens()
        self._text: list[str] = []
        self._refused = False
        self._items: dict[int, _Open] = {}
        self._calls: list[_Open] = []
        self._told = 0
        """Calls that were told to have ended: all before the last, which `length` may have cut."""
        self._last_message: int | None = None

    def feed(self, event: Any) -> Iterable[Said]:  # noqa: ANN401 - any JSON
        """Take the next event, and return what it says; `Again` at a second start.

        A call is told to have ended when the next begins or the response has ended, since the last
        one of a response that was too long is faulty (W-52). Raises `ProviderFailure`, or
        LookupError, TypeError, ValueError or AttributeError for what is no event.
        """
        kind: str = event["type"]
        said: list[Said] = []
        if kind.endswith(".delta"):
            self._more(kind, event, said)
        elif kind in _OF_ITEMS:
            self._item(event["output_index"], event["item"], said, done=kind.endswith("done"))
        elif kind in _LAST:
            self._last(kind, event["response"], said)
        elif kind == "error":
            raise ProviderFailure(complaint(event.get("error") or event))
        elif kind == "response.created" and self._items:
            self._begin()
            said.append(Again())
        return said

    def end(self) -> Ended:
        """Return the answer; cut where the stream never said that the response has ended."""
        answer = Answer(
            text=whole("".join(self._text)) or None,
            calls=self._made(),
            raw=self._raw(),
            spec=self._spec,
            stop=self._stop,
            tokens=self._tokens,
        )
        return Ended(answer)

    def _more(self, kind: str, event: Any, said: list[Said]) -> None:  # noqa: ANN401 - any JSON
        """Take a piece of an item, by its place: some proxies change the ids of items."""
        item, piece = self._items.get(event.get("output_index", -1)), event["delta"]
        if item is None or not isinstance(piece, str):
            return
        if kind in _TEXTS:
            self._refused |= kind == "response.refusal.delta"
            self._say(event["output_index"], item, piece, said)
            return
        if kind in _THOUGHTS:
            said.append(Thought(piece))
        elif item.place is not None:
            said.append(CallText(item.place, piece))
        elif item.item["type"].endswith("_call"):
            said.append(Elsewhere(_name(item.item), piece))
        else:
            return  # sounds, perhaps
        item.said.append(piece)

    def _say(self, index: int, item: _Open, piece: str, said: list[Said]) -> None:
        if not piece:
            return
        if self._last_message not in {None, index}:
            self._text.append(_BETWEEN)
            said.append(Text(_BETWEEN))
        self._last_message = index
        item.said.append(piece)
        self._text.append(piece)
        said.append(Text(piece))

    def _item(self, index: int, item: Any, said: list[Said], *, done: bool) -> None:  # noqa: ANN401
        item, known = all_whole(item), self._items.get(index)
        if known is None:
            known = self._items[index] = self._began(item, said)
        if not done:
            return
        known.item, known.done = item, True
        streamed, text_of = whole("".join(known.said)), _text_of(item)
        rest = text_of[len(streamed) :] if text_of.startswith(streamed) else ""
        if item["type"] == "message":
            self._refused |= any(part.get("type") == "refusal" for part in item["content"])
            self._say(index, known, rest, said)
        elif rest and item["type"] == "reasoning":
            said.append(Thought(rest))
        elif rest and known.place is not None:
            said.append(CallText(known.place, rest))

    def _began(self, item: Any, said: list[Said]) -> _Open:  # noqa: ANN401 - any JSON
        kind = kind_of(item)
        if kind is None:
            if item["type"].endswith("_call"):
                said.append(Elsewhere(_name(item)))
            return _Open(item, None, None)
        place = len(self._calls)
        began = _Open(item, kind, place)
        self._calls.append(began)
        self._tell(place, said)
        name = text(tool_name(item, kind)) or NAMELESS
        said.append(CallBegan(place, name))
        return began

    def _last(self, kind: str, response: Any, said: list[Said]) -> None:  # noqa: ANN401 - any JSON
        if kind in {"response.failed", "response.cancelled"}:
            raise ProviderFailure(complaint(response.get("error") or {"message": kind}))
        if kind == "response.incomplete":
            reason = members(response.get("incomplete_details")).get("reason")
            self._stop = STOPS.get(text(reason), Stop.OTHER)
        for index, item in enumerate(items(response.get("output"))):
            known = self._items.get(index)
            if known is None or (not known.done and known.item["type"] == item["type"]):
                self._item(index, item, said, done=True)  # some proxies leave the closing out
        if kind == "response.completed":
            done = Stop.REFUSED if self._refused else Stop.DONE
            self._stop = Stop.CALLS if self._calls else done
        self._tell(len(self._calls), said)
        if response.get("usage"):
            self._tokens = _tokens(members(response["usage"]))
            said.append(Used(self._tokens))

    def _made(self) -> tuple[ToolCall, ...]:
        return bounded([it.call() for it in self._calls], self._stop)

    def _tell(self, upto: int, said: list[Said]) -> None:
        """Tell the calls before this place that were closed, in their order.

        Of an answer that was refused none is told any more: nothing of it may begin (W-58).
        """
        if self._stop is Stop.REFUSED:
            return
        made = self._made()
        while self._told < upto and self._calls[self._told].done:
            raw = self._raw(self._calls[self._told])
            said.append(CallEnded(self._told, made[self._told], raw))
            self._told += 1

    def _raw(self, upto: _Open | None = None) -> Json:
        """Return the items as they began, which is the order of the calls, up to one of them."""
        output: list[Mapping[str, Any]] = []
        for item in self._items.values():
            output.append(item.item)
            if item is upto:
                break
        raw: Json = freeze(output, place="output")
        return raw


def _text_of(item: Any) -> str:  # noqa: ANN401 - any JSON
    """Return the text of an item that came whole, as its pieces would have told it."""
    kind = item["type"]
    if kind == "message":
        return "".join(text(part.get("text") or part.get("refusal")) for part in item["content"])
    if kind == "reasoning":
        parts = items(item.get("summary") or item.get("content"))
        return "".join(text(part.get("text")) for part in parts)
    return text(item.get("arguments" if kind == "function_call" else "input"))


def _name(item: Mapping[str, Any]) -> str:
    """Return what the provider runs: a tool of a server, or its own."""
    return text(item.get("name")) or text(item["type"]).removesuffix("_call")


def _tokens(usage: Mapping[str, Any]) -> Tokens:
    return Tokens(
        input=number(usage.get("input_tokens")),
        output=number(usage.get("output_tokens")),
        cached=number(members(usage.get("input_tokens_details")).get("cached_tokens")),
        thought=number(members(usage.get("output_tokens_details")).get("reasoning_tokens")),
    )
