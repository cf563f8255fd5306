"""How a journal and a run are named: --db or TURNLOCK_DB, and run ids that the shell completes.

What replaces a journal or removes runs reads no variable: it may have been set long ago.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem

from ..models.errors import TurnlockError

if TYPE_CHECKING:  # it would load the runtime
    from ..runtime.journal.contract import Journal

F = TypeVar("F", bound=Callable[..., Any])

DB: Final = "TURNLOCK_DB"
"""The variable that says which journal is meant where --db does not."""
JOURNAL: Final = "The journal: a file, sqlite:FILE, or postgresql://[USER@]HOST/DATABASE."
"""What --db says of itself."""
URL: Final = "TURNLOCK_URL"
"""The variable that says which server is meant where neither --db nor --url does."""
_OFFERED: Final = 200
"""Run ids that are offered at most."""


def db_unless(file: str | None, db: str | None) -> str | None:
    """Return the journal of a command that takes a file instead, too: --db, or without both DB."""
    return db if file is not None or db is not None else os.environ.get(DB) or None


def journal_meant(context: click.Context) -> str | None:
    """Return the journal that completes names: that of --db, or of the variable."""
    return context.params.get("db") or os.environ.get(DB) or None


def run_ids(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the runs whose ids begin like that; none where there is no journal to look into."""
    return _completed(journal_meant(context), incomplete)


def run_ids_of_db(
    context: click.Context, _: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return them for a command that reads no variable."""
    return _completed(context.params.get("db"), incomplete)


def _completed(db: str | None, incomplete: str) -> list[CompletionItem]:
    from .databases import with_journal  # noqa: PLC0415 - asyncio and the runtime load here

    if not db:
        return []

    async def found(journal: Journal) -> list[CompletionItem]:
        items: list[CompletionItem] = []
        async for entry in journal.run_entries():
            run_id, status = entry.run.run_id, entry.status
            if run_id.startswith(incomplete) and run_id.isprintable():
                told = None if status is None else status.value.replace("_", " ")
                items.append(CompletionItem(run_id, help=told))
                if len(items) == _OFFERED:
                    break
        return items

    try:
        return with_journal(db, found, read_only=True)
    except (click.ClickException, TurnlockError, OSError):
        return []  # a completion says nothing: the command itself will


def run_argument(name: str = "run_id", **options: Any) -> Callable[[F], F]:  # noqa: ANN401 - as click.argument
    """Return the argument that names a run."""
    given: dict[str, Any] = {"metavar": "RUN", "shell_complete": run_ids, **options}
    return click.argument(name, **given)
