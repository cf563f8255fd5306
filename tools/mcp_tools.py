"""The tools that MCP's conformance suite looks for in a server, as far as tools say it."""

from __future__ import annotations

from typing import Any

from turnlock.runtime import tool

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}


@tool
async def test_simple_text() -> str:
    """Say something."""
    return "This is a simple text response for testing."


@tool
async def test_error_handling() -> str:
    """Fail."""
    raise RuntimeError("This tool intentionally returns an error for testing")


@tool(parameters=SCHEMA)
async def json_schema_2020_12_tool(**given: str | dict[str, str]) -> str:
    """Take what a schema of 2020-12 says."""
    return f"took {sorted(given)}"
