"""The pytest plugin: options for conformance suites, and nothing else until one is imported.

The entry point loads this file as the top-level module `turnlock_pytest` (a link to it), since a
plugin is imported at every start of pytest, before coverage is measured: to import the package
`turnlock` there would cost everybody time, and its authors the coverage of its first lines. So it
imports nothing, and what a suite needs is imported by the test file that defines one:
`from turnlock.verification import ConformanceSuite`. Only where
`--turnlock-coverage` asks to count what kernels do is the package imported, at configuration.

PYTEST_DONT_REWRITE: it asserts nothing, and pytest would warn where it is imported twice.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

PROFILES = ("dev", "ci", "nightly")
"""As `findings.Profile`, which is not imported here."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of conformance suites."""
    group = parser.getgroup("turnlock", "conformance suites of turnlock")
    group.addoption(
        "--turnlock-profile",
        choices=PROFILES,
        default=None,
        help="how much each suite checks: dev for every save, ci for every push, nightly for "
        "the night "
        "(default: the profile that Hypothesis has loaded, if it has one of these names, or dev)",
    )
    group.addoption(
        "--turnlock-seed",
        type=int,
        default=0,
        metavar="N",
        help="the seed of what is drawn at random (default: 0)",
    )
    group.addoption(
        "--turnlock-coverage",
        default=None,
        metavar="FILE",
        help="write there, as JSON, how often each row of the tables was met, by kernels in these "
        "tests and by conformance suites: `turnlock diagram coverage FILE` draws it",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Begin to count where that is asked; by its full name, as this file is in no package."""
    if config.getoption("--turnlock-coverage"):
        import_module("turnlock.verification.session_coverage").begin(config)
