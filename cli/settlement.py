"""What one turn must have brought, checked once it is over (K-33, K-50 … K-52)."""

from __future__ import annotations

from collections.abc import Sequence

from .courier import Courier
from .members import Member


def check_settlement(courier: Courier, turn_id: str, members: Sequence[Member]) -> None:
    """Check that a turn settled once, continued once with what was recorded, ran each tool once.

    A turn without calls settles without a continuation (K-52).
    """
    if courier.settled[turn_id] != 1:
        courier.fail(f"the turn settled {courier.settled[turn_id]} times, not once")
    continued = courier.continued.get(turn_id, [])
    if len(continued) != bool(members):
        courier.fail(f"the turn continued {len(continued)} times, not {bool(members):d}")
    for effect in continued:
        if effect.results != tuple(member.expected for member in members):
            courier.fail("the continuation's results are not the recorded ones, in order")
    for member in members:
        _check_executions(courier, turn_id, member)


def _check_executions(courier: Courier, turn_id: str, member: Member) -> None:
    """Check that the tool ran once, or not at all if the call was denied or could not start."""
    ran = courier.executions[turn_id, member.invocation_id]
    decision = member.decision
    may_run = member.fault is None and (decision is None or decision.approved)
    if ran != may_run:
        courier.fail(f"the tool of {member.invocation_id!r} ran {ran} times, not {may_run:d}")
