"""What an adversary sees of the honest host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..models.deliveries import Delivery
from .members import Member


class View(Protocol):
    """The host's side of one conversation, to look at."""

    @property
    def run_id(self) -> str:
        """The run."""
        ...

    @property
    def turn_id(self) -> str | None:
        """The turn that is open, or None between turns."""
        ...

    @property
    def epoch(self) -> int:
        """The epoch of the latest turn."""
        ...

    @property
    def sealed(self) -> bool:
        """Whether that turn is sealed."""
        ...

    @property
    def members(self) -> Sequence[Member]:
        """The members of the latest turn, in expected order."""
        ...

    @property
    def sent(self) -> Sequence[Delivery]:
        """The honest deliveries of the latest turn."""
        ...

    @property
    def past(self) -> Sequence[Delivery]:
        """Those of the turns before it."""
        ...
