"""A recorded log: whose line each one is, and the first that cannot have happened.

One JSON object a line, in the order in which things happened:

- a fact as the journal holds it: ``{"version": 1, "type": "TURN_OPENED", "run_id": …, …}``;
- a delivery with its receipt: ``{"run_id": "r", "delivery": {"type": …, "now": …, …}, "receipt":
  {"accepted": …, …}}``; `run_id` says whose kernel answered, and may be left out while the log
  holds one run;
- what was said on the wire (section 12): a request, and later its answer, matched by `id`; each
  script is a run of its own;
- ``{"run": {"run_id": "r", "limits": {…}, "agent_id": …}}``, before the first line of a run: how it
  was configured. Without it a run has the default limits.

Runs may be interleaved: each is judged by itself. Blank lines are passed over.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeAlias, cast

import msgspec

from ...models.codec import fact_from_json, read, write
from ...models.errors import InvalidValue, TurnlockError, shown
from ...models.run import Run
from ...models.strict_json import parse
from .exchanges import Exchanges
from .impossible import Impossible
from .journal import Journal
from .outcome import Broken, Kind, Outcome, RunCount, Torn
from .wire_lines import WireLines

Raw: TypeAlias = dict[str, Any]

RUNS: Final = 100_000
"""Runs of one log that are held at once: each costs what its state costs (K-6)."""

_decode: Final = msgspec.json.Decoder().decode
_FORMS: Final = "a fact, a delivery with its receipt, a run, or a message of the wire"


class TooManyRuns(TurnlockError):
    """A log of more runs than are held at once."""


def check(lines: Iterable[bytes]) -> Outcome:
    """Judge the lines of a log, each with its line feed; stop at the first that cannot be.

    Raises `TooManyRuns` for more than `RUNS` runs.
    """
    return Log().check(lines)


class Log:
    """A log under judgement."""

    def __init__(self) -> None:
        """Begin before the first line."""
        self._declared: dict[str, Run] = {}
        self._journals: dict[str, Journal] = {}
        self._exchanges: dict[str, Exchanges] = {}
        self._wire = WireLines()
        self._lines = 0

    def check(self, lines: Iterable[bytes]) -> Outcome:
        """Judge all lines, or as many as conform."""
        for line in lines:
            self._lines += 1
            text = line.strip()
            broken = self._judged(text) if text else None
            if broken is None:
                continue
            if broken.column is not None and text.startswith(b"{") and not line.endswith(b"\n"):
                torn = Torn(line=self._lines, cause="the log breaks off inside this line")
                return self._outcome(None, torn)
            return self._outcome(broken)
        return self._outcome(None)

    def _judged(self, line: bytes) -> Broken | None:
        raw: Raw = {}
        try:
            raw = _object(line)
            self._take(line, raw)
        except Impossible as error:
            return self._broken(raw, error)
        except InvalidValue as error:
            return self._unreadable(raw, error)
        return None

    def _take(self, line: bytes, raw: Raw) -> None:
        if "type" in raw:
            self._take_fact(line, raw)
            return
        raw = cast("Raw", parse(line))  # the quick parser lets the last of two equal keys win
        if "delivery" in raw:
            self._take_delivery(raw)
        elif "scripts" in raw or "error" in raw:
            self._wire.take(raw)
        elif "run" in raw:
            self._declare(raw)
        else:
            raise InvalidValue(place="", cause=f"is neither {_FORMS}", fix=f"give {_FORMS}")

    def _take_fact(self, line: bytes, raw: Raw) -> None:
        run_id = raw.get("run_id")
        journal = self._journals.get(run_id) if isinstance(run_id, str) else None
        if journal is None:
            run = Run(run_id=fact_from_json(line).run_id)
            declared = self._declared.get(run.run_id)
            journal = Journal(declared or run, declared=declared is not None)
            self._journals[run.run_id] = journal
            self._bound()
        journal.take(line, raw)

    def _take_delivery(self, raw: Raw) -> None:
        unknown = raw.keys() - {"delivery", "receipt", "run_id"}
        if unknown:
            raise InvalidValue(
                place=min(unknown), cause="is no known field here", fix="leave it out"
            )
        for name in ("delivery", "receipt"):
            if not isinstance(raw.get(name), dict):
                raise InvalidValue(
                    place=name, cause="is no JSON object", fix="give it as on the wire"
                )
        exchanges = self._whose(raw)
        try:
            exchanges.take(raw["delivery"], raw["receipt"])
        except InvalidValue as error:
            raise error.inside("delivery") from None

    def _whose(self, raw: Raw) -> Exchanges:
        """Find the run that a delivery was received by: by name, or the only one there is."""
        run_id = raw.get("run_id")
        known = {*self._declared, *self._exchanges}
        if run_id is None and len(known) > 1:
            raise Impossible(
                rule="section 5",
                cause="the log holds several runs, and this line does not say whose it is",
                instead=tuple(f'"run_id": {name!r}' for name in sorted(known)[:3]),
            )
        if run_id is None:
            run_id = next(iter(known), None) or _run_named_in(raw)
        run = read(Run, {"run_id": run_id})
        exchanges = self._exchanges.get(run.run_id)
        if exchanges is None:
            declared = self._declared.get(run.run_id, run)
            exchanges = self._exchanges[run.run_id] = Exchanges(write(declared))
            self._bound()
        return exchanges

    def _declare(self, raw: Raw) -> None:
        run = read(Run, raw["run"], place="run")
        begun = run.run_id in self._journals or run.run_id in self._exchanges
        if self._declared.get(run.run_id, run) != run or (
            begun and run.run_id not in self._declared
        ):
            raise Impossible(
                rule="section 4",
                cause=f"run {run.run_id!r} was configured otherwise before",
                instead=("the configuration once, before the first line of the run",),
            )
        self._declared[run.run_id] = run
        self._bound()

    def _bound(self) -> None:
        if len(self._journals) + len(self._exchanges) > RUNS or len(self._declared) > RUNS:
            raise TooManyRuns(f"the log holds more than {RUNS:,} runs; split it by run_id")

    def _broken(self, raw: Raw, error: Impossible) -> Broken:
        return Broken(
            line=self._lines,
            run_id=_text_or_none(raw.get("run_id")),
            rule=error.rule,
            cause=error.cause,
            instead=error.instead,
        )

    def _unreadable(self, raw: Raw, error: InvalidValue) -> Broken:
        """Tell what is no line of a log; the place of a JSON error is a column of this line."""
        where, _, column = error.place.partition("line 1 column ")
        if column and not where:
            cause = f"{error.cause}; {error.fix}"
            return Broken(line=self._lines, column=int(column), cause=cause)
        return Broken(
            line=self._lines,
            run_id=_text_or_none(raw.get("run_id")),
            rule="section 4" if error.place else "",
            cause=str(error),
        )

    def _outcome(self, broken: Broken | None, *torn: Torn) -> Outcome:
        runs = [
            *(
                _counted(name, Kind.FACTS, of, of.state.sequence)
                for name, of in self._journals.items()
            ),
            *(
                _counted(name, Kind.DELIVERIES, of, of.count)
                for name, of in self._exchanges.items()
            ),
            *self._wire.runs,
        ]
        cuts = (
            Torn(
                line=self._lines,
                run_id=name,
                incomplete=of.incomplete,
                cause=f"run {name!r} ends inside a commit: a recovery drops what comes after "
                f"fact {of.sequence}",
            )
            for name, of in self._journals.items()
            if of.incomplete
        )
        return Outcome(
            lines=self._lines,
            runs=tuple(runs),
            broken=broken,
            torn=() if broken else (*torn, *cuts),
        )


def _counted(run_id: str, kind: Kind, of: Journal | Exchanges, count: int) -> RunCount:
    return RunCount(run_id=run_id, kind=kind, count=count, sequence=of.sequence)


def _object(line: bytes) -> Raw:
    try:
        raw = _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raw = parse(line)  # says where it is no JSON, in line and column
    if not isinstance(raw, dict):
        raise InvalidValue(place="", cause=f"{shown(raw)} is no JSON object", fix=_FORMS)
    return cast("Raw", raw)


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _run_named_in(raw: Raw) -> object:
    """Return the run that a delivery or its facts name, for the first line of a log."""
    receipt: Raw = raw["receipt"]
    facts: list[Raw] = receipt.get("facts") or [{}]
    return raw["delivery"].get("run_id") or facts[0].get("run_id")
