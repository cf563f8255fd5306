"""Whether a run was that of a member that is none any more, where it is named by its id alone.

Its memory was cleared, its agent removed, its chat closed: its turn is to be interrupted, and its
grants revoked, before anything else of that run (section 12). So nothing begins there by decision.
"""

from __future__ import annotations

from ..models.deliveries import Decide, Delivery, Resolution, Resolve
from ..models.errors import UnknownRun
from ..runtime.journal.contract import Journal
from .names import KIND, member_of
from .publishing import World


def has_begin(delivery: Delivery) -> bool:
    """Whether a delivery lets a call begin: it approves one, or has one run again."""
    if isinstance(delivery, Resolve):
        return delivery.resolution is Resolution.RETRY
    return isinstance(delivery, Decide) and delivery.approved


async def is_over(journal: Journal, run_id: str) -> bool:
    """Whether a run of this kind is below the name of a world, and of nobody who is a member."""
    member = member_of(run_id)
    if member is None or not await _is_of_a_world(journal, run_id):
        return False
    world = World(journal, member.world)
    return await world.exists() and not (await world.configuration()).is_present(member)


async def _is_of_a_world(journal: Journal, run_id: str) -> bool:
    """Whether a run is a member's, and not one that was there before a world took its name."""
    try:
        return (await journal.entry(run_id)).run.kind == KIND
    except UnknownRun:
        return False
