"""Generated files are what would be generated now."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("page", ["tables", "index", "pypi", "commands", "edges"])
def test_what_is_generated_is_what_would_be_generated_now(page: str) -> None:
    """K-4: the tables and the index that people read are those that are enforced; PyPI's page."""
    command = [sys.executable, str(ROOT / "tools" / f"write_{page}.py"), "--check"]
    environment = {"PYTHONPATH": str(ROOT / "src")}

    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


def test_the_index_reads_the_names_and_docstrings_of_tests() -> None:
    """The negative control: a helper, a comment and a mention elsewhere name no rule."""
    place = importlib.util.spec_from_file_location("write_index", ROOT / "tools" / "write_index.py")
    assert place is not None
    assert place.loader is not None
    tool = importlib.util.module_from_spec(place)
    sys.modules[place.name] = tool  # where its records look their annotations up
    place.loader.exec_module(tool)
    source = """
def test_k_33_x():
    '''K-7, K-20 … K-22: these.'''
def helper():
    '''K-1.'''
def test_other():  # K-2
    assert "K-3"
"""
    named = [
        tool.rules_named(node)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef)
    ]

    assert named == [{"K-33", "K-7", "K-20", "K-22"}, frozenset(), frozenset()]


def load_pypi() -> ModuleType:
    spec = importlib.util.spec_from_file_location("write_pypi", ROOT / "tools" / "write_pypi.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


README = """# x

See [it](docs/it.md#here), [that](https://b/c), [below](#below).

## See it

![a picture](docs/a.svg)

## Below
"""


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        (None, "See it (`docs/it.md#here`), [that](https://b/c), [below](#below)."),
        (
            "https://a",
            "See [it](https://a/blob/main/docs/it.md#here), [that](https://b/c), [below](#below).",
        ),
    ],
)
def test_a_link_of_the_readme_leads_somewhere_at_pypi(source: str | None, shown: str) -> None:
    """Below the repository's address if there is one, else it says which file it means."""
    page = load_pypi().as_shown(README, source)

    assert page.splitlines()[2] == shown
    assert "picture" not in page
    assert "## Below" in page


def test_no_link_of_the_page_at_pypi_is_relative() -> None:
    page = (ROOT / "docs" / "pypi.md").read_text(encoding="utf-8")

    assert re.findall(r"\]\((?!https?://|#)", page) == []
    assert "```mermaid" not in page
