"""What keeps a verification from coming to a verdict; none of these is a violation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..models.errors import TurnlockError


class HarnessFailed(TurnlockError):
    """The kit itself failed: never to be reported as a failure of the system under test."""


class SubjectFailed(TurnlockError):
    """The system under test crashed, hung, or answered what is no receipt.

    `script` is the one that it happened in, where that could be found.
    """

    def __init__(self, message: str, *, script: Sequence[Mapping[str, Any]] | None = None) -> None:
        """Keep the script beside the message."""
        super().__init__(message)
        self.script = script


class NotDeterministic(TurnlockError):
    """The system under test answered one script in two ways."""
