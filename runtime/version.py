"""Which version of turnlock is installed."""

from __future__ import annotations


def version(missing: str = "0") -> str:
    """Return it, or `missing` where this is a checkout that nobody installed."""
    from importlib import metadata  # noqa: PLC0415 - 14 ms that most who import this do not need

    try:
        return metadata.version("turnlock")
    except metadata.PackageNotFoundError:
        return missing
