"""What a role needs that decides and does nothing else (D-58)."""

from __future__ import annotations

from collections.abc import Sequence

from .tables import Tables


def grants_of(tables: Tables, role: str) -> Sequence[str]:
    """Return the statements that let a role look, and post decisions for those who perform.

    To post locks the row of the run, which needs the right to update one column of it; `settle` is
    the one that a journal raises where it does not know whether its own post was kept (D-41).
    """
    who = '"' + role.replace('"', '""') + '"'
    return (
        f"GRANT USAGE ON SCHEMA {tables.quoted} TO {who}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {tables.quoted} TO {who}",
        f"GRANT INSERT ON {tables.posts} TO {who}",
        f"GRANT UPDATE (settle) ON {tables.runs} TO {who}",
    )
