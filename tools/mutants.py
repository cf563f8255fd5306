"""Mutation testing of the kernel: ``python tools/mutants.py [--jobs N] [--fresh-only]``.

mutmut changes one function body at a time and runs the tests that reach it. What survives must
stand in tools/equivalent_mutants.toml with the reason why no test can tell it from the original;
anything else ends with status 1. Functions that run while modules are imported (the helpers that
build the tables, the makers of records and codecs) are beyond mutmut's reach, because it forks a
process that has imported them already: each of theirs is run in a process of its own.

The rows of the tables are data, which mutmut leaves alone: `turnlock verify --selftest` plants
mistakes there.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import tomli_w

ROOT: Final = Path(__file__).resolve().parents[1]
WORK: Final = ROOT / "build" / "mutants"
EQUIVALENT: Final = ROOT / "tools" / "equivalent_mutants.toml"
KERNEL: Final = ("models", "lifecycle", "turn", "engine")
TESTS: Final = (
    "tests/machines",
    "tests/models",
    "tests/rules",
    "tests/engine",
    "tests/wire/test_wire.py",
    "tests/property/test_against_oracle.py",
)
ON_IMPORT: Final = (
    "lifecycle.table.",
    "turn.table.",
    "engine.minting.x__of",
    "models.checks.x_choice",
    "models.checks.x_instance",
    "models.checks.x_optional",
    "models.codec.x__make",
    "models.codec.x__nested",
    "models.record.x__define",
    "models.record.x__maker",
    "models.record.x_mint",
)
"""Where functions run while modules are imported, as mutmut names them."""
NOT_THESE: Final = "not test_every_method_either_reads_or_refuses and not test_spec_coverage"
"""Tests of names: they would see the copies that mutmut puts beside each function."""
SURVIVED, LEFT_OUT = 0, 34  # mutmut's exit codes
SECONDS: Final = 300  # for all tests on one mutant, in a process of its own


def main() -> None:
    """Make the mutants, run the tests on them, and say what survives unexplained."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    asked = parser.parse_args()

    prepare()
    mutmut("run", "--max-children", str(asked.jobs), "nothing.*")  # makes them, and runs none
    leave_out(ON_IMPORT)
    mutmut("run", "--max-children", str(asked.jobs))
    survivors = [name for name, code in outcomes() if code == SURVIVED]
    apart = [name for name, code in outcomes() if code == LEFT_OUT]
    with ThreadPoolExecutor(asked.jobs) as pool:
        killed = pool.map(is_killed_afresh, apart)
        survivors += [name for name, dead in zip(apart, killed, strict=True) if not dead]
    tell(survivors, made=sum(1 for _ in outcomes()))


def prepare() -> None:
    """Lay out a copy in which the package is a plain folder: mutmut follows no links."""
    shutil.rmtree(WORK, ignore_errors=True)
    package = WORK / "src" / "turnlock"
    package.mkdir(parents=True)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for link in (ROOT / "src" / "turnlock").iterdir():
        copy(link.resolve(), package / link.name)
    for name in ("tests", "examples"):
        copy(ROOT / name, WORK / name)
    wanted = {
        "tool": {
            "pytest": settings["tool"]["pytest"],
            "mutmut": {
                "source_paths": ["src/turnlock"],
                "only_mutate": [f"src/turnlock/{folder}/*" for folder in KERNEL],
                "do_not_mutate_patterns": [r"cast\("],
                "also_copy": ["examples"],
                "pytest_add_cli_args": ["-p", "no:cacheprovider", "-k", NOT_THESE],
                "pytest_add_cli_args_test_selection": list(TESTS),
            },
        }
    }
    (WORK / "pyproject.toml").write_text(tomli_w.dumps(wanted), encoding="utf-8")


def copy(source: Path, target: Path) -> None:
    """Copy a file or a folder, without what Python left there."""
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    elif source.exists():
        shutil.copy2(source, target)


def mutmut(*arguments: str) -> None:
    """Run mutmut in the copy. Its status says whether any survived, which `tell` says better."""
    command = [sys.executable, "-m", "mutmut", *arguments]
    subprocess.run(command, cwd=WORK, check=False)  # noqa: S603 - our own words


def sheets() -> Iterator[tuple[Path, dict[str, Any]]]:
    """Return mutmut's notes, a file for each file of the source."""
    for path in sorted((WORK / "mutants" / "src").rglob("*.meta")):
        yield path, json.loads(path.read_text(encoding="utf-8"))


def outcomes() -> Iterator[tuple[str, int | None]]:
    """Return each mutant with what became of it."""
    for _, sheet in sheets():
        yield from sheet["exit_code_by_key"].items()


def leave_out(places: tuple[str, ...]) -> None:
    """Mark the mutants of these places as done, so that mutmut runs the others only."""
    for path, sheet in sheets():
        codes = sheet["exit_code_by_key"]
        for name in codes:
            if name.startswith(tuple(f"turnlock.{place}" for place in places)):
                codes[name] = LEFT_OUT
        path.write_text(json.dumps(sheet), encoding="utf-8")


def is_killed_afresh(name: str) -> bool:
    """Whether the tests fail on this mutant in a process that imports it anew."""
    pytest = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--rootdir=."]
    try:
        ran = subprocess.run(  # noqa: S603 - our own interpreter and tests
            [*pytest, "-k", NOT_THESE, *TESTS],
            cwd=WORK / "mutants",
            env={**os.environ, "MUTANT_UNDER_TEST": name},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return True
    return ran.returncode != 0


def change_of(name: str) -> str:
    """Return what a mutant changes: the lines that it takes out and puts in."""
    shown = subprocess.run(  # noqa: S603 - the name is mutmut's own
        [sys.executable, "-m", "mutmut", "show", name],
        cwd=WORK,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    lines = [line for line in shown.splitlines() if line[:1] in {"-", "+"}]
    return "\n".join(line for line in lines if line[:3] not in {"---", "+++"})


def tell(survivors: list[str], *, made: int) -> None:
    """Print the survivors that nothing explains, and end with 1 if there are any."""
    listed = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))["mutant"]
    explained = {(one["function"], one["change"].strip("\n")) for one in listed}
    found = {(name.partition("__mutmut_")[0], change_of(name)) for name in survivors}
    for function, change in sorted(found - explained):
        print(f"\n{function}\n{change}")
    gone = explained - found
    for function, change in sorted(gone):
        print(f"\nlisted as equivalent, but it does not survive: {function}\n{change}")
    open_ones = len(found - explained)
    print(
        f"\n{made} mutants, {made - len(survivors)} killed, {len(survivors)} survive, "
        f"{len(found & explained)} of them equivalent, {open_ones} unexplained"
    )
    sys.exit(1 if open_ones or gone else 0)


if __name__ == "__main__":
    main()
