"""Bytes that the kernel keeps: for a live invocation, a waiting one, and an idle run.

Traced by tracemalloc; everything that was delivered and all verdicts are gone when it is read. Each
delivery is built anew, as a host decodes it, so that ids, tool names and workers are counted as
often as they are kept. The arguments are the caller's own and are taken off.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from typing import Final

from timing import QUICK, Line
from turns import turn_of_three

from turnlock import Call, Claim, Decide, Kernel, OpenTurn, Run, Runs
from turnlock.models.values import Json, freeze

CALLS: Final = 1_000
RUNS: Final = 10_000
SETTLED_RUNS: Final = 1_000
QUICK_RUNS: Final = 100
TURNS: Final = 10
TURN: Final = "turn-1"


def _kept(build: Callable[[], object]) -> int:
    """Return the bytes that the result of `build` keeps alive, and nothing else."""
    gc.collect()
    before, _ = tracemalloc.get_traced_memory()
    kept = build()
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    del kept
    return after - before


def _text(kind: str, number: int) -> str:
    return f"{kind}-{number:06}"


def _arguments(number: int) -> dict[str, Json]:
    return {"account": _text("account", number), "amount": number + 1_000}


def _open(kernel: Kernel, *, timeout: float | None) -> None:
    calls = tuple(
        Call(
            invocation_id=_text("call", number),
            tool_name=_text("transfer", 0),
            arguments=_arguments(number),
            requires_approval=True,
            approval_timeout=timeout,
        )
        for number in range(CALLS)
    )
    kernel.receive(OpenTurn(turn_id=TURN, calls=calls), 0.0)


def live() -> Kernel:
    """Return a kernel with a turn of gated calls, all approved and running, with leases."""
    kernel = Kernel(Run(run_id="run"))
    _open(kernel, timeout=None)
    for number in range(CALLS):
        name, now = _text("call", number), 1.0 + number / 1_000
        kernel.receive(Decide(turn_id=TURN, invocation_id=name, approved=True), now)
        worker = _text("worker", number)
        claim = Claim(turn_id=TURN, invocation_id=name, attempt=1, worker=worker, lease=30.0)
        kernel.receive(claim, now)
    return kernel


def waiting() -> Kernel:
    """Return a kernel with a turn of calls that all wait for approval, with a deadline."""
    kernel = Kernel(Run(run_id="run"))
    _open(kernel, timeout=60.0)
    return kernel


def idle(count: int, *, turns: int) -> Runs:
    """Return a registry of runs that have each settled so many turns of three."""
    runs = Runs()
    for number in range(count):
        run_id = _text("run", number)
        runs.open(Run(run_id=run_id))
        for turn in range(turns):
            for delivery, now in turn_of_three(turn_id=_text("turn", turn)):
                runs.receive(run_id, delivery, turn * 10 + now)
    return runs


def measure(rounds: int) -> list[Line]:
    """Trace each once: bytes do not vary."""
    many, settled = (RUNS, SETTLED_RUNS) if rounds > QUICK else (QUICK_RUNS, QUICK_RUNS)
    tracemalloc.start()
    try:
        for build in (live, waiting, lambda: idle(1, turns=1)):
            _kept(build)  # what is cached at first use is not counted
        arguments = _kept(lambda: [freeze(_arguments(n), place="") for n in range(CALLS)])
        figures = [
            ((_kept(live) - arguments) / CALLS, "a live invocation", CALLS),
            ((_kept(waiting) - arguments) / CALLS, "a waiting invocation", CALLS),
            (_kept(lambda: idle(many, turns=0)) / many, "a fresh run in Runs", many),
            (
                _kept(lambda: idle(settled, turns=TURNS)) / settled,
                f"a run in Runs after {TURNS} settled turns of 3",
                settled,
            ),
        ]
    finally:
        tracemalloc.stop()
    notes = {
        "a live invocation": "gated, approved, claimed with worker and lease; beyond its arguments",
        "a waiting invocation": "gated, with a deadline; beyond its arguments",
    }
    return [
        Line(
            name=name,
            value=size,
            unit="bytes",
            bound=600 if name == "a live invocation" else None,
            note=notes.get(name, f"mean of {count:,}"),
        )
        for size, name, count in figures
    ]
