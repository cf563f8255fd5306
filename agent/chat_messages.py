"""A conversation as chat-completions endpoints take it, and the calls that they send."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from ..models.calls import CallResult, Status
from ..models.errors import InvalidValue
from ..models.strict_json import parse
from ..models.values import canonical, freeze
from .messages import Answer, Message, Prompt, Results, ToolCall

NAMELESS: Final = "(no name)"
"""The tool of a call that names none."""


def as_chat(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the messages. Calls go by ids of ours, which are unique: a provider's may not be."""
    chat: list[dict[str, Any]] = []
    for message in messages:
        if isinstance(message, Prompt):
            chat.append({"role": "user", "content": message.text})
        elif isinstance(message, Answer):
            chat.append(_assistant(message))
        else:
            chat += _tools(message)
    return chat


def _assistant(answer: Answer) -> dict[str, Any]:
    """Return the provider's own message, with what it may have added, under ids of ours."""
    raw: dict[str, Any] = plain(answer.raw) if isinstance(answer.raw, Mapping) else {}
    message = {**raw, "role": "assistant", "content": answer.text}
    message.pop("tool_calls", None)
    if answer.calls:
        message["tool_calls"] = [
            {
                "id": call.invocation_id,
                "type": "function",
                "function": {"name": call.tool_name, "arguments": _arguments(asked)},
            }
            for call, asked in zip(answer.identified(), answer.calls, strict=True)
        ]
    return message


def _arguments(call: ToolCall) -> str:
    """Return the arguments as JSON text; what was no JSON object goes inside one."""
    return canonical(call.arguments)


def _tools(results: Results) -> Iterable[dict[str, Any]]:
    for result in results.results:
        yield {
            "role": "tool",
            "tool_call_id": result.invocation_id,
            "content": _content(result),
        }


def _content(result: CallResult) -> str:
    if result.status is Status.FAILED:
        return f"error: {result.error}"
    if result.status is Status.DENIED:
        return f"denied: {result.reason}"
    value: Any = result.result
    return value if isinstance(value, str) else canonical(value)


def calls_of(tool_calls: Any) -> tuple[ToolCall, ...]:  # noqa: ANN401 - any JSON
    """Return the calls of a response. Raises LookupError or TypeError for what is none."""
    return tuple(_call(call) for call in tool_calls)


def _call(call: Any) -> ToolCall:  # noqa: ANN401 - any JSON
    function = call["function"]
    call_id, name, text = call.get("id"), function.get("name"), function.get("arguments")
    fault = None
    if not isinstance(name, str) or not name:
        name, fault = NAMELESS, "the call names no tool"
    arguments: Mapping[str, Any] = {}
    if text is not None and text != "":  # some send nothing for a tool without parameters
        try:
            arguments = _object(text)
        except InvalidValue as error:
            arguments = {"text": text if isinstance(text, str) else repr(text)}
            fault = f"the arguments cannot be read: {error}"
    return ToolCall(
        call_id=call_id if isinstance(call_id, str) and call_id else None,
        tool_name=name,
        arguments=arguments,
        fault=fault,
    )


def _object(text: Any) -> Mapping[str, Any]:  # noqa: ANN401 - whatever was sent
    value: Any = freeze(parse(text), place="arguments") if isinstance(text, str) else None
    if not isinstance(value, Mapping):
        raise InvalidValue(place="arguments", cause="are no text of a JSON object", fix="send one")
    return cast("Mapping[str, Any]", value)


def plain(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return a frozen JSON value as dicts and lists, which every encoder takes."""
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value).items()
        return {key: plain(item) for key, item in members}
    if isinstance(value, Sequence) and not isinstance(value, str):
        items = cast("list[Any]", value)
        return [plain(item) for item in items]
    return value
