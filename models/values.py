"""JSON values as the kernel keeps them: checked once, finite, and frozen ever after.

Arguments that somebody approved must be the arguments that run (K-32), so a record never shares a
mutable value with its caller: `freeze` copies on the way in, and what comes out cannot be changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from functools import cache
from importlib import import_module
from typing import Any, Final, NoReturn, TypeAlias, Union, cast

from .errors import InvalidValue, shown

Json: TypeAlias = Union[  # noqa: UP007 - the codec evaluates it, forward references and all
    bool, int, float, str, Sequence["Json"], Mapping[str, "Json"], None
]

DEPTH: Final = 100  # levels of nesting; beyond, recursive readers of other languages fail
INTEGER_BITS: Final = 8192  # CPython refuses to print integers of more than 4,300 digits
LARGE: Final = 1024  # bytes of canonical text that OpenSSL digests in a quarter of the time


class Absent(Enum):
    """The type of `ABSENT`: a field that was not given, where None would be a value (K-36)."""

    ABSENT = "absent"

    def __repr__(self) -> str:
        """Return the name that code uses."""
        return "ABSENT"


ABSENT: Final = Absent.ABSENT


def _refuse(*_: object, **__: object) -> NoReturn:
    message = "a JSON value inside a record cannot be changed: copy it with dict() or list() first"
    raise TypeError(message)


class FrozenDict(dict[str, Any]):
    """A JSON object that cannot be changed; equal to the plain dict, and encoded like it.

    Only `freeze` makes one, so that whoever holds one holds checked values.
    """

    __slots__ = ()
    __init__ = __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __copy__(self) -> FrozenDict:
        """Return itself: nobody can tell the copy from the original."""
        return self

    def __deepcopy__(self, _: object) -> FrozenDict:
        """Return itself: all it holds is frozen too."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a construction, because items cannot be set afterwards."""
        return (_thawed, (dict(self),))


class FrozenList(list[Any]):
    """A JSON array that cannot be changed; equal to the plain list, and encoded like it.

    Only `freeze` makes one, so that whoever holds one holds checked values.
    """

    __slots__ = ()
    __init__ = __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = extend = insert = pop = remove = clear = sort = reverse = _refuse

    def __copy__(self) -> FrozenList:
        """Return itself: nobody can tell the copy from the original."""
        return self

    def __deepcopy__(self, _: object) -> FrozenList:
        """Return itself: all it holds is frozen too."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a construction, because items cannot be set afterwards."""
        return (_thawed, (list(self),))


def freeze(value: object, *, place: str) -> Any:  # noqa: ANN401 - any JSON
    """Return `value` as a frozen JSON value, or raise `InvalidValue` at the place inside it."""
    kind = type(value)
    if kind is FrozenDict or kind is FrozenList:
        return value
    try:
        return _frozen(value, DEPTH)
    except InvalidValue as error:
        raise _within(place, error) from None


def _frozen(value: object, depth: int) -> Any:  # noqa: ANN401 - any JSON
    """Freeze one level. What is frozen already is copied too: it may be too deep down here."""
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is str:
        return check_text(value, place="")
    if kind is int:
        return _integer(value)
    if kind is float:
        return _float(value)
    if depth == 0:
        raise InvalidValue(
            place="", cause=f"is nested deeper than {DEPTH} levels", fix="send it flatter"
        )
    if isinstance(value, Mapping):
        return _frozen_dict(cast("Mapping[object, object]", value), depth - 1)
    if isinstance(value, list | tuple):
        return _frozen_list(cast("Sequence[object]", value), depth - 1)
    raise InvalidValue(
        place="",
        cause=f"{shown(value)} is a {kind.__name__}, not a JSON value",
        fix="use None, bool, int, float, str, list or dict",
    )


def _frozen_dict(value: Mapping[object, object], depth: int) -> FrozenDict:
    frozen: dict[str, Any] = {}
    for key, item in value.items():
        name = _key(key)
        try:
            frozen[name] = _frozen(item, depth)
        except InvalidValue as error:
            raise _within(f".{name}", error) from None
    made: FrozenDict = FrozenDict.__new__(FrozenDict)
    super(FrozenDict, made).update(frozen)
    return made


def _frozen_list(value: Sequence[object], depth: int) -> FrozenList:
    frozen: list[Any] = []
    try:
        for item in value:
            frozen.append(_frozen(item, depth))  # noqa: PERF401 - its length says where it failed
    except InvalidValue as error:
        raise _within(f"[{len(frozen)}]", error) from None
    made: FrozenList = FrozenList.__new__(FrozenList)
    super(FrozenList, made).extend(frozen)
    return made


def _thawed(value: object) -> Any:  # noqa: ANN401 - any JSON
    """Freeze what a pickle held, checked like anything else from outside."""
    return freeze(value, place="pickle")


NO_ARGUMENTS: Final[Mapping[str, Json]] = freeze({}, place="arguments")
"""The arguments of a call that takes none."""


def _within(outer: str, error: InvalidValue) -> InvalidValue:
    """Put the place together on the way out: only what is refused pays for it."""
    return InvalidValue(place=f"{outer}{error.place}", cause=error.cause, fix=error.fix)


def _key(key: object) -> str:
    if type(key) is not str:
        raise InvalidValue(
            place="", cause=f"has the key {shown(key)}, which is no text", fix="use text keys"
        )
    return check_text(key, place=" (a key)")


def _integer(value: Any) -> int:  # noqa: ANN401 - known to be an int
    if value.bit_length() > INTEGER_BITS:
        raise InvalidValue(
            place="",
            cause=f"is an integer of {value.bit_length()} bits",
            fix=f"send at most {INTEGER_BITS} bits, or send it as text",
        )
    return int(value)


def _float(value: Any) -> float:  # noqa: ANN401 - known to be a float
    if not math.isfinite(value):
        raise InvalidValue(
            place="", cause=f"{value} is no JSON number", fix="send a finite number or null"
        )
    return float(value)


def check_text(value: Any, *, place: str) -> str:  # noqa: ANN401 - known to be a str
    """Return the text if UTF-8 can hold it: a lone surrogate has no digest and no journal."""
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InvalidValue(
                place=place,
                cause=f"holds a lone surrogate at character {error.start}",
                fix="replace it, for instance with U+FFFD",
            ) from None
    return str(value)


@cache
def _encoder() -> Callable[[Any], str]:
    import json  # noqa: PLC0415 - a process that digests nothing need not load it

    return json.JSONEncoder(
        sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode


@cache
def _sha256(*, large: bool) -> Callable[[bytes], Any]:
    """Return SHA-256: OpenSSL's, which takes 5 ms to load, for what is large alone.

    As the standard library's `random` does; where the interpreter has none of its own, that one.
    """
    found: Callable[[bytes], Any]
    for name in () if large else ("_sha256", "_sha2"):
        with suppress(ImportError):
            found = import_module(name).sha256
            return found
    found = import_module("hashlib").sha256
    return found


def canonical(value: Json) -> str:
    """Return the one text of a JSON value: sorted keys, no spaces, no escapes (K-32)."""
    return _encoder()(value)


def arguments_digest(arguments: Mapping[str, Json]) -> str:
    """Return the SHA-256 of the canonical text of a call's arguments, in hex (K-32)."""
    text = _encoder()(arguments).encode()
    digest: str = _sha256(large=len(text) > LARGE)(text).hexdigest()
    return digest


def same_json(one: Json, other: Json) -> bool:
    """Say whether two JSON values have the same canonical text: 1, 1.0 and true have not."""
    return one == other and (type(one) is type(other) is str or canonical(one) == canonical(other))
