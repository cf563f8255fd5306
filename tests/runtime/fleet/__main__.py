"""``make fleet ARGS="--hosts 4 --runs 1000 --seconds 60 --seed 1"``: a fleet, and its judge."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.postgres.servers import journal_url

from . import controls
from .fleet import Fleet, Nemesis, played
from .judge import RULES
from .play import Play


def _url(given: str | None, folder: Path) -> str:
    if given is None:
        return journal_url(folder)
    return f"sqlite:{folder / 'journal.db'}" if given == "sqlite" else given


def main() -> int:
    parser = argparse.ArgumentParser(prog="make fleet", description=__doc__)
    parser.add_argument("--url", help="of an empty journal; sqlite makes one in a file")
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--calls", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0, help="for which hosts are disturbed")
    parser.add_argument("--refused", type=float, default=0.1, help="of hand-overs, by the model")
    parser.add_argument("--slow", type=float, default=0.02, help="of tools")
    parser.add_argument("--lease", type=float, default=2.0)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--nemesis", nargs="+", choices=list(Nemesis), default=list(Nemesis))
    parser.add_argument(
        "--off", nargs="*", choices=(controls.UNFENCED, controls.UNORDERED, controls.UNASKED),
        default=(), help="switch a protection off in the hosts: a control, which must turn red",
    )  # fmt: skip
    parser.add_argument("--keep", type=Path, help="a folder for the ledger and what hosts wrote")
    given = parser.parse_args()
    with TemporaryDirectory() as temporary:
        folder = given.keep or temporary
        Path(folder).mkdir(exist_ok=True)
        play = Play(
            url=_url(given.url, Path(folder)),
            ledger=f"{folder}/ledger",
            runs=given.runs,
            turns=given.turns,
            calls=given.calls,
            lease=given.lease,
            slow=given.slow,
            refused=given.refused,
            hosts=given.hosts,
            faults=tuple(given.off),
        )
        fleet = Fleet(
            play=play,
            seed=given.seed,
            seconds=given.seconds,
            nemeses=tuple(given.nemesis),
            spared=1 if given.off else 0,
            within=20.0 if given.off else 120.0,
        )
        found = asyncio.run(played(fleet))
        errors = Path(f"{folder}/ledger.errors").read_text()
    for violation in found.violations[:20]:
        print(violation)
    if "defect of turnlock" in errors or "Traceback" in errors:
        print(errors[-8_000:], file=sys.stderr)
    print(", ".join(f"{rule.__name__} {found.named(rule.__name__)}" for rule in RULES))
    print(f"seed {given.seed}: {found}")
    return bool(found.violations)


if __name__ == "__main__":
    sys.exit(main())
