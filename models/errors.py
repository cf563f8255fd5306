"""Errors: what is wrong, where, and how to put it right.

Only a caller's own mistake raises (K-8). Whatever is expected in operation is a verdict.
"""

from __future__ import annotations

from typing import Any

from .safe_text import harmless_lines

SHOWN = 60  # characters of an offending value that a message repeats


class TurnlockError(Exception):
    """Base of every error that turnlock raises.

    Messages repeat ids, names and texts from outside: what is shown of them is harmless, whoever
    prints it. `args` has the message as it was made.
    """

    def __str__(self) -> str:
        """Return the message, with what cannot be printed as escapes."""
        return harmless_lines(super().__str__())

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle it as it stands, so that it can cross a process pool.

        An exception is built anew from its message alone otherwise, and ours take more than that.
        """
        return _anew, (type(self), *self.args), vars(self)


class InvalidValue(TurnlockError, ValueError):
    """A value that a record cannot hold (K-8).

    `place` is the path of the field (``calls[2].invocation_id``), `cause` what is wrong with it,
    `fix` what would be right.
    """

    def __init__(self, *, place: str, cause: str, fix: str) -> None:
        """Keep the three parts; the message is their sum."""
        super().__init__(f"{place or 'value'}: {cause}; {fix}")
        self.place = place
        self.cause = cause
        self.fix = fix

    def inside(self, outer: str) -> InvalidValue:
        """Return the same error seen from one level further out."""
        joint = "" if not self.place or self.place.startswith("[") else "."
        return InvalidValue(place=f"{outer}{joint}{self.place}", cause=self.cause, fix=self.fix)


class NewerVersion(InvalidValue):
    """A stored record of a version that this turnlock does not know: nothing is wrong with it."""


class CorruptJournal(TurnlockError):
    """A journal or snapshot that no run can have written."""

    def __init__(self, *, sequence: int, cause: str, fix: str) -> None:
        """Name the fact (its sequence number), what is wrong with it and what to do."""
        super().__init__(f"fact {sequence}: {cause}; {fix}")
        self.sequence = sequence
        self.cause = cause
        self.fix = fix


class BadTable(TurnlockError):
    """A declared machine that is no machine (K-5); the message names the row at fault."""


class UnknownRun(TurnlockError, KeyError):
    """A run that this registry does not hold."""

    def __str__(self) -> str:
        """Undo the quoting that KeyError puts around its message."""
        return harmless_lines(str(self.args[0]))


class InboxFull(TurnlockError):
    """The inbox holds its bound; the caller still has the delivery and may offer it again."""


def _anew(kind: type[TurnlockError], *args: object) -> TurnlockError:
    return kind.__new__(kind, *args)


def shown(value: object) -> str:
    """Return a value as a message repeats it: its repr, cut at `SHOWN` characters."""
    try:
        text = repr(value[:SHOWN] if isinstance(value, str) else value)
    except Exception:  # noqa: BLE001 - too deep, too many digits, or a repr that raises
        return f"a value of type {type(value).__name__} that cannot be shown"
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"
