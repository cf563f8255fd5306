"""Runs pytest inside pytest, with our plugin as the only one beside pytest's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

Run = Callable[..., pytest.RunResult]
DEV = ("--turnlock-profile", "dev")


@pytest.fixture
def run_suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a test file's text, at the profile `dev`: these very tests run under Hypothesis' `ci`."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run(
        source: str, *arguments: str, options: Sequence[str] = DEV, plugin: str = "turnlock_pytest"
    ) -> pytest.RunResult:
        pytester.makepyfile(source)
        return pytester.runpytest_inprocess("-p", plugin, "-rs", *options, *arguments)

    return run
