"""Holding arguments against the hints of their tool, beside `msgspec.convert` on the same data.

`check` freezes what it is given, copies it, and holds it against plain hints (in Python) or against
what pydantic made of them (from JSON text, strictly, with unknown fields refused at any depth);
msgspec is given the plain data and drops what it does not know.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Final

import msgspec
from pydantic import Field
from timing import Line, measured, timed

from turnlock.models.values import freeze
from turnlock.runtime.tools.arguments import check
from turnlock.runtime.tools.tool import Tool, tool

TIMES: Final = 300
"""Checks of small arguments in one round; a hundredth of them for large ones."""


@dataclasses.dataclass
class Item:
    """One of many."""

    name: str
    price: float


@tool
def plain(city: str, days: int = 3, units: str | None = None) -> None:
    """Hints of Python's own types."""


@tool
def constrained(city: str, days: Annotated[int, Field(ge=1, le=14)] = 3) -> None:
    """One constraint: pydantic reads all of it."""


@tool
def plain_list(items: list[dict[str, float]]) -> None:
    """Many small objects, by plain hints."""


@tool
def typed_list(items: list[Item]) -> None:
    """Many dataclasses."""


class _Plain(msgspec.Struct):
    city: str
    days: int = 3
    units: str | None = None


class _PlainList(msgspec.Struct):
    items: list[dict[str, float]]


class _TypedList(msgspec.Struct):
    items: list[Item]


SMALL: Final[dict[str, Any]] = {"city": "Bern", "days": 5}
CASES: Final[dict[str, tuple[Tool, type[msgspec.Struct], dict[str, Any]]]] = {
    "plain, 2 arguments": (plain, _Plain, SMALL),
    "constrained, 2 arguments": (constrained, _Plain, SMALL),
    "plain, a list of 100": (
        plain_list,
        _PlainList,
        {"items": [{"a": 1.5, "b": 2.5} for _ in range(100)]},
    ),
    "dataclasses, a list of 100": (
        typed_list,
        _TypedList,
        {"items": [{"name": f"item {number}", "price": 1.5} for number in range(100)]},
    ),
}


def _repeat(call: Callable[[], object], times: int) -> None:
    for _ in range(times):
        call()


def measure(rounds: int) -> list[Line]:
    """Check small and large arguments, as the runtime has them: frozen."""
    lines: list[Line] = []
    for name, (it, struct, given) in CASES.items():
        times = TIMES if given is SMALL else max(3, TIMES // 100)
        frozen: Any = freeze(given, place="arguments")
        calls: dict[str, Callable[[], object]] = {
            "check": partial(check, it, frozen),
            "msgspec.convert": partial(msgspec.convert, given, struct, strict=True),
        }
        works = {key: timed(times, partial(_repeat, call, times)) for key, call in calls.items()}
        samples = measured(rounds, works)
        lines += [sample.line(f"{name}, {key}") for key, sample in samples.items()]
        over = samples["check"].over(samples["msgspec.convert"], f"{name}, check / msgspec.convert")
        lines.append(over)
    return lines
