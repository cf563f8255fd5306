"""Stops the servers in a folder, and removes it, when whoever began them is gone: a program.

It reads its input until that ends: at the end of the tests, or with them when they are killed.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

PATIENCE = 5.0
"""Seconds that a server has to stop, before it is killed."""


def main(folder: Path) -> None:
    """Wait, stop, remove."""
    sys.stdin.read()
    for process in _serving(folder):
        stop(process)
    for mounted in mounts(folder):
        unmount(mounted)
    shutil.rmtree(folder, ignore_errors=True)


def stop(process: int) -> None:
    """End a server, at once, also one that stands still: nobody needs what is in it."""
    began = children(process)
    for number in (signal.SIGQUIT, signal.SIGCONT):
        signalled(process, number)
    for child in began:
        signalled(child, signal.SIGCONT)
    until = time.monotonic() + PATIENCE
    while any(map(alive, (process, *began))):
        if time.monotonic() > until:
            for it in (process, *began):
                signalled(it, signal.SIGKILL)
        time.sleep(0.005)


def signalled(process: int, number: int) -> None:
    """Send a signal, also to nobody."""
    try:
        os.kill(process, number)
    except ProcessLookupError:
        return


def children(process: int) -> list[int]:
    """The processes that this one has begun, and that are there."""
    try:
        text = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(child) for child in text.split()]


def alive(process: int) -> bool:
    """Whether a process is there; one that has ended, and nobody has asked how, is not."""
    try:
        status = Path(f"/proc/{process}/stat").read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] not in {"Z", "X"}


def mounts(folder: Path) -> list[Path]:
    """What is mounted in a folder."""
    lines = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    places = [Path(line.split()[1]) for line in lines]
    return [place for place in places if place.is_relative_to(folder)]


def unmount(mounted: Path) -> None:
    """Take it off, also while somebody looks at it."""
    subprocess.run(["/bin/umount", "--lazy", str(mounted)], check=False)


def _serving(folder: Path) -> list[int]:
    """The servers whose data is in this folder; a number that is another's by now is not one."""
    found: list[int] = []
    for file in folder.glob("*/*/postmaster.pid"):
        process = int(file.read_text(encoding="utf-8").split("\n", 1)[0])
        try:
            command = Path(f"/proc/{process}/cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if os.fsencode(file.parent) in command:
            found.append(process)
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]))
