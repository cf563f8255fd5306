"""What `diagram` is given to draw, told apart by its first line, and read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import partial
from itertools import chain, repeat
from typing import Any, Final, cast

import attrs

from ..diagrams.coverage import MARK, Counts, counts_in
from ..diagrams.recordings.reading import read_recordings, recording_of
from ..diagrams.recordings.recorder import Recorder
from ..diagrams.recordings.recording import Recording
from ..diagrams.sequence.counterexample import Listed, findings_in, regression_picture
from ..diagrams.sequence.picture import SequencePicture
from ..models.errors import InvalidValue
from ..models.facts import TurnOpened
from ..models.safe_text import harmless
from ..models.strict_json import parse
from ..runtime.journal.places import shown_place
from ..verification.replay.host import Settings, replay_conversation, run_of
from ..verification.replay.lines import Problems, numbered_lines, unique
from ..verification.replay.recording import Conversation, read_recording
from ..verification.replay.tally import Tally
from .databases import entries_of_db, facts_of_db
from .diagram_output import Unreadable


class Kind(StrEnum):
    """What a file is."""

    LOG = "log"
    """Facts, or deliveries with their receipts, or the wire: what `turnlock check` reads."""
    CONVERSATIONS = "conversations"
    """Tool batches, which are replayed: what `turnlock replay` reads."""
    DOCUMENT = "document"
    """One JSON object: a report of `turnlock verify --json`, or counts."""
    REGRESSION = "regression"
    """A script that once showed a violation, kept as a file."""


_LOG_KEYS: Final = frozenset({"type", "delivery", "run", "scripts", "error"})
_CONVERSATION_KEYS: Final = frozenset({"conv"})
_REGRESSION_KEYS: Final = frozenset({"rule", "run"})
_DOCUMENT_KEYS: Final = frozenset({"format", MARK})
_WANTED: Final = (
    "give a log as `turnlock check` reads it, a recording as `turnlock replay` reads it, "
    "or what `turnlock verify --json` wrote"
)


@attrs.frozen
class Source:
    """A file that was begun: what it is, and all its lines that are not blank, with numbers."""

    file: str
    kind: Kind
    numbered: Iterator[tuple[int, bytes]]

    def lines(self) -> Iterator[bytes]:
        """Yield the lines, with blank ones where there were some: so their numbers are right."""
        passed = 0
        for number, line in self.numbered:
            yield from repeat(b"\n", number - passed - 1)
            yield line
            passed = number

    def whole(self) -> bytes:
        """Return the text of the file."""
        return b"".join(self.lines())


def source_of(file: str, problems: Problems) -> Source:
    """Begin to read a file, or standard input for ``-``. Raises `Unreadable`."""
    numbered = numbered_lines(file, problems)
    first = next(numbered, None)
    if first is None:
        cause = next(problems.lines(), f"{harmless(file)}: holds nothing; {_WANTED}")
        raise Unreadable(cause)
    number, line = first
    kind = _kind(line)
    if kind is None:
        raise Unreadable(f"{harmless(file)}:{number}: is nothing that can be drawn; {_WANTED}")
    return Source(file, kind, chain([first], numbered))


def _kind(line: bytes) -> Kind | None:
    if line.strip() == b"{":
        return Kind.DOCUMENT
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    keys = cast("dict[str, Any]", value).keys()
    if keys >= _REGRESSION_KEYS:
        return Kind.REGRESSION
    for kind, known in (
        (Kind.CONVERSATIONS, _CONVERSATION_KEYS),
        (Kind.DOCUMENT, _DOCUMENT_KEYS),
        (Kind.LOG, _LOG_KEYS),
    ):
        if keys & known:
            return kind
    return None


@attrs.frozen
class Candidate:
    """A run that can be drawn: how large it is, in turns or facts, and how to get it."""

    size: int
    record: Callable[[], Recording]


def candidates_of_db(db: str) -> dict[str, Candidate]:
    """Return the runs of a journal file by their ids; each is read when it is asked for."""
    found = {
        entry.run.run_id: Candidate(entry.sequence, partial(_kept, db, entry.run.run_id))
        for entry in entries_of_db(db)
    }
    if not found:
        raise Unreadable(
            f"{harmless(shown_place(db))}: holds no run yet; `turnlock run --db` begins one"
        )
    return found


def _kept(db: str, run_id: str) -> Recording:
    run, facts = facts_of_db(db, run_id)
    return recording_of(run, facts)


def candidates_of(
    source: Source, problems: Problems, settings: Settings, tally: Tally
) -> dict[str, Candidate]:
    """Return the runs of a log or a recording by their ids, in order.

    A recorded conversation is replayed when it is asked for; what fails then goes to the tally.
    """
    if source.kind is Kind.LOG:
        return _logged(source, problems)
    found = read_recording(source.file, problems, source.numbered).conversations
    return {
        one.run_id: Candidate(len(one.turns), partial(_replayed, one, settings, tally))
        for one in found
    }


def _logged(source: Source, problems: Problems) -> dict[str, Candidate]:
    def torn(line: int, cause: str) -> None:
        problems.add(
            file=source.file, line=line, cause=cause, fix="it was drawn without; give the whole log"
        )

    try:
        recordings = read_recordings(source.lines(), name=source.file, torn=torn)
    except InvalidValue as error:
        raise Unreadable(harmless(str(error))) from error
    if not recordings:
        raise Unreadable(f"{harmless(source.file)}: holds no run; {_WANTED}")
    taken: dict[str, int] = {}
    return {
        unique(one.run.run_id, taken): Candidate(
            sum(isinstance(fact, TurnOpened) for fact in one.facts), partial(_itself, one)
        )
        for one in recordings
    }


def _itself(recording: Recording) -> Recording:
    return recording


def _replayed(conversation: Conversation, settings: Settings, tally: Tally) -> Recording:
    """Replay a conversation as `turnlock replay` does, and return what its kernel received."""
    recorder = Recorder(run_of(conversation))
    replay_conversation(
        conversation,
        settings,
        tally,
        lambda delivery, verdict, now, _: recorder.observe(delivery, verdict, now),
    )
    return recorder.recording()


def findings_of(source: Source) -> dict[str, Listed]:
    """Return the findings of a report by their ids. Raises `Unreadable`."""
    try:
        report = parse(source.whole())
        if not isinstance(report, dict):
            raise Unreadable(f"{harmless(source.file)}: is no JSON object; {_WANTED}")
        found = findings_in(cast("dict[str, Any]", report))
    except InvalidValue as error:
        raise _unreadable(source, error) from error
    if not found:
        raise Unreadable(f"{harmless(source.file)}: holds no finding: there is nothing to draw")
    return {one.id: one for one in found}


def regression_of(source: Source) -> SequencePicture:
    """Return the picture of a kept script. Raises `Unreadable`."""
    try:
        return regression_picture(source.whole().decode("utf-8", "replace"))
    except InvalidValue as error:
        raise _unreadable(source, error) from error


def counts_of(source: Source) -> Counts:
    """Return the counts that a report or a coverage file holds. Raises `Unreadable`."""
    try:
        counts = counts_in(source.whole(), name=source.file)
    except InvalidValue as error:
        raise Unreadable(harmless(str(error))) from error
    if counts is None:
        raise Unreadable(
            f"{harmless(source.file)}: is neither a report of `turnlock verify --json` nor a "
            "coverage file; give one"
        )
    return counts


def _unreadable(source: Source, error: InvalidValue) -> Unreadable:
    return Unreadable(harmless(f"{source.file}: {error}"))
