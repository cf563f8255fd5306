"""How deep the crash tests go: as CI has time for, or as `make crash` asks."""

from __future__ import annotations

import os
from typing import Final

DEEP: Final = os.environ.get("TURNLOCK_CRASHES") == "deep"
"""Whether this is `make crash`."""
