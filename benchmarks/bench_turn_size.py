"""A turn of 10 to 10,000 calls: whether a delivery costs the same in all of them.

Every call is claimed, then every call reports; opening the turn is not timed, settling it is.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from timing import QUICK, Line, Work, measured, timed_on
from turns import LEASE, Timed, claim, deliver, fresh, report

from turnlock import Call, Delivery, Kernel, OpenTurn

SIZES: Final = (10, 100, 1_000, 10_000)
QUICK_SIZES: Final = SIZES[:2]
TURN: Final = "turn-1"


def _play(turn: list[Timed], kernels: list[Kernel]) -> None:
    for kernel in kernels:
        deliver(kernel, turn)


def _work(size: int, kernels: int, lease: float | None) -> Work:
    names = [f"call-{number}" for number in range(size)]
    calls = tuple(
        Call(invocation_id=name, tool_name="ls", arguments={}, requires_approval=False)
        for name in names
    )
    told: list[Delivery] = [
        *(claim(TURN, name, lease) for name in names),
        *(report(TURN, name) for name in names),
    ]
    turn: list[Timed] = [(delivery, 1.0 + number / 1_000) for number, delivery in enumerate(told)]
    opening: list[Timed] = [(OpenTurn(turn_id=TURN, calls=calls), 0.0)]
    return timed_on(kernels * len(turn), partial(fresh, kernels, opening), partial(_play, turn))


def measure(rounds: int) -> list[Line]:
    """Measure each size with leases and without, in rounds of as many deliveries."""
    sizes = SIZES if rounds > QUICK else QUICK_SIZES
    lines: list[Line] = []
    for lease, how in ((None, "no leases"), (LEASE, "with leases")):
        works = {str(size): _work(size, max(sizes) // size, lease) for size in sizes}
        samples = measured(rounds, works)
        floor = samples[str(sizes[0])]
        for size in sizes:
            here = samples[str(size)]
            lines.append(here.line(f"{size:,} calls, {how}", note="claim or report"))
        lines += [
            samples[str(size)].over(floor, f"{size:,} calls / {sizes[0]}, {how}")
            for size in sizes[1:]
        ]
    return lines
