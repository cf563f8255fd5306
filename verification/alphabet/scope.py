"""A scope: a run and an alphabet that together have finitely many states."""

from __future__ import annotations

import attrs

from ..findings import Raw
from .symbols import Symbol


@attrs.frozen(kw_only=True)
class Scope:
    """What one exploration covers.

    `about` says in words what it holds. `run` is a run object of the wire. `alike` are the ids of
    calls of which the alphabet says just the same: their names are taken for names (see
    `closure.player.nameless`).
    """

    name: str
    about: str
    run: Raw
    symbols: tuple[Symbol, ...]
    alike: frozenset[str] = frozenset()

    @property
    def back(self) -> float:
        """By how many seconds its clock may run backwards (K-10)."""
        return max(0.0, *(-symbol.dt for symbol in self.symbols))
