"""The forms of a sequence diagram: each readable as it is, whatever the names are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings

from turnlock.diagrams.drawing.lettering import columns_of
from turnlock.diagrams.drawing.tables import WIDTH
from turnlock.diagrams.errors import NoSuchForm
from turnlock.diagrams.palette import Theme
from turnlock.diagrams.picture import Format
from turnlock.diagrams.recordings.recording import Recording
from turnlock.diagrams.sequence.picture import SequencePicture, sequence_picture
from turnlock.diagrams.sequence.plain import MOST_TEXT, label

from .runs import CALL, CLAIM, OPEN, RESULT, RUN, Raw, journal_of, recorded
from .sequence_scenes import INJECTIONS, RECORDINGS, SVG, assert_readable, hostile_run

TEXT = r"(?:[^;#\n%<>\"$`{}\\]|#\d+;)+"
STATEMENTS = (
    r"sequenceDiagram",
    r"    autonumber",
    rf"    participant p\d as {TEXT}",
    rf"    (?P<one>p\d)(?:-\)|--\)|--x)(?P<other>p\d): {TEXT}",
    rf"    Note right of (?P<at>p\d): {TEXT}",
)
STATEMENT = re.compile("|".join(STATEMENTS))


def injected(evil: str) -> Recording:
    """One turn in which everything that has a name is called so."""
    call: Raw = {"invocation_id": evil, "tool_name": evil, "arguments": {evil: evil}}
    about: Raw = {"turn_id": evil, "invocation_id": evil}
    decide: Raw = {"type": "decide", **about, "reason": evil, "decided_by": evil}
    return recorded(
        {"run_id": evil, "agent_name": evil},
        [
            {**OPEN, "turn_id": evil, "calls": [{**call, "requires_approval": True}]},
            {**decide, "approved": True, "scope": "session", "now": 1.0},
            {**CLAIM, **about, "worker": evil, "now": 2.0},
            {"type": "log", **about, "text": evil, "now": 2.0},
            {**decide, "approved": False, "now": 2.5},
            {"type": "report", **about, "error": evil, "now": 2.5},
            {**OPEN, "turn_id": "T", "calls": [{**call, "requires_approval": False}], "now": 3.0},
            {"type": "interrupt", "turn_id": "T", "reason": evil, "now": 3.0},
        ],
    )


def pictures() -> Iterator[SequencePicture]:
    for evil in INJECTIONS:
        yield sequence_picture(injected(evil))
        yield sequence_picture(journal_of(injected(evil)), turn_id=evil, invocation_id=evil)


PICTURES = tuple(pictures())


def assert_mermaid(text: str) -> None:
    """Each line is one statement, about participants that were declared before."""
    assert len(text) <= MOST_TEXT
    declared: set[str] = set()
    for line in text.splitlines():
        found = STATEMENT.fullmatch(line)
        assert found is not None, line
        if line.startswith("    participant"):
            declared.add(line.split()[1])
        assert {name for name in found.groups() if name} <= declared


@given(RECORDINGS)
@settings(max_examples=15)
def test_sheets_are_readable(recording: Recording) -> None:
    """No text leaves the sheet or meets another, and each message has an id and its words."""
    picture = sequence_picture(recording)
    svg = picture.svg()

    assert_readable(svg)
    root = ET.fromstring(svg)  # noqa: S314 - our own
    titles = [
        group.findtext(f"{SVG}title", "")
        for group in root.iter(f"{SVG}g")
        if "-message-" in group.get("id", "")
    ]
    messages = [message for step in picture.steps for message in step.messages]
    assert len(titles) == len(messages)
    assert all(title.startswith(one.label) for title, one in zip(titles, messages, strict=True))


@given(RECORDINGS)
@settings(max_examples=20)
def test_mermaid_is_balanced(recording: Recording) -> None:
    """Every arrow and note stands between declared participants, one statement a line."""
    assert_mermaid(sequence_picture(recording).mermaid())
    assert_mermaid(sequence_picture(journal_of(recording)).mermaid())


@given(RECORDINGS)
@settings(max_examples=20)
def test_text_fits_a_terminal(recording: Recording) -> None:
    """No line of text is wider than a terminal, and every label begins on a line of its own."""
    picture = sequence_picture(recording)
    text = picture.text()

    assert max(map(columns_of, text.splitlines())) <= WIDTH
    arrows = [one for step in picture.steps for one in step.messages if not one.is_note]
    assert text.count("▶") + text.count("◀") == len(arrows)


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.title[:24])
def test_names_are_never_markup(picture: SequencePicture) -> None:
    """Quotes, brackets, HTML, line ends, entities, directives and 10 kB stay plain text."""
    assert_readable(picture.svg())
    assert_readable(picture.svg(theme=Theme.DARK))
    assert_mermaid(picture.mermaid())
    page = picture.html()
    assert not re.search(r"<(script|br)\b", page, re.IGNORECASE)
    written = f"{page}{picture.svg()}{picture.text()}{picture.markdown()}"
    assert "\u202e" not in written
    assert "\u200b" not in written
    markdown = picture.markdown()
    assert markdown.count("```") == 2
    tables = markdown.split("```")[2]
    assert all(line.count(" | ") >= 4 for line in tables.splitlines() if line.startswith("| "))
    assert not re.search(r"(?<!\\)(?:\\\\)*<", tables)
    assert len(picture.title) <= 200
    assert max(map(columns_of, picture.text().splitlines())) <= WIDTH


def test_mermaid_entities() -> None:
    """What means something to Mermaid is an entity; plain words stay readable."""
    assert label("a;b #1 <br> 5%", 50) == "a#59;b #35;1 #60;br#62; 5#37;"
    assert label("refused: not_started", 50) == "refused: not_started"
    assert label("style x:#fff;", 50) == "style x#58;#35;fff#59;"
    assert label("x" * 99, 10) == "x" * 9 + "…"


def test_mermaid_stays_short_enough() -> None:
    """Labels full of entities are cut until Mermaid still draws the whole."""
    evil = "#;" * 30
    calls = [{**CALL, "invocation_id": f"{evil}{place}", "tool_name": evil} for place in range(60)]

    assert_mermaid(sequence_picture(recorded(RUN, [{**OPEN, "calls": calls}])).mermaid())


def test_there_is_no_dot() -> None:
    """Graphviz draws graphs; the error says what to ask for instead."""
    picture = sequence_picture(recorded(RUN, [OPEN]))

    with pytest.raises(NoSuchForm, match="svg"):
        picture.dot()
    with pytest.raises(NoSuchForm, match="mmd"):
        picture.render(Format.DOT)


def test_an_empty_recording_is_an_empty_diagram() -> None:
    """Nothing happened: the kernel stands alone, in all forms."""
    picture = sequence_picture(recorded(RUN, []))

    assert_readable(picture.svg())
    assert_mermaid(picture.mermaid())
    assert "K kernel" in picture.text()
    assert "0 deliveries, 0 facts" in picture.description


def test_ids_differ_between_pictures_and_stay_with_one() -> None:
    """Two pictures can stand in one page; the same picture has the same ids each time."""
    recording = recorded(RUN, [OPEN, CLAIM, {**RESULT, "now": 0.5}])
    whole, part = sequence_picture(recording), sequence_picture(recording, turn_id="T")

    assert whole.svg() == sequence_picture(recording).svg()
    ids = [set(re.findall(r' id="([^"]+)"', one.svg())) for one in (whole, part)]
    assert not ids[0] & ids[1]
    assert any(one.endswith("-message-3") for one in ids[0])


def test_colours_are_never_alone() -> None:
    """In black and white a refusal is still told by words, and a phase by its sign."""
    svg = sequence_picture(hostile_run()).svg()
    words = [text.text or "" for text in ET.fromstring(svg).iter(f"{SVG}text")]  # noqa: S314

    assert any(word.startswith("refused: ") for word in words)
    assert {"✓", "+", ">", "-"} <= set(words)


def test_png() -> None:
    """The picture can be drawn as pixels, too."""
    assert sequence_picture(recorded(RUN, [OPEN])).png().startswith(b"\x89PNG")
