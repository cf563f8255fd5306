"""What is explored: something that can be copied, told apart, and asked (verification.md, closure).

The explorer never looks into a state. It loads one, fires letters at it, and clones it first where
the oracle says that something will happen.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Protocol, TypeAlias

from ..alphabet.scope import Scope
from ..alphabet.symbols import bind
from ..findings import Raw
from ..oracle.reading import State
from ..oracle.wording import configured, well_formed

Flaw: TypeAlias = tuple[str, str]
"""The rule that is broken, and a sentence."""


class Reply(Protocol):
    """What came back: a verdict of the kernel has just these."""

    @property
    def reason(self) -> str | None:
        """Why it was refused; None when it was accepted."""
        ...

    @property
    def facts(self) -> Sequence[Any]:
        """What happened."""
        ...

    @property
    def effects(self) -> Sequence[Any]:
        """What is asked for since."""
        ...


class Player(Protocol):
    """Plays deliveries on states of one run."""

    @property
    def exact(self) -> bool:
        """Whether its keys are to be as coarse as the oracle's; else they may tell more apart."""
        ...

    def begin(self) -> Any:  # noqa: ANN401 - a state, of whatever kind
        """Return the state of a fresh run."""
        ...

    def build(self, delivery: Raw, /) -> Any:  # noqa: ANN401 - a letter, of whatever kind
        """Return what `fire` takes for a delivery without its time."""
        ...

    def load(self, state: Any, /) -> None:  # noqa: ANN401
        """Let the next letters be fired at this state."""
        ...

    def fire(self, letter: Any, now: float, /) -> Any:  # noqa: ANN401
        """Deliver at the loaded state, which may change; return what reads like a `Reply`."""
        ...

    def clone(self, state: Any, /) -> Any:  # noqa: ANN401
        """Return a copy of a state that shares nothing which changes."""
        ...

    def key(self, state: Any, now: float, /) -> Any:  # noqa: ANN401
        """Return a hashable, equal iff whatever comes at `now` or later is answered alike."""
        ...

    def receipt(self, reply: Any, /) -> Raw:  # noqa: ANN401
        """Return a reply as the wire's receipt."""
        ...

    def agrees(self, reply: Any, expected: Raw, /) -> bool:  # noqa: ANN401
        """Say whether a reply is the expected receipt, in every field."""
        ...

    def step_flaw(self, reply: Any, before: Any, after: Any, /) -> Flaw | None:  # noqa: ANN401
        """Hold a reply in which something happened against the rules, without the oracle."""
        ...

    def refold(self, folded: Any, facts: Sequence[Any], /) -> Any:  # noqa: ANN401
        """Return what recovery makes of a journal: of the one before, and of one commit more."""
        ...

    def state_flaw(
        self,
        state: Any,  # noqa: ANN401
        owed: list[Raw],
        journal: Sequence[Any],
        folded: Any,  # noqa: ANN401
        /,
    ) -> Flaw | None:
        """Hold a state that was never met before against the rules.

        `owed` is the oracle's; `folded` is what recovery made of the journal.
        """
        ...


# ------------------------------------------------------------------------------
# The alphabet made ready to fire: every delivery is built once, and none is parsed in the loop.


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


# ------------------------------------------------------------------------------
# States that differ only in which invocation is which.
#
# Where a scope's calls are all alike and its alphabet says the same of each, the name of a call is
# only a name. A key is then taken of what each invocation is in all places together, whoever it is.
# Expected order is a name too: what hangs on order is for the scopes without symmetry.


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
