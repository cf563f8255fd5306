"""The pictures that are shipped: no label meets another, none lies on a box, all are inside."""

from __future__ import annotations

import re
from math import dist
from pathlib import Path
from typing import TypeAlias
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings

from turnlock.diagrams.drawing.engines import Engine
from turnlock.diagrams.drawing.lettering import measured
from turnlock.diagrams.graphs.extract import graph_of
from turnlock.diagrams.graphs.svg import svg_text

from .machines import AnyMachine, machines

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "pictures"
SVG = "{http://www.w3.org/2000/svg}"
MACHINES = ("invocation", "turn", "status", "life", "coverage")

PAIR = re.compile(r"(-?[\d.]+),(-?[\d.]+)")
NEAR = 8.0
"""Pixels between a beginning and a tip below which they read as one: a tip is six wide."""
LEAST = 2.5

Point: TypeAlias = tuple[float, float]
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
    shifts = re.findall(r"translate\(([-\d.]+)[ ,]([-\d.]+)\)", moved)
    left, down = (sum(map(float, axis)) for axis in zip(*shifts, strict=True))

    for words, (x, y, right, bottom) in labels(root).items():
        assert x + left >= 0, words
        assert y + down >= 0, words
        assert right + left <= float(root.attrib["width"]), words
        assert bottom + down <= float(root.attrib["height"]), words


def arrows(root: ET.Element) -> list[tuple[str, Point, Point]]:
    """The id, the beginning and the tip of every arrow."""
    found: list[tuple[str, Point, Point]] = []
    for group in root.iter(f"{SVG}g"):
        if re.search(r"-edge-(?!.*-(label|refused)$)", group.get("id", "")):
            line, head = (
                [(float(x), float(y)) for x, y in PAIR.findall(path.attrib["d"])]
                for path in group.iter(f"{SVG}path")
            )
            found.append(
                (group.attrib["id"], line[0], max(head, key=lambda it: dist(it, line[-2])))
            )
    return found


@pytest.mark.parametrize("name", MACHINES)
def test_no_arrow_leaves_where_another_arrives(name: str) -> None:
    """One that began at another's tip read as an arrow with two heads, or the wrong way round."""
    drawn_arrows = arrows(drawn(name))

    assert len(drawn_arrows) > 5
    assert [
        (one, other)
        for one, begins, _ in drawn_arrows
        for other, _, ends in drawn_arrows
        if dist(begins, ends) < NEAR
    ] == []


@given(machines())
@settings(max_examples=25)
def test_no_arrow_of_any_machine_leaves_where_another_arrives(machine: AnyMachine) -> None:
    """Where a side is too short for all that touch it they share it out evenly."""
    graph = graph_of(machine)
    root = ET.fromstring(svg_text(graph, engine=Engine.WASI))  # noqa: S314 - our own

    drawn_arrows = arrows(root)
    for _, begins, _ in drawn_arrows:
        for _, _, ends in drawn_arrows:
            assert dist(begins, ends) >= LEAST


def test_two_labels_that_meet_are_seen() -> None:
    """The negative control."""
    assert meet((0, 0, 10, 10), (9, 9, 20, 20))
    assert not meet((0, 0, 10, 10), (10, 0, 20, 10))


def test_letters_are_as_wide_as_arial_has_them() -> None:
    """Three words by the font's own table; a letter that it has not gives no answer."""
    assert measured("claim", 1000) == 500 + 222 + 556 + 222 + 833
    assert measured("/ TOOL", 1000) == 278 + 278 + 611 + 778 + 778 + 556
    assert measured("語", 11) is None
