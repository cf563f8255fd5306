"""States that differ only in which invocation is which.

Where a scope's calls are all alike and its alphabet says the same of each, the name of a call is
only a name. A key is then taken of what each invocation is in all places together, whoever it is.
Expected order is a name too: what hangs on order is for the scopes without symmetry.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, TypeAlias

Row: TypeAlias = tuple[Any, ...]


def nameless(key: tuple[Hashable, tuple[Row, ...]], alike: frozenset[str]) -> Hashable:
    """Return a key that is equal for states which become equal when `alike` ids change names.

    The rows of a key each begin with the id of the invocation that they concern. Sorting by hash
    is enough: two that fall on one hash would only stay apart.
    """
    whole, rows = key
    lives: dict[str, list[Row]] = {}
    others: list[Row] = []
    for row in rows:
        if row[0] in alike:
            lives.setdefault(row[0], []).append(row[1:])
        else:
            others.append(row)
    return whole, tuple(others), tuple(sorted(map(tuple, lives.values()), key=hash))
