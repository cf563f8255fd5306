"""Logs read into recordings: the same forms that `turnlock check` judges, one JSON object a line.

- a fact as the journal holds it, and diagnostics between them, which say what was refused;
- a delivery with its receipt: ``{"run_id": "r", "delivery": {…, "now": …}, "receipt": {…}}``;
- what was said on the wire: a request, and later its answer; each script is a run, ``r#1`` …;
- ``{"run": {"run_id": "r", "limits": {…}, …}}`` before the first line of a run: its configuration.

Runs may be interleaved. Blank lines are passed over. A journal is grouped into its commits and
folded as a recovery folds it: the incomplete last commit is left out (K-9), and so is a last line
that breaks off before its line feed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, cast

from ...models.codec import Raw, read, read_fact, upgraded
from ...models.errors import InvalidValue, shown
from ...models.run import Run
from ...models.strict_json import parse
from .exchanges import Exchanges
from .journal import DIAGNOSTIC_TYPES, Journal, read_diagnostic
from .messages import Messages
from .recording import Recording

FORMS: Final = "a fact, a diagnostic, a delivery with its receipt, a run, or a message of the wire"
UNNAMED: Final = "run"
"""The run of a log that never says which run it is."""

_DELIVERED: Final = {"delivery", "receipt", "run_id"}


def read_recordings(lines: Iterable[bytes], *, name: str) -> tuple[Recording, ...]:
    """Read a log, each line with its line feed, and return its runs, the first to appear first.

    `name` is what messages call the log. Raises `InvalidValue` with the line in its place
    (``name:12``) for what is no line of a log, and for a fact that cannot have happened there.
    """
    log = _Log()
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text:
            continue
        try:
            raw = parse(text)
        except InvalidValue as error:
            if text.startswith(b"{") and not line.endswith(b"\n"):
                break
            column = error.place.removeprefix("line 1 ")
            raise error_at(f"{name}:{number} {column}", error) from None
        try:
            log.take(raw)
        except InvalidValue as error:
            where = f"{name}:{number}"
            raise error_at(f"{where} {error.place}" if error.place else where, error) from None
    return tuple(run.recording() for run in log.runs)


def error_at(place: str, error: InvalidValue) -> InvalidValue:
    """Return the same error at another place."""
    return InvalidValue(place=place, cause=error.cause, fix=error.fix)


class _Log:
    """A log as far as it was read; `runs` stand in the order in which they appeared."""

    def __init__(self) -> None:
        self.runs: list[Journal | Exchanges] = []
        self._declared: dict[str, Run] = {}
        self._journals: dict[str, Journal] = {}
        self._exchanges: dict[str, Exchanges] = {}
        self._messages = Messages()

    def take(self, raw: object) -> None:
        if not isinstance(raw, dict):
            raise InvalidValue(place="", cause=f"{shown(raw)} is no JSON object", fix=FORMS)
        fields = cast("Raw", raw)
        if "type" in fields:
            self._take_typed(fields)
        elif "delivery" in fields:
            self._take_delivery(fields)
        elif "scripts" in fields or "error" in fields:
            self.runs += self._messages.take(fields)
        elif "run" in fields:
            self._declare(read(Run, fields["run"], place="run"))
        else:
            raise InvalidValue(place="", cause="is no line of a log", fix=f"give {FORMS}")

    def _take_typed(self, fields: Raw) -> None:
        fields = upgraded(fields)
        if str(fields["type"]) in DIAGNOSTIC_TYPES:
            told = read_diagnostic(fields)
            self._journal_of(told.run_id).note(told)
        else:
            fact = read_fact(fields)
            self._journal_of(fact.run_id).take(fact)

    def _journal_of(self, run_id: str) -> Journal:
        journal = self._journals.get(run_id)
        if journal is None:
            declared = self._declared.get(run_id)
            run = declared or read(Run, {"run_id": run_id})
            journal = self._journals[run_id] = Journal(run, declared=declared is not None)
            self.runs.append(journal)
        return journal

    def _take_delivery(self, raw: Raw) -> None:
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
        self._exchanges_of(raw).take(raw["delivery"], raw["receipt"])

    def _exchanges_of(self, raw: Raw) -> Exchanges:
        """Find the run that a delivery was received by: by name, or the only one there is."""
        known = {*self._declared, *self._exchanges}
        run_id = raw.get("run_id")
        if run_id is None and len(known) > 1:
            raise InvalidValue(
                place="run_id",
                cause="is missing, and the log holds several runs",
                fix=f"give one of {', '.join(map(shown, sorted(known)[:3]))} …",
            )
        if run_id is None:
            run_id = next(iter(known), None) or raw["delivery"].get("run_id") or UNNAMED
        run = read(Run, {"run_id": run_id})
        exchanges = self._exchanges.get(run.run_id)
        if exchanges is None:
            run = self._declared.get(run.run_id, run)
            exchanges = self._exchanges[run.run_id] = Exchanges(run)
            self.runs.append(exchanges)
        return exchanges

    def _declare(self, run: Run) -> None:
        begun = run.run_id in self._journals or run.run_id in self._exchanges
        known = self._declared.get(run.run_id)
        if (begun and known is None) or (known is not None and known != run):
            raise InvalidValue(
                place="run",
                cause=f"run {run.run_id!r} was configured otherwise before",
                fix="give the configuration once, before the first line of the run",
            )
        self._declared[run.run_id] = run
