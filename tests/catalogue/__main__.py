"""`make selftest`: every technique against every planted bug, and hosts that hold no lock.

The bugs patch what is private to the engine, and the hosts are toys: both are for this checkout,
and none of it is shipped. Ends with 1 when something is not found, or a check does not hold.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from turnlock.verification.findings import Profile, Result, Status

from ..verification.concurrency.technique import check
from .matrix import render
from .selftest import selftest


def main(arguments: Sequence[str]) -> int:
    """Print the matrix and the figures of concurrency; return the exit status."""
    parser = argparse.ArgumentParser(prog="make selftest", description=__doc__)
    parser.add_argument("--profile", choices=[*Profile], default=Profile.CI, type=Profile)
    profile: Profile = parser.parse_args(arguments).profile
    matrix = selftest(profile=profile, progress=_tell)
    shortfalls = list(matrix.shortfalls())
    concurrency = check(profile=profile, progress=_tell)
    if concurrency.status is not Status.HOLDS:
        shortfalls.append(f"concurrency: {concurrency.findings[0].message}")
    print("\n".join([render(matrix), "", _said(concurrency), *shortfalls]))
    return 1 if shortfalls else 0


def _said(result: Result) -> str:
    figures = ", ".join(f"{name} {figure:,}" for name, figure in result.figures.items())
    return f"concurrency {result.status} in {result.seconds:.1f} s: {figures}"


def _tell(what: str) -> None:
    """Show progress on a terminal, in one line that the next one overwrites."""
    if sys.stderr.isatty():
        print(f"\r\033[K{what}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
