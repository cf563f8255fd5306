"""What else a guard is asked: decisions and resolutions in code, policies, and calls without turns.

    python examples/guards/alone_pieces.py agent.db

`alone.py` is the loop; here are the pieces that stand around one.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from turnlock.guards import (
    At,
    Call,
    CallContext,
    Guard,
    InDoubt,
    NotApproved,
    Outcome,
    Policy,
    Resolution,
)
from turnlock.models.values import Json

POLICIES = {
    "pay": Policy(approval=True, timeout=20.0),
    "search": Policy(safe_to_repeat=True),
}
EXPECTED = ({"amount": 5},)
"""Payments that ada knows of."""
SENT: dict[str, str] = {}
"""What the carrier has, by the key of each request."""


def send(context: CallContext) -> str:
    """Send a parcel, once: the carrier knows the key."""
    return SENT.setdefault(context.idempotency_key, f"parcel {len(SENT) + 1}")


def shipped(guard: Guard, event: str, order: str) -> Outcome[str]:
    """Do what a webhook asks for, once, however often and wherever it comes."""
    at = At(run="webhooks", turn=None, call=event)
    return guard.once(at, "send", {"order": order}, send)


def decide_all(guard: Guard, run: str, by: str) -> None:
    """Decide in code: about what was shown, which the digest says, and nothing else."""
    for asked in guard.waiting(run):
        known = asked.tool == "pay" and asked.arguments in EXPECTED
        guard.decide(asked.at, approved=known, digest=asked.digest, by=by)


def paid(guard: Guard, at: At, arguments: Mapping[str, Json]) -> Outcome[str]:
    """Pay; where that is in doubt ask the bank what became of it, and go on."""
    try:
        return guard.call(at, "pay", arguments, bank)
    except InDoubt as doubt:
        booked = look_up(doubt.at)
        if booked is None:
            guard.resolve(doubt.at, Resolution.RETRY)
        else:
            guard.resolve(doubt.at, Resolution.RESULT, result=booked)
        return guard.call(at, "pay", arguments, bank)


def bank(context: CallContext) -> str:
    """Pay."""
    return f"paid {context.arguments['amount']}"


def look_up(at: At) -> str | None:
    """Return what the bank has of a payment, None where it has nothing."""
    return None if at.call == "c1" else "paid"


def main(db: str) -> None:
    """Show each."""
    with Guard.open(db, policies=POLICIES) as guard:
        for _ in range(2):
            it = shipped(guard, "evt_1", "order-17")
            print(f"{it.value}, {'as recorded' if it.replayed else 'just now'}")

        asked = Call(
            invocation_id="c1", tool_name="pay", arguments={"amount": 5}, requires_approval=False
        )
        guard.open_turn("order-18", "answer-1", [asked])
        at = At("order-18", "answer-1", "c1")
        try:
            paid(guard, at, asked.arguments)
        except NotApproved:
            print("its policy asks for approval")
        decide_all(guard, "order-18", by="ada")
        print(paid(guard, at, asked.arguments).value)


if __name__ == "__main__":
    if not sys.argv[1:]:
        print("usage: python examples/guards/alone_pieces.py agent.db", file=sys.stderr)
        sys.exit(2)
    main(*sys.argv[1:])
