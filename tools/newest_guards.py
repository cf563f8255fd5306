"""Hold guards against the newest versions of the frameworks; `make guards` does so, at night.

    python tools/newest_guards.py [ARGS OF PYTEST]

The gate runs the versions that were measured ([dev] of pyproject.toml). Here an environment of its
own, build/guards-venv, gets the newest of each framework and of what they need; then all tests of
guards run there, the long ones, too (TURNLOCK_GUARDS=deep). Warnings are told and fail nothing: one
of them says that a version is untested. Prints which versions were run beside those of the gate.
Status: pytest's; 2 where the environment cannot be made.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
HOME: Final = ROOT / "build" / "guards-venv"
FRAMEWORKS: Final = (
    "agent-framework-core",
    "langchain",
    "langgraph",
    "mcp",
    "openai-agents",
    "pydantic-ai-slim",
)
"""What is guarded; tests/guards/test_newest.py holds that each extra of guards is among these."""
BESIDE: Final = frozenset(
    {
        *("automat", "langgraph-checkpoint-sqlite", "python-statemachine"),
        *("playwright", "mkdocs-material", "mkdocstrings", "ruff", "schemathesis"),
    }
)
"""What no test of guards needs, of [dev]."""
TESTS: Final = ("tests/guards",)
_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")
_VERSIONS: Final = """
import importlib.metadata, sys
for name in sys.argv[1:]:
    print(name, importlib.metadata.version(name))
"""


def main() -> int:
    """Make the environment, run, and tell what was run."""
    if not (HOME / "bin" / "python").exists():
        venv.create(HOME, with_pip=True)
    needed = [it for it in required() if name_of(it) not in {*FRAMEWORKS, *BESIDE}]
    for packages in (["-e", ".", *needed], ["--upgrade-strategy", "eager", *FRAMEWORKS]):
        options = ["--upgrade"] if packages[-1] in FRAMEWORKS else []
        done = in_it(
            "-m", "pip", "install", "-q", "--disable-pip-version-check", *options, *packages
        )
        if done:
            sys.stderr.write("pip could not install the newest versions; is there a network?\n")
            return 2
    newest = versions(HOME / "bin" / "python")
    pinned = {name_of(it): it.rpartition("==")[2] for it in required() if "==" in it}
    sys.stdout.write("| framework | newest | in the gate |\n|---|---|---|\n")
    for name in FRAMEWORKS:
        sys.stdout.write(f"| {name} | {newest[name]} | {pinned.get(name, 'any')} |\n")
    sys.stdout.flush()
    os.environ["TURNLOCK_GUARDS"] = "deep"
    return in_it("-m", "pytest", "-W", "default", *(sys.argv[1:] or ["-q", "-rs"]), *TESTS)


def required() -> list[str]:
    """Return what the gate installs, as pyproject.toml has it."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found: list[str] = told["project"]["optional-dependencies"]["dev"]
    return found


def name_of(requirement: str) -> str:
    """Return the package that is required."""
    found = _NAME.match(requirement)
    if found is None:
        raise AssertionError(requirement)
    return found[0]


def versions(python: Path) -> dict[str, str]:
    """Return which version of each framework an interpreter has."""
    command = [str(python), "-c", _VERSIONS, *FRAMEWORKS]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - ours
    return dict(line.split() for line in done.stdout.splitlines())


def in_it(*command: str) -> int:
    """Run a command of the environment's Python in the checkout; return its status."""
    python = str(HOME / "bin" / "python")
    return subprocess.run([python, *command], cwd=ROOT, check=False).returncode  # noqa: S603 - ours


if __name__ == "__main__":
    sys.exit(main())
