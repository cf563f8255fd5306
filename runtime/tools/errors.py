"""What can be wrong with a tool, its file, or a call of it; and errors as bounded texts."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias, cast

from ...models.errors import InvalidValue, TurnlockError


class BadArguments(InvalidValue):
    """Arguments that the tool does not take; `place` is the path inside them: items[2].price."""


class Rejected(TurnlockError):
    """A call that cannot be started; its text is the error of the kernel's reject (K-51)."""


class StoodStill(TurnlockError):
    """A call was not made: when its turn came, the run was not surely owned any more."""


class BadToolFile(TurnlockError):
    """A file of tools that cannot be used; the message names the file, and the line if it can."""


class ToolCancelled(TurnlockError):
    """Raised inside a tool by `ToolContext.raise_if_cancelled`: stop, nobody waits any more."""


class OutcomeUnknown(TurnlockError):
    """Raised by a tool that cannot tell whether it did its work: its connection broke, say.

    The execution is then lost (K-35), not failed: it is in doubt, and its tool's policy decides
    (W-62). So it is where an exception group holds one.
    """


ERROR_TEXT: Final = 2_000
"""Characters of an error that go to the model at most."""
PLACE: Final = 200
"""Characters of a place within a value."""

CAUSE: Final = 300
"""Characters that a message repeats of a schema, and of what a library says."""

_Group: TypeAlias = "BaseExceptionGroup[BaseException]"

GROUP_SHOWN: Final = 3
"""Exceptions of a group that a text names."""


def bounded(text: str, *, limit: int = ERROR_TEXT) -> str:
    """Return the text with at most `limit` characters, without lone surrogates.

    Of a subclass only the characters are taken: none of its methods is called.
    """
    text = str.__str__(text)
    kept = text if len(text) <= limit else text[: limit - 1] + "…"
    return kept.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


_CLASS_NAME: Final = type.__dict__["__name__"]
"""What a class has for a name, whatever its metaclass says."""


def kind_of(value: object) -> str:
    """Return the name of a value's class; no code of either runs."""
    return bounded(_CLASS_NAME.__get__(type(value)), limit=PLACE)


_OWN_TEXT: Final = frozenset(
    id(it)
    for it in vars(builtins).values()
    if isinstance(it, type)
    and issubclass(it, BaseException)
    and it.__str__ in {BaseException.__str__, KeyError.__str__}
)
"""Python's own exceptions that show nothing but what they were given, by `id`: a class may have a
metaclass whose `__hash__` or `__eq__` is a stranger's."""


def is_plain_error(error: BaseException) -> bool:
    """Whether saying what it says runs nobody's code, and takes no time."""
    if id(type(error)) not in _OWN_TEXT:
        return False
    return all(
        it is None or type(it) is int or (type(it) is str and len(it) <= ERROR_TEXT)
        for it in error.args
    )


_MEMBERS: Final = BaseExceptionGroup.__dict__["exceptions"]
"""What a group holds, whatever a subclass says."""


def leaves_doubt(error: BaseException, *kinds: type[BaseException]) -> bool:
    """Whether it is an `OutcomeUnknown`, or one of `kinds`, or a group that holds such a one.

    No code of it runs.
    """
    unseen = [error]
    while unseen:
        it = unseen.pop()
        if issubclass(type(it), (OutcomeUnknown, *kinds)):
            return True
        if issubclass(type(it), BaseExceptionGroup):
            unseen += _MEMBERS.__get__(it)
    return False


def said(error: BaseException) -> str:
    """Return the type of an exception and what it says; of a group, what its members say.

    Code of the exception runs, which may take its time: where that matters, in a thread.
    """
    try:
        return _said(error)
    except BaseException:  # noqa: BLE001 - a __str__ that raises must not hide the failure
        return f"{kind_of(error)}: (its text cannot be shown)"


def _said(error: BaseException) -> str:
    if issubclass(type(error), BaseExceptionGroup):
        leaves = list(_leaves(cast("_Group", error)))
        more = "" if len(leaves) <= GROUP_SHOWN else f"; and {len(leaves) - GROUP_SHOWN} more"
        return bounded("; ".join(said(leaf) for leaf in leaves[:GROUP_SHOWN]) + more)
    kind = kind_of(error)
    text = str.__str__(str(error)).strip()
    return bounded(f"{kind}: {text}" if text else kind)


def _leaves(group: _Group) -> Iterator[BaseException]:
    for error in group.exceptions:
        if issubclass(type(error), BaseExceptionGroup):
            yield from _leaves(cast("_Group", error))
        else:
            yield error


def path(steps: Iterable[str | int]) -> str:
    """Return steps into a JSON value as one place: items[2].price."""
    text = ""
    for step in steps:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return bounded(text.removeprefix("."), limit=PLACE)
