"""The benchmarks run and print what they promise; no time is asserted. Importing stays clean."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOREIGN = {"hypothesis", "transitions", "graphviz", "cattrs", "click", "rich", "msgspec"}
FIGURES = [
    "a step of the table",
    "a dict lookup in a function",
    "a bare transitions trigger",
    "a guarded transitions trigger",
    "a bare python-statemachine event",
    "a bare automat event",
    "step / lookup",
    "step / bare trigger",
    "read a delivery",
    "read a fact",
    "write a fact",
    "tagged union: read a fact",
    "tagged union: write a fact",
    "a fact from a line of a journal",
    "a fact to a line of a journal",
    "write and encode a receipt",
    "snapshot to JSON and back to a kernel",
    "read a fact / construct a fact",
    "tagged union: read a fact / read a fact",
    "tagged union: write a fact / write a fact",
]


def run(*arguments: str | Path) -> str:
    """What an interpreter prints that finds the package in this checkout."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    ).stdout


def test_each_figure_is_printed_with_a_number() -> None:
    """Status 0, one table for each benchmark asked for, and in it every line that it names."""
    printed = run("benchmarks/run.py", "--quick", "--only", "step", "codec")

    assert re.findall(r"^## (\w+)$", printed, re.MULTILINE) == ["step", "codec"]
    rows = [[cell.strip() for cell in line.split("|")] for line in printed.splitlines()]
    figures = {row[1]: row[2] for row in rows if len(row) > 2}
    for name in FIGURES:
        assert float(figures[name].replace(",", "")) > 0, name
    assert "the exit status is 0" in printed


def test_every_benchmark_has_its_file() -> None:
    """A benchmark whose file nobody runs, or whose name leads nowhere, is forgotten."""
    usage = re.sub(r"\s+", " ", run("benchmarks/run.py", "--help"))
    named = re.search(r"--only NAME .* of ([\w, ]+?) *$", usage)

    assert named is not None
    assert set(named[1].split(", ")) == {
        path.stem.removeprefix("bench_") for path in (ROOT / "benchmarks").glob("bench_*.py")
    }


def test_a_peer_that_is_missing_is_skipped_with_the_reason() -> None:
    """And one that is here is not: the control."""
    script = (
        "import sys; sys.path.insert(0, 'benchmarks')\n"
        "from peers.missing import missing\n"
        "print(missing('attrs', 'no-such-package'), missing('attrs'), sep='|')\n"
    )

    assert run("-c", script) == ("skipped: no no-such-package; pip install -e '.[peers]'|\n")


def test_peers_are_pinned_and_the_gate_has_the_same() -> None:
    """What is measured says its version, and what the gate plays is what is measured."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras: dict[str, list[str]] = told["project"]["optional-dependencies"]
    gate = dict(re.split("[>=]=", pin) for pin in extras["dev"] if re.search("[>=]=", pin))

    for pin in extras["peers"]:
        name, version = pin.split("==")
        assert gate[name] == version


HEAVY = {
    *("pydantic", "pydantic_core", "openai", "anthropic", "google.genai", "mcp"),
    *("httpx", "httpx2", "jsonschema", "docstring_parser", "opentelemetry", "importlib.metadata"),
}
AGENT = """
import sys
from turnlock.agent import *
print(*sys.modules)
"""
RECEIVE = """
import sys
from turnlock import Call, Kernel, OpenTurn, Run
call = Call(invocation_id="a", tool_name="ls", arguments={}, requires_approval=True)
verdict = Kernel(Run(run_id="r")).receive(OpenTurn(turn_id="t", calls=(call,)), 0.0)
assert verdict.accepted
print(*sys.modules)
"""


def test_the_kernel_imports_nothing_foreign() -> None:
    """Import, build, receive: neither the peers nor the libraries of codec and command line."""
    modules = set(run("-c", RECEIVE).split())

    assert "attrs" in modules
    assert modules & FOREIGN == set()


def test_a_digest_of_little_loads_no_openssl() -> None:
    """A start with one gated call does without; arguments that are large are worth it."""
    little = run("-c", RECEIVE).split()
    large = run("-c", RECEIVE.replace("arguments={}", "arguments={'text': 'x' * 2000}")).split()

    assert "_hashlib" not in little
    assert "_hashlib" in large


def test_w_50_importing_the_agent_loads_no_client_and_no_pydantic() -> None:
    """All that is public of it: an extra is loaded where something that needs it is made (W-50).

    The control: pydantic is there to be seen, or none of it being seen says nothing.
    """
    modules = set(run("-c", AGENT).split())

    assert "turnlock.agent.loop" in modules
    assert modules & HEAVY == set()
    assert "pydantic" in run("-c", "import pydantic" + AGENT).split()
