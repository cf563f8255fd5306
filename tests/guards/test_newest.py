"""`make guards`, which runs the newest versions: it knows every framework that is guarded."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


def tool() -> ModuleType:
    """The script, which no package holds."""
    path = ROOT / "tools" / "newest_guards.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_framework_that_an_extra_names_is_run_in_its_newest_version() -> None:
    it = tool()
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = told["project"]["optional-dependencies"]
    named = [one for name, extra in extras.items() if name.startswith("guard-") for one in extra]
    assert {it.name_of(one) for one in named} == set(it.FRAMEWORKS)


def test_no_pinned_framework_comes_along_with_what_the_tests_need() -> None:
    """Each is in [dev], so it would: the filter is by its name, whatever the pin."""
    it = tool()
    required = {it.name_of(one) for one in it.required()}
    assert set(it.FRAMEWORKS) <= required
    assert required >= it.BESIDE
    pinned = {it.name_of(one) for one in it.required() if "==" in one}
    assert set(it.FRAMEWORKS) - {"mcp"} <= pinned
