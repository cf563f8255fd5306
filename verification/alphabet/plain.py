"""One plain delivery of each type that names an invocation, for whoever needs any of its kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..findings import Raw

PLAIN: Final[Mapping[str, tuple[Raw, ...]]] = {
    "decide": ({"approved": True}, {"approved": False}),
    "claim": ({"attempt": 1},),
    "report": ({"result": "ok"}, {"error": "no"}),
    "reject": ({"error": "no such tool"},),
    "lose": ({},),
    "resolve": ({"attempt": 1, "as": "retry"},),
    "renew": ({"lease": 1.0},),
}
"""What each needs beside the ids, in each of its kinds; the first is the likeliest."""
