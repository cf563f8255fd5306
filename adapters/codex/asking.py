"""Requests of the runtime: what is asked for is shown, and waits for a decision (S-34 … S-37)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from . import answers
from .answers import decline
from .calls import SHARED
from .evidence import Instance
from .items import (
    ASK_USER,
    COMMAND,
    PATCH,
    PERMISSIONS,
    WRITE_STDIN,
    Senseless,
    command_of,
    fields,
    mcp_arguments,
    mcp_tool,
    object_or,
    text,
    text_or_none,
    valid,
)
from .messages import Asked, Notified, object_or_none
from .turns import Turns

Message: TypeAlias = Notified | Asked

_ELICITED: Final = ("serverName", "mode", "message", "requestedSchema", "url", "elicitationId")
"""What a person is shown of an elicitation."""


class Asking:
    """Takes the requests of one thread."""

    def __init__(self, turns: Turns) -> None:
        """Take those of these turns."""
        self._turns: Final = turns

    def asked_for_command(self, message: Message) -> None:
        """Take it that a command is asked for."""
        params, asked = message.params, _request(message)
        item_id = text(params, "itemId")
        name = text_or_none(params, "approvalId") or item_id
        if not self._may_ask(asked):
            return
        shown = command_of(params) if isinstance(params.get("command"), str) else None
        if shown is not None and shown["cwd"] is None:
            announced = self._turns.now.instances.live(item_id)
            shown["cwd"] = announced[-1].arguments.get("cwd") if announced else None
        tool = WRITE_STDIN if params.get("kind") == "writeStdin" else COMMAND
        instance = self._turns.now.instances.asked_for(name, shown)
        if shown is None and instance is not None and instance.item_kind is not None:
            shown = command_of(instance.arguments)
        if shown is None and params.get("networkApprovalContext") is None:
            self._turns.said.replies.append(decline(asked))
            return
        shown = shown or {}
        for extra in ("networkApprovalContext", "additionalPermissions"):
            if params.get(extra) is not None:
                shown[extra] = params[extra]
        self._gate(asked, instance, name, tool, shown)

    def asked_for_patch(self, message: Message) -> None:
        """Take it that a patch is asked for; one that was not announced is declined (S-37)."""
        params, asked = message.params, _request(message)
        item_id = text(params, "itemId")
        if not self._may_ask(asked):
            return
        instance = self._turns.now.instances.asked_for(item_id, None)
        if instance is None or instance.item_kind != "fileChange":
            self._turns.now.unshown.add(item_id)
            self._turns.said.replies.append(decline(asked))
            return
        shown = dict(instance.arguments)
        if params.get("grantRoot") is not None:
            shown["grant_root"] = params["grantRoot"]
        self._gate(asked, instance, item_id, PATCH, shown)

    def asked_for_permissions(self, message: Message) -> None:
        """Take it that permissions are asked for."""
        params, asked = message.params, _request(message)
        item_id, wanted = text(params, "itemId"), fields(params, "permissions")
        if not self._may_ask(asked):
            return
        shown = {"permissions": wanted, "cwd": params.get("cwd")}
        instance = self._turns.now.instances.asked_for(item_id, None)
        self._gate(asked, instance, item_id, PERMISSIONS, shown)

    def asked_as_before(self, message: Message) -> None:
        """Take an approval in its older form: it says its thread and its call, and no turn."""
        params, asked = message.params, _request(message)
        call_id = text(params, "callId")
        if not self._may_ask(asked):
            return
        if asked.method == answers.OLD_PATCH_APPROVAL:
            tool, shown = PATCH, {"changes": fields(params, "fileChanges")}
            if params.get("grantRoot") is not None:
                shown["grant_root"] = params["grantRoot"]
        else:
            command = params.get("command")
            if not isinstance(command, list):
                raise Senseless("command is no list")
            tool, shown = COMMAND, command_of(params)
            call_id = text_or_none(params, "approvalId") or call_id
        instance = self._turns.now.instances.asked_for(call_id, None)
        self._gate(asked, instance, call_id, tool, shown)

    def elicited(self, message: Message) -> None:
        """Take a question of an MCP server, or that it may be called (S-34)."""
        params, asked = message.params, _request(message)
        server = text(params, "serverName")
        if not self._may_ask(asked):
            return
        meta = object_or_none(params.get("_meta"))
        if meta is None or meta.get("codex_approval_kind") != "mcp_tool_call":
            shown = {name: params.get(name) for name in _ELICITED if params.get(name) is not None}
            self._own(asked, f"elicitation/{asked.id}", ASK_USER, shown)
            return
        parameters = meta.get("tool_params")
        instance = self._mcp_item(server, meta, parameters, params.get("message"))
        if instance is None:
            tool = meta.get("tool_name")
            if not isinstance(tool, str) or not tool:
                self._turns.said.replies.append(decline(asked))
                return
            shown = mcp_arguments(server, tool, parameters)
            self._gate(asked, None, f"elicitation/{asked.id}", mcp_tool(server, tool), shown)
            return
        self._gate(asked, instance, instance.item_id, instance.tool_name, instance.arguments)

    def _mcp_item(
        self, server: str, meta: Mapping[str, Any], parameters: object, message: object
    ) -> Instance | None:
        """Return the announced call of a server's tool with these parameters (S-34)."""
        said = message if isinstance(message, str) else ""
        fitting = [
            it
            for it in self._turns.now.instances
            if it.item_kind == "mcpToolCall"
            and it.is_announced_only
            and it.arguments.get("server") == server
            and (it.arguments.get("arguments") or {}) == (parameters or {})
        ]
        for it in fitting:
            tool = it.arguments["tool"]
            if tool == meta.get("tool_name") or f'"{tool}"' in said:
                return it
        return fitting[0] if len(fitting) == 1 else None

    def called(self, message: Message) -> None:
        """Take it that a tool of ours is called (S-28)."""
        params, asked = message.params, _request(message)
        call_id, tool = text(params, "callId"), text(params, "tool")
        if self._may_ask(asked):
            self._own(asked, call_id, valid(tool), object_or(params.get("arguments"), "arguments"))

    def questioned(self, message: Message) -> None:
        """Take it that the user is asked (S-28)."""
        params, asked = message.params, _request(message)
        item_id, questions = text(params, "itemId"), params.get("questions")
        if not isinstance(questions, list):
            raise Senseless("questions is no list")
        if self._may_ask(asked):
            self._own(asked, item_id, ASK_USER, {"questions": questions})

    def _may_ask(self, asked: Asked) -> bool:
        """Whether a request is new, and of a turn that goes on; else it is observed alone."""
        if not self._turns.is_new(asked.id):
            return False
        turn_id = text_or_none(asked.params, "turnId") or self._turns.upstream
        if turn_id is None:
            self._turns.said.replies.append(decline(asked))
            return False
        return self._turns.begin(turn_id)

    def _gate(
        self,
        asked: Asked,
        instance: Instance | None,
        item_id: str,
        tool_name: str,
        arguments: Mapping[str, Any],
    ) -> None:
        if any(it.request is not None for it in self._turns.now.instances.live(item_id)):
            self._turns.share(item_id)
        if instance is None:
            instance = self._turns.open(item_id, tool_name, arguments)
        instance.tool_name, instance.arguments = tool_name, arguments
        if item_id in self._turns.now.shared:
            self._turns.said.replies.append(decline(asked))
            self._turns.decline_unasked(instance, SHARED)
        else:
            self._turns.ask(instance, asked)

    def _own(
        self, asked: Asked, item_id: str, tool_name: str, arguments: Mapping[str, Any]
    ) -> None:
        instance = self._turns.now.instances.asked_for(item_id, None)
        if instance is None:
            instance = self._turns.open(item_id, tool_name, arguments)
        instance.tool_name, instance.arguments = tool_name, arguments
        instance.observed = False
        self._turns.ask(instance, asked)

    def resolved(self, message: Message) -> None:
        """Take it that a request waits no more (S-36)."""
        request = message.params.get("requestId")
        if isinstance(request, bool) or not isinstance(request, int | str):
            raise Senseless("requestId is neither a number nor a text")
        self._turns.resolved(request)


def _request(message: Message) -> Asked:
    if isinstance(message, Asked):
        return message
    raise Senseless("it is a request, and has no id")
