"""A tool: a Python function with a name, a schema, and a policy that says how to treat it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias, Unpack, cast, overload

import attrs
import msgspec

from ...models.errors import InvalidValue, shown
from ...models.record import any_text, identifier, instance
from ...models.values import Json, freeze
from .calling import ToolContext, is_async
from .policy import Policy, PolicyFields
from .schemas import Schema, check_fit
from .signature import Signature, arguments_struct, builds_nothing, derived_schema, read_signature

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
    through msgspec, or by `parameters`, a JSON Schema, where that is given; a schema converts
    nothing, hints make what they name (a dataclass, a datetime …). A parameter annotated with
    `ToolContext` receives the context. Raises `InvalidValue`.
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
    delegates: bool = attrs.field(default=False, validator=instance(bool), repr=False)
    """Whether it does nothing but wait for calls of other runs; then it takes no slot from them."""

    parameters: Mapping[str, Json] = attrs.field(init=False, repr=False)
    """The JSON Schema of the arguments, for models."""
    signature: Signature = attrs.field(init=False, repr=False)
    arguments_struct: type[msgspec.Struct] | None = attrs.field(init=False, repr=False)
    """What checks arguments by hints; None where a schema was given."""
    schema: Schema | None = attrs.field(init=False, repr=False)
    """What checks arguments by the given schema; None where hints count."""

    needs_thread: bool = attrs.field(init=False, repr=False)
    """Whether its execution cannot do without a thread."""
    is_plain: bool = attrs.field(init=False, repr=False)
    """Whether checking arguments runs no code of the author's: no class of theirs is built."""

    def __attrs_post_init__(self) -> None:
        """Read the signature, and make what arguments will be held against."""
        signature = read_signature(self.call)
        schema = struct = None
        if self.given_schema is None:
            struct = arguments_struct(signature)
            parameters = freeze(derived_schema(signature, struct), place="parameters")
        else:
            parameters = self.given_schema
            schema = Schema(parameters)
            check_fit(parameters, signature)
        steps = (self.call, *self.preprocessors, *self.processors)
        for name, value in (
            ("needs_thread", not all(map(is_async, steps))),
            ("signature", signature),
            ("arguments_struct", struct),
            ("schema", schema),
            ("parameters", parameters),
            ("is_plain", struct is None or builds_nothing(signature)),
        ):
            object.__setattr__(self, name, value)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the function has it
        """Call the function as it stands, without checks or policy: for its author's own code."""
        return self.call(*args, **kwargs)

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

    The name is the function's, the description its docstring, unless given. The fields of a
    `Policy` may be given one by one; beside a `policy` they replace its own. Raises
    `InvalidValue`, which names the tool.
    """

    def declare(function: Callable[..., Any]) -> Tool:
        called = name if name is not None else _name_of(function)
        try:
            return Tool(
                name=called,
                call=function,
                description=inspect.getdoc(function) or "" if description is None else description,
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
