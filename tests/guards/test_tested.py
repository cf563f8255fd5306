"""A framework of another version than was measured is told of, with both versions."""

from __future__ import annotations

import asyncio
import os
import re
import tomllib
import warnings
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest

from turnlock.guards import Guard
from turnlock.guards.agent_framework import TurnMiddleware
from turnlock.guards.langgraph import GuardMiddleware
from turnlock.guards.mcp.http import http
from turnlock.guards.openai_agents import guarded_tool
from turnlock.guards.pydantic_ai import GuardCapability
from turnlock.guards.tested import TESTED, UntestedVersion, warn_if_untested

ROOT = Path(__file__).resolve().parents[2]


async def reach(url: str) -> None:
    """Stand before a server at a URL; nothing is sent."""
    async with http(url, {}):
        pass


async def pay(amount: int) -> str:
    """Pay an amount."""
    return f"paid {amount}"


MADE: dict[str, Callable[[Guard], object]] = {
    "agent-framework-core": TurnMiddleware,
    "langgraph": GuardMiddleware,
    "langchain": GuardMiddleware,
    "mcp": lambda _: asyncio.run(reach("http://127.0.0.1:9/mcp")),
    "openai-agents": lambda guard: guarded_tool(guard, pay),
    "pydantic-ai-slim": GuardCapability,
}
"""What everybody makes who has the guard of a framework; servers over stdio need no `mcp`."""


NEWEST = os.environ.get("TURNLOCK_GUARDS") == "deep"
"""Whether `make guards` runs this, on whatever is the newest."""


@pytest.mark.skipif(NEWEST, reason="the newest may be untested: make guards prints a warning")
def test_the_versions_of_the_suite_are_tested_ones() -> None:
    """What is installed here is what the table's tests run on; it gives no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_untested(*TESTED)


def test_every_pinned_framework_stands_in_the_table() -> None:
    """A pin that is raised without a look at the range would go unseen otherwise."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    names = {
        match[0]
        for extra, needs in extras.items()
        if extra.startswith("guard-")
        for need in needs
        if (match := re.match(r"[a-z-]+", need))
    }
    assert names == set(TESTED)
    for need in extras["dev"]:
        name, pinned, version = need.partition("==")
        if pinned and name in TESTED:
            assert TESTED[name].holds(version), need


@pytest.mark.parametrize(
    ("version", "warned"),
    [
        ("1.1.9", True),
        ("1.2", False),
        ("1.2.22", False),
        ("1.2.99.post1", False),
        ("1.3.0rc1", True),
        ("1.3", True),
        ("1.10.0", True),
        ("2.0", True),
        ("unknown", False),
    ],
)
def test_a_version_outside_the_range_warns_of_both(
    monkeypatch: pytest.MonkeyPatch, version: str, warned: bool
) -> None:
    def installed(_: str) -> str:
        return version

    monkeypatch.setattr(metadata, "version", installed)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        warn_if_untested("langgraph")
    assert len(told) == warned
    if warned:
        assert told[0].category is UntestedVersion
        text = str(told[0].message)
        assert f"langgraph {version} is installed" in text
        assert "tested with 1.2 up to" in text


@pytest.mark.parametrize("name", sorted(TESTED))
def test_whoever_makes_a_guard_of_a_framework_is_warned(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each adapter asks; made with versions that were tested it says nothing."""
    really = metadata.version

    def tested(it: str) -> str:
        return TESTED[it].first if it in TESTED else really(it)

    def installed(it: str) -> str:
        return "99.0" if it == name else tested(it)

    with Guard.open(tmp_path / "agent.db") as guard:
        monkeypatch.setattr(metadata, "version", tested)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            MADE[name](guard)
        monkeypatch.setattr(metadata, "version", installed)
        with pytest.warns(UntestedVersion, match=f"^{name} 99.0 is installed, .* tested with "):
            MADE[name](guard)


def test_what_is_not_installed_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    warn_if_untested("mcp")
