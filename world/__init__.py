"""Worlds: agents and people in chats, durable, and from any terminal.

A `World` is what a journal says of it: agents, chats, settings. In a `Chat` people speak, decide
and follow what happens (`Chat.events`), from any process; a `Host` performs its agents in one.

What happened stands in logs that any process appends to, in the notes and in the facts of each
member's run; all else is a fold of these. `docs/worlds.md` shows how; `docs/spec/world.md` is the
contract.

These names are public; every other name in here may change with any release.
"""

from typing import TYPE_CHECKING

from ..models.lazy import imported_when_asked

if TYPE_CHECKING:
    from ..runtime.journal.ledger import BadCursor
    from .chat import Chat, Published
    from .configuration import AgentConfig, ChatConfig, Configuration
    from .deciding import Judgement
    from .entries import Action, Handoff, Message, Notice, Question, Reply, Role, Stop, Unknown
    from .errors import (
        ChatClosed,
        SaidOtherwise,
        UnknownAgent,
        UnknownChat,
        UnknownQuestion,
        UnknownWorld,
    )
    from .events import ChatEvent, EntryEvent, LiveEvent, ProjectionEvent, TransientEvent
    from .host import Host
    from .host_file import open_host_file
    from .moving import Exported, ExportError, Imported, export_world, import_world
    from .names import MemberName
    from .passing import ToolLogged
    from .publishing import World, worlds
    from .questions import Questions
    from .replying import Replied
    from .requests import Decision, Doubt, Request, ToolResult
    from .spec import AgentSpec, Hears, Start, WorldSpec, read_spec_file
    from .standing import ChatStanding, MemberStanding, Stands
    from .streams import Events

__all__ = [
    "Action",
    "AgentConfig",
    "AgentSpec",
    "BadCursor",
    "Chat",
    "ChatClosed",
    "ChatConfig",
    "ChatEvent",
    "ChatStanding",
    "Configuration",
    "Decision",
    "Doubt",
    "EntryEvent",
    "Events",
    "ExportError",
    "Exported",
    "Handoff",
    "Hears",
    "Host",
    "Imported",
    "Judgement",
    "LiveEvent",
    "MemberName",
    "MemberStanding",
    "Message",
    "Notice",
    "ProjectionEvent",
    "Published",
    "Question",
    "Questions",
    "Replied",
    "Reply",
    "Request",
    "Role",
    "SaidOtherwise",
    "Stands",
    "Start",
    "Stop",
    "ToolLogged",
    "ToolResult",
    "TransientEvent",
    "Unknown",
    "UnknownAgent",
    "UnknownChat",
    "UnknownQuestion",
    "UnknownWorld",
    "World",
    "WorldSpec",
    "export_world",
    "import_world",
    "open_host_file",
    "read_spec_file",
    "worlds",
]

if not TYPE_CHECKING:  # each brings what it stands on along
    __getattr__ = imported_when_asked(
        "turnlock.world",
        {
            "chat": "Chat Published",
            "configuration": "AgentConfig ChatConfig Configuration",
            "deciding": "Judgement",
            "entries": "Action Handoff Message Notice Question Reply Role Stop Unknown",
            "errors": (
                "ChatClosed SaidOtherwise UnknownAgent UnknownChat UnknownQuestion UnknownWorld"
            ),
            "events": "ChatEvent EntryEvent LiveEvent ProjectionEvent TransientEvent",
            "host": "Host",
            "host_file": "open_host_file",
            "moving": "ExportError Exported Imported export_world import_world",
            "names": "MemberName",
            "passing": "ToolLogged",
            "publishing": "World worlds",
            "questions": "Questions",
            "replying": "Replied",
            "requests": "Decision Doubt Request ToolResult",
            "spec": "AgentSpec Hears Start WorldSpec read_spec_file",
            "standing": "ChatStanding MemberStanding Stands",
            "streams": "Events",
            ".runtime.journal.ledger": "BadCursor",
        },
    )


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
