"""The calls of an answer, out of what a provider sent of them (W-52, W-54)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

import attrs

from ...models.errors import InvalidValue
from ...models.strict_json import parse
from ...models.values import Json, freeze
from ..messages import Stop, ToolCall
from ..speaking import CallEnded
from ..whole_text import all_whole

NAMELESS: Final = "(no name)"
"""The tool of a call that names none."""

CUT_OFF: Final = (
    "the answer reached the bound of its length in this call, which may go on; send it again,"
    " shorter"
)
"""The fault of the last call of an answer that was too long (W-52)."""


def tool_call(call_id: object, name: object, arguments: object) -> ToolCall:
    """Return the call that a provider sent, with a fault where it is none that can run.

    `arguments` are the text of a JSON object; empty or None, as some send it for a tool without
    parameters, is an empty object. What is no id counts as none.
    """
    call_id, name, arguments = (all_whole(it) for it in (call_id, name, arguments))
    fault = None
    if not isinstance(name, str) or not name:
        name, fault = NAMELESS, "the call names no tool"
    given: Mapping[str, Json] = {}
    if arguments is not None and arguments != "":
        try:
            given = _object(arguments)
        except InvalidValue as error:
            given = {"text": arguments if isinstance(arguments, str) else repr(arguments)}
            fault = f"the arguments cannot be read: {error}"
    return ToolCall(
        call_id=call_id if isinstance(call_id, str) and call_id else None,
        tool_name=name,
        arguments=given,
        fault=fault,
    )


UNCLOSED: Final = "the provider never said that this call was whole; send it again"
"""The fault of a call that its provider has not closed, though the answer is whole (W-53)."""


def bounded(calls: Sequence[ToolCall], stop: Stop | None) -> tuple[ToolCall, ...]:
    """Return the calls of an answer that stopped so: of one that was too long, the last is faulty.

    That its arguments parse is no proof that they are whole (W-52, W-53).
    """
    if stop is not Stop.LENGTH or not calls:
        return tuple(calls)
    *before, last = calls
    return (*before, attrs.evolve(last, fault=last.fault or CUT_OFF))


UNTOLD: Final = frozenset({Stop.REFUSED, Stop.CUT})
"""Stops by which a call that was not told of yet must not begin (W-58)."""


@attrs.define
class Latest:
    """The latest call that was closed. It is told of as soon as something follows it.

    If that is the bound of the answer's length, the call is faulty (W-52), though it was closed and
    its arguments may parse: who starts calls early must not see it whole. If it is that the answer
    was refused, or is none, the call is not told at all: nothing of it may begin (W-58).
    """

    ended: CallEnded | None = None
    """Closed, and not yet told."""
    calls: dict[int, ToolCall] = attrs.field(factory=dict[int, ToolCall])
    """Those that were told, by their places."""
    stop: Stop | None = None
    """Why the answer stopped, once that is known."""

    def told(self, stop: Stop | None = None) -> Iterator[CallEnded]:
        """Yield it once, the answer having stopped or gone on."""
        self.stop = self.stop if stop is None else stop
        ended, self.ended = self.ended, None
        if ended is not None and self.stop not in UNTOLD:
            (call,) = bounded((ended.call,), stop)
            self.calls[ended.place] = call
            yield attrs.evolve(ended, call=call)

    def among(self, calls: Sequence[ToolCall], stop: Stop) -> tuple[ToolCall, ...]:
        """Return all calls of an answer that stopped so; what was told is as it was told."""
        ended = enumerate(bounded(calls, stop))
        return tuple(self.calls.get(place, call) for place, call in ended)


def _object(text: object) -> Mapping[str, Json]:
    value: Any = (
        freeze(all_whole(parse(text)), place="arguments") if isinstance(text, str) else None
    )
    if not isinstance(value, Mapping):
        raise InvalidValue(place="arguments", cause="are no text of a JSON object", fix="send one")
    return cast("Mapping[str, Json]", value)
