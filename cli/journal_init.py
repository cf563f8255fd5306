"""``turnlock journal init`` and ``grants``: a journal is made, and who may do what in it."""

from __future__ import annotations

import re
from typing import Final

import click

from ..models.errors import TurnlockError
from ..models.safe_text import harmless
from ..runtime.errors import NoJournal
from ..runtime.journal.contract import open_journal
from ..runtime.journal.places import shown_place
from .databases import ended, named_db_option

_INIT: Final = """Make a journal, or bring the tables of an older one up to date.

Hosts may go on meanwhile, also those of the version before. In PostgreSQL it makes the schema that
the URL names (?schema=NAME, without it: turnlock) and waits at most 5 seconds for a lock. Without
the right to make one, have somebody make the schema and give it to you.
"""

_GRANTS: Final = """Print the SQL that lets ROLE decide, and do nothing else.

A person with this role sees all runs and may approve, deny and interrupt where a host performs the
run: the decision is posted, and the host judges it. Nothing is executed here: give it to psql.

\b
  turnlock journal grants deciders --db postgresql://me@db.example/agents | psql agents
"""

_POSTGRES: Final = re.compile(r"(?i)postgres(ql)?:")


@click.command("init", help=_INIT, short_help="Make a journal, or bring it up to date.")
@named_db_option
def init(*, db: str) -> None:
    """Make it, and say what became of it."""

    async def made() -> str:
        try:
            async with await open_journal(db, create=False, read_only=True):
                before = "is as it should be"
        except NoJournal:
            before = "made"
        except TurnlockError:  # an older one, say: what is really wrong is told below
            before = "brought up to date"
        async with await open_journal(db):
            return before

    click.echo(harmless(f"{shown_place(db)}: {ended(made())}"))


@click.command("grants", help=_GRANTS, short_help="Print the SQL that lets a role decide.")
@click.argument("role", metavar="ROLE")
@named_db_option
def grants(*, role: str, db: str) -> None:
    """Print it; nothing is asked of the server."""
    if not _POSTGRES.match(db):
        raise click.UsageError("--db: only a journal in PostgreSQL has roles: give postgresql://…")
    if not role or "\0" in role:
        raise click.UsageError("ROLE: give the name of a role")
    from ..runtime.journal.postgres.grants import grants_of  # noqa: PLC0415 - an extra's
    from ..runtime.journal.postgres.url import place_of  # noqa: PLC0415 - as above

    try:
        tables = place_of(db).tables
    except NoJournal as error:
        raise click.UsageError(harmless(str(error))) from error
    for statement in grants_of(tables, role):
        click.echo(f"{statement};")
