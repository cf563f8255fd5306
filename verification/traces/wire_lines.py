"""What was said on the wire (kernel.md section 12): requests, and later their answers.

Each script of a request was played on a fresh run, and is judged so. A request that was answered
with an error is passed over: what makes a request malformed is not for the oracle to say.
"""

from __future__ import annotations

from typing import Final

from ...models.codec import read, write
from ...models.errors import InvalidValue
from ...models.run import Run
from ...wire.plain import Raw, scripts_of
from ..oracle.reading import canonical
from .exchanges import Exchanges
from .impossible import Impossible
from .outcome import Kind, RunCount

PENDING: Final = 1_000
"""Requests that may wait for their answer (K-6)."""


class WireLines:
    """The requests that wait, and what was judged of each run."""

    def __init__(self) -> None:
        """Begin without any."""
        self._asked: dict[str, Raw] = {}
        self._counts: dict[str, int] = {}
        self._reached: dict[str, int] = {}

    @property
    def runs(self) -> list[RunCount]:
        """What was judged of each run that requests named, all its scripts together."""
        return [
            RunCount(run_id=run_id, kind=Kind.SCRIPTS, count=count, sequence=self._reached[run_id])
            for run_id, count in self._counts.items()
        ]

    def take(self, message: Raw) -> None:
        """Keep a request, or judge an answer. Raises `Impossible` and `InvalidValue`."""
        name = canonical(message.get("id"))
        if "run" in message:
            if len(self._asked) >= PENDING:
                raise InvalidValue(
                    place="id",
                    cause=f"more than {PENDING} requests wait for an answer",
                    fix="give each answer after its request",
                )
            self._asked[name] = message
            return
        request = self._asked.pop(name, None)
        if request is None:
            raise Impossible(
                rule="section 12",
                cause=f"it answers request {name}, and none of that id waits",
                instead=tuple(f"the answer to request {asked}" for asked in self._asked)[:3],
            )
        if "error" not in message:
            self._judge(request, message)

    def _judge(self, request: Raw, answer: Raw) -> None:
        run = write(read(Run, request["run"], place="run"))
        scripts, receipts = scripts_of(request), scripts_of(answer)
        if [len(script) for script in scripts] != [len(answered) for answered in receipts]:
            raise Impossible(
                rule="section 12", cause="it does not hold one receipt for each delivery"
            )
        for place, (script, answered) in enumerate(zip(scripts, receipts, strict=True)):
            of = Exchanges(run)
            for step, (delivery, receipt) in enumerate(zip(script, answered, strict=True)):
                _taken(of, delivery, receipt, f"scripts[{place}][{step}]")
            run_id = run["run_id"]
            self._counts[run_id] = self._counts.get(run_id, 0) + of.count
            self._reached[run_id] = of.sequence


def _taken(of: Exchanges, delivery: Raw, receipt: Raw, place: str) -> None:
    try:
        of.take(delivery, receipt)
    except InvalidValue as error:
        raise error.inside(place) from None
    except Impossible as error:
        cause = f"{place}: {error.cause}"
        raise Impossible(rule=error.rule, cause=cause, instead=error.instead) from None
