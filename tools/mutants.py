"""Mutation testing of the kernel: ``python tools/mutants.py [--jobs N] [--only PREFIX] [...]``.

mutmut changes one function body at a time, and the tests must fail on each change. What survives
must stand in tools/equivalent_mutants.toml with the reason why no test can tell it from the
original; anything else ends with status 1. mutmut makes the mutants and notes which tests reach
which function; tools/mutant_trials.py runs them, many times faster than mutmut does.

What became of each mutant is kept in build/mutants/*.jsonl, so that an interrupted run goes
on where it was, as long as neither sources nor tests have changed. ``--again`` takes the tests as
they are now and tries what had survived: tests that were only added revive no mutant. ``--carry``
does the same for sources that have changed: who was killed stays killed where neither function nor
killer have changed, who survived and is listed is not tried where the function has not, and the
table says how many these are, by the commit they were tried on. What changed elsewhere may have
made another of them, so a run without it says more. ``--so-far`` tries nothing and tells what is
known.

mutmut leaves alone what stands outside of functions, and decorated functions: `make selftest`
plants mistakes in the rows of the tables.
"""

from __future__ import annotations

import argparse
import ast
import configparser
import difflib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import textwrap
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from mutant_trials import CONTROL, LEFT_OUT, TESTS, TOO_LONG, VARIABLE, function_of, noted

Settled = dict[str, tuple[str, str, str]]
"""By mutant: what killed it (or ""), on which commit, and a digest of what that depends on most."""
Change = tuple[str, str]
"""The function as mutmut names it, and the lines that a mutant takes out of it and puts in."""

ROOT: Final = Path(__file__).resolve().parents[1]
WORK: Final = ROOT / "build" / "mutants"
COPY: Final = WORK / "mutants"
"""What mutmut makes of it: the package with all mutants in it, and the tests."""
FORKED: Final = WORK / "forked.jsonl"
AFRESH: Final = WORK / "afresh.jsonl"
"""What became of each mutant: tried in a fork, and in a process of its own."""
SEAL: Final = WORK / "made_from"
COMMIT: Final = WORK / "commit"
CARRIED: Final = WORK / "carried.json"
"""On which commit those were tried that an earlier copy has handed down."""
EQUIVALENT: Final = ROOT / "tools" / "equivalent_mutants.toml"
KERNEL: Final = ("engine", "lifecycle", "turn", "models")
"""In the order in which they are tried."""
BESIDE: Final = ("tests", "examples", "docs")
"""What the tests read: themselves, what stands in the examples, the scripts of the wire's spec."""
MET_LATE: Final = "turnlock.models.codec."
"""What it makes for a class when it first meets it may be made before any test starts."""
TRIALS: Final = str(ROOT / "tools" / "mutant_trials.py")
AT_IMPORT: Final = """
import importlib, pkgutil, sys
met = set()
def note(frame, event, _):
    if event == "call" and frame.f_code.co_name.endswith("__mutmut_orig"):
        met.add(frame.f_globals["__name__"] + "." + frame.f_code.co_name)
sys.setprofile(note)
for folder in sys.argv[1:]:
    package = importlib.import_module("turnlock." + folder)
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(package.__name__ + "." + module.name)
sys.setprofile(None)
print(*(name.removesuffix("__mutmut_orig") for name in met))
"""


def main() -> None:
    """Make the mutants, run the tests on them, and say what survives unexplained."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--only", default="", metavar="PREFIX", help="such as engine.expiry")
    parser.add_argument("--again", action="store_true", help="try what had survived, new tests too")
    parser.add_argument("--carry", action="store_true", help="keep kills in what has not changed")
    parser.add_argument("--so-far", action="store_true", help="tell what is known, try nothing")
    asked = parser.parse_args()

    if asked.so_far:
        if not COPY.exists():
            sys.exit("nothing was tried yet: make mutants")
    elif asked.again:
        try_survivors_again()
    elif not SEAL.exists() or SEAL.read_text(encoding="utf-8") != seal():
        settled = settled_so_far() if asked.carry else {}
        make()
        carry(settled)
    mutants = [one for one in mutants_made() if one.startswith(f"turnlock.{asked.only}")]
    if not asked.so_far:
        run(mutants, asked.jobs)
    tell(mutants, whole=not asked.only)


def seal() -> str:
    """Return a digest of everything that results depend on."""
    digest = hashlib.sha256()
    for folder in (*KERNEL, *BESIDE, "wire", "machines", "verification"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(str(path).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def make() -> None:
    """Mutate a copy in which the package is a plain folder: mutmut follows no links."""
    shutil.rmtree(WORK, ignore_errors=True)
    package = WORK / "src" / "turnlock"
    package.mkdir(parents=True)
    made_from = seal()
    COMMIT.write_text(commit(), encoding="utf-8")
    for link in (ROOT / "src" / "turnlock").iterdir():
        copy(link.resolve(), package / link.name)
    for name in BESIDE:
        copy(ROOT / name, WORK / name)
    shutil.copy2(ROOT / "pyproject.toml", WORK)  # holds what pytest is to do
    settings = configparser.ConfigParser(interpolation=None)
    settings["mutmut"] = {
        "source_paths": "src/turnlock",
        "only_mutate": "\n".join(f"src/turnlock/{folder}/*" for folder in KERNEL),
        "do_not_mutate_patterns": r"cast\(",
        "also_copy": "\n".join(BESIDE),
        "pytest_add_cli_args": f"-p\nno:cacheprovider\n-k\n{LEFT_OUT}",
        "pytest_add_cli_args_test_selection": "\n".join(TESTS),
    }
    with (WORK / "setup.cfg").open("w", encoding="utf-8") as target:
        settings.write(target)
    # makes them and runs all tests once, then says with an error that no mutant is called nothing
    ran = run_python("-m", "mutmut", "run", "nothing", cwd=WORK)
    if not (COPY / "mutmut-stats.json").exists():
        sys.exit(f"mutmut could not run the tests:\n{ran.stdout}{ran.stderr}")
    SEAL.write_text(made_from, encoding="utf-8")


def commit() -> str:
    """Return the commit of the sources, marked where they have been changed since."""
    words = ("git", "describe", "--always", "--dirty", "--exclude=*")
    said = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    return said.stdout.strip() or "no commit"


def settled_so_far() -> Settled:
    """Return who was killed in the copy that there is, by what, and who survived as is listed."""
    if not SEAL.exists():
        return {}
    killers, left, alive = outcomes(list(mutants_made()))
    unexplained, _ = held_against({one: change_of(one) for one in alive}, Counter(excused()))
    now, earlier = COMMIT.read_text(encoding="utf-8"), carried()
    return {
        one: (killer, earlier.get(one, now), evidence(one, killer))
        for one, killer in killers.items()
        if one not in {*left, *unexplained}
    }


def carry(settled: Settled) -> None:
    """Write down for the new copy what was settled in the one before, where it is the same."""
    functions_in.cache_clear()
    killers: dict[str, str] = {}
    commits: dict[str, str] = {}
    for one in mutants_made():
        killer, on, known_by = settled.get(one, ("", "", ""))
        if on and evidence(one, killer) == known_by:
            killers[one] = killer
            commits[one] = on
    lines = {one: json.dumps([one, killer]) + "\n" for one, killer in killers.items()}
    FORKED.write_text("".join(lines.values()), encoding="utf-8")
    survived = [line for one, line in lines.items() if not killers[one]]
    AFRESH.write_text("".join(survived), encoding="utf-8")  # there, too, where forks come late
    CARRIED.write_text(json.dumps(commits), encoding="utf-8")


def carried() -> dict[str, str]:
    """Return the commit on which each was tried that an earlier copy has handed down."""
    if not CARRIED.exists():
        return {}
    return dict(json.loads(CARRIED.read_text(encoding="utf-8")))


def evidence(mutant: str, killer: str) -> str:
    """Return a digest of a function, of what its mutant makes of it, and of the tests beside."""
    module, _, name = mutant.rpartition(".")
    functions = functions_in(module)
    digest = hashlib.sha256()
    for function in (f"{function_of(name)}__mutmut_orig", name):
        digest.update("\n".join(functions[function]).encode() + b"\0")
    path = COPY / killer.partition("::")[0]
    if path.is_file():  # others died on import, or of time
        digest.update(path.read_bytes())
    return digest.hexdigest()


def copy(source: Path, target: Path) -> None:
    """Copy a file or a folder, without what Python left there."""
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    elif source.exists():
        shutil.copy2(source, target)


def try_survivors_again() -> None:
    """Take the tests as they are now, and forget who had survived."""
    for name in BESIDE:
        shutil.rmtree(COPY / name)
        copy(ROOT / name, COPY / name)
    for path in (FORKED, AFRESH):
        killed = [json.dumps([one, killer]) + "\n" for one, killer in noted(path).items() if killer]
        path.write_text("".join(killed), encoding="utf-8")


def mutants_made() -> Iterator[str]:
    """Return the mutants that mutmut has made, a folder after the other."""
    for folder in KERNEL:
        for path in sorted((COPY / "src" / "turnlock" / folder).rglob("*.meta")):
            yield from json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"]


def run(mutants: list[str], jobs: int) -> None:
    """Try those that have not been tried: in forks, then in new processes where forks come late."""
    known = noted(FORKED)
    attempt([one for one in (CONTROL, *mutants) if one not in known], jobs, FORKED)
    forked, known = noted(FORKED), noted(AFRESH)
    late = [one for one in late_ones(mutants) if not forked[one]]
    attempt([one for one in (CONTROL, *late) if late and one not in known], jobs, AFRESH, "--anew")
    for path in (FORKED, AFRESH):
        if noted(path).get(CONTROL):
            sys.exit(f"these tests fail on the unchanged kernel: {noted(path)[CONTROL]}")


def late_ones(mutants: list[str]) -> list[str]:
    """Return those that a fork may come too late for: a process must import them anew."""
    met = set(run_python("-c", AT_IMPORT, *KERNEL).stdout.split())
    return [one for one in mutants if function_of(one) in met or one.startswith(MET_LATE)]


def attempt(mutants: list[str], jobs: int, results: Path, *how: str) -> None:
    """Have these tried, if there are any."""
    if not mutants:
        return
    words = (TRIALS, "--jobs", str(jobs), *how, str(results))
    status = run_python(*words, given="\n".join(mutants), shown=True).returncode
    if status:
        sys.exit(f"the trials ended with status {status}; can the tests be imported?")


def run_python(
    *arguments: str,
    cwd: Path = COPY,
    given: str = "",
    shown: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run Python in the copy, where `import turnlock` finds the mutants, and return what it says.

    `given` goes to standard input, and what is `shown` is said to the terminal instead.
    """
    return subprocess.run(  # noqa: S603 - our own interpreter and words
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": "src", VARIABLE: ""},
        input=given,
        stdout=None if shown else subprocess.PIPE,
        stderr=None if shown else subprocess.PIPE,
        text=True,
        check=False,
    )


def change_of(mutant: str) -> str:
    """Return what a mutant changes: the lines that it takes out and puts in."""
    module, _, name = mutant.rpartition(".")
    functions = functions_in(module)
    before, after = functions[f"{function_of(name)}__mutmut_orig"], functions[name]
    lines = difflib.unified_diff(before, after, n=0, lineterm="")
    return "\n".join(line for line in lines if line[:2] not in {"--", "++", "@@"})


@cache
def functions_in(module: str) -> dict[str, list[str]]:
    """Return the functions that mutmut has put into a module, under the names that they had."""
    path = COPY.joinpath("src", *module.split(".")).with_suffix(".py")
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    functions: dict[str, list[str]] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and "__mutmut_" in node.name:
            body = textwrap.dedent("\n".join(lines[node.lineno - 1 : node.end_lineno]))
            name = function_of(node.name).removeprefix("x_").rpartition("ǁ")[2]
            functions[node.name] = body.replace(node.name, name, 1).splitlines()
    return functions


def tell(mutants: list[str], *, whole: bool) -> None:
    """Print what survives unexplained, and a table. End with 1 if there is any."""
    killers, left, alive = outcomes(mutants)
    changes = {one: change_of(one) for one in alive}
    asked = set(map(function_of, mutants))
    listed = Counter(entry for entry in excused() if whole or entry[0] in asked)
    unexplained, stale = held_against(changes, listed)
    for one in unexplained:
        print(f"\n{one}\n{changes[one]}")
    for function, change in list(stale):
        same = [one for one in killers if function_of(one) == function and change_of(one) == change]
        if set(same) & set(left):
            stale.remove((function, change))  # nobody knows yet
            continue
        why = f"{killers[same[0]]} kills it" if same else "no such mutant is made"
        print(f"\nlisted as equivalent, but {why}: {function}\n{change}")

    slow = [one for one in mutants if killers[one] == TOO_LONG]
    columns = [Counter(map(module_of, ones)) for ones in (mutants, left, slow, alive, unexplained)]
    heads = ("made", "not run", "killed", "- by time", "survive", "equivalent", "unexplained")
    print("\n" + " " * 24 + "".join(f"{head:>13}" for head in heads))
    for module in (*columns[0], "all"):
        made, rest, timed, lives, odd = (
            column.total() if module == "all" else column[module] for column in columns
        )
        figures = (made, rest, made - rest - lives, timed, lives, lives - odd, odd)
        print(f"{module:24}" + "".join(f"{figure:13,}" for figure in figures))
    earlier = Counter((on, bool(killers[one])) for one, on in carried().items() if one in killers)
    for (on, killed), number in earlier.items():
        what = "killed were killed" if killed else "equivalent survived"
        print(f"{number:,} of the {what} on commit {on}, in the same function")
    sys.exit(1 if unexplained or stale or left else 0)


def outcomes(mutants: list[str]) -> tuple[dict[str, str], list[str], list[str]]:
    """Return by mutant what killed it, or "", then who is yet to be tried, and who survives."""
    forked, afresh = noted(FORKED), noted(AFRESH)
    killers = {one: forked.get(one) or afresh.get(one, "") for one in mutants}
    tried = forked.keys() - late_ones(mutants) | afresh.keys()
    left = [one for one, killer in killers.items() if not killer and one not in tried]
    alive = [one for one, killer in killers.items() if not killer and one in tried]
    return killers, left, alive


def excused() -> Iterator[Change]:
    """Return what is listed as equivalent."""
    for one in tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))["mutant"]:
        yield f"turnlock.{one['function']}", one["change"].strip("\n")


def held_against(
    changes: dict[str, str], listed: Counter[Change]
) -> tuple[list[str], list[Change]]:
    """Return which survivors are not listed, and which entries excuse no survivor.

    An entry excuses one mutant: who makes the same change elsewhere in the function is not it.
    """
    left = listed.copy()
    unexplained: list[str] = []
    for one, change in changes.items():
        entry = function_of(one), change
        if left[entry]:
            left[entry] -= 1
        else:
            unexplained.append(one)
    return unexplained, sorted(left.elements())


def module_of(mutant: str) -> str:
    """Return the module of a mutant, without the package."""
    return mutant.rpartition(".")[0].removeprefix("turnlock.")


if __name__ == "__main__":
    main()
