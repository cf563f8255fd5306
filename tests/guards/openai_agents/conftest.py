"""The SDK as these tests have it."""

from __future__ import annotations

from agents import set_tracing_disabled

set_tracing_disabled(disabled=True)  # it would call home
