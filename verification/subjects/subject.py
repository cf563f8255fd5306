"""What the techniques need of a system under test (verification.md, "The system under test").

Everything is said in the words of the wire (kernel.md section 12): deliveries and receipts are
plain JSON objects, a delivery with its `now`. What a system cannot do it leaves undeclared: the
techniques that need it are skipped by name. What it declares is mandatory.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from enum import StrEnum
from typing import Any, Protocol, TypeAlias, runtime_checkable

Raw: TypeAlias = dict[str, Any]
"""A JSON object."""
Script: TypeAlias = Sequence[Raw]
"""Deliveries in order, each with its `now`; `{"type": "recover"}` may stand between them."""


class Capability(StrEnum):
    """What a system under test may offer beside receiving."""

    RECOVER = "recover"
    """Throw the state away and rebuild it from the journal."""
    DIGEST = "digest"
    """Tell whether two states answer alike whatever comes next."""
    CLONE = "clone"
    """Copy itself."""


@runtime_checkable
class Subject(Protocol):
    """One run of a system under test, in this process: what a user writes for his own kernel.

    `reset` begins a fresh run with a run object of the wire. `receive` takes one delivery with its
    `now` and returns its receipt: ``{"accepted": …, "reason"?: …, "facts": […], "effects": […]}``.
    A subject that declares a capability in `capabilities` has the method of that name too:
    ``recover() -> receipt``, ``digest() -> hashable``, ``clone() -> subject``.
    """

    capabilities: frozenset[Capability]

    def reset(self, run: Raw) -> None:
        """Begin a fresh run."""
        ...

    def receive(self, delivery: Raw) -> Raw:
        """Judge one delivery, and return its receipt."""
        ...


class Recoverable(Subject, Protocol):
    """A subject that declares RECOVER."""

    def recover(self) -> Raw:
        """Rebuild from the journal; the receipt holds all the effects that are still owed."""
        ...


class Explorable(Subject, Protocol):
    """A subject that declares CLONE and DIGEST."""

    def digest(self) -> Hashable:
        """Return a value that is equal iff whatever comes next is answered alike."""
        ...

    def clone(self) -> Explorable:
        """Return a copy that shares nothing that changes."""
        ...


class Driver(Protocol):
    """Plays whole scripts on a system under test, in this process or behind a pipe.

    Each script starts from a fresh run. `play` returns the receipts of each script. It raises
    `SubjectFailed` when the system crashed, hung or answered what is no receipt, with the script
    that it happened in.
    """

    name: str
    capabilities: frozenset[Capability]

    def play(self, run: Raw, scripts: Sequence[Script]) -> list[list[Raw]]:
        """Play scripts, each on a fresh run, and return their receipts."""
        ...

    def close(self) -> None:
        """Let go of whatever the driver holds."""
        ...
