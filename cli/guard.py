"""``turnlock guard``: guards that are processes of their own."""

from __future__ import annotations

from typing import Final

import click

from .main import LazyGroup

_LAZY: Final = {"mcp": "guard_mcp.command"}

_HELP: Final = """Guards that are processes: before the tools of others, with runs in a journal.

What a guard keeps is shown and decided like any other run: turnlock runs, show, approve, deny and
resolve.

\b
Exit status:
  0  the client has ended it
  1  the server has ended, or cannot be started
  2  wrong usage, or a journal that cannot be used
"""


@click.group(
    "guard", cls=LazyGroup, lazy=_LAZY, help=_HELP, short_help="Guard the tools of others: MCP."
)
def command() -> None:
    """Stand before the tools of others."""
