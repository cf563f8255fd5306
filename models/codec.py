"""Records to and from JSON: strict, versioned, with the place of every fault.

Reading refuses what it does not know: unknown fields by name, wrong types (never ``"5"`` for 5),
absent fields. An optional field that is null is absent, except `result`, whose presence counts
(kernel.md section 3). Writing is flat: the type first, then the fields that are given.

cattrs generates one function for each class and direction; the tag is looked up outside of them,
and the checks are those of the records' own constructors. (cattrs' tagged unions take twice the
time to write, and would turn 5 into "5" before a constructor can refuse it: docs/measurements.md.)
Nothing of the kernel imports this module.

The face of turnlock has `to_json` and the functions `…_from_json`; the others, for JSON objects
that are parsed already, belong to turnlock itself.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import attrs
import msgspec
from cattrs import Converter
from cattrs.errors import ForbiddenExtraKeysError
from cattrs.fns import identity
from cattrs.gen import (
    make_dict_structure_fn_from_attrs,  # pyright: ignore[reportUnknownVariableType]
    make_dict_unstructure_fn_from_attrs,  # pyright: ignore[reportUnknownVariableType]
    override,
)

from .deliveries import DELIVERIES, Delivery
from .diagnostics import DIAGNOSTICS
from .effects import EFFECTS, Effect
from .errors import InvalidValue, NewerVersion, shown
from .facts import FACTS, Fact
from .record import Record, fields_of
from .strict_json import parse
from .verdicts import Accepted, Refused, Verdict

R = TypeVar("R", bound=Record)
Raw = dict[str, Any]
Upgrade = Callable[[Raw], Raw]

VERSION: Final = 2
"""The version of stored records that this code writes."""


def _phase_says_what_is_owed(stored: Raw) -> Raw:
    """Make a snapshot of version 1 one of version 2; facts of both read alike.

    Version 1 kept `owed` beside the phase: what it meant is now told by the phase (K-60) and by
    whether the call requires approval. Of one that was approved or has ended nobody asks.
    """
    turn = stored.get("turn")
    if not isinstance(turn, dict):
        return stored
    members: list[Any] = []
    for member in cast("Raw", turn).get("members", []):
        phase, owed = member.get("phase"), member.get("owed")
        kept = {name: value for name, value in member.items() if name != "owed"}
        kept["requires_approval"] = phase == "APPROVED" or (phase == "REQUESTED" and not owed)
        if phase == "IN_DOUBT" and owed:
            kept["phase"] = "RETRY_AUTHORISED"
        members.append(kept)
    return {**stored, "turn": {**cast("Raw", turn), "members": members}}


UPGRADES: Final[dict[int, Upgrade]] = {1: _phase_says_what_is_owed}
"""How a record of version n becomes one of n + 1."""

WIRE_NAMES: Final = {"resolution": "as"}
"""Fields whose name on the wire is a word of Python."""

ALWAYS_WRITTEN: Final = frozenset({"observed"})
"""Fields that are written though they have their default: a call carries the field (K-58)."""

_CONVERTER: Final = Converter(
    forbid_extra_keys=True, prefer_attrib_converters=True, detailed_validation=False
)
_NULL_COUNTS: Final = "result"


def write(record: Record) -> Raw:
    """Return a record as a flat JSON object: its type first, then the fields that are given."""
    written: Raw = _WRITERS[type(record)](record)
    return written


def to_json(record: Record) -> bytes:
    """Return a record as one line of compact JSON without its end, as a journal keeps it.

    Any fact, delivery, effect, verdict or snapshot: its fields, flat, and `type` where it has one,
    `accepted` for a verdict; `version` says which version of turnlock wrote it.
    """
    return msgspec.json.encode({"version": VERSION, **write(record)})


def read(cls: type[R], raw: object, *, place: str = "") -> R:
    """Build a record of this class from a JSON object, or raise `InvalidValue` at its place."""
    try:
        types = _TYPES.get(cls)
        built = _READERS[cls](raw) if types is None else _read_tagged(types, raw)
    except InvalidValue as error:
        raise (error.inside(place) if place else error) from None
    return cast("R", built)


def read_delivery(raw: object) -> Delivery:
    """Build the delivery that a JSON object describes; `type` says which."""
    return cast("Delivery", _read_tagged(_TYPES[Delivery], raw))


def read_fact(raw: object) -> Fact:
    """Build the fact that a JSON object describes; `type` says which."""
    return cast("Fact", _read_tagged(_TYPES[Fact], raw))


def read_effect(raw: object) -> Effect:
    """Build the effect that a JSON object describes; `type` says which."""
    return cast("Effect", _read_tagged(_TYPES[Effect], raw))


def read_verdict(raw: object) -> Verdict:
    """Build the verdict that a JSON object describes; `accepted` says which."""
    fields = dict(_object(raw))
    accepted = fields.pop("accepted", None)
    if type(accepted) is not bool:
        raise InvalidValue(
            place="accepted",
            cause="is missing" if accepted is None else f"{shown(accepted)} is no boolean",
            fix="give true or false",
        )
    return read(Accepted, fields) if accepted else read(Refused, fields)


def fact_from_json(line: str | bytes) -> Fact:
    """Build a fact from a line that `to_json` wrote, in this version or an older one.

    Raises `InvalidValue` at the place of what is not as it must be.
    """
    return read_fact(upgraded(parse(line)))


def delivery_from_json(line: str | bytes) -> Delivery:
    """Build a delivery from a line that `to_json` wrote; raises as `fact_from_json` does."""
    return read_delivery(upgraded(parse(line)))


def effect_from_json(line: str | bytes) -> Effect:
    """Build an effect from a line that `to_json` wrote; raises as `fact_from_json` does."""
    return read_effect(upgraded(parse(line)))


def verdict_from_json(line: str | bytes) -> Verdict:
    """Build a verdict from a line that `to_json` wrote; raises as `fact_from_json` does."""
    return read_verdict(upgraded(parse(line)))


def record_from_json(cls: type[R], text: str | bytes) -> R:
    """Build a stored record, such as a snapshot, upgrading what an older version wrote."""
    return read(cls, upgraded(parse(text)))


def upgraded(raw: object) -> Raw:
    """Return a stored object as the current version would have written it, without its version.

    An object without a version is taken for a current one. One from the future is refused.
    """
    stored = dict(_object(raw))
    version = stored.pop("version", VERSION)
    if type(version) is not int or not 1 <= version <= VERSION:
        is_newer = type(version) is int and version > VERSION
        raise (NewerVersion if is_newer else InvalidValue)(
            place="version",
            cause=f"{shown(version)} is not a version that this turnlock reads",
            fix=f"use a turnlock that knows it, or a record of version 1 … {VERSION}",
        )
    for step in range(version, VERSION):
        stored = UPGRADES[step](stored)
    return stored


def _read_tagged(classes: Mapping[str, type[Record]], raw: object) -> Record:
    fields = dict(_object(raw))
    tag = fields.pop("type", None)
    cls = classes.get(tag) if isinstance(tag, str) else None
    if cls is None:
        raise InvalidValue(
            place="type",
            cause="is missing" if tag is None else f"{shown(tag)} is no known type",
            fix="give one of " + ", ".join(classes),
        )
    return cast("Record", _READERS[cls](fields))


def _object(raw: object) -> Raw:
    if not isinstance(raw, dict):
        raise InvalidValue(
            place="", cause=f"{shown(raw)} is no JSON object", fix="give an object in braces"
        )
    return cast("Raw", raw)


def _make_reader(cls: type[Record]) -> Callable[[object], Any]:
    """Return the function that builds this class from a JSON object without its type."""
    nested = nested_records(cls)
    fields = fields_of(cls)
    wire_name = {field.name: WIRE_NAMES.get(field.name, field.name) for field in fields}
    nullable = {
        wire_name[field.name]
        for field in fields
        if field.init and field.default is not attrs.NOTHING and field.name != _NULL_COUNTS
    }
    overrides: Any = {
        field.name: override(
            rename=wire_name[field.name], struct_hook=_nested_reader(field.name, nested)
        )
        for field in fields
    }
    build = make_dict_structure_fn_from_attrs(
        # What has no hook is handed over as it is: the constructor checks it.
        [field.evolve(converter=identity) for field in fields],
        cls,
        _CONVERTER,
        **overrides,
    )

    def read_fields(raw: object) -> Any:  # noqa: ANN401 - an instance of cls
        given = _object(raw)
        if None in given.values():  # a null is as good as absent, where absent is allowed
            given = {
                name: value
                for name, value in given.items()
                if value is not None or name not in nullable
            }
        try:
            return build(given)
        except KeyError as error:
            raise InvalidValue(
                place=str(error.args[0]), cause="is missing", fix="give this field"
            ) from None
        except ForbiddenExtraKeysError as error:
            known = ", ".join(wire_name[field.name] for field in fields if field.init)
            raise InvalidValue(
                place=min(error.extra_fields),
                cause="is no known field here",
                fix=f"leave it out; known are {known}",
            ) from None
        except InvalidValue as error:
            place = wire_name.get(error.place, error.place)
            raise InvalidValue(place=place, cause=error.cause, fix=error.fix) from None

    return read_fields


def _make_writer(cls: type[Record]) -> Callable[[Any], Raw]:
    """Return the function that writes this class."""
    nested = nested_records(cls)
    fields = fields_of(cls)
    overrides: Any = {
        field.name: override(
            rename=WIRE_NAMES.get(field.name),
            unstruct_hook=_nested_writer(field.name, nested),
            omit_if_default=False if field.name in ALWAYS_WRITTEN else None,
        )
        for field in fields
    }
    write_fields = make_dict_unstructure_fn_from_attrs(
        [field.evolve(converter=None) for field in fields],
        cls,
        _CONVERTER,
        _cattrs_omit_if_default=True,
        **overrides,
    )
    name = "accepted" if cls in {Accepted, Refused} else "type"
    tag = getattr(cls, name, None)
    if tag is None:
        return write_fields

    def write_tagged(record: Any) -> Raw:  # noqa: ANN401 - an instance of cls
        return {name: tag, **write_fields(record)}

    return write_tagged


class Nested:
    """How a field holds records: one, or many in a tuple; `kind` str is a tuple of texts."""

    def __init__(self, kind: Any, *, many: bool) -> None:  # noqa: ANN401 - a class
        """Say what is held."""
        self.kind = kind
        self.many = many


def nested_records(cls: type[Record]) -> dict[str, Nested]:
    """Return the fields of a class that hold records or tuples, found by their annotations."""
    nested: dict[str, Nested] = {}
    for name, hint in get_type_hints(cls).items():
        for option in get_args(hint) if get_origin(hint) in {Union, types.UnionType} else (hint,):
            if get_origin(option) is tuple:
                nested[name] = Nested(get_args(option)[0], many=True)
            elif isinstance(option, type) and issubclass(option, Record):
                nested[name] = Nested(option, many=False)
    return nested


def _nested_reader(name: str, nested: dict[str, Nested]) -> Callable[[Any, Any], Any] | None:
    how = nested.get(name)
    if how is None:
        return None

    def read_one(raw: object, place: str) -> object:
        return raw if how.kind is str else read(how.kind, raw, place=place)

    def read_nested(raw: object, _: object) -> object:
        if not how.many:
            return read_one(raw, name)
        if not isinstance(raw, list):
            raise InvalidValue(
                place=name, cause=f"{shown(raw)} is no JSON array", fix="give a list in brackets"
            )
        items = cast("list[object]", raw)
        return tuple(read_one(item, f"{name}[{index}]") for index, item in enumerate(items))

    return read_nested


def _nested_writer(name: str, nested: dict[str, Nested]) -> Callable[[Any], Any]:
    how = nested.get(name)
    if how is None:
        return identity

    def write_nested(value: Any) -> Any:  # noqa: ANN401 - a record or a tuple: None is left out
        if how.kind is str:
            return list(value)
        return [write(item) for item in value] if how.many else write(value)

    return write_nested


class _ByClass(dict[type[Record], Callable[[Any], Any]]):
    """The functions for each class, made when the class is first met."""

    def __init__(self, make: Callable[[type[Record]], Callable[[Any], Any]]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, cls: type[Record]) -> Callable[[Any], Any]:
        made = self[cls] = self._make(cls)
        return made


_READERS: Final = _ByClass(_make_reader)
_WRITERS: Final = _ByClass(_make_writer)
_TYPED: Final[tuple[Any, ...]] = (*DELIVERIES, *FACTS, *EFFECTS, *DIAGNOSTICS)
_TYPES: Final[dict[type[Record], dict[str, type[Record]]]] = {
    Delivery: {cls.type: cls for cls in DELIVERIES},
    Fact: {str(cls.type): cls for cls in FACTS},
    Effect: {cls.type: cls for cls in EFFECTS},
    **{cls: {str(cls.type): cls} for cls in _TYPED},
}
"""For each class whose records carry a type: the classes that a type may name."""
