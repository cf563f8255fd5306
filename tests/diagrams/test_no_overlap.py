"""The pictures that are shipped: no label meets another, none lies on a box, all are inside."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypeAlias
from xml.etree import ElementTree as ET

import pytest

from turnlock.diagrams.drawing.metrics import measured

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "pictures"
SVG = "{http://www.w3.org/2000/svg}"
MACHINES = ("invocation", "turn", "status", "life", "coverage")

Box: TypeAlias = tuple[float, float, float, float]
"""Left, top, right, bottom."""


def labels(root: ET.Element) -> dict[str, Box]:
    """The boxes of all texts beside arrows, by what they say and where: each says its length."""
    found: dict[str, Box] = {}
    for text in root.iter(f"{SVG}text"):
        if "textLength" in text.attrib:
            x, y = float(text.attrib["x"]), float(text.attrib["y"])
            size = float(text.attrib.get("font-size", "13"))
            length = float(text.attrib["textLength"])
            found[f"{text.text} at {x}, {y}"] = (x, y - 0.72 * size, x + length, y + 0.2 * size)
    return found


def boxes(root: ET.Element) -> dict[str, Box]:
    """The boxes of the phases, from their outlines."""
    found: dict[str, Box] = {}
    for group in root.iter(f"{SVG}g"):
        name = group.get("id", "")
        if "-phase-" in name:
            numbers = [
                tuple(map(float, pair.split(",")))
                for path in group.iter(f"{SVG}path")
                for pair in re.findall(r"-?[\d.]+,-?[\d.]+", path.attrib["d"])
            ]
            xs, ys = [x for x, _ in numbers], [y for _, y in numbers]
            found[name] = (min(xs), min(ys), max(xs), max(ys))
    return found


def drawn(name: str) -> ET.Element:
    """A shipped picture."""
    text = (PICTURES / f"{name}.svg").read_text(encoding="utf-8")
    return ET.fromstring(text)  # noqa: S314 - our own file


def meet(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


@pytest.mark.parametrize("name", MACHINES)
def test_no_label_of_a_shipped_picture_meets_another_or_a_box(name: str) -> None:
    """Whatever letters the reader has: each label is fitted into the room that was left for it."""
    root = drawn(name)
    texts, phases = labels(root), boxes(root)

    assert len(texts) > 5
    assert len(phases) >= 5
    met = [
        (one, other)
        for one, box in texts.items()
        for other, near in {**texts, **phases}.items()
        if one != other and meet(box, near)
    ]
    assert met == []


@pytest.mark.parametrize("name", MACHINES)
def test_every_label_is_inside_the_picture(name: str) -> None:
    """Nothing is cut off at the edge."""
    root = drawn(name)
    moved = next(
        group.attrib["transform"] for group in root.iter(f"{SVG}g") if "transform" in group.attrib
    )
    shift = re.search(r"translate\(([-\d.]+)[ ,]([-\d.]+)\)", moved)
    assert shift is not None
    left, down = float(shift[1]), float(shift[2])

    for words, (x, y, right, bottom) in labels(root).items():
        assert x + left >= 0, words
        assert y + down >= 0, words
        assert right + left <= float(root.attrib["width"]), words
        assert bottom + down <= float(root.attrib["height"]), words


def test_two_labels_that_meet_are_seen() -> None:
    """The negative control."""
    assert meet((0, 0, 10, 10), (9, 9, 20, 20))
    assert not meet((0, 0, 10, 10), (10, 0, 20, 10))


def test_letters_are_as_wide_as_arial_has_them() -> None:
    """Three words by the font's own table; a letter that it has not gives no answer."""
    assert measured("claim", 1000) == 500 + 222 + 556 + 222 + 833
    assert measured("/ TOOL", 1000) == 278 + 278 + 611 + 778 + 778 + 556
    assert measured("語", 11) is None
