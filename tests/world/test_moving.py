"""Worlds that move: the same world elsewhere, and nothing in it that anybody there has allowed."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.world import moved

from turnlock.agent.messages import Prompt
from turnlock.engine.kernel import Kernel
from turnlock.models.deliveries import Claim, Scope
from turnlock.models.errors import InvalidValue
from turnlock.runtime.journal.contract import Journal, open_journal
from turnlock.runtime.journal.ledger import Noted
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.tools.policy import InDoubt
from turnlock.runtime.tools.tool import tool
from turnlock.runtime.tools.toolbox import Toolbox
from turnlock.views.call_view import CallView
from turnlock.world import AgentSpec, Host, World, disarming, moving, worlds
from turnlock.world.entries import AgentPut, WorldMade, read_world_entry
from turnlock.world.errors import UnknownWorld
from turnlock.world.moving import ExportError, export_world, import_world
from turnlock.world.names import member_of, request_id

from ..runtime.virtual import LoopClock, run
from .moved import exported, kept_by, lines_of, scene_that_pays
from .playing import BRIEF, calls, play, says
from .scenes import Scene

WITH_TOOLS = AgentSpec(model="test:alice", tools=("pay", "look"))


class Shop:
    """Tools that say what was really done."""

    def __init__(self) -> None:
        self.paid: list[str] = []

    @property
    def tools(self) -> Toolbox:
        @tool(approval=True, safe_to_repeat=True, in_doubt=InDoubt.RETRY_IF_SAFE)
        async def pay(to: str) -> str:
            """Pay somebody."""
            self.paid.append(to)
            return "paid"

        @tool(safe_to_repeat=True, in_doubt=InDoubt.RETRY_IF_SAFE)
        async def look(to: str) -> str:
            """Look at somebody, freely."""
            self.paid.append(f"look {to}")
            return "seen"

        return Toolbox([pay, look])


def names_in(folder: Path) -> list[str]:
    """The names of the files in a folder."""
    return [it.name for it in folder.iterdir()]


def _takes_nothing(_: Kernel, *, now: float) -> disarming.Disarmed:
    return disarming.Disarmed()


def _keeps_all(notes: Sequence[Noted], _: object) -> tuple[Noted, ...]:
    return tuple(notes)


async def performed(journal: Journal, world: str = "demo") -> tuple[list[str], list[CallView]]:
    """Have an imported world performed by a host with all tools; what was done, and what waits."""
    shop = Shop()
    await World(journal, world, clock=LoopClock()).put_agent("alice", WITH_TOOLS)
    alice = says("Fine.")
    async with Host(
        journal, world, models={"test:alice": alice, "script:x": alice}, toolboxes=shop.tools,
        settings=BRIEF, clock=LoopClock(),
    ) as host:  # fmt: skip
        await asyncio.sleep(60)
        waits = list(host.runtime.pending(f"{world}/plan/alice")) if host.runtime.runs else []
    return shop.paid, waits


async def done(scene: Scene, folder: Path, *, into: str | None = None) -> list[str]:
    """Move a scene's world, and return what a host there does unasked."""
    elsewhere = MemoryJournal()
    await import_world(elsewhere, await exported(scene, folder), world=into, clock=LoopClock())
    return (await performed(elsewhere, into or "demo"))[0]


def test_w_72_a_world_comes_along_as_it_is(tmp_path: Path) -> None:
    """Logs under the same numbers, facts and notes in their places; a second file says the same."""

    async def it() -> None:
        scene = await scene_that_pays(approved=False)
        told = await export_world(scene.journal, "demo", tmp_path / "demo.world")
        elsewhere = MemoryJournal()
        found = await import_world(elsewhere, tmp_path / "demo.world", clock=LoopClock())

        before, after = await kept_by(scene.journal), await kept_by(elsewhere)
        assert after.keys() == before.keys()
        assert after["demo/plan"] == before["demo/plan"]
        assert after["run demo/plan/alice"] == before["run demo/plan/alice"]
        assert [it.entry_id for it in after["demo"]] == [it.entry_id for it in before["demo"]]
        assert (told.chats, told.runs, told.facts) == (found.chats, found.runs, found.facts)
        assert (found.revoked, found.rejected, found.lost) == (0, 0, 0)
        assert (found.was, found.digest) == ("demo", told.digest)

        again = await export_world(elsewhere, "demo", tmp_path / "again.world")
        assert (again.entries, again.facts) == (told.entries, told.facts)
        assert lines_of(tmp_path / "again.world")[-1] == lines_of(tmp_path / "demo.world")[-1]

    run(it())


@pytest.mark.parametrize("into", [None, "other"])
@pytest.mark.parametrize("begins", ["approved", "free", "started"])
@pytest.mark.parametrize("disarmed", [True, False], ids=["as it is", "control"])
def test_w_72_an_import_brings_no_authority(
    begins: str, into: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disarmed: bool
) -> None:
    """What facts claim was approved, free, or begun there is not done here; the control does it."""
    if not disarmed:
        monkeypatch.setattr(moving, "disarm", _takes_nothing)

    async def it() -> None:
        scene = await scene_that_pays(turn=begins == "approved")
        if begins != "approved":
            await scene.ask("alice", {"to": "eve"}, gated=False, tool="look")
        if begins == "started":
            claim = Claim(turn_id="t1", invocation_id="i0", attempt=1, lease=1.0)
            await scene.submit("alice", claim)
        outcome = await done(scene, tmp_path, into=into)
        assert outcome == ([] if disarmed else [{"approved": "eve"}.get(begins, "look eve")])

    run(it())


@pytest.mark.parametrize("kept", [False, True], ids=["as it is", "control"])
def test_w_72_an_answer_whose_turn_was_not_opened_is_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    """Its calls would be done by a host that finds them: what needs no approval at once."""
    monkeypatch.setattr(moved, "ASKS", calls("look", to="eve"))
    if kept:
        monkeypatch.setattr(moving, "without_unopened", _keeps_all)

    async def it() -> None:
        scene = await scene_that_pays(turn=False)
        assert await done(scene, tmp_path) == (["look eve"] if kept else [])

    run(it())


def test_w_72_what_waits_for_a_person_waits_on_and_is_asked_again(tmp_path: Path) -> None:
    """Exported while it runs, with a grant for the session; here each call is asked for."""

    async def it() -> None:
        shop = Shop()
        alice = says(calls("pay", to="bob"), "Paid.", calls("pay", to="bob"), "Paid again.")
        played = await play({"alice": (alice, {"tools": ("pay",)})})
        async with played.host(toolboxes=shop.tools) as host:
            await played.chat.say("human", "pay", message_id="m1")
            await asyncio.sleep(1)
            (waits,) = host.runtime.pending("demo/plan/alice")
            at = (waits.run_id, waits.turn_id, waits.invocation_id)
            judged = await played.chat.decide(
                request_id(*at),
                approved=True,
                decided_by="me",
                scope=Scope.SESSION,
                arguments_digest=waits.arguments_digest,
            )
            assert judged.accepted
            await host.idle("plan")
            await export_world(played.journal, "demo", tmp_path / "demo.world")
        assert shop.paid == ["bob"]

        elsewhere, shop = MemoryJournal(), Shop()
        found = await import_world(elsewhere, tmp_path / "demo.world", clock=LoopClock())
        assert found.revoked == 1
        world = World(elsewhere, "demo", clock=LoopClock())
        assert (await world.configuration()).agents["alice"].spec.tools == ()
        await world.put_agent("alice", AgentSpec(model="test:alice", tools=("pay",)))
        async with Host(
            elsewhere, "demo", models=played.models, toolboxes=shop.tools, settings=BRIEF,
            clock=LoopClock(),
        ) as host:  # fmt: skip
            await world.chat("plan").say("human", "and again", message_id="m2")
            await asyncio.sleep(1)
            (waits,) = host.runtime.pending("demo/plan/alice")
            assert shop.paid == []
            judged = await world.chat("plan").decide(
                request_id(waits.run_id, waits.turn_id, waits.invocation_id),
                approved=True,
                decided_by="me",
                arguments_digest=waits.arguments_digest,
            )
            assert judged.accepted
            await host.idle("plan")
        assert shop.paid == ["bob"]
        assert [it.text for it in alice.asked[-1].messages if isinstance(it, Prompt)] == [
            "human: pay",
            "human: and again",
        ]

    run(it())


def test_w_72_an_imported_agent_has_no_tools_until_it_is_put_again(tmp_path: Path) -> None:
    """W-15: and nobody need remember which they were."""

    async def it() -> None:
        scene = await scene_that_pays()
        elsewhere = MemoryJournal()
        await import_world(elsewhere, await exported(scene, tmp_path), clock=LoopClock())
        entries = await elsewhere.entries("demo")
        put = [it for it in entries if isinstance(read_world_entry(it), AgentPut)]
        assert [it.body["spec"]["tools"] for it in put] == [[], []]  # type: ignore[index, call-overload]
        assert put[-1].body["was"] == {"tools": ["pay"]}  # type: ignore[index, call-overload]
        it = (await World(elsewhere, "demo").configuration()).agents["alice"]
        assert (it.spec.tools, it.spec.model) == ((), "test:alice")

    run(it())


def test_w_72_under_another_name_every_id_says_it_and_the_old_one_is_kept(tmp_path: Path) -> None:
    async def it() -> None:
        played = await play({"alice": says("Yes.")})
        async with played.host() as host:
            await played.chat.say("human", "demo/plan/alice/said/2 is text", message_id="m1")
            await host.idle("plan")
        await played.chat.say("human", "more", message_id="m2", reply_to="demo/plan/alice/said/2")
        path = tmp_path / "demo.world"
        await export_world(played.journal, "demo", path)
        await import_world(played.journal, path, world="other", clock=LoopClock())

        kept = await kept_by(played.journal)
        chat = [it.entry_id for it in kept["other/plan"]]
        assert chat == ["say/human/m1", "other/plan/alice/said/2", "say/human/m2"]
        bodies: list[Any] = [it.body for it in kept["other/plan"]]
        assert bodies[0]["text"] == "demo/plan/alice/said/2 is text"
        assert bodies[2]["reply_to"] == "other/plan/alice/said/2"
        made = read_world_entry(kept["other"][0])
        assert isinstance(made, WorldMade)
        assert (made.was, made.until) == ("demo", len(kept["other"]))
        run_of, facts, notes = kept["run other/plan/alice"]
        assert member_of(run_of.run_id) is not None
        assert {fact.run_id for fact in facts} <= {"other/plan/alice"}
        assert [note.id for _, note in notes] == [
            note.id for _, note in kept["run demo/plan/alice"][2]
        ]
        async with Host(
            played.journal, "other", models=played.models, settings=BRIEF, clock=LoopClock()
        ) as host:
            await host.idle("plan")
        chat = [it.entry_id for it in await played.journal.entries("other/plan")]
        assert chat[3:] == ["other/plan/alice/said/4"]
        assert {world.name for world in await worlds(played.journal)} == {"demo", "other"}

    run(it())


def test_w_72_a_name_that_is_taken_stays_as_it_is(tmp_path: Path) -> None:
    """Imported twice, over the world itself, or over runs that are left of one: nothing changes."""

    async def it() -> None:
        scene = await scene_that_pays()
        path = await exported(scene, tmp_path)
        elsewhere = MemoryJournal()
        await import_world(elsewhere, path, clock=LoopClock())
        stray = MemoryJournal()
        await stray.declare((await scene.journal.entry("demo/plan/alice")).run)
        other = MemoryJournal()
        await other.append_entry("demo/left", "x", {"kind": "notice", "text": "x"}, at=1.0)
        for journal in (elsewhere, scene.journal, stray, other):
            before = await kept_by(journal)
            with pytest.raises(ExportError, match="is there already"):
                await import_world(journal, path, clock=LoopClock())
            assert await kept_by(journal) == before

    run(it())


def test_w_72_what_is_sealed_stays_sealed_and_keeps_its_name(tmp_path: Path) -> None:
    """An envelope opens in its own run alone, so it comes along under the world's own name."""

    async def it() -> None:
        scene = await Scene.begin()
        await scene.ask("alice", {"sealed": "AAAA"})
        path = await exported(scene, tmp_path)
        elsewhere = MemoryJournal()
        with pytest.raises(ExportError, match="sealed"):
            await import_world(elsewhere, path, world="other", clock=LoopClock())
        assert await kept_by(elsewhere) == {}
        await import_world(elsewhere, path, clock=LoopClock())
        assert (await kept_by(elsewhere))["run demo/plan/alice"] == (await kept_by(scene.journal))[
            "run demo/plan/alice"
        ]

    run(it())


def test_w_72_a_file_is_whole_and_its_owners_alone(tmp_path: Path) -> None:
    async def it() -> None:
        scene = await scene_that_pays()
        path = await exported(scene, tmp_path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert names_in(tmp_path) == ["demo.world"]
        with pytest.raises(ExportError, match="there already"):
            await exported(scene, tmp_path)
        with pytest.raises(ExportError, match="No such file"):
            await export_world(scene.journal, "demo", tmp_path / "no" / "demo.world")
        for no_name in ("", ".", "/"):
            with pytest.raises(ExportError, match="give another name"):
                await export_world(scene.journal, "demo", no_name)
        with pytest.raises(UnknownWorld):
            await export_world(scene.journal, "none", tmp_path / "none.world")
        with pytest.raises(ExportError, match="No such file"):
            await import_world(scene.journal, tmp_path / "none.world")
        assert names_in(tmp_path) == ["demo.world"]

    run(it())


def test_w_72_between_two_files_on_disk(tmp_path: Path) -> None:
    """As a person does it: one SQLite file to another, with runs of before and after a clearing."""

    async def it() -> None:
        async with (
            await open_journal(tmp_path / "here.db") as here,
            await open_journal(tmp_path / "there.db") as there,
        ):
            scene = await Scene.begin("alice", "bob", journal=here)
            await scene.say("hello")
            await scene.ask("alice", {"n": 1})
            await scene.world.clear("plan", "alice")
            scene.turns.clear()
            await scene.ask("alice", {"n": 2}, gated=False)
            await export_world(here, "demo", tmp_path / "demo.world")
            found = await import_world(there, tmp_path / "demo.world")
            assert (found.runs, found.rejected) == (2, 1)
            before, after = await kept_by(here), await kept_by(there)
            assert before.keys() == after.keys()
            assert await there.check() == ()

    asyncio.run(it())


def test_w_72_who_makes_an_imported_world_as_it_was_changes_nothing(tmp_path: Path) -> None:
    """A program that makes its world whenever it begins goes on as ever."""

    async def it() -> None:
        scene = await scene_that_pays()
        elsewhere = MemoryJournal()
        await import_world(elsewhere, await exported(scene, tmp_path), clock=LoopClock())
        before = await kept_by(elsewhere)
        world = World(elsewhere, "demo", clock=LoopClock())
        await world.make(title="Demo")
        assert await kept_by(elsewhere) == before
        with pytest.raises(InvalidValue, match="is made already"):
            await world.make(title="Other")

    run(it())
