"""``turnlock journal``: a journal as a whole, for whoever operates it."""

from __future__ import annotations

from typing import Final

import click

from .main import LazyGroup

_LAZY: Final = {
    "init": "journal_init.init",
    "grants": "journal_init.grants",
    "status": "journal_status.status",
    "check": "journal_check.check",
    "copy": "journal_copy.copy",
}

_HELP: Final = """A journal as a whole: made, watched, checked, and copied into another one.

\b
  turnlock journal init --db postgresql://me@db.example/agents
  turnlock journal status --db postgresql://me@db.example/agents
  turnlock journal copy agent.db postgresql://me@db.example/agents

\b
Exit status:
  0  it is done, and all is as it should be
  1  refused or failed; a number is beyond its bound (status), or something is damaged (check)
  2  wrong usage, or no journal
"""


@click.group(
    "journal",
    cls=LazyGroup,
    lazy=_LAZY,
    help=_HELP,
    short_help="Make, watch, check and copy a journal.",
)
def command() -> None:
    """Operate a journal."""
