"""Being somebody whom files can refuse: a superuser is refused nothing."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager

NOBODY = 65_534


@contextmanager
def somebody() -> Generator[None]:
    """Be no superuser."""
    is_superuser = os.geteuid() == 0
    if is_superuser:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if is_superuser:
            os.seteuid(0)
