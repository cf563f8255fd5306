"""What can be wrong with a tool, its file, or a call of it; and errors as bounded texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Final, TypeAlias, cast

from ...models.errors import InvalidValue, TurnlockError


class BadArguments(InvalidValue):
    """Arguments that the tool does not take; `place` is the path inside them: items[2].price."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a construction by keyword, so that it can cross a process pool."""
        return partial(BadArguments, place=self.place, cause=self.cause, fix=self.fix), ()


class Rejected(TurnlockError):
    """A call that cannot be started; its text is the error of the kernel's reject (K-51)."""


class StoodStill(TurnlockError):
    """A call was not made: when its turn came, the run was not surely owned any more."""


class BadToolFile(TurnlockError):
    """A file of tools that cannot be used; the message names the file, and the line if it can."""


class ToolCancelled(TurnlockError):
    """Raised inside a tool by `ToolContext.raise_if_cancelled`: stop, nobody waits any more."""


ERROR_TEXT: Final = 2_000
"""Characters of an error that go to the model at most."""
PLACE: Final = 200
"""Characters of a place within a value."""

_Group: TypeAlias = "BaseExceptionGroup[BaseException]"

GROUP_SHOWN: Final = 3
"""Exceptions of a group that a text names."""


def bounded(text: str, *, limit: int = ERROR_TEXT) -> str:
    """Return the text with at most `limit` characters, without lone surrogates."""
    kept = text if len(text) <= limit else text[: limit - 1] + "…"
    return kept.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def said(error: BaseException) -> str:
    """Return the type of an exception and what it says; of a group, what its members say."""
    if isinstance(error, BaseExceptionGroup):
        leaves = list(_leaves(cast("_Group", error)))
        more = "" if len(leaves) <= GROUP_SHOWN else f"; and {len(leaves) - GROUP_SHOWN} more"
        return bounded("; ".join(said(leaf) for leaf in leaves[:GROUP_SHOWN]) + more)
    kind = type(error).__name__
    try:
        text = str(error).strip()
    except Exception:  # noqa: BLE001 - a __str__ that raises must not hide the failure
        text = "(its text cannot be shown)"
    return bounded(f"{kind}: {text}" if text else kind)


def _leaves(group: _Group) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(cast("_Group", error))
        else:
            yield error


def path(steps: Iterable[str | int]) -> str:
    """Return steps into a JSON value as one place: items[2].price."""
    text = ""
    for step in steps:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return bounded(text.removeprefix("."), limit=PLACE)
