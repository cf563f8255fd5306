"""The alphabet made ready to fire: every delivery is built once, and none is parsed in the loop."""

from __future__ import annotations

from typing import Any, TypeAlias

from ..alphabet.scope import Scope
from ..alphabet.symbols import bind
from ..findings import Raw
from ..oracle.reading import State
from ..oracle.wording import configured, well_formed
from .player import Player

Letter: TypeAlias = tuple[Raw, Any, float]
"""What the oracle takes, what the player takes, and how long after the clock."""


class Letters:
    """The letters of a scope at one state after the other."""

    def __init__(self, scope: Scope, player: Player) -> None:
        """Build what does not depend on a state."""
        self.symbols = scope.symbols
        self._run_id: str = configured(scope.run)["run_id"]
        self._player = player
        self._relative = [
            (place, symbol, list(symbol.relative.values()))
            for place, symbol in enumerate(scope.symbols)
            if symbol.relative
        ]
        self._built: dict[Any, Letter] = {}
        self.current: list[Any] = [
            None if symbol.relative else self._build(symbol.delivery, symbol.dt)
            for symbol in scope.symbols
        ]

    def at(self, state: State) -> list[Letter]:
        """Bind all letters to an oracle's state; `current` holds them until the next call."""
        run_id = self._run_id
        for place, symbol, values in self._relative:
            told = (place, *[bind(value, symbol.delivery, state, run_id) for value in values])
            letter = self._built.get(told)
            if letter is None:
                bound = symbol.bound(state, run_id)
                letter = self._built[told] = self._build(bound, symbol.dt)
            self.current[place] = letter
        return self.current

    def _build(self, delivery: Raw, dt: float) -> Letter:
        return well_formed(delivery), self._player.build(delivery), dt
