"""The public faces of `turnlock.runtime` and `turnlock.agent`: documented, and cheap."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import turnlock
import turnlock.agent
import turnlock.runtime

ROOT = Path(__file__).resolve().parents[2]

FACES = [turnlock.runtime, turnlock.agent]
"""tests/public_names.txt pins their names."""
ALIASES = {"AfterAnswer", "AskApproval", "BeforeAnswer", "Message", "OnContinue", "Start"}


@pytest.mark.parametrize(
    ("face", "name"), [(face, name) for face in FACES for name in face.__all__]
)
def test_each_is_there_and_documented(face: ModuleType, name: str) -> None:
    """With a sentence of its own, not one that it inherited."""
    it = getattr(face, name)
    if name in ALIASES:
        return
    assert it.__doc__
    if inspect.isclass(it):
        assert it.__doc__ not in {base.__doc__ for base in it.__mro__[1:]}


def imported_by(code: str) -> set[str]:
    """The modules that a fresh process has imported after this."""
    told = f"import sys; {code}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("face", FACES, ids=lambda face: face.__name__)
def test_a_face_costs_what_is_asked_for(face: ModuleType) -> None:
    """Importing it imports none of its modules, nor asyncio, msgspec or cattrs."""
    found = imported_by(f"import {face.__name__}")
    heavy = {"asyncio", "msgspec", "cattrs", "sqlite3", "click", "rich", "openai"}
    assert heavy & found == set()
    assert [name for name in found if name.startswith(f"{face.__name__}.")] == []


def test_what_is_optional_is_not_imported() -> None:
    """Neither telemetry nor JSON Schema, before somebody uses them."""
    found = imported_by("from turnlock.runtime import *")
    assert {"opentelemetry", "jsonschema", "hypothesis", "rich", "openai"} & found == set()
    assert "turnlock.runtime.runtime" in found


KERNEL = {"machines", "lifecycle", "turn", "engine"}


def kernel_imports(folder: str) -> Iterator[tuple[str, str]]:
    """What the modules of a folder import from the kernel: module and name."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        package = path.relative_to(ROOT).parent.parts
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level:
                above = package[: len(package) - node.level + 1]
                module = ".".join((*above, *(node.module or "").split(".")))
                if module.partition(".")[0] in KERNEL:
                    yield from ((module, alias.name) for alias in node.names)


@pytest.mark.parametrize("folder", ["runtime", "agent"])
def test_a_host_of_ours_uses_what_any_host_can(folder: str) -> None:
    """Of the kernel's folders it imports public names alone: the kernel, its inbox, its snapshots.

    And the phases of a turn, which a public `TurnView` shows. A run is read through the views.
    """
    known = {*turnlock.__all__, "TurnPhase"}
    assert [it for it in kernel_imports(folder) if it[1] not in known] == []


def test_the_kernel_s_insides_would_be_seen() -> None:
    """The control: a folder that folds facts by the tables."""
    assert ("lifecycle.table", "FOLD") in kernel_imports("views")
