"""Write docs/limits.md, the bounds of agents and tools; with --check, compare instead of writing.

A bound is a number with a public name in capitals at the top of a module, and the text below it
says what it bounds, in which unit, and what happens there: the page repeats that.
"""

# ruff: noqa: E501 - rows of a table

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Final

from generated import ROOT, keep

PAGE: Final = ROOT / "docs" / "limits.md"
PARTS: Final = {
    "The agent and its models": ("agent",),
    "Tools": ("runtime/tools",),
    "Programs": ("toolkits/shell_cmd.py", "toolkits/running.py"),
    "MCP servers": ("toolkits/mcp",),
    "Worlds": ("world",),
    "Clients of others": (
        "server/clients/mcp",
        "server/clients/approval_ids.py",
        "server/clients/following.py",
        "server/clients/a2a/listing.py",
        "server/clients/a2a/methods.py",
        "server/clients/a2a/tasks.py",
    ),
    "Guards": ("guards",),
    "A journal in PostgreSQL": ("runtime/journal/given.py", "runtime/journal/postgres"),
}
"""The sections of the page, and the folders and modules whose bounds stand in them."""
NO_BOUNDS: Final = {"agent/script.py": "how long recorded tools take, in demonstrations"}
"""Modules whose numbers bound nothing, and why."""

HEAD: Final = """\
# Limits

What is bounded where agents and tools are concerned, by which name, and what happens there. What can be set is in the first
table; the rest are constants, generated from the modules that hold them by `make tables`, and compared by the gate. Bounds
of a run (calls, continuations, grants, memory) are [the kernel's](spec/kernel.md), those of a journal and of a runtime are
in [the runtime](runtime.md).

## What can be set

| where | what | unless told otherwise | beyond it |
|---|---|---|---|
| `Agent(answer_limit=)` | answers to one prompt, tool calls between | `ANSWERS` | `LimitReached`; what was done is kept, another prompt begins a new count |
| `Agent(token_limit=)` | tokens that the answers to one prompt have used | none | as above, before the next answer is asked for |
| `Question.limit`, in `before_answer=` | tokens of one answer | the provider's own | the answer stops with `length`; a call that was cut off is rejected, and the model is told |
| `open_model(…, timeout=)` | seconds that an endpoint is silent | `TIMEOUT` | `ModelError`; the answer is still owed |
| `open_model(…, retries=)` | times that a client asks again by itself | `RETRIES` | `ModelError` |
| `AgentSpec(turn_limit=)`, `AgentSpec(answer_limit=)`, `AgentSpec(token_limit=)`, `AgentSpec(history=)` | prompts of agents in a row, answers and tokens to one prompt, prompts that are told anew | 5, 50, none, none | [a person has the word](worlds.md) |
| `@tool(timeout=)` | seconds of one execution | none | it is cancelled, or in doubt where it cannot be ([tools](tools.md)) |
| `@tool(approval_timeout=)` | seconds that a call waits for a person | none | denied |
| `@tool(lease=)` | seconds of silence of whoever runs it | `DEFAULT_LEASE` | in doubt |
| `shell(timeout=)` | seconds of a program | `TIMEOUT` | its process group is ended |
"""


def main() -> int:
    """Write the page, or compare it."""
    return keep({PAGE: "\n".join(lines())}, told_by="the modules say")


def lines() -> Iterator[str]:
    """Yield the lines of the page: a table for each part."""
    yield HEAD
    for part, places in PARTS.items():
        yield f"## {part}\n"
        yield "| name | value | what it bounds | in |"
        yield "|---|---|---|---|"
        for module in _modules(places):
            yield from _rows(module)
        yield ""


def _modules(places: tuple[str, ...]) -> Iterator[Path]:
    for place in places:
        path = ROOT / place
        for module in [path] if path.is_file() else sorted(path.rglob("*.py")):
            if module.relative_to(ROOT).as_posix() not in NO_BOUNDS:
                yield module


def _rows(path: Path) -> Iterator[str]:
    place = path.relative_to(ROOT).as_posix()
    bounds = list(named(path.read_text(encoding="utf-8")))
    if not bounds:
        return
    module = import_module("turnlock." + place.removesuffix(".py").replace("/", "."))
    for name, about in bounds:
        value = getattr(module, name)
        if _is_bound(value):
            if not about:
                raise SystemExit(f"{place}: {name} needs a text below it that says what it bounds")
            yield f"| `{name}` | {_shown(value)} | {about} | `{place}` |"


def named(source: str) -> Iterator[tuple[str, str]]:
    """Yield the names in capitals that a module gives to what may be numbers, with their texts."""
    body = ast.parse(source).body
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
            if name.isupper() and not name.startswith("_") and _may_be_bound(node.value):
                yield name, _text(after)


def _may_be_bound(value: ast.expr | None) -> bool:
    """Whether it can be a number as it is written: else its module, or a framework, is imported."""
    if isinstance(value, ast.Constant):
        return isinstance(value.value, int | float)
    if isinstance(value, ast.Tuple):
        return all(isinstance(it, ast.Constant) and _may_be_bound(it) for it in value.elts)
    return isinstance(value, ast.BinOp | ast.UnaryOp | ast.Name | ast.Attribute)


def _text(node: ast.stmt | None) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return " ".join(str(node.value.value).split()).replace("|", "\\|")
    return ""


def _is_bound(value: object) -> bool:
    if isinstance(value, tuple):
        return bool(value) and all(map(_is_bound, value))
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_shown, value))
    assert isinstance(value, int | float)  # noqa: S101 - `_is_bound` has said so
    return f"{value:,}" if isinstance(value, int) else f"{value:,g}"


if __name__ == "__main__":
    sys.exit(main())
