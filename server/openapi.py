"""The OpenAPI document of the endpoints: made from their table and the classes of their bodies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from . import bodies
from .problems import MEDIA, STATUS
from .routing import Endpoint

_ALWAYS: Final = ("wrong_host", "wrong_origin", "bad_request", "not_acceptable", "internal_error")
_ADMITTED: Final = (
    *("unauthenticated", "forbidden", "too_many_attempts"),
    *("shutting_down", "journal_failed", "corrupt_journal"),
)
_WITH_BODY: Final = ("invalid_json", "unsupported_media_type", "too_large", "invalid_value")
_NAMED: Final = re.compile(r"\{(\w+)\}")

PROBLEM: Final[Mapping[str, Any]] = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "pattern": "^urn:turnlock:[a-z_]+$"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "at": {"type": "string"},
    },
}
"""F-5."""


def codes_of(endpoint: Endpoint) -> tuple[str, ...]:
    """Return the problems that an endpoint may answer with."""
    found = [*_ALWAYS, *endpoint.codes]
    if endpoint.role is not None:
        found += _ADMITTED
    if endpoint.body is not None:
        found += _WITH_BODY
    return tuple(dict.fromkeys(found))


def document(endpoints: Iterable[Endpoint], *, version: str) -> dict[str, Any]:
    """Return the document."""
    paths: dict[str, dict[str, Any]] = {}
    for it in endpoints:
        operations = paths.setdefault(it.path, {})
        method = it.method.lower()
        if method in operations:  # the same, produced as something else
            _merge(operations[method], it)
        else:
            operations[method] = _operation(it)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "turnlock",
            "version": version,
            "description": "Runs of agents: what happened, live, and who decides what they may do.",
        },
        "paths": paths,
        "components": {
            "schemas": {"Problem": PROBLEM},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "turnlock"},
            },
        },
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    made: dict[str, Any] = {
        "operationId": endpoint.method.lower() + re.sub(r"\W+", "_", endpoint.path),
        "summary": endpoint.summary,
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in _NAMED.findall(endpoint.path)
        ],
        "responses": {},
    }
    if endpoint.role is not None:
        made["security"] = [{"token": []}, {"cookie": []}]
        made["x-role"] = str(endpoint.role)
    if endpoint.body is not None:
        made["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": bodies.schema(endpoint.body)}},
        }
    _merge(made, endpoint)
    return made


def _merge(made: dict[str, Any], endpoint: Endpoint) -> None:
    """Add what an endpoint takes and answers to an operation."""
    known = {it["name"] for it in made["parameters"]}
    made["parameters"] += [
        {"name": name, "in": "query", "description": what, "schema": {"type": "string"}}
        for name, what in endpoint.query.items()
        if name not in known
    ]
    responses: dict[str, Any] = made["responses"]
    for status in endpoint.statuses:
        content = _responded(responses, status, "as asked for")
        for media in endpoint.produces if status in {200, 201, 202} else ():
            schema = {"type": "object"} if media == "application/json" else {}
            content.setdefault(media, {"schema": schema} if schema else {})
    for code in codes_of(endpoint):
        status = STATUS[code]
        if status == 200:  # noqa: PLR2004 - a duplicate is a receipt (F-22)
            continue
        content = _responded(responses, status, code)
        content.setdefault(MEDIA, {"schema": {"$ref": "#/components/schemas/Problem"}})
        told = responses[str(status)]
        if code not in told["description"].split(", "):
            told["description"] += f", {code}"


def _responded(responses: dict[str, Any], status: int, description: str) -> dict[str, Any]:
    response = responses.setdefault(str(status), {"description": description, "content": {}})
    content: dict[str, Any] = response["content"]
    return content
