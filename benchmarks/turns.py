"""The deliveries that the benchmarks deliver, built beforehand, each with its time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from turnlock import (
    Acknowledge,
    Call,
    Claim,
    Decide,
    Delivery,
    Kernel,
    OpenTurn,
    Renew,
    Report,
    Run,
)

Timed: TypeAlias = tuple[Delivery, float]

RUN: Final = Run(run_id="run-1", agent_id="agent-1", agent_name="Ada")
LEASE: Final = 30.0


def turn_of_three(*, turn_id: str = "turn-1", lease: float | None = None) -> list[Timed]:
    """Return a turn of three calls of which one needs approval, to its very end: 9 deliveries."""
    names = [f"{turn_id}-call-{number}" for number in range(3)]
    deliveries: list[Delivery] = [
        OpenTurn(
            turn_id=turn_id,
            calls=tuple(
                Call(
                    invocation_id=name,
                    tool_name="transfer",
                    arguments={"account": "DE02", "amount": number, "note": "rent"},
                    requires_approval=number == 0,
                )
                for number, name in enumerate(names)
            ),
        ),
        Decide(turn_id=turn_id, invocation_id=names[0], approved=True, decided_by="alice"),
        *(claim(turn_id, name, lease) for name in names),
        *(report(turn_id, name) for name in names),
        Acknowledge(turn_id=turn_id),
    ]
    return [(delivery, float(second)) for second, delivery in enumerate(deliveries)]


def claim(turn_id: str, name: str, lease: float | None = None) -> Claim:
    """Return the claim of a first attempt."""
    return Claim(turn_id=turn_id, invocation_id=name, attempt=1, worker="worker-1", lease=lease)


def report(turn_id: str, name: str) -> Report:
    """Return the success of a first attempt."""
    return Report(turn_id=turn_id, invocation_id=name, attempt=1, result={"ok": True})


def refused_of_three() -> tuple[list[Timed], list[Timed]]:
    """Return what a kernel is told, and nine deliveries that it then refuses, in nine ways.

    The first call of the turn has ended, the second runs, the third waits for its claim. Three are
    refused by admission, the others by the table.
    """
    turn = turn_of_three()
    turn_id, names = "turn-1", [f"turn-1-call-{number}" for number in range(3)]
    refused: list[Delivery] = [
        Report(turn_id=turn_id, invocation_id=names[1], attempt=2, result=1),
        Claim(turn_id=turn_id, invocation_id="nobody", attempt=1, worker="worker-1"),
        report("turn-0", names[0]),
        claim(turn_id, names[1]),
        Claim(turn_id=turn_id, invocation_id=names[1], attempt=1, worker="worker-2"),
        report(turn_id, names[0]),
        report(turn_id, names[2]),
        Renew(turn_id=turn_id, invocation_id=names[0], attempt=1, lease=LEASE),
        Decide(turn_id=turn_id, invocation_id=names[2], approved=True),
    ]
    return [*turn[:4], turn[5]], [(delivery, 9.0) for delivery in refused]


def deliver(kernel: Kernel, deliveries: Iterable[Timed]) -> None:
    """Deliver, drop the verdicts."""
    receive = kernel.receive
    for delivery, now in deliveries:
        receive(delivery, now)


def fresh(count: int, told: Sequence[Timed] = ()) -> list[Kernel]:
    """Return kernels that have received no more than `told`."""
    kernels = [Kernel(RUN) for _ in range(count)]
    for kernel in kernels:
        deliver(kernel, told)
    return kernels
