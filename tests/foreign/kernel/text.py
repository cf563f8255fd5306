"""Ids, canonical JSON and the first float past a time."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any


def joined(*parts: Any) -> str:
    """Join parts to an id that no other parts give."""
    return "/".join(str(part).replace("%", "%25").replace("/", "%2F") for part in parts)  # K-7


def canonical(value: Any) -> str:
    """Say a JSON value in the one way in which equal ones look alike."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)  # K-32 S6


def digest(value: Any) -> str:
    """Return the digest of arguments."""
    return hashlib.sha256(canonical(value).encode("utf-8")).hexdigest()  # K-32


def just_past(deadline: float) -> float:
    """Return the first float at which a deadline is over."""
    return math.nextafter(deadline, math.inf)  # S9 K-34
