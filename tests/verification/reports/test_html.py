"""The HTML page: one file, no script, whatever comes from outside escaped."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import attrs
import pytest

from turnlock.cli.verify import drawn
from turnlock.verification.findings import Finding
from turnlock.verification.reports.html import to_html
from turnlock.verification.reports.report import Report, fingerprint

from .samples import (
    HELD,
    HOSTILE,
    NOT_DONE,
    SKIPPED,
    STOP,
    broken,
    double_start,
    report,
    wrong_result,
)

VOID = {"meta", "br", "hr", "img", "link", "input"}


class Reader(HTMLParser):
    """Notes the tags, that they are closed in order, and the text between them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += f"{data} "


def page(of: Report) -> Reader:
    return Reader(to_html(of))


@pytest.mark.parametrize(
    "made",
    [
        report(HELD),
        report(broken(double_start(), wrong_result()), SKIPPED, NOT_DONE),
        report(HELD, stops=(STOP,)),
        report(broken(double_start(HOSTILE)), subject=HOSTILE, command=HOSTILE),
        report(),
    ],
)
def test_the_page_stands_alone(made: Report) -> None:
    """No script, no link to anything outside, no attribute that runs."""
    found = page(made)
    assert {"script", "link", "img", "iframe"}.isdisjoint(found.tags)
    assert not [name for name, _ in found.attributes if name.startswith("on")]
    assert {"src", "href", "xlink:href"}.isdisjoint(name for name, _ in found.attributes)
    assert not re.search(r"https?://|url\((?!#)|@import", to_html(made))


def test_hostile_names_are_text() -> None:
    """The negative control: the name closes a script element and opens a tag, if it could."""
    made = report(broken(double_start(HOSTILE)), subject=HOSTILE)
    found = page(made)
    assert HOSTILE not in to_html(made)
    assert "b" not in found.tags
    assert '</script><b onload="x">&' in found.text
    to_html(made).encode()


def test_the_counterexample_is_a_diagram() -> None:
    """As `turnlock verify --html` draws it: the last step with both answers."""
    document = to_html(report(broken(double_start())), drawn=drawn)
    found = Reader(document)
    assert found.tags.count("svg") == 1
    parties = "model|host|person|worker|executors|clock|kernel"
    heads = re.findall(rf"<title>({parties}): ", document)
    assert heads == [*("model", "person", "worker", "worker", "executors", "clock", "kernel")]
    assert "expected: refused: already_started" in found.text
    assert "got: accepted · TOOL_EXECUTION_STARTED a" in found.text
    assert "differs at accepted: expected false, got true" in found.text
    assert not re.search(r"https?://|url\((?!#)|@import", document)
    colours = re.findall(r'="(#[0-9a-f]{6})"', document)
    assert colours == []  # all follow the reader's scheme


def test_without_a_picture_the_script_is_told_in_words() -> None:
    """Who has no pictures, and what our kernel cannot play."""
    found = page(report(broken(wrong_result())))
    assert found.tags.count("svg") == 0
    assert found.tags.count("ol") == 1
    assert "differs at " in found.text


def test_hostile_names_are_text_in_pictures_too() -> None:
    document = to_html(report(broken(double_start(HOSTILE)), subject=HOSTILE), drawn=drawn)
    assert HOSTILE not in document
    assert "b" not in Reader(document).tags


def test_both_answers_stand_side_by_side_with_the_difference_marked() -> None:
    document = to_html(report(broken(wrong_result())))
    marks = re.findall(r"<mark>(.*?)</mark>", document)
    assert len(marks) == 2
    assert "succeeded" in marks[0]
    assert "failed" in marks[1]


def test_coverage_says_never_in_words() -> None:
    """The heat map: a cell with its count for each pair; what was not reached is told as text."""
    document = to_html(report(HELD))
    assert "3 of 4 pairs reached" in document
    assert "1 of 2 pairs reached" in document
    assert ">9,000</td>" in document
    assert document.count("<td class='never'>never</td>") == 2
    assert document.count("<td class='none'></td>") == 2
    assert "<li class='never'><span>lease_lost</span> never</li>" in document


def test_everything_to_repeat_it_is_there() -> None:
    text = page(report(HELD)).text
    for fact in (
        "turnlock verify --profile ci --seed 7",
        "3.11.9",
        "2026-11-21T18:00:00Z",
        "0.1.0",
    ):
        assert fact in text
    assert HELD.guarantee in text


def test_what_did_not_check_is_named_at_the_top() -> None:
    text = page(report(HELD, SKIPPED, NOT_DONE, stops=(STOP,), now_passing=("K-9: x",))).text
    before = text.partition("What was checked")[0]
    for told in (SKIPPED.why, NOT_DONE.why, STOP.message, "Passes now", "crashed or timed out"):
        assert told in before
    assert "verdict good" not in to_html(report(HELD, NOT_DONE))
    assert "verdict good" in to_html(report(HELD))


def test_a_known_violation_is_called_known() -> None:
    finding = double_start()
    text = page(report(HELD, broken(finding), known=(fingerprint(finding),))).text
    assert "known: in the baseline" in text


@pytest.mark.parametrize(
    "odd",
    [
        attrs.evolve(double_start(), run={}, expected="a history", got="another"),
        attrs.evolve(double_start(), script=(), expected=None, got=None),
        attrs.evolve(double_start(), script=({"what": 1},), got=None),
        attrs.evolve(double_start(), script=({"type": "TOOL_DENIED", "now": 1.0},), got=None),
        attrs.evolve(double_start(), rule="K-99"),
    ],
)
def test_findings_that_are_no_scripts_are_told_all_the_same(odd: Finding) -> None:
    """A history of threads or a line of a log: no oracle answers it, and the page holds it."""
    assert odd.message in page(report(broken(odd))).text
