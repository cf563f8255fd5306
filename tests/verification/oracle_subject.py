"""The oracle as a subject: what every technique must pass, or it is wrong itself."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from turnlock.verification.oracle.oracle import Oracle
from turnlock.verification.subjects.subject import Capability, Raw


class OracleSubject:
    """One run of the oracle."""

    capabilities: Final = frozenset({Capability.RECOVER, Capability.DIGEST, Capability.CLONE})

    def __init__(self) -> None:
        """Wait for a run."""
        self._oracle = Oracle({"run_id": "unset"})
        self._latest = 0.0

    def reset(self, run: Raw) -> None:
        """Begin a fresh run."""
        self._oracle = Oracle(run)
        self._latest = 0.0

    def receive(self, delivery: Raw) -> Raw:
        """Judge one delivery, and return its receipt."""
        self._latest = max(self._latest, float(delivery["now"]))
        return self._oracle.receive(delivery)

    def recover(self) -> Raw:
        """Throw the state away and fold the journal."""
        return self._oracle.receive({"type": "recover"})

    def digest(self) -> Hashable:
        """Return the oracle's key at the latest time that was given."""
        return self._oracle.key(self._latest)

    def clone(self) -> OracleSubject:
        """Return another subject at the same place."""
        twin = OracleSubject()
        twin._oracle = self._oracle.clone()
        twin._latest = self._latest
        return twin
