"""A turn is opened by the model's answer: whole, once, in its place, and closing what it leaves."""

from __future__ import annotations

import pytest

from turnlock import FactType, InvalidValue, OpenTurn, Run
from turnlock.guards.errors import Differs, Forked, InDoubt, NotApproved, Stale, StillRunning
from turnlock.guards.values import BEGINNING, KIND, Abandons, At
from turnlock.models.deliveries import Resolution
from turnlock.models.run import Limits
from turnlock.runtime.errors import ForeignRun
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.submitting import SharedRun

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


def test_a_run_begins_with_its_first_turn_and_is_of_the_kind_guard() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        await open_turn(engine(journal), "t1", call("a"))
        entry = await journal.entry("r")
        assert (entry.run.kind, entry.owner, entry.sequence) == (KIND, None, 1)
        assert entry.run.limits.remember_for > 365 * 86_400

    run(play())


def test_a_run_of_another_kind_is_refused_by_name() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        await journal.declare(Run(run_id="r"))
        with pytest.raises(ForeignRun, match="'own'"):
            await open_turn(engine(journal), "t1", call("a"))
        assert await facts_of(journal) == []

    run(play())


def test_of_two_guards_with_other_limits_the_first_says() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        await open_turn(engine(journal, limits=Limits(remembered=7)), "t1", call("a"))
        await open_turn(engine(journal), "t2", call("a"))
        assert (await journal.entry("r")).run.limits.remembered == 7

    run(play())


def test_opened_again_it_changes_nothing_while_it_is_open_and_when_it_is_closed() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        guard, other = engine(journal), engine(journal)
        turn = call("a", arguments={"n": 1}), call("b")
        await open_turn(guard, "t1", *turn)
        await open_turn(other, "t1", *turn)
        await guard.succeeded(await claimed(guard, "a", arguments={"n": 1}), 1)
        await open_turn(other, "t1", *turn)
        await guard.succeeded(await claimed(guard, "b"), 1)
        await open_turn(guard, "t1", *turn)
        await open_turn(guard, "t2", call("a"), after="t1")
        await open_turn(other, "t1", *turn)
        assert (await types_of(journal)).count(FactType.TURN_OPENED) == 2
        await conforms(journal)

    run(play())


@pytest.mark.parametrize("is_closed", [False, True])
@pytest.mark.parametrize(
    "others",
    [
        [call("a", arguments={"n": 2}), call("b")],
        [call("a", arguments={"n": 1})],
        [call("a", "write", {"n": 1}), call("b")],
        [call("b"), call("a", arguments={"n": 1})],
        [],
    ],
)
def test_opened_again_with_other_calls_it_differs(others: list[object], is_closed: bool) -> None:
    async def play() -> None:
        journal = MemoryJournal()
        guard = engine(journal)
        await open_turn(guard, "t1", call("a", arguments={"n": 1}), call("b"))
        await guard.succeeded(await claimed(guard, "a", arguments={"n": 1}), 1)
        if is_closed:
            await guard.succeeded(await claimed(guard, "b"), 1)
        before = await facts_of(journal)
        with pytest.raises(Differs) as refused:
            await open_turn(guard, "t1", *others)  # type: ignore[arg-type]
        assert refused.value.at == At("r", "t1", "")
        assert await facts_of(journal) == before

    run(play())


def test_the_next_answer_takes_what_came_before_in_one_append() -> None:
    async def play() -> None:
        journal = FaultyJournal(MemoryJournal())
        guard = engine(journal)
        await open_turn(guard, "t1", call("a"))
        await guard.succeeded(await claimed(guard, "a"), 1)
        before = journal.calls["append"]
        await open_turn(guard, "t2", call("a"), after="t1")
        assert journal.calls["append"] == before + 1
        assert (await types_of(journal))[-2:] == [
            FactType.CONTINUATION_TAKEN,
            FactType.TURN_OPENED,
        ]

    run(play())


def test_an_answer_without_calls_is_a_turn_that_ends_at_once() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        guard = engine(journal)
        await open_turn(guard, "t1")
        await open_turn(guard, "t1")
        await open_turn(guard, "t2", call("a"), after="t1")
        assert await types_of(journal) == [
            FactType.TURN_OPENED,
            FactType.TURN_SEALED,
            FactType.TURN_SETTLED,
            FactType.TURN_OPENED,
        ]

    run(play())


def test_what_nobody_started_is_denied_by_the_next_answer() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        guard = engine(journal, policies=GATED)
        await open_turn(guard, "t1", call("a", "pay"), call("b"), call("c"))
        await guard.succeeded(await claimed(guard, "c"), 3)
        (asked,) = await guard.waiting("r")
        await open_turn(guard, "t2", call("a", "pay"), after="t1")

        with pytest.raises(Stale) as refused:
            await guard.decide(asked.at, approved=True, digest=asked.digest)
        assert refused.value.reason == "late"
        for name, tool in (("a", "pay"), ("b", "read")):
            with pytest.raises(Stale) as refused:
                await claimed(guard, name, tool)
            assert refused.value.reason == "late"
        assert (await replayed(guard, "c")).value == 3
        await conforms(journal)

    run(play())


def test_what_runs_keeps_the_next_answer_out_and_nothing_changes() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        guard = engine(journal)
        await open_turn(guard, "t1", call("a"), call("b"))
        held = await claimed(guard, "a")
        before = await facts_of(journal)
        with pytest.raises(StillRunning) as refused:
            await open_turn(guard, "t2", call("a"), after="t1")
        assert refused.value.at == At("r", "t1", "a")
        assert refused.value.worker is not None
        assert await facts_of(journal) == before
        await guard.succeeded(held, 1)
        await open_turn(guard, "t2", call("a"), after="t1")

    run(play())


def test_what_is_in_doubt_keeps_the_next_answer_out_until_somebody_knows() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        guard = engine(journal)
        await open_turn(guard, "t1", call("a"))
        await guard.lost(await claimed(guard, "a"))
        with pytest.raises(InDoubt) as refused:
            await open_turn(guard, "t2", call("a"), after="t1")
        assert refused.value.attempt == 1
        await guard.resolve(refused.value.at, Resolution.RESULT, result=1)
        await open_turn(guard, "t2", call("a"), after="t1")

    run(play())


def test_what_never_began_is_no_doubt_for_the_next_answer() -> None:
    """Somebody cancelled it before it began, and asked for something else: that is all right."""

    async def play() -> None:
        journal = MemoryJournal()
        guard = engine(journal)
        await open_turn(guard, "t1", call("a"))
        await guard.never_began(await claimed(guard, "a"))
        await open_turn(guard, "t2", call("a"), after="t1")
        assert (await replayed(guard, "a")).error is not None
        await conforms(journal)

    run(play())


def test_who_abandons_nothing_is_refused_whatever_has_not_ended() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        guard = engine(journal, policies=GATED)
        await open_turn(guard, "t1", call("a", "pay"))
        with pytest.raises(NotApproved):
            await open_turn(guard, "t2", call("a"), abandons=Abandons.NOTHING)
        await open_turn(guard, "t2", call("a"))
        with pytest.raises(StillRunning) as refused:
            await open_turn(guard, "t3", call("a"), abandons=Abandons.NOTHING)
        assert refused.value.worker is None
        await guard.succeeded(await claimed(guard, "a", turn="t2"), 1)
        await open_turn(guard, "t3", call("a"), abandons=Abandons.NOTHING)

    run(play())


def test_a_second_answer_to_a_turn_is_a_fork() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        guard = engine(journal)
        await open_turn(guard, "t1", call("a"), after=BEGINNING)
        for after, came in ((BEGINNING, "t1"),):
            with pytest.raises(Forked) as refused:
                await open_turn(guard, "x", call("a"), after=after)
            assert (refused.value.came, refused.value.reason) == (came, "forked")
        await guard.succeeded(await claimed(guard, "a"), 1)
        await open_turn(guard, "t2", call("a"), after="t1")
        await guard.succeeded(await claimed(guard, "a", turn="t2"), 1)
        before = await facts_of(journal)
        with pytest.raises(Forked) as refused:
            await open_turn(guard, "x", call("a"), after="t1")
        assert (refused.value.came, refused.value.at) == ("t2", At("r", "x", ""))
        with pytest.raises(Forked):  # its text would close what waits in the other branch
            await open_turn(guard, "x", after="t1")
        assert await facts_of(journal) == before
        await open_turn(guard, "t3", call("a"), after="t2")

    run(play())


def test_a_turn_that_no_guard_has_seen_says_nothing() -> None:
    async def play() -> None:
        guard = engine(MemoryJournal())
        await open_turn(guard, "t1", call("a"), after="before there was a guard")
        await open_turn(guard, "t2", call("a"), after="of an output tool")

    run(play())


def test_an_answer_without_calls_is_none_that_came() -> None:
    async def play() -> None:
        guard = engine(MemoryJournal())
        await open_turn(guard, "text", after=BEGINNING)
        await open_turn(guard, "t1", call("a"), after=BEGINNING)
        await guard.succeeded(await claimed(guard, "a"), 1)
        await open_turn(guard, "text2", after="t1")
        await open_turn(guard, "t2", call("a"), after="t1")
        with pytest.raises(Forked) as refused:
            await open_turn(guard, "t3", call("a"), after="text2")
        assert refused.value.came == "t2"

    run(play())


def test_one_id_twice_in_an_answer_is_refused() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        with pytest.raises(Differs) as refused:
            await open_turn(engine(journal), "t1", call("a"), call("b"), call("a"))
        assert refused.value.at.call == "a"
        with pytest.raises(InvalidValue):
            await open_turn(engine(journal), "t1", call("a", observed=True))

    run(play())


def test_more_calls_than_the_run_takes_change_nothing() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        guard = engine(journal, limits=Limits(calls=1))
        await open_turn(guard, "t1", call("a"))
        before = await facts_of(journal)
        with pytest.raises(InvalidValue, match="2 calls"):
            await open_turn(guard, "t2", call("a"), call("b"))
        assert await facts_of(journal) == before

    run(play())


def test_what_a_tool_declares_is_asked_whoever_opens_the_turn() -> None:
    """The gate is the runtime's, and asked of those who bring calls without knowing it."""

    async def play() -> None:
        journal = MemoryJournal()
        await open_turn(engine(journal), "t0", call("a"))
        shared = await SharedRun.open(journal, "r", policies=GATED)
        (verdict,) = await shared.submit(OpenTurn(turn_id="t0", calls=(call("a"),)))
        assert verdict.reason is not None
        guard = engine(journal, policies=GATED)
        await open_turn(guard, "t1", call("a", "pay"), call("b"))
        with pytest.raises(NotApproved):
            await claimed(guard, "a", "pay")
        await claimed(guard, "b")

    run(play())


def test_what_another_guard_opened_without_its_approval_does_not_run_here() -> None:
    """Two versions of a program on one journal: the older one knows of no approval."""

    async def play() -> None:
        journal = MemoryJournal()
        older, newer = engine(journal), engine(journal, policies=GATED)
        await open_turn(older, "t1", call("a", "pay"), call("b"))
        await open_turn(newer, "t1", call("a", "pay"), call("b"))
        with pytest.raises(Differs, match="asked for no approval") as refused:
            await claimed(newer, "a", "pay")
        assert refused.value.at == At("r", "t1", "a")
        await newer.succeeded(await claimed(newer, "b"), 1)
        assert starts(await facts_of(journal)) == 1
        await open_turn(newer, "t2", call("a", "pay"), after="t1")
        with pytest.raises(NotApproved):
            await claimed(newer, "a", "pay", turn="t2")
        await conforms(journal)

    run(play())


def test_opened_again_with_an_approval_it_does_not_pass_for_the_same() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        guard = engine(journal)
        await open_turn(guard, "t1", call("a"), call("b"))
        with pytest.raises(Differs, match="asked for no approval"):
            await open_turn(guard, "t1", call("a", requires_approval=True), call("b"))
        await guard.succeeded(await claimed(guard, "a"), 1)
        await open_turn(guard, "t1", call("a", requires_approval=True), call("b"))

    run(play())


def test_the_control_what_was_opened_with_an_approval_may_be_opened_without() -> None:
    """What is recorded counts, and it asks for more."""

    async def play() -> None:
        guard = engine(MemoryJournal())
        await open_turn(guard, "t1", call("a", requires_approval=True))
        await open_turn(guard, "t1", call("a"))
        with pytest.raises(NotApproved):
            await claimed(guard, "a")

    run(play())
