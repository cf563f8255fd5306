"""A call is run by whoever claimed it, once; what ended is replayed, what is in doubt is not."""

from __future__ import annotations

import asyncio

import pytest

from turnlock import FactType
from turnlock.guards.engine import Held
from turnlock.guards.errors import Differs, InDoubt, NotApproved, Stale, StillRunning
from turnlock.guards.values import At, Outcome
from turnlock.lifecycle.phases import Phase
from turnlock.models.calls import Status
from turnlock.models.values import arguments_digest
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.tools.policy import Policy

from ..runtime.faulty_journal import FaultyJournal
from ..runtime.virtual import run
from .engines import (
    GATED,
    call,
    claimed,
    conforms,
    engine,
    facts_of,
    open_turn,
    replayed,
    starts,
    types_of,
)


def test_what_has_succeeded_is_replayed_and_not_run_again() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        guard = engine(journal)
        await open_turn(guard, "t1", call("a", arguments={"n": 1}))
        held = await claimed(guard, "a", arguments={"n": 1})
        assert (held.at, held.tool, held.arguments) == (At("r", "t1", "a"), "read", {"n": 1})
        assert (held.attempt, held.idempotency_key) == (1, "call/r/1/t1/a")
        await guard.succeeded(held, {"total": 1})
        for one in (guard, engine(journal)):
            outcome = await replayed(one, "a", arguments={"n": 1})
            assert outcome == Outcome(
                status=Status.SUCCEEDED, value={"total": 1}, replayed=True, attempt=1
            )
        assert starts(await facts_of(journal)) == 1
        await conforms(journal)

    run(play())


@pytest.mark.parametrize("value", [None, 0, "", False, []])
def test_falsy_results_are_results(value: object) -> None:
    async def play() -> None:
        guard = engine(MemoryJournal())
        await open_turn(guard, "t1", call("a"))
        await guard.succeeded(await claimed(guard, "a"), value)  # type: ignore[arg-type]
        outcome = await replayed(guard, "a")
        assert (outcome.status, outcome.value) == (Status.SUCCEEDED, value)

    run(play())


def test_a_recorded_failure_is_an_outcome() -> None:
    async def play() -> None:
        guard = engine(MemoryJournal())
        await open_turn(guard, "t1", call("a"), call("b"))
        await guard.failed(await claimed(guard, "a"), "no money")
        outcome = await replayed(guard, "a")
        assert (outcome.status, outcome.error) == (Status.FAILED, "no money")
        await guard.failed(await claimed(guard, "b"), "")
        assert (await replayed(guard, "b")).error

    run(play())


def test_a_denial_is_an_outcome_with_its_reason() -> None:
    async def play() -> None:
        guard = engine(MemoryJournal(), policies=GATED)
        await open_turn(guard, "t1", call("a", "pay"), call("b"))
        (asked,) = await guard.waiting("r")
        await guard.decide(asked.at, approved=False, digest=asked.digest, reason="too much")
        outcome = await replayed(guard, "a", "pay")
        assert (outcome.status, outcome.reason) == (Status.DENIED, "too much")
        assert outcome.attempt == 0

    run(play())


def test_nothing_unapproved_begins() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        guard = engine(journal, policies=GATED)
        await open_turn(guard, "t1", call("a", "pay", {"n": 5}))
        with pytest.raises(NotApproved) as refused:
            await claimed(guard, "a", "pay", {"n": 5})
        assert refused.value.at == At("r", "t1", "a")
        assert refused.value.arguments == {"n": 5}
        assert refused.value.digest == arguments_digest({"n": 5})
        assert starts(await facts_of(journal)) == 0

    run(play())


def test_the_control_without_a_gate_it_begins() -> None:
    async def play() -> None:
        guard = engine(MemoryJournal())
        await open_turn(guard, "t1", call("a", "pay"))
        assert isinstance(await claimed(guard, "a", "pay"), Held)

    run(play())


def test_an_approval_that_ran_out_is_a_denial() -> None:
    async def play() -> None:
        policies = {"pay": Policy(approval=True, approval_timeout=60.0)}
        guard = engine(MemoryJournal(), policies=policies)
        await open_turn(guard, "t1", call("a", "pay"), call("b"))
        (asked,) = await guard.waiting("r")
        assert asked.deadline is not None
        await asyncio.sleep(61)
        assert await guard.waiting("r") == ()
        outcome = await replayed(guard, "a", "pay")
        assert outcome.status is Status.DENIED

    run(play())


@pytest.mark.parametrize("is_ended", [False, True])
@pytest.mark.parametrize(("tool", "given"), [("read", {"n": 2}), ("write", {"n": 1}), ("read", {})])
def test_other_arguments_or_another_tool_differ(
    tool: str, given: dict[str, int], is_ended: bool
) -> None:
    async def play() -> None:
        journal = MemoryJournal()
        guard = engine(journal)
        await open_turn(guard, "t1", call("a", arguments={"n": 1}), call("b"))
        if is_ended:
            await guard.succeeded(await claimed(guard, "a", arguments={"n": 1}), 1)
        before = await facts_of(journal)
        with pytest.raises(Differs):
            await guard.claim(At("r", "t1", "a"), tool, given)
        assert await facts_of(journal) == before

    run(play())


@pytest.mark.parametrize("given", [{"n": 5}, {"n": 4}])
def test_edited_arguments_run_whoever_asks_with_the_raw_ones_or_the_edited(
    given: dict[str, int],
) -> None:
    async def play() -> None:
        guard = engine(MemoryJournal(), policies=GATED)
        await open_turn(guard, "t1", call("a", "pay", {"n": 5}), call("b"))
        (asked,) = await guard.waiting("r")
        await guard.decide(asked.at, approved=True, digest=asked.digest, arguments={"n": 4})
        with pytest.raises(Differs):
            await claimed(guard, "a", "pay", {"n": 3})
        held = await claimed(guard, "a", "pay", given)
        assert held.arguments == {"n": 4}
        with pytest.raises(Differs):
            await guard.claim(At("r", "t1", "a"), "pay", {"n": 3})
        await guard.succeeded(held, "paid")
        assert (await replayed(guard, "a", "pay", given)).value == "paid"
        with pytest.raises(Differs):
            await replayed(guard, "a", "pay", {"n": 3})

    run(play())


def test_what_another_runs_is_waited_for_and_its_outcome_returned() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        ada, bob = engine(journal), engine(journal)
        await open_turn(ada, "t1", call("a"))
        held = await claimed(ada, "a")
        waiting = asyncio.create_task(replayed(bob, "a"))
        again = asyncio.create_task(replayed(ada, "a"))
        await asyncio.sleep(3)
        assert not waiting.done()
        await ada.succeeded(held, 7)
        assert (await waiting).value == (await again).value == 7
        assert starts(await facts_of(journal)) == 1

    run(play())


def test_what_runs_longer_than_one_waits_is_still_running() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        ada, bob = engine(journal), engine(journal, wait=10.0)
        await open_turn(ada, "t1", call("a"))
        await claimed(ada, "a")
        began = asyncio.get_running_loop().time()
        with pytest.raises(StillRunning) as refused:
            await claimed(bob, "a")
        assert 9 <= asyncio.get_running_loop().time() - began <= 11
        assert refused.value.worker is not None

    run(play())


def test_a_hung_tool_of_a_living_process_keeps_its_lease() -> None:
    """For hours: each renewal is an append, and nobody may take it for dead."""

    async def play() -> None:
        journal = MemoryJournal()
        ada, bob = engine(journal), engine(journal, wait=0.0)
        await open_turn(ada, "t1", call("a"))
        held = await claimed(ada, "a")
        for _ in range(10):
            await asyncio.sleep(25)
            with pytest.raises(StillRunning):
                await claimed(bob, "a")
        assert 20 <= (await types_of(journal)).count(FactType.LEASE_RENEWED) <= 26
        await ada.succeeded(held, 1)
        await asyncio.sleep(100)
        assert (await types_of(journal)).count(FactType.LEASE_RENEWED) <= 26
        await conforms(journal)

    run(play())


def test_a_short_lease_is_renewed_though_a_longer_one_was_claimed_before() -> None:
    """Who renews sleeps until the first is due: a claim that comes then may be due before it."""

    async def play() -> None:
        journal = MemoryJournal()
        ada = engine(journal, policies={"quick": Policy(lease=0.3)})
        await open_turn(ada, "t1", call("a"), call("b", "quick"), call("c", "quick"))
        await claimed(ada, "a")
        await asyncio.sleep(1)
        await claimed(ada, "b", "quick")
        await asyncio.sleep(5)
        await claimed(ada, "c", "quick")
        await asyncio.sleep(5)
        for name in ("b", "c"):
            with pytest.raises(StillRunning):
                await claimed(engine(journal, wait=0.0), name, "quick")
        await conforms(journal)

    run(play())


def test_a_short_lease_is_renewed_though_a_longer_one_was_let_go() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        ada = engine(journal, policies={"quick": Policy(lease=0.3)})
        await open_turn(ada, "t1", call("a"), call("b", "quick"))
        held = await claimed(ada, "a")
        await asyncio.sleep(1)
        await ada.succeeded(held, 1)
        await claimed(ada, "b", "quick")
        await asyncio.sleep(5)
        with pytest.raises(StillRunning):
            await claimed(engine(journal, wait=0.0), "b", "quick")

    run(play())


def test_a_lost_claim_is_in_doubt_and_not_run_again() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        guard = engine(journal)
        await open_turn(guard, "t1", call("a"))
        await guard.lost(await claimed(guard, "a"))
        for one in (guard, engine(journal)):
            with pytest.raises(InDoubt) as refused:
                await claimed(one, "a")
            doubt = refused.value
            assert (doubt.at, doubt.attempt) == (At("r", "t1", "a"), 1)
            assert doubt.worker is not None
            assert ":" in doubt.worker
            assert doubt.since is not None
        assert starts(await facts_of(journal)) == 1

    run(play())


def test_a_true_report_that_comes_late_settles_what_is_in_doubt() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        guard = engine(journal)
        await open_turn(guard, "t1", call("a"))
        held = await claimed(guard, "a")
        await guard.lost(held)
        await guard.succeeded(held, 1)
        await guard.succeeded(held, 1)
        assert (await replayed(guard, "a")).value == 1
        with pytest.raises(Stale) as refused:
            await guard.succeeded(held, 2)
        assert refused.value.reason == "conflicting_duplicate"

    run(play())


def test_what_never_began_is_run_by_whoever_comes_next() -> None:
    async def play() -> None:
        journal = FaultyJournal(MemoryJournal())
        guard = engine(journal)
        await open_turn(guard, "t1", call("a"))
        held = await claimed(guard, "a")
        before = journal.calls["append"]
        await guard.never_began(held)
        assert journal.calls["append"] == before + 1
        again = await claimed(engine(journal), "a")
        assert (again.attempt, again.idempotency_key) == (2, held.idempotency_key)
        with pytest.raises(Stale) as refused:
            await guard.succeeded(held, 1)
        assert refused.value.reason == "stale_attempt"

    run(play())


def test_without_a_turn_it_is_the_latest_that_has_the_call() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        guard = engine(journal)
        for turn in ("t1", "t2"):
            await open_turn(guard, turn, call("a"), call(turn))
            for name in ("a", turn):
                await guard.succeeded(await claimed(guard, name, turn=turn), turn)
        await open_turn(guard, "t3", call("c"))
        for one in (guard, engine(journal)):
            assert (await replayed(one, "a", turn=None)).value == "t2"
            assert (await replayed(one, "t1", turn=None)).value == "t1"
        assert (await claimed(guard, "c", turn=None)).at.turn == "t3"

    run(play())


@pytest.mark.parametrize("at", [At("r", "t9", "a"), At("r", None, "z"), At("x", None, "a")])
def test_what_was_never_opened_is_stale(at: At) -> None:
    async def play() -> None:
        journal = MemoryJournal()
        guard = engine(journal)
        await open_turn(guard, "t1", call("a"))
        for asked in (guard.claim(at, "read", {}), guard.look(at)):
            with pytest.raises(Stale) as refused:
                await asked
            assert refused.value.reason == "unknown_invocation"
        assert await guard.waiting("x") == ()
        assert len(await facts_of(journal)) == 1

    run(play())


def test_a_guarded_call_is_three_appends_and_reads_nothing() -> None:
    """Open, claim, report; the results are taken with the next answer; a denial reads nothing."""

    async def play() -> None:
        journal = FaultyJournal(MemoryJournal())
        guard = engine(journal)
        await open_turn(guard, "t0", call("a"))
        await guard.succeeded(await claimed(guard, "a", turn="t0"), 1)
        before = journal.calls.copy()
        for number in range(1, 6):
            turn = f"t{number}"
            await open_turn(guard, turn, call("a"), after=f"t{number - 1}")
            await guard.succeeded(await claimed(guard, "a", turn=turn), 1)
        assert journal.calls - before == {"append": 15}

    run(play())


def test_looking_writes_nothing() -> None:
    async def play() -> None:
        journal = FaultyJournal(MemoryJournal())
        guard = engine(journal, policies=GATED)
        await open_turn(guard, "t1", call("a", "pay"), call("b"))
        held = await claimed(guard, "b")
        before = journal.calls["append"]
        look = await guard.look(At("r", "t1", "a"))
        assert (look.phase, look.attempt, look.worker) == (Phase.REQUESTED, 0, None)
        assert look.digest == (await guard.waiting("r"))[0].digest
        look = await guard.look(At("r", None, "b"))
        assert (look.at, look.phase, look.attempt) == (At("r", "t1", "b"), Phase.STARTED, 1)
        assert look.worker is not None
        assert look.outcome is None
        assert journal.calls["append"] == before
        await guard.succeeded(held, 1)
        look = await guard.look(At("r", "t1", "b"))
        assert look.outcome is not None
        assert (look.outcome.value, look.since is not None) == (1, True)

    run(play())


def test_two_runs_do_not_know_each_other() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        guard = engine(journal)
        for name in ("r", "s"):
            await open_turn(guard, "t1", call("a"), run=name)
        await guard.succeeded(await claimed(guard, "a", run="r"), "r")
        held = await claimed(guard, "a", run="s")
        assert held.at.run == "s"

    run(play())
