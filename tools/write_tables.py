"""Write docs/tables.md from the declared machines, and into docs/wire.md what facts carry.

With --check, compare instead of writing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

from generated import ROOT, keep

from turnlock.diagrams.graphs.extract import graph_of
from turnlock.diagrams.graphs.matrix import matrix_markdown
from turnlock.lifecycle.table import INVOCATION
from turnlock.machines.rows import Machine
from turnlock.models.deliveries import Match, Scope
from turnlock.models.fact import Fact
from turnlock.models.facts import (
    FACTS,
    LIFECYCLE_FAMILY,
    DenialCause,
    FailureCause,
    LifecycleFact,
)
from turnlock.turn.table import TURN
from turnlock.verification.rulebook.payloads import PAYLOADS, Field, attributes

TABLES = ROOT / "docs" / "tables.md"
WIRE_PAGE = TABLES.with_name("wire.md")
BEGIN = "<!-- payloads: written by make tables -->"
END = "<!-- payloads end -->"
CHOICES: Mapping[str, type[StrEnum]] = {
    choice.__name__: choice for choice in (Scope, Match, DenialCause, FailureCause)
}
WORDS = {
    "str": "text",
    "int": "integer",
    "float": "Unix time, seconds",
    "bool": "`true` or `false`",
    "Json": "any JSON",
    "Mapping[str, Json]": "object",
    "Input": "an input of the [tables](tables.md)",
    "Call": "a call as it was delivered",
    "tuple[Call, ...]": "the calls as they were delivered, in order",
}

HEAD = """# The tables that are enforced

Generated from `lifecycle/table.py` and `turn/table.py` by `make tables`; the gate compares.

A cell says where a delivery leads: **PHASE** / fact, or the *reason* of its refusal, or – when
nothing happens. Where a pair has several rows, the guard that holds stands in brackets.
"""


def main() -> int:
    """Write the pages, or compare them."""
    tables = "\n".join([HEAD, *section(INVOCATION), *section(TURN)])
    wire = with_payloads(WIRE_PAGE.read_text(encoding="utf-8"))
    return keep({TABLES: tables, WIRE_PAGE: wire}, told_by="the tables say")


def section(machine: Machine[Any, Any]) -> Iterator[str]:
    """One machine: where it begins and ends, and its matrix."""
    graph = graph_of(machine)
    initial = " or ".join(node.name for node in graph.nodes if node.initial)
    terminal = ", ".join(sorted(node.name for node in graph.nodes if node.terminal))
    yield f"## {graph.title}\n"
    yield f"Begins in {initial}; ends in {terminal}.\n"
    yield matrix_markdown(graph)


def with_payloads(page: str) -> str:
    """Return the page with the table of payloads between its two marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"docs/wire.md lacks its marks: {BEGIN} and {END}")
    return "".join([before, begin, "\n\n", *(f"{row}\n" for row in payloads()), "\n", end, after])


def payloads() -> Iterator[str]:
    """Yield the rows: what every fact has, what those of the lifecycle have, then fact by fact."""
    yield "| fact | field | holds | there | says |"
    yield "|---|---|---|---|---|"
    every = [field.name for field in attributes(Fact)] + ["turn_id"]
    family = [*every, *(field.name for field in attributes(LifecycleFact))]
    some = PAYLOADS[LIFECYCLE_FAMILY[0].type]
    yield from _fact("every fact", [some[name] for name in every])
    yield from _fact("the lifecycle family", [some[it] for it in family if it not in every])
    for fact in FACTS:
        common = family if issubclass(fact, LifecycleFact) else every
        fields = [it for name, it in PAYLOADS[fact.type].items() if name not in common]
        yield from _fact(f"`{fact.type}`", fields)


def _fact(name: str, fields: list[Field]) -> Iterator[str]:
    for field in fields:
        by = f"{field.rule}, {field.decided}" if field.decided else field.rule
        there = "may be left out" if field.may_be_left_out else _there(field)
        yield f"| {name} | `{field.name}` | {_holds(field.type)} | {there} | {by} |"
        name = ""
    if not fields:
        yield f"| {name} | | | | |"


def _there(field: Field) -> str:
    return "where it has a value" if field.optional else "always"


def _holds(type_: str) -> str:
    """Say a type in the words of the wire."""
    name = type_.removesuffix(" | None")
    if name in CHOICES:
        return ", ".join(f"`{one}`" for one in CHOICES[name])
    return WORDS[name]


if __name__ == "__main__":
    sys.exit(main())
