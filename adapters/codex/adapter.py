"""Runs of the kind `codex`: each is a thread of a ``codex app-server`` of its own (S-30, S-51)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, Protocol

from ...models.deliveries import Scope
from ...models.errors import TurnlockError, shown
from ...models.fact import Fact
from ...models.safe_text import harmless
from ...models.values import Json
from ...runtime.journal.ledger import Noted
from ...runtime.log import logger
from ..contract import (
    Announced,
    Capabilities,
    CommandRefused,
    Manifest,
    ModelInfo,
    Session,
    SessionSpec,
    Sink,
)
from . import restoring
from .connection import Connection
from .driver import Driver
from .gateway import RequestRefused, Thread
from .process import NotStarted
from .session import CodexSession
from .settings import KIND, CodexSettings
from .transport import PipeBroken, Transport, Wire

_log = logger(__name__)

CAN: Final = Capabilities(
    steer=True,
    retry=False,
    edit_arguments=False,
    scopes=(Scope.ONCE, Scope.TURN, Scope.SESSION),
    settlement="response",
    execution="both",
)
"""What Codex runs can do (S-11); what cannot be promised of them, S-39 says."""
SERVES: Final = "app-server"
GRACE: Final = 1.0
"""Seconds in which a process ends that only said which models there are."""


class Starts(Protocol):
    """Starts a process; `Transport.start` does."""

    def __call__(
        self, command: Sequence[str], *, cwd: str | None, env: Mapping[str, str] | None
    ) -> Awaitable[Wire]:
        """Return it, started. Raises `NotStarted`."""
        ...


class CodexAdapter:
    """Performs runs of the kind `codex`, each by a process of its own."""

    def __init__(
        self,
        owner: CodexSettings | None = None,
        *,
        env: Mapping[str, str] | None = None,
        start: Starts = Transport.start,
    ) -> None:
        """Take what the server's owner says; `env` is what its processes get beside our own."""
        self.kind: Final = KIND
        self.capabilities: Final = CAN
        self.settings: Final = frozenset({"model", "cwd", "approval_policy", "sandbox"})
        self.options: Final[frozenset[str]] = frozenset()
        self.keeps_messages: Final = False
        self._owner = owner or CodexSettings()
        self._env = env
        self._start = start
        self._known: tuple[ModelInfo, ...] | None = None
        self._asking = asyncio.Lock()

    async def close(self) -> None:
        """Hold nothing: each process ends with its session."""

    async def models(self, *, reload: bool = False) -> tuple[ModelInfo, ...]:
        """Return the models that a process of its own offers (S-85)."""
        async with self._asking:
            if self._known is None or reload:
                self._known = None
                self._known = await self._asked_for_models()
            return self._known

    async def check(self, spec: SessionSpec) -> SessionSpec:
        """Return it as the owner lets it be; `CommandRefused` for what no session can be (S-51)."""
        fitted = self._owner.fitted(spec)
        if fitted.model is not None and fitted.model != self._owner.model:
            names = [it.name for it in await self.models()]
            if fitted.model not in names:
                raise CommandRefused(
                    "model_unavailable_for_runtime",
                    f"{shown(fitted.model)} is no model of runs of kind {KIND!r}; there are"
                    f" {harmless(', '.join(names)) or 'none'}",
                )
        return fitted

    async def may_live(self, epoch: Mapping[str, Json]) -> str | None:
        """Return why the process of an epoch may live still; None: it is surely dead (S-49)."""
        return await restoring.may_live(epoch)

    def announced(
        self,
        manifest: Manifest,
        notes: Sequence[Noted],
        facts: Sequence[Fact],
    ) -> Announced | None:
        """Return what the last process announced and nobody added (S-23)."""
        return restoring.announced(manifest, notes, facts)

    async def create(self, spec: SessionSpec, sink: Sink) -> Session:
        """Start a process, and a thread in it (S-51)."""

        async def start(connection: Connection, given: SessionSpec) -> Thread:
            return await connection.gateway.start_thread(
                cwd=given.cwd,
                model=given.model,
                approval_policy=given.approval_policy,
                sandbox=given.sandbox,
                options=given.options,
            )

        return await self._begun(spec, sink, start)

    async def restore(self, manifest: Manifest, sink: Sink) -> Session:
        """Start another process, and resume the thread in it (S-52)."""
        epoch = manifest.epoch or {}
        thread_id = str(epoch.get("thread_id"))

        async def resume(connection: Connection, given: SessionSpec) -> Thread:
            return await connection.gateway.resume_thread(
                thread_id,
                cwd=given.cwd,
                model=given.model,
                approval_policy=given.approval_policy,
                sandbox=given.sandbox,
            )

        return await self._begun(manifest.spec, sink, resume)

    async def _begun(
        self,
        spec: SessionSpec,
        sink: Sink,
        bootstrap: Callable[[Connection, SessionSpec], Awaitable[Thread]],
    ) -> Session:
        """Start a process, and have it begin or resume a thread; a failure ends it (S-51)."""
        fitted = self._owner.fitted(spec)
        wire = await self._started(fitted.cwd)
        driver = Driver(sink)
        connection = Connection(wire, driver.put)
        try:
            version = await connection.gateway.initialize()
            thread = await bootstrap(connection, fitted)
            worker = await sink.worker_for(str(connection.wire.name))
        except BaseException as error:
            words = await _ended(connection)
            if isinstance(error, TurnlockError):
                raise _no_thread(error, words) from error
            raise
        return CodexSession(
            sink=sink,
            connection=connection,
            driver=driver,
            thread=thread,
            version=version,
            worker=worker,
        )

    async def _started(self, cwd: str | None) -> Wire:
        try:
            return await self._start([*self._owner.command, SERVES], cwd=cwd, env=self._env)
        except NotStarted as error:
            _log.warning("codex app-server: %s", error)
            told = "codex app-server cannot be started; the log says why"
            raise CommandRefused("runtime_unavailable", told) from error

    async def _asked_for_models(self) -> tuple[ModelInfo, ...]:
        connection = Connection(await self._started(self._owner.cwd), _ignored)
        try:
            await connection.gateway.initialize()
            return await connection.gateway.models()
        except TurnlockError as error:
            raise CommandRefused(
                "runtime_unavailable",
                f"it did not say which models there are: {_in_public(error)}",
            ) from error
        finally:
            await _ended(connection)


async def _ignored(_: object) -> None:
    """Take no notice of what a process says that is only asked for its models."""


async def _ended(connection: Connection) -> str:
    """End a process that performs nothing, and return its last words."""
    try:
        await connection.wire.end(grace=GRACE)
    finally:
        connection.kill()
        await connection.cease()
    return connection.wire.stderr_tail


def _in_public(error: TurnlockError) -> str:
    """Return what clients are told: no name of a host or a process (F-6)."""
    return "it has ended" if isinstance(error, PipeBroken) else harmless(str(error))


def _no_thread(error: TurnlockError, words: str) -> CommandRefused:
    if isinstance(error, CommandRefused):
        return error
    told = f"codex app-server began no thread: {_in_public(error)}"
    if words and not isinstance(error, RequestRefused):
        told = f"{told}; it said last: {harmless(words.strip(), limit=500)}"
    return CommandRefused("codex_thread_bootstrap_failed", told)
