"""`turnlock stdio`: the conformance suite of one slice, in process and over a real pipe.

In process: bytes in, bytes out; each step is looked up or read, received, written and encoded. Over
the pipe: client and server are two processes; scripts are sent in requests of 200, three of them on
their way, and receipts are decoded and checked. Wall time there, and the CPU time of either process
(the server's without its start).
"""

from __future__ import annotations

import io
import resource
from collections.abc import Callable
from functools import partial
from time import perf_counter, process_time
from typing import Any, Final

import msgspec
from timing import Line, Samples, Work, measured, timed

from turnlock.verification.alphabet.slices import SLICES
from turnlock.verification.conformance.suite import suite
from turnlock.verification.subjects.process import BATCH, ProcessDriver, own_command
from turnlock.wire.stdio import serve

SLICE: Final = "settlement"


def measure(rounds: int) -> list[Line]:
    """Play one slice's suite, in process and over a pipe."""
    part = next(part for part in SLICES if part.name == SLICE)
    scripts = [[step.delivery for step in test] for test in suite(part, k=0).tests()]
    steps = sum(map(len, scripts))
    lines = _requests(part.run, scripts)
    if _serve(lines).count(b'"accepted"') != steps:
        raise AssertionError(SLICE)

    in_process = measured(rounds, {"serve": timed(steps, partial(_serve, lines))})["serve"]
    works = {
        **{name: _over_a_pipe(part.run, scripts, clock) for name, clock in CLOCKS.items()},
        "start": _over_a_pipe(part.run, [], CLOCKS["server"]),
        "shared": _over_a_pipe(part.run, scripts, CLOCKS["wall"], processes=2),
    }
    piped = measured(max(1, rounds // 2), works)
    server = Samples(
        tuple(seconds / steps for seconds in piped["server"].less(piped["start"]).seconds)
    )
    client = Samples(tuple(seconds / steps for seconds in piped["client"].seconds))
    wall = Samples(tuple(seconds / steps for seconds in piped["wall"].seconds))
    shared = Samples(tuple(seconds / steps for seconds in piped["shared"].seconds))
    size = f"{len(scripts):,} scripts, {steps:,} steps, {len(lines) / steps:.0f} bytes a step"
    return [
        in_process.line("in process, a step", note=size),
        in_process.rate("in process, steps a second", "/s"),
        wall.rate("over a pipe, steps a second", "/s", note="wall time"),
        shared.rate("to two servers, steps a second", "/s", note="wall time"),
        client.rate("client alone, steps a second", "/s", note="encode, send, decode, check"),
        server.rate("server alone, steps a second", "/s"),
    ]


def _requests(run: dict[str, Any], scripts: list[Any]) -> bytes:
    batches = [scripts[at : at + BATCH] for at in range(0, len(scripts), BATCH)]
    encode = msgspec.json.encode
    return b"".join(
        encode({"id": number, "run": run, "scripts": batch}) + b"\n"
        for number, batch in enumerate(batches)
    )


def _serve(lines: bytes) -> bytes:
    sink = io.BytesIO()
    serve(io.BytesIO(lines), sink)
    return sink.getvalue()


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


CLOCKS: Final[dict[str, Callable[[], float]]] = {
    "wall": perf_counter,
    "client": process_time,
    "server": _children,
}


def _over_a_pipe(
    run: dict[str, Any], scripts: list[Any], clock: Callable[[], float], *, processes: int = 1
) -> Work:
    """Make a work that plays the scripts on a fresh process and returns the time by this clock.

    The server's time is known when it has ended; the others are taken while it runs.
    """

    def work() -> float:
        with ProcessDriver(own_command(), processes=processes) as driver:
            driver.play(run, scripts[: BATCH * processes])
            start = clock()
            driver.play(run, scripts)
            while_running = clock() - start
        return while_running or clock() - start

    return work
