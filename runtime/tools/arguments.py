"""Whether arguments fit a tool; if not, exactly where, what is wrong, and what would be right.

They are held against plain hints, hints for pydantic, or a JSON Schema.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from ...models.errors import InvalidValue, shown
from ...models.values import Json, freeze
from .errors import CAUSE, BadArguments, bounded, path, said
from .plain import PlainHint, Steps, is_plain
from .schemas import Schema, check_fit
from .signature import Parameter, Signature

if TYPE_CHECKING:
    from .tool import Tool

MISSING: Final = "is missing"
NOT_TAKEN: Final = "is not taken here"
"""What is wrong with arguments, said without a value of theirs, as MISSING."""


def check(tool: Tool, arguments: Mapping[str, Json]) -> dict[str, Any]:
    """Return the keyword arguments to call the tool with, its context not among them.

    They share nothing with `arguments`. What is not given is left out, so that the function's
    default counts. Raises `BadArguments`.
    """
    try:
        frozen = freeze(arguments, place="")
    except InvalidValue as error:
        raise BadArguments(
            place=error.place.removeprefix(".") or "arguments", cause=error.cause, fix=error.fix
        ) from None
    if not isinstance(frozen, dict):
        raise BadArguments(
            place="arguments", cause=f"{shown(arguments)} is no object", fix="give a JSON object"
        )
    return tool.fitting.fitted(_thawed(cast("Json", frozen)))


def misfit(tool: Tool, arguments: Mapping[str, Json]) -> BadArguments | None:
    """Return what is wrong with arguments, None if they fit; code of the tool's types may run."""
    try:
        check(tool, arguments)
    except BadArguments as error:
        place = "arguments" if error.place == "arguments" else f"arguments.{error.place}"
        return BadArguments(place=place, cause=error.cause, fix=error.fix)
    except BaseException as error:  # noqa: BLE001 - a type's own __post_init__ may even exit
        return BadArguments(
            place="arguments", cause=said(error), fix="give what the tool's types take"
        )
    return None


def _thawed(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Copy a frozen value into plain lists and dicts, which a tool may change."""
    if isinstance(value, dict):
        return {key: _thawed(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_thawed(item) for item in cast("Sequence[Any]", value)]
    return value


class Fitting(ABC):
    """Holds arguments against what a tool takes."""

    schema: Mapping[str, Any]
    """The JSON Schema of what it takes."""
    is_plain: bool
    """Whether nobody's code runs in the check."""

    @abstractmethod
    def fitted(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the keyword arguments to call the tool with. Raises `BadArguments`."""


class Plain(Fitting):
    """Arguments of hints of Python's own types."""

    is_plain = True

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        """Take the parameters."""
        self._hints = {it.name: PlainHint(it.hint) for it in parameters}
        self._required = [it.name for it in parameters if it.required]
        self.schema = {
            "type": "object",
            "properties": {name: hint.schema for name, hint in self._hints.items()},
            "required": self._required,
            "additionalProperties": False,
        }

    def fitted(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return them; what is not given is left out, so that the function's default counts."""
        for name in arguments:
            if name not in self._hints:
                raise not_taken((name,), self._hints)
        for name in self._required:
            if name not in arguments:
                raise missing((name,))
        return {name: self._hints[name].fitted(it, (name,)) for name, it in arguments.items()}


class BySchema(Fitting):
    """Arguments of a JSON Schema that was given; nothing is converted."""

    is_plain = True

    def __init__(self, given: Mapping[str, Json], signature: Signature) -> None:
        """Check the schema, and that the function takes what it names."""
        self.schema = given
        self._checked = Schema(given)
        self._signature = signature
        check_fit(given, signature)

    def fitted(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return them as they are."""
        self._checked.check(arguments)
        for name in arguments:
            if not self._signature.takes(name):
                raise not_taken((name,), [it.name for it in self._signature.parameters])
        for it in self._signature.parameters:
            if it.required and it.name not in arguments:
                raise missing((it.name,))
        return arguments


def fitting_of(signature: Signature, given: Mapping[str, Json] | None) -> Fitting:
    """Return what arguments are held against. Raises `InvalidValue`."""
    if given is not None:
        return BySchema(given, signature)
    if signature.takes_any:
        raise InvalidValue(
            place="call",
            cause="takes **kwargs, which say nothing to a model",
            fix="name what it takes, or give the tool parameters=, a JSON Schema",
        )
    odd = next((it for it in signature.parameters if not is_plain(it.hint)), None)
    if odd is None:
        return Plain(signature.parameters)
    try:
        from .typed import Typed  # noqa: PLC0415 - an extra, and slow to load
    except ImportError as error:
        raise InvalidValue(
            place=f"parameter {odd.name}",
            cause=f"its type needs pydantic, which cannot be imported ({error})",
            fix="pip install 'turnlock[tools]', or use str, int, float, bool, list and dict",
        ) from None
    return Typed(signature.parameters)


def missing(steps: Steps) -> BadArguments:
    """Return the error of what must be given and is not."""
    return BadArguments(place=path(steps), cause=MISSING, fix="give it")


def not_taken(steps: Steps, known: Iterable[str]) -> BadArguments:
    """Return the error of what nobody takes."""
    names = ", ".join(known)
    return BadArguments(
        place=path(steps),
        cause=NOT_TAKEN,
        fix=bounded(f"leave it out, or give one of: {names}", limit=CAUSE)
        if names
        else "leave it out",
    )
