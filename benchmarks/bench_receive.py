"""The whole `receive`: what a delivery costs, against a bare trigger and against mere construction.

The turn has three calls of which one needs approval: open, decide, three claims, three reports,
acknowledge. Each turn meets a fresh kernel, whose making is not timed. Verdicts are dropped.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from constructions import Build, by_constructors, by_makers, emitted, verdicts_of
from timing import Line, Work, measured, timed, timed_on
from trigger import guarded_trigger_work, trigger_work
from turns import LEASE, Timed, deliver, fresh, refused_of_three, turn_of_three

from turnlock import Kernel

TURNS: Final = 100
WALKS: Final = 200
KINDS: Final = {
    "open_turn, 3 calls, 1 gated": 0,
    "decide": 1,
    "claim": 2,
    "report": 5,
    "report that settles the turn": 7,
    "acknowledge": 8,
}
"""The deliveries of the turn that are shown one by one, and where they stand in it."""
ALIKE: Final = "one after the other on many runs"
"""Alike deliveries in a row are cheaper than the turn's mixture: processors learn a path."""
LEASED: Final = {"claim with the first lease": 2, "report that ends the first lease": 5}
"""The same, of the turn whose claims take leases: both move the wake."""


def _play(turn: list[Timed], kernels: list[Kernel]) -> None:
    for kernel in kernels:
        deliver(kernel, turn)


def _repeat(build: Build) -> None:
    for _ in range(TURNS):
        build()


def _whole(turn: list[Timed]) -> Work:
    return timed_on(TURNS * len(turn), partial(fresh, TURNS), partial(_play, turn))


def _one(turn: list[Timed], place: int) -> Work:
    before, one = turn[:place], turn[place : place + 1]
    return timed_on(TURNS, partial(fresh, TURNS, before), partial(_play, one))


def _refused() -> Work:
    told, refused = refused_of_three()
    [kernel] = fresh(1, told)
    if any(kernel.receive(delivery, now).accepted for delivery, now in refused):
        raise AssertionError(refused)
    return timed_on(TURNS * len(refused), partial(fresh, TURNS, told), partial(_play, refused))


def measure(rounds: int) -> list[Line]:
    """Measure a turn as a whole, then delivery by delivery."""
    turn, leased = turn_of_three(), turn_of_three(lease=LEASE)
    records = emitted(verdicts_of(turn))
    built = TURNS * len(turn)
    samples = measured(
        rounds,
        {
            "receive": _whole(turn),
            "trigger": trigger_work(WALKS),
            "guarded": guarded_trigger_work(WALKS),
            "public": timed(built, partial(_repeat, by_constructors(records))),
            "makers": timed(built, partial(_repeat, by_makers(records, turn))),
            "leased": _whole(leased),
            "refused": _refused(),
            **{name: _one(turn, place) for name, place in KINDS.items()},
            **{name: _one(leased, place) for name, place in LEASED.items()},
        },
    )
    receive, trigger, public = samples["receive"], samples["trigger"], samples["public"]
    makers = samples["makers"]
    each = f"{len(records)} records for {len(turn)} deliveries"
    return [
        receive.line("receive, a delivery", note="mean over the turn"),
        trigger.line("a bare transitions trigger", note="no conditions, no callbacks"),
        samples["guarded"].line("a guarded transitions trigger", note="generated from our rows"),
        public.line("public constructors, a delivery", note=each),
        makers.line("the kernel's makers, a delivery", note="the floor: " + each),
        receive.over(trigger, "receive / bare trigger", bound=0.5),
        receive.over(samples["guarded"], "receive / guarded trigger"),
        receive.over(public, "receive / public constructors", bound=1.5),
        receive.over(makers, "receive / the kernel's makers"),
        public.over(makers, "public constructors / the kernel's makers"),
        samples["leased"].line("receive, claims with leases", note="mean over the turn"),
        samples["refused"].line("a refused delivery", note="mean over nine ways to be refused"),
        samples["refused"].over(trigger, "a refused delivery / bare trigger"),
        *(samples[name].line(name, note=ALIKE) for name in (*KINDS, *LEASED)),
    ]
