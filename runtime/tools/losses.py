"""What pydantic would drop in silence from a hint, refused where the tool is declared.

It skips what it does not know beside a type (`Annotated[int, msgspec.Meta(ge=0)]`), and applies
some constraints to types that have no use for them. A model that allows any further field says
nothing to a model that fills it in. All types below a hint are looked into.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import AsyncIterable, Generator, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Annotated, Any, Final, Literal, cast

import annotated_types
from pydantic import BaseModel, OnErrorOmit, TypeAdapter
from pydantic.fields import FieldInfo
from typing_extensions import is_typeddict

from ...models.errors import InvalidValue

_UNREAD: Final = (annotated_types.Unit, annotated_types.Timezone)
"""Of annotated-types, what pydantic takes for nothing."""
_OMITS: Final = typing.get_args(OnErrorOmit[int])[1]
_READ: Final = (FieldInfo, annotated_types.BaseMetadata, annotated_types.GroupedMetadata)
_HOOKS: Final = ("__get_pydantic_core_schema__", "__get_pydantic_json_schema__")

_LAZY: Final[frozenset[Any]] = frozenset({Iterable, Iterator, Generator, AsyncIterable})
"""What pydantic checks while it is read: in the tool, that is."""

_ORDERED: Final = frozenset({"integer", "number", "date", "date-time", "time", "duration"})
_SIZED: Final = frozenset({"string", "array", "object"})
_SUITS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("gt", "ge", "lt", "le"), _ORDERED),
    "multiple_of": frozenset({"integer", "number"}),
    **dict.fromkeys(("min_length", "max_length"), _SIZED),
    "pattern": frozenset({"string"}),
}
"""The constraints that a schema can say, and what each of them constrains."""

_OF_A_FIELD: Final = ("alias", "validation_alias", "serialization_alias", "default_factory")
"""What `Field` says of a field of a class, and of a parameter in vain."""


def check_parameter(name: str, hint: Any) -> None:  # noqa: ANN401 - a type hint
    """Raise `InvalidValue` where something of a parameter's hint would be lost."""
    seen: list[Any] = []
    for cause, fix in (*_lost_of_field(hint), *_lost(hint, seen)):
        raise InvalidValue(place=f"parameter {name}", cause=cause, fix=fix)


_Loss = tuple[str, str]
"""The cause, and the fix."""


def _lost_of_field(hint: Any) -> Iterator[_Loss]:  # noqa: ANN401 - a type hint
    for it in getattr(hint, "__metadata__", ()):
        if isinstance(it, FieldInfo):
            for what in _OF_A_FIELD:
                if getattr(it, what) is not None:
                    yield f"its Field says {what}, and a parameter has none", "leave that out"
            if not it.is_required():
                yield "its Field has a default", "give the parameter the default: x: … = 3"


def _lost(hint: Any, seen: list[Any]) -> Iterator[_Loss]:  # noqa: ANN401 - a type hint
    if any(hint is it for it in seen):
        return
    seen.append(hint)
    if hasattr(hint, "__value__"):  # type Name = …
        yield from _lost(hint.__value__, seen)
    elif typing.get_origin(hint) is Annotated:
        yield from _lost_beside(hint.__origin__, hint.__metadata__)
        yield from _lost(hint.__origin__, seen)
    elif typing.get_origin(hint) is not Literal:
        yield from _lost_in_class(typing.get_origin(hint) or hint, seen)
        for inside in typing.get_args(hint):
            yield from _lost(inside, seen)


def _lost_in_class(found: Any, seen: list[Any]) -> Iterator[_Loss]:  # noqa: ANN401 - a class
    if not isinstance(found, type):
        return
    kind = cast("type[Any]", found)
    if kind in _LAZY:
        yield f"{kind.__name__} is checked only while the tool reads it", "write list[…]"
    config: Mapping[str, Any] = getattr(kind, "model_config", None) or getattr(
        kind, "__pydantic_config__", {}
    )
    if config.get("extra") == "allow":
        yield (
            f"{kind.__name__} allows any further field, of which a model is told nothing",
            "declare what may be given: a field of the type dict[str, …], say",
        )
    if issubclass(kind, BaseModel):
        for field in kind.model_fields.values():
            yield from _lost_beside(field.annotation, field.metadata)
            yield from _lost(field.annotation, seen)
    elif dataclasses.is_dataclass(kind) or is_typeddict(kind) or hasattr(kind, "_fields"):
        for hint in typing.get_type_hints(kind, include_extras=True).values():
            yield from _lost(hint, seen)


def _lost_beside(hint: Any, metadata: typing.Sequence[Any]) -> Iterator[_Loss]:  # noqa: ANN401 - a type hint
    for it in metadata:
        if it is _OMITS:
            yield "OnErrorOmit drops what does not fit", "leave that out"
        known = it is None or (isinstance(it, _READ) and not isinstance(it, _UNREAD))
        if not known and not any(hasattr(it, hook) for hook in _HOOKS):
            yield f"pydantic does not read {it!r} beside a type", "write it as Field(…)"
        if getattr(it, "strict", None) is False:
            yield "strict=False has no effect: nothing is converted", "leave that out"
        held = it.metadata if isinstance(it, FieldInfo) else (it,)
        for one in held:
            for what, suits in _SUITS.items():
                if getattr(one, what, None) is not None and not _kinds(hint) <= suits:
                    yield f"{what} constrains nothing of {_named(hint)}", "leave that out"


def _kinds(hint: Any) -> set[str]:  # noqa: ANN401 - a type hint
    """Return the kinds of JSON that a hint takes, dates by their format; nothing where any."""
    if Decimal in {hint, *typing.get_args(hint)}:
        return {"number"}  # which may be written as text
    schema = TypeAdapter(hint).json_schema()
    definitions: Mapping[str, Any] = schema.get("$defs", {})
    kinds: set[str] = set()
    todo: list[Mapping[str, Any]] = [schema]
    while todo:
        part = todo.pop()
        if "$ref" in part:
            part = definitions[part["$ref"].removeprefix("#/$defs/")]
        todo += [*part.get("anyOf", ()), *part.get("oneOf", ())]
        kind = part.get("format") if part.get("format") in _ORDERED else part.get("type")
        kinds |= {kind} if isinstance(kind, str) else set()
    return kinds - {"null"}


def _named(hint: Any) -> str:  # noqa: ANN401 - a type hint
    return getattr(hint, "__name__", None) or str(hint)
