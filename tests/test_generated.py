"""Generated files are what would be generated now."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("tool", ["write_tables.py", "write_index.py"])
def test_what_is_generated_is_what_would_be_generated_now(tool: str) -> None:
    """K-4: the tables and the index of rules that people read are those that are enforced."""
    command = [sys.executable, str(ROOT / "tools" / tool), "--check"]
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
