"""The plugin does nothing to people who do not use it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from turnlock.verification import pytest_plugin

ROOT = Path(__file__).resolve().parents[3]

SPY = """
import sys

def pytest_unconfigure():
    ours = sorted(name for name in sys.modules if name.split(".")[0] in {"turnlock", "hypothesis"})
    print("imported:", ours)
"""


def test_the_plugin_imports_nothing_of_ours(pytester: pytest.Pytester) -> None:
    """Start pytest with it, in a process of its own, and look: nothing of ours but the file."""
    pytester.makepyfile(spy=SPY, test_theirs="def test_theirs(): ...")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "turnlock_pytest", "-p", "spy"]
    path = f"{ROOT / 'src'}:{pytester.path}"
    environment = {"PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    result = pytester.run(*_with(environment, command))
    assert result.ret == 0
    result.stdout.fnmatch_lines(["imported: []"])


def test_the_spy_sees_an_import(pytester: pytest.Pytester) -> None:
    """The negative control: a test file that imports the package is seen to."""
    pytester.makepyfile(spy=SPY, test_theirs="from turnlock import Kernel\n\ndef test(): ...")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "turnlock_pytest", "-p", "spy"]
    path = f"{ROOT / 'src'}:{pytester.path}"
    environment = {"PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    result = pytester.run(*_with(environment, command))
    assert result.ret == 0
    result.stdout.fnmatch_lines(["imported: *'turnlock.engine.kernel'*"])


def _with(environment: dict[str, str], command: list[str]) -> list[str]:
    return ["env", *(f"{name}={value}" for name, value in environment.items()), *command]


def test_the_top_level_module_is_the_plugin() -> None:
    """A link: the entry point must not import the package (its docstring says why)."""
    link = ROOT / "src" / "turnlock_pytest.py"
    assert link.resolve() == Path(pytest_plugin.__file__).resolve()
    assert link.is_symlink()


def test_the_module_runs_alone() -> None:
    """Isolated from everything installed: it needs the standard library only."""
    source = Path(pytest_plugin.__file__).read_text(encoding="utf-8")
    done = subprocess.run([sys.executable, "-I", "-S", "-c", source], check=False)
    assert done.returncode == 0
