"""How often each row of the tables was met: counted in recordings, or read from a file.

A row has the name ``phase × input [guard]``, as in the coverage of `turnlock verify`. A row that
was not counted is absent, and one that was never met counts 0: a journal says nothing of refusals,
and no recording of rows at which nothing happens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import log1p
from typing import Any, Final, TypeAlias, TypeVar, cast

import attrs

from ..lifecycle.table import INVOCATION
from ..machines.rows import Machine, Row
from ..models.errors import InvalidValue, shown
from ..models.reasons import Reason
from ..models.safe_text import harmless
from ..models.strict_json import parse
from ..turn.table import TURN
from .drawing.engines import Engine
from .drawing.tables import Table
from .errors import NothingToDraw
from .graphs.extract import graph_of
from .graphs.graph import Cell, Edge, Graph, Mark, Move, Node
from .graphs.picture import MachinePicture
from .recordings.moves import Step, events
from .recordings.recording import Recording

KeyT = TypeVar("KeyT")


@attrs.frozen(kw_only=True)
class Counts:
    """How often what was met.

    `rows` and `reasons` by name. `either` holds what the recorded facts cannot tell apart: the
    names of the rows, one of which was met, and how often. A row of such a group was met at least
    as often as `rows` says, and at most so often more as its groups say.
    """

    rows: Mapping[str, int] = attrs.field(factory=dict[str, int])
    either: Mapping[tuple[str, ...], int] = attrs.field(factory=dict[tuple[str, ...], int])
    reasons: Mapping[str, int] = attrs.field(factory=dict[str, int])

    @classmethod
    def of(cls, recordings: Iterable[Recording]) -> Counts:
        """Count what happened in recordings of our machines.

        Raises `CorruptJournal` for facts that no run can have written.
        """
        return sum((_counted(recording) for recording in recordings), cls())

    def __add__(self, other: Counts) -> Counts:
        """Return the counts of both together."""
        return Counts(
            rows=_summed(self.rows, other.rows),
            either=_summed(self.either, other.either),
            reasons=_summed(self.reasons, other.reasons),
        )

    def met(self, name: str) -> int | None:
        """Return how often a row was met at least, or None where it was not counted."""
        return self.rows.get(name)

    def perhaps(self, name: str) -> int:
        """Return how much oftener it may have been met."""
        return sum(count for names, count in self.either.items() if name in names)


def row_name(phase: str, input: str, guard: str) -> str:  # noqa: A002 - the word of the spec
    """Return the name under which a row is counted."""
    return f"{phase} × {input} [{guard}]" if guard else f"{phase} × {input}"


def _of_row(row: Row[Any, Any]) -> str:
    return row_name(row.phase, row.input, row.guard)


_ROWS: Final[tuple[Row[Any, Any], ...]] = (*INVOCATION.rows, *TURN.rows)
_MOVING: Final = tuple(_of_row(row) for row in _ROWS if row.fact is not None)
_REFUSING: Final = tuple(_of_row(row) for row in _ROWS if row.reason is not None and row.possible)


def _counted(recording: Recording) -> Counts:
    rows: Counter[str] = Counter(dict.fromkeys(_MOVING, 0))
    either: Counter[tuple[str, ...]] = Counter()
    reasons: Counter[str] = Counter()
    if any(moment.delivery is not None for moment in recording.moments):
        rows.update(dict.fromkeys(_REFUSING, 0))
        reasons.update({str(reason): 0 for reason in Reason})
    for event in events(recording):
        names = tuple(_of_row(row) for row in event.rows)
        if len(names) == 1:
            rows[names[0]] += 1
        elif names:
            either[names] += 1
        if not isinstance(event, Step):
            reasons[event.reason] += 1
    return Counts(rows=dict(rows), either=dict(either), reasons=dict(reasons))


def _summed(one: Mapping[KeyT, int], other: Mapping[KeyT, int]) -> dict[KeyT, int]:
    return {key: one.get(key, 0) + other.get(key, 0) for key in (*one, *other)}


NEVER: Final = "never"
LISTED: Final = 6
"""Rows that a sentence names: of those never taken more are counted, and the table has all."""
NAME: Final = 60
"""Characters of a name in a message."""
THICK: Final = 10
"""Times below which no arrow is drawn as thick as can be."""

LEGEND: Final = {
    Mark.TAKEN: "taken, and how often; the oftener, the thicker",
    Mark.NEVER: "never taken, or never reached",
}


def covered(machine: Machine[Any, Any], counts: Counts) -> Graph:
    """Return the state diagram of a declared machine with its moves counted.

    Where recorded facts cannot tell two moves apart, a move says ``2 … 5 ×``: at least, at most.
    A move that was not counted, where others were, was never taken. Raises `NothingToDraw` where no
    row of the machine was counted.
    """
    base = graph_of(machine)
    _refuse_uncounted(base, counts)
    most = max([THICK, *(_times(counts, edge) for edge in base.edges)])
    edges = tuple(_edge(edge, counts, most) for edge in base.edges)
    reached = {edge.target for edge in edges if edge.mark is Mark.TAKEN}
    nodes = tuple(_node(node, reached) for node in base.nodes)
    marks = {node.mark for node in nodes} | {move.mark for e in edges for move in e.moves}
    return attrs.evolve(
        base,
        title=f"The {machine.name} machine, as far as it was covered",
        description=_description(edges, base.cells, counts),
        nodes=nodes,
        edges=edges,
        cells=tuple(_cell(cell, counts) for cell in base.cells),
        tables=tuple(_tables(edges, counts)),
        legend=tuple((mark, words) for mark, words in LEGEND.items() if mark in marks),
    )


def _refuse_uncounted(base: Graph, counts: Counts) -> None:
    counted = dict.fromkeys([*counts.rows, *(name for names in counts.either for name in names)])
    rows = [row_name(cell.phase, cell.input, cell.guard) for cell in base.cells]
    if rows and counted.keys().isdisjoint(rows):
        there = ", ".join(harmless(name, limit=NAME) for name in list(counted)[:LISTED])
        raise NothingToDraw(
            f"no row of the {base.name} machine was counted; counted were {there or 'none'}"
        )


def _between(counts: Counts, phase: str, move: Move) -> tuple[int, int]:
    """Return how often a move was taken, at least and at most."""
    name = row_name(phase, move.input, move.guard)
    least = counts.met(name) or 0
    return least, least + counts.perhaps(name)


def _times(counts: Counts, edge: Edge) -> int:
    return sum(_between(counts, edge.source, move)[1] for move in edge.moves)


def _edge(edge: Edge, counts: Counts, most: int) -> Edge:
    moves = tuple(_move(edge.source, move, counts) for move in edge.moves)
    times = _times(counts, edge)
    return attrs.evolve(
        edge,
        moves=moves,
        mark=Mark.TAKEN if times else Mark.NEVER,
        weight=log1p(times) / log1p(most) if times else 0.0,
    )


def _move(phase: str, move: Move, counts: Counts) -> Move:
    least, most = _between(counts, phase, move)
    if not most:
        return attrs.evolve(move, note=NEVER, mark=Mark.NEVER)
    times = f"{least:,} ×" if least == most else f"{least:,} … {most:,} ×"
    return attrs.evolve(move, note=times, mark=Mark.TAKEN)


def _node(node: Node, reached: set[str]) -> Node:
    there = node.initial or node.name in reached
    return attrs.evolve(node, mark=Mark.TAKEN if there else Mark.NEVER)


def _cell(cell: Cell, counts: Counts) -> Cell:
    """Count a cell; where it is not known whether it was met at all it stays uncounted."""
    name = row_name(cell.phase, cell.input, cell.guard)
    met = counts.met(name)
    return attrs.evolve(cell, count=None if not met and counts.perhaps(name) else met)


def _description(edges: tuple[Edge, ...], cells: tuple[Cell, ...], counts: Counts) -> str:
    moves = [(edge, move) for edge in edges for move in edge.moves]
    never = [f"{edge.source} × {_called(move)}" for edge, move in moves if move.mark is Mark.NEVER]
    said = [f"{len(moves) - len(never)} of {len(moves)} moves taken."]
    if never:
        more = f" and {len(never) - LISTED} more" if len(never) > LISTED else ""
        said.append(f"Never: {', '.join(never[:LISTED])}{more}.")
    refusing = [
        counts.met(row_name(cell.phase, cell.input, cell.guard))
        for cell in cells
        if cell.reason and cell.possible
    ]
    known = [times for times in refusing if times is not None]
    if known:
        met = sum(times > 0 for times in known)
        said.append(f"{met} of {len(refusing)} rows that refuse were met.")
    return " ".join(said)


def _called(move: Move) -> str:
    return f"{move.input} [{move.guard}]" if move.guard else move.input


def _tables(edges: tuple[Edge, ...], counts: Counts) -> Iterator[Table]:
    never = tuple(
        (f"{edge.source} → {edge.target}", move.input, move.guard, move.fact)
        for edge in edges
        for move in edge.moves
        if move.mark is Mark.NEVER
    )
    if never:
        yield Table(title="Never taken", head=("move", "input", "guard", "fact"), rows=never)
    if counts.reasons:
        yield Table(
            title="Refusals by reason",
            head=("reason", "times"),
            rows=tuple(
                (reason, f"{times:,}" if times else NEVER)
                for reason, times in counts.reasons.items()
            ),
            note="Of both machines, and of admission, which refuses before any table is asked.",
        )


FORMAT: Final = 1
"""Of a coverage file. It changes when a key changes its meaning or goes."""
MARK: Final = "turnlock_coverage"
"""The key by which a coverage file is known; its value is the format."""
REPORTS: Final = 1
"""The format of reports of `turnlock verify` that is read here."""

_KEYS: Final = frozenset({MARK, "rows", "either", "reasons"})

Raw: TypeAlias = dict[str, Any]


def counts_in(text: str | bytes, *, name: str) -> Counts | None:
    """Read a coverage file or a report of `turnlock verify`; None for what is neither.

    `name` is what messages call the file. Raises `InvalidValue` with the place of what is wrong in
    a file that is one of them.
    """
    try:
        value = parse(text)
    except InvalidValue:
        return None
    if not isinstance(value, dict):
        return None
    document = cast("Raw", value)
    try:
        if MARK in document:
            return _from_file(document)
        if "results" in document and "verdict" in document:
            return from_report(document)
    except InvalidValue as error:
        raise error.inside(name) from None
    return None


def from_report(raw: Mapping[str, Any]) -> Counts:
    """Read the counts of all techniques in a report of `turnlock verify --json`.

    Raises `InvalidValue` for a report without counts of rows: older ones have none.
    """
    if raw.get("format") != REPORTS:
        raise InvalidValue(
            place="format",
            cause=f"{shown(raw.get('format'))} is not a format of reports that this turnlock reads",
            fix=f"give what `turnlock verify --json` wrote, with format {REPORTS}",
        )
    counts = Counts()
    for place, result in enumerate(_list(raw, "results")):
        where = f"results[{place}]"
        coverage = _object(_object(result, where).get("coverage"), f"{where}.coverage")
        rows = coverage.get("rows", {})
        reasons = coverage.get("reasons", {})
        counts += Counts(
            rows=_counts(rows, f"{where}.coverage.rows"),
            reasons=_counts(reasons, f"{where}.coverage.reasons"),
        )
    if not counts.rows:
        raise InvalidValue(
            place="results",
            cause="no technique counted rows",
            fix="verify again with this turnlock, with closure or conformance among the techniques",
        )
    return counts


def _from_file(raw: Raw) -> Counts:
    if raw[MARK] != FORMAT or isinstance(raw[MARK], bool):
        raise InvalidValue(
            place=MARK,
            cause=f"{shown(raw[MARK])} is not a format that this turnlock reads",
            fix=f"use a turnlock that knows it, or a file of format {FORMAT}",
        )
    unknown = raw.keys() - _KEYS
    if unknown:
        raise InvalidValue(place=min(unknown), cause="is no known field here", fix="leave it out")
    if raw.get("either"):
        raise InvalidValue(
            place="either",
            cause="holds rows that could not be told apart",
            fix="count again with this turnlock: what happened names its rows (K-59)",
        )
    return Counts(
        rows=_counts(raw.get("rows"), "rows"), reasons=_counts(raw.get("reasons"), "reasons")
    )


def _counts(raw: object, place: str) -> dict[str, int]:
    return {
        key: _count(value, f"{place}[{shown(key)}]") for key, value in _object(raw, place).items()
    }


def _count(value: object, place: str) -> int:
    if type(value) is not int or value < 0:
        raise InvalidValue(
            place=place, cause=f"{shown(value)} is no count", fix="give a whole number, 0 or more"
        )
    return value


def _list(raw: Mapping[str, Any], name: str) -> list[object]:
    value = raw.get(name)
    if not isinstance(value, list):
        raise InvalidValue(
            place=name,
            cause=f"{shown(value)} is no JSON array",
            fix="give a list in brackets",
        )
    return cast("list[object]", value)


def _object(value: object, place: str) -> Raw:
    if not isinstance(value, dict):
        raise InvalidValue(
            place=place, cause=f"{shown(value)} is no JSON object", fix="give an object in braces"
        )
    return cast("Raw", value)


def coverage_picture(
    counts: Counts, machine: Machine[Any, Any] = INVOCATION, *, engine: Engine = Engine.AUTO
) -> MachinePicture:
    """Return a machine with how often each of its rows was met; what never was is marked.

    The forms that have room for tables count refusals, too.
    """
    return MachinePicture(graph=covered(machine, counts), refusals=True, engine=engine)
