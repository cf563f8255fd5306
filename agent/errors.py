"""What can go wrong in a conversation; each message names the cause, the place and the fix."""

from __future__ import annotations

from ..models.errors import TurnlockError


class ModelError(TurnlockError):
    """The model did not answer. Nothing is lost: the conversation still owes its answer."""


class LimitReached(TurnlockError):
    """The model was asked as often, or has used as much, as one prompt may cost.

    What ran, ran, and is kept. The next prompt begins a new count.
    """

    def __init__(self, message: str, *, limit: str = "", bound: int = 0) -> None:
        """Say which limit it is, ``answer_limit`` or ``token_limit``, and its value."""
        super().__init__(message)
        self.limit = limit
        self.bound = bound


class HookFailed(TurnlockError):
    """A hook of the host's raised. What was kept is kept; the conversation can be gone on with."""


class ConversationBroken(TurnlockError):
    """A run whose facts or notes are not those of one conversation."""


class ProviderFailure(Exception):
    """An event by which a provider says, in the middle of its answer, that it failed."""
