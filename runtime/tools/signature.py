"""What a function takes, read off its declaration once: for the model, and for the check."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from ...models.errors import InvalidValue, shown
from .calling import ToolContext
from .errors import said

_CONTEXTS: Final = (ToolContext, ToolContext | None, typing.Optional[ToolContext])  # noqa: UP045 - another class than with |, until 3.14


@attrs.frozen(kw_only=True)
class Parameter:
    """One argument; `hint` is Any where the function says nothing."""

    name: str
    hint: Any
    default: Any
    """`inspect.Parameter.empty` where the argument must be given."""
    descriptions: tuple[str, ...] = ()
    """What its hint says of it: ``Annotated[str, "…"]``, ``Annotated[str, Doc("…")]``."""

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


def read_signature(call: Callable[..., Any], *, is_method: bool = False) -> Signature:
    """Read what a callable takes, or raise `InvalidValue` where a model could not call it.

    The first parameter of a method is its object, which no model gives.
    """
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
    for name, it in list(declared.parameters.items())[is_method:]:
        hint, descriptions = _documented(hints.get(name, Any))
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
            _refuse_field(name, it.default)
            parameters.append(
                Parameter(name=name, hint=hint, default=it.default, descriptions=descriptions)
            )
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


def is_method(call: object) -> bool:
    """Whether a function stands in the body of a class and takes the object it is called on."""
    where = getattr(call, "__qualname__", "").rpartition("<locals>.")[2]
    if not inspect.isfunction(call) or "." not in where:
        return False
    return next(iter(inspect.signature(call).parameters), "") in {"self", "cls"}


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


def _documented(hint: Any) -> tuple[Any, tuple[str, ...]]:  # noqa: ANN401 - a type hint
    """Return a hint without what texts and `Doc` say beside it, and that."""
    if typing.get_origin(hint) is not typing.Annotated:
        return hint, ()
    beside = [(it, getattr(it, "documentation", it)) for it in hint.__metadata__]
    others = tuple(it for it, text in beside if not isinstance(text, str))
    bare = hint.__origin__
    if others and bare not in _CONTEXTS:
        bare = typing.Annotated[(bare, *others)]
    return bare, tuple(text for _, text in beside if isinstance(text, str))


def _refuse_field(name: str, default: object) -> None:
    """Refuse ``x: int = Field(…)``: the function itself would be called with the Field."""
    if type(default).__name__ == "FieldInfo" and type(default).__module__ == "pydantic.fields":
        raise InvalidValue(
            place=f"parameter {name}",
            cause="its default is a Field, which the function would be called with",
            fix="write Annotated[int, Field(…)] = 3, or without a default",
        )


def _bound_by_partial(call: object) -> frozenset[str]:
    if isinstance(call, functools.partial):
        return frozenset(call.keywords)
    return frozenset()
