"""The pytest plugin: two options for conformance suites, and nothing else until one is imported.

The entry point loads this file as the top-level module `turnlock_pytest` (a link to it), since a
plugin is imported at every start of pytest, before coverage is measured: to import the package
`turnlock` there would cost everybody time, and its authors the coverage of its first lines. So it
imports nothing, and what a suite needs is imported by the test file that defines one:
`from turnlock.verification.conformance_suite import ConformanceSuite`.
"""

from __future__ import annotations

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
