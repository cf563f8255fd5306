"""What is known of a thread whose process is dead (S-23, S-26, S-27, S-49, S-52)."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import pytest

from turnlock.adapters.codex.heard import Heard
from turnlock.adapters.codex.items import item_of
from turnlock.adapters.codex.process import name_of
from turnlock.adapters.codex.restoring import announced, evidence_in, listed_in, may_live
from turnlock.adapters.contract import Manifest, SessionSpec, Settlement
from turnlock.adapters.rest import NEVER, brought_to_rest
from turnlock.engine.kernel import Kernel
from turnlock.models.calls import Call
from turnlock.models.deliveries import Acknowledge, Claim, Lose, OpenTurn
from turnlock.models.effects import Execute
from turnlock.models.fact import Fact
from turnlock.models.facts import ToolExecutionFailed, ToolExecutionStarted
from turnlock.models.reasons import Reason
from turnlock.models.run import Run
from turnlock.models.values import Json
from turnlock.runtime.journal.ledger import Cursor, Domain, Note, Noted
from turnlock.views.call_view import CallView, Waits
from turnlock.views.live import calls_of

from ...runtime.crash.depth import DEEP
from .driving import Driven, Playing, lines, scenarios

THREAD = "T"
TURN = "u"


def manifest(settlement: Settlement = "turn", run_id: str = "r") -> Manifest:
    """A manifest whose process is dead."""
    epoch: Mapping[str, Json] = {"thread_id": THREAD, "settlement": settlement}
    return Manifest(spec=SessionSpec(run_id=run_id, kind="codex"), epoch=epoch)


def noted(*told: tuple[str, Mapping[str, Any]], turn_id: str = TURN) -> list[Noted]:
    """The observations of messages, before any fact."""
    found: list[Noted] = []
    for part, (method, params) in enumerate(told, 1):
        item = params.get("item")
        about = {"thread_id": THREAD, "turn_id": turn_id, "item_id": item["id"] if item else None}
        whole = {"threadId": THREAD, "turnId": turn_id, **params}
        note = Note(domain=Domain.ITEM, kind=method, body=whole, at=1.0, correlation=about)
        found.append(Noted(cursor=Cursor(0, part), note=note.sized("r")))
    return found


def command(item_id: str, text: str = "ls", **more: Any) -> dict[str, Any]:
    """The item of a command."""
    return {
        "item": {
            "type": "commandExecution",
            "id": item_id,
            "command": text,
            "cwd": "/w",
            "status": "inProgress",
            **more,
        }
    }


def names(notes: Sequence[Noted], facts: Sequence[Fact] = (), **more: Any) -> list[str]:
    """The calls that were announced and are no facts."""
    found = announced(manifest(**more), notes, facts)
    return [] if found is None else [call.invocation_id for call in found.calls]


def test_s_23_what_was_announced_and_added_by_nobody_is_found() -> None:
    """Commands that run and that do not, asked for or not; never what is said or thought."""
    said: dict[str, Any] = {"item": {"type": "userMessage", "id": "m", "content": []}}
    asked = {"itemId": "c2", "command": "rm", "cwd": "/w"}
    notes = noted(
        ("item/started", said),
        ("item/started", command("c1", processId="7")),
        ("item/started", command("c2", "rm")),
        ("item/commandExecution/requestApproval", asked),
        ("item/started", command("c3")),
        ("item/completed", command("c3", status="completed", exitCode=0)),
    )
    found = announced(manifest(), notes, [])
    assert found is not None
    assert found.turn_id == TURN
    assert [call.invocation_id for call in found.calls] == ["c1", "c2", "c3"]
    assert {call.requires_approval for call in found.calls} == {False}  # free: it may have run
    assert {call.observed for call in found.calls} == {True}
    assert found.calls[1].arguments == {"command": "rm", "cwd": "/w"}
    assert [call.provider_call_id for call in found.calls] == ["c1", "c2", "c3"]
    first = announced(manifest("response"), notes, [])
    assert first is not None
    assert first.turn_id == f"{TURN}#1"


def test_s_23_what_is_ours_to_execute_has_not_begun() -> None:
    """A question to the user, a tool of ours: without a claim of ours nothing of it ran."""
    question: dict[str, Any] = {"itemId": "q", "questions": []}
    assert names(noted(("item/tool/requestUserInput", question))) == []


def test_s_23_only_the_last_turn_counts() -> None:
    """What was told of a turn before is a fact, or was lost with its process long ago."""
    before = noted(("item/started", command("c1")), turn_id="u0")
    after = noted(("turn/plan/updated", {}))
    assert names(before) == ["c1"]
    assert names([*before, *after]) == []
    assert names([]) == []


def test_s_61_what_was_announced_by_a_message_that_was_cut_is_found() -> None:
    """Its id stands in the correlation; a long prompt is no execution."""
    long = "x" * 100_000
    content = [{"type": "text", "text": f'{long} "command": '}]
    notes = noted(
        ("item/started", command("c1", long)),
        ("item/started", {"item": {"type": "userMessage", "id": "m", "content": content}}),
    )
    assert all("truncated" in it.note.body for it in notes)
    assert names(notes) == ["c1"]


class Kept(Driven):
    """One thread, whose ledger is cut before and after what each message brings is judged."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.ledger: list[Noted] = []
        self.cuts: list[tuple[int, int]] = []
        self.part = 0

    def hear(self, heard: Heard) -> None:
        for note in heard.observations:
            self.part += 1
            cursor = Cursor(self.kernel.sequence, self.part)
            self.ledger.append(Noted(cursor=cursor, note=note.sized(self.thread)))
        self.cuts.append((len(self.ledger), len(self.facts)))
        super().hear(heard)
        self.cuts.append((len(self.ledger), len(self.facts)))


@attrs.define
class Keeping(Playing):
    """Plays a transcript, and keeps it."""

    driven: type[Driven] = Kept


def kept(name: str) -> Iterator[Kept]:
    """The threads of a transcript."""
    playing = Keeping()
    for line in lines(name):
        if line.direction == "meta" and line.message.get("event") == "stdout_eof":
            break  # what follows is another process's
        playing.line(line)
    for driven in playing.threads.values():
        assert isinstance(driven, Kept)
        yield driven


def rested(thread: Kept, notes: Sequence[Noted], facts: Sequence[Fact], *, at: float) -> Kernel:
    """Bring a thread to rest that is kept so; hold section 14 against it.

    What a grace has ended meanwhile is late, and as it should be.
    """
    of = manifest(thread.settlement, thread.thread)
    kernel = Kernel.recover(Run(run_id=thread.thread), facts)
    after = list(facts)
    for _ in range(2):
        found = announced(of, notes, after)
        for delivery in brought_to_rest(kernel, worker="w", announced=found):
            verdict = kernel.receive(delivery, at)
            assert verdict.accepted or verdict.reason is Reason.LATE, (delivery, verdict)
            assert verdict.accepted or at == LATER
            after += verdict.facts
        for owed in kernel.continuations:
            after += kernel.receive(Acknowledge(turn_id=owed.turn_id), at).facts
    assert not [effect for effect in kernel.pending_effects if isinstance(effect, Execute)]
    assert {call.waits for call in calls_of(kernel)} <= {Waits.RESOLUTION}
    assert announced(of, notes, after) is None or kernel.turn is not None
    started = {it.invocation_id for it in after if isinstance(it, ToolExecutionStarted)}
    for fact in after:
        if isinstance(fact, ToolExecutionFailed) and fact.error == NEVER:
            assert fact.invocation_id not in started
    return kernel


STRIDE = 1 if DEEP else 11
LATER = 1e9
"""A time at which each grace is over."""


@pytest.mark.parametrize("name", scenarios())
def test_s_52_killed_at_any_write_a_recorded_thread_is_brought_to_rest(name: str) -> None:
    """Section 14: nothing STARTED, no execute owed; all that was announced is in the journal."""
    for number, thread in enumerate(kept(name)):
        for notes_kept, facts_kept in thread.cuts[number % STRIDE :: STRIDE]:
            notes, facts = thread.ledger[:notes_kept], thread.facts[:facts_kept]
            kernel = rested(thread, notes, facts, at=thread.now)
            rested(thread, notes, facts, at=LATER)
            there = {call.provider_call_id for call in calls_of(kernel)}
            for it in started_in(notes):
                assert it in there or any(it in str(fact) for fact in facts), it


def test_s_23_the_sweep_sees_what_would_be_lost_without_it() -> None:
    """The negative control: cuts at which something was only announced, and one lacks it."""
    lost = 0
    for name in ("02_cmd_accept", "05_parallel_mixed", "raw_parallel_mixed"):
        if name not in scenarios():
            continue
        for thread in kept(name):
            for notes_kept, facts_kept in thread.cuts:
                notes, facts = thread.ledger[:notes_kept], thread.facts[:facts_kept]
                there = str(facts)
                lost += any(it not in there for it in started_in(notes))
                assert bool(announced(manifest(thread.settlement), notes, facts)) >= any(
                    it not in there for it in started_in(notes)
                )
    assert lost > 3


def started_in(notes: Iterable[Noted]) -> set[str]:
    """The commands of the last upstream turn that were announced: an oracle without instances."""
    found: dict[str, str] = {}
    for it in notes:
        item = item_of(it.note.body) if it.note.kind == "item/started" else None
        if item is not None and item.kind != "dynamicToolCall":  # which we would have executed
            found[item.id] = str((it.note.correlation or {}).get("turn_id"))
    turns = [str(turn) for it in notes if (turn := (it.note.correlation or {}).get("turn_id"))]
    return {item for item, turn in found.items() if turn == turns[-1]}


def doubt(item_id: str = "c1", *, turn_id: str = f"{TURN}#2", text: str = "ls") -> CallView:
    """A call in doubt."""
    kernel = Kernel(Run(run_id="r"))
    call = Call(
        invocation_id=item_id,
        tool_name="command",
        arguments={"command": text, "cwd": "/w"},
        requires_approval=False,
        observed=True,
        provider_call_id=item_id,
    )
    for delivery in (
        OpenTurn(turn_id=turn_id, calls=(call,)),
        Claim(turn_id=turn_id, invocation_id=item_id, attempt=1, worker="w"),
        Lose(turn_id=turn_id, invocation_id=item_id, attempt=1),
    ):
        kernel.receive(delivery, 1.0)
    (view,) = calls_of(kernel)
    return view


def thread_with(*items: Mapping[str, Any], turn_id: str = TURN) -> dict[str, Any]:
    """What `thread/read` answers."""
    return {"thread": {"id": THREAD, "turns": [{"id": turn_id, "items": list(items)}]}}


def pages(*items: Mapping[str, Any]) -> list[object]:
    """What `thread/items/list` answers."""
    listed: list[object] = [{"turnId": TURN, "item": item} for item in items]
    assert listed == [*listed_in(thread_with(*items))]
    return listed


def ended(item_id: str = "c1", text: str = "ls", **more: Any) -> dict[str, Any]:
    """An item that has ended."""
    whole = {"status": "completed", "exitCode": 0, "aggregatedOutput": "a\n", **more}
    item: dict[str, Any] = command(item_id, text, **whole)["item"]
    return item


def test_s_27_an_item_with_an_end_is_a_true_late_report() -> None:
    """Of its outcome as if it had been heard; of a failure, and of what was declined."""
    (report,) = evidence_in(pages(ended(), ended("c2")), [doubt()])
    assert (report.turn_id, report.invocation_id, report.attempt) == (f"{TURN}#2", "c1", 1)
    assert report.result == {"exit_code": 0, "output": "a\n"}
    (report,) = evidence_in(pages(ended(status="failed", exitCode=2)), [doubt()])
    assert report.error == "exit code 2: a\n"
    (report,) = evidence_in(pages(ended(status="declined")), [doubt()])
    assert report.error is not None
    assert "declined" in report.error


@pytest.mark.parametrize(
    "thread",
    [
        {},
        {"thread": {"turns": None}},
        {"turns": [None, {"id": 3, "items": [ended()]}, {"id": TURN, "items": [None, {"id": 1}]}]},
        thread_with(),
        thread_with(ended("c2")),
        thread_with(ended(status="inProgress")),
        thread_with(ended(status=None)),
        thread_with(ended(), ended()),
        thread_with(ended(), turn_id="another"),
        thread_with(ended(text="rm")),
    ],
)
def test_s_27_what_is_missing_or_not_surely_the_call_proves_nothing(thread: Any) -> None:
    """Not there, without an end, used twice, of another turn, another command, or senseless."""
    assert evidence_in(listed_in(thread), [doubt()]) == ()


def test_s_49_a_process_is_dead_once_that_is_proved() -> None:
    """A living one is not; nor one of another machine, nor what is no name. Its end is awaited."""

    async def play() -> None:
        sleeping = [sys.executable, "-c", "input()"]
        with subprocess.Popen(sleeping, stdin=subprocess.PIPE) as living:  # noqa: ASYNC220
            name = str(name_of(living.pid))
            assert await may_live({"process": name}, within=0.0) is not None
            assert await may_live({"process": str(name_of(os.getpid()))}, within=0.0) is not None
            asking = asyncio.create_task(may_live({"process": name}, within=30.0))
            await asyncio.sleep(0)
            living.kill()
            assert await asking is None
        elsewhere = name.replace("codex/", "codex/another-", 1)
        for epoch in ({}, {"process": 7}, {"process": "w/1"}, {"process": elsewhere}):
            why = await may_live(epoch, within=0.0)
            assert why is not None
            assert str(living.pid) not in why  # F-6

    asyncio.run(play())
