"""A recorded log under judgement: it conforms, or the first line that cannot have happened.

What a log holds, and of which run each line is, `wire.log` says.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from ...models.codec import write
from ...models.errors import InvalidValue
from ...wire.log import Exchange, FactLine, LogReader, Misplaced, Script, TooManyRuns, column_of
from .exchanges import Exchanges
from .impossible import Impossible
from .journal import Journal
from .outcome import Broken, Kind, Outcome, RunCount, Torn

Raw: TypeAlias = dict[str, Any]


def check(lines: Iterable[bytes]) -> Outcome:
    """Judge the lines of a log, each with its line feed; stop at the first that cannot be.

    Raises `TooManyRuns` for more runs than are told apart.
    """
    return _Log().check(lines)


class _Log:
    """The runs of a log, as far as they were judged."""

    def __init__(self) -> None:
        self._reader = LogReader()
        self._journals: dict[str, Journal] = {}
        self._exchanges: dict[str, Exchanges] = {}
        self._scripts: dict[str, RunCount] = {}

    def check(self, lines: Iterable[bytes]) -> Outcome:
        reader = self._reader
        try:
            for entry in reader.entries(lines):
                if isinstance(entry, FactLine):
                    self._journal(entry).take(entry.line, entry.raw)
                elif isinstance(entry, Exchange):
                    self._judge(entry)
                else:
                    self._judge_script(entry)
        except TooManyRuns:
            raise
        except Misplaced as error:
            return self._outcome(self._broken(error.rule, str(error), error.instead))
        except Impossible as error:
            return self._outcome(self._broken(error.rule, error.cause, error.instead))
        except InvalidValue as error:
            return self._outcome(self._unreadable(error))
        return self._outcome(None)

    def _journal(self, entry: FactLine) -> Journal:
        journal = self._journals.get(entry.run.run_id)
        if journal is None:
            journal = Journal(entry.run, declared=entry.declared)
            self._journals[entry.run.run_id] = journal
        return journal

    def _judge(self, entry: Exchange) -> None:
        run_id = entry.run.run_id
        if run_id not in self._exchanges:
            self._exchanges[run_id] = Exchanges(write(entry.run))
        try:
            self._exchanges[run_id].take(entry.delivery, entry.receipt)
        except InvalidValue as error:
            raise error.inside("delivery") from None

    def _judge_script(self, script: Script) -> None:
        """Judge a script by itself: each was played on a fresh run."""
        of = Exchanges(write(script.run))
        for number, (delivery, receipt) in enumerate(script.steps):
            place = f"{script.place}[{number}]"
            try:
                of.take(delivery, receipt)
            except InvalidValue as error:
                raise error.inside(place) from None
            except Impossible as error:
                cause = f"{place}: {error.cause}"
                raise Impossible(rule=error.rule, cause=cause, instead=error.instead) from None
        run_id = script.run.run_id
        before = self._scripts.get(run_id)
        self._scripts[run_id] = RunCount(
            run_id=run_id,
            kind=Kind.SCRIPTS,
            count=of.count + (before.count if before else 0),
            sequence=of.sequence,
        )

    def _broken(self, rule: str, cause: str, instead: tuple[str, ...] = ()) -> Broken:
        run_id = self._reader.raw.get("run_id")
        return Broken(
            line=self._reader.line,
            run_id=run_id if isinstance(run_id, str) else None,
            rule=rule,
            cause=cause,
            instead=instead,
        )

    def _unreadable(self, error: InvalidValue) -> Broken:
        """Tell what is no line of a log; the place of a JSON error is a column of this line."""
        column = column_of(error)
        if column is not None:
            cause = f"{error.cause}; {error.fix}"
            return Broken(line=self._reader.line, column=column, cause=cause)
        return self._broken("section 4" if error.place else "", str(error))

    def _outcome(self, broken: Broken | None) -> Outcome:
        return Outcome(
            lines=self._reader.line,
            runs=(
                *(
                    RunCount(
                        run_id=name, kind=Kind.FACTS, count=of.state.sequence, sequence=of.sequence
                    )
                    for name, of in self._journals.items()
                ),
                *(
                    RunCount(
                        run_id=name, kind=Kind.DELIVERIES, count=of.count, sequence=of.sequence
                    )
                    for name, of in self._exchanges.items()
                ),
                *self._scripts.values(),
            ),
            broken=broken,
            torn=() if broken else tuple(self._torn()),
        )

    def _torn(self) -> Iterable[Torn]:
        line = self._reader.line
        if self._reader.torn:
            yield Torn(line=line, cause="the log breaks off inside this line")
        for name, of in self._journals.items():
            if of.incomplete:
                cause = (
                    f"run {name!r} ends inside a commit: a recovery drops what comes after fact "
                    f"{of.sequence}"
                )
                yield Torn(line=line, run_id=name, incomplete=of.incomplete, cause=cause)
