"""What can be wrong with a tool, its file, or a call of it."""

from __future__ import annotations

from functools import partial
from typing import Any

from ...models.errors import InvalidValue, TurnlockError


class BadArguments(InvalidValue):
    """Arguments that the tool does not take; `place` is the path inside them: items[2].price."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a construction by keyword, so that it can cross a process pool."""
        return partial(BadArguments, place=self.place, cause=self.cause, fix=self.fix), ()


class Rejected(TurnlockError):
    """A call that cannot be started; its text is the error of the kernel's reject (K-51)."""


class BadToolFile(TurnlockError):
    """A file of tools that cannot be used; the message names the file, and the line if it can."""


class ToolCancelled(TurnlockError):
    """Raised inside a tool by `ToolContext.raise_if_cancelled`: stop, nobody waits any more."""
