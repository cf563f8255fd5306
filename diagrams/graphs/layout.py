"""Where Graphviz put things: read from its SVG, by the ids that our DOT gave them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from math import dist
from typing import Final, TypeAlias
from xml.etree import ElementTree as ET

import attrs

from ..errors import CannotDraw
from .graph import Graph
from .labels import Ids, initial_id, is_in_box, phase_id

_SVG: Final = "{http://www.w3.org/2000/svg}"
_GROUPS: Final = frozenset({"node", "edge"})


@attrs.frozen(kw_only=True)
class Shape:
    """One outline: its path, and its attributes as SVG names them, colours and widths."""

    path: str
    paint: tuple[tuple[str, str], ...]


@attrs.frozen(kw_only=True)
class Place:
    """The outlines of one phase or arrow, and where each line of its label stands (x, y)."""

    shapes: tuple[Shape, ...]
    lines: tuple[tuple[float, float], ...]


@attrs.frozen(kw_only=True)
class Layout:
    """The whole layout: its size in pixels, how it is moved into view, and the places by id."""

    width: float
    height: float
    transform: str
    places: dict[str, Place]


def layout_of(svg: str) -> Layout:
    """Read a layout. Raises `CannotDraw` for what Graphviz never writes."""
    if "<!ENTITY" in svg:
        raise CannotDraw("what Graphviz gave declares entities: that is no Graphviz")
    try:
        root = ET.fromstring(svg)  # noqa: S314 - no entities, and from a program of the user's own
        _, _, width, height = map(float, root.attrib["viewBox"].split())
        transform = root.findall(f"{_SVG}g")[0].attrib["transform"]
        places = {
            group.attrib["id"]: _place(group)
            for group in root.iter(f"{_SVG}g")
            if group.get("class") in _GROUPS
        }
    except (ET.ParseError, LookupError, ValueError) as error:
        raise CannotDraw(f"what Graphviz gave cannot be read as its SVG: {error}") from error
    return Layout(width=width, height=height, transform=transform, places=places)


def _place(group: ET.Element) -> Place:
    return Place(
        shapes=tuple(_shapes(group)),
        lines=tuple(
            (float(line.attrib["x"]), float(line.attrib["y"])) for line in group.iter(f"{_SVG}text")
        ),
    )


_PAINT: Final = ("fill", "stroke", "stroke-width", "stroke-dasharray")


def _shapes(group: ET.Element) -> Iterator[Shape]:
    for element in group.iter():
        path = _path(element)
        if path:
            paint = tuple((name, element.attrib[name]) for name in _PAINT if name in element.attrib)
            yield Shape(path=path, paint=paint)


def _path(element: ET.Element) -> str:
    """Return an outline as a path, whatever Graphviz drew it with; of other elements, nothing."""
    kind = element.tag.removeprefix(_SVG)
    if kind == "path":
        return element.attrib["d"]
    if kind in {"polygon", "polyline"}:
        end = " Z" if kind == "polygon" else ""
        return f"M{' L'.join(element.attrib['points'].split())}{end}"
    if kind == "ellipse":
        x, y, rx, ry = (float(element.attrib[name]) for name in ("cx", "cy", "rx", "ry"))
        half = f"a{rx:g},{ry:g} 0 1 0"
        return f"M{x - rx:g},{y:g} {half} {2 * rx:g},0 {half} {-2 * rx:g},0 Z"
    return ""


APART: Final = 11.0
"""Pixels between an end where an arrow leaves and the next where one arrives: two tips' width."""
_CORNER: Final = 7.0
"""Pixels of a side that its round corners take."""
_OUT: Final = 45.0
"""Pixels from a phase at which it is seen whereto an arrow goes off."""
_STEPS: Final = 12
"""Points that are looked at of each piece of a curve."""

Point: TypeAlias = tuple[float, float]
Box: TypeAlias = tuple[float, float, float, float]
"""Left, top, right, bottom."""

_PAIR: Final = re.compile(r"(-?[\d.]+)[, ](-?[\d.]+)")


@attrs.frozen(kw_only=True)
class _End:
    """One end of an arrow at a phase; `at` is where on its side, x or y.

    `towards` is where it comes from or goes to, along the side.
    """

    id: str
    arrives: bool
    loop: bool
    at: float
    towards: float


def parted(layout: Layout, graph: Graph) -> Layout:
    """Return the layout with the ends of arrows moved apart."""
    places = dict(layout.places)
    sides: defaultdict[tuple[str, str], list[_End]] = defaultdict(list)
    drawn = [
        (id_, edge.source, edge.target)
        for edge, id_ in zip(graph.edges, Ids(graph).edges, strict=True)
        if not is_in_box(edge)
    ]
    drawn += [(f"{initial_id(it.name)}-arrow", "", it.name) for it in graph.nodes if it.initial]
    loops = {id_ for id_, source, target in drawn if source == target}
    for id_, source, target in drawn:
        for phase, arrives in ((source, False), (target, True)):
            if phase and {id_, phase_id(phase)} <= places.keys():
                box = box_of(places[phase_id(phase)])
                side, end = _end(id_, places[id_], box, arrives=arrives, loop=id_ in loops)
                sides[phase, side].append(end)
    for (phase, side), ends in sides.items():
        left, top, right, bottom = box_of(places[phase_id(phase)])
        low, high = (top, bottom) if side in _UPRIGHT else (left, right)
        ordered = list(_ordered(ends))
        for end, to in zip(ordered, _apart(ordered, low + _CORNER, high - _CORNER), strict=True):
            by = to - end.at
            shift = (0.0, by) if side in _UPRIGHT else (by, 0.0)
            places[end.id] = _moved(
                places[end.id], shift, arrives=end.arrives, loop=end.id in loops
            )
    return attrs.evolve(layout, places=places)


_UPRIGHT: Final = frozenset({"left", "right"})
_SIDES: Final = ("left", "top", "right", "bottom")


def box_of(place: Place) -> Box:
    """Return the outline of a phase as a box."""
    points = [point for shape in place.shapes for point in _points(shape.path)]
    xs, ys = [x for x, _ in points], [y for _, y in points]
    return min(xs), min(ys), max(xs), max(ys)


def ends_of(place: Place) -> tuple[Point, Point]:
    """Return where an arrow begins, and its tip."""
    line, *tips = place.shapes
    points = _points(line.path)
    far = [point for tip in tips for point in _points(tip.path)]
    return points[0], max(far, key=lambda it: dist(it, points[-2]), default=points[-1])


def _points(path: str) -> list[Point]:
    return [(float(x), float(y)) for x, y in _PAIR.findall(path)]


def _end(id_: str, place: Place, box: Box, *, arrives: bool, loop: bool) -> tuple[str, _End]:
    """Return which side of the box an end is on, and the end."""
    point = ends_of(place)[arrives]
    points = _points(place.shapes[0].path)
    if arrives:
        points.reverse()
    flat = abs(points[1][0] - point[0]) > abs(points[1][1] - point[1])
    side = min(
        range(4),
        # at a corner, the side that it does not go along
        key=lambda axis: (
            abs(point[axis % 2] - box[axis]) + (_CORNER if flat is bool(axis % 2) else 0)
        ),
    )
    along = 1 - side % 2
    out = next((it for it in _curve(points) if dist(it, point) >= _OUT), points[-1])
    # a loop stays where it is drawn, and nothing comes between its ends: its label is beside it
    towards = ends_of(place)[0][along] if loop else out[along]
    end = _End(id=id_, arrives=arrives, loop=loop, at=point[along], towards=towards)
    return _SIDES[side], end


def _curve(points: Sequence[Point]) -> Iterable[Point]:
    """Yield points of a Bézier curve, piece by piece; what is no such curve as it is."""
    if len(points) % 3 != 1:
        yield from points
        return
    for start in range(0, len(points) - 1, 3):
        piece = points[start : start + 4]
        for step in range(_STEPS):
            t = step / _STEPS
            u = 1 - t
            parts = (u**3, 3 * u * u * t, 3 * u * t * t, t**3)
            x, y = (
                sum(part * it[axis] for part, it in zip(parts, piece, strict=True))
                for axis in (0, 1)
            )
            yield x, y


def _ordered(ends: Iterable[_End]) -> Iterator[_End]:
    """Yield the ends of a side along it; those that meet in the order in which they go off."""
    near: list[_End] = []
    for end in sorted(ends, key=lambda end: end.at):
        if near and end.at - near[-1].at >= APART:
            yield from sorted(near, key=_towards)
            near = []
        near.append(end)
    yield from sorted(near, key=_towards)


def _towards(end: _End) -> tuple[float, bool]:
    return end.towards, end.arrives


def _apart(ends: Sequence[_End], low: float, high: float) -> list[float]:
    """Return where the ends go: apart where directions differ, else as near as can be."""
    gaps = [
        APART if one.arrives != next_.arrives or one.loop or next_.loop else 0.0
        for one, next_ in pairwise(ends)
    ]
    scale = min(1.0, (high - low) / sum(gaps)) if any(gaps) else 1.0
    before = list(accumulate(gaps, lambda all_, gap: all_ + gap * scale, initial=0.0))
    # with the gaps taken away they need only be in order; what ends at a corner may stay there
    wanted = [end.at - gap for end, gap in zip(ends, before, strict=True)]
    least, most = min(low, ends[0].at), max(high, ends[-1].at) - before[-1]
    return [
        max(least, min(most, place)) + gap
        for place, gap in zip(_in_order(wanted), before, strict=True)
    ]


def _in_order(wanted: Iterable[float]) -> list[float]:
    """Return the ascending numbers nearest to these: neighbours in the wrong order share a mean."""
    pools: list[tuple[float, int]] = []
    for place in wanted:
        pools.append((place, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (one, some), (other, more) = pools[-2:]
            pools[-2:] = [((one * some + other * more) / (some + more), some + more)]
    return [mean for mean, count in pools for _ in range(count)]


def _moved(place: Place, by: Point, *, arrives: bool, loop: bool) -> Place:
    """Return an arrow with one end moved, and its tip; half of a loop goes with it."""
    if by == (0.0, 0.0):
        return place
    line, *tips = place.shapes
    points = _points(line.path)
    last = len(points) - 1
    made: list[str] = []
    for number, (x, y) in enumerate(points):
        off = last - number if arrives else number
        share = float(off < 2)  # noqa: PLR2004 - the end, and the point that bends the curve there
        if loop:
            share = 0.5 if 2 * number == last else float(2 * off < last)
        made.append(f"{x + share * by[0]:.2f},{y + share * by[1]:.2f}")
    letter = "C" if last % 3 == 0 else "L"
    shapes = [attrs.evolve(line, path=f"M{made[0]}{letter}{' '.join(made[1:])}")]
    shapes += [_slid(tip, by) if arrives else tip for tip in tips]
    return attrs.evolve(place, shapes=tuple(shapes))


def _slid(shape: Shape, by: Point) -> Shape:
    def moved(pair: re.Match[str]) -> str:
        return f"{float(pair[1]) + by[0]:.2f},{float(pair[2]) + by[1]:.2f}"

    return attrs.evolve(shape, path=_PAIR.sub(moved, shape.path))
