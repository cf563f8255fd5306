"""What is said of a line that cannot have happened."""

from __future__ import annotations

from ...models.errors import TurnlockError


class Impossible(TurnlockError):
    """A fact or a receipt that the specification rules out where it stands.

    `rule` is the rule of kernel.md that it breaks, such as ``K-33``; `instead` names what could
    have stood there, the likeliest first.
    """

    def __init__(self, *, rule: str, cause: str, instead: tuple[str, ...] = ()) -> None:
        """Keep the three parts; the message is the rule and the cause."""
        super().__init__(f"{rule}: {cause}")
        self.rule = rule
        self.cause = cause
        self.instead = instead
