"""Mutants: what is listed as equivalent stands in the code, and who is called killed was."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
KNOWN: list[dict[str, Any]] = tomllib.loads(
    (ROOT / "tools/equivalent_mutants.toml").read_text(encoding="utf-8")
)["mutant"]


@pytest.mark.parametrize(
    "mutant", KNOWN, ids=[f"{n} {it['function']}" for n, it in enumerate(KNOWN)]
)
def test_what_a_known_mutant_takes_out_stands_in_its_module(mutant: dict[str, Any]) -> None:
    """Otherwise an entry excuses nothing, and the mutant that it was for survives unexplained."""
    module, _, name = mutant["function"].rpartition(".")
    code = ROOT.joinpath(*module.split(".")).with_suffix(".py").read_text(encoding="utf-8")
    function = name.removeprefix("x_").rpartition("ǁ")[2]
    assert f"def {function}(" in code
    taken_out = [line[1:] for line in mutant["change"].splitlines() if line.startswith("-")]
    assert taken_out
    assert all(line.strip() in code for line in taken_out), taken_out


# ------------------------------------------------------------------------- what is told at the end

LISTED = """
[[mutant]]
function = "engine.kernel.x_same"
change = "- 1\\n+ 2"
reason = "It survives."

[[mutant]]
function = "engine.kernel.x_killed"
change = "- 3\\n+ 4"
reason = "It does not."

[[mutant]]
function = "engine.gone.x_gone"
change = "- 5\\n+ 6"
reason = "There is no such function any more."
"""
TOO_LONG = "it ran too long, or ended the process"
CHANGES = {"x_same": "- 1\n+ 2", "x_killed": "- 3\n+ 4", "x_other": "- 7\n+ 8"}


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """tools/mutants.py."""
    monkeypatch.setattr(sys, "path", [str(ROOT / "tools"), *sys.path])
    place = importlib.util.spec_from_file_location("tool", ROOT / "tools" / "mutants.py")
    assert place is not None
    assert place.loader is not None
    tool = importlib.util.module_from_spec(place)
    place.loader.exec_module(tool)
    return tool


@pytest.fixture
def told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tool: ModuleType,
) -> Callable[..., tuple[int, str]]:
    """What is said, and the status, if these tests have killed these mutants."""
    monkeypatch.setattr(tool, "FORKED", tmp_path / "forked.jsonl")
    monkeypatch.setattr(tool, "AFRESH", tmp_path / "afresh.jsonl")
    monkeypatch.setattr(tool, "EQUIVALENT", tmp_path / "equivalent.toml")
    monkeypatch.setattr(tool, "CARRIED", tmp_path / "carried.json")

    def change_of(mutant: str) -> str:
        return CHANGES[mutant.rpartition(".")[2].partition("__mutmut_")[0]]

    monkeypatch.setattr(tool, "change_of", change_of)

    def late_ones(mutants: list[str]) -> list[str]:
        return [one for one in mutants if "x_late" in one]

    monkeypatch.setattr(tool, "late_ones", late_ones)

    def tell(killers: dict[str, str], listed: str, *, whole: bool) -> tuple[int, str]:
        tool.EQUIVALENT.write_text(listed, encoding="utf-8")
        tried = {f"turnlock.engine.kernel.{one}": killer for one, killer in killers.items()}
        lines = [json.dumps([one, killer]) + "\n" for one, killer in tried.items()]
        tool.FORKED.write_text("".join(lines), encoding="utf-8")
        with pytest.raises(SystemExit) as ended:
            tool.tell(list(tried), whole=whole)
        return int(str(ended.value.code)), capsys.readouterr().out

    return tell


FIRST = LISTED[: LISTED.index("[[", LISTED.index("[[") + 2)]


def test_every_survivor_is_listed_and_counted(told: Callable[..., tuple[int, str]]) -> None:
    tried = {"x_same__mutmut_1": "", "x_other__mutmut_1": "tests/a.py::b"}

    status, said = told({**tried, "x_other__mutmut_2": TOO_LONG}, FIRST, whole=True)

    assert status == 0
    rows = [line.split() for line in said.strip().splitlines()]
    assert rows[0] == [
        *("made", "not", "run", "killed", "-", "by", "time", "survive"),
        *("equivalent", "unexplained"),
    ]
    assert rows[1:] == [
        [name, "3", "0", "2", "1", "1", "1", "0"] for name in ("engine.kernel", "all")
    ]


def test_a_survivor_that_is_not_listed_is_shown(told: Callable[..., tuple[int, str]]) -> None:
    status, said = told({"x_same__mutmut_1": "", "x_other__mutmut_9": ""}, FIRST, whole=True)

    assert status == 1
    assert "turnlock.engine.kernel.x_other__mutmut_9\n- 7\n+ 8" in said
    assert "x_same" not in said


def test_what_was_not_tried_is_counted_and_is_no_success(
    told: Callable[..., tuple[int, str]],
) -> None:
    """A fork comes too late for what has run on import: that it survived there says nothing."""
    status, said = told({"x_same__mutmut_1": "", "x_late__mutmut_1": ""}, FIRST, whole=True)

    assert status == 1
    assert said.strip().splitlines()[-1].split() == ["all", "2", "1", "0", "0", "1", "1", "0"]


def test_an_entry_excuses_one_mutant(told: Callable[..., tuple[int, str]]) -> None:
    """The same change elsewhere in the function is another mutant."""
    status, said = told({"x_same__mutmut_1": "", "x_same__mutmut_2": ""}, FIRST, whole=True)

    assert status == 1
    assert "turnlock.engine.kernel.x_same__mutmut_2\n" in said


def test_a_listed_mutant_that_is_killed_is_told(told: Callable[..., tuple[int, str]]) -> None:
    """So is an entry for what no longer exists, but where only a part was asked for."""
    tried = {"x_same__mutmut_1": "", "x_killed__mutmut_1": "tests/a.py::b"}
    killed = "listed as equivalent, but tests/a.py::b kills it: turnlock.engine.kernel.x_killed\n"
    gone = "listed as equivalent, but no such mutant is made: turnlock.engine.gone.x_gone\n"

    status, said = told(tried, LISTED, whole=True)
    assert (status, killed in said, gone in said) == (1, True, True)

    status, said = told(tried, LISTED, whole=False)
    assert (status, killed in said, gone in said) == (1, True, False)

    status, said = told({"x_same__mutmut_1": "", "x_killed__mutmut_1": ""}, LISTED, whole=False)
    assert (status, "listed" in said) == (0, False)


# ------------------------------------------------------------------- what another copy hands down

COPIED = """
def x_f__mutmut_orig():
    return 1

def x_f__mutmut_1():
    return 2

def x_f__mutmut_2():
    return 3

def x_g__mutmut_orig():
    return 4

def x_g__mutmut_1():
    return 5
"""
NO_IMPORT = "with it the tests cannot be imported"
ONE, TWO, OTHER = "turnlock.m.x_f__mutmut_1", "turnlock.m.x_f__mutmut_2", "turnlock.m.x_g__mutmut_1"


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: ModuleType) -> ModuleType:
    """The tool, with a copy of commit `one` in which ONE and OTHER were killed, and TWO was not."""
    for name in ("FORKED", "AFRESH", "SEAL", "COMMIT", "CARRIED", "EQUIVALENT"):
        monkeypatch.setattr(tool, name, tmp_path / name.lower())

    def late_ones(_: list[str]) -> list[str]:
        return [OTHER, TWO]

    monkeypatch.setattr(tool, "late_ones", late_ones)
    monkeypatch.setattr(tool, "COPY", tmp_path)
    monkeypatch.setattr(tool, "mutants_made", lambda: iter([ONE, TWO, OTHER]))
    for path, text in {
        "src/turnlock/m.py": COPIED,
        "tests/a.py": "def b(): ...",
        "seal": "",
        "commit": "one",
        "equivalent": "mutant = []",
        "forked": json.dumps([ONE, "tests/a.py::b"]) + "\n" + json.dumps([TWO, ""]) + "\n",
        "afresh": json.dumps([OTHER, NO_IMPORT]) + "\n" + json.dumps([TWO, ""]) + "\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    return tool


def test_a_kill_is_carried_with_its_commit_and_a_survivor_is_tried_again(
    copied: ModuleType,
) -> None:
    """However often it is carried, the commit is the one on which it was killed."""
    for commit in ("two", "three"):
        copied.carry(copied.settled_so_far())
        copied.COMMIT.write_text(commit, encoding="utf-8")

        assert copied.noted(copied.FORKED).keys() == {ONE, OTHER}
        assert copied.carried() == {ONE: "one", OTHER: "one"}


@pytest.mark.parametrize(
    ("path", "before", "after", "left"),
    [
        ("src/turnlock/m.py", "return 1", "return 0", {OTHER}),
        ("src/turnlock/m.py", "return 5", "return 6", {ONE}),
        ("src/turnlock/m.py", "return 3", "return 7", {ONE, OTHER}),
        ("tests/a.py", "...", "pass", {OTHER}),
    ],
)
def test_no_kill_is_carried_where_function_mutant_or_killer_has_changed(
    copied: ModuleType, path: str, before: str, after: str, left: set[str]
) -> None:
    settled = copied.settled_so_far()
    file = copied.COPY / path
    file.write_text(file.read_text("utf-8").replace(before, after), encoding="utf-8")

    copied.carry(settled)

    assert copied.noted(copied.FORKED).keys() == left


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [("", "", True), ("...", "pass", True), ("return 1", "return 0", False)],
)
def test_a_survivor_that_is_listed_is_kept_where_its_function_has_not_changed(
    copied: ModuleType, before: str, after: str, kept: bool
) -> None:
    """With its commit; of those whom a fork comes too late for it is known that they were tried."""
    copied.EQUIVALENT.write_text(
        '[[mutant]]\nfunction = "m.x_f"\nchange = """-    return 1\n+    return 3"""\n',
        encoding="utf-8",
    )
    settled = copied.settled_so_far()
    for path in ("src/turnlock/m.py", "tests/a.py"):
        file = copied.COPY / path
        file.write_text(file.read_text("utf-8").replace(before, after), encoding="utf-8")

    copied.carry(settled)

    assert (TWO in copied.noted(copied.FORKED)) is kept
    assert (TWO in copied.noted(copied.AFRESH)) is kept
    assert copied.carried().get(TWO) == ("one" if kept else None)


def test_what_was_carried_is_told_by_its_commit(
    told: Callable[..., tuple[int, str]], tool: ModuleType
) -> None:
    """So nobody takes it for a result of today."""
    names = ("x_other__mutmut_1", "x_other__mutmut_2", "x_same__mutmut_1")
    earlier = {f"turnlock.engine.kernel.{name}": "abc1234" for name in names[1:]}
    tool.CARRIED.write_text(json.dumps(earlier), encoding="utf-8")

    tried = dict(zip(names, ("tests/a.py::b", "tests/a.py::b", ""), strict=True))
    status, said = told(tried, FIRST, whole=True)

    assert status == 0
    assert "1 of the killed were killed on commit abc1234, in the same function" in said
    assert "1 of the equivalent survived on commit abc1234, in the same function" in said


# ------------------------------------------------------------------------------- who is killed

MUTATED = """
import os

def mutant():
    return os.environ["MUTANT_UNDER_TEST"]

def answer():
    if mutant() == "m.x_answer__mutmut_3":
        os._exit(7)
    return 43 if mutant() == "m.x_answer__mutmut_1" else 42

if os.environ.get("MUTANT_UNDER_TEST") == "m.x_made__mutmut_4":
    raise KeyError("made wrong")
MADE_WRONG = ("m.x_made__mutmut_1", "m.x_made__mutmut_3")
MADE = 43 if os.environ.get("MUTANT_UNDER_TEST") in MADE_WRONG else 42
"""
ASKED = """
import m

def test_nothing():
    pass

def test_answer():
    assert m.answer() == 42

def test_made():
    assert m.MADE == 42
"""


def try_all(folder: Path, *mutants: str, how: tuple[str, ...] = ()) -> dict[str, str]:
    """What kills which, in a copy that is as small as one can be."""
    tests = folder / "tests" / "engine" / "test_m.py"
    for name in ("engine", "machines", "models", "rules", "wire", "property"):
        (folder / "tests" / name).mkdir(parents=True, exist_ok=True)
    for name in ("wire/test_wire.py", "property/test_against_oracle.py"):
        (folder / "tests" / name).touch()
    (folder / "m.py").write_text(MUTATED, encoding="utf-8")
    tests.write_text(ASKED, encoding="utf-8")
    names = [f"tests/engine/test_m.py::test_{name}" for name in ("nothing", "answer", "made")]
    stats = {
        "tests_by_mangled_function_name": {"m.x_answer": names[:2]},
        "duration_by_test": dict.fromkeys(names, 0.1),
    }
    (folder / "mutmut-stats.json").write_text(json.dumps(stats), encoding="utf-8")
    results = folder / "results.jsonl"
    results.unlink(missing_ok=True)
    subprocess.run(
        [sys.executable, ROOT / "tools/mutant_trials.py", "--jobs", "2", *how, results],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "MUTANT_UNDER_TEST": ""},
        input="\n".join(mutants),
        text=True,
        capture_output=True,
        check=False,
    )
    return dict(map(json.loads, results.read_text(encoding="utf-8").splitlines()))


def test_who_is_killed_was_killed(tmp_path: Path) -> None:
    """The control passes all tests; who changes nothing survives; who ends the process does not."""
    unchanged = "turnlock.unchanged__mutmut_0"
    wrong, same, ending = (f"m.x_answer__mutmut_{number}" for number in (1, 2, 3))

    assert try_all(tmp_path, unchanged, wrong, same, ending) == {
        unchanged: "",
        wrong: "tests/engine/test_m.py::test_answer",
        same: "",
        ending: TOO_LONG,
    }


def test_what_runs_on_import_is_tried_in_a_process_that_imports_it(tmp_path: Path) -> None:
    """The first by all tests, the next one by what killed it."""
    made, same, alike, broken = (f"m.x_made__mutmut_{number}" for number in (1, 2, 3, 4))
    killer = "tests/engine/test_m.py::test_made"

    assert try_all(tmp_path, made) == {made: ""}
    tried = try_all(tmp_path, made, same, alike, broken, how=("--anew", "--jobs", "1"))
    assert tried == {
        made: killer,
        same: "",
        alike: killer,
        broken: "with it the tests cannot be imported",
    }


def test_a_change_is_told_as_it_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: ModuleType
) -> None:
    """Of a function and of a method: without the names that mutmut gives."""
    module = tmp_path / "src" / "turnlock" / "m.py"
    module.parent.mkdir(parents=True)
    module.write_text(WRITTEN, encoding="utf-8")
    monkeypatch.setattr(tool, "COPY", tmp_path)

    changes = [tool.change_of(f"turnlock.m.{name}__mutmut_1") for name in ("x_f", "xǁCǁg")]

    assert changes == ["-    return 1\n+    return 2", "-def g(a=1):\n+def g(a=2):"]


WRITTEN = """
def x_f__mutmut_orig():
    return 1

def x_f__mutmut_1():
    return 2

class C:
    def xǁCǁg__mutmut_orig(a=1):
        return a

    def xǁCǁg__mutmut_1(a=2):
        return a
"""
