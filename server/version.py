"""Which version of turnlock is installed."""

from __future__ import annotations

from importlib import metadata


def version() -> str:
    """Return it."""
    try:
        return metadata.version("turnlock")
    except metadata.PackageNotFoundError:
        return "0"
