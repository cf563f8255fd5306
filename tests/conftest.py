"""Hypothesis profiles: `ci` in the gate, `nightly` for `make fuzz`, `dev` for a quick look."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_ALWAYS = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}

settings.register_profile("dev", max_examples=20, **_ALWAYS)
settings.register_profile("ci", max_examples=100, derandomize=True, **_ALWAYS)
settings.register_profile("nightly", max_examples=5_000, **_ALWAYS)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
