"""Run the benchmarks: ``python benchmarks/run.py [--quick] [--json FILE] [--only NAME …]``.

One table for each benchmark. A benchmark is no test: a bound that is missed is told, and the exit
status is 0 all the same, because noise must not fail anything.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any, Final

import attrs
from timing import QUICK, Line

ROUNDS: Final = {
    "step": 60,
    "receive": 60,
    "memory": QUICK + 1,
    "turn_size": 24,
    "runs": QUICK + 1,
    "codec": 40,
    "strict_json": 40,
    "arguments": 40,
    "stdio": 8,
    "conformance": QUICK + 1,
    "guided": 12,
    "rules": QUICK + 3,
    "imports": 15,
    "tokens": 12,
    "replay": 8,
    "journal": 8,
    "logs": 8,
    "postgres": 8,
    "engines": QUICK + 1,
    "listing": 12,
    "runtime": QUICK + 1,
    "peers": QUICK + 1,
    "load": QUICK + 1,
    "streams": QUICK + 1,
    "clients": QUICK + 1,
    "console": QUICK + 1,
    "agents": QUICK + 1,
    "worlds": QUICK + 1,
    "guards": 8,
    "closure": QUICK + 1,
    "pictures": QUICK + 1,
    "normaliser": 12,
}
"""The benchmarks, in files named bench_*.py, and how many rounds each needs to be calm."""

END: Final = """\
Best and median over the rounds, in CPU time; a bound is of the best, unless said otherwise.
A benchmark is no test: whether bounds are met or not, the exit status is 0."""


def main() -> None:
    """Measure what was asked for, and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="few rounds, small sizes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    parser.add_argument(
        "--only", nargs="+", choices=ROUNDS, metavar="NAME", help="of " + ", ".join(ROUNDS)
    )
    asked = parser.parse_args()

    print(machine(), flush=True)
    figures: dict[str, list[Line]] = {}
    for name in asked.only or ROUNDS:
        module: Any = importlib.import_module(f"bench_{name}")
        figures[name] = module.measure(min(ROUNDS[name], QUICK) if asked.quick else ROUNDS[name])
        print(f"\n## {name}\n\n{module.__doc__.strip()}\n\n{table(figures[name])}", flush=True)
    missed = [line.name for lines in figures.values() for line in lines if line.met is False]
    print(f"\nBounds missed: {', '.join(missed) or 'none'}.\n{END}")
    if asked.json:
        asked.json.write_text(as_json(figures), encoding="utf-8")


def machine() -> str:
    """Describe where this runs, in one line."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{python}, {os.cpu_count()} cores, {sys.platform} {platform.machine()}"


def table(lines: list[Line]) -> str:
    """Return the lines as a table that Markdown and a terminal both show."""
    rows = [("figure", "best", "median", "unit", "bound", "met", "note")]
    rows += [
        (
            line.name,
            shown(line.value),
            shown(line.median),
            line.unit,
            "" if line.bound is None else f"{line.bound:g}",
            "" if line.met is None else "yes" if line.met else "NO",
            line.note,
        )
        for line in lines
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, tuple("-" * width for width in widths))  # type: ignore[arg-type]
    return "\n".join("| " + " | ".join(map(str.ljust, row, widths)).rstrip() + " |" for row in rows)


def shown(value: float | None) -> str:
    """Write three digits that count; nothing for what was not measured."""
    if value is None:
        return ""
    if value >= 100:  # noqa: PLR2004 - three digits stand before the point
        return f"{value:,.0f}"
    return f"{value:.3g}"


def as_json(figures: dict[str, list[Line]]) -> str:
    """Return the figures for programs."""
    found = {
        name: [{**attrs.asdict(line), "met": line.met} for line in lines]
        for name, lines in figures.items()
    }
    return json.dumps({"machine": machine(), "figures": found}, indent=1, ensure_ascii=False)


if __name__ == "__main__":
    main()
