"""What a journal in PostgreSQL counts of itself, for whoever watches it."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import attrs

from ...log import logger
from .failures import cause_of

_log: Final = logger(__name__)


@attrs.define(kw_only=True)
class Counts:
    """Since it was opened. `group_seconds` is the time that groups took, their commits included."""

    where: str
    groups: int = 0
    works: int = 0
    group_seconds: float = 0.0
    retries: int = 0
    refused: int = 0
    """Works that were refused because the server was away."""
    unknown: int = 0
    settles: int = 0
    notices: int = 0
    drops: int = 0
    """Connections that were lost."""

    @contextmanager
    def group(self, works: int) -> Generator[None]:
        """Count a group of so many works, and how long it takes."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.groups += 1
            self.works += works
            self.group_seconds += time.perf_counter() - began

    def dropped(self, error: BaseException) -> None:
        """Count a connection that was lost, and tell of it."""
        self.drops += 1
        _log.warning("journal %s: a connection was lost: %s", self.where, cause_of(error))
