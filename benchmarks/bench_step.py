"""A step of the invocation's table, against a dict lookup and an event of a library's machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from peers.machines import PEERS, event_work
from peers.missing import missing, skipped, versions
from timing import Line, Samples, measured, timed
from trigger import guarded_trigger_work, trigger_work

from turnlock.lifecycle.table import INVOCATION, step

PASSES: Final = 10
WALKS: Final = 200
ROUNDS: Final = {"python-statemachine": 20, "automat": 500}
"""How often the machine of each library goes round in one round of the benchmark."""

_OWN: Final[dict[tuple[str, str, str], object]] = {
    (row.phase, row.input, row.guard): row for row in INVOCATION.rows
}


def look_up(phase: str, input_: str, guard: str) -> object:
    """Do what a step must at least do."""
    return _OWN[phase, input_, guard]


def _each(function: Callable[[Any, Any, Any], object], keys: list[tuple[Any, Any, Any]]) -> None:
    for phase, input_, guard in keys:
        function(phase, input_, guard)


def _none(keys: list[tuple[Any, Any, Any]]) -> None:
    for _phase, _input, _guard in keys:
        pass


def measure(rounds: int) -> list[Line]:
    """Step through every row of the table; the loop around the calls is taken off."""
    keys: list[tuple[Any, Any, Any]] = list(_OWN) * PASSES
    samples = measured(
        rounds,
        {
            "step": timed(len(keys), partial(_each, step, keys)),
            "lookup": timed(len(keys), partial(_each, look_up, keys)),
            "loop": timed(len(keys), partial(_none, keys)),
            "trigger": trigger_work(WALKS),
            "guarded": guarded_trigger_work(WALKS),
            **{peer: event_work(peer, ROUNDS[peer]) for peer in PEERS if not missing(peer)},
        },
    )
    table = samples["step"].less(samples["loop"])
    lookup = samples["lookup"].less(samples["loop"])
    return [
        table.line("a step of the table", note=f"{len(_OWN)} rows, each in turn"),
        lookup.line("a dict lookup in a function", note="a dict of the same keys"),
        samples["trigger"].line("a bare transitions trigger", note="no conditions, no callbacks"),
        samples["guarded"].line("a guarded transitions trigger", note="generated from our rows"),
        *(_event(peer, samples) for peer in PEERS),
        table.over(lookup, "step / lookup", bound=1.1),
        table.over(samples["trigger"], "step / bare trigger"),
        *(
            table.over(samples[peer], f"step / bare {peer} event")
            for peer in PEERS
            if peer in samples
        ),
    ]


def _event(peer: str, samples: Mapping[str, Samples]) -> Line:
    name = f"a bare {peer} event"
    if peer not in samples:
        return skipped(name, missing(peer))
    return samples[peer].line(name, note=versions(peer))
