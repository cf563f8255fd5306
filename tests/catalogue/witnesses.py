"""The shortest scripts we know for bugs that random scripts find late: one delivery a line."""

# ruff: noqa: E501 - one delivery a line

from __future__ import annotations

import json
from typing import Any, Final

_TEXTS: Final = {
    "an empty turn opens": """
        {"type": "open_turn", "now": 0, "turn_id": "T", "calls": []}
    """,
    "a retry is left": """
        {"type": "open_turn", "now": 0, "turn_id": "T", "calls": [FREE]}
        {"type": "claim", "now": 0, "turn_id": "T", "invocation_id": "a", "attempt": 1}
        {"type": "lose", "now": 0, "turn_id": "T", "invocation_id": "a"}
        {"type": "resolve", "now": 0, "turn_id": "T", "invocation_id": "a", "attempt": 1, "as": "retry"}
        {"type": "interrupt", "now": 0, "turn_id": "T"}
        {"type": "claim", "now": 0, "turn_id": "T", "invocation_id": "a", "attempt": 2}
    """,
    "sealed while stopping": """
        {"type": "open_turn", "now": 0, "turn_id": "T", "calls": [FREE], "sealed": false}
        {"type": "claim", "now": 0, "turn_id": "T", "invocation_id": "a", "attempt": 1}
        {"type": "interrupt", "now": 0, "turn_id": "T"}
        {"type": "seal_turn", "now": 0, "turn_id": "T"}
    """,
    "the newest grant": """
        {"type": "open_turn", "now": 0, "turn_id": "T", "calls": [GATED, OTHER], "sealed": false}
        {"type": "decide", "now": 0, "turn_id": "T", "invocation_id": "a", "approved": true, "scope": "turn"}
        {"type": "decide", "now": 0, "turn_id": "T", "invocation_id": "b", "approved": true, "scope": "turn", "match": "tool"}
        {"type": "add_call", "now": 0, "turn_id": "T", "call": THIRD}
    """,
    "the worker is lost": """
        {"type": "open_turn", "now": 0, "turn_id": "T", "calls": [FREE]}
        {"type": "claim", "now": 0, "turn_id": "T", "invocation_id": "a", "attempt": 1, "worker": "w"}
        {"type": "recover"}
        {"type": "claim", "now": 0, "turn_id": "T", "invocation_id": "a", "attempt": 1, "worker": "w"}
    """,
    "the edit is lost": """
        {"type": "open_turn", "now": 0, "turn_id": "T", "calls": [GATED]}
        {"type": "decide", "now": 0, "turn_id": "T", "invocation_id": "a", "approved": true, "arguments": {"n": 1}}
        {"type": "recover"}
    """,
    "the deadlines are lost": """
        {"type": "open_turn", "now": 0, "turn_id": "T", "calls": [WAITING]}
        {"type": "recover"}
    """,
    "the leases are lost": """
        {"type": "open_turn", "now": 0, "turn_id": "T", "calls": [FREE]}
        {"type": "claim", "now": 0, "turn_id": "T", "invocation_id": "a", "attempt": 1, "lease": 1}
        {"type": "recover"}
    """,
    "the grace is lost": """
        {"type": "open_turn", "now": 0, "turn_id": "T", "calls": [FREE]}
        {"type": "claim", "now": 0, "turn_id": "T", "invocation_id": "a", "attempt": 1}
        {"type": "interrupt", "now": 0, "turn_id": "T"}
        {"type": "recover"}
    """,
    "claimed, and owed again": """
        {"type": "open_turn", "now": 0, "turn_id": "T", "calls": [FREE]}
        {"type": "claim", "now": 0, "turn_id": "T", "invocation_id": "a", "attempt": 1}
        {"type": "recover"}
    """,
    "the decision is lost": """
        {"type": "open_turn", "now": 0, "turn_id": "T", "calls": [GATED]}
        {"type": "decide", "now": 0, "turn_id": "T", "invocation_id": "a", "approved": true}
        {"type": "recover"}
        {"type": "decide", "now": 0, "turn_id": "T", "invocation_id": "a", "approved": true}
    """,
    "stopping called sealed": """
        {"type": "open_turn", "now": 0, "turn_id": "T", "calls": [FREE], "sealed": false}
        {"type": "claim", "now": 0, "turn_id": "T", "invocation_id": "a", "attempt": 1}
        {"type": "interrupt", "now": 0, "turn_id": "T"}
        {"type": "add_call", "now": 0, "turn_id": "T", "call": THIRD}
    """,
    "equal in Python": """
        {"type": "open_turn", "now": 0, "turn_id": "T", "calls": [FREE, OTHER]}
        {"type": "claim", "now": 0, "turn_id": "T", "invocation_id": "a", "attempt": 1}
        {"type": "report", "now": 0, "turn_id": "T", "invocation_id": "a", "result": 1}
        {"type": "report", "now": 0, "turn_id": "T", "invocation_id": "a", "result": true}
    """,
    "the clock is lost": """
        {"type": "open_turn", "now": 1, "turn_id": "T", "calls": [FREE]}
        {"type": "recover"}
        {"type": "claim", "now": 0, "turn_id": "T", "invocation_id": "a", "attempt": 1}
    """,
}


def _call(
    invocation_id: str, *, gated: bool, arguments: dict[str, Any], timeout: float | None = None
) -> str:
    return json.dumps(
        {
            "invocation_id": invocation_id,
            "tool_name": "ls",
            "arguments": arguments,
            "requires_approval": gated,
            "approval_timeout": timeout,
        }
    )


_CALLS: Final = {
    "FREE": _call("a", gated=False, arguments={}),
    "GATED": _call("a", gated=True, arguments={}),
    "WAITING": _call("a", gated=True, arguments={}, timeout=1.0),
    "OTHER": _call("b", gated=True, arguments={"n": 1}),
    "THIRD": _call("c", gated=True, arguments={}),
}


def _script(text: str) -> list[dict[str, Any]]:
    for name, call in _CALLS.items():
        text = text.replace(name, call)
    return [json.loads(line) for line in text.strip().splitlines()]


WITNESSES: Final = {name: _script(text) for name, text in _TEXTS.items()}
"""Scripts for a run `r` with the default limits, by the name of the bug; the last step differs."""
