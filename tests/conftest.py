"""Hypothesis profiles: `ci` in the gate, `nightly` and `whole` for `make fuzz`, `dev` for a look.

And what is measured: the kernel is covered by its own tests. The others, which drive it some
million times, run without the tracer, with which they take two to three times as long
(tests/verification/test_judging.py and subjects/test_in_process.py 11 s without it, 28 s with it).
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from .postgres.servers import drop_schemas

os.environ.pop("COLUMNS", None)  # some runners set it, and then tables are as wide as it says

# Images for containers set this one: every process that a test starts would compile all it imports,
# 1.9 s instead of 0.7 s of CPU for `python -m turnlock --help`, and every worker all of the tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Background jobs of a shell inherit that SIGINT is ignored, and tests interrupt what they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_ALWAYS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("dev", _ALWAYS, max_examples=20)
settings.register_profile("ci", _ALWAYS, max_examples=40, derandomize=True)
settings.register_profile("whole", _ALWAYS, max_examples=500)
settings.register_profile("nightly", _ALWAYS, max_examples=5_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

TESTS = Path(__file__).parent
OF_THE_KERNEL = frozenset({"models", "machines", "engine", "rules", "usecases", "property"})
"""The folders whose tests reach every branch of the kernel."""
LONGEST = frozenset(
    {"catalogue", "foreign", "property", "runtime", "server", "tui", "verification"}
)
"""The folders whose files take longest: begun first, no processor waits for the last of them."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One process more than processors: many tests wait, for other processes and for time."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """What a test has kept in PostgreSQL goes with it."""
    drop_schemas()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected lives until the end: look for no garbage in it, now or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest; files stay whole."""
    items.sort(key=lambda item: not _is_of(item, LONGEST))


def _is_of(item: pytest.Item, folders: frozenset[str]) -> bool:
    within = item.path.is_relative_to(TESTS)
    return within and item.path.relative_to(TESTS).parts[0] in folders


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """End what pytest-cov begins first in a worker: it went on wherever the second is paused."""
    if hasattr(session.config, "workerinput") and (controller := _tracer(session.config)):
        controller.pause()


def _tracer(config: pytest.Config) -> Any:
    """Return what begins and ends the measuring of coverage, or None where nothing is measured."""
    return getattr(config.pluginmanager.get_plugin("_cov"), "cov_controller", None)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Measure coverage in the kernel's own tests alone; switch only where one kind ends."""
    controller = _tracer(item.config)
    if controller is not None and item.path.is_relative_to(TESTS):
        measured = _is_of(item, OF_THE_KERNEL)
        if measured and not controller.started:
            controller.resume()
        elif controller.started and not measured:
            controller.pause()
    return (yield)
