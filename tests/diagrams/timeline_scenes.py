"""Recordings that timelines are drawn of: a story with everything, an interrupt, and crowds."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from turnlock.cli.replay_options import settings_of
from turnlock.diagrams.recordings.recorder import Recorder, played
from turnlock.diagrams.recordings.recording import Recording
from turnlock.models.run import Run
from turnlock.verification.replay.host import replay_conversation
from turnlock.verification.replay.lines import Problems
from turnlock.verification.replay.recording import read_recording
from turnlock.verification.replay.tally import Tally

CORPUS = Path(__file__).resolve().parents[2] / "examples" / "corpus" / "turns.jsonl"
Raw = dict[str, Any]


def asked(invocation_id: str, tool: str, *, gated: bool = False, **fields: object) -> Raw:
    """A call as the wire writes it."""
    needed = {"invocation_id": invocation_id, "tool_name": tool, "requires_approval": gated}
    return {**needed, "arguments": {}, **fields}


def opens(at: float, turn_id: str, *calls: Raw, **fields: object) -> Raw:
    """An opening of a turn."""
    return {"type": "open_turn", "now": at, "turn_id": turn_id, "calls": [*calls], **fields}


def about(type_: str, at: float, invocation_id: str, **fields: object) -> Raw:
    """A delivery about an invocation of turn T1, its first attempt where it names one."""
    named = {"turn_id": "T1", "invocation_id": invocation_id}
    attempt = {"attempt": 1} if type_ in {"claim", "resolve"} else {}
    return {"type": type_, "now": at, **named, **attempt, **fields}


STORY: tuple[Raw, ...] = (
    opens(0, "T1", asked("a", "read"), asked("b", "rm", gated=True), sealed=False),
    about("claim", 0.5, "a", worker="w1", lease=3),
    {"type": "add_call", "now": 1, "turn_id": "T1", "call": asked("c", "search")},
    {
        "type": "add_call",
        "now": 1.5,
        "turn_id": "T1",
        "call": asked("d", "mail", gated=True, approval_timeout=8),
    },
    {"type": "seal_turn", "now": 2, "turn_id": "T1"},
    about("claim", 2.2, "c", worker="w2", lease=4),
    about("renew", 3, "a", lease=3),
    about("claim", 3.1, "b"),
    about("report", 6, "a", result="ok"),
    about("report", 6.1, "a", result="ok"),
    about("decide", 7, "b", approved=True),
    about("resolve", 8, "c", **{"as": "retry"}),
    about("claim", 8.6, "c", attempt=2, worker="w3", lease=30),
    about("claim", 9, "b", worker="w1"),
    {"type": "tick", "now": 9.6},
    about("report", 11, "c", result=[1]),
    about("report", 12, "b", error="protected"),
    about("report", 12.5, "c", result=[1]),
    {"type": "acknowledge", "now": 13, "turn_id": "T1"},
)

INTERRUPT: tuple[Raw, ...] = (
    opens(0, "T1", asked("a", "test"), asked("b", "deploy", gated=True), asked("c", "edit")),
    about("claim", 0.2, "a", worker="w1"),
    about("claim", 1, "c", worker="w2"),
    {"type": "interrupt", "now": 3, "turn_id": "T1", "reason": "stop", "grace": 2},
    about("report", 3.5, "a", result=0),
    about("decide", 4, "b", approved=True),
    {"type": "tick", "now": 5.2},
    opens(6, "T2", asked("a", "test"), asked("b", "deploy", gated=True)),
    about("claim", 6.5, "a", turn_id="T2"),
    about("lose", 7, "a", turn_id="T2"),
    {"type": "tick", "now": 8},
)


def recorded(script: tuple[Raw, ...] | Iterator[Raw], run_id: str = "r") -> Recording:
    """Play a script, and record it."""
    return played(Run(run_id=run_id), script)


def crowd(size: int, seed: int = 1) -> Iterator[Raw]:
    """A turn of many calls of few tools: 40 workers, some denied, failed, lost, or never ended."""
    rng = random.Random(seed)
    tools = ["read_file", "grep", "web_search", "run_tests", "write_file"]
    calls = [
        asked(f"c{place}", tools[min(4, int(rng.expovariate(0.8)))], gated=place % 7 == 0)
        for place in range(size)
    ]
    yield opens(0, "T1", *calls)
    ends: list[tuple[float, Raw]] = []
    for place in range(size):
        at, name = 1 + place / 100, f"c{place}"
        if place % 7 == 0:
            ends.append((at, about("decide", at, name, approved=rng.random() < 0.9)))
        ends.append((at, about("claim", at, name, worker=f"w{place % 40}")))
        later = at + rng.expovariate(2)
        if rng.random() < 0.01:
            ends.append((later, about("lose", later, name)))
        elif rng.random() < 0.03:
            ends.append((later, about("report", later, name, error="timeout")))
        elif rng.random() < 0.99:
            ends.append((later, about("report", later, name, result=place)))
    ends.sort(key=lambda end: end[0])
    yield from (delivery for _, delivery in ends)


def many_turns(number: int) -> Iterator[Raw]:
    """A run of many turns of two calls each, every tenth interrupted."""
    for place in range(number):
        at, turn_id = place * 5.0, f"T{place}"
        yield opens(at, turn_id, asked("a", "read"), asked("b", "grep"))
        for name in "ab":
            yield about("claim", at + 0.5, name, turn_id=turn_id)
        yield about("report", at + 1, "a", turn_id=turn_id, result=1)
        if place % 10 == 9:
            yield {"type": "interrupt", "now": at + 2, "turn_id": turn_id, "grace": 1}
        yield about("report", at + 2.5, "b", turn_id=turn_id, error="no")
        yield {"type": "acknowledge", "now": at + 3, "turn_id": turn_id}


def hostile_run(run_id: str) -> Recording:
    """A recorded conversation, replayed with a hostile delivery for each honest one."""
    runs = read_recording(str(CORPUS), Problems()).conversations
    conversation = next(run for run in runs if run.run_id == run_id)
    recorder = Recorder(Run(run_id=run_id))
    replay_conversation(
        conversation,
        settings_of(decisions="random", hostile=1, seed=0),
        Tally(),
        lambda delivery, verdict, now, _: recorder.observe(delivery, verdict, now),
    )
    return recorder.recording()
