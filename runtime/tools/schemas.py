"""JSON Schemas that tools declare: checked when declared, applied by jsonschema, never fetched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from ...models.errors import InvalidValue, TurnlockError, shown
from ...models.values import Json
from .errors import CAUSE, BadArguments, bounded, path
from .signature import Signature

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
"""What a schema is written in that does not say."""


class Schema:
    """A JSON Schema that is one, and whose every reference leads somewhere in itself.

    `format` is an annotation, as the standard has it by default: it is not checked.
    """

    def __init__(self, schema: Mapping[str, Json]) -> None:
        """Check the schema; raises `InvalidValue` at `parameters`."""
        self._validator = _validator(schema)
        kind = schema.get("type", "object")
        if kind != "object" and not (isinstance(kind, list) and "object" in kind):
            raise _bad("type", f"is {shown(kind)}, and arguments are always an object", "object")
        _check_references(schema)
        try:
            self._validator.is_valid({})
        except RecursionError:
            raise _bad("$ref", "refers to itself without end", "one that ends") from None

    def check(self, arguments: Mapping[str, Json]) -> None:
        """Raise `BadArguments` at the most telling mistake."""
        import jsonschema.exceptions  # noqa: PLC0415 - an extra, and slow to load

        try:
            errors: Any = self._validator.iter_errors(arguments)
            error: Any = cast("Any", jsonschema.exceptions).best_match(errors)
        except RecursionError:
            raise BadArguments(
                place="arguments",
                cause="are nested too deeply to be held against the schema",
                fix="send them flatter",
            ) from None
        if error is not None:
            raise BadArguments(
                place=path(error.absolute_path) or "arguments",
                cause=bounded(error.message, limit=CAUSE),
                fix=f"the schema has {error.validator}: {shown(error.validator_value)}",
            )


def check_fit(schema: Mapping[str, Json], signature: Signature) -> None:
    """Refuse a schema that names other arguments than the function takes."""
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping) or "$ref" in schema or "allOf" in schema:
        return
    names = {parameter.name for parameter in signature.parameters}
    if not signature.takes_any and (strange := sorted(properties.keys() - names)):
        raise _bad(
            f"properties.{strange[0]}",
            "is no parameter of the function",
            f"one of {', '.join(sorted(names)) or 'none: the function takes nothing'}",
        )
    required = {parameter.name for parameter in signature.parameters if parameter.required}
    if untold := sorted(required - properties.keys()):
        raise _bad(
            "properties", f"leave out {untold[0]}, which the function demands", "all it demands"
        )


def part_at(schema: Mapping[str, Any], steps: Sequence[str | int]) -> Mapping[str, Any]:
    """Return the part of a derived schema that stands for a place, as far as the way is plain."""
    part = schema
    for step in steps:
        below = part.get("items") if isinstance(step, int) else part.get("properties", {}).get(step)
        below = below or part.get("additionalProperties")
        if not isinstance(below, Mapping):
            break
        part = _resolved(schema, cast("Mapping[str, Any]", below))
    return part


def _resolved(schema: Mapping[str, Any], part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a part refers to; what may be null too is taken for what it is otherwise."""
    members = [member for member in part.get("anyOf", ()) if member.get("type") != "null"]
    if len(members) == 1:
        part = members[0]
    if "$ref" in part:
        found: Mapping[str, Any] = schema["$defs"][part["$ref"].removeprefix("#/$defs/")]
        return found
    return part


def _bad(place: str, cause: str, right: str) -> InvalidValue:
    return InvalidValue(place=f"parameters.{place}", cause=cause, fix=f"give {right}")


def _validator(schema: Mapping[str, Json]) -> Validator:
    try:
        import jsonschema  # noqa: PLC0415 - an extra, and slow to load
        import referencing.jsonschema  # noqa: PLC0415 - comes with jsonschema
        from jsonschema.validators import validator_for  # noqa: PLC0415 - as above
    except ImportError:
        message = "the jsonschema package is missing: pip install 'turnlock[runtime]'"
        raise TurnlockError(message) from None
    dialect = schema.get("$schema", DIALECT)
    named: Any = {"$schema": dialect if isinstance(dialect, str) else ""}
    kind: Any = cast("Any", validator_for)(named, default=None)
    if kind is None:
        raise _bad("$schema", f"{shown(dialect)} is no known dialect", DIALECT)
    try:
        kind.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise InvalidValue(
            place=path(("parameters", *error.absolute_path)),
            cause=bounded(error.message, limit=CAUSE),
            fix=f"write it in {dialect}",
        ) from None
    # A registry of one's own never retrieves: the default one would ask the network.
    made: Validator = kind(schema, registry=referencing.jsonschema.EMPTY_REGISTRY)
    return made


def _check_references(schema: Mapping[str, Json]) -> None:
    """Follow every reference now, so that none is found dangling when a call is checked."""
    from referencing import exceptions, jsonschema  # noqa: PLC0415 - comes with jsonschema

    dialect = jsonschema.specification_with(str(schema.get("$schema", DIALECT)))
    root: Any = dialect.create_resource(cast("Any", schema))
    todo: list[Any] = [(root, jsonschema.EMPTY_REGISTRY.resolver_with_root(root))]
    seen: set[int] = set()
    while todo:
        resource, resolver = todo.pop()
        if id(resource.contents) in seen:
            continue
        seen.add(id(resource.contents))
        for reference in _references(resource.contents):
            try:
                found = resolver.lookup(reference)
            except exceptions.Unresolvable:
                raise _bad(
                    "$ref",
                    f"{shown(reference)} leads nowhere within the schema",
                    "a reference within it: nothing is fetched",
                ) from None
            todo.append((dialect.create_resource(found.contents), found.resolver))
        todo.extend((sub, resolver.in_subresource(sub)) for sub in resource.subresources())


def _references(contents: Any) -> list[str]:  # noqa: ANN401 - a schema, which may be true or false
    if not isinstance(contents, Mapping):
        return []
    held = cast("Mapping[str, object]", contents)
    values = (held.get("$ref"), held.get("$dynamicRef"))
    return [value for value in values if isinstance(value, str)]
