"""``turnlock codex``: what is only for runs that ``codex app-server`` performs."""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs
import click

from ..adapters.codex.played import PlayedRun, Refusal
from ..adapters.codex.playing import Play, play
from ..adapters.codex.transcripts import MODEL, NotATranscript, read_transcript
from ..models.codec import to_json
from ..models.fact import FactType, TurnFact
from ..models.facts import CallAdded, TurnOpened
from ..models.safe_text import harmless
from ..runtime.journal.places import shown_place
from ..verification.replay.lines import LINE_LIMIT, opened
from ..verification.traces.log import check
from ..views.wording import counted

if TYPE_CHECKING:  # it would load the runtime
    from ..runtime.journal.contract import Journal

_HELP: Final = """What is only for runs that `codex app-server` performs.

\b
Exit status:
  0  all was well
  1  a check failed
  2  wrong usage, or input that cannot be read
"""

_PLAY: Final = f"""Play recorded transcripts of `codex app-server`, and check what they come to.

Each FILE holds one JSON object a line, {{seq, t, ts, dir, proc, msg}}, plain or gzipped; - is
standard input. Those that end in {MODEL} (what a model said) are passed over. Each thread is a
run: what the program said goes through the normaliser and the kernel, what its client answered
stands for what people decided. Told are turns, invocations, facts, and what the kernel refused,
with the reason for which that was to be expected.

With --db the runs are kept in a new journal, for turnlock show, check and diagram to look at.

\b
Exit status:
  0  all refusals are explained, and every demand is met
  1  a refusal that is not explained, or a demand that is not met
  2  wrong usage, or a FILE that cannot be read: it is named with the line; the others are played
"""

BROKEN: Final = 1
UNREADABLE: Final = 2

_WORDS: Final = {
    FactType.TOOL_APPROVAL_REQUESTED: "asked",
    FactType.TOOL_APPROVED: "approved",
    FactType.TOOL_DENIED: "denied",
    FactType.TOOL_EXECUTION_STARTED: "started",
    FactType.TOOL_EXECUTION_SUCCEEDED: "succeeded",
    FactType.TOOL_EXECUTION_FAILED: "failed",
    FactType.EXECUTION_IN_DOUBT: "in doubt",
    FactType.TURN_SETTLED: "settled",
    FactType.TURN_INTERRUPTED: "interrupted",
}
"""What a turn or a call comes to, in a word; other facts have none."""
_NAME: Final = 80
"""Characters of an id or a tool; --json has all of it."""


@click.group("codex", help=_HELP, short_help="What is only for runs of codex app-server.")
def command() -> None:
    """Do something with transcripts."""


@command.command("play", help=_PLAY, short_help="Play recorded transcripts, and check them.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path())
@click.option("--db", metavar="JOURNAL", help="Keep the runs in this journal, which is made.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
def play_files(*, files: tuple[str, ...], db: str | None, as_json: bool) -> None:
    """Play the files, tell what they come to, and end with the status."""
    chosen = _chosen(files, db)
    played: list[Outcome] = []
    unread = 0
    for file, name in zip(chosen, _names(chosen), strict=True):
        try:
            outcome = Outcome.of(file, play(name, read_transcript(_lines(file))))
        except NotATranscript as error:
            unread += 1
            place = f"{file}:{error.number}" if error.number else file
            click.echo(harmless(f"{place}: {error.cause}; give a transcript of codex"), err=True)
            continue
        played.append(outcome)
        if not as_json:
            for line in _told(outcome):
                click.echo(harmless(line))
    if db is not None:
        _keep(db, played)
    if as_json:
        told = {**_sums(played), "files": [it.as_json() for it in played], "unread": unread}
        click.echo(json.dumps(told, indent=2))
    else:
        click.echo(_verdict(played, unread))
    if any(it.wrong for it in played):
        sys.exit(BROKEN)
    sys.exit(UNREADABLE if unread else 0)


def _chosen(files: Sequence[str], db: str | None) -> list[str]:
    chosen = [it for it in files if not it.removesuffix(".gz").endswith(MODEL)]
    if not chosen:
        raise click.UsageError(f"every FILE ends in {MODEL}; give what client and program said")
    if chosen.count("-") > 1:
        raise click.UsageError("standard input (-) can be read once; give - once")
    if db is not None and Path(db.removeprefix("sqlite:")).exists():
        raise click.UsageError(f"--db: {harmless(db)} is there already; name a new file")
    return chosen


def _names(files: Sequence[str]) -> Iterator[str]:
    """Name the first run of each file for the file, and no two alike."""
    taken: Counter[str] = Counter()
    for file in files:
        name = Path(file).name.removesuffix(".gz").removesuffix(".jsonl") or "transcript"
        taken[name] += 1
        yield name if taken[name] == 1 else f"{name}~{taken[name]}"


def _lines(file: str) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, with their numbers."""
    number = 0
    try:
        with opened(file) as stream:
            while line := stream.readline(LINE_LIMIT + 1):
                number += 1
                if len(line) > LINE_LIMIT:
                    raise NotATranscript(number, f"is longer than {LINE_LIMIT:,} bytes")
                if line.strip():
                    yield number, line
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        cause = f"the gzip data break off or are damaged here ({error})"
        raise NotATranscript(number + 1, cause) from error
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or str(error)
        raise NotATranscript(number and number + 1, f"cannot be read ({cause})") from error


# ------------------------------------------------------------------------------
# What a file comes to.


@attrs.define
class Turn:
    """One turn of the kernel, and its calls: what became of each, in words."""

    turn_id: str
    words: list[str] = attrs.field(factory=list[str])
    calls: dict[str, Called] = attrs.field(factory=dict[str, "Called"])


@attrs.define
class Called:
    """One invocation."""

    tool_name: str
    observed: bool
    words: list[str] = attrs.field(factory=list[str])


@attrs.frozen
class Outcome:
    """One file, played."""

    file: str
    play: Play
    turns: dict[str, list[Turn]]
    """By run."""
    wrong: tuple[str, ...]
    """What is not as it must be."""

    @classmethod
    def of(cls, file: str, played: Play) -> Outcome:
        """Fold what was played, and hold its facts against the specification."""
        runs = played.runs.values()
        wrong = [str(it) for it in played.breaches]
        wrong += [f"not explained: {_refused(it)}" for run in runs for it in _unexplained(run)]
        for run in runs:
            conforms = check([to_json(it) + b"\n" for it in run.facts])
            if conforms.broken is not None:
                broken = conforms.broken
                wrong.append(f"run {run.run.run_id}: fact {broken.line}: {broken.cause}")
        turns = {run.run.run_id: [*_turns(run)] for run in runs}
        return cls(file=file, play=played, turns=turns, wrong=tuple(wrong))

    @property
    def runs(self) -> Iterable[PlayedRun]:
        """Its runs."""
        return self.play.runs.values()

    @property
    def counts(self) -> Counter[str]:
        """How much of everything there is."""
        return Counter(
            {
                "runs": len(self.turns),
                "turns": sum(len(it) for it in self.turns.values()),
                "invocations": sum(len(it.calls) for run in self.turns.values() for it in run),
                "facts": sum(1 for run in self.runs for _ in run.facts),
                "refusals": sum(len(run.refusals) for run in self.runs),
                "unexplained": sum(len([*_unexplained(run)]) for run in self.runs),
                "broken": len(self.play.breaches),
            }
        )

    def as_json(self) -> dict[str, Any]:
        """Return all of it."""
        return {
            "file": self.file,
            **self.counts,
            "runs": [
                {
                    "run_id": run.run.run_id,
                    "thread_id": run.thread_id,
                    "notes": sum(1 for _ in run.notes),
                    "transients": run.transients,
                    "answers": len(run.answers),
                    "turns": [attrs.asdict(it) for it in self.turns[run.run.run_id]],
                    "refusals": [_refusal_as_json(it) for it in run.refusals],
                    "anomalies": [{"anomaly": it.anomaly, "detail": it.detail} for it in run.odd],
                }
                for run in self.runs
            ],
            "broken_off": self.play.broken_off,
            "wrong": list(self.wrong),
        }


def _turns(run: PlayedRun) -> Iterator[Turn]:
    turns: dict[str, Turn] = {}
    for fact in run.facts:
        if not isinstance(fact, TurnFact):
            continue
        turn = turns.setdefault(fact.turn_id, Turn(fact.turn_id))
        if isinstance(fact, TurnOpened):
            for call in fact.calls:
                turn.calls[call.invocation_id] = Called(call.tool_name, call.observed)
        elif isinstance(fact, CallAdded):
            turn.calls[fact.call.invocation_id] = Called(fact.call.tool_name, fact.call.observed)
        word = _WORDS.get(fact.type)
        if word is not None:
            about = getattr(fact, "invocation_id", None)
            (turn if about is None else turn.calls[about]).words.append(word)
    yield from turns.values()


def _unexplained(run: PlayedRun) -> Iterator[Refusal]:
    yield from (it for it in run.refusals if it.why is None)


# ------------------------------------------------------------------------------
# Told in words, as JSON, and kept.


def _told(outcome: Outcome) -> Iterator[str]:
    yield f"{outcome.file}: {_counted(outcome.counts)}"
    for seq in outcome.play.broken_off:
        yield f"  seq {seq}: no message: its process was taken for ended"
    for run in outcome.runs:
        said = counted(sum(1 for _ in run.notes), "note")
        said += f", {counted(run.transients, 'transient')}, {counted(len(run.answers), 'answer')}"
        yield f"  run {run.run.run_id}, thread {run.thread_id}: {said}"
        for turn in outcome.turns[run.run.run_id]:
            yield f"    turn {turn.turn_id}: {', '.join(turn.words) or 'open'}"
            for name, call in turn.calls.items():
                how = "" if call.observed else "ours, "
                told = ", ".join(call.words) or "nothing yet"
                yield f"      {name[:_NAME]} {call.tool_name[:_NAME]}: {how}{told}"
        for it in run.refusals:
            yield f"    refused: {_refused(it)}: {it.why or 'NOT EXPLAINED'}"
        for odd in run.odd:
            yield f"    odd: {odd.anomaly}: {odd.detail}"
    for wrong in outcome.wrong:
        yield f"  WRONG: {wrong}"


def _refused(it: Refusal) -> str:
    delivery = it.delivery
    about = getattr(delivery, "invocation_id", None) or getattr(delivery, "turn_id", "")
    return f"seq {it.seq}, {delivery.type} of {about} by the {it.by}: {it.refused.reason}"


def _refusal_as_json(it: Refusal) -> dict[str, Any]:
    return {
        "seq": it.seq,
        "by": it.by,
        "delivery": it.delivery.type,
        "turn_id": getattr(it.delivery, "turn_id", None),
        "invocation_id": getattr(it.delivery, "invocation_id", None),
        "reason": it.refused.reason,
        "why": it.why,
    }


def _sums(played: Iterable[Outcome]) -> dict[str, int]:
    sums: Counter[str] = Counter()
    for it in played:
        sums.update(it.counts)
    return dict(sums)


def _counted(counts: Counter[str]) -> str:
    return ", ".join(
        counted(counts[f"{it}s"], it) for it in ("run", "turn", "invocation", "fact", "refusal")
    )


def _verdict(played: Sequence[Outcome], unread: int) -> str:
    sums = Counter(_sums(played))
    wrong = [it for one in played for it in one.wrong]
    told = f"{counted(len(played), 'file')}: {_counted(sums)}"
    if wrong:
        told += f"; {len(wrong):,} WRONG"
    elif sums["refusals"]:
        told += ", each explained"
    return told + (f"; {counted(unread, 'file')} not read" if unread else "")


def _keep(db: str, played: Iterable[Outcome]) -> None:
    """Keep the runs in a journal of their own."""
    from ..runtime.errors import NoJournal  # noqa: PLC0415 - where it is asked for
    from ..runtime.journal.contract import open_journal  # noqa: PLC0415
    from .databases import ended  # noqa: PLC0415

    async def keep() -> None:
        async with await open_journal(db) as journal:
            if await journal.runs(limit=1):
                raise NoJournal(f"--db: {shown_place(db)} holds runs already; name a new journal")
            for outcome in played:
                for run in outcome.runs:
                    await _keep_run(journal, run)

    ended(keep())


async def _keep_run(journal: Journal, run: PlayedRun) -> None:
    run_id = run.run.run_id
    await journal.declare(run.run)
    after = 0
    for kept in run.kept:
        if not kept.facts:
            await journal.note(run_id, fence=None, notes=kept.notes)
            continue
        notes = [attrs.evolve(it, after=after) for it in kept.notes]
        await journal.append(
            run_id, fence=None, after=after, facts=kept.facts, busy=run.kernel.busy, notes=notes
        )
        after = kept.facts[-1].sequence
