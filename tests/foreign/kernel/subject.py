"""The kernel as the proof kit takes it in process: reset, receive, recover."""

from __future__ import annotations

from .mail import Raw
from .restore import restored
from .run import Run


class ForeignKernel:
    """One run at a time."""

    capabilities = frozenset({"recover"})

    def reset(self, run: Raw) -> None:
        """Begin a fresh run."""
        self.run = Run(run)

    def receive(self, delivery: Raw) -> Raw:
        """Judge one delivery, and return its receipt."""
        return self.run.receive(delivery)

    def recover(self) -> Raw:
        """Throw the run away and read it back from its journal."""
        self.run = restored(self.run)
        return {"accepted": True, "facts": [], "effects": self.run.all_owed()}
