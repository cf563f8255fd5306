"""What keeps a verification from coming to a verdict; none of these is a violation."""

from __future__ import annotations

from ..models.errors import TurnlockError


class HarnessFailed(TurnlockError):
    """The kit itself failed: never to be reported as a failure of the system under test."""


class SubjectFailed(TurnlockError):
    """The system under test crashed, hung, or answered what is no receipt."""


class NotDeterministic(TurnlockError):
    """The system under test answered one script in two ways."""
