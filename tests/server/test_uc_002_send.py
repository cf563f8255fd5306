"""UC-002: what a person says is kept, waits its turn, and is said once (S-80 … S-83)."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnlock.adapters.contract import CommandRefused
from turnlock.models.errors import TurnlockError, UnknownRun
from turnlock.models.lifecycle_facts import ToolExecutionFailed
from turnlock.models.run import Run
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.server.bounds import SessionSettings
from turnlock.server.line import ID

from ..runtime.virtual import run
from .peers import MortalJournal, World, messages, said, serve, serving, spec
from .scripted import KIND, ScriptedAdapter


def test_uc_002_idle_a_prompt_is_said_at_once() -> None:
    """Its note, then what is said, then the answer; of text nothing is lost."""

    async def play() -> None:
        journal = MemoryJournal()
        async with serving(journal) as it:
            await it.sessions.create(spec())
            taken = await it.sessions.prompt("r", "hi\n\u202e", message_id="m")
            assert (taken.restored, taken.steered, taken.ignored) == (False, False, ())
            await it.idle()
            (waiting,) = await messages(journal, "r", "waiting")
            assert (waiting.cursor, waiting.note.id) == (taken.cursor, "waiting/m")
            assert await said(journal) == ["hi\n\u202e", "> done: hi\n\u202e"]
            (user,) = await messages(journal, "r", "user")
            assert user.note.body["message_id"] == "m"
            assert (await journal.ends(["r"]))["r"] > taken.cursor

    run(play())


def test_s_83_with_a_turn_open_prompts_wait_in_the_order_of_their_entries() -> None:
    """F-25: 202 at once; each becomes `said/N` once nothing is owed, naming its id."""

    async def play() -> None:
        journal = MemoryJournal()
        async with serving(journal) as it:
            await it.sessions.create(spec(), prompt="pay", message_id="m0")
            await it.asked()
            taken = [
                await it.sessions.prompt("r", f"then {number}", message_id=f"m{number}")
                for number in range(1, 4)
            ]
            assert [one.cursor for one in taken] == sorted(one.cursor for one in taken)
            assert await said(journal) == ["pay", "> None"]
            await it.approve()
            await it.idle()
            assert (await said(journal))[3::2] == ["then 1", "then 2", "then 3"]
            users = [it.note.body["message_id"] for it in await messages(journal, "r", "user")]
            assert users == ["m0", "m1", "m2", "m3"]

    run(play())


@pytest.mark.parametrize("kind", ["own", KIND])
def test_f_23_twice_at_once_with_one_text_is_one_turn_and_with_two_a_conflict(kind: str) -> None:
    """UC-002: `turn/start` stands once on the pipe; the first answer for both (S-80)."""

    async def play() -> None:
        journal, world, scripted = MemoryJournal(), World(), ScriptedAdapter()
        async with serving(journal, world, others=[scripted]) as it:
            await it.sessions.create(spec(kind=kind))
            both = await asyncio.gather(
                *(it.sessions.prompt("r", "hi", message_id="m") for _ in range(5))
            )
            assert len(set(both)) == 1
            told = await asyncio.gather(
                *(it.sessions.prompt("r", text, message_id="n") for text in ("a", "b", "b", "a")),
                return_exceptions=True,
            )
            refused = [one for one in told if isinstance(one, CommandRefused)]
            assert [one in refused for one in told] == [False, True, True, False]
            assert {one.code for one in refused} == {"conflicting_duplicate"}
            assert told[0] == told[3]
            if kind == "own":
                await it.idle()
                assert world.asked == ["hi", "a"]
                return
            await it.until(lambda: bool(scripted.told("took")))
            await scripted.sessions["r"].completes()
            await it.until(lambda: len(scripted.told("took")) == 2)
            turns = [(one[2], one[3]) for one in scripted.told("turn")]
            assert turns == [("m", "hi"), ("n", "a")]

    run(play())


def test_f_23_a_message_id_is_kept_for_ever() -> None:
    """After restarts, inactive and active, the first answer is given and nothing is restored."""

    async def play() -> None:
        journal, world = MemoryJournal(), World()
        async with serving(journal, world) as it:
            await it.sessions.create(spec())
            await it.sessions.terminate("r")
            first = await it.sessions.prompt("r", "hi", message_id="m")
            assert first.restored
            await it.idle()
            await it.sessions.terminate("r")
        async with serving(journal, world) as it:
            assert await it.sessions.prompt("r", "hi", message_id="m") == first
            assert it.sessions.state_of("r") == "inactive"
            with pytest.raises(CommandRefused) as refused:
                await it.sessions.prompt("r", "ho", message_id="m")
            assert refused.value.code == "conflicting_duplicate"
        assert world.asked == ["hi"]

    run(play())


def test_uc_002_a_run_that_is_missing_is_unknown_and_one_of_others_is_theirs() -> None:
    """404, and run_kind_mismatch for a run that is shown and decided on, never performed."""

    async def play() -> None:
        journal = MemoryJournal()
        await journal.declare(Run(run_id="g", kind="guard"))
        async with serving(journal) as it:
            with pytest.raises(UnknownRun):
                await it.sessions.prompt("none", "hi", message_id="m")
            for command in (
                it.sessions.prompt("g", "hi", message_id="m"),
                it.sessions.restore("g"),
                it.sessions.terminate("g"),
            ):
                with pytest.raises(CommandRefused) as refused:
                    await command
                assert refused.value.code == "run_kind_mismatch"
            assert await journal.notes("g") == ()

    run(play())


def test_f_25_at_most_so_many_wait() -> None:
    """429 for the next; one that waits already is answered as before."""

    async def play() -> None:
        journal = MemoryJournal()
        async with serving(journal, settings=SessionSettings(waiting=3)) as it:
            await it.sessions.create(spec(), prompt="pay", message_id="m")
            await it.asked()
            first = [
                await it.sessions.prompt("r", "x", message_id=f"m{number}") for number in range(3)
            ]
            with pytest.raises(CommandRefused) as refused:
                await it.sessions.prompt("r", "x", message_id="m3")
            assert refused.value.code == "limit_reached"
            assert await it.sessions.prompt("r", "x", message_id="m0") == first[0]
            await it.approve()
            await it.idle()
            await it.sessions.prompt("r", "x", message_id="m3")

    run(play())


@pytest.mark.parametrize("message_id", ["", "m" * (ID + 1)])
def test_s_80_an_id_has_its_bounds(message_id: str) -> None:
    """At most 128 characters, of any kind, and at least one."""

    async def play() -> None:
        async with serving() as it:
            await it.sessions.create(spec())
            with pytest.raises(CommandRefused) as refused:
                await it.sessions.prompt("r", "hi", message_id=message_id)
            assert (refused.value.code, refused.value.at) == ("invalid_value", "message_id")
            await it.sessions.prompt("r", "hi", message_id="/%\n\u202e" * (ID // 4))

    run(play())


def test_s_83_steering_where_the_kind_can() -> None:
    """`when: steer` goes into the turn that goes on; idle it is a turn; own runs cannot (S-11)."""

    async def play() -> None:
        journal, scripted = MemoryJournal(), ScriptedAdapter()
        async with serving(journal, others=[scripted]) as it:
            await it.sessions.create(spec("own"))
            with pytest.raises(CommandRefused) as refused:
                await it.sessions.prompt("own", "hi", message_id="m", when="steer")
            assert refused.value.code == "capability_unsupported"
            assert await messages(journal, "own") == []
            await it.sessions.create(spec(kind=KIND), prompt="go", message_id="m0")
            await it.until(lambda: len(scripted.told("took")) == 1)
            waits = await it.sessions.prompt("r", "later", message_id="m1")
            steers = await it.sessions.prompt("r", "left!", message_id="m2", when="steer")
            assert (steers.steered, steers.turn_id) == (True, "u1.1")
            assert (waits.steered, waits.turn_id) == (False, None)
            assert await it.sessions.prompt("r", "left!", message_id="m2", when="steer") == steers
            assert [one[2] for one in scripted.told("turn")] == ["m0", "m2"]
            await scripted.sessions["r"].completes()
            await it.until(lambda: len(scripted.told("took")) == 3)
            assert [one[2] for one in scripted.told("turn")] == ["m0", "m2", "m1"]

    run(play())


def test_s_83_doubts_are_settled_before_the_next_prompt_or_it_is_refused() -> None:
    """409 in_doubt, nothing kept; with `doubts: fail` they are settled as unknown first."""

    async def play() -> None:
        journal, world = MemoryJournal(), World(gate=asyncio.Event())
        killed = await serve(journal, world)
        await killed.sessions.create(spec(), prompt="send", message_id="m0")
        await killed.until(lambda: bool(world.done))
        await killed.kill()
        world.gate = None
        async with serving(journal, world) as it:
            await it.until(lambda: it.sessions.is_active("r"))
            await it.until(lambda: bool(it.sessions.life.active["r"].doubts()))
            with pytest.raises(CommandRefused) as refused:
                await it.sessions.prompt("r", "next", message_id="m1")
            assert refused.value.code == "in_doubt"
            assert await journal.find_note("r", "waiting/m1") is None
            await it.sessions.prompt("r", "next", message_id="m1", doubts="fail")
            await it.idle()
            facts = [fact async for fact in journal.facts("r")]
            (failed,) = [fact for fact in facts if isinstance(fact, ToolExecutionFailed)]
            assert failed.error.startswith("outcome unknown")
        assert (await said(journal))[-2:] == ["next", "> done: next"]
        assert sum(world.done.values()) == 1  # it was never run again

    run(play())


def test_s_81_killed_at_each_write_each_prompt_is_answered_once() -> None:
    """Section 14: received and not kept; kept in line; said; answered. No tool runs twice."""

    async def play() -> None:
        for writes in range(4, 60):
            journal, world = MemoryJournal(), World()
            mortal = MortalJournal(journal, writes=writes, kept=writes % 2 == 0)
            killed = await serve(mortal, world)
            told: list[str] = []
            with suppress(TurnlockError):
                await killed.sessions.create(spec())
                for number in range(3):
                    message_id = f"m{number}"
                    await killed.sessions.prompt("r", f"look {number}", message_id=message_id)
                    told.append(message_id)
                await killed.idle()
            if not mortal.died.is_set():
                await killed.close()
                assert writes > 20
                return
            await killed.kill()
            async with serving(journal, world) as it:
                await it.sessions.create(spec())
                for number in range(3):  # the client repeats all of it
                    message_id = f"m{number}"
                    await it.sessions.prompt("r", f"look {number}", message_id=message_id)
                await it.idle()
            texts = await said(journal)
            prompts = [text for text in texts if not text.startswith(">")]
            assert prompts == ["look 0", "look 1", "look 2"], (writes, texts)
            answers = [text for text in texts if text.startswith("> done")]
            assert answers == [f"> done: look {number}" for number in range(3)]
            assert len(world.done) == 3
        raise AssertionError("it writes more than that")

    run(play())


def test_s_81_what_another_runtime_was_sent_is_looked_up_after_a_crash_and_never_sent_again() -> (
    None
):
    """Found in its thread: `sent`. Not found: `outcome_unknown`, shown, and the line goes on."""

    async def play() -> None:
        for step, found in (("turn", False), ("took", True)):
            journal, scripted = MemoryJournal(), ScriptedAdapter()
            killed = await serve(journal, others=[scripted])
            await killed.sessions.create(spec(kind=KIND))
            scripted.gates[step] = asyncio.Event()
            await killed.sessions.prompt("r", "hi", message_id="m0")
            await killed.sessions.prompt("r", "ho", message_id="m1")
            await killed.until(lambda f=found, s=scripted: len(s.told("turn")) == int(f))  # type: ignore[misc]
            for _ in range(20):
                await asyncio.sleep(0)
            await killed.kill()
            scripted.gates.clear()
            async with serving(journal, others=[scripted]) as it:
                await it.sessions.restore("r")
                await it.until(lambda s=scripted: s.threads["r"][-1:] == ["m1"])  # type: ignore[misc]
                sent = {noted.note.id for noted in await messages(journal, "r", "sent")}
                unknown = [it.note.id for it in await messages(journal, "r", "outcome_unknown")]
                assert ("sent/m0" in sent) is found
                assert unknown == ([] if found else ["outcome_unknown/m0"])
                assert [one[2] for one in scripted.told("turn")].count("m0") == int(found)
                again = await it.sessions.prompt("r", "hi", message_id="m0")
                assert again.message_id == "m0"
                assert [one[2] for one in scripted.told("turn")].count("m0") == int(found)

    run(play())


@settings(max_examples=15)
@given(st.text(min_size=1, max_size=ID).filter(lambda it: it.isprintable()), st.text(max_size=50))
def test_s_80_any_id_and_text_come_back_as_they_are(message_id: str, text: str) -> None:
    """Whatever stands in them."""

    async def play() -> None:
        journal = MemoryJournal()
        async with serving(journal) as it:
            await it.sessions.create(spec())
            taken = await it.sessions.prompt("r", text, message_id=message_id)
            assert await it.sessions.prompt("r", text, message_id=message_id) == taken
            await it.idle()
            (user,) = await messages(journal, "r", "user")
            assert (user.note.body["message_id"], user.note.body["text"]) == (message_id, text)

    run(play())
