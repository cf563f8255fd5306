"""Which versions of the frameworks the guards were measured with, and a warning for any other.

A hook that a newer framework calls otherwise, or not at all, is a guard that is off. Nothing can
know that beforehand; so whoever runs another version is told, once, with both versions.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from typing import Final

import attrs


@attrs.frozen
class Range:
    """From `first` on, below `end`: the releases that were measured, and the patches of them."""

    first: str
    end: str

    def holds(self, version: str) -> bool:
        """Whether a version is in it; a pre-release counts as what it leads to."""
        return _parts(self.first) <= _parts(version) < _parts(self.end)


TESTED: Final[Mapping[str, Range]] = {
    "agent-framework-core": Range("1.23", "1.24"),
    "langchain": Range("1.4", "1.6"),
    "langgraph": Range("1.2", "1.3"),
    "mcp": Range("2.3", "2.4"),
    "openai-agents": Range("0.24", "0.25"),
    "pydantic-ai-slim": Range("2.68", "2.69"),
}
"""By the names of distributions; `make guards` runs the whole table on the newest."""


class UntestedVersion(UserWarning):
    """A framework whose version is outside of what its guard was measured with."""


def warn_if_untested(*distributions: str) -> None:
    """Warn of each of these that is installed in another version than was tested.

    One that is not installed, or has no version that could be read, is passed over.
    """
    from importlib import metadata  # noqa: PLC0415 - only where a guard is made

    for name in distributions:
        tested = TESTED[name]
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
        if _parts(version) and not tested.holds(version):
            warnings.warn(
                f"{name} {version} is installed, and its guard was tested with {tested.first} up to"
                f" (not with) {tested.end}: run your tests with the guard on, or install"
                f' "{name}>={tested.first},<{tested.end}"',
                UntestedVersion,
                stacklevel=3,
            )


def _parts(version: str) -> tuple[int, ...]:
    found = re.match(r"v?(\d+(?:\.\d+)*)", version)
    return tuple(map(int, found[1].split("."))) if found else ()
