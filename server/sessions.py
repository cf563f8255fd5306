"""The runs that are performed here now: created, restored, asked, ended (server.md 8, 11, 13)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, Self, TypeAlias

import attrs

from ..adapters.contract import Capabilities, CommandRefused, ModelInfo, RuntimeAdapter, SessionSpec
from ..agent.transients import Transient
from ..models.run import OWN
from ..models.values import Json
from ..runtime.journal.contract import Journal
from ..runtime.journal.ledger import Cursor
from ..runtime.runtime import Runtime

State: TypeAlias = Literal["active", "inactive"]
"""Whether a run is performed here now (F-31)."""


def nobody_listens(_: Transient) -> None:
    """Pass on nothing."""


def nobody_watches(_: str) -> bool:
    """Say that no run has a subscriber."""
    return False


@attrs.frozen(kw_only=True)
class SessionSettings:
    """The bounds of sessions; times are seconds."""

    sessions: int = 64
    """Sessions in which something goes on at once, and those that are kept idle beside (15)."""
    waiting: int = 100
    """Prompts of one run that wait in line (S-83)."""
    drain: float = 10.0
    """In which sessions end when the server does (S-97)."""
    grace: float = 5.0
    """For what runs, when a session is terminated (S-47)."""
    restarts: int = 3
    """Restarts of a session that has failed, within … (S-54)"""
    restarts_within: float = 60.0
    """… so many seconds."""
    orphan_timeout: float | None = None
    """After which a run with something pending, and nobody there, is interrupted (S-96)."""
    on_pending: Literal["wait", "deny"] = "wait"
    """What becomes of a call that waits for a decision (S-96)."""
    doubts: Literal["ask", "fail"] = "ask"
    """What becomes of a call in doubt before the next prompt (S-83)."""
    roots: tuple[str, ...] = ()
    """Folders below which the `cwd` of a run may be (S-51)."""


@attrs.frozen(kw_only=True)
class Created:
    """A run that was created, or known as such: `is_new` where this command made it."""

    run_id: str
    kind: str
    capabilities: Capabilities
    cursor: Cursor
    is_new: bool


@attrs.frozen(kw_only=True)
class Taken:
    """A prompt that is kept; said again, the same (F-23)."""

    message_id: str
    cursor: Cursor
    turn_id: str | None = None
    steered: bool = False
    restored: bool = False
    ignored: tuple[str, ...] = ()


class Sessions:
    """The sessions of one server. Enter it after its runtime, and before anything is asked."""

    def __init__(  # noqa: PLR0913 - what a server is made of
        self,
        *,
        journal: Journal,
        adapters: Sequence[RuntimeAdapter],
        default_kind: str = OWN,
        settings: SessionSettings | None = None,
        pass_on: Callable[[Transient], None] = nobody_listens,
        is_watched: Callable[[str], bool] = nobody_watches,
    ) -> None:
        """Prepare; `pass_on` is the hub's, `is_watched` says whether a run has a subscriber."""
        self.journal: Final = journal
        self.adapters: Final = {adapter.kind: adapter for adapter in adapters}
        self.default_kind: Final = default_kind
        self.settings: Final = settings or SessionSettings()
        self._pass_on = pass_on
        self._is_watched = is_watched

    async def __aenter__(self) -> Self:
        """Begin to restore what was performed when the server ended, and preload models."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """End as `stop` does."""
        await self.stop()

    async def stop(self) -> None:
        """Take no more commands, and end all sessions within `drain` (S-97)."""

    def is_active(self, run_id: str) -> bool:
        """Whether a run is performed here now."""
        raise NotImplementedError(run_id)

    def state_of(self, run_id: str) -> State:
        """Return `active` or `inactive`."""
        return "active" if self.is_active(run_id) else "inactive"

    async def kind_of(self, run_id: str) -> str:
        """Return the kind of a run. Raises `UnknownRun`."""
        return (await self.journal.entry(run_id)).run.kind

    def capabilities(self, kind: str) -> Capabilities:
        """Return what runs of a kind can do (S-11).

        Those of a kind that nobody performs here are shown and decided on (section 1).
        """
        raise NotImplementedError(kind)

    def runtime_of(self, run_id: str) -> Runtime | None:
        """Return the runtime here that owns a run; None where none does."""
        raise NotImplementedError(run_id)

    def heed(self, run_id: str) -> None:
        """Learn that a command came for a run: it is no orphan (S-96)."""

    async def models(self, kind: str | None = None) -> Mapping[str, Sequence[ModelInfo] | None]:
        """Return the models by kind; None for a kind that cannot say (S-85)."""
        raise NotImplementedError(kind)

    async def reload_models(
        self, kind: str | None = None
    ) -> Mapping[str, Sequence[ModelInfo] | None]:
        """Ask anew, and return the models by kind (S-85)."""
        raise NotImplementedError(kind)

    async def create(
        self, spec: SessionSpec, *, prompt: str | None = None, message_id: str | None = None
    ) -> Created:
        """Create a run, or find it as it was created (S-51, S-80)."""
        raise NotImplementedError(spec, prompt, message_id)

    async def prompt(  # noqa: PLR0913 - the fields of its body
        self,
        run_id: str,
        text: str,
        *,
        message_id: str,
        when: Literal["idle", "steer"] = "idle",
        doubts: Literal["fail"] | None = None,
        changes: Mapping[str, Json] | None = None,
    ) -> Taken:
        """Keep what a person says, and have it said in its turn (S-53, S-80 … S-83)."""
        raise CommandRefused("run_inactive", f"{run_id}{text}{message_id}{when}{doubts}{changes}")

    async def restore(self, run_id: str, *, force: bool = False) -> Cursor:
        """Have a run performed here, if it is not (S-52); return where its ledger ends."""
        raise NotImplementedError(run_id, force)

    async def terminate(self, run_id: str, *, grace: float | None = None) -> Cursor:
        """End its session, if it has one (S-47); return where its ledger ends."""
        raise NotImplementedError(run_id, grace)

    async def interrupt(self, run_id: str, *, reason: str | None, grace: float) -> bool:
        """Stop what goes on in a run where no turn is open: a model that is asked, say.

        False where nothing did, or where the run is not performed here: `no_active_turn`.
        """
        raise NotImplementedError(run_id, reason, grace)
