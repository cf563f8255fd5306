"""What a function takes, read off its declaration once: for the model, and for the check."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs
import msgspec
import msgspec.inspect

from ...models.errors import InvalidValue, shown
from ...models.values import freeze
from .calling import ToolContext
from .errors import said

_CONTEXTS: Final = (ToolContext, ToolContext | None, typing.Optional[ToolContext])  # noqa: UP045 - another class than with |, until 3.14
_SCHEMA_FIX: Final = "give the tool parameters=, a JSON Schema, or type hints that msgspec reads"


@attrs.frozen(kw_only=True)
class Parameter:
    """One argument; `hint` is Any where the function says nothing."""

    name: str
    hint: Any
    default: Any
    """`inspect.Parameter.empty` where the argument must be given."""

    @property
    def required(self) -> bool:
        """Whether the argument must be given."""
        return self.default is inspect.Parameter.empty


@attrs.frozen(kw_only=True)
class Signature:
    """The arguments of a function, in order; the `ToolContext` is not one of them."""

    parameters: tuple[Parameter, ...]
    context_name: str | None
    """The parameter that takes the `ToolContext`."""
    bound: frozenset[str]
    """What functools.partial has given already: a secret, say, that no model may replace."""
    takes_any: bool
    """Whether it has ``**kwargs``."""

    def takes(self, name: str) -> bool:
        """Whether a model may give an argument of this name."""
        if any(name == parameter.name for parameter in self.parameters):
            return True
        return self.takes_any and name != self.context_name and name not in self.bound


def read_signature(call: Callable[..., Any]) -> Signature:
    """Read what a callable takes, or raise `InvalidValue` where a model could not call it."""
    _refuse_odd_callable(call)
    try:
        declared = inspect.signature(call)
    except (ValueError, TypeError) as error:
        raise InvalidValue(
            place="call", cause=f"does not say what it takes ({said(error)})", fix="wrap it in def"
        ) from None
    hints = _hints(call)
    bound = _bound_by_partial(call)
    parameters: list[Parameter] = []
    contexts: list[str] = []
    takes_any = False
    for name, it in declared.parameters.items():
        hint = hints.get(name, Any)
        if it.kind in {it.VAR_POSITIONAL, it.POSITIONAL_ONLY}:
            raise InvalidValue(
                place=f"parameter {name}",
                cause="has no name that a model could give",
                fix="declare it without * and before no /: models give arguments by name",
            )
        if it.kind is it.VAR_KEYWORD:
            takes_any = True
        elif hint in _CONTEXTS:
            contexts.append(name)
        elif name not in bound:
            parameters.append(Parameter(name=name, hint=hint, default=it.default))
    if len(contexts) > 1:
        raise InvalidValue(
            place=f"parameter {contexts[1]}", cause="is a second ToolContext", fix="take one"
        )
    return Signature(
        parameters=tuple(parameters),
        context_name=contexts[0] if contexts else None,
        bound=bound,
        takes_any=takes_any,
    )


def _refuse_odd_callable(call: object) -> None:
    if not callable(call) or isinstance(call, type):
        raise InvalidValue(
            place="call", cause=f"{shown(call)} is not a function", fix="give a function"
        )
    if inspect.isgeneratorfunction(call) or inspect.isasyncgenfunction(call):
        raise InvalidValue(
            place="call", cause="yields, and a tool has one result", fix="return a list"
        )


def _hints(call: Callable[..., Any]) -> Mapping[str, Any]:
    """Resolve the annotations, those written as text too."""
    target: Any = call
    while isinstance(target, functools.partial):
        target = target.func
    if not inspect.isroutine(target):
        target = type(target).__call__
    try:
        return typing.get_type_hints(target, include_extras=True)
    except Exception as error:  # noqa: BLE001 - an annotation may be any expression
        raise InvalidValue(
            place="call",
            cause=f"has a type hint that cannot be read ({said(error)})",
            fix="import what it names at run time, not under TYPE_CHECKING, and spell it right",
        ) from None


def _bound_by_partial(call: object) -> frozenset[str]:
    if isinstance(call, functools.partial):
        return frozenset(call.keywords)
    return frozenset()


def arguments_struct(signature: Signature) -> type[msgspec.Struct]:
    """Build the class that checks arguments by their hints.

    Its fields are numbered, so that no argument's name can be in the way. What is not given stays
    UNSET, so that the function's own default counts.
    """
    if signature.takes_any:
        raise InvalidValue(
            place="call", cause="takes **kwargs, which say nothing to a model", fix=_SCHEMA_FIX
        )
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for number, parameter in enumerate(signature.parameters):
        _check_hint(parameter)
        if parameter.required:
            fields.append((f"argument_{number}", parameter.hint))
        else:
            fields.append((f"argument_{number}", _or_unset(parameter.hint), msgspec.UNSET))
    names = {f"argument_{number}": it.name for number, it in enumerate(signature.parameters)}
    return msgspec.defstruct(
        "Arguments", fields, rename=names, forbid_unknown_fields=True, kw_only=True
    )


def _or_unset(hint: Any) -> Any:  # noqa: ANN401 - a type hint
    union: Any = typing.Union  # hints need not have a |
    return union[hint, msgspec.UnsetType]


def _check_hint(parameter: Parameter) -> None:
    try:
        msgspec.json.schema(parameter.hint)
    except Exception as error:  # noqa: BLE001 - TypeError for most, and what a type's own hook raises
        raise InvalidValue(
            place=f"parameter {parameter.name}",
            cause=f"its type is nothing that a model could give: {said(error).splitlines()[0]}",
            fix=_SCHEMA_FIX,
        ) from None


_BUILT: Final = (
    msgspec.inspect.StructType,
    msgspec.inspect.DataclassType,
    msgspec.inspect.NamedTupleType,
    msgspec.inspect.EnumType,
    msgspec.inspect.CustomType,
)
"""Types whose values are built by classes of the author, with code of theirs perhaps."""


def builds_nothing(signature: Signature) -> bool:
    """Whether arguments are made of Python's own types alone: checking them runs nobody's code."""
    return all(
        _is_plain(msgspec.inspect.type_info(parameter.hint), set())
        for parameter in signature.parameters
    )


def _is_plain(info: Any, seen: set[int]) -> bool:  # noqa: ANN401 - one of msgspec's descriptions
    if isinstance(info, _BUILT):
        return False
    if id(info) in seen:
        return True
    seen.add(id(info))
    inside = [
        *(getattr(info, name, None) for name in ("type", "item_type", "key_type", "value_type")),
        *getattr(info, "types", ()),
        *getattr(info, "item_types", ()),
        *(field.type for field in getattr(info, "fields", ())),
    ]
    return all(_is_plain(it, seen) for it in inside if isinstance(it, msgspec.inspect.Type))


def derived_schema(signature: Signature, struct: type[msgspec.Struct]) -> Any:  # noqa: ANN401 - JSON
    """Return the JSON Schema of the arguments, with the defaults that JSON can hold."""
    (top,), definitions = msgspec.json.schema_components((struct,), ref_template="#/$defs/{name}")
    schema = definitions.pop(top["$ref"].removeprefix("#/$defs/"))
    del schema["title"]
    for parameter in signature.parameters:
        if not parameter.required:
            try:
                default = freeze(parameter.default, place="default")
            except InvalidValue:
                continue
            schema["properties"][parameter.name]["default"] = default
    return {**schema, "$defs": definitions} if definitions else schema
