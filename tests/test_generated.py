"""Generated files are what would be generated now."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(
    "page", ["tables", "index", "pypi", "commands", "edges", "limits", "console"]
)
def test_what_is_generated_is_what_would_be_generated_now(page: str) -> None:
    """K-4: the tables and the index that people read are those that are enforced; PyPI's page."""
    command = [sys.executable, str(ROOT / "tools" / f"write_{page}.py"), "--check"]
    environment = {"PYTHONPATH": str(ROOT / "src")}

    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


def test_the_index_reads_the_names_and_docstrings_of_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: a helper, a comment and a mention elsewhere name no rule."""
    tool = loaded("spec_rules", monkeypatch)
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


def test_bounds_are_read_from_the_modules_with_the_texts_below_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Numbers with public names only; the negative control is one that says nothing of itself."""
    tool = loaded("write_limits", monkeypatch)
    source = """
A: Final = 1
'''Seconds of
it.'''
_B: Final = 2
'''No.'''
C: Final = 3
d: int = 4
'''No.'''
"""

    assert list(tool.named(source)) == [("A", "Seconds of it."), ("C", "")]
    assert [tool._is_bound(value) for value in (1, (0.5, 2.0), True, (), -1, "1")] == [
        *(True, True, False, False, False, False)
    ]
    path = tmp_path / "agent" / "following.py"
    path.parent.mkdir()
    path.write_text("LOOK: Final = 1.0\n", encoding="utf-8")
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    with pytest.raises(SystemExit, match=r"agent/following.py: LOOK needs a text below it"):
        list(tool._rows(path))


def loaded(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Import a tool, as if it had been started from its folder."""
    monkeypatch.setattr(sys, "path", [str(ROOT / "tools"), *sys.path])
    return importlib.import_module(name)


def test_a_page_that_differs_is_named_and_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The negative control of the comparison; without --check the page is written."""
    tool = loaded("generated", monkeypatch)
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["write", "--check"])
    kept, page = tmp_path / "kept.md", tmp_path / "page.md"
    kept.write_text("as told", encoding="utf-8")
    page.write_text("by hand", encoding="utf-8")
    wanted = {kept: "as told", page: "as told", tmp_path / "new.md": "as told"}

    assert tool.keep(wanted, told_by="they say") == 1
    assert capsys.readouterr().err.splitlines() == [
        "page.md is not what they say; run: make tables",
        "new.md is not what they say; run: make tables",
    ]
    assert page.read_text(encoding="utf-8") == "by hand"

    monkeypatch.setattr(sys, "argv", ["write"])

    assert tool.keep(wanted, told_by="they say") == 0
    assert {one.read_text(encoding="utf-8") for one in tmp_path.iterdir()} == {"as told"}


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
def test_a_link_of_the_readme_leads_somewhere_at_pypi(
    source: str | None, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below the repository's address if there is one, else it says which file it means."""
    page = loaded("write_pypi", monkeypatch).as_shown(README, source)

    assert page.splitlines()[2] == shown
    assert "picture" not in page
    assert "## Below" in page


def test_no_link_of_the_page_at_pypi_is_relative() -> None:
    page = (ROOT / "docs" / "pypi.md").read_text(encoding="utf-8")

    assert re.findall(r"\]\((?!https?://|#)", page) == []
    assert "```mermaid" not in page
