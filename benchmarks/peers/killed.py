"""What becomes of a turn whose process is killed: while it waits for a person, and in the payment.

    python -m peers.killed PEER FOLDER wait|inside|at-once|approve|resume     (in benchmarks/)

Each step is a process of its own, on the files of one folder. `wait` dies once the payment waits
for its approval, `inside` while it runs, 0.3 s after its first line, `at-once` right after that.
`approve` and `resume` go on in a folder where the first or another has died, and print when what
was reached, as JSON: readings of the monotonic clock, which processes of one machine share. What
tools did stands in a file that no peer knows of, with a line for each time that one began.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Final

import attrs

from peers.known import PEERS
from peers.turn import LOOKS, PAY, Tools, key_of

RUN: Final = "run"
TURN: Final = 0
QUIET: Final = 0.3
"""Seconds after which all is kept that a peer keeps of tools that have ended."""
TIMEOUT: Final = 120.0
LEDGER: Final = "ledger.txt"
DIES_AFTER: Final = {"inside": QUIET, "at-once": 0.0}
"""Seconds from the first line of the payment."""


@attrs.frozen(kw_only=True)
class Resumed:
    """What a new process came to, in seconds since it was asked for."""

    imported: float
    opened: float
    paid: float | None
    """The first line of the payment, where it began."""
    ended: float
    standing: str
    begun: Counter[str]
    """How often each call began, over both processes."""


def resumed(peer: str, dies: str, goes_on: str) -> Resumed:
    """Have a turn killed in one process and taken up in another."""
    with TemporaryDirectory() as folder:
        _step(peer, folder, dies)
        asked = monotonic()
        told = json.loads(_step(peer, folder, goes_on))
        lines = (Path(folder) / LEDGER).read_text(encoding="utf-8").split()
    return Resumed(
        imported=told["imported"] - asked,
        opened=told["opened"] - asked,
        paid=told["paid"] and told["paid"] - asked,
        ended=told["ended"] - asked,
        standing=told["standing"],
        begun=Counter(line.rpartition("/")[2] for line in lines),
    )


def _step(peer: str, folder: str, step: str) -> str:
    done = subprocess.run(  # noqa: S603 - ours
        [sys.executable, "-m", "peers.killed", peer, folder, step],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT,
    )
    expected = -signal.SIGKILL if step == "wait" or step in DIES_AFTER else 0
    if done.returncode != expected:
        raise AssertionError(f"{peer}, {step}: {done.returncode}\n{done.stderr}")
    return done.stdout


class _Ledger:
    """Says in a file what begins."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.paid: float | None = None

    def begins(self, key: str) -> None:
        now = monotonic()
        with self._path.open("a", encoding="utf-8") as lines:
            lines.write(f"{key}\n")
            lines.flush()
            os.fsync(lines.fileno())
        if key.endswith(PAY):
            self.paid = now

    def looked(self) -> bool:
        said = self._path.read_text(encoding="utf-8").split() if self._path.exists() else []
        return {key_of(RUN, TURN, name) for name in LOOKS} <= set(said)


async def _main(name: str, folder: Path, step: str) -> None:
    peer = PEERS[name].load()
    imported = monotonic()
    ledger = _Ledger(folder / LEDGER)
    tools = Tools(ledger.begins, DIES_AFTER.get(step))
    async with peer.open(folder, tools) as session:
        opened = monotonic()
        standing = "told"
        if step == "wait" or step in DIES_AFTER:
            await session.begin(RUN, TURN)
            while not ledger.looked():  # noqa: ASYNC110 - it is a file
                await asyncio.sleep(QUIET / 10)
            await asyncio.sleep(QUIET)
        if step == "wait":
            os.kill(os.getpid(), signal.SIGKILL)
        elif step == "resume":
            standing = await session.resume(RUN, TURN)
        else:
            await session.approve(RUN, TURN)
        ended = monotonic()
    print(
        json.dumps(
            {
                "imported": imported,
                "opened": opened,
                "paid": ledger.paid,
                "ended": ended,
                "standing": standing,
            }
        )
    )


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
