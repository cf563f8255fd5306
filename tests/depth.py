"""How deep properties and seeded sweeps go: as the gate has time for, or as `make fuzz` asks.

Crashes have a depth of their own, runtime/crash/depth.py; so has the proof kit, in
verification/depth.py.
"""

from __future__ import annotations

import os
from typing import Final

DEEP: Final = os.environ.get("HYPOTHESIS_PROFILE") in {"whole", "nightly"}
"""Whether this is `make fuzz`."""
