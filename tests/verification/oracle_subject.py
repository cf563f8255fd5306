"""The oracle as a subject: what every technique must pass, or it is wrong itself."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Self

from turnlock.verification.oracle.oracle import Oracle
from turnlock.verification.subjects.subject import Capability, Raw


class OracleSubject:
    """One run of the oracle."""

    capabilities: frozenset[Capability] = frozenset(
        {Capability.RECOVER, Capability.DIGEST, Capability.CLONE}
    )

    def __init__(self) -> None:
        """Wait for a run."""
        self._oracle = Oracle({"run_id": "unset"})

    def reset(self, run: Raw) -> None:
        """Begin a fresh run."""
        self._oracle = Oracle(run)

    def receive(self, delivery: Raw) -> Raw:
        """Judge one delivery, and return its receipt."""
        return self._oracle.receive(delivery)

    def recover(self) -> Raw:
        """Throw the state away and fold the journal."""
        return self._oracle.receive({"type": "recover"})

    def digest(self) -> Hashable:
        """Return the oracle's key at the time of its latest fact: a function of the state alone."""
        return self._oracle.key(self._oracle.state["at"] or 0.0)

    def clone(self) -> Self:
        """Return another subject at the same place."""
        twin = type(self)()
        twin._oracle = self._oracle.clone()
        return twin
