"""What importing turnlock, or its agent, costs a program that starts, and what it must not drag in.

CPU time (user and system) of fresh interpreters whose bytecode is cached; an empty interpreter is
contained in each figure. The bound is of the median.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Final

from timing import Line, measured

FOREIGN: Final = ("hypothesis", "transitions", "graphviz", "cattrs", "click", "rich", "msgspec")
"""What the kernel must not import."""
HEAVY: Final = ("pydantic", "openai", "anthropic", "google.genai", "mcp", "httpx", "jsonschema")
"""What the agent must not import: each is loaded where something that needs it is made."""

RECEIVE: Final = """
from turnlock import Call, Kernel, OpenTurn, Run
call = Call(invocation_id="a", tool_name="ls", arguments={}, requires_approval=True)
Kernel(Run(run_id="r")).receive(OpenTurn(turn_id="t", calls=(call,)), 0.0)
"""
AGENT: Final = "from turnlock.agent import *"
FLOOR: Final = "import asyncio, attrs, msgspec, sqlite3"
"""What the agent and its journal stand on in any case: what comes on top is ours."""
PROGRAMS: Final = {
    "an empty interpreter": "",
    "import attrs": "import attrs",
    "import turnlock": "import turnlock",
    "import turnlock, Kernel, one receive": RECEIVE,
    FLOOR: FLOOR,
    AGENT: AGENT,
}
BOUNDS: Final = {RECEIVE: 100, AGENT: 350}
"""Milliseconds that a program may take."""
SEEN: Final = "import sys\nprint(*[name for name in {} if name in sys.modules])"


def _start(program: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "src")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return subprocess.run(  # noqa: S603 - our own interpreter and programs
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def _cpu_seconds(program: str) -> float:
    before = getrusage(RUSAGE_CHILDREN)
    _start(program)
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def measure(rounds: int) -> list[Line]:
    """Start each program so many times."""
    works = {name: partial(_cpu_seconds, program) for name, program in PROGRAMS.items()}
    samples = measured(rounds, works)
    lines = [
        Line(
            name=name,
            value=samples[name].least * 1e3,
            median=samples[name].median * 1e3,
            unit="ms",
            bound=BOUNDS.get(program),
            by_median=True,
        )
        for name, program in PROGRAMS.items()
    ]
    lines.append(
        samples["import turnlock, Kernel, one receive"].over(
            samples["import attrs"], "import, Kernel and receive / import attrs", bound=1.5
        )
    )
    lines.append(samples[AGENT].over(samples[FLOOR], "all of turnlock.agent / what it stands on"))
    return [*lines, _foreign(RECEIVE, FOREIGN, "one receive"), _foreign(AGENT, HEAVY, "the agent")]


def _foreign(program: str, names: tuple[str, ...], what: str) -> Line:
    seen = _start(f"{program}\n{SEEN.format(names)}").split()
    return Line(
        name=f"foreign modules after {what}",
        value=len(seen),
        unit="modules",
        bound=0,
        note=", ".join(seen) or "none of " + ", ".join(names),
    )
