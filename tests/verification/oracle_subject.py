"""The oracle as a subject, plain and with all it can: what every technique must pass."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Self

from turnlock.verification.oracle.oracle import Oracle
from turnlock.verification.subjects.subject import Capability, Raw


class Right:
    """A kernel of somebody else's, that declares nothing: subclasses make one mistake."""

    capabilities: frozenset[Capability] = frozenset()

    def __init__(self) -> None:
        """Wait for a run."""
        self.oracle = Oracle({"run_id": "unset"})

    def reset(self, run: Raw) -> None:
        """Begin a fresh run."""
        self.oracle = Oracle(run)

    def receive(self, delivery: Raw) -> Raw:
        """Judge one delivery, and return its receipt."""
        return self.oracle.receive(delivery)


class OracleSubject(Right):
    """One that can be recovered, copied and told apart, too."""

    capabilities = frozenset({Capability.RECOVER, Capability.DIGEST, Capability.CLONE})

    def recover(self) -> Raw:
        """Throw the state away and fold the journal."""
        return self.oracle.receive({"type": "recover"})

    def digest(self) -> Hashable:
        """Return the oracle's key at the time of its latest fact: a function of the state alone."""
        return self.oracle.key(self.oracle.state["at"] or 0.0)

    def clone(self) -> Self:
        """Return another subject at the same place."""
        twin = type(self)()
        twin.oracle = self.oracle.clone()
        return twin
