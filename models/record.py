"""How every noun is built: frozen, keyword-only, checked where a caller builds it (K-8).

`record` is `attrs.define` with the settings of this project. Equality, hash and repr stand once in
`Record` and not in each class: generating them for fifty classes would double the import time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar, cast, dataclass_transform

import attrs

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound=type)
RecordT = TypeVar("RecordT", bound="Record")


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
    frozen_default=True, kw_only_default=True, eq_default=False, field_specifiers=(attrs.field,)
)
def record(cls: T) -> T:
    """Make a class a record: frozen, keyword-only, slotted, without generated comparisons."""
    return _define(cls, buildable=True)


@dataclass_transform(
    frozen_default=True, kw_only_default=True, eq_default=False, field_specifiers=(attrs.field,)
)
def base(cls: T) -> T:
    """Make a class the common part of records: like `record`, but nobody builds one."""
    return _define(cls, buildable=False)


def _define(cls: T, *, buildable: bool) -> T:
    return attrs.define(
        cls,
        init=buildable,
        frozen=True,
        kw_only=True,
        eq=False,
        repr=False,
        match_args=False,
        weakref_slot=False,
    )


def unchecked_maker(cls: Callable[P, R]) -> Callable[P, R]:
    """Return a maker with the signature of a record's constructor that trusts its arguments.

    The kernel builds facts, effects and verdicts from values that were checked when the delivery
    was built, so it need not check them again. The maker fills a mutable twin of the same slots
    and then gives it the frozen class: an eighth of the time of the public constructor, and what it
    makes is equal to what that builds (tests/models/test_unchecked.py).
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
    thaw = {"__setattr__": object.__setattr__, "__delattr__": object.__delattr__}
    twin = type("Twin", cls.__bases__, {"__slots__": cls.__slots__, **thaw})
    names: dict[str, Any] = {"Twin": twin, "Frozen": cls}
    keywords: list[str] = []
    lines = [f"    {name} = {source}" for name, source in shorthand.items()]
    lines.append("    made = Twin()")
    for field in fields_of(cls):
        lines.append(f"    made.{field.name} = {given.get(field.name, field.name)}")
        if field.name in given:
            continue
        if field.default is attrs.NOTHING:
            keywords.append(field.name)
        else:
            names[f"default_{field.name}"] = field.default
            keywords.append(f"{field.name}=default_{field.name}")
    parameters = [*context, *(["*", *keywords] if keywords else [])]
    lines = [f"def make({', '.join(parameters)}):", *lines, "    made.__class__ = Frozen"]
    exec("\n".join([*lines, "    return made"]), names)  # noqa: S102 - made of field names alone
    return names["make"]
