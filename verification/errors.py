"""What keeps a verification from coming to a verdict; none of these is a violation."""

from __future__ import annotations

from collections.abc import Sequence

from ..models.errors import TurnlockError
from .findings import Finding, Raw


class HarnessFailed(TurnlockError):
    """The kit itself failed: never to be reported as a failure of the system under test."""


class SubjectFailed(TurnlockError):
    """The system under test crashed, hung, or answered what is no receipt.

    `script` is the one that it happened in, on `run`, where these could be found. `how` says what
    happened without them.
    """

    def __init__(
        self,
        message: str,
        *,
        script: Sequence[Raw] | None = None,
        run: Raw | None = None,
        how: str = "",
    ) -> None:
        """Keep the script beside the message."""
        super().__init__(message)
        self.script = script
        self.run = run
        self.how = how or message


class NotDeterministic(TurnlockError):
    """The system under test answered one script in two ways; `shown` has the script and both."""

    def __init__(self, message: str, *, shown: Finding | None = None) -> None:
        """Keep what was answered beside the message."""
        super().__init__(message)
        self.shown = shown
