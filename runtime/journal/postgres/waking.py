"""Somebody is woken in the very transaction that keeps a turn (D-72).

`on_busy` is a statement of the user. It reads a table `busy`, which has a row for each run in
which an append has opened a turn that is under way afterwards:

    SELECT dbos.enqueue_workflow(…, workflow_id => 'turnlock:' || run_key || ':' || turn_epoch,
                                 positional_args => ARRAY[run_id::json]) FROM busy

- `run_id text`: the id as JSON writes it, in ASCII: it may hold what no text of PostgreSQL can.
- `run_key text`: its SHA-256, 64 hex digits.
- `turn_epoch bigint`: which turn of its run it is, from 1 (K-21).

What is rolled back has woken nobody; a statement that fails has its append fail, and nothing is
kept.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from ....models.errors import InvalidValue, shown
from ....models.fact import Fact
from ....models.facts import TurnOpened
from ...errors import JournalError
from ..contract import Busy
from .appends import Asked, Judged, Verdict
from .doors import Connection
from .failures import FAILURES, cause_of, is_retried, was_lost
from .lanes import Body, Outcome
from .tables import key_of

_BUSY: Final = (
    "WITH busy(run_id, run_key, turn_epoch) AS"
    " (SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[]))\n"
)


def opened(facts: Sequence[Fact], busy: Busy) -> int | None:
    """Return which turn an append opens, if its run is busy after it."""
    epochs = [fact.epoch for fact in facts if isinstance(fact, TurnOpened)]
    return epochs[-1] if epochs and busy else None


def waking(body: Body, on_busy: str) -> Body:
    """Return what does a group of appends, and the statement for those of them that are kept.

    It needs a transaction around it.
    """

    async def both(connection: Connection, works: Sequence[Asked]) -> Sequence[Outcome]:
        outcomes = await body(connection, works)
        kept = [it for it, outcome in zip(works, outcomes, strict=True) if _is_kept(outcome.value)]
        if kept:
            await _wake(connection, on_busy, kept)
        return outcomes

    return both


def _is_kept(judged: Judged | None) -> bool:
    return judged is not None and judged.verdict is Verdict.OK


async def _wake(connection: Connection, on_busy: str, kept: Sequence[Asked]) -> None:
    try:
        await connection.fetch(
            _BUSY + on_busy,
            [json.dumps(it.run_id) for it in kept],
            [key_of(it.run_id).hex() for it in kept],
            [it.opens for it in kept],
        )
    except FAILURES as error:
        if is_retried(error) or was_lost(error):
            raise
        raise JournalError(f"on_busy: nothing was written: {cause_of(error)}") from error


async def check(connection: Connection, on_busy: str) -> None:
    """Raise `InvalidValue` for what is no statement that this server can do."""
    try:
        await connection.prepare(_BUSY + on_busy)
    except FAILURES as error:
        if was_lost(error):
            raise
        raise InvalidValue(
            place="on_busy",
            cause=f"{shown(on_busy)}: {cause_of(error)}",
            fix="give one statement that begins with SELECT or INSERT and reads the table busy,"
            " with its run_id, run_key and turn_epoch",
        ) from error
