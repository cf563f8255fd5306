"""The runs of sub-agents that the session of another run performs (S-56).

A thread that is first heard of becomes a run of its own, under that of the thread which began it.
It is owned, judged and kept like any, so it is shown and decided on like any; what is kept of it is
told to its parent's session, which has the process. It is ended with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

import attrs

from ..adapters.contract import (
    Ending,
    Manifest,
    Observation,
    RuntimeAdapter,
    SessionSpec,
    Settlement,
    Sink,
)
from ..agent.transients import Transient
from ..models.deliveries import Delivery
from ..models.errors import TurnlockError
from ..models.run import Run
from ..models.safe_text import harmless
from ..models.values import Json
from ..models.verdicts import Verdict
from ..runtime.errors import Closed, RunDiffers
from ..runtime.journal.contract import Journal
from ..runtime.journal.ledger import Domain
from ..runtime.log import logger
from ..runtime.runtime import Runtime
from .children import Children, child_id
from .manifests import Kept, closed_note, epoch_note, kept_of, session_note
from .performed import Performers, RunSink
from .restoring import bring_to_rest
from .threads import Threads

_log = logger(__name__)

ENDED: Final = "the session of the run that began it has ended"


@attrs.define(eq=False)
class _Child:
    """A sub-agent's run that is owned here."""

    run_id: str
    root: str
    """The run whose session performs it."""
    adapter: RuntimeAdapter
    kept: Kept


class SubAgents:
    """Those of all sessions here."""

    def __init__(
        self,
        *,
        journal: Journal,
        performers: Performers,
        threads: Threads,
        pass_on: Callable[[str, Transient], None],
    ) -> None:
        """Begin with none."""
        self._pass_on = pass_on
        self._journal = journal
        self._performers = performers
        self._threads = threads
        self._family = Children(journal)
        self._here: dict[str, _Child] = {}

    def of(self, root: str) -> tuple[str, ...]:
        """Return the runs that the session of a run performs beside it."""
        return tuple(it.run_id for it in self._here.values() if it.root == root)

    def root_of(self, run_id: str) -> str | None:
        """Return the run whose session performs a sub-agent's; None: it is none, or ended."""
        child = self._here.get(run_id)
        return None if child is None else child.root

    def below(
        self, run_id: str, adapter: RuntimeAdapter, runtime: Runtime
    ) -> Callable[[str, Settlement], Sink]:
        """Return what makes a sink of a thread that the session of a run has begun."""
        return partial(
            ChildSink,
            self,
            root=run_id,
            parent=run_id,
            adapter=adapter,
            runtime=runtime,
            pass_on=self._pass_on,
        )

    async def begin(
        self,
        spec: SessionSpec,
        epoch: Mapping[str, Json],
        *,
        root: str,
        adapter: RuntimeAdapter,
        runtime: Runtime,
    ) -> None:
        """Own the run of a thread, for the session of `root`.

        It has its manifest before anything of it is kept. What a process before left of it is
        brought to rest. Raises `RunDiffers` where its id is another's.
        """
        run_id = spec.run_id
        run = Run(run_id=run_id, kind=spec.kind)
        await self._journal.declare(run)
        kept = await self._kept(run_id)
        if kept is not None and kept.manifest.spec.parent != spec.parent:
            raise RunDiffers(f"run {harmless(run_id)!r} is known, and is no sub-agent's")
        self._performers.adopt(run_id, root)
        self._threads.knows(run_id, epoch)
        try:
            await runtime.open_run(run)
            if kept is None:
                await runtime.note(run_id, session_note(spec, number=1, at=runtime.now()))
                kept = Kept(manifest=Manifest(spec=spec), sessions=1)
            await bring_to_rest(kept, adapter, runtime, self._journal)
            number = kept.epochs + 1
            await runtime.note(run_id, epoch_note(epoch, number=number, at=runtime.now()))
        except BaseException:
            self._forget(run_id)
            with suppress(TurnlockError):
                await runtime.close_run(run_id, drain=0.0)
            raise
        manifest = attrs.evolve(kept.manifest, epoch=epoch, closed=None)
        kept = attrs.evolve(kept, manifest=manifest, epochs=number)
        self._here[run_id] = _Child(run_id, root, adapter, kept)

    async def _kept(self, run_id: str) -> Kept | None:
        return kept_of(run_id, await self._journal.notes(run_id, domain=Domain.SESSION))

    async def rest(self, root: str, adapter: RuntimeAdapter, runtime: Runtime) -> None:
        """Bring to rest what a dead process left of a run's sub-agents, before it is restored."""
        for run_id in await self._family.of(root):
            entry, kept = await self._journal.entry(run_id), await self._kept(run_id)
            if kept is None or not entry.busy or entry.run.kind != adapter.kind:
                continue
            self._threads.knows(run_id, kept.manifest.epoch)
            try:
                await runtime.open_run(entry.run)
                await bring_to_rest(kept, adapter, runtime, self._journal)
            finally:
                self._forget(run_id)
                if run_id in runtime.runs:
                    await runtime.close_run(run_id, drain=0.0)

    async def end(self, root: str, ending: Ending, *, runtime: Runtime) -> None:
        """Bring to rest, and let go, what the session of a run has performed beside it."""
        for child in [it for it in self._here.values() if it.root == root]:
            try:
                if child.run_id in runtime.runs:
                    await bring_to_rest(child.kept, child.adapter, runtime, self._journal)
                    number = child.kept.closings + 1
                    note = closed_note(Ending(why=ending.why), number=number, at=runtime.now())
                    await runtime.note(child.run_id, note)
                    await runtime.close_run(child.run_id, drain=0.0)
            except TurnlockError as error:  # it is another's by now, or the journal fails
                _log.warning("how %r ended is not kept: %s", child.run_id, error)
            finally:
                self._here.pop(child.run_id, None)
                self._forget(child.run_id)

    def _forget(self, run_id: str) -> None:
        self._threads.forget(run_id)
        self._performers.forget(run_id)


class ChildSink(RunSink):
    """What is said of a sub-agent's thread; its run is begun with the first that is to be kept."""

    def __init__(  # noqa: PLR0913 - what a sub-agent's run is made of
        self,
        agents: SubAgents,
        thread_id: str,
        settlement: Settlement,
        *,
        root: str,
        parent: str,
        adapter: RuntimeAdapter,
        runtime: Runtime,
        pass_on: Callable[[str, Transient], None],
    ) -> None:
        """Say it for the session of `root`; the thread was begun by that of the run `parent`."""
        run_id = child_id(parent, thread_id)
        super().__init__(run_id, runtime, pass_on=pass_on, ended=_ignored, child=self._below)
        self._agents = agents
        self._spec = SessionSpec(run_id=run_id, kind=adapter.kind, parent=parent)
        self._epoch: Mapping[str, Json] = {"thread_id": thread_id, "settlement": settlement}
        self._root = root
        self._adapter = adapter
        self._beginning = asyncio.Lock()

    def _below(self, thread_id: str, settlement: Settlement) -> Sink:
        """Return what is said of a thread that this one has begun."""
        return ChildSink(
            self._agents,
            thread_id,
            settlement,
            root=self._root,
            parent=self._run_id,
            adapter=self._adapter,
            runtime=self._runtime,
            pass_on=self._pass_on,
        )

    async def hear(
        self, observations: Sequence[Observation], deliveries: Sequence[Delivery]
    ) -> tuple[Verdict, ...]:
        """Keep it, in the run of the thread."""
        async with self._beginning:
            if self._agents.root_of(self._run_id) is None:
                if self._root not in self._runtime.runs:
                    raise Closed(f"run {self._run_id!r} is performed no more: {ENDED}")
                await self._agents.begin(
                    self._spec,
                    self._epoch,
                    root=self._root,
                    adapter=self._adapter,
                    runtime=self._runtime,
                )
        return await super().hear(observations, deliveries)


def _ignored(run_id: str, ending: Ending) -> None:
    """Take no notice: it is the process of its parent's session that ends."""
