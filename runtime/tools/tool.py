"""A tool: a Python function with a name, a schema, and a policy that says how to treat it."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from types import MethodType
from typing import Any, TypeAlias, Unpack, cast, overload

import attrs

from ...models.errors import InvalidValue, shown
from ...models.record import any_text, identifier, instance
from ...models.values import Json, freeze
from .arguments import Fitting, fitting_of
from .calling import ToolContext, is_async
from .docstrings import NOTHING_SAID, check_names, read_docstring
from .policy import Policy, PolicyFields
from .results import as_json
from .signature import Signature, is_method, read_signature

Preprocessor: TypeAlias = Callable[
    [Mapping[str, Any], ToolContext], Mapping[str, Any] | Awaitable[Mapping[str, Any]]
]
"""Takes the arguments before they are checked, and returns those that count; sync or async."""

Processor: TypeAlias = Callable[[Any, ToolContext], object]
"""Takes what the tool (or the processor before) returned, and returns the result; sync or async."""


def _callables(_: object, field: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, tuple):
        raise InvalidValue(
            place=field.name, cause=f"{shown(value)} is no tuple", fix="give a tuple of functions"
        )
    for number, it in enumerate(cast("tuple[object, ...]", value)):
        if not callable(it):
            raise InvalidValue(
                place=f"{field.name}[{number}]",
                cause=f"{shown(it)} cannot be called",
                fix="give a function of a value and the ToolContext",
            )


def _optional_schema(value: object) -> Mapping[str, Json] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise InvalidValue(
            place="parameters", cause=f"{shown(value)} is no JSON Schema", fix="give a JSON object"
        )
    frozen: Mapping[str, Json] = freeze(cast("object", value), place="parameters")
    return frozen


@attrs.frozen(kw_only=True, eq=False)
class Tool:
    """A callable that a model may ask for. Everything about it is checked when it is declared.

    `call` may be sync (it runs in a thread) or async. Its arguments are checked by its type hints,
    or by `parameters`, a JSON Schema, where that is given; a schema converts nothing, hints make
    what they name (a dataclass, a datetime …): those beyond Python's own plain types through
    pydantic (extra `tools`). A parameter annotated with `ToolContext` receives the context. A
    method is a tool of each object: ``shop.buy``. Raises `InvalidValue`.
    """

    name: str = attrs.field(validator=identifier)
    call: Callable[..., Any]
    description: str = attrs.field(default="", validator=any_text)
    policy: Policy = attrs.field(factory=Policy, validator=instance(Policy))
    preprocessors: tuple[Preprocessor, ...] = attrs.field(default=(), validator=_callables)
    """Change the arguments before the execution is claimed; a failure rejects the call."""
    processors: tuple[Processor, ...] = attrs.field(default=(), validator=_callables)
    """Change what the tool returned, in order; a failure is a failed result. Errors pass by."""
    given_schema: Mapping[str, Json] | None = attrs.field(
        default=None, alias="parameters", converter=_optional_schema, repr=False
    )
    """The JSON Schema as it was declared; None where type hints count."""
    described: Mapping[str, str] = attrs.field(default=NOTHING_SAID, repr=False)
    """What each parameter means, for models, where its hint does not say it."""
    delegates: bool = attrs.field(default=False, validator=instance(bool), repr=False)
    """Whether it does nothing but wait for calls of other runs; then it takes no slot from them."""

    parameters: Mapping[str, Json] = attrs.field(init=False, repr=False)
    """The JSON Schema of the arguments, for models."""
    signature: Signature = attrs.field(init=False, repr=False)
    fitting: Fitting = attrs.field(init=False, repr=False)
    """What arguments are held against."""
    is_method: bool = attrs.field(init=False, repr=False)
    """Whether it is a method without its object, which cannot be called."""

    needs_thread: bool = attrs.field(init=False, repr=False)
    """Whether its execution cannot do without a thread."""
    is_plain: bool = attrs.field(init=False, repr=False)
    """Whether checking arguments runs no code of the author's: no class of theirs is built."""

    def __attrs_post_init__(self) -> None:
        """Read the signature, and make what arguments will be held against."""
        method = is_method(self.call)
        signature = read_signature(self.call, is_method=method)
        fitting = fitting_of(signature, self.given_schema)
        parameters = self.given_schema
        if parameters is None:
            check_names(self.described, inspect.signature(self.call).parameters)
            told = _told(fitting.schema, signature, self.described)
            parameters = freeze(told, place="parameters")
        steps = (self.call, *self.preprocessors, *self.processors)
        for name, value in (
            ("needs_thread", not all(map(is_async, steps))),
            ("signature", signature),
            ("fitting", fitting),
            ("is_method", method),
            ("parameters", parameters),
            ("is_plain", fitting.is_plain),
        ):
            object.__setattr__(self, name, value)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the function has it
        """Call the function as it stands, without checks or policy: for its author's own code."""
        return self.call(*args, **kwargs)

    def __get__(self, owner: object, kind: type | None = None) -> Tool:
        """Return the tool of an object of the class in whose body this one was declared."""
        if owner is None or not self.is_method:
            return self
        bound = copy.copy(self)
        object.__setattr__(bound, "call", MethodType(self.call, owner))
        object.__setattr__(bound, "is_method", False)
        return bound

    @property
    def is_async(self) -> bool:
        """Whether it runs on the loop; otherwise in a thread."""
        return is_async(self.call)

    def as_function_schema(self) -> dict[str, Any]:
        """Return the declaration that chat-completions endpoints take in `tools`."""
        function: dict[str, Any] = {"name": self.name}
        if self.description:
            function["description"] = self.description
        return {"type": "function", "function": {**function, "parameters": self.parameters}}


def _told(
    schema: Mapping[str, Any], signature: Signature, described: Mapping[str, str]
) -> dict[str, Any]:
    """Return the schema with defaults, those that JSON can hold, and what parameters mean."""
    properties: dict[str, Any] = {}
    for it in signature.parameters:
        part = dict(schema["properties"][it.name])
        if not it.required:
            with suppress(Exception):  # JSON cannot hold it, or code of the author's raised
                part["default"] = as_json(it.default)
        texts = {*it.descriptions, part.get("description", ""), described.get(it.name, "")} - {""}
        if len(texts) > 1:
            raise InvalidValue(
                place=f"parameter {it.name}",
                cause=f"is described {len(texts)} times, in other words",
                fix="describe it in one place: beside its type, by Field, or in the docstring",
            )
        if texts:
            part["description"] = texts.pop()
        properties[it.name] = part
    return {**schema, "properties": properties}


@overload
def tool(call: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    preprocessors: tuple[Preprocessor, ...] = (),
    processors: tuple[Processor, ...] = (),
    policy: Policy | None = None,
    **fields: Unpack[PolicyFields],
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(  # noqa: PLR0913 - what a tool can declare, all by keyword
    call: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    preprocessors: tuple[Preprocessor, ...] = (),
    processors: tuple[Processor, ...] = (),
    policy: Policy | None = None,
    **fields: Unpack[PolicyFields],
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Declare a function as a tool: ``@tool``, or ``@tool(approval=True, timeout=5)``.

    The name is the function's, the description its docstring, unless given; what that says of
    parameters goes to them. The fields of a
    `Policy` may be given one by one; beside a `policy` they replace its own. Raises
    `InvalidValue`, which names the tool.
    """

    def declare(function: Callable[..., Any]) -> Tool:
        if isinstance(function, staticmethod):
            function = function.__func__
        called = name if name is not None else _name_of(function)
        try:
            documented = read_docstring(function, whole=parameters is not None)
            return Tool(
                name=called,
                call=function,
                description=documented.description if description is None else description,
                described=documented.parameters,
                parameters=parameters,
                preprocessors=preprocessors,
                processors=processors,
                policy=_merged(policy, fields),
            )
        except InvalidValue as error:
            raise error.inside(f"tool {called}") from None

    return declare if call is None else declare(call)


def _merged(policy: Policy | None, fields: PolicyFields) -> Policy:
    if policy is None:
        return Policy(**fields)
    return attrs.evolve(policy, **fields) if fields else policy


def _name_of(function: object) -> str:
    if isinstance(function, Tool):
        raise InvalidValue(
            place=f"tool {function.name}", cause="is a tool already", fix="declare it once"
        )
    name = getattr(function, "__name__", None)
    if not isinstance(name, str) or name == "<lambda>":
        raise InvalidValue(
            place="name", cause=f"{shown(function)} has no name", fix="give name= to the tool"
        )
    return name
