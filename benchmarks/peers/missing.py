"""What a peer needs and this environment has not: then it is skipped, and the table says why."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from timing import Line


def missing(*packages: str) -> str:
    """Return why a peer of these packages cannot be measured here; empty where it can."""
    absent = [package for package in packages if not _version(package)]
    return f"skipped: no {', '.join(absent)}; pip install -e '.[peers]'" if absent else ""


def versions(*packages: str) -> str:
    """Return the packages with their versions, as a note shows them."""
    return ", ".join(f"{package} {_version(package)}" for package in packages)


def skipped(name: str, reason: str) -> Line:
    """Return the line of a figure that could not be measured."""
    return Line(name=name, value=None, unit="", note=reason)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
