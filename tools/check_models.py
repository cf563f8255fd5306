"""Let TLC count the model of one turn, and compare with our own exploration of it.

Exit status: 0 all agree; 1 they differ, or an invariant does not hold; 2 wrong usage; 3 a tool
failed; 6 not done, because a tool is missing: never green.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from turnlock.models.errors import InvalidValue
from turnlock.verification.errors import HarnessFailed
from turnlock.verification.exports.derive import derive
from turnlock.verification.exports.model import Scope
from turnlock.verification.exports.technique import Comparison, compare
from turnlock.verification.findings import Status

EXIT = {Status.HOLDS: 0, Status.VIOLATED: 1, Status.NOT_DONE: 6}
FAILED = 3

HEAD = f"{'calls':>5}  {'counted by':<10} {'states':>9} {'transitions':>12}"


def main() -> int:
    """Compare, print a table, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("calls", type=int, nargs="*", default=[1, 2, 3], help="of the turn: 1 2 3")
    numbers: list[int] = parser.parse_args().calls
    print(HEAD, flush=True)
    statuses: set[Status] = set()
    with tempfile.TemporaryDirectory(prefix="turnlock-models-") as folder:
        for number in numbers:
            try:
                model = derive(Scope(invocations=number))
                comparison = compare(model, Path(folder) / str(number))
            except InvalidValue as error:
                parser.error(str(error))
            except HarnessFailed as error:
                print(f"FAILED: {error}")
                return FAILED
            tell(comparison)
            statuses.add(comparison.status)
    print(f"\n{worst(statuses).upper()}")
    return EXIT[worst(statuses)]


def worst(statuses: Iterable[Status]) -> Status:
    """Return the status that decides: a violation weighs more than a tool that is missing."""
    return max(statuses, key=lambda status: (status is Status.VIOLATED, EXIT[status]))


def tell(comparison: Comparison) -> None:
    """Print the rows of one comparison, then what speaks against it or is missing."""
    rows = {"turnlock": comparison.own_count}
    if comparison.counted is not None:
        rows["TLC"] = comparison.counted
    for tool, count in rows.items():
        print(
            f"{comparison.invocations:>5}  {tool:<10} {count.states:>9,} {count.transitions:>12,}"
        )
    for why in filter(None, (*comparison.differences, comparison.missing)):
        print(f"       {why}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
