"""What a stream of chat completions means, of OpenAI's endpoint and of all that speak like it.

They close no call: calls are complete when the response has ended (W-53), so `Ended` alone tells
them. How the fragments of calls belong together differs from endpoint to endpoint (W-54).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast

import attrs

from ...models.errors import InvalidValue
from ...models.strict_json import parse
from ...models.values import freeze
from ..errors import ProviderFailure
from ..messages import Answer, Stop, Tokens, ToolCall
from ..speaking import Again, CallBegan, CallText, Ended, Said, Text, Thought, Used
from ..whole_text import all_whole, whole
from .calls import NAMELESS, bounded, tool_call
from .json_fields import complaint, items, members, number, text

STOPS: Final = {
    "stop": Stop.DONE,
    "tool_calls": Stop.CALLS,
    "function_call": Stop.CALLS,
    "length": Stop.LENGTH,
    "content_filter": Stop.REFUSED,
}
"""What the reasons mean; any other is `Stop.OTHER` (W-52)."""

_SAID: Final[Mapping[str, type[Text | Thought]]] = {
    "content": Text,
    "refusal": Text,
    "reasoning_content": Thought,
    "reasoning": Thought,
}
"""The parts of a message that are texts, which come in pieces."""
_PIECES: Final = frozenset({"text", "thinking", "summary", "data"})
"""What comes in pieces in the items of a list, such as OpenRouter's `reasoning_details`."""
_OF_CALLS: Final = frozenset({"tool_calls", "function_call", "role"})
TWO_NAMES: Final = (
    "two names came where one call was expected, with nothing that tells calls apart: they may be"
    " two calls, or one name in pieces; call one tool at a time, with arguments"
)
"""The fault of calls whose names may be no names (W-54)."""


def as_events(body: Any) -> Iterator[Any]:  # noqa: ANN401 - any JSON
    """Yield a response that came whole as the one event of a stream; it cannot be cut."""
    if body.get("error"):
        raise ProviderFailure(complaint(body["error"]))
    choice, message = body["choices"][0], members(body["choices"][0]["message"])
    calls = [{**it, "index": place} for place, it in enumerate(items(message.get("tool_calls")))]
    delta = {**message, "tool_calls": calls}
    first = {"finish_reason": "stop", **_given(choice), "delta": delta, "index": 0}
    yield {**body, "choices": [first]}


@attrs.define
class _Call:
    """A call as far as it has come."""

    place: int
    call_id: str | None
    name: str
    arguments: list[str] = attrs.field(factory=list[str])
    odd: Any = None
    """What was sent for arguments and is no text."""
    more: dict[str, Any] = attrs.field(factory=dict[str, Any])
    """What else its endpoint said of it, signatures perhaps."""
    fault: str | None = None

    @property
    def text(self) -> str:
        return "".join(self.arguments)

    @property
    def complete(self) -> bool:
        """Whether its arguments are a whole JSON object."""
        try:
            return isinstance(parse(self.text), dict)
        except InvalidValue:
            return False

    def made(self) -> ToolCall:
        arguments = self.text if self.odd is None else self.odd
        call = tool_call(self.call_id, self.name, arguments)
        return attrs.evolve(call, fault=call.fault or self.fault)

    def has_another(self, name: str) -> bool:
        """Whether this is a name, and not its own."""
        return bool(name and self.name) and name != self.name

    def may_go_on(self, call_id: str | None) -> bool:
        """Whether a fragment with this id, or none, may be more of it: nothing says that not."""
        apart = call_id is not None and self.call_id not in {None, call_id}
        return not apart and self.odd is None and not self.complete

    def raw(self) -> dict[str, Any]:
        """Return it as a message holds it."""
        function = {"name": self.name, "arguments": self.text}
        return {"type": "function", **self.more, "id": self.call_id, "function": function}


class ChatCompletionsFold:
    """One answer, from the events of its stream."""

    def __init__(self, *, spec: str, reasonless: bool = False) -> None:
        """Begin an answer of this model; `reasonless` endpoints never say why they stop."""
        self._spec: Final = spec
        self._reasonless: Final = reasonless
        self._response: Any = None
        """The id of the response: another begins it anew."""
        self._begin()

    def _begin(self) -> None:
        self._reason: Any = None
        self._tokens = Tokens()
        self._text: list[str] = []
        self._texts: dict[str, list[str]] = {}
        """The texts of the message, in pieces, by their names."""
        self._parts: list[Any] = []
        """Its content, of those who send a list of parts."""
        self._more: dict[str, Any] = {}
        self._calls: list[_Call] = []
        self._by_index: dict[Any, _Call] = {}

    def feed(self, event: Any) -> Iterable[Said]:  # noqa: ANN401 - any JSON
        """Take the next event, and return what it says; `Again` at a second start (W-54).

        Raises `ProviderFailure`, or LookupError, TypeError, ValueError, AttributeError for what is
        no event.
        """
        if event.get("error"):
            raise ProviderFailure(complaint(event["error"]))
        said: list[Said] = []
        for choice in items(event.get("choices")):
            if not choice.get("index"):  # others are not looked at
                self._take(event, choice, said)
        usage = event.get("usage") or members(event.get("x_groq")).get("usage")
        if usage:
            self._tokens = _tokens(members(usage))
            said.append(Used(self._tokens))
        return said

    def end(self) -> Ended:
        """Return the answer; a stream that never said why it ended is cut, unless none does."""
        calls = [call.made() for call in self._calls]
        stop = self._stop(calls)
        answer = Answer(
            text=whole("".join(self._text)) or None,
            calls=bounded(calls, stop),
            raw=freeze(all_whole(self._raw()), place="message"),
            spec=self._spec,
            stop=stop,
            tokens=self._tokens,
        )
        return Ended(answer)

    def _take(self, event: Any, choice: Any, said: list[Said]) -> None:  # noqa: ANN401
        delta = members(choice.get("delta"))
        response = event.get("id") or self._response
        if delta.get("role") and response != self._response:
            if self._response is not None:
                self._begin()
                said.append(Again())
            self._response = response
        for name, value in delta.items():
            if name in _SAID:
                self._say(name, value, said)
            elif name not in _OF_CALLS and value is not None:
                self._more[name] = _joined(self._more.get(name), value)
        for fragment in items(delta.get("tool_calls")):
            self._put(members(fragment), said)
        once = members(delta.get("function_call"))  # as tools were called once
        if any(once.values()):
            self._put({"function": once}, said)
        self._reason = choice.get("finish_reason") or self._reason

    def _say(self, name: str, value: Any, said: list[Said]) -> None:  # noqa: ANN401
        """Take more of a text: some send a list of parts, thoughts among them."""
        if isinstance(value, list):
            self._parts += items(cast("object", value))
            for part in items(cast("object", value)):
                self._tell(_part(members(part)), said)
        elif value is not None and not isinstance(value, str):
            raise TypeError(f"{name} is no text")
        elif value:
            self._texts.setdefault(name, []).append(value)
            if name != "reasoning" or "reasoning_content" not in self._texts:  # some send both
                self._tell(_SAID[name](value), said)

    def _tell(self, piece: Text | Thought, said: list[Said]) -> None:
        if piece.text:
            said.append(piece)
            if isinstance(piece, Text):
                self._text.append(piece.text)

    def _put(self, fragment: Mapping[str, Any], said: list[Said]) -> None:
        """Put a fragment to its call (W-54)."""
        function = members(fragment.get("function"))
        call_id, name = text(fragment.get("id")) or None, text(function.get("name"))
        index = fragment.get("index")
        call, before = self._call_of(index, call_id, name), self._before(index)
        if call is None:
            call = _Call(len(self._calls), call_id, name)
            self._calls.append(call)
            said.append(CallBegan(call.place, name or NAMELESS))
        another = before is not None and before.has_another(name)
        if before is not None and another and (call is before or before.may_go_on(call_id)):
            before.fault = call.fault = TWO_NAMES
        call.call_id = call.call_id or call_id
        call.name = call.name or name
        if index is not None:
            self._by_index[index] = call
        for key, value in fragment.items():
            if key not in {"index", "id", "function"} and value is not None:
                call.more[key] = value
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            if arguments:
                call.arguments.append(arguments)
                said.append(CallText(call.place, arguments))
        elif arguments is not None:
            call.odd = arguments

    def _before(self, index: Any) -> _Call | None:  # noqa: ANN401
        """Return the call that came last where a fragment comes."""
        if index is not None:
            return self._by_index.get(index)
        return self._calls[-1] if self._calls else None

    def _call_of(self, index: Any, call_id: str | None, name: str) -> _Call | None:  # noqa: ANN401
        """Return the call that a fragment goes on with; None where it begins one."""
        if index is None:
            if name or not self._calls:
                return None
            known = (it for it in self._calls if call_id is not None and it.call_id == call_id)
            return next(known, self._calls[-1])
        call = self._by_index.get(index)
        if call is None or (call_id is not None and call_id == call.call_id):
            return call
        if call_id is not None and call.call_id is not None:
            return None
        another = call.has_another(name) and call_id is None and not call.text
        return None if another or (name and call.complete) else call

    def _stop(self, calls: list[ToolCall]) -> Stop:
        if self._reason is None and not self._reasonless:
            return Stop.CUT
        stop = STOPS.get(self._reason or "stop", Stop.OTHER)
        if stop in {Stop.DONE, Stop.CALLS}:  # some say stop after calls
            stop = Stop.CALLS if calls else Stop.DONE
        return Stop.REFUSED if stop is Stop.DONE and "refusal" in self._texts else stop

    def _raw(self) -> dict[str, Any]:
        """Return the message as it would have come whole."""
        texts = {name: "".join(pieces) for name, pieces in self._texts.items()}
        message = {"role": "assistant", "content": None, **self._more, **texts}
        if self._parts:
            rest = [{"type": "text", "text": texts["content"]}] if "content" in texts else []
            message["content"] = self._parts + rest
        if self._calls:
            message["tool_calls"] = [call.raw() for call in self._calls]
        return message


def _given(choice: object) -> dict[str, Any]:
    """Return the fields that are not empty."""
    return {name: value for name, value in members(choice).items() if value}


def _tokens(usage: Mapping[str, Any]) -> Tokens:
    asked, answered = number(usage.get("prompt_tokens")), number(usage.get("completion_tokens"))
    beyond = number(usage.get("total_tokens")) - asked
    return Tokens(
        input=asked,
        output=max(answered, beyond),  # some leave thoughts out of what was answered
        cached=number(members(usage.get("prompt_tokens_details")).get("cached_tokens")),
        thought=number(members(usage.get("completion_tokens_details")).get("reasoning_tokens")),
    )


def _joined(before: object, more: object) -> object:
    """Return a field of a message with its next value: lists go on, other values are replaced."""
    if not isinstance(before, list) or not isinstance(more, list):
        return more
    joined = [*items(cast("object", before))]
    for item in items(cast("object", more)):
        piece = members(item)
        at = piece.get("index")
        same = (n for n, it in enumerate(joined) if at is not None and it.get("index") == at)
        place = next(same, None)
        if place is None:
            joined.append(item)
        else:
            joined[place] = _item(joined[place], piece)
    return joined


def _item(before: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item of a list with its next piece."""
    item = {**before}
    for key, value in more.items():
        pieces = key in _PIECES and isinstance(value, str) and isinstance(item.get(key), str)
        if value is not None:
            item[key] = item[key] + value if pieces else value
    return item


def _part(part: Mapping[str, Any]) -> Text | Thought:
    """Return what a part of a content says; thoughts may be in parts of their own."""
    thought = part.get("thinking")
    if thought is None:
        return Text(text(part.get("text")))
    if isinstance(thought, str):
        return Thought(thought)
    return Thought("".join(text(it.get("text")) for it in items(thought)))
