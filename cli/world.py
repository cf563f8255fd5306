"""``turnlock world``: agents and people in chats, made, watched and performed from any terminal."""

from __future__ import annotations

from typing import Final

import click

from .main import LazyGroup

_LAZY: Final = {
    "new": "world_make.new",
    "chat": "world_make.chat",
    "clear": "world_make.clear",
    "agent": "world_agent.agent",
    "list": "world_list.list_worlds",
    "show": "world_standing.show",
    "say": "world_say.say",
    "follow": "world_follow.follow",
    "run": "world_run.run",
    "approve": "world_decide.approve",
    "deny": "world_decide.deny",
    "reply": "world_reply.reply",
    "export": "world_moving.export",
    "import": "world_moving.import_world",
}

_HELP: Final = """Agents and people in chats: durable, and from any terminal.

A world W has agents and chats; an agent in a chat is a member, whose run is W/CHAT/AGENT. What is
said is kept at once, whether or not anybody performs the members (turnlock world run). Calls that
need approval wait for turnlock world approve; the commands that show runs (turnlock runs, show,
check) show those of members, too.

\b
  turnlock world new demo --db world.db
  turnlock world agent put demo alice --model openai:NAME --tools pay --db world.db
  turnlock world chat demo plan --db world.db
  turnlock world say demo plan '@alice pay the bill' --db world.db
  turnlock world run demo --until-idle --host-file host.toml --db world.db

\b
Exit status:
  0  it is done, or was shown
  1  refused, or the journal failed
  2  wrong usage, no journal, or no such world, chat or agent
  3  run alone: what is left waits for people
  4  run alone: interrupted
"""


@click.group(
    "world",
    cls=LazyGroup,
    lazy=_LAZY,
    help=_HELP,
    short_help="Agents and people in chats.",
)
def command() -> None:
    """Make, watch and perform worlds."""
