"""A real process on stdio that plays what was recorded, and what every view says of the run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import pytest
from click.testing import CliRunner

from turnlock.adapters.codex.adapter import CodexAdapter
from turnlock.adapters.codex.messages import Answered, Message
from turnlock.adapters.codex.process import Exited, ProcessName
from turnlock.adapters.codex.settings import KIND, CodexSettings
from turnlock.adapters.codex.transcripts import Step
from turnlock.adapters.codex.transport import Transport
from turnlock.cli.main import main
from turnlock.models.lifecycle_facts import LifecycleFact
from turnlock.runtime.journal.contract import open_journal
from turnlock.runtime.journal.ledger import Domain
from turnlock.server.bounds import SessionSettings
from turnlock.server.routing import Role

from ...server import faces
from ...server.peers import messages, serving, spec
from .played import player
from .recordings import recording
from .tapes import People

STORIES: Final = {
    "02_cmd_accept": [
        "TOOL_APPROVAL_REQUESTED",
        "TOOL_APPROVED",
        "TOOL_EXECUTION_STARTED",
        "TOOL_EXECUTION_SUCCEEDED",
    ],
    "07_interrupt_pending": ["TOOL_APPROVAL_REQUESTED", "TOOL_DENIED"],
    "raw_decline": ["TOOL_APPROVAL_REQUESTED", "TOOL_DENIED"],
}


@attrs.define(eq=False)
class Counted:
    """A process, and how much of what it said was read: the people wait for that."""

    transport: Transport
    steps: Sequence[Step]
    said: int = 0
    dead: bool = False
    exited: Exited | None = None

    @property
    def name(self) -> ProcessName:
        """Which process it is."""
        return self.transport.name

    @property
    def stderr_tail(self) -> str:
        """What it wrote to standard error."""
        return self.transport.stderr_tail

    async def read(self) -> Message | None:
        """Read, and count."""
        message = await self.transport.read()
        self.dead = message is None
        self.said += message is not None and not isinstance(message, Answered)
        return message

    async def write(self, message: Mapping[str, Any]) -> None:
        """Write."""
        await self.transport.write(message)

    async def end(self, *, grace: float) -> Exited:
        """End it."""
        self.exited = await self.transport.end(grace=grace)
        return self.exited

    def kill(self) -> None:
        """Kill it."""
        self.transport.kill()


@pytest.mark.parametrize("name", STORIES)
def test_s_30_a_process_on_stdio_is_performed_and_shown(name: str, tmp_path: Path) -> None:
    """Section 16: what it hears is what was recorded; `check`, `show`, `diagram` and HTTP agree."""
    file = tmp_path / "journal.db"
    begun: list[Counted] = []

    async def start(
        command: Sequence[str], *, cwd: str | None, env: Mapping[str, str] | None
    ) -> Counted:
        transport = await Transport.start(command, cwd=cwd, env=env)
        begun.append(Counted(transport, recording(name).steps))
        return begun[0]

    async def play() -> None:
        owner = CodexSettings(command=player(name))
        adapter = CodexAdapter(owner, start=start)
        bare = SessionSettings(preload=False)
        async with (
            await open_journal(str(file)) as journal,
            serving(journal, others=[adapter], settings=bare, real=True) as it,
        ):
            await it.sessions.create(spec(kind=KIND))
            runtime = it.sessions.life.runtimes[KIND]
            await People(it.sessions, runtime, begun[0]).play()
            await it.idle()
            async with faces.opened(journal=journal, sessions=it.sessions) as face:
                status = "interrupted" if "interrupt" in name else "idle"
                while (await runtime.view("r")).status != status:  # noqa: ASYNC110 - the journal tells nobody
                    await asyncio.sleep(0.05)
                view = (await face.client(Role.LOOK).get("/v1/runs/r")).json()
                assert view["kind"] == KIND
                assert view["session"] == "active"
                assert view["capabilities"]["execution"] == "both"
                assert view["status"] == status
            await it.sessions.terminate("r")
            facts = [fact async for fact in journal.facts("r")]
            lives = [fact.type for fact in facts if isinstance(fact, LifecycleFact)]
            assert lives == STORIES[name]
            assert [one.note.body["text"] for one in await messages(journal, "r", "assistant")]
            assert await journal.notes("r", domain=Domain.ITEM)

    asyncio.run(asyncio.wait_for(play(), 60))
    (wire,) = begun
    assert wire.exited is not None
    assert wire.exited.status == 0
    assert "player:" not in wire.stderr_tail
    look(str(file), tmp_path)


def look(file: str, folder: Path) -> None:
    """Look at the run with the commands that people have."""
    tell = CliRunner().invoke
    checked = tell(main, ["check", "--db", file])
    assert checked.exit_code == 0, checked.output
    shown = tell(main, ["show", "--db", file, "r"])
    assert shown.exit_code == 0, shown.output
    assert "TOOL_APPROVAL_REQUESTED" in shown.output
    told = json.loads(tell(main, ["show", "--db", file, "--json", "r"]).output)
    assert told["run"] == {"run_id": "r", "kind": KIND}
    picture = folder / "run.svg"
    drawn = tell(main, ["diagram", "run", "--db", file, "-o", str(picture)])
    assert drawn.exit_code == 0, drawn.output
    assert "<svg" in picture.read_text(encoding="utf-8")
    listed = tell(main, ["runs", "--db", file])
    assert listed.exit_code == 0, listed.output
    assert "r" in listed.output
