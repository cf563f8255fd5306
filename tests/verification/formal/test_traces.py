"""Trace validation: journals of real runs are behaviours of the hand-written specification."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from turnlock import Call, Fact, Interrupt, Run, Scope
from turnlock.models.codec import fact_from_json, write
from turnlock.models.run import Limits
from turnlock.runtime import MemoryJournal, Runtime, Toolbox, tool
from turnlock.verification.exports.checkers import ToolMissing
from turnlock.verification.formal import validate as validation
from turnlock.verification.formal.scope import text_of
from turnlock.verification.formal.trace import Trace, module
from turnlock.verification.formal.validate import (
    Journal,
    Judged,
    Unreadable,
    first_refused,
    read_journals,
    validate,
)
from turnlock.verification.traces.log import check

from ..traces.recorded import journals
from .recorded_runs import HARMS, Commit, journal, log, numbered

ROOT = Path(__file__).resolve().parents[3]
WRITTEN_BEFORE = ROOT / "tests/data/journals/0.1/facts.jsonl"
DEEP = os.environ.get("TURNLOCK_FORMAL") == "deep"
JOURNALS = 400 if DEEP else 48
STEPS = 60
RUN = Run(run_id="r")


def judged(found: list[Journal], workdir: Path) -> list[Judged]:
    """What the real TLC says; the test is skipped, with the reason, where it is not here."""
    try:
        return validate(found, workdir)
    except ToolMissing as missing:
        pytest.skip(f"not checked: {missing}")


def as_read(run: Run, facts: list[Fact]) -> Journal:
    return Journal(run=run, facts=tuple(facts), lines=tuple(range(1, len(facts) + 1)))


async def lived() -> list[Fact]:
    """The facts of a runtime with real clocks: approvals, a grant, failures, an interrupt."""

    @tool
    async def works() -> str:
        return "done"

    @tool
    async def breaks() -> str:
        raise ValueError("it broke")

    @tool
    async def hangs() -> None:
        await asyncio.sleep(60)

    told = asyncio.Semaphore(0)

    async def on_continue(_: object) -> None:
        told.release()

    def call(name: str, tool_name: str, *, gated: bool = False, **more: Any) -> Call:
        return Call(
            invocation_id=name, tool_name=tool_name, arguments={}, requires_approval=gated, **more
        )

    kept = MemoryJournal()
    toolbox = Toolbox.of(works, breaks, hangs)
    async with Runtime(journal=kept, tools=toolbox, on_continue=on_continue) as host:
        await host.open_run(RUN)
        asked = [
            *(call("a", "works", gated=True), call("b", "works", gated=True), call("c", "breaks")),
            call("late", "breaks", gated=True, approval_timeout=0.0),
        ]
        await host.open_turn("r", asked, turn_id="t1")
        await host.approve("r", turn_id="t1", invocation_id="a", scope=Scope.TURN)
        await asyncio.wait_for(told.acquire(), 30)
        await host.open_turn("r", [call("a", "works"), call("d", "hangs")], turn_id="t2")
        await asyncio.sleep(0.05)
        await host.deliver("r", Interrupt(turn_id="t2", grace=0.01))
        await asyncio.sleep(0.1)
        await host.open_turn("r", [call("a", "works")], turn_id="t3")
        await asyncio.wait_for(told.acquire(), 30)
    return [fact async for fact in kept.facts("r")]


def test_real_runs_are_behaviours(tmp_path: Path) -> None:
    """What the runtime writes, what an older version wrote, what replayed recordings write."""
    by_the_runtime = asyncio.run(lived())
    before = [fact_from_json(line) for line in WRITTEN_BEFORE.read_bytes().splitlines()]
    found = [
        as_read(RUN, by_the_runtime),
        as_read(Run(run_id="story"), before),
        *(as_read(Run(run_id=run_id), facts) for run_id, facts in journals().items()),
    ]

    verdicts = judged(found, tmp_path)

    assert [it.fact for it in verdicts if not it.behaviour] == []
    assert sum(it.told for it in verdicts) == sum(len(it.facts) for it in found) > 500
    told = {fact.type for fact in by_the_runtime}
    assert {"GRANT_ISSUED", "TURN_INTERRUPTED", "TURN_SETTLED", "TOOL_DENIED"} <= told


def test_the_verdict_is_that_of_check(tmp_path: Path) -> None:
    """Of random journals, whole and harmed: the same are refused, at the same line.

    `turnlock check` asks the kernel's own steps, TLC the hand-written text. Numbers are made right
    again in most, so that they do not give away what else is wrong.
    """
    rng = random.Random(12)
    logs: list[list[bytes]] = []
    while len(logs) < JOURNALS:
        run, commits = journal(rng, STEPS, rng.randrange(7) if DEEP else rng.choice((0, 3)))
        if commits:
            logs.append(log(run, harmed(rng, commits)))
    read = [read_journals(lines) for lines in logs]

    verdicts = iter(judged([it for found, _ in read for it in found], tmp_path))

    said = [first_refused([next(verdicts) for _ in found], broken) for found, broken in read]
    expected = [None if (it := check(lines).broken) is None else it.line for lines in logs]
    assert said == expected
    assert JOURNALS // 2 < sum(line is not None for line in expected) < JOURNALS


def harmed(rng: random.Random, commits: list[Commit]) -> list[Commit]:
    harm = rng.choice((None, *HARMS))
    if harm is None:
        return commits
    told = harm(rng, commits)
    return numbered(told) if rng.random() < 0.7 else told


def test_a_wrong_specification_says_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: where a claim needs no approval, a journal without one is believed."""
    call: dict[str, Any] = {"invocation_id": "a", "tool_name": "ls", "arguments": {}}
    lines: list[dict[str, Any]] = [
        {"type": "TURN_OPENED", "input": "open_turn", "epoch": 1, "sealed": True,
         "calls": [{**call, "requires_approval": True}], "commit": 2},
        {"type": "TOOL_APPROVAL_REQUESTED", "input": "open_turn", **call, "commit": 2,
         "arguments_digest": "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"},
        {"type": "TOOL_EXECUTION_STARTED", "input": "claim", **call, "attempt": 1, "commit": 3},
    ]  # fmt: skip
    for number, line in enumerate(lines, start=1):
        line.update(version=1, run_id="r", turn_id="T", sequence=number, at=0.0)
    found, _ = read_journals([json.dumps(line).encode() + b"\n" for line in lines])

    (right,) = judged(found, tmp_path / "right")
    gate = '"RETRY_AUTHORISED"} /\\ ~Waiting(c)'

    def planted(name: str) -> str:
        text = text_of(name)
        assert name != "turnlock.tla" or text.count(gate) == 1
        return text.replace(gate, '"RETRY_AUTHORISED"}')

    monkeypatch.setattr(validation, "text_of", planted)
    (wrong,) = judged(found, tmp_path / "wrong")

    assert (right.told, right.behaviour, right.line) == (2, False, 3)
    assert wrong.behaviour


# ------------------------------------------------------------------------------
# What needs no Java: reading and writing.


def test_a_trace_keeps_only_what_rules_compare() -> None:
    """Times in their order, the ends of timeouts among them; odd texts as numbers."""
    call = Call(
        invocation_id='a"é', tool_name="ls", arguments={"n": 1}, requires_approval=True,
        approval_timeout=2.5,
    )  # fmt: skip
    opened = fact_from_json(
        json.dumps(
            {
                "version": 1, "type": "TURN_OPENED", "run_id": "r", "sequence": 1, "commit": 1,
                "at": 1.7e9 + 0.123, "turn_id": "T", "epoch": 1, "sealed": False,
                "calls": [write(call)],
            }
        )
    )  # fmt: skip
    trace = Trace(Run(run_id="r", limits=Limits(remember_for=1.0)), [opened])

    text = module([trace])

    assert 'id |-> "#0"' in text
    assert 'arguments |-> "#1"' in text
    assert "timeout |-> 1]" in text
    assert "at |-> 1," in text
    assert "Gone == <<<<1, 2>>>>" in text
    assert text.isascii()


def test_a_line_that_is_no_fact_is_told() -> None:
    """Reading ends there; what stands before is judged."""
    lines = [line + b"\n" for line in WRITTEN_BEFORE.read_bytes().splitlines()[:3]]

    found, unreadable = read_journals([*lines, b'{"version": 1, "type": "NO_SUCH_FACT"}\n'])

    assert [len(it.facts) for it in found] == [3]
    assert unreadable is not None
    assert unreadable.line == 4
    assert first_refused([Judged(journal=found[0], told=3)], unreadable) == 4
    assert first_refused([Judged(journal=found[0], told=1)], Unreadable(line=4, cause="")) == 2
    assert first_refused([Judged(journal=found[0], told=3)], None) is None


def traces(path: Path, *args: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "tools" / "check_traces.py", *args],
        env={**os.environ, "PATH": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_java_it_is_not_done(tmp_path: Path) -> None:
    """Never green: the missing tool is named, and the status is one of its own."""
    done = traces(tmp_path, WRITTEN_BEFORE)

    assert done.returncode == 6, done.stderr
    assert "java is missing" in done.stdout
    assert done.stdout.endswith("NOT DONE\n")


def test_a_log_that_is_not_there_is_wrong_usage(tmp_path: Path) -> None:
    done = traces(tmp_path, tmp_path / "nowhere.jsonl")

    assert done.returncode == 2
    assert "nowhere.jsonl" in done.stderr
