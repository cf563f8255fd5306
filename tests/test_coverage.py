"""What drives the kernel a million times is not traced, in whichever process it runs."""

from __future__ import annotations

import sys

import pytest


def test_who_is_not_measured_is_not_traced(request: pytest.FixtureRequest) -> None:
    """A tracer that nobody asked for made the gate of two processors take half as long again."""
    if request.config.pluginmanager.get_plugin("_cov") is None:
        pytest.skip("nothing is measured: pytest --cov")
    assert sys.gettrace() is None
