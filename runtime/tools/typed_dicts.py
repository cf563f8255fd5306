"""TypedDicts of `typing`, as pydantic can read them before Python 3.12: those of typing_extensions.

There the classes of `typing` do not keep what pydantic wants to know, and it refuses them. The
values are dicts either way, so each is rebuilt, wherever it stands in a hint: in containers and
unions, and within another. What stands in a class of another kind is left, since values of that
class are wanted; pydantic's error then names the fix.
"""

from __future__ import annotations

import sys
import types
import typing
from typing import Annotated, Any, Final, Generic, Literal, Union, cast

import typing_extensions
from pydantic.errors import PydanticUserError

_MISREAD: Final = sys.version_info < (3, 12)
_OF_THE_CLASS: Final = frozenset({"__annotations__", "__dict__", "__orig_bases__", "__weakref__"})
"""What is not taken over from a class: its hints are rebuilt, the rest is made anew."""


def with_readable_dicts(hint: Any) -> Any:  # noqa: ANN401 - a type hint
    """Return a hint with such classes rebuilt; itself where it has none, or nothing has to be.

    What their own hints name must be there (NameError).
    """
    return _readable(hint, {}) if _MISREAD else hint


def fix_of(error: Exception) -> str | None:
    """Return what to do about such a class that was left; None for any other error."""
    is_that = isinstance(error, PydanticUserError) and error.code == "typed-dict-version"
    return "write: from typing_extensions import TypedDict" if is_that else None


def _readable(hint: Any, made: dict[Any, Any]) -> Any:  # noqa: ANN401 - a type hint
    """Return it with what was made so far, by class: a class may refer to itself."""
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin is None:
        is_misread = typing_extensions.is_typeddict(hint) and type(hint).__module__ == "typing"
        return _rebuilt(hint, made) if is_misread else hint
    if origin is Literal:
        return hint
    if origin is Annotated:
        bare = _readable(inside[0], made)
        return hint if bare is inside[0] else Annotated[(bare, *hint.__metadata__)]
    readable: tuple[Any, ...] = tuple(_readable(it, made) for it in inside)
    outside = _readable(origin, made)
    if outside is origin and all(one is it for one, it in zip(readable, inside, strict=True)):
        return hint
    if origin in {Union, types.UnionType}:
        return Union[readable]  # noqa: UP007 - they are not written out
    return outside[readable[0] if len(readable) == 1 else readable]


def _rebuilt(kind: Any, made: dict[Any, Any]) -> Any:  # noqa: ANN401 - a TypedDict
    if kind in made:
        return made[kind]
    variables = getattr(kind, "__parameters__", ())
    generic: Any = Generic
    bases = (typing_extensions.TypedDict, *((generic[variables],) if variables else ()))
    new = made[kind] = cast("Any", types.new_class(kind.__name__, bases))
    for name, value in cast("dict[str, Any]", kind.__dict__).items():
        if name not in _OF_THE_CLASS:
            setattr(new, name, value)
    new.__qualname__ = kind.__qualname__
    hints = typing.get_type_hints(kind, include_extras=True)
    new.__annotations__ = {name: _readable(it, made) for name, it in hints.items()}
    return new
