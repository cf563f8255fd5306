"""The items of the responses API that ask for something to be done here, and how each is answered.

Beyond functions these are custom tools, shells, patches, a computer, approvals of MCP calls, and
searches of tools (W-55). Each is a call of a tool by the name that the table gives; where there is
none, it is rejected as a missing tool is. Every other item its provider does itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, cast

import attrs

from ...models.calls import CallResult, Status
from ...models.values import canonical
from ..messages import ToolCall
from .calls import tool_call
from .json_fields import members, text

Item: TypeAlias = Mapping[str, Any]


Answering: TypeAlias = Callable[[Item, str, CallResult, str], dict[str, Any] | None]
"""Takes an item, the wire id of its call, its result, and that in words."""


@attrs.frozen(kw_only=True)
class Kind:
    """One kind of item.

    `tool` is the name of the tool that serves it, None where the item says it; `arguments` the text
    of its arguments; `answer` what its result goes back in, or None for a result that this kind has
    no words for: then both are told as those of a function.
    """

    tool: str | None
    arguments: Callable[[Item], Any]
    answer: Answering
    approval: bool = False
    """Whether a person is always asked."""


def _said(kind: str) -> Answering:
    """Return how results are told that are texts."""

    def answer(item: Item, call_id: str, _: CallResult, words: str) -> dict[str, Any]:
        told_to = {"caller": item["caller"]} if item.get("caller") else {}  # a program, perhaps
        return {"type": kind, "call_id": call_id, "output": words, **told_to}

    return answer


def _local_shell(_: Item, call_id: str, _result: CallResult, words: str) -> dict[str, Any]:
    return {"type": "local_shell_call_output", "id": call_id, "output": words}


def _shell(item: Item, call_id: str, result: CallResult, words: str) -> dict[str, Any]:
    value: Any = result.result
    if not isinstance(value, list):
        failed = result.status is not Status.SUCCEEDED
        outcome = {"type": "exit", "exit_code": int(failed)}
        streams = {"stdout": "" if failed else words, "stderr": words * failed}
        value = [{**streams, "outcome": outcome}]
    length = item.get("action", {}).get("max_output_length")
    bound = {} if length is None else {"max_output_length": length}
    return {"type": "shell_call_output", "call_id": call_id, "output": value, **bound}


def _patch(_: Item, call_id: str, result: CallResult, words: str) -> dict[str, Any]:
    status = "completed" if result.status is Status.SUCCEEDED else "failed"
    answer = {"type": "apply_patch_call_output", "call_id": call_id, "status": status}
    return {**answer, "output": words}


def _computer(item: Item, call_id: str, result: CallResult, _words: str) -> dict[str, Any] | None:
    value: object = result.result
    if isinstance(value, str) and value.startswith(("data:image/", "https://")):
        value = {"type": "computer_screenshot", "image_url": value}
    if not isinstance(value, Mapping):
        return None
    screen = cast("Item", value)
    if screen.get("type") != "computer_screenshot":
        return None
    return {
        "type": "computer_call_output",
        "call_id": call_id,
        "output": screen,
        "acknowledged_safety_checks": item.get("pending_safety_checks") or [],
    }


def _approval(item: Item, _: str, result: CallResult, words: str) -> dict[str, Any]:
    approved = result.status is Status.SUCCEEDED and result.result is not False
    answer = {"type": "mcp_approval_response", "approval_request_id": item["id"]}
    return {**answer, "approve": approved} | ({} if approved else {"reason": words})


def _tool_search(_: Item, call_id: str, result: CallResult, _words: str) -> dict[str, Any]:
    value: Any = result.result
    answer = {"type": "tool_search_output", "execution": "client", "call_id": call_id}
    return {**answer, "status": "completed", "tools": value if isinstance(value, list) else []}


def _fields(*names: str) -> Callable[[Item], str]:
    """Return how arguments are made of the fields of an item that are there."""
    return lambda item: canonical({name: item[name] for name in names if item.get(name)})


KINDS: Final = {
    "function_call": Kind(
        tool=None, arguments=lambda item: item["arguments"], answer=_said("function_call_output")
    ),
    "custom_tool_call": Kind(
        tool=None,
        arguments=lambda item: canonical({"input": item["input"]}),
        answer=_said("custom_tool_call_output"),
    ),
    "local_shell_call": Kind(
        tool="local_shell", arguments=lambda item: canonical(item["action"]), answer=_local_shell
    ),
    "shell_call": Kind(
        tool="shell", arguments=lambda item: canonical(item["action"]), answer=_shell
    ),
    "apply_patch_call": Kind(
        tool="apply_patch", arguments=lambda item: canonical(item["operation"]), answer=_patch
    ),
    "computer_call": Kind(
        tool="computer",
        arguments=_fields("action", "actions", "pending_safety_checks"),
        answer=_computer,
    ),
    "mcp_approval_request": Kind(
        tool="mcp_approval",
        arguments=_fields("server_label", "name", "arguments"),
        answer=_approval,
        approval=True,
    ),
    "tool_search_call": Kind(
        tool="tool_search",
        arguments=lambda item: canonical(item["arguments"]),
        answer=_tool_search,
    ),
}
"""What is done here, by the type of its item."""


def kind_of(item: Item) -> Kind | None:
    """Return the kind of an item that is to be done here, None where its provider does it."""
    place = text(members(item.get("environment")).get("type"))
    hosted = place.startswith("container") or item.get("execution") == "server"
    return None if hosted else KINDS.get(item["type"])


def tool_name(item: Item, kind: Kind) -> Any:  # noqa: ANN401 - whatever was sent
    """Return the name of the tool that an item calls."""
    return item.get("name") if kind.tool is None else kind.tool


def call_of(item: Item, kind: Kind) -> ToolCall:
    """Return the call that an item is."""
    call_id = item.get("call_id") or item.get("id")
    call = tool_call(call_id, tool_name(item, kind), kind.arguments(item))
    return attrs.evolve(call, requires_approval=kind.approval)
