"""The words that scripts and rules are made of: few, so that they meet again."""

from __future__ import annotations

from typing import Any, Final

from ..subjects.subject import Raw

TURNS: Final = ("T1", "T2", "T/3")
INVOCATIONS: Final = ("a", "b", "c/1", "d")
UNKNOWN: Final = "zz"
"""An id that no call has."""
TOOLS: Final = ("ls", "pay")
WORKERS: Final = ("w1", "w2")
PEOPLE: Final = ("ann", "bob")
SCOPES: Final = ("once", "turn", "session")
MATCHES: Final = ("exact", "tool")
TWINS: Final[tuple[Raw, ...]] = ({"n": 1}, {"n": 1.0}, {"n": True})
"""Equal under `==`, different as canonical JSON (K-32, S of section 6)."""
RESULTS: Final[tuple[Any, ...]] = (1, 1.0, True, None, 0, "", False, [], "ok", {"n": [1]})
ERRORS: Final = ("boom", "interrupted; outcome unknown")
WAITS: Final = (0.0, 0.5, 1.0, 2.0)
"""Seconds: halves and wholes, so that times end at deadlines and past them (K-34)."""
