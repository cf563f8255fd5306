"""How deep the tests of the proof kit go: as CI has time for, or as `make selftest` asks."""

from __future__ import annotations

import os
from typing import Final

DEEP: Final = os.environ.get("TURNLOCK_SELFTEST") == "deep"
"""Whether this is `make selftest`."""
