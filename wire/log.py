"""Recorded logs, read line by line: what each line says, and of which run.

One JSON object a line, in the order in which things happened:

- a fact as the journal holds it: ``{"version": 1, "type": "TURN_OPENED", "run_id": …, …}``, and
  diagnostics between facts, which say what was refused or logged;
- a delivery with its receipt: ``{"run_id": "r", "delivery": {"type": …, "now": …, …}, "receipt":
  {"accepted": …, …}}``; `run_id` says whose kernel answered, and may be left out while the log
  holds one run;
- what was said on the wire (section 12): a request, and later its answer, matched by `id`; each
  script is a run of its own, and a request that was answered with an error has none;
- ``{"run": {"run_id": "r", "limits": {…}, "agent_id": …}}``, before the first line of a run: how it
  was configured. Without it a run has the default limits;
- ``{"note": {"run_id": "r", "cursor": "3.1", "at": …, "domain": …, "kind": …, "body": {…}}}``, some
  with an `id` and a `correlation`: what a journal kept beside a run's facts. It is read, and passed
  over, as is what version 0.1 wrote, before the facts: ``{"run_id": "r", "name": …, "value": …}``.

Runs may be interleaved: `run_id` tells them apart. Blank lines are passed over. What the lines
amount to is for the caller to say: `turnlock check` judges them, `turnlock diagram` draws them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias, cast

import attrs
import msgspec

from ..models.codec import fact_from_json, read, upgraded
from ..models.diagnostics import DIAGNOSTICS, Diagnostic
from ..models.errors import InvalidValue, shown
from ..models.facts import Fact
from ..models.run import Run
from ..models.strict_json import parse
from ..models.values import canonical
from .plain import scripts_of

Raw: TypeAlias = dict[str, Any]

RUNS: Final = 100_000
"""Runs of one log that are told apart: each costs its reader what its state costs (K-6)."""
PENDING: Final = 1_000
"""Requests that may wait for their answer (K-6)."""
UNNAMED: Final = "run"
"""The run of a log that never says which run it is."""
FORMS: Final = (
    "a fact, a diagnostic, a delivery with its receipt, a run, a note, or a message of the wire"
)

_DIAGNOSTICS: Final[dict[str, type[Diagnostic]]] = {cls.type: cls for cls in DIAGNOSTICS}
_DELIVERED: Final = {"delivery", "receipt", "run_id"}
_NAMED: Final = {"run_id", "name", "value"}
"""The fields of a note of version 0.1."""
_NOTED: Final = {"run_id", "cursor", "at", "domain", "kind", "body"}
_NOTED_TOO: Final = {"id", "correlation"}
_decode: Final = msgspec.json.Decoder().decode


class Misplaced(InvalidValue):
    """A line that is well formed and cannot stand where it does.

    `rule` is the section of kernel.md that says so; `instead` names what could have stood there.
    """

    def __init__(
        self, *, place: str, cause: str, fix: str, rule: str, instead: tuple[str, ...] = ()
    ) -> None:
        """Keep the parts; the message is that of an invalid value."""
        super().__init__(place=place, cause=cause, fix=fix)
        self.rule = rule
        self.instead = instead


class TooManyRuns(InvalidValue):
    """A log of more runs than are told apart."""


@attrs.frozen(kw_only=True)
class FactLine:
    """A fact, or a diagnostic between facts; `raw` is the line as a quick parser reads it.

    `declared` says whether the log configured the run, or it has the default limits.
    """

    run: Run
    declared: bool
    line: bytes
    raw: Raw

    def record(self) -> Fact | Diagnostic:
        """Build it strictly. Raises `InvalidValue`."""
        return _record(self.line)


@attrs.frozen(kw_only=True)
class Exchange:
    """A delivery, and the receipt that somebody's kernel gave; neither is read yet."""

    run: Run
    delivery: Raw
    receipt: Raw


@attrs.frozen(kw_only=True)
class Script:
    """One script of a request with its receipts, at `place` in it.

    It is a run by itself, the one of this `number`, from 1, of all scripts of runs of that id.
    """

    run: Run
    number: int
    place: str
    steps: tuple[tuple[Raw, Raw], ...]


Entry: TypeAlias = FactLine | Exchange | Script


class LogReader:
    """A log as far as it was read."""

    def __init__(self) -> None:
        """Begin before the first line."""
        self.line = 0
        """The number of the line that was read last, from 1."""
        self.raw: Raw = {}
        """What stands in it; empty for what is no object."""
        self.torn = False
        """Whether the log breaks off inside its last line."""
        self._declared: dict[str, Run] = {}
        self._told: dict[str, Run] = {}
        self._exchanged: dict[str, Run] = {}
        self._asked: dict[str, Raw] = {}
        self._counts: dict[str, int] = {}

    def entries(self, lines: Iterable[bytes]) -> Iterator[Entry]:
        """Yield what the lines say, each line with its line feed.

        Raises `InvalidValue` for what is no line of a log (of an error in JSON the place is
        ``line 1 column N``), `Misplaced` where it cannot stand, `TooManyRuns`. A last line without
        a line feed that breaks off ends the log: it is `torn`.
        """
        for line in lines:
            self.line += 1
            text = line.strip()
            if not text:
                continue
            self.raw = {}
            try:
                self.raw = raw = _object(text)
            except InvalidValue as error:
                if column_of(error) and text.startswith(b"{") and not line.endswith(b"\n"):
                    self.torn = True
                    return
                raise
            if "type" in raw:
                yield self._fact(text, raw)
            elif "delivery" in raw:
                yield self._exchange(raw)
            elif "scripts" in raw or "error" in raw:
                yield from self._said(raw)
            elif "run" in raw:
                self._declare(read(Run, raw["run"], place="run"))
            elif "note" in raw:
                _check_note(raw["note"])
            else:
                raise InvalidValue(place="", cause="is no line of a log", fix=f"give {FORMS}")

    def _fact(self, line: bytes, raw: Raw) -> FactLine:
        run_id = raw.get("run_id")
        run = self._told.get(run_id) if isinstance(run_id, str) else None
        if run is None:
            run_id = _record(line).run_id
            run = self._told[run_id] = self._declared.get(run_id) or Run(run_id=run_id)
            self._bound()
        return FactLine(run=run, declared=run.run_id in self._declared, line=line, raw=raw)

    def _exchange(self, raw: Raw) -> Exchange:
        unknown = raw.keys() - _DELIVERED
        if unknown:
            raise InvalidValue(
                place=min(unknown), cause="is no known field here", fix="leave it out"
            )
        for name in ("delivery", "receipt"):
            if not isinstance(raw.get(name), dict):
                raise InvalidValue(
                    place=name, cause="is no JSON object", fix="give it as on the wire"
                )
        return Exchange(run=self._whose(raw), delivery=raw["delivery"], receipt=raw["receipt"])

    def _whose(self, raw: Raw) -> Run:
        """Find the run that a delivery was received by: by name, or the only one there is."""
        known = {*self._declared, *self._exchanged}
        run_id = raw.get("run_id")
        if run_id is None and len(known) > 1:
            some = sorted(known)[:3]
            raise Misplaced(
                place="run_id",
                cause="is missing, and the log holds several runs: it does not say whose it is",
                fix=f"give one of {', '.join(map(shown, some))} …",
                rule="section 5",
                instead=tuple(f'"run_id": {name!r}' for name in some),
            )
        if run_id is None:
            run_id = next(iter(known), None) or _run_named_in(raw) or UNNAMED
        run = read(Run, {"run_id": run_id})
        if run.run_id not in self._exchanged:
            self._exchanged[run.run_id] = self._declared.get(run.run_id, run)
            self._bound()
        return self._exchanged[run.run_id]

    def _declare(self, run: Run) -> None:
        begun = run.run_id in self._told or run.run_id in self._exchanged
        known = self._declared.get(run.run_id)
        if known not in {None, run} or (begun and known is None):
            raise Misplaced(
                place="run",
                cause=f"run {run.run_id!r} was configured otherwise before",
                fix="give the configuration once, before the first line of the run",
                rule="section 4",
                instead=("the configuration once, before the first line of the run",),
            )
        self._declared[run.run_id] = run
        self._bound()

    def _bound(self) -> None:
        if max(len(self._told) + len(self._exchanged), len(self._declared)) > RUNS:
            raise TooManyRuns(
                place="run_id",
                cause=f"the log holds more than {RUNS:,} runs",
                fix="split it by run_id",
            )

    def _said(self, message: Raw) -> Iterable[Script]:
        """Keep a request, or return the scripts of an answer."""
        name = canonical(message.get("id"))
        if "run" in message:
            if len(self._asked) >= PENDING:
                raise InvalidValue(
                    place="id",
                    cause=f"more than {PENDING:,} requests wait for an answer",
                    fix="give each answer after its request",
                )
            self._asked[name] = message
            return ()
        request = self._asked.pop(name, None)
        if request is None:
            raise Misplaced(
                place="id",
                cause=f"no request {shown(message.get('id'))} waits for an answer",
                fix="give each answer once, after its request",
                rule="section 12",
                instead=tuple(f"the answer to request {asked}" for asked in self._asked)[:3],
            )
        return () if "error" in message else self._answered(request, message)

    def _answered(self, request: Raw, answer: Raw) -> Iterator[Script]:
        run = read(Run, request["run"], place="run")
        scripts, receipts = scripts_of(request), scripts_of(answer)
        if list(map(len, scripts)) != list(map(len, receipts)):
            raise Misplaced(
                place="scripts",
                cause="there is not one receipt for each delivery of the request",
                fix="give the whole answer",
                rule="section 12",
            )
        for place, steps in enumerate(zip(scripts, receipts, strict=True)):
            number = self._counts[run.run_id] = self._counts.get(run.run_id, 0) + 1
            yield Script(
                run=run,
                number=number,
                place=f"scripts[{place}]",
                steps=tuple(zip(*steps, strict=True)),
            )


def _check_note(note: object) -> None:
    """Raise `InvalidValue` for what no journal notes; whose note it is makes no difference."""
    fields = cast("Raw", note if isinstance(note, dict) else {})
    if fields.keys() == _NAMED:
        fits = _are_texts(fields, "run_id", "name")
    else:
        texts = ("run_id", "cursor", "domain", "kind", *(["id"] if "id" in fields else []))
        fits = (
            fields.keys() - _NOTED_TOO == _NOTED
            and _are_texts(fields, *texts)
            and type(fields["at"]) in {int, float}
            and all(
                isinstance(fields[name], dict) for name in ("body", "correlation") if name in fields
            )
        )
    if not fits:
        raise InvalidValue(
            place="note",
            cause="is no note",
            fix="give its run_id, cursor, domain and kind as texts, at, its body, and an id and a"
            " correlation if it has them",
        )


def _are_texts(fields: Raw, *names: str) -> bool:
    return all(isinstance(fields.get(name), str) for name in names)


def column_of(error: InvalidValue) -> int | None:
    """Return at which column of its line there is no JSON; None for any other error."""
    before, found, column = error.place.partition("line 1 column ")
    return int(column) if found and not before else None


def _object(line: bytes) -> Raw:
    """Read a line; the quick parser lets the last of two equal keys win, so only facts trust it."""
    try:
        raw = _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raw = parse(line)  # says where it is no JSON
    if not isinstance(raw, dict):
        raise InvalidValue(place="", cause=f"{shown(raw)} is no JSON object", fix=f"give {FORMS}")
    fields = cast("Raw", raw)
    return fields if "type" in fields else cast("Raw", parse(line))


def _record(line: bytes) -> Fact | Diagnostic:
    raw = upgraded(parse(line))
    kind = raw.get("type")
    if isinstance(kind, str) and kind in _DIAGNOSTICS:
        return read(_DIAGNOSTICS[kind], raw)
    return fact_from_json(line)


def _run_named_in(raw: Raw) -> object:
    """Return the run that a delivery or its facts name, for the first line of a log."""
    try:
        named: object = raw["receipt"]["facts"][0]["run_id"]
    except (LookupError, TypeError):
        named = None
    return raw["delivery"].get("run_id") or named
