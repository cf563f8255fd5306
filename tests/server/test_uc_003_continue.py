"""UC-003: a run that is inactive is gone on with as its manifest says (S-50, S-52, S-53, S-87)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from turnlock import Claim
from turnlock.adapters.contract import VERSION, CommandRefused
from turnlock.models.run import Limits, Run
from turnlock.models.values import Json
from turnlock.runtime.journal.ledger import Cursor, Domain, Note
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.server.manifests import kept_of

from ..runtime.virtual import run
from .peers import World, said, serve, serving, spec, steps
from .runs import free, opened_turn, shared
from .scripted import KIND, ScriptedAdapter


def test_s_53_a_prompt_to_an_inactive_run_restores_it_first() -> None:
    """UC-003: `restored`, then said; the manifest shows each step, and none to a client."""

    async def play() -> None:
        for kind in ("own", KIND):
            journal, scripted = MemoryJournal(), ScriptedAdapter()
            async with serving(journal, others=[scripted]) as it:
                await it.sessions.create(spec(kind=kind))
                await it.sessions.terminate("r")
                taken = await it.sessions.prompt("r", "hi", message_id="m")
                assert taken.restored
                assert it.sessions.is_active("r")
                assert await steps(journal) == ["session", "epoch", "closed", "epoch"]
                if kind == KIND:
                    await it.until(lambda s=scripted: bool(s.told("took")))  # type: ignore[misc]
                    told = [one[0] for one in scripted.pipe]
                    assert told == ["start", "kill", "resume", "turn", "took"]
                page = await journal.ledger("r")
                shown = [entry for entry in page.entries if entry.domain is Domain.SESSION]
                assert shown == []

    run(play())


def test_s_87_what_an_active_run_does_not_take_is_named() -> None:
    """Another model, directory, option are ignored, by name; the same ones are not."""

    async def play() -> None:
        scripted = ScriptedAdapter()
        async with serving(others=[scripted]) as it:
            await it.sessions.create(spec(kind=KIND, model="small"))
            changes: Mapping[str, Json] = {
                "model": "large", "cwd": "/", "options": {"colour": "red"}
            }  # fmt: skip
            taken = await it.sessions.prompt("r", "a", message_id="a", changes=changes)
            assert taken.ignored == ("model", "cwd", "options")
            assert taken == await it.sessions.prompt("r", "a", message_id="a")
            same: Mapping[str, Json] = {"model": "small", "cwd": None, "options": None}
            assert (await it.sessions.prompt("r", "b", message_id="b", changes=same)).ignored == ()
            assert scripted.specs[-1].model == "small"

    run(play())


def test_s_53_an_inactive_run_takes_another_model_and_keeps_it() -> None:
    """A further `session` note says what it is from now on; what is not offered is refused."""

    async def play() -> None:
        journal, scripted = MemoryJournal(), ScriptedAdapter()
        async with serving(journal, others=[scripted]) as it:
            await it.sessions.create(spec(kind=KIND, model="small"))
            await it.sessions.terminate("r")
            for changes, code in (
                ({"model": "huge"}, "model_unavailable_for_runtime"),
                ({"cwd": "/"}, "invalid_value"),
            ):
                with pytest.raises(CommandRefused) as refused:
                    await it.sessions.prompt("r", "a", message_id="a", changes=changes)
                assert refused.value.code == code
                assert it.sessions.state_of("r") == "inactive"
            await it.sessions.prompt("r", "a", message_id="a", changes={"model": "large"})
            assert scripted.specs[-1].model == "large"
            await it.sessions.terminate("r")
            await it.sessions.restore("r")
            assert scripted.specs[-1].model == "large"
            created = await it.sessions.create(spec(kind=KIND, model="small"))
            assert not created.is_new  # it is known as it was created

    run(play())


def test_s_50_a_manifest_is_one_note_for_each_step_and_none_is_changed_or_shown() -> None:
    """Its steps stand in order, with what each says; no page and no end has any of it."""

    async def play() -> None:
        journal, scripted = MemoryJournal(), ScriptedAdapter()
        async with serving(journal, others=[scripted]) as it:
            asked = spec(kind=KIND, model="large", options={"colour": "red"})
            await it.sessions.create(asked)
            first = await journal.notes("r")
            await it.sessions.terminate("r")
            await it.sessions.restore("r")
            notes = await journal.notes("r")
            assert notes[: len(first)] == first
            assert [one.note.id for one in notes] == ["session/1", "epoch/1", "closed/1", "epoch/2"]
            assert {one.note.domain for one in notes} == {Domain.SESSION}
            bodies = [one.note.body for one in notes]
            assert set(bodies[0]) >= {
                *("version", "kind", "model", "cwd", "approval_policy", "sandbox", "options")
            }
            assert bodies[1]["thread_id"] == "thread/r"
            assert bodies[2]["ending"] == {"why": "terminated", "exit_status": 0}
            kept = kept_of("r", notes)
            assert kept is not None
            assert (kept.manifest.spec, kept.manifest.closed) == (asked, None)
            assert kept.manifest.epoch == bodies[3]
            assert not (await journal.ledger("r")).entries
            assert (await journal.ends(["r"])).get("r", Cursor()) == Cursor()

    run(play())


OLDER: tuple[Mapping[str, Json], ...] = (
    {},
    {"version": 0, "kind": None},
    {"version": 1, "kind": "own", "unheard_of": True},
)


@pytest.mark.parametrize("body", OLDER)
def test_s_52_manifests_of_every_older_version_are_read(body: Mapping[str, Json]) -> None:
    """What an older one left out is as it was then: a missing kind is `own`."""

    async def play() -> None:
        journal = MemoryJournal()
        await journal.declare(Run(run_id="r"))
        note = Note(domain=Domain.SESSION, kind="session", body=body, at=1.0, id="session/1")
        await journal.note("r", fence=None, notes=[note])
        kept = kept_of("r", await journal.notes("r", domain=Domain.SESSION))
        assert kept is not None
        assert kept.manifest.spec == spec()
        async with serving(journal) as it:
            await it.sessions.prompt("r", "hi", message_id="m")
            await it.idle()
            assert await said(journal) == ["hi", "> done: hi"]

    run(play())


BROKEN: tuple[tuple[str, str, Mapping[str, Json]], ...] = (
    ("own", "session", {"version": VERSION + 1}),
    ("own", "session", {"version": "1"}),
    ("own", "session", {"version": 1, "agent": "gone"}),
    ("own", "session", {"version": 1, "model": "gone:model"}),
    ("own", "session", {"version": 1, "agent": 7}),
    ("own", "epoch", {}),
    (KIND, "thread", {"thread_id": None}),
)


@pytest.mark.parametrize(("kind", "step", "body"), BROKEN)
def test_s_52_a_manifest_that_says_nothing_is_invalid_and_nothing_is_started(
    kind: str, step: str, body: Mapping[str, Json]
) -> None:
    """UC-003, its error: `runtime_reference_invalid` 409; the run stays as it is."""

    async def play() -> None:
        journal, scripted, world = MemoryJournal(), ScriptedAdapter(), World()
        await journal.declare(Run(run_id="r", kind=kind))
        notes = [Note(domain=Domain.SESSION, kind=step, body=body, at=1.0, id=f"{step}/1")]
        if step == "thread":
            manifest: Mapping[str, Json] = {"version": 1, "kind": KIND}
            notes = [
                Note(domain=Domain.SESSION, kind=kind, body=told, at=1.0, id=f"{kind}/1")
                for kind, told in (("session", manifest), ("epoch", body))
            ]
        await journal.note("r", fence=None, notes=notes)
        async with serving(journal, world, others=[scripted]) as it:
            for command in (
                it.sessions.prompt("r", "hi", message_id="m"),
                it.sessions.restore("r"),
            ):
                with pytest.raises(CommandRefused) as refused:
                    await command
                assert refused.value.code == "runtime_reference_invalid"
            assert it.sessions.state_of("r") == "inactive"
        assert (scripted.pipe, world.asked) == ([], [])
        assert len(await journal.notes("r")) == len(notes)

    run(play())


def test_s_52_an_invalid_conversation_is_refused_before_anything_is_written() -> None:
    """A prompt and a restore: no fact, no note, no owner; a call that ran stays as it was."""

    async def play() -> None:
        for is_known in (True, False):
            journal, world = MemoryJournal(), World()
            async with serving(journal, world) as it:
                if is_known:
                    await it.sessions.create(spec())
            claim = Claim(turn_id="t", invocation_id="a", attempt=1, worker="w")
            await shared(journal, opened_turn(free("a")), claim, run=Run(run_id="r"))
            broken = Note(domain=Domain.MESSAGE, kind="user", body={"x": 1}, at=1.0, id="said/7")
            await journal.note("r", fence=None, notes=[broken])
            entry = await journal.entry("r")
            facts, notes = await journal.read("r"), await journal.notes("r")
            async with serving(journal, world) as it:
                for command in (
                    it.sessions.restore("r"),
                    it.sessions.prompt("r", "hi", message_id="m"),
                    it.sessions.prompt("r", "a", message_id="m", changes={"model": "test:reader"}),
                ):
                    with pytest.raises(CommandRefused) as refused:
                        await command
                    assert refused.value.code == "runtime_reference_invalid"
                assert it.sessions.state_of("r") == "inactive"
            assert (await journal.read("r"), await journal.notes("r")) == (facts, notes)
            assert await journal.entry("r") == entry  # nobody has owned it in between
            assert not world.asked

    run(play())


def test_s_52_restore_and_terminate_ask_for_a_state() -> None:
    """S-80: done again they change nothing, and say where the ledger ends."""

    async def play() -> None:
        journal = MemoryJournal()
        async with serving(journal) as it:
            await it.sessions.create(spec(), prompt="hi", message_id="m")
            await it.idle()
            end = (await journal.ends(["r"]))["r"]
            assert [await it.sessions.restore("r") for _ in range(2)] == [end, end]
            assert [await it.sessions.terminate("r") for _ in range(2)] == [end, end]
            assert await steps(journal) == ["session", "epoch", "closed"]
            assert it.runtime.runs == ()
            assert [await it.sessions.restore("r") for _ in range(2)] == [end, end]
            assert await steps(journal) == ["session", "epoch", "closed", "epoch"]

    run(play())


@pytest.mark.parametrize(
    "begun", [Run(run_id="r"), Run(run_id="r", agent_name="Ada", limits=Limits(remembered=64))]
)
def test_s_52_a_run_of_another_program_is_restored_with_the_default_agent(begun: Run) -> None:
    """It had no manifest, and has one from then on; at a server's start it is left alone."""

    async def play() -> None:
        journal, world = MemoryJournal(), World()
        async with world.agent(run=begun, journal=journal) as agent:
            await agent.run("hi")
        async with serving(journal, world) as it:
            assert not it.sessions.is_active("r")
            taken = await it.sessions.prompt("r", "ho", message_id="m")
            assert taken.restored
            await it.idle()
            assert await said(journal) == ["hi", "> done: hi", "ho", "> done: ho"]
            kept = kept_of("r", await journal.notes("r"))
            assert kept is not None
            assert kept.manifest.spec.agent == "reader"

    run(play())


def test_f_26_a_run_that_another_process_performs_is_said_to_be_elsewhere() -> None:
    """409 owned_elsewhere, until when it is owned, and no host or process in it (F-6)."""

    async def play() -> None:
        journal, world = MemoryJournal(), World()
        first = await serve(journal, world)
        await first.sessions.create(spec(), prompt="pay", message_id="m")
        await first.asked()
        async with serving(journal, world) as it:
            assert not it.sessions.is_active("r")
            for command in (
                it.sessions.prompt("r", "x", message_id="x"),
                it.sessions.restore("r"),
                it.sessions.terminate("r"),
            ):
                with pytest.raises(CommandRefused) as refused:
                    await command
                assert refused.value.code == "owned_elsewhere"
                assert set(refused.value.extra) == {"owned_until"}
                assert "turnlock:" not in str(refused.value)
            again = await it.sessions.prompt("r", "pay", message_id="m")
            assert again.message_id == "m"  # what is kept is known everywhere
            await first.kill()
            await it.sessions.restore("r")
            await it.approve()
            await it.idle()
        assert sum(world.done.values()) == 1

    run(play())
