"""How often a turn of each peer waits for the disk: fsync and fdatasync, as strace sees them.

    python -m peers.waits [PEER …]     (in benchmarks/; needs strace)

What is done before the first turn is taken off: two processes play, one more turns than the other.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench_peers import REST, play

from peers.known import PEERS
from peers.missing import missing
from peers.turn import Tools

TURNS: Final = {1: (5, 15), 100: (1, 3)}
"""By how many runs are at once: the turns of each, in the one process and in the other."""
CHILD: Final = "--play"


def waits(peer: str, runs: int) -> float:
    """Return how often a turn waits for the disk, with so many runs at once."""
    few, many = TURNS[runs]
    return (_calls(peer, runs, many) - _calls(peer, runs, few)) / (runs * (many - few))


def _calls(peer: str, runs: int, turns: int) -> int:
    with TemporaryDirectory() as folder:
        seen = Path(folder) / "seen"
        command = ["strace", "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o", str(seen)]
        command += [sys.executable, "-m", "peers.waits"]
        command += [CHILD, peer, str(runs), str(turns), folder]
        subprocess.run(command, check=True, cwd=Path(__file__).parents[1])  # noqa: S603 - ours
        return seen.read_text(encoding="utf-8").count("sync(")


async def _play(peer: str, runs: int, turns: int, folder: Path) -> None:
    async with PEERS[peer].load().open(folder, Tools(lambda _: None)) as session:
        rest = REST if runs == 1 else 0.0
        await asyncio.gather(*(play(session, f"run-{it}", turns, {}, rest) for it in range(runs)))


if __name__ == "__main__":
    if sys.argv[1:2] == [CHILD]:
        asyncio.run(_play(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5])))
    else:
        for name in sys.argv[1:] or PEERS:
            reason = missing(*PEERS[name].packages)
            told = reason or ", ".join(f"{it} at once: {waits(name, it):.2f}" for it in TURNS)
            print(f"{name}: {told}", flush=True)
