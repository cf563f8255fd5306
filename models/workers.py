"""Who performs calls, as facts name them: by ids that tell nothing of a host or a process (F-6).

What an id stands for is the journal's business. Facts of version 0.1 and 0.2 name the process
itself; they stay as they were kept, and are shown with an id in its place.
"""

from __future__ import annotations

import hashlib
from typing import Final

OPAQUE: Final = "w/"
"""Begins the id of every worker of ours."""
OLDER: Final = "turnlock:"
"""Begins a worker that names its host and process."""
_DIGITS: Final = 14


def opaque(worker: str) -> str:
    """Return what is shown of a worker: a digest of one that names its host and process."""
    if not worker.startswith(OLDER):
        return worker
    digest = hashlib.sha256(worker.encode("utf-8", "surrogatepass")).hexdigest()
    return OPAQUE + digest[:_DIGITS]
