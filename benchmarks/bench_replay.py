"""Replay: how fast a journal is folded again, into a kernel and a view, and how fast received.

The facts are objects; what it costs to read them from JSON stands under codec.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from timing import QUICK, Line, measured, timed, timed_on
from turns import LEASE, RUN, Timed, deliver, fresh, turn_of_three

from turnlock import Fact, Kernel, RunView

FACTS: Final = 50_000
QUICK_FACTS: Final = 2_000


def measure(rounds: int) -> list[Line]:
    """Play turns of three with leases until the journal is long enough, then recover it."""
    wanted = FACTS if rounds > QUICK else QUICK_FACTS
    per_turn = len(_journal(turn_of_three(lease=LEASE)))
    story: list[Timed] = []
    for number in range(wanted // per_turn + 1):
        turn = turn_of_three(turn_id=f"turn-{number}", lease=LEASE)
        story += [(delivery, number * 10 + after) for delivery, after in turn]
    journal = _journal(story)
    recovered = Kernel.recover(RUN, journal)
    if recovered.sequence != len(journal):
        raise AssertionError(recovered.sequence)

    samples = measured(
        rounds,
        {
            "recover": timed(len(journal), partial(Kernel.recover, RUN, journal)),
            "view": timed(len(journal), partial(RunView.of, RUN, journal)),
            "receive": timed_on(len(story), partial(fresh, 1), partial(_play, story)),
        },
    )
    note = f"{len(journal):,} facts"
    return [
        samples["recover"].line("recover, a fact", note=note),
        samples["recover"].rate("facts recovered a second", "/s"),
        samples["view"].line("fold into a view, a fact", note="RunView.of"),
        samples["view"].over(samples["recover"], "fold into a view / recover"),
        samples["receive"].rate("deliveries received a second", "/s", note="with leases"),
    ]


def _journal(story: list[Timed]) -> list[Fact]:
    return [fact for verdict in Kernel(RUN).receive_many(story) for fact in verdict.facts]


def _play(story: list[Timed], kernels: list[Kernel]) -> None:
    for kernel in kernels:
        deliver(kernel, story)
