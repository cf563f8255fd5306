"""Hypothesis profiles: `ci` in the gate, `nightly` for `make fuzz`, `dev` for a quick look."""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, settings

os.environ.pop("COLUMNS", None)  # some runners set it, and then tables are as wide as it says

# Background jobs of a shell inherit that SIGINT is ignored, and tests interrupt what they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_ALWAYS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("dev", _ALWAYS, max_examples=20)
settings.register_profile("ci", _ALWAYS, max_examples=100, derandomize=True)
settings.register_profile("nightly", _ALWAYS, max_examples=5_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
