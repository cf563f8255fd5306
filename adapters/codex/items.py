"""The items and requests that matter, read where they are used: what runs, and how it ended.

What is read here is what a person is shown and a decision is held against (S-37), so it is taken
from the message as it came. A message of which no sense can be made is `Senseless` (S-13).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

import attrs

from .messages import list_of, object_of, object_or_none

COMMAND: Final = "command"
PATCH: Final = "patch"
WRITE_STDIN: Final = "write_stdin"
PERMISSIONS: Final = "permissions"
ASK_USER: Final = "ask_user"

ID_LENGTH: Final = 256
"""Characters of an id or a name that the kernel is given; a longer one is cut, and digested."""

_SAID: Final = frozenset(
    {
        "agentMessage",
        "contextCompaction",
        "enteredReviewMode",
        "exitedReviewMode",
        "hookPrompt",
        "plan",
        "reasoning",
        "userMessage",
        "webSearch",
    }
)
"""Items that are no execution here: said, thought, or done by the model's provider (W-55)."""


_ACTIVITY: Final = "subAgentActivity"
_AGENTS: Final = frozenset({"collabAgentToolCall", "collabToolCall", _ACTIVITY})
_NO_CALL: Final = "subagent-"
"""Begins the ids of what is told of another agent, and was asked for by nobody."""


class Senseless(ValueError):
    """A known message of which no sense can be made: it is kept, and moves nothing (S-13)."""


def text(given: Mapping[str, Any], name: str) -> str:
    """Return a text that must be there. Raises `Senseless`."""
    found = given.get(name)
    if not isinstance(found, str) or not found:
        raise Senseless(f"{name} is no text")
    return found


def text_or_none(given: Mapping[str, Any], name: str) -> str | None:
    """Return a text that may be there. Raises `Senseless` for anything else."""
    found = given.get(name)
    if found is None or isinstance(found, str):
        return found or None
    raise Senseless(f"{name} is no text")


def fields(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return an object that must be there. Raises `Senseless`."""
    found = object_or_none(given.get(name))
    if found is None:
        raise Senseless(f"{name} is no object")
    return found


def valid(name: str) -> str:
    """Return an id or a name that the kernel takes: as it came, or cut to one that differs."""
    if len(name) <= ID_LENGTH:
        return name or "nameless"
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{name[: ID_LENGTH - 17]}~{digest}"


@attrs.frozen(kw_only=True)
class Item:
    """One thing that is, was or may be executed."""

    id: str
    kind: str
    tool_name: str
    arguments: Mapping[str, Any]
    status: str | None
    process_id: str | None
    began: int | None
    """When it was announced, in the runtime's milliseconds, where it says so."""
    fields: Mapping[str, Any]
    """The item as it came."""

    @property
    def is_running(self) -> bool:
        """Whether the runtime shows that it runs: it has a process, or is another agent (S-21)."""
        return self.process_id is not None or self.kind in _AGENTS


def item_of(params: Mapping[str, Any]) -> Item | None:
    """Return the execution that a message is about; None: it is about something else."""
    found = fields(params, "item")
    kind = text(found, "type")
    if kind in _SAID:
        return None
    read = _READ.get(kind)
    if read is None:
        if not kind.endswith("ToolCall"):
            return None
        read = _tool
    if kind == _ACTIVITY and text(found, "id").startswith(_NO_CALL):
        return None
    tool_name, arguments = read(found)
    began = found.get("startedAtMs")
    return Item(
        id=text(found, "id"),
        kind=kind,
        tool_name=valid(tool_name),
        arguments=arguments,
        status=text_or_none(found, "status"),
        process_id=text_or_none(found, "processId"),
        began=began if isinstance(began, int) else None,
        fields=found,
    )


def command_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what runs: the command and its directory (S-37)."""
    return {"command": given.get("command"), "cwd": given.get("cwd")}


def _command(item: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    text(item, "command")
    return COMMAND, command_of(item)


def _patch(item: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    changes = item.get("changes")
    if not isinstance(changes, list):
        raise Senseless("changes is no list")
    return PATCH, {"changes": changes}


def _mcp(item: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    server, tool = text(item, "server"), text(item, "tool")
    return mcp_tool(server, tool), mcp_arguments(server, tool, item.get("arguments"))


def mcp_tool(server: str, tool: str) -> str:
    """Return the name of a tool of an MCP server, as the model knows it."""
    return valid(f"mcp__{server}__{tool}")


def mcp_arguments(server: str, tool: str, parameters: object) -> dict[str, Any]:
    """Return what runs: server, tool and parameters (S-37)."""
    return {"server": server, "tool": tool, "arguments": parameters}


def _dynamic(item: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    return text(item, "tool"), object_or(item.get("arguments"), "arguments")


def _image(item: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    return "view_image", {"path": item.get("path")}


def _agent(item: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    told = {name: item[name] for name in ("prompt", "receiverThreadIds") if item.get(name)}
    return text(item, "tool"), told


def _activity(item: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    told = {name: item[name] for name in ("agentPath", "agentThreadId") if item.get(name)}
    return f"agent_{text(item, 'kind')}", told


def _tool(item: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Read a tool call of a kind that is not known yet."""
    told = {
        name: value
        for name, value in item.items()
        if name not in _NOT_ARGUMENTS and value is not None
    }
    return text_or_none(item, "tool") or text(item, "type"), told


_NOT_ARGUMENTS: Final = frozenset(
    {
        *("type", "id", "tool", "status", "startedAtMs", "completedAtMs", "durationMs"),
        *("result", "error", "contentItems", "success", "processId"),
    }
)
_READ: Final = {
    "commandExecution": _command,
    "fileChange": _patch,
    "mcpToolCall": _mcp,
    "dynamicToolCall": _dynamic,
    "imageView": _image,
    "collabAgentToolCall": _agent,
    "collabToolCall": _agent,
    "subAgentActivity": _activity,
}


def object_or(value: object, name: str) -> Mapping[str, Any]:
    """Return an object as it is, and anything else as an object that names it."""
    found = object_or_none(value)
    return {name: value} if found is None else found


@attrs.frozen(kw_only=True)
class Outcome:
    """What the runtime says of a call: a result, or an error."""

    result: Any = None
    error: str | None = None
    shows_start: bool = False
    """Whether it shows that it was started: what went to the model may be a refusal."""


def outcome_of(item: Item) -> Outcome:
    """Return how an item ended that was not declined (S-24)."""
    found = item.fields
    if item.kind == "commandExecution":
        return _command_outcome(item)
    failed = item.status == "failed" or found.get("success") is False
    if not failed:
        return Outcome(result=_told(item), shows_start=True)
    return Outcome(error=_error(item))


def _command_outcome(item: Item) -> Outcome:
    found = item.fields
    output, status = found.get("aggregatedOutput"), found.get("exitCode")
    if item.status != "failed":
        return Outcome(result={"exit_code": status, "output": output}, shows_start=True)
    said = f"exit code {status}" if isinstance(status, int) else "it failed"
    whole = f"{said}: {output}" if isinstance(output, str) and output else said
    return Outcome(error=whole, shows_start=item.process_id is not None or status is not None)


def _told(item: Item) -> Any:  # noqa: ANN401 - any JSON
    found = item.fields
    if item.kind == "mcpToolCall":
        return found.get("result")
    if item.kind == "dynamicToolCall":
        return {"content": found.get("contentItems")}
    if item.kind in {"fileChange", "imageView"}:
        return {"status": item.status or "completed"}
    left = {
        name: value
        for name, value in found.items()
        if name not in {"type", "id", "startedAtMs", "completedAtMs"} | item.arguments.keys()
        and value is not None
    }
    return left or {"status": item.status}


def _error(item: Item) -> str:
    error = item.fields.get("error")
    told = object_or_none(error)
    said = error if told is None else told.get("message")
    if isinstance(said, str) and said:
        return said
    content = list_of(item.fields.get("contentItems")) or ()
    texts = [object_of(it).get("text") for it in content]
    if all(isinstance(it, str) for it in texts) and any(texts):
        return "\n".join(map(str, texts))
    return f"the runtime says that it {item.status or 'failed'}"


@attrs.frozen(kw_only=True)
class RawCall:
    """A call in the raw stream of a response: announced there, and perhaps nowhere else (S-31)."""

    id: str
    """Its own, which is unique; the model's `call_id` is not (S-33)."""
    call_id: str
    tool_name: str
    arguments: Mapping[str, Any]


@attrs.frozen(kw_only=True)
class RawOutput:
    """What went to the model as the answer to a call."""

    id: str
    call_id: str
    told: Any


def raw_of(params: Mapping[str, Any]) -> RawCall | RawOutput | None:
    """Return the call or output of a raw item; None: it is something else."""
    found = fields(params, "item")
    kind = text(found, "type")
    call_id = text_or_none(found, "call_id")
    if call_id is None:
        return None
    own = text_or_none(found, "id") or f"{kind}/{call_id}"
    if kind.endswith("_output"):
        return RawOutput(id=own, call_id=call_id, told=found.get("output"))
    if not kind.endswith("_call"):
        return None
    return RawCall(
        id=own,
        call_id=call_id,
        tool_name=valid(text_or_none(found, "name") or kind),
        arguments=_raw_arguments(found),
    )


def _raw_arguments(item: Mapping[str, Any]) -> Mapping[str, Any]:
    for name in ("arguments", "action", "input"):
        told = item.get(name)
        named = object_or_none(told)
        if named is not None:
            return named
        if isinstance(told, str):
            return _parsed(told) if name == "arguments" else {name: told}
    return {}


def _parsed(told: str) -> Mapping[str, Any]:
    try:
        found = json.loads(told)
    except (ValueError, RecursionError):
        return {"arguments": told}
    return object_or(found, "arguments")
