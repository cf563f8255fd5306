"""Let TLC explore the hand-written specification, and compare with what the kernel itself does.

Scopes are the files docs/spec/turnlock-*.cfg; without a name all of them. Exit status: 0 all agree;
1 they differ, or a property does not hold; 2 wrong usage; 3 a tool failed; 6 not done, because a
tool is missing: never green.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from check_models import EXIT, FAILED, worst

from turnlock.verification.errors import HarnessFailed
from turnlock.verification.findings import Status
from turnlock.verification.formal.scope import names, read_scope
from turnlock.verification.formal.technique import Comparison, compare

HEAD = f"{'scope':<10} {'explored':<14} {'states':>9} {'transitions':>12}"


def main() -> int:
    """Compare, print a table, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scopes", nargs="*", metavar="scope", help=", ".join(names()))
    asked: list[str] = parser.parse_args().scopes
    for name in asked:
        if name not in names():
            parser.error(f"there is no scope {name!r}; there are {', '.join(names())}")
    print(HEAD, flush=True)
    statuses: set[Status] = set()
    with tempfile.TemporaryDirectory(prefix="turnlock-formal-") as folder:
        for name in asked or names():
            try:
                comparison = compare(read_scope(name), Path(folder) / name)
            except HarnessFailed as error:
                print(f"FAILED: {error}")
                return FAILED
            tell(comparison)
            statuses.add(comparison.status)
    print(f"\n{worst(statuses).upper()}")
    return EXIT[worst(statuses)]


def tell(comparison: Comparison) -> None:
    """Print the rows of one comparison, then what speaks against it or is missing."""
    rows = {"kernel": comparison.ours}
    if comparison.counted is not None:
        rows["specification"] = comparison.counted
    for what, walk in rows.items():
        print(f"{comparison.scope.name:<10} {what:<14} {walk.states:>9,} {walk.transitions:>12,}")
    for why in filter(None, (*comparison.differences, comparison.missing)):
        print(f"           {why}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
