"""How every noun is built: frozen, keyword-only, checked where a caller builds it (K-8).

`record` is `attrs.define` with the settings of this project, put off until a class is needed, and
`field` is `attrs.field`, put off likewise: of sixty classes a process that starts needs five, and
the rest took a quarter of an import's time.
What is alike in all of them (equality, hash, repr, that they are frozen) stands once in `Record`.
What a field may hold is checked by the functions below; nothing is ever coerced.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    NoReturn,
    ParamSpec,
    Self,
    TypeAlias,
    TypeVar,
    cast,
    dataclass_transform,
)

import attrs

from .errors import InvalidValue, shown
from .values import INTEGER_BITS, Absent, Json, check_text, freeze

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound=type)
RecordT = TypeVar("RecordT", bound="Record")


class _Told:
    """What `attrs.field` will be told, once attrs writes the class: most are never written."""

    __slots__ = ("told",)

    def __init__(self, **told: Any) -> None:  # noqa: ANN401 - what attrs.field takes
        self.told = told


if TYPE_CHECKING:
    from attrs import field as field  # noqa: PLC0414 - exported
else:
    field = _Told


def fields_of(cls: type) -> tuple[attrs.Attribute[Any], ...]:
    """Return the fields of a record class, those of its bases first."""
    fields: tuple[attrs.Attribute[Any], ...] = attrs.fields(cast("Any", cls))
    return fields


class Record:
    """Base of all records: equal when of one class with equal fields."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        """Compare class and fields."""
        return type(other) is type(self) and all(
            getattr(self, field.name) == getattr(other, field.name)
            for field in fields_of(type(self))
        )

    def __hash__(self) -> int:
        """Hash the scalar fields; JSON values do not take part, equality decides about them."""
        values = (getattr(self, field.name) for field in fields_of(type(self)))
        return hash((type(self), *(v for v in values if isinstance(v, str | int | float))))

    def __repr__(self) -> str:
        """Show the fields that differ from their defaults."""
        shown = (
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields_of(type(self))
            if getattr(self, field.name) is not field.default
        )
        return f"{type(self).__name__}({', '.join(shown)})"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        """Refuse."""
        raise attrs.exceptions.FrozenInstanceError

    def __delattr__(self, name: str) -> NoReturn:
        """Refuse."""
        raise attrs.exceptions.FrozenInstanceError

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields by name: what a copy and a pickle take along."""
        return {field.name: getattr(self, field.name) for field in fields_of(type(self))}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Take the fields over."""
        for name, value in state.items():
            object.__setattr__(self, name, value)

    def __replace__(self, /, **fields: Any) -> Self:  # noqa: ANN401 - any field
        """Return what `copy.replace` asks for (Python 3.13)."""
        return changed(self, **fields)


def changed(it: RecordT, **fields: Any) -> RecordT:  # noqa: ANN401 - any field
    """Return a record like `it` but for these fields; the constructor checks all of it again."""
    kind = type(it)
    names = _PARAMETERS.get(kind)
    if names is None:
        names = _PARAMETERS[kind] = tuple(it.name for it in fields_of(kind) if it.init)
    for name in names:
        if name not in fields:
            fields[name] = getattr(it, name)
    return kind(**fields)


_PARAMETERS: dict[type, tuple[str, ...]] = {}
"""What the constructor of a record class takes: `attrs.evolve` would find it out each time."""


@dataclass_transform(
    frozen_default=True, kw_only_default=True, eq_default=False, field_specifiers=(field,)
)
def record(cls: T) -> T:
    """Make a class a record: frozen, keyword-only, slotted, without generated comparisons."""
    return _define(cls, buildable=True)


@dataclass_transform(
    frozen_default=True, kw_only_default=True, eq_default=False, field_specifiers=(field,)
)
def base(cls: T) -> T:
    """Make a class the common part of records: like `record`, but nobody builds one."""
    return _define(cls, buildable=False)


def _define(cls: T, *, buildable: bool) -> T:
    """Return the class with a slot for each field; attrs writes its parts when they are needed."""
    slots = tuple(name for name, told in cls.__annotations__.items() if "ClassVar" not in told)
    left_out = (*slots, "__dict__", "__weakref__")
    body = {name: it for name, it in vars(cls).items() if name not in left_out}
    body |= {"__slots__": slots, "__qualname__": cls.__qualname__, "__attrs_attrs__": _Later(cls)}
    if buildable:
        body["__init__"] = _Later(cls)
    return type(cls)(cls.__name__, cls.__bases__, body)  # pyright: ignore[reportReturnType]


class _Later:
    """Stands for a part of a record class, until somebody asks and attrs writes it."""

    def __init__(self, declared: type) -> None:
        self._declared = declared

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._name = owner, name

    def __get__(self, it: object, kind: type) -> Any:  # noqa: ANN401 - whatever it stands for
        setattr(self._owner, self._name, vars(_written(self._declared))[self._name])
        return getattr(kind if it is None else it, self._name)


def _written(declared: type) -> type:
    """Let attrs write the class, once: who asks at the same time gets the same fields."""
    if declared not in _WRITTEN:
        for name, it in list(vars(declared).items()):
            if isinstance(it, _Told):
                setattr(declared, name, attrs.field(**it.told))
        written = attrs.define(declared, frozen=True, kw_only=True, eq=False, repr=False)
        _WRITTEN.setdefault(declared, written)
    return _WRITTEN[declared]


_WRITTEN: Final[dict[type, type]] = {}


def unchecked_maker(cls: Callable[P, R]) -> Callable[P, R]:
    """Return a maker with the signature of a record's constructor that trusts its arguments.

    The kernel builds facts, effects and verdicts from values that were checked when the delivery
    was built, so it need not check them again. It is given all of the fields, the optional ones
    too. The maker fills a twin, a mutable subclass, and then gives it the frozen class: an
    eighth of the time of the public constructor, and what it makes is equal to what that builds
    (tests/models/test_unchecked.py).
    """
    return cast("Callable[P, R]", _maker(cls, (), {}, {}))


def unchecked_maker_from(
    cls: Callable[..., R],
    *,
    context: tuple[str, ...],
    shorthand: Mapping[str, str],
    fields: Mapping[str, str],
) -> Callable[..., R]:
    """Return such a maker that reads the fields in `fields` off its leading arguments.

    Made from TurnSealed, ``context=("turn", "now")`` and ``fields={"turn_id": "turn.turn_id", …}``
    it is ``make(turn, now, *, …)``; the other fields stay keyword arguments. `shorthand` are local
    names that `fields` may use. (Twins that attrs generates, without source in strings, took two to
    three times as long.)
    """
    return cast("Callable[..., R]", _maker(cls, context, shorthand, fields))


def _maker(
    cls: Any,  # noqa: ANN401
    context: tuple[str, ...],
    shorthand: Mapping[str, str],
    given: Mapping[str, str],
) -> Any:  # noqa: ANN401
    """Return a maker that is written at its first call: one receive needs few of the thirty."""

    def write() -> Any:  # noqa: ANN401 - the maker
        # `__delattr__`, too, though nothing is deleted: beside a frozen one CPython stores slowly.
        plain = {it: getattr(object, it) for it in ("__init__", "__setattr__", "__delattr__")}
        names["Twin"] = type(cls.__name__, (cls,), {"__slots__": (), **plain})
        kinds: tuple[type, ...] = cls.__mro__
        fields = [name for kind in reversed(kinds) for name in vars(kind).get("__slots__", ())]
        keywords = [name for name in fields if name not in given]
        parameters = [*context, *(["*", *keywords] if keywords else [])]
        lines = [
            f"def make({', '.join(parameters)}):",
            *(f"    {name} = {source}" for name, source in shorthand.items()),
            "    made = Twin()",
            *(f"    made.{name} = {given.get(name, name)}" for name in fields),
            "    made.__class__ = Frozen",
            "    return made",
        ]
        written: dict[str, Any] = {}
        exec("\n".join(lines), written)  # noqa: S102 - made of field names alone
        make.__code__ = written["make"].__code__
        return make

    names: dict[str, Any] = {"Frozen": cls, "write": write}
    exec(_UNWRITTEN, names)  # noqa: S102 - the text below
    make = names["make"]
    return make


_UNWRITTEN: Final = compile(
    "def make(*context, **fields): return write()(*context, **fields)", "<maker>", "exec"
)
"""What a maker does at its first call: it has itself written, and is called again."""


Check: TypeAlias = "Callable[[Any, attrs.Attribute[Any], Any], None]"


def identifier(_: object, field: attrs.Attribute[Any], value: object) -> None:
    """Accept non-empty text that UTF-8 can hold."""
    _text(field.name, value)
    if not value:
        raise InvalidValue(place=field.name, cause="is empty", fix="give a non-empty text")


def any_text(_: object, field: attrs.Attribute[Any], value: object) -> None:
    """Accept text that UTF-8 can hold, the empty one too."""
    _text(field.name, value)


def _text(place: str, value: object) -> None:
    if type(value) is not str:
        _wrong(place, value, "a text")
    check_text(value, place=place)


def flag(_: object, field: attrs.Attribute[Any], value: object) -> None:
    """Accept True and False."""
    if value is not True and value is not False:
        _wrong(field.name, value, "true or false")


def whole(_: object, field: attrs.Attribute[Any], value: object) -> None:
    """Accept an integer of any sign: whether it is the right one is for the kernel to say."""
    _whole(field.name, value)


def count(_: object, field: attrs.Attribute[Any], value: object) -> None:
    """Accept an integer of at least zero."""
    if _whole(field.name, value) < 0:
        raise InvalidValue(
            place=field.name, cause=f"{shown(value)} is negative", fix="give 0 or more"
        )


def _whole(place: str, value: object) -> int:
    if type(value) is not int:
        _wrong(place, value, "a whole number")
    if value.bit_length() > INTEGER_BITS:  # it could not even be printed
        _wrong(place, value, f"an integer of at most {INTEGER_BITS} bits")
    return value


def instant(_: object, field: attrs.Attribute[Any], value: object) -> None:
    """Accept a finite number: Unix time in seconds."""
    number(value, place=field.name)


def seconds(_: object, field: attrs.Attribute[Any], value: object) -> None:
    """Accept a finite number of seconds that is not negative."""
    if number(value, place=field.name) < 0:
        raise InvalidValue(place=field.name, cause=f"{value} is negative", fix="give 0 s or more")


def number(value: object, *, place: str) -> float:
    """Return a finite number as a float, or raise at `place`."""
    if type(value) is not float and type(value) is not int:
        _wrong(place, value, "a number")
    try:
        as_float = float(value)
    except OverflowError:
        as_float = math.inf
    if not math.isfinite(as_float):
        raise InvalidValue(
            place=place, cause=f"{shown(value)} is not finite", fix="give a finite number"
        )
    return as_float


def optional(check: Check) -> Check:
    """Accept None, too: an optional field that is null is absent (kernel.md section 3)."""

    def check_unless_none(record: object, field: attrs.Attribute[Any], value: object) -> None:
        if value is not None:
            check(record, field, value)

    return check_unless_none


def instance(kind: type, *, below: bool = False) -> Check:
    """Accept instances of one class of ours; with `below`, of its subclasses too.

    Else a subclass could answer otherwise each time it is asked (K-32).
    """

    def check_instance(_: object, field: attrs.Attribute[Any], value: object) -> None:
        _instance(field.name, value, kind, below=below)

    return check_instance


def instances(kind: type, *, below: bool = False) -> Check:
    """Accept a tuple of instances of one class of ours; with `below`, of its subclasses too."""

    def check_instances(_: object, field: attrs.Attribute[Any], value: object) -> None:
        if type(value) is not tuple:
            _wrong(field.name, value, f"a tuple of {kind.__name__}")
        for index, item in enumerate(cast("tuple[object, ...]", value)):
            _instance(f"{field.name}[{index}]", item, kind, below=below)

    return check_instances


def _instance(place: str, value: object, kind: type, *, below: bool) -> None:
    if type(value) is not kind and not (below and isinstance(value, kind)):
        _wrong(place, value, f"a {kind.__name__}")


def _wrong(place: str, value: object, right: str) -> NoReturn:
    raise InvalidValue(place=place, cause=f"{shown(value)} is not {right}", fix=f"give {right}")


def _json_value(value: object, field: attrs.Attribute[Any]) -> Json:
    frozen: Json = freeze(value, place=field.name)
    return frozen


def _json_object(value: object, field: attrs.Attribute[Any]) -> Mapping[str, Json]:
    if not isinstance(value, Mapping):
        _wrong(field.name, value, "a JSON object")
    frozen: Mapping[str, Json] = freeze(cast("object", value), place=field.name)
    return frozen


def _optional_json_object(value: object, field: attrs.Attribute[Any]) -> Mapping[str, Json] | None:
    return None if value is None else _json_object(value, field)


def _json_or_absent(value: object, field: attrs.Attribute[Any]) -> Json | Absent:
    return value if isinstance(value, Absent) else _json_value(value, field)


json_value = attrs.Converter(_json_value, takes_field=True)
json_object = attrs.Converter(_json_object, takes_field=True)
optional_json_object = attrs.Converter(_optional_json_object, takes_field=True)
json_or_absent = attrs.Converter(_json_or_absent, takes_field=True)


@cache
def choice(kind: type[StrEnum]) -> Any:  # noqa: ANN401 - the converter type differs in each checker
    """Turn a text into the member of a closed list that has it, or say what the list holds."""
    members = {str(member): member for member in kind}

    def choose(value: object, field: attrs.Attribute[Any]) -> StrEnum:
        member = members.get(value) if isinstance(value, str) else None
        if member is None:
            _wrong(field.name, value, "one of " + ", ".join(members))
        return member

    return attrs.Converter(choose, takes_field=True)
