"""What `import turnlock` costs a program that starts, and what it must not drag in.

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

RECEIVE: Final = """
from turnlock import Call, Kernel, OpenTurn, Run
call = Call(invocation_id="a", tool_name="ls", arguments={}, requires_approval=True)
Kernel(Run(run_id="r")).receive(OpenTurn(turn_id="t", calls=(call,)), 0.0)
"""
PROGRAMS: Final = {
    "an empty interpreter": "",
    "import attrs": "import attrs",
    "import turnlock": "import turnlock",
    "import turnlock, Kernel, one receive": RECEIVE,
}
SEEN: Final = f"import sys\nprint(*[name for name in {FOREIGN} if name in sys.modules])"


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
    seen = _start(RECEIVE + SEEN).split()
    lines = [
        Line(
            name=name,
            value=samples[name].least * 1e3,
            median=samples[name].median * 1e3,
            unit="ms",
            bound=100 if program is RECEIVE else None,
            by_median=True,
        )
        for name, program in PROGRAMS.items()
    ]
    found = Line(
        name="foreign modules after it",
        value=len(seen),
        unit="modules",
        bound=0,
        note=", ".join(seen) or "none of " + ", ".join(FOREIGN),
    )
    return [*lines, found]
