"""An adapter that is imported brings little of ours along: what a guard needs comes when one opens.

Read from the source, without a process for each framework; `benchmarks/bench_guards.py` has the
milliseconds.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path, PurePosixPath

import pytest

from ..test_floors import imports

ROOT = Path(__file__).resolve().parents[2]
ADAPTERS = ("agent_framework", "langgraph", "mcp", "openai_agents", "pydantic_ai")
HEAVY = (
    "engine",
    "guards/engine",
    "guards/guard",
    "models/codec",
    "models/deliveries",
    "models/facts",
    "runtime/journal",
    "runtime/tools/calling",
    "runtime/tools/policy",
    "runtime/tools/results",
    "turn",
    "views",
    "wire",
)
"""Folders and modules whose records take milliseconds each, or bring cattrs and msgspec along."""


def imported(module: PurePosixPath) -> Iterator[PurePosixPath]:
    """What importing a module of ours imports of ours at once, without what that imports."""
    path = source_of(module)
    package = module if path.name == "__init__.py" else module.parent
    yield from module.parents[:-1]
    for node, on_import in imports(ast.parse(path.read_text(encoding="utf-8"))):
        if not on_import or not isinstance(node, ast.ImportFrom):
            continue
        if node.level:
            base = PurePosixPath(*package.parts[: len(package.parts) - node.level + 1])
        elif (node.module or "").partition(".")[0] == "turnlock":
            base = PurePosixPath()
        else:
            continue
        base = base.joinpath(*(node.module or "").removeprefix("turnlock.").split("."))
        yield base
        for alias in node.names:
            if (ROOT / base / f"{alias.name}.py").exists():
                yield base / alias.name


def source_of(module: PurePosixPath) -> Path:
    """The file of a module or of a package."""
    file = ROOT / module.with_suffix(".py")
    return file if file.exists() else ROOT / module / "__init__.py"


def closure(*modules: PurePosixPath) -> set[str]:
    """All of ours that is imported with these, the face of the package included."""
    found: set[PurePosixPath] = set()
    left = [PurePosixPath("__init__"), *modules]
    while left:
        module = left.pop()
        if module not in found:
            found.add(module)
            left += imported(module)
    return {it.as_posix() for it in found}


def heavy(names: set[str]) -> set[str]:
    return {it for it in names if it in HEAVY or it.startswith(tuple(f"{at}/" for at in HEAVY))}


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_an_adapter_alone_brings_nothing_heavy(adapter: str) -> None:
    found = closure(PurePosixPath("guards", adapter))

    assert found > {"guards", "guards/errors", "models", "models/errors"} or adapter == "mcp"
    assert heavy(found) == set()


def test_what_a_guard_needs_is_heavy() -> None:
    """The negative control: the same look finds it where a guard is opened."""
    found = heavy(closure(PurePosixPath("guards", "engine")))

    assert found >= {"engine/kernel", "models/deliveries", "runtime/tools/policy", "views/live"}


@pytest.mark.parametrize(
    ("adapter", "library", "extra"),
    [
        ("agent_framework", "agent_framework", "guard-agent-framework"),
        ("langgraph", "langchain", "guard-langgraph"),
        ("openai_agents", "agents", "guard-openai"),
        ("pydantic_ai", "pydantic_ai", "guard-pydantic-ai"),
    ],
)
def test_an_adapter_without_its_framework_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, adapter: str, library: str, extra: str
) -> None:
    name = f"turnlock.guards.{adapter}"
    monkeypatch.delitem(sys.modules, name, raising=False)
    for known in [it for it in sys.modules if it.startswith(f"{library}.")]:
        monkeypatch.delitem(sys.modules, known)
    monkeypatch.setitem(sys.modules, library, None)  # as if it could not be imported

    said = rf"^{name} needs {library}[\w.]*: pip install 'turnlock\[{extra}\]'$"
    with pytest.raises(ModuleNotFoundError, match=said):
        import_module(name)


def test_a_package_brings_its_own_face() -> None:
    """The negative control of the paths: the proxy is a package, and its options are in it."""
    assert closure(PurePosixPath("guards", "mcp")) >= {"guards/mcp/options", "models/safe_text"}
