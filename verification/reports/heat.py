"""Coverage as tables: phase × input with shaded cells, and reasons with their counts.

Shade alone says nothing: every cell holds its count in figures, and what was never reached says
`never` in text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import log10
from typing import Final

from .words import printable

JOINT: Final = " × "
"""Between the phase and the input in the name of a pair (findings.Coverage)."""
_TURN_PHASES: Final = ("OPEN", "SEALED", "INTERRUPTING", "SETTLED", "INTERRUPTED")
_SHADES: Final = 5


def heat_maps(pairs: Mapping[str, int]) -> str:
    """Return a table for invocations and one for turns; pairs that no rule names are left blank."""
    cells: dict[tuple[str, str], int] = {}
    for name, count in pairs.items():
        phase, _, entry = name.partition(JOINT)
        cells[phase, entry] = count
    machines = {
        "One invocation": {key: n for key, n in cells.items() if key[0] not in _TURN_PHASES},
        "One turn": {key: n for key, n in cells.items() if key[0] in _TURN_PHASES},
    }
    return "".join(_heat_map(title, found) for title, found in machines.items() if found)


def counts_table(title: str, counts: Mapping[str, int]) -> str:
    """Return a list of names with counts, the never reached first."""
    rows = sorted(counts.items(), key=lambda item: (item[1] > 0, item[0]))
    return (
        f"<h3>{_escaped(title)}</h3><ul class='counts'>"
        + "".join(
            f"<li{_shade(n)}><span>{_escaped(name)}</span> {_said(n)}</li>" for name, n in rows
        )
        + "</ul>"
    )


def _heat_map(title: str, cells: Mapping[tuple[str, str], int]) -> str:
    phases = list(dict.fromkeys(phase for phase, _ in cells))
    entries = list(dict.fromkeys(entry for _, entry in cells))
    never = sum(1 for count in cells.values() if not count)
    told = f"{len(cells) - never} of {len(cells)} pairs reached"
    head = "".join(f"<th scope='col'>{_escaped(phase)}</th>" for phase in phases)
    return (
        f"<h3>{title}: {told}</h3><div class='scroll'><table class='heat'>"
        f"<thead><tr><th scope='col'>input</th>{head}</tr></thead><tbody>"
        + "".join(_rows(phases, entries, cells))
        + "</tbody></table></div>"
    )


def _rows(
    phases: Sequence[str], entries: Sequence[str], cells: Mapping[tuple[str, str], int]
) -> Iterator[str]:
    for entry in entries:
        row = "".join(_cell(cells.get((phase, entry))) for phase in phases)
        yield f"<tr><th scope='row'>{_escaped(entry)}</th>{row}</tr>"


def _cell(count: int | None) -> str:
    if count is None:
        return "<td class='none'></td>"
    return f"<td{_shade(count)}>{_said(count)}</td>"


def _shade(count: int) -> str:
    """Shade by order of magnitude: counts differ by many."""
    if not count:
        return " class='never'"
    return f" class='shade{min(_SHADES, 1 + int(log10(count)))}'"


def _said(count: int) -> str:
    return f"{count:,}" if count else "never"


def _escaped(text: str) -> str:
    return escape(printable(text), quote=True)
