"""Let TLC say of recorded journals whether they are behaviours of the hand-written specification.

Each LOG holds facts as a journal does, one JSON object a line (see `turnlock check`); without one,
what version 0.1 wrote and the replayed corpus of examples/ are judged. Exit status: 0 all are
behaviours; 1 one is not, and the first line that cannot be is told; 2 wrong usage; 3 a tool failed;
6 not done, because a tool is missing: never green.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from check_models import EXIT, FAILED

from turnlock.models.codec import to_json
from turnlock.models.deliveries import Delivery
from turnlock.models.verdicts import Verdict
from turnlock.verification.errors import HarnessFailed
from turnlock.verification.exports.checkers import ToolMissing
from turnlock.verification.findings import Status
from turnlock.verification.formal.validate import (
    Judged,
    Unreadable,
    first_refused,
    read_journals,
    validate,
)
from turnlock.verification.replay.calls import Decisions, Mode
from turnlock.verification.replay.host import Settings, replay_conversation
from turnlock.verification.replay.lines import Problems
from turnlock.verification.replay.recording import read_recording
from turnlock.verification.replay.tally import Tally

ROOT: Final = Path(__file__).resolve().parents[1]
WRITTEN_BEFORE: Final = ROOT / "tests/data/journals/0.1/facts.jsonl"
CORPUS: Final = ROOT / "examples/corpus/turns.jsonl"


def main() -> int:
    """Judge each log, say what came of it, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", nargs="*", type=Path, metavar="LOG")
    parser.add_argument(
        "--replay", type=Path, metavar="FILE", help="recorded turns, to be replayed"
    )
    asked = parser.parse_args()
    logs: dict[str, list[bytes]] = {}
    try:
        for path in asked.logs or ([] if asked.replay else [WRITTEN_BEFORE]):
            logs[str(path)] = path.read_bytes().splitlines(keepends=True)
    except OSError as error:
        parser.error(str(error))
    if asked.replay or not asked.logs:
        recording = asked.replay or CORPUS
        logs[f"replay of {recording}"] = list(replayed(recording))
    refused = False
    for name, lines in logs.items():
        journals, unreadable = read_journals(lines)
        try:
            with tempfile.TemporaryDirectory(prefix="turnlock-traces-") as folder:
                judged = validate(journals, Path(folder))
        except ToolMissing as error:
            print(f"{error}\n\n{Status.NOT_DONE.upper()}")
            return EXIT[Status.NOT_DONE]
        except HarnessFailed as error:
            print(f"FAILED: {error}")
            return FAILED
        tell(name, judged, unreadable)
        refused |= first_refused(judged, unreadable) is not None
    status = Status.VIOLATED if refused else Status.HOLDS
    print(f"\n{status.upper()}")
    return EXIT[status]


def replayed(recording: Path) -> Iterator[bytes]:
    """Yield the facts that the kernel writes when recorded turns are replayed."""
    settings = Settings(decisions=Decisions(Mode.RANDOM), hostile=0, seed=1)
    for conversation in read_recording(str(recording), Problems()).conversations:
        written: list[bytes] = []

        def observe(_: Delivery, verdict: Verdict, __: float, ___: object) -> None:
            written.extend(to_json(fact) + b"\n" for fact in verdict.facts)  # noqa: B023 - called now

        replay_conversation(conversation, settings, Tally(), observe)
        yield from written


def tell(name: str, judged: list[Judged], unreadable: Unreadable | None) -> None:
    """Print what came of one log."""
    facts = sum(len(it.journal.facts) for it in judged)
    behaviours = sum(it.behaviour for it in judged)
    print(f"{name}: {behaviours:,} of {len(judged):,} runs are behaviours, {facts:,} facts")
    for it in judged:
        if not it.behaviour:
            fact = it.fact
            print(
                f"  run {it.journal.run.run_id!r} is none: line {it.line}, {fact.type} "
                f"(fact {fact.sequence}), is what no step says after the {it.told} before it"
            )
    if unreadable is not None:
        print(f"  line {unreadable.line} is no fact: {unreadable.cause}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
