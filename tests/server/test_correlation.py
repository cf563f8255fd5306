"""What the facts of another runtime's runs are about there: S-63, S-65, UC-011."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

import pytest

from turnlock import Call, Claim, Interrupt, OpenTurn, Report, Run
from turnlock.adapters.correlation import (
    Completeness,
    Correlation,
    correlate_of,
    correlated_with,
    thread_in,
)
from turnlock.models.deliveries import AddCall, Decide, Resolution, Resolve, Scope
from turnlock.models.facts import ToolExecutionSucceeded, TurnSealed
from turnlock.runtime.dispatcher import Continuation
from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.ledger import START, Domain, LedgerEntry
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.recovery import recover
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.settings import Settings
from turnlock.runtime.submitting import submit
from turnlock.server.hub import Hub
from turnlock.server.pages import page_of
from turnlock.server.performed import Performers
from turnlock.server.shown import Sent

from ..runtime.faulty_journal import Fault, FaultyJournal
from ..runtime.virtual import LoopClock, run
from .peers import Served, serve, serving, spec
from .scripted import KIND, ScriptedAdapter

THREAD = "thread/r"


async def told(journal: Journal, run_id: str = "r") -> list[tuple[Mapping[str, Any], Any]]:
    """The facts of a run, each with its correlation."""
    page = await journal.ledger(run_id, limit=1_000)
    return [(json.loads(it.content), about(it)) for it in page.entries if it.domain is None]


def about(entry: LedgerEntry) -> Any:
    return None if entry.correlation is None else json.loads(entry.correlation)


async def created(it: Served, scripted: ScriptedAdapter) -> None:
    """A run, and a turn upstream."""
    await it.sessions.create(spec(kind=KIND), prompt="go", message_id="m")
    await it.until(lambda: bool(scripted.told("took")))


async def played(it: Served, scripted: ScriptedAdapter) -> None:
    """One call is agreed to for the session, one runs free, and one is denied."""
    session = scripted.sessions["r"]
    await session.asks_for("c1", rm=1)
    runtime = it.sessions.runtime_of("r")
    assert runtime is not None
    (call,) = it.pending()
    agreed = Decide(
        run_id="r",
        turn_id=call.turn_id,
        invocation_id="c1",
        approved=True,
        scope=Scope.SESSION,
        arguments_digest=call.arguments_digest,
    )
    await runtime.deliver("r", agreed)
    await it.until(lambda: bool(scripted.told("accept")))
    await session.runs("c2")
    await session.ends("c1")
    await session.asks_for("c3")
    await runtime.deny("r", turn_id=call.turn_id, invocation_id="c3", reason="no")


def check(facts: list[tuple[Mapping[str, Any], Any]]) -> set[str]:
    """Hold against S-63; return the kinds of facts that were seen."""
    for fact, correlation in facts:
        assert correlation is not None, fact
        whole = Correlation.of(correlation)  # S-65: it is one
        assert whole.thread_id == THREAD
        turn_id = fact.get("turn_id")
        assert whole.turn_id == turn_id, fact
        item = fact.get("invocation_id") or fact.get("call", {}).get("invocation_id")
        assert whole.item_id == item, fact
        asked = fact["type"] in {"TOOL_APPROVAL_REQUESTED", "TOOL_APPROVED", "TOOL_DENIED"}
        assert whole.approval_id == (item if asked else None)
        assert (whole.completeness is Completeness.COMPLETE) is (turn_id is not None)
    return {str(fact["type"]) for fact, _ in facts}


SEEN = {
    "TURN_OPENED", "CALL_ADDED", "TOOL_APPROVED", "GRANT_ISSUED", "TOOL_DENIED",
    "TOOL_EXECUTION_STARTED", "EXECUTION_IN_DOUBT", "TOOL_EXECUTION_FAILED",
    "TURN_SEALED", "TURN_SETTLED",
}  # fmt: skip


def test_s_63_uc_011_facts_of_another_runtime_say_thread_turn_item_and_approval() -> None:
    """Live, replayed and from a page the same bytes; after a restart, and of who owns nothing."""

    async def play() -> None:
        journal, scripted = MemoryJournal(), ScriptedAdapter()
        live: list[bytes] = []
        async with Hub(journal=journal) as hub:
            killed = await serve(journal, others=[scripted])
            await created(killed, scripted)
            following = asyncio.create_task(follow(hub, live))
            await played(killed, scripted)
            await killed.kill()
            before = len(await told(journal))
            async with serving(journal, others=[scripted]) as it:
                await it.sessions.restore("r")  # what is brought to rest is of the same thread
            assert len(await told(journal)) > before
            resolution = Resolve(
                run_id="r", turn_id="u1.1", invocation_id="c2", attempt=1,
                resolution=Resolution.ERROR, error="nobody knows",
            )  # fmt: skip
            submitted = await submit(  # and nobody performs it
                journal, "r", resolution, within=1.0, correlating=correlate_of
            )
            assert (submitted.receipt["accepted"], submitted.by_owner) == (True, False)
            facts = await told(journal)
            assert check(facts) >= SEEN

            paged = await page_of(journal, "r", after=START, limit=1_000)
            lines = [it.envelope for it in paged.shown if isinstance(it, Sent)]
            replayed: list[bytes] = []
            again = asyncio.create_task(follow(hub, replayed))
            while min(len(live), len(replayed)) < len(lines):  # noqa: ASYNC110 - two streams
                await asyncio.sleep(0.25)
            assert live == replayed == lines
            envelopes = [json.loads(line) for line in lines]
            assert [
                (one["fact"], one["correlation"]) for one in envelopes if "fact" in one
            ] == facts
            for task in (following, again):
                task.cancel()
            await asyncio.gather(following, again, return_exceptions=True)

    run(play())


async def follow(hub: Hub, found: list[bytes]) -> None:
    """Put the envelopes of a run into a list."""
    async with aclosing(hub.subscribe("r", after=START)) as subscription:
        async for batch in subscription:
            found += [it.envelope for it in batch if isinstance(it, Sent)]


def test_s_63_facts_of_our_own_runs_have_none() -> None:
    """Their correlation is null; so is that of a run that has no thread yet."""

    async def play() -> None:
        journal, scripted = MemoryJournal(), ScriptedAdapter()
        async with serving(journal, others=[scripted]) as it:
            await it.sessions.create(spec(), prompt="look", message_id="m")
            await it.idle()
            assert {correlation for _, correlation in await told(journal)} == {None}
            assert await correlate_of(Run(run_id="r"), journal) is None
            assert await correlate_of(Run(run_id="r", kind=KIND), journal) is None
            await it.sessions.create(spec("s", kind=KIND))
            named = await correlate_of(Run(run_id="s", kind=KIND), journal)
            assert named is not None
            assert thread_in(await journal.notes("s", domain=Domain.SESSION)) == "thread/s"

    run(play())


def test_s_63_which_item_a_fact_is_about_survives_what_was_not_kept() -> None:
    """Whatever the journal failed at: each fact names the item of the call that was kept."""

    async def play() -> None:
        for fault in (Fault.LOST, Fault.UNACKNOWLEDGED):
            for failing in range(1, 6):
                journal = MemoryJournal()
                plan = {("append", failing): fault, ("append", failing + 1): fault}
                await told_again(FaultyJournal(journal, plan))
                facts = await told(journal)
                items = {
                    call["invocation_id"]: call["provider_call_id"]
                    for fact, _ in facts
                    for call in [*fact.get("calls", []), fact.get("call")]
                    if call is not None
                }
                assert items == {"a": "item-a", "b": "item-b"}
                for fact, correlation in facts:
                    named = fact.get("invocation_id") or fact.get("call", {}).get("invocation_id")
                    assert correlation["item_id"] == items.get(named)

    run(play())


async def told_again(journal: Journal) -> None:
    """Two calls are added, run, and end; what the journal fails at is delivered again."""
    correlate = correlated_with(THREAD)
    settings = Settings(takes_over=False)
    async with Runtime(
        journal=journal,
        on_continue=taken,
        kind=KIND,
        performer=Performers(lost=lambda _: None),
        correlate=correlate,
        settings=settings,
        clock=LoopClock(),
    ) as runtime:
        await runtime.open_run(Run(run_id="r", kind=KIND))
        claims = [Claim(turn_id="t", invocation_id=it, attempt=1, worker="w") for it in "ab"]
        for delivery in (
            OpenTurn(turn_id="t", calls=(call("a"),), sealed=False),
            AddCall(turn_id="t", call=call("b")),
            *claims,
            Report(turn_id="t", invocation_id="a", result=1),
            Interrupt(turn_id="t", grace=0.0),
        ):
            while True:
                try:
                    await runtime.deliver("r", delivery)
                    break
                except JournalError:
                    continue


def call(name: str) -> Call:
    return Call(
        invocation_id=name,
        tool_name="command",
        arguments={},
        requires_approval=False,
        observed=True,
        provider_call_id=f"item-{name}",
    )


async def taken(_: Continuation) -> None:
    """Take a continuation."""


@pytest.mark.parametrize(
    ("turn_id", "call_id", "whole"),
    [
        ("u#3", "i", ("u", "i", True)),
        ("u", None, ("u", None, False)),
        ("#1", "", (None, None, False)),
    ],
)
def test_s_63_a_correlation_is_made_of_thread_turn_and_item(
    turn_id: str, call_id: str | None, whole: tuple[str | None, str | None, bool]
) -> None:
    """The turn is what stands before the sign; what is not known makes it partial."""
    fact = ToolExecutionSucceeded(
        run_id="r", sequence=1, commit=1, at=1.0, turn_id=turn_id, invocation_id="x",
        tool_name="command", result=None,
    )  # fmt: skip
    made = Correlation.of_fact(fact, thread_id="T", call_id=call_id)
    assert (made.turn_id, made.item_id, made.completeness is Completeness.COMPLETE) == whole
    assert json.loads(made.line()) == made.body()
    of_turn = TurnSealed(run_id="r", sequence=1, commit=1, at=1.0, turn_id=turn_id)
    assert Correlation.of_fact(of_turn, thread_id="T", call_id=call_id).item_id is None


def test_s_63_what_a_person_decides_about_a_run_that_lost_its_tail_is_correlated() -> None:
    """`turnlock recover`: what may have run is in doubt, and of which item that is."""

    async def play() -> None:
        journal, scripted = MemoryJournal(), ScriptedAdapter()
        killed = await serve(journal, others=[scripted])
        await created(killed, scripted)
        await scripted.sessions["r"].runs("c1")
        await killed.kill()
        before = len(await told(journal))
        await journal.mark_rewound("r", why="an older copy was put in its place")
        recovered = await recover(
            journal=journal, run_id="r", clock=LoopClock(), correlating=correlate_of
        )
        assert [it.invocation_id for it in recovered.doubted] == ["c1"]
        facts = await told(journal)
        assert check(facts[before:]) == {"EXECUTION_IN_DOUBT"}

    run(play())
