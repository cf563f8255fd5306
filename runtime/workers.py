"""Whose claims are a runtime's: what a dead one ran is lost, others keep theirs (K-34, K-35)."""

from __future__ import annotations

from typing import Final

OWNER_PREFIX: Final = "turnlock:"
"""Begins the name of every owner, which is also the worker of its claims: what such a worker ran
when its run is taken over is lost. Executors of other makes keep theirs until the lease is over."""


def was_ours(worker: str | None) -> bool:
    """Whether such a claim was made by a runtime, this one or one before."""
    return worker is not None and worker.startswith(OWNER_PREFIX)
