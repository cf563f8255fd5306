"""Where Graphviz put things: read from its SVG, by the ids that our DOT gave them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from xml.etree import ElementTree as ET

import attrs

from ..errors import CannotDraw

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
