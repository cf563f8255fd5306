"""A tool server of ours on stdio: it looks, it changes something, and it asks the user."""

from __future__ import annotations

import json
import sys
from typing import Any

SCHEMA = {"type": "object", "properties": {"what": {"type": "string"}}}
HINTS = {
    "look": {"readOnlyHint": True},
    "change": {"readOnlyHint": False, "destructiveHint": True},
    "inquire": {"readOnlyHint": True},
}
WANTED = {
    "type": "object",
    "properties": {"pick": {"type": "string", "enum": ["a", "b"]}},
    "required": ["pick"],
}


def main() -> None:
    """Answer line by line until nothing more comes."""
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked and "method" in asked:
            result = answer(asked["method"], asked.get("params") or {})
            say({"jsonrpc": "2.0", "id": asked["id"], "result": result})


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request."""
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "ours", "version": "1"},
        }
    if method == "tools/list":
        tools = [
            {"name": name, "description": name, "inputSchema": SCHEMA, "annotations": hints}
            for name, hints in HINTS.items()
        ]
        return {"tools": tools}
    if method == "tools/call":
        told = inquire() if params["name"] == "inquire" else f"{params['name']}: done"
        return {"content": [{"type": "text", "text": told}]}
    return {}


def inquire() -> str:
    """Ask the user, while the tool runs."""
    params = {"message": "Which one?", "requestedSchema": WANTED}
    say({"jsonrpc": "2.0", "id": "e1", "method": "elicitation/create", "params": params})
    for line in sys.stdin:
        told = json.loads(line)
        if told.get("id") == "e1":
            return json.dumps(told.get("result"))
    return "nobody answered"


def say(message: dict[str, Any]) -> None:
    """Write one line."""
    sys.stdout.write(f"{json.dumps(message)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
