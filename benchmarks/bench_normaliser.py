"""A message of `codex app-server`: from its line of JSON to what a run is told.

All recorded transcripts are played as their processes spoke: each line is read and taken by the
normaliser of its thread, and what became a fact of it is learnt, with every request allowed. The
kernel judges beforehand and is not timed.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Literal, TypeAlias

import attrs
from timing import Line, measured, timed

from turnlock.adapters.codex.messages import Asked, Notified, read
from turnlock.adapters.codex.normaliser import Normaliser, thread_of
from turnlock.engine.kernel import Kernel
from turnlock.models.deliveries import Acknowledge, Decide, Delivery
from turnlock.models.fact import Fact
from turnlock.models.run import Run
from turnlock.views.live import calls_of

DATA: Final = Path(__file__).parents[1] / "tests" / "data" / "codex"
BOUND: Final = 50.0
"""Microseconds that a message may cost: 20,000 a second on one core."""
Step: TypeAlias = bytes | Sequence[Fact]
"""A line that is read and taken, or facts that are learnt."""


@attrs.define
class Thread:
    """One thread of one process, and all that its normaliser is told."""

    thread_id: str
    settlement: Literal["response", "turn"]
    steps: list[Step] = attrs.field(factory=list[Step])

    def normaliser(self) -> Normaliser:
        """Return a fresh one."""
        return Normaliser(
            run_id=self.thread_id,
            thread_id=self.thread_id,
            settlement=self.settlement,
            worker="w",
        )


def measure(rounds: int) -> list[Line]:
    """Measure the lines alone, and all that is done with them."""
    threads = [it for path in sorted(DATA.glob("*.jsonl.gz")) for it in _threads(path)]
    lines = [it for thread in threads for it in thread.steps if isinstance(it, bytes)]
    longest = sorted(lines, key=len)[-len(lines) // 10 :]
    samples = measured(
        rounds,
        {
            "read": timed(len(lines), partial(_read, lines)),
            "longest": timed(len(longest), partial(_read, longest)),
            "told": timed(len(lines), partial(_tell, threads)),
        },
    )
    told = samples["told"]
    return [
        samples["read"].line("read a line", note=f"{len(lines):,} lines"),
        samples["longest"].line("read a line, the longest tenth"),
        told.line("read and told, facts learnt", bound=BOUND),
        told.rate("messages a second", "1/s", note="on one core, JSON included"),
    ]


def _read(lines: list[bytes]) -> None:
    for line in lines:
        read(line)


def _tell(threads: list[Thread]) -> None:
    for thread in threads:
        normaliser = thread.normaliser()
        for step in thread.steps:
            if isinstance(step, bytes):
                message = read(step)
                if isinstance(message, Notified | Asked):
                    normaliser.take(message, at=1.0)
            else:
                normaliser.learn(step, at=1.0)


def _threads(path: Path) -> Iterator[Thread]:
    """Play one transcript, and yield what each thread of each process was told."""
    raw = False
    playing: dict[tuple[int, str], tuple[Thread, Normaliser, Kernel]] = {}
    for told in map(json.loads, gzip.decompress(path.read_bytes()).decode().splitlines()):
        message = told["msg"]
        if told["dir"] == "c2s" and message.get("method") == "thread/start":
            raw = bool(message["params"].get("experimentalRawEvents"))
        if told["dir"] != "s2c":
            continue
        line = json.dumps(message).encode()
        heard = read(line)
        thread_id = thread_of(heard) if isinstance(heard, Notified | Asked) else None
        if thread_id is None or not isinstance(heard, Notified | Asked):
            continue
        key = told["proc"], thread_id
        if key not in playing:
            thread = Thread(thread_id, "response" if raw else "turn")
            playing[key] = thread, thread.normaliser(), Kernel(Run(run_id=thread_id))
        thread, normaliser, kernel = playing[key]
        thread.steps.append(line)
        facts = _judged(kernel, normaliser.take(heard, at=1.0).deliveries)
        while facts:
            thread.steps.append(facts)
            learnt = normaliser.learn(facts, at=1.0)
            facts = _judged(kernel, [*learnt.deliveries, *(it.claim for it in learnt.permits)])
    yield from (thread for thread, _, _ in playing.values())


def _judged(kernel: Kernel, deliveries: Sequence[Delivery]) -> list[Fact]:
    """Have deliveries judged, all requests allowed, and continuations taken."""
    facts: list[Fact] = []
    for delivery in deliveries:
        facts += kernel.receive(delivery, 1.0).facts
    for call in tuple(calls_of(kernel, gated=True)):
        allowed = Decide(turn_id=call.turn_id, invocation_id=call.invocation_id, approved=True)
        facts += kernel.receive(allowed, 1.0).facts
    for owed in kernel.continuations:
        facts += kernel.receive(Acknowledge(turn_id=owed.turn_id), 1.0).facts
    return facts
