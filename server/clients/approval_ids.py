"""What names a question to clients of others, and what was shown with it (F-66).

It is no secret and no capability: whoever answers needs the role for it, and the kernel judges.
"""

from __future__ import annotations

from typing import Final, Self

import attrs
import msgspec

from ...views.call_view import CallView

LONGEST: Final = 8 * 1024
"""Characters of one that is read."""
_OF_APPROVAL: Final = 4
_OF_DOUBT: Final = 5
_ATTEMPTS: Final = 2**53


@attrs.frozen(kw_only=True)
class ApprovalId:
    """Which call a question is about, and by its digest the arguments that were shown.

    That of a doubt has the attempt that is in doubt, too: what was said of one attempt must never
    settle the next.
    """

    run_id: str
    turn_id: str
    invocation_id: str
    arguments_digest: str | None
    """None where nobody was asked before the call ran: of a doubt alone."""
    attempt: int | None = None

    @classmethod
    def of_question(cls, call: CallView) -> Self:
        """Return the id of the question whether a call may run."""
        return cls(
            run_id=call.run_id,
            turn_id=call.turn_id,
            invocation_id=call.invocation_id,
            arguments_digest=call.arguments_digest,
        )

    @classmethod
    def of_doubt(cls, call: CallView) -> Self:
        """Return the id of the question what became of a call."""
        return attrs.evolve(cls.of_question(call), attempt=call.attempt)

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Return what a text names; None for any text but what `str` returns of one."""
        if len(text) > LONGEST:
            return None
        try:
            parts = msgspec.json.decode(text, type=list[str | int | None])
        except (msgspec.DecodeError, UnicodeEncodeError):
            return None
        if len(parts) not in {_OF_APPROVAL, _OF_DOUBT}:
            return None
        run_id, turn_id, invocation_id, digest, *rest = parts
        named = all(isinstance(it, str) and it for it in (run_id, turn_id, invocation_id))
        if not named or not _is_shown(digest, rest):
            return None
        found = cls(
            run_id=str(run_id),
            turn_id=str(turn_id),
            invocation_id=str(invocation_id),
            arguments_digest=None if digest is None else str(digest),
            attempt=int(rest[0]) if rest and rest[0] is not None else None,
        )
        return found if str(found) == text else None

    @property
    def is_of_doubt(self) -> bool:
        """Whether it asks what became of a call."""
        return self.attempt is not None

    def __str__(self) -> str:
        """Return its text."""
        parts = [self.run_id, self.turn_id, self.invocation_id, self.arguments_digest]
        told: list[str | int | None] = [*parts]
        if self.attempt is not None:
            told.append(self.attempt)
        return msgspec.json.encode(told).decode()


def _is_shown(digest: str | int | None, rest: list[str | int | None]) -> bool:
    """Whether a digest, and the attempt of a doubt, are as they must be."""
    if not rest:
        return isinstance(digest, str) and bool(digest)
    attempt = rest[0]
    if type(attempt) is not int or not 0 < attempt < _ATTEMPTS:
        return False
    return digest is None or (isinstance(digest, str) and bool(digest))
