"""Grants hold for a tool as it was when it was asked for: declared otherwise, it is another.

The kernel knows a tool by its name alone (K-41). So each answer keeps what the tools that it calls
were when it was asked for, and a grant is held against the answer whose call it was given for: a
fold of notes and facts, whoever decided, whenever, and whether or not anybody performed the run
then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from ..models.values import arguments_digest
from ..runtime.tools.tool import Tool
from ..runtime.tools.toolbox import Toolbox
from ..views.grants import GrantView
from .conversation import Conversation
from .messages import ToolCall

DIGEST: Final = 32
"""Hex digits that are kept of what a tool is: its server must not find two that are the same."""


def declaration_of(tool: Tool) -> str:
    """Return a digest of what a model is told of a tool: its name, description and schema."""
    return arguments_digest(tool.as_function_schema())[:DIGEST]


def declarations(calls: Iterable[ToolCall], tools: Toolbox) -> Mapping[str, str]:
    """Return what the tools are that these calls ask for, by name; those that there are none of."""
    names = dict.fromkeys(call.tool_name for call in calls)
    return {name: declaration_of(tools[name]) for name in names if name in tools}


def outdated(conversation: Conversation, tools: Toolbox) -> Iterator[str]:
    """Yield the grants in force whose tool is gone, or another now, or was never known."""
    for grant in conversation.grants.in_force:
        now, given = tools.get(grant.tool_name), _given_for(conversation, grant)
        if now is None or declaration_of(now) != given:
            yield grant.grant_id


def _given_for(conversation: Conversation, grant: GrantView) -> str | None:
    answer = conversation.answer_of(grant.turn_id)
    declared = None if answer is None else answer.declared
    return None if declared is None else declared.get(grant.tool_name)
