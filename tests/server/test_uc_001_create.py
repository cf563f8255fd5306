"""UC-001: a run is created, under its id and configuration, once (S-51, S-80)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from turnlock import Run
from turnlock.adapters.contract import CommandRefused
from turnlock.models.errors import InvalidValue, TurnlockError, UnknownRun
from turnlock.runtime.errors import RunDiffers
from turnlock.runtime.journal.ledger import START
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.server.bounds import SessionSettings

from ..runtime.virtual import run
from .peers import MortalJournal, World, said, serve, serving, spec, steps
from .scripted import ScriptedAdapter


def test_uc_001_kinds_given_omitted_unknown() -> None:
    """Each kind that is offered is created; one that is not is 422, and nothing is declared."""

    async def play() -> None:
        journal, scripted = MemoryJournal(), ScriptedAdapter()
        async with serving(journal, others=[scripted]) as it:
            assert it.sessions.default_kind == "own"
            for run_id, kind in (("a", "own"), ("b", "scripted")):
                created = await it.sessions.create(spec(run_id, kind=kind))
                assert (created.kind, created.is_new, created.cursor) == (kind, True, START)
                assert created.capabilities == it.sessions.adapters[kind].capabilities
                assert it.sessions.state_of(run_id) == "active"
                assert await it.sessions.kind_of(run_id) == kind
                assert await steps(journal, run_id) == ["session", "epoch"]
            with pytest.raises(CommandRefused) as refused:
                await it.sessions.create(spec("c", kind="guard"))
            assert (refused.value.code, refused.value.at) == ("invalid_value", "kind")
            with pytest.raises(UnknownRun):
                await journal.entry("c")
            assert scripted.pipe == [("start", "b")]

    run(play())


def test_s_51_a_model_that_is_not_offered_declares_no_run() -> None:
    """UC-001, its error: `model_unavailable_for_runtime`, and the journal holds nothing."""

    async def play() -> None:
        journal = MemoryJournal()
        async with serving(journal, others=[ScriptedAdapter()]) as it:
            for kind in ("own", "scripted"):
                with pytest.raises(CommandRefused) as refused:
                    await it.sessions.create(spec("r", kind=kind, model="nobody:nothing"))
                assert refused.value.code == "model_unavailable_for_runtime"
            assert await journal.runs() == ()
            created = await it.sessions.create(spec("r", model="test:reader"))
            assert created.is_new

    run(play())


@pytest.mark.parametrize(
    ("more", "at"),
    [
        ({"agent": "nobody"}, "agent"),
        ({"cwd": "/"}, "cwd"),
        ({"sandbox": "none"}, "sandbox"),
        ({"approval_policy": "never"}, "approval_policy"),
        ({"options": {"colour": "red"}}, "options.colour"),
    ],
)
def test_s_51_what_the_owner_does_not_allow_is_refused_by_name(
    more: dict[str, object], at: str
) -> None:
    """S-51, S-86: 422 with the field, before anything is declared."""

    async def play() -> None:
        journal = MemoryJournal()
        async with serving(journal) as it:
            with pytest.raises(CommandRefused) as refused:
                await it.sessions.create(spec("r", **more))
            assert (refused.value.code, refused.value.at) == ("invalid_value", at)
            assert await journal.runs() == ()

    run(play())


def test_s_51_a_cwd_lies_below_a_root_with_its_links_resolved(tmp_path: Path) -> None:
    """A link that leads out of the root, a path with dots, a file and nothing are refused."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "work").mkdir(parents=True)
    outside.mkdir()
    (root / "out").symlink_to(outside)
    (root / "in").symlink_to(root / "work")
    (root / "file").write_text("")

    async def play() -> None:
        settings = SessionSettings(roots=(str(root),))
        adapter = ScriptedAdapter()
        async with serving(others=[adapter], settings=settings) as it:
            good = {"a": root, "b": root / "work", "c": root / "in", "d": root / "out/../work"}
            for run_id, cwd in good.items():
                with suppress(CommandRefused):
                    await it.sessions.create(spec(run_id, kind="scripted", cwd=str(cwd)))
            found = {it.run_id: it.cwd for it in adapter.specs}
            assert found == {"a": str(root), "b": str(root / "work"), "c": str(root / "work")}
            bad = (root / "out", root / "..", outside, root / "file", root / "none", "work", "\0")
            for bad_cwd in map(str, bad):
                with pytest.raises(CommandRefused) as refused:
                    await it.sessions.create(spec("x", kind="scripted", cwd=bad_cwd))
                assert refused.value.at == "cwd"
            with pytest.raises(UnknownRun):
                await it.sessions.kind_of("x")

    run(play())


def test_s_80_the_same_again_is_the_first_answer_and_another_differs() -> None:
    """S-80, F-23: the id and the configuration make it one run, at once and after a restart."""

    async def play() -> None:
        journal, world = MemoryJournal(), World()
        async with serving(journal, world) as it:
            both = await asyncio.gather(
                *(it.sessions.create(spec(), prompt="hi", message_id="m") for _ in range(2))
            )
            assert sorted(created.is_new for created in both) == [False, True]
            assert len({created.cursor for created in both}) == 1
            for other in (spec(agent="reader", model="test:reader"), spec(kind="scripted")):
                with pytest.raises((RunDiffers, CommandRefused)):
                    await it.sessions.create(other)
            with pytest.raises(CommandRefused) as refused:
                await it.sessions.create(spec(), prompt="ho", message_id="m")
            assert refused.value.code == "conflicting_duplicate"
            await it.idle()
        async with serving(journal, world) as it:
            again = await it.sessions.create(spec(), prompt="hi", message_id="m")
            assert (again.is_new, again.cursor) == (False, both[0].cursor)
            await it.sessions.terminate("r")
            again = await it.sessions.create(spec(), prompt="hi", message_id="m")
            assert (again.is_new, again.cursor) == (False, both[0].cursor)
            assert it.sessions.state_of("r") == "inactive"  # it asks for a run, not for a session
        assert await said(journal) == ["hi", "> done: hi"]
        assert world.asked == ["hi"]

    run(play())


def test_s_51_a_run_of_another_program_is_not_taken_for_a_new_one() -> None:
    """Its facts and notes are not a session's: 409 run_differs, and nothing is kept in it."""

    async def play() -> None:
        journal, world = MemoryJournal(), World()
        async with world.agent(run="r", journal=journal) as agent:
            await agent.run("hi")
        async with serving(journal, world) as it:
            with pytest.raises(RunDiffers):
                await it.sessions.create(spec())
            assert await steps(journal) == []

    run(play())


def test_k_61_an_id_that_is_no_id_is_refused() -> None:
    """An empty one, one with a lone surrogate."""

    async def play() -> None:
        async with serving() as it:
            for run_id in ("", "\ud800"):
                with pytest.raises(InvalidValue):
                    await it.sessions.create(spec(run_id))

    run(play())


def test_s_51_killed_after_each_step_and_asked_again_it_is_created_once() -> None:
    """S-51, section 14: what stands after a kill at each write leads on, and nothing is doubled.

    A client that heard nothing asks again with the same id, and is answered.
    """

    async def play() -> None:
        outcomes: set[tuple[str, ...]] = set()
        for writes in range(1, 40):
            for kept in (False, True):
                journal, world = MemoryJournal(), World()
                mortal = MortalJournal(journal, writes=writes, kept=kept)
                killed = await serve(mortal, world)
                with suppress(TurnlockError):
                    await killed.sessions.create(spec(), prompt="look", message_id="m")
                    await killed.idle()
                if not mortal.died.is_set():
                    await killed.close()
                    assert writes > 10
                    assert len(outcomes) > 2
                    return
                await killed.kill()
                with suppress(UnknownRun):
                    outcomes.add(tuple(await steps(journal)))
                async with serving(journal, world) as it:
                    created = await it.sessions.create(spec(), prompt="look", message_id="m")
                    again = await it.sessions.create(spec(), prompt="look", message_id="m")
                    assert (again.is_new, again.cursor) == (False, created.cursor)
                    await it.idle()
                assert (await said(journal))[::2] == ["look", "> done: look"], (writes, kept)
                assert (await journal.entry("r")).run == Run(run_id="r")
        raise AssertionError("it writes more than that")

    run(play())
