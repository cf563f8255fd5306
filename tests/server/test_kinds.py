"""A server of several kinds of runs, with agents of its own or without (S-5, S-51, S-77)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import attrs
import pytest

from turnlock.adapters.contract import CommandRefused, RuntimeAdapter, SessionSpec
from turnlock.models.errors import InvalidValue
from turnlock.server.face import ServerSettings
from turnlock.server.hub import HubSettings
from turnlock.server.opening import Options, opened
from turnlock.server.shown import Sent

from ..runtime.virtual import run
from .scripted import KIND, ScriptedAdapter
from .threads import assistant


def options(*adapters: RuntimeAdapter, own: bool = False, kind: str = KIND) -> Options:
    return Options(
        db="memory:",
        agents={"assistant": assistant()} if own else {},
        settings=ServerSettings(),
        listen=("127.0.0.1",),
        adapters=adapters,
        kind=kind,
    )


def test_s_5_a_server_without_agents_performs_runs_of_another_kind() -> None:
    """And says what kinds it has; what is kept of such a run is shown at once, not when polled."""

    async def play() -> None:
        scripted = ScriptedAdapter()
        async with opened(options(scripted)) as it:
            sessions, hub = it.face.sessions, it.face.hub
            assert sessions is not None
            assert (sessions.default_kind, [*sessions.adapters]) == (KIND, [KIND])
            created = await sessions.create(SessionSpec(run_id="r", kind=KIND))
            assert created.kind == KIND

            subscription = hub.subscribe("r")
            while not any(getattr(one, "name", "") == "live" for one in await anext(subscription)):
                pass
            session = scripted.sessions["r"]
            await sessions.prompt("r", "go", message_id="m")
            await asyncio.sleep(HubSettings().poll * 10.5)  # between two looks
            before = asyncio.get_running_loop().time()
            await session.asks_for("i1", command="ls")
            while not any(
                isinstance(one, Sent) and b"i1" in one.envelope for one in await anext(subscription)
            ):
                pass
            assert asyncio.get_running_loop().time() == before
            subscription.close()

    run(play())


def test_s_51_both_kinds_stand_beside_each_other() -> None:
    async def play() -> None:
        async with opened(options(ScriptedAdapter(), own=True, kind="own")) as it:
            sessions = it.face.sessions
            assert sessions is not None
            for run_id, kind in (("a", "own"), ("b", KIND)):
                await sessions.create(SessionSpec(run_id=run_id, kind=kind))
                assert await sessions.kind_of(run_id) == kind

    run(play())


@pytest.mark.parametrize(("kind", "fix"), [("own", "give scripted"), ("guard", "give scripted")])
def test_s_51_the_default_is_one_of_the_kinds(kind: str, fix: str) -> None:
    with pytest.raises(InvalidValue, match=fix):
        options(ScriptedAdapter(), kind=kind).check()
    with pytest.raises(InvalidValue, match="--agent, --runtime codex, --world or --mcp"):
        attrs.evolve(options(), on_pending="deny").check()
    options().check()  # it shows, and people decide


def test_what_an_adapter_holds_is_let_go_last() -> None:
    """After its sessions have ended, which need it."""

    class Holding(ScriptedAdapter):
        async def close(self) -> None:
            self.pipe.append(("closed",))

    async def play() -> None:
        holding = Holding()
        async with opened(options(holding)) as it:
            assert it.face.sessions is not None
            await it.face.sessions.create(SessionSpec(run_id="r", kind=KIND))
        assert [told[0] for told in holding.pipe] == ["start", "kill", "closed"]

    run(play())


def test_s_51_a_run_goes_on_only_where_its_owner_lets_it_work_now(tmp_path: Path) -> None:
    """A folder below no root any more is refused when the run is restored, and nothing begins."""
    work, other = tmp_path / "work", tmp_path / "other"
    for folder in (work, other):
        folder.mkdir()

    async def play() -> None:
        db = str(tmp_path / "a.db")
        for root, scripted in ((work, ScriptedAdapter()), (other, ScriptedAdapter())):
            given = attrs.evolve(options(scripted), db=db, roots=(str(root),))
            async with opened(given) as it:
                assert it.face.sessions is not None
                if root is work:
                    await it.face.sessions.create(SessionSpec(run_id="r", kind=KIND, cwd=str(work)))
                    continue
                scripted.threads["r"] = []
                with pytest.raises(CommandRefused, match="no folder below a --root") as refused:
                    await it.face.sessions.restore("r")
                assert refused.value.code == "runtime_reference_invalid"
                assert scripted.pipe == []

    asyncio.run(play())


def test_s_53_a_run_that_nobody_performs_is_restored_with_other_settings() -> None:
    """They stand in its manifest from then on; one that is active keeps its own."""

    async def play() -> None:
        scripted = ScriptedAdapter()
        async with opened(options(scripted)) as it:
            sessions = it.face.sessions
            assert sessions is not None
            await sessions.create(SessionSpec(run_id="r", kind=KIND))
            await sessions.restore("r", changes={"model": "large"})
            assert [spec.model for spec in scripted.specs] == ["small"]
            await sessions.terminate("r")
            await sessions.restore("r", changes={"model": "large"})
            await sessions.terminate("r")
            await sessions.restore("r")
            assert [spec.model for spec in scripted.specs] == ["small", "large", "large"]

    run(play())
