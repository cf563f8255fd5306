"""What a guard refuses: nothing was executed, nothing changed; `NotRecorded` is none of these."""

from __future__ import annotations

from collections.abc import Mapping

from ..models.errors import TurnlockError
from ..models.values import Json
from .values import At


class GuardRefused(TurnlockError):
    """Base of what a guard refuses; `at` names the call, with its turn where that is known.

    For refusals of `open_turn` as a whole `at.call` is empty.
    """

    def __init__(self, message: str, *, at: At) -> None:
        """Keep which call it is about."""
        super().__init__(message)
        self.at = at


class NotApproved(GuardRefused):
    """The call waits for a decision about these `arguments`, which echoes `digest`."""

    def __init__(self, message: str, *, at: At, digest: str, arguments: Mapping[str, Json]) -> None:
        """Keep what a decision is about."""
        super().__init__(message, at=at)
        self.digest = digest
        self.arguments = arguments


class InDoubt(GuardRefused):
    """It was started, and nobody knows whether it happened: `resolve` says so."""

    def __init__(
        self, message: str, *, at: At, attempt: int, worker: str | None, since: float | None
    ) -> None:
        """Keep which attempt, who ran it, and since when (Unix time) it is in doubt."""
        super().__init__(message, at=at)
        self.attempt = attempt
        self.worker = worker
        self.since = since


class StillRunning(GuardRefused):
    """Another runs it now, and lives: come again."""

    def __init__(self, message: str, *, at: At, worker: str | None) -> None:
        """Keep who runs it."""
        super().__init__(message, at=at)
        self.worker = worker


class Stale(GuardRefused):
    """What was asked about is closed, over, or was never opened.

    `reason` is a word of kernel.md's section 11 (`late`, `no_active_turn`, `unknown_invocation` …),
    or `forked`.
    """

    def __init__(self, message: str, *, at: At, reason: str) -> None:
        """Keep the reason."""
        super().__init__(message, at=at)
        self.reason = reason


class Forked(Stale):
    """Another answer to the same turn came before this one: `came` is its turn."""

    def __init__(self, message: str, *, at: At, came: str) -> None:
        """Keep the turn that came."""
        super().__init__(message, at=at, reason="forked")
        self.came = came


class DecidedOtherwise(Stale):
    """Another decision about this call was there first."""


class Differs(GuardRefused):
    """The tool, the arguments or the calls are not those that were opened, or shown."""


class NotRecorded(TurnlockError):
    """It ran, and what came of it is not recorded: it is in doubt, and never run again.

    Its value is no JSON, or the journal failed, which is then its `__cause__`.
    """

    def __init__(self, message: str, *, at: At) -> None:
        """Keep which call it is about."""
        super().__init__(message)
        self.at = at
