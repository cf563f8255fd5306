"""What was said on the wire (section 12): requests, and later their answers, matched by `id`."""

from __future__ import annotations

from typing import Final

from ...models.codec import Raw, read
from ...models.errors import InvalidValue, shown
from ...models.record import changed
from ...models.run import Run
from ...models.values import canonical
from ...wire.plain import scripts_of
from .exchanges import Exchanges

PENDING: Final = 1_000
"""Requests that may wait for their answer (K-6)."""


class Messages:
    """The requests that wait, and the scripts that were answered, each a run of its own."""

    def __init__(self) -> None:
        """Begin without any."""
        self._asked: dict[str, Raw] = {}
        self._counts: dict[str, int] = {}

    def take(self, message: Raw) -> list[Exchanges]:
        """Keep a request, or return the scripts of an answer. Raises `InvalidValue`.

        Scripts are told apart by their run's id: the n-th of run ``r`` is ``r#n``. A request that
        was answered with an error, or never, has none.
        """
        name = canonical(message.get("id"))
        if "run" in message:
            self._ask(name, message)
            return []
        request = self._asked.pop(name, None)
        if request is None:
            raise InvalidValue(
                place="id",
                cause=f"no request {shown(message.get('id'))} waits for an answer",
                fix="give each answer once, after its request",
            )
        return [] if "error" in message else self._answered(request, message)

    def _ask(self, name: str, message: Raw) -> None:
        if len(self._asked) >= PENDING:
            raise InvalidValue(
                place="id",
                cause=f"more than {PENDING:,} requests wait for an answer",
                fix="give each answer after its request",
            )
        self._asked[name] = message

    def _answered(self, request: Raw, answer: Raw) -> list[Exchanges]:
        run = read(Run, request["run"], place="run")
        scripts, receipts = scripts_of(request), scripts_of(answer)
        if [len(script) for script in scripts] != [len(answered) for answered in receipts]:
            raise InvalidValue(
                place="scripts",
                cause="there is not one receipt for each delivery of the request",
                fix="give the whole answer",
            )
        made: list[Exchanges] = []
        for place, (script, answered) in enumerate(zip(scripts, receipts, strict=True)):
            count = self._counts[run.run_id] = self._counts.get(run.run_id, 0) + 1
            of = Exchanges(changed(run, run_id=f"{run.run_id}#{count}"))
            for step, (delivery, receipt) in enumerate(zip(script, answered, strict=True)):
                try:
                    of.take(delivery, receipt)
                except InvalidValue as error:
                    raise error.inside(f"scripts[{place}][{step}]") from None
            made.append(of)
        return made
