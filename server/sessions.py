"""The runs that are performed here, and what is commanded of them (server.md 8, 11, 13)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final, Literal, Self, TypeAlias

import attrs

from ..adapters.contract import Capabilities, CommandRefused, Manifest, RuntimeAdapter, SessionSpec
from ..adapters.own import OwnAdapter
from ..adapters.rest import unknown
from ..agent.transients import Transient
from ..models.deliveries import Delivery, Report
from ..models.errors import InvalidValue, TurnlockError, UnknownRun, shown
from ..models.run import OWN, Run
from ..models.safe_text import harmless
from ..models.values import Json
from ..models.verdicts import Verdict
from ..runtime.errors import JournalOwned, RunFenced, RunForgotten
from ..runtime.journal.contract import Journal, RunEntry
from ..runtime.journal.ledger import START, Cursor
from ..runtime.leases import Leases
from ..runtime.log import logger
from ..runtime.runtime import Runtime
from ..runtime.scheduling import Clock
from ..runtime.settings import Settings
from ..runtime.tools.toolbox import Toolbox
from .bounds import SessionSettings, allowed, capabilities_among, changed_by
from .catalogue import Catalogue, Offered
from .children import caller_in, parent_in
from .life import Life
from .line import Taken, Waiting, check_message_id, conflicting, taken_before, waiting_id
from .manifests import Kept, no_run_of_its_own
from .orphans import Orphans
from .passed_on import Passed, pass_on, take_up
from .performed import Performed
from .refusals import differs, incapable, owned_elsewhere
from .worlds_known import check_no_member

_log = logger(__name__)

When: TypeAlias = Literal["idle", "steer"]
"""When a prompt is said: once nothing is owed, or into the turn that goes on (S-83)."""
State: TypeAlias = Literal["active", "inactive"]
"""Whether a run is performed here now (F-31)."""

OUTCOME_UNKNOWN: Final = "outcome unknown: nobody knows what became of it, and the next turn began"
"""What is said of a doubt that a prompt does not wait for (S-26)."""


def nobody_listens(_: str, __: Transient) -> None:
    """Pass on nothing."""


def nobody_watches(_: str) -> bool:
    """Say that no run has a subscriber."""
    return False


@attrs.frozen(kw_only=True)
class Created:
    """A run that was created, or known as such: `is_new` where this command made it."""

    run_id: str
    kind: str
    capabilities: Capabilities
    cursor: Cursor
    is_new: bool


class Sessions:
    """The sessions of one server. Enter it after its runtime, and before anything is asked."""

    def __init__(  # noqa: PLR0913 - what a server is made of
        self,
        *,
        journal: Journal,
        adapters: Sequence[RuntimeAdapter],
        default_kind: str = OWN,
        settings: SessionSettings | None = None,
        pass_on: Callable[[str, Transient], None] = nobody_listens,
        is_watched: Callable[[str], bool] = nobody_watches,
        runtime_settings: Settings | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Prepare; `pass_on` is the hub's, `is_watched` says whether a run has a subscriber.

        Runs of our own kind are performed by the runtime of their adapter; those of each other kind
        are owned and judged by one that is made here, with `runtime_settings` and `clock`.
        """
        self.journal: Final = journal
        self.adapters: Final = {adapter.kind: adapter for adapter in adapters}
        self.default_kind: Final = default_kind
        self.settings: Final = settings or SessionSettings()
        self.catalogue: Final = Catalogue(self.adapters, known_for=self.settings.models_for)
        self.life: Final = Life(
            journal=journal,
            adapters=self.adapters,
            settings=self.settings,
            pass_on=pass_on,
            runtime_settings=runtime_settings or Settings(),
            clock=clock,
        )
        self.life.takes_posts = self._taken_up
        self._orphans = Orphans(life=self.life, settings=self.settings, is_watched=is_watched)

    async def __aenter__(self) -> Self:
        """Begin to restore what was performed when the server ended, and to preload models."""
        await self.life.open()
        self._orphans.begin()
        if self.settings.preload:
            self.life.tasks.spawn("preload models", self.catalogue.preload())
        return self

    async def __aexit__(self, *_: object) -> None:
        """End as `stop` does."""
        await self.stop()

    async def stop(self) -> None:
        """Take no more commands, and end all sessions within `drain` (S-97); once."""
        if not self.life.stopping:
            self._orphans.end()
            await self.life.close()

    def is_active(self, run_id: str) -> bool:
        """Whether a run is performed here now."""
        return run_id in self.life.active

    def state_of(self, run_id: str) -> State:
        """Return `active` or `inactive`."""
        return "active" if self.is_active(run_id) else "inactive"

    async def kind_of(self, run_id: str) -> str:
        """Return the kind of a run. Raises `UnknownRun`."""
        return (await self.journal.entry(run_id)).run.kind

    def capabilities(self, kind: str) -> Capabilities:
        """Return what runs of a kind can do (S-11), performed here or not."""
        return capabilities_among(self.adapters, kind)

    def runtime_of(self, run_id: str) -> Runtime | None:
        """Return the runtime here that owns a run; None where none does."""
        return next((it for it in self.life.runtimes.values() if run_id in it.runs), None)

    async def tools_of(self, run_id: str) -> Toolbox | None:
        """Return the tools of a run, performed here or not; None where they are not known."""
        runtime = self.runtime_of(run_id)
        if runtime is not None:
            return runtime.tools(run_id)
        adapter = self.adapters.get(await self.kind_of(run_id))
        if isinstance(adapter, OwnAdapter):
            with suppress(CommandRefused):
                kept = await self.life.kept(run_id)
                if kept is not None:
                    return adapter.tools_of(kept.manifest.spec)
        return None

    def failure_of(self, run_id: str) -> str | None:
        """Return why the last session of a run has failed here, until it goes on again (S-54)."""
        return self.life.failures.of(run_id)

    def heed(self, run_id: str) -> None:
        """Learn that a command came for a run: it is no orphan (S-96)."""
        self._orphans.heed(run_id)

    async def wake(self, run_id: str) -> None:
        """Restore, in the background, a run that was decided on while its session had failed.

        A run that somebody has ended stays so, and one that has no manifest is a stranger's.
        """
        if not self.is_active(run_id) and not self.life.stopping:
            self.life.tasks.spawn(f"wake {run_id}", self.life.wake(run_id))

    async def models(
        self, kind: str | None = None, *, reload: bool = False
    ) -> Mapping[str, Offered]:
        """Return the models by kind (S-85); see `Catalogue.models`."""
        return await self.catalogue.models(kind, reload=reload)

    async def create(
        self, spec: SessionSpec, *, prompt: str | None = None, message_id: str | None = None
    ) -> Created:
        """Create a run, or find it as it was created (S-51, S-80).

        Raises `CommandRefused`, and `RunDiffers` where the id has another configuration.
        """
        self._check_open()
        adapter = self.adapters.get(spec.kind)
        if adapter is None:
            raise CommandRefused(
                "invalid_value",
                f"{shown(spec.kind)} is no kind of runs that this server performs; it has"
                f" {', '.join(self.adapters) or 'none'}",
                at="kind",
            )
        if caller_in(spec.run_id) is not None:
            raise CommandRefused(
                "invalid_value",
                "runs of this form are those of agents that are tools, named by their calls;"
                " give another id",
                at="run_id",
            )
        if message_id is not None:
            check_message_id(message_id)
        await check_no_member(self.journal, spec.run_id)
        run = Run(run_id=spec.run_id, kind=spec.kind)  # what its id has to be is checked here
        spec = await adapter.check(allowed(spec, adapter, self.settings))
        async with self._elsewhere(spec.run_id), self.life.lock(spec.run_id):
            self.life.check_room(spec.kind)
            is_new, kept = await self._declared(run, spec)
            if not self.is_active(spec.run_id) and kept.manifest.closed is None:
                await self.life.begin(kept)
        self.heed(spec.run_id)
        cursor = START
        if prompt is not None and message_id is not None:
            cursor = (await self.prompt(spec.run_id, prompt, message_id=message_id)).cursor
        return Created(
            run_id=spec.run_id,
            kind=spec.kind,
            capabilities=adapter.capabilities,
            cursor=cursor,
            is_new=is_new,
        )

    async def _declared(self, run: Run, spec: SessionSpec) -> tuple[bool, Kept]:
        """Have a run known with this manifest; say whether it was not (S-51)."""
        try:
            entry = await self.journal.entry(run.run_id)
        except UnknownRun:
            entry = None
        if entry is not None and entry.forgotten is not None:
            raise RunForgotten(f"run {harmless(run.run_id)!r} was removed; give another id")
        if entry is not None and entry.run != run:
            raise differs(run.run_id)
        if entry is None:
            await self.journal.declare(run)
        kept = await self.life.kept(run.run_id)
        if kept is None:
            begun = entry is not None and (entry.sequence or await self.journal.notes(run.run_id))
            if begun or not await self.life.keep_session(spec, number=1):
                raise differs(run.run_id)
            return True, Kept(manifest=Manifest(spec=spec), sessions=1)
        if kept.first != spec:
            raise differs(run.run_id)
        return False, kept

    async def prompt(  # noqa: PLR0913 - the fields of its body
        self,
        run_id: str,
        text: str,
        *,
        message_id: str,
        when: When = "idle",
        doubts: Literal["fail"] | None = None,
        changes: Mapping[str, Json] | None = None,
    ) -> Taken:
        """Keep what a person says, and have it said in its turn (S-53, S-80 … S-83).

        Where another server has the run, and the journal can wake it, it is passed on to that one
        (F-26). Raises `CommandRefused`, `UnknownRun`, and what the journal raises: then say it
        again; and `Unanswered` where that other server has not answered yet.
        """
        prompt = Passed(
            text=text, message_id=message_id, when=when, doubts=doubts, changes=changes or {}
        )
        try:
            return await self._said_here(run_id, prompt)
        except CommandRefused as error:
            if error.code != "owned_elsewhere" or not self.journal.hears:
                raise
        return await pass_on(self.journal, run_id, prompt)

    async def _taken_up(self, run_id: str, delivery: Delivery) -> Mapping[str, Any] | None:
        return await take_up(delivery, partial(self._said_here, run_id))

    async def _said_here(self, run_id: str, prompt: Passed) -> Taken:
        text, message_id = prompt.text, prompt.message_id
        self._check_open()
        check_message_id(message_id)
        adapter = await self._adapter(run_id)
        await self._check_no_tool(run_id)
        self.heed(run_id)
        known = await taken_before(self.journal, run_id, message_id, text)
        if known is not None:
            return known
        async with self._elsewhere(run_id), self.life.lock(run_id):
            known = await taken_before(self.journal, run_id, message_id, text)
            if known is None:
                self._check_open()
                if prompt.when == "steer" and not adapter.capabilities.steer:
                    raise incapable(adapter, "steer a turn that goes on: leave `when` out")
                performed, told = await self._performed(run_id, adapter, prompt.changes)
                await self._settle_doubts(performed, fail=prompt.doubts == "fail")
                waiting = Waiting(message_id=message_id, text=text)
                await self._keep(performed, waiting, prompt.when, told)
                known = await taken_before(self.journal, run_id, message_id, text)
        if known is None:
            raise AssertionError(waiting_id(message_id))
        return known

    async def _keep(
        self, performed: Performed, prompt: Waiting, when: When, told: dict[str, Json]
    ) -> None:
        """Keep a prompt, and have it said once nothing is owed, or now where it steers."""
        run_id = performed.run_id
        if len(performed.line) >= self.settings.waiting:
            raise CommandRefused(
                "limit_reached",
                f"{self.settings.waiting} prompts of run {harmless(run_id)!r} wait already; say it"
                " again once one was answered",
            )
        if not performed.counts:
            self.life.check_room(performed.adapter.kind)
        steers = when == "steer" and not performed.idle
        if steers:
            told["steered"] = True
        try:
            await performed.line.keep(prompt, told, in_line=not steers)
        except InvalidValue as error:  # said elsewhere meanwhile, with another text
            raise conflicting(run_id, prompt.message_id) from error
        if steers:
            await performed.send(prompt)
        else:
            performed.wake()

    async def _performed(
        self,
        run_id: str,
        adapter: RuntimeAdapter,
        changes: Mapping[str, Json],
        *,
        force: bool = False,
    ) -> tuple[Performed, dict[str, Json]]:
        """Return a run's session, restored if need be, and what is told of that (S-53, S-87)."""
        performed = self.life.active.get(run_id)
        if performed is not None:
            _, ignored = changed_by(performed.kept.manifest.spec, changes)
            return performed, {"ignored": tuple(ignored)} if ignored else {}
        kept = await self._manifest(run_id)
        spec, changed = changed_by(kept.manifest.spec, changes)
        if changed:
            spec = await adapter.check(allowed(spec, adapter, self.settings))
            if isinstance(adapter, OwnAdapter):
                await adapter.check_conversation(spec)
            number = kept.sessions + 1
            if not await self.life.keep_session(spec, number=number):
                raise differs(run_id)
            manifest = attrs.evolve(kept.manifest, spec=spec)
            kept = attrs.evolve(kept, manifest=manifest, sessions=number)
        return await self.life.begin(kept, force=force), {"restored": True}

    async def _settle_doubts(self, performed: Performed, *, fail: bool) -> None:
        """Settle calls in doubt as unknown. Raises `CommandRefused` where nobody said so (S-83)."""
        doubts = performed.doubts()
        if not doubts:
            return
        if not fail and self.settings.doubts == "ask":
            raise CommandRefused(
                "in_doubt",
                f"{len(doubts)} calls of run {harmless(performed.run_id)!r} are in doubt: say what"
                ' became of them, or send it with "doubts": "fail"',
            )
        for call in doubts:
            await performed.runtime.deliver(call.run_id, unknown(call, OUTCOME_UNKNOWN))

    async def restore(
        self, run_id: str, *, force: bool = False, changes: Mapping[str, Json] | None = None
    ) -> Cursor:
        """Have a run performed here, if it is not (S-52); return where its ledger ends.

        It goes on with `changes` of its settings. With `force` whoever asks says that its last
        process is dead, where nobody can see (S-49).
        """
        self._check_open()
        adapter = await self._adapter(run_id)
        if not adapter.capabilities.restore:
            raise incapable(adapter, "be restored")
        await self._check_no_tool(run_id)
        self.heed(run_id)
        async with self._elsewhere(run_id), self.life.lock(run_id):
            await self._performed(run_id, adapter, changes or {}, force=force)
        return await self._end_of(run_id)

    async def terminate(self, run_id: str, *, grace: float | None = None) -> Cursor:
        """End its session, if it has one here (S-47); return where its ledger ends.

        Raises `CommandRefused` where somebody else performs the run (F-26): it would go on.
        """
        self._check_open()
        await self._adapter(run_id)
        within = self.settings.grace if grace is None else grace
        if not await self.life.end(run_id, why="terminated", grace=within):
            entry = await self.journal.entry(run_id)
            if Leases(now=self.journal.time()).is_owned(entry):
                raise owned_elsewhere(run_id, entry.owned_until)
        return await self._end_of(run_id)

    async def interrupt(self, run_id: str, *, reason: str | None, grace: float) -> bool:
        """Stop what goes on in a run where no turn is open: a model that is asked, say.

        False where nothing did, or where the run is not performed here: `no_active_turn`.
        """
        self.heed(run_id)
        performed = self.life.active.get(run_id)
        return performed is not None and await performed.session.stop(reason=reason, grace=grace)

    async def answer(
        self, run_id: str, *, turn_id: str, invocation_id: str, result: Json
    ) -> Verdict:
        """Report what a person answers to a question of the runtime (S-28).

        Raises `CommandRefused`: `unknown_invocation` for what is no question that waits,
        `run_inactive`, and `capability_unsupported` for a kind that asks none.
        """
        self._check_open()
        adapter = await self._adapter(run_id)
        self.heed(run_id)
        if adapter.capabilities.execution == "owned":
            raise incapable(adapter, "ask the user: their tools do")
        performed = self.life.active.get(self.life.sub_agents.root_of(run_id) or run_id)
        if performed is None:
            raise CommandRefused(
                "run_inactive",
                f"run {harmless(run_id)!r} is not performed here: what it asked died with its"
                " process",
            )
        if not performed.session.asks(turn_id, invocation_id):
            raise CommandRefused(
                "unknown_invocation", "there is no question of this name that waits in this run"
            )
        report = Report(run_id=run_id, turn_id=turn_id, invocation_id=invocation_id, result=result)
        return await performed.runtime.deliver(run_id, report)

    async def _manifest(self, run_id: str) -> Kept:
        """Return the manifest of a run; one that other programs began is made the default's."""
        kept = await self.life.kept(run_id)
        if kept is not None:
            return kept
        adapter = await self._adapter(run_id)
        spec = await adapter.check(SessionSpec(run_id=run_id, kind=adapter.kind))
        if isinstance(adapter, OwnAdapter):
            await adapter.check_conversation(spec)
        if not await self.life.keep_session(spec, number=1):
            raise differs(run_id)
        return Kept(manifest=Manifest(spec=spec), sessions=1)

    async def _adapter(self, run_id: str) -> RuntimeAdapter:
        """Return what performs a run. Raises `UnknownRun`, and `CommandRefused` where nothing."""
        entry: RunEntry = await self.journal.entry(run_id)
        if entry.forgotten is not None:
            raise UnknownRun(f"run {harmless(run_id)!r} was removed")
        adapter = self.adapters.get(entry.run.kind)
        if adapter is None:
            raise CommandRefused(
                "run_kind_mismatch",
                f"run {harmless(run_id)!r} is of kind {entry.run.kind!r}, which this server shows"
                " and decides on, and does not perform",
            )
        return adapter

    async def _check_no_tool(self, run_id: str) -> None:
        """Raise `CommandRefused` for the run of a sub-agent, or of an agent that is a tool (S-56).

        Its parent's session performs it, with tools that no agent of this server need have.
        """
        caller = caller_in(run_id)
        if caller is None and parent_in(run_id) is not None:
            kept = await self.life.kept(run_id)
            caller = None if kept is None else kept.manifest.spec.parent
        if caller is None:
            return
        entry = await self.journal.entry(run_id)
        if Leases(now=self.journal.time()).is_owned(entry):
            raise owned_elsewhere(run_id, entry.owned_until)
        raise no_run_of_its_own(run_id, caller)

    async def _end_of(self, run_id: str) -> Cursor:
        return (await self.journal.ends([run_id])).get(run_id, START)

    def _check_open(self) -> None:
        if self.life.stopping:
            raise CommandRefused("shutting_down", "the server is about to end; ask the next one")

    @asynccontextmanager
    async def _elsewhere(self, run_id: str) -> AsyncGenerator[None]:
        """Say of a run that another process performs no more than until when it has it (F-6)."""
        try:
            yield
        except (JournalOwned, RunFenced) as error:
            _log.info("run %r is performed elsewhere: %s", run_id, error)
            until: float | None = None
            with suppress(TurnlockError):
                until = (await self.journal.entry(run_id)).owned_until
            raise owned_elsewhere(run_id, until) from error
