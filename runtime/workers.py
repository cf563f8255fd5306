"""Who a runtime is: the name of an owner of runs, and the worker of its claims (K-34, K-35).

The name of an owner is never used twice, so that its claims can be told from those of any other.
What a dead runtime ran is lost; executors of other makes keep their claims until the lease is over.
"""

from __future__ import annotations

from typing import Final

from .journal.owners import is_gone, this_process

OWNER_PREFIX: Final = "turnlock:"
"""Begins the name of every owner."""


def new_owner() -> str:
    """Return a name for an owner in this process that no other has."""
    return f"{OWNER_PREFIX}{this_process()}"


def was_ours(worker: str | None) -> bool:
    """Whether such a claim was made by a runtime, this one or one before."""
    return worker is not None and worker.startswith(OWNER_PREFIX)


def is_dead(owner: str | None) -> bool:
    """Whether this is a runtime whose process has surely ended: nobody waits for its lease."""
    return owner is not None and was_ours(owner) and is_gone(owner.removeprefix(OWNER_PREFIX))


def short_name(owner: str) -> str:
    """Return an owner as people want it: host and process of a runtime, another's whole name."""
    if not was_ours(owner):
        return owner
    return ":".join(owner.removeprefix(OWNER_PREFIX).split(":")[:2])
