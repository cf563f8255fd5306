"""A conversation as chat-completions endpoints take it, and the calls that they send."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from ..models.values import canonical
from .folds.calls import tool_call
from .messages import Answer, Message, Prompt, Results, ToolCall
from .telling import told


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
            "content": told(result, results),
        }


def calls_of(tool_calls: Any) -> tuple[ToolCall, ...]:  # noqa: ANN401 - any JSON
    """Return the calls of a response. Raises LookupError or TypeError for what is none."""
    return tuple(_call(call) for call in tool_calls)


def _call(call: Any) -> ToolCall:  # noqa: ANN401 - any JSON
    function = call["function"]
    return tool_call(call.get("id"), function.get("name"), function.get("arguments"))


def plain(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return a frozen JSON value as dicts and lists, which every encoder takes."""
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value).items()
        return {key: plain(item) for key, item in members}
    if isinstance(value, Sequence) and not isinstance(value, str):
        items = cast("list[Any]", value)
        return [plain(item) for item in items]
    return value
