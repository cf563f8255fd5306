"""Lengths of time in words, and the steps in which an axis counts them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

_MINUTE: Final = 60.0
_HOUR: Final = 3600.0
_DAY: Final = 86400.0
_STEPS: Final = (
    *(digit * 10.0**power for power in range(-6, 1) for digit in (1, 2, 5)),
    *(seconds for seconds in (10.0, 15.0, 30.0)),
    *(minutes * _MINUTE for minutes in (1, 2, 5, 10, 15, 30)),
    *(hours * _HOUR for hours in (1, 2, 6, 12)),
    *(days * _DAY for days in (1, 2, 5)),
)
"""Between which ticks stand well; beyond the last, ten days and their multiples by ten."""
_UNITS: Final = ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min"), (1.0, "s"), (1e-3, "ms"))
_MANY_DAYS: Final = 1_000 * _DAY


def duration(seconds: float) -> str:
    """Return a length of time as people say it: ``12 ms``, ``2.5 s``, ``3 min 20 s``."""
    if seconds < 0:
        return f"-{duration(-seconds)}"
    if seconds < 1:
        return "0 s" if not seconds else _small(seconds)
    if round(seconds, 1) < _MINUTE:
        return f"{seconds:.3g} s"
    if seconds >= _MANY_DAYS:
        return f"{seconds / _DAY:.3g} d"
    for (unit, name), (part, part_name) in pairwise(_UNITS):
        parts = round(seconds / part)
        per = round(unit / part)
        if parts >= per:
            whole, rest = divmod(parts, per)
            return f"{whole} {name} {rest} {part_name}" if rest else f"{whole} {name}"
    return f"{seconds:.3g} s"


def _small(seconds: float) -> str:
    if seconds >= 0.9995:  # noqa: PLR2004 - it would be 1000 ms
        return "1 s"
    if seconds >= 0.0009995:  # noqa: PLR2004 - likewise
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds * 1e6:.3g} µs"


def step_for(length: float, most: int) -> float:
    """Return the least step, in seconds, that divides a length into at most so many parts."""
    for step in _steps():
        if length / step <= most:
            return step
    return length


def _steps() -> Iterator[float]:
    yield from _STEPS
    for power in range(1, 300):
        yield _DAY * 10.0**power


def tick(seconds: float, step: float) -> str:
    """Return what stands at a tick: in the unit of the step, without digits that say nothing."""
    if not seconds:
        return "0"
    least = max(step, 1.0) if seconds >= 1 else step
    for unit, name in _UNITS:
        if least >= unit:
            return f"{seconds / unit:.7g} {name}"
    return f"{seconds * 1e3:.7g} ms"
