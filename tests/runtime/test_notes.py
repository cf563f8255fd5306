"""Notes of a run and its facts: one writer, one order, and those who heed them (S-10, S-60)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from turnlock import Call, Claim, Delivery, OpenTurn, Reason, Report, Run
from turnlock.models.errors import InvalidValue
from turnlock.models.values import Json
from turnlock.runtime.errors import JournalError, Overloaded, RunFenced
from turnlock.runtime.journal.ledger import NOTE_BYTES, Domain, Note
from turnlock.runtime.settings import Settings

from .faulty_journal import Fault
from .test_actor import Stage
from .test_runtime import World
from .virtual import run, settled

RUN = Run(run_id="r")
CALL = Call(invocation_id="a", tool_name="act", arguments={}, requires_approval=False)


def noted(text: Json, *, name: str | None = None) -> Note:
    """An observation, or what has an id of its own."""
    return Note(domain=Domain.ITEM, kind="heard", body={"text": text}, at=1.0, id=name)


def opened(turn_id: str, *names: str) -> OpenTurn:
    calls = tuple(
        Call(invocation_id=name, tool_name="ls", arguments={}, requires_approval=False)
        for name in names
    )
    return OpenTurn(turn_id=turn_id, calls=calls)


def claim(name: str) -> Claim:
    return Claim(turn_id="t1", invocation_id=name, attempt=1, worker="w")


async def told(stage: Stage) -> list[str]:
    """The ledger: types of facts, texts of notes."""
    notes = [(it.cursor, str(it.note.body["text"])) for it in await stage.inner.notes("r")]
    page = await stage.inner.ledger("r")
    facts = {fact.sequence: str(fact.type) for fact in await stage.facts()}
    texts = dict(notes)
    return [texts.get(it.cursor) or facts[it.cursor.sequence] for it in page.entries]


def test_s_10_notes_are_kept_first_and_deliveries_judged_in_their_order() -> None:
    """Though the inbox would serve a report before the claim that it needs, and both after all."""

    async def story() -> None:
        stage = Stage()
        actor = await stage.begin()
        follow: Sequence[Delivery] = (
            opened("t1", "a"),
            claim("a"),
            Report(turn_id="t1", invocation_id="a", result=1),
        )

        verdicts = await actor.hear([noted("said"), noted("done")], follow)

        assert [it.reason for it in verdicts] == [None, None, None]
        assert stage.journal.calls["append"] == 1
        assert stage.journal.calls["note"] == 0
        assert await told(stage) == [
            *("said", "done", "TURN_OPENED", "TOOL_EXECUTION_STARTED"),
            *("TOOL_EXECUTION_SUCCEEDED", "TURN_SETTLED"),
        ]

    run(story())


def test_s_10_what_is_heard_at_once_keeps_its_order_in_one_append() -> None:
    """Each note stands before the facts that follow from it, and after those of what was before."""

    async def story() -> None:
        stage = Stage()
        actor = await stage.begin()
        hears = [
            actor.hear([noted("one")], [opened("t1", "a", "b")]),
            actor.hear([noted("two")], [claim("a")]),
            actor.hear([noted("three")], [claim("b")]),
        ]

        await asyncio.gather(*hears)

        ledger = await told(stage)
        assert stage.journal.calls["append"] == 1
        notes = [ledger.index(it) for it in ("one", "two", "three")]
        starts = [n for n, it in enumerate(ledger) if it == "TOOL_EXECUTION_STARTED"]
        assert notes[0] == 0
        assert notes[1] < starts[0] < notes[2] < starts[1]

    run(story())


@pytest.mark.parametrize("name", [None, "said/1"])
def test_a_note_that_was_asked_for_before_a_delivery_is_kept_before_its_facts(
    name: str | None,
) -> None:
    async def story() -> None:
        stage = Stage()
        actor = await stage.begin()
        note = asyncio.ensure_future(actor.hear([noted("said", name=name)]))
        await asyncio.sleep(0)

        await actor.deliver(opened("t1", "a"))

        await note
        assert (await told(stage))[:2] == ["said", "TURN_OPENED"]

    run(story())


def test_a_note_keeps_nothing_twice_and_never_changes() -> None:
    """S-61: other content under its id is refused, and harms nobody who asks at the same time."""

    async def story() -> None:
        stage = Stage()
        actor = await stage.begin()
        await actor.hear([noted("a", name="x")])
        asked = [
            actor.hear([noted("a", name="x")]),
            actor.hear([noted("b", name="x"), noted("c", name="y")], [opened("t2", "a")]),
            actor.hear([noted("d")], [opened("t1", "a")]),
        ]

        same, other, free = await asyncio.gather(*asked, return_exceptions=True)

        assert same == ()
        assert isinstance(other, InvalidValue)
        assert isinstance(free, tuple)
        assert (await told(stage))[:3] == ["a", "d", "TURN_OPENED"]
        assert await stage.inner.find_note("r", "y") is None
        assert stage.failures == []

    run(story())


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.UNACKNOWLEDGED])
@pytest.mark.parametrize("name", [None, "x"])
def test_where_the_journal_fails_it_is_told_and_asked_for_again(
    fault: Fault, name: str | None
) -> None:
    """With an id a note is kept once; facts are refused as duplicates; S-10 holds."""

    async def story() -> None:
        stage = Stage()
        actor = await stage.begin()
        asked = [noted("said", name=name)], [opened("t1", "a")]
        for method in ("note",) if name else ("append",):
            stage.journal.fail(method, fault)
        with pytest.raises(JournalError):
            await actor.hear(*asked)

        (verdict,) = await actor.hear(*asked)

        kept = fault is Fault.UNACKNOWLEDGED and name is None
        assert verdict.reason is (Reason.TURN_OPEN if kept else None)
        ledger = await told(stage)
        assert ledger.count("said") == (2 if kept else 1)
        assert ledger.count("TURN_OPENED") == 1
        assert ledger[0] == "said"

    run(story())


def test_whoever_is_fenced_keeps_no_note_and_serves_no_more() -> None:
    async def story() -> None:
        stage = Stage()
        actor = await stage.begin()
        await stage.inner.own("r", owner="other", now=1e9, lease=1.0)
        with pytest.raises(RunFenced):
            await actor.hear([noted("late", name="x")], [opened("t1", "a")])

        assert stage.notes.fences == 1
        assert await told(stage) == []
        with pytest.raises(RunFenced):
            await actor.hear([noted("later")])

    run(story())


def test_what_is_no_note_harms_nobody_else() -> None:
    """It is refused before it shares an append; an observation that is too large is cut (S-61)."""

    async def story() -> None:
        stage = Stage()
        actor = await stage.begin()
        bad, large = noted(float("nan")), noted("x" * NOTE_BYTES)
        asked = [actor.hear([bad]), actor.hear([large], [opened("t1", "a")])]

        refused, kept = await asyncio.gather(*asked, return_exceptions=True)

        assert isinstance(refused, InvalidValue)
        assert isinstance(kept, tuple)
        (found,) = await stage.inner.notes("r")
        assert found.note.body["bytes"] > NOTE_BYTES  # type: ignore[operator]

    run(story())


def test_s_6_notes_that_wait_are_bounded() -> None:
    async def story() -> None:
        stage = Stage(settings=Settings(waiting=2))
        actor = await stage.begin()
        stage.journal.fail("append", Fault.HELD)
        first = asyncio.ensure_future(actor.deliver(opened("t1", "a")))
        await settled()
        waiting = [asyncio.ensure_future(actor.hear([noted(n)])) for n in range(2)]
        await settled()
        with pytest.raises(Overloaded, match="2 notes wait"):
            await actor.hear([noted("more")])
        stage.journal.gate.set()
        await asyncio.gather(first, *waiting)

    run(story())


def test_who_waits_for_a_note_when_the_run_is_let_go_is_told() -> None:
    async def story() -> None:
        stage = Stage()
        actor = await stage.begin()
        for name in (None, "x"):
            stage.journal.fail("append" if name is None else "note", Fault.HELD)
        first = asyncio.ensure_future(actor.hear([noted("1", name="x")], [opened("t1", "a")]))
        await settled()
        second = asyncio.ensure_future(actor.hear([noted("2")]))
        await settled()
        actor.stop(RunFenced("it is let go"))
        stage.journal.gate.set()
        for one in (first, second):
            with pytest.raises(RunFenced, match="let go"):
                await one
        await actor.ended()
        assert await told(stage) == ["1"]  # it was on its way; nothing follows from it

    run(story())


def test_who_heeds_a_run_is_told_once_its_facts_are_kept(caplog: pytest.LogCaptureFixture) -> None:
    """One who raises harms nobody; whoever has ended it is told nothing more."""
    world = World()
    heard: list[str] = []

    def broken(_: str) -> None:
        raise ValueError("of the host")

    async def story() -> None:
        async with world.process(world.tool("act")) as process:
            process.when_kept(broken)
            end = process.when_kept(heard.append)
            await process.open_run(RUN)
            for work in (
                lambda: process.open_turn("r", [CALL], turn_id="t1"),
                lambda: process.note("r", noted("alone")),
                lambda: process.note("r", noted("named", name="x")),
                lambda: process.hear("r", [noted("with")], [opened("t2", "a")]),
            ):
                await settled()
                heard.clear()
                await work()
                assert set(heard) == {"r"}
            await settled()
            end()
            end()
            count = len(heard)
            await process.note("r", noted("unheard"))
            assert len(heard) == count
            kinds = [it.note.body["text"] for it in await process.notes("r", domain=Domain.ITEM)]
            assert kinds == ["alone", "named", "with", "unheard"]
            assert await process.notes("r", domain=Domain.MESSAGE) == ()

    run(story())
    assert "who was told that run 'r' has grown failed" in caplog.text
