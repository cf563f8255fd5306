"""A host in a process of its own: it resumes a stored session, and its bank pays into a file."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import attrs
from agent_framework import AgentSession, Content

from turnlock.guards import Guard, GuardRefused

from .speaking import Bank, Speaker, agent_of, loaded

PATIENCE = 60.0
"""Seconds that a test waits for another process."""


class Ledger(Bank):
    """Pays into a file, says so, and then never returns, if it hangs."""

    def __init__(self, ledger: Path, says: Connection, *, hangs: bool) -> None:
        """Pay into this file."""
        super().__init__()
        self.ledger, self.says, self.hangs = ledger, says, hangs

    async def after(self, amount: int) -> None:
        """Write the payment."""
        with self.ledger.open("a", encoding="utf-8") as file:
            file.write(f"{amount}\n")
        self.says.send("paid")
        if self.hangs:
            await asyncio.Event().wait()


@attrs.frozen
class Host:
    """Where hosts find a journal (None: they have no guard), the stored session, the ledger."""

    db: Path | None
    folder: Path

    def store(self, session: AgentSession, told: Sequence[Content]) -> None:
        """Store a session, and the answers to what it asked."""
        whole = {"session": session.to_dict(), "told": [it.to_dict() for it in told]}
        (self.folder / "session.json").write_text(json.dumps(whole), encoding="utf-8")

    def resume(self, *, hangs: bool = False) -> Resuming:
        """Resume what is stored, in another process."""
        hears, says = multiprocessing.Pipe(duplex=False)
        made = multiprocessing.get_context("fork").Process(
            target=lambda: asyncio.run(self._resumed(says, hangs=hangs)), daemon=True
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of a process that has threads
            made.start()
        says.close()
        return Resuming(made, hears)

    def paid(self) -> list[str]:
        """Return what was paid."""
        return (self.folder / "ledger").read_text(encoding="utf-8").split()

    async def _resumed(self, says: Connection, *, hangs: bool) -> None:
        stored = json.loads((self.folder / "session.json").read_text(encoding="utf-8"))
        told = [Content.from_dict(it) for it in stored["told"]]
        with nullcontext() if self.db is None else Guard.open(self.db) as guard:
            speaker = Speaker()
            bank = Ledger(self.folder / "ledger", says, hangs=hangs)
            agent = agent_of(guard, speaker, bank.tool())
            try:
                done = await agent.run(told, session=loaded(json.dumps(stored["session"])))
            except GuardRefused as refused:
                says.send(type(refused).__name__)
            else:
                says.send(" ".join([done.text, *speaker.told()]))


@attrs.frozen
class Resuming:
    """A host at work."""

    process: BaseProcess
    hears: Connection

    def said(self) -> str:
        """Return the next that it says."""
        assert self.hears.poll(PATIENCE), "it says nothing"
        return str(self.hears.recv())

    def kill(self) -> None:
        """Kill it, as kill -9 does."""
        self.process.kill()
        self.end()

    def end(self) -> None:
        """Wait for its end."""
        self.process.join(PATIENCE)
        assert self.process.exitcode is not None
