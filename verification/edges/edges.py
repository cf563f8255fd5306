"""All the edges, family by family."""

from __future__ import annotations

from itertools import chain
from typing import Final

from . import absent, clocks, hosts, names, sizes, values
from .edge import Edge

FAMILIES: Final[dict[str, tuple[Edge, ...]]] = {
    "Absent, zero, empty": absent.SCRIPTS,
    "Values": values.SCRIPTS,
    "Ids": names.SCRIPTS,
    "Runs, agents, correlation": hosts.SCRIPTS,
    "Clocks": clocks.SCRIPTS,
    "Sizes": sizes.SCRIPTS,
}

EDGES: Final[tuple[Edge, ...]] = tuple(chain.from_iterable(FAMILIES.values()))
