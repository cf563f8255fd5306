"""What is explored: something that can be copied, told apart, and asked (verification.md, closure).

The explorer never looks into a state. It loads one, fires letters at it, and clones it first where
the oracle says that something will happen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

from ..findings import Raw

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
