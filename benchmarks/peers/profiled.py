"""Where the processor's time of a peer goes, by part of its code.

    python -m peers.profiled PEER [RUNS TURNS]     (in benchmarks/)

The turns of `bench_peers` with so many runs at once, three times plainly and once under cProfile,
which counts the loop's thread alone. The plain figure is what to rely on: a profile makes small
functions look dearer. What built-in functions take is their callers'.
"""

from __future__ import annotations

import asyncio
import cProfile
import pstats
import sys
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time, thread_time
from typing import Any, Final, TypeAlias

from bench_peers import WARM, play

from peers.known import OURS, PEERS
from peers.turn import Peer, Tools

ROOT: Final = Path(__file__).resolve().parents[2]
LEAST: Final = 0.01
"""The smallest share that is told by itself."""
Function: TypeAlias = tuple[str, int, str]
BUILT_IN: Final = "~"


async def _played(
    peer: Peer, runs: int, turns: int, profile: cProfile.Profile | None
) -> tuple[float, float]:
    """Return milliseconds a turn: of the process, and of the thread of its loop."""
    with TemporaryDirectory() as folder:
        async with peer.open(Path(folder), Tools(lambda _: None)) as session:
            await play(session, "warm", WARM, {})
            whole, loop = process_time(), thread_time()
            if profile is not None:
                profile.enable()
            await asyncio.gather(*(play(session, f"run-{it}", turns, {}) for it in range(runs)))
            if profile is not None:
                profile.disable()
            whole, loop = process_time() - whole, thread_time() - loop
    return whole / runs / turns * 1e3, loop / runs / turns * 1e3


def shares(profile: cProfile.Profile) -> dict[str, float]:
    """Return the share of each part of the code, the greatest first."""
    took: defaultdict[str, float] = defaultdict(float)
    stats: Any = pstats.Stats(profile)
    for function, (_, _, own, _, callers) in stats.stats.items():
        if function[0] == BUILT_IN and callers:
            for caller, (_, _, part, _) in callers.items():
                took[_part(caller)] += part
        else:
            took[_part(function)] += own
    whole = sum(took.values())
    return {part: it / whole for part, it in sorted(took.items(), key=lambda it: -it[1])}


def _part(function: Function) -> str:
    path = Path(function[0])
    if path.is_relative_to(ROOT) and ".venv" not in path.parts:
        return str(path.relative_to(ROOT).with_suffix(""))
    if "site-packages" in path.parts:
        return path.parts[path.parts.index("site-packages") + 1]
    return "asyncio" if path.parent.name == "asyncio" else "Python"


def main() -> None:
    """Measure, and print."""
    name = sys.argv[1] if len(sys.argv) > 1 else OURS
    runs, turns = map(int, sys.argv[2:4] or ("100", "4"))
    peer = PEERS[name].load()
    plain = [asyncio.run(_played(peer, runs, turns, None)) for _ in range(3)]
    whole, loop = min(plain)
    print(f"{name}, {runs} runs of {turns} turns: {whole:.2f} ms of the processor a turn, ", end="")
    print(f"{loop:.2f} of them in the loop's thread")
    profile = cProfile.Profile(thread_time)
    asyncio.run(_played(peer, runs, turns, profile))
    found = shares(profile)
    for part, share in found.items():
        if share >= LEAST:
            print(f"{share:6.1%}  {part}")
    print(f"{sum(it for it in found.values() if it < LEAST):6.1%}  in parts of less")


if __name__ == "__main__":
    main()
