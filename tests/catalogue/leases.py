"""Bugs in leases and attempts: who holds a call, and what is done about doubt (K-33 … K-35)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from turnlock.engine import decide, effects, evolve, unchecked
from turnlock.engine.state import DeadlineKind, Entry, State
from turnlock.lifecycle.invocation import Invocation
from turnlock.lifecycle.phases import Guard, Phase
from turnlock.models.effects import Execute
from turnlock.models.fact import FactType
from turnlock.models.facts import ExecutionRetried
from turnlock.models.inputs import Input
from turnlock.models.reasons import Reason
from turnlock.models.record import changed

from .bug import Family, Shelf
from .planting import around, moves, replaced, row, together

Admit = Callable[..., Any]


def _blind_to_stale(*blind: Input) -> Callable[[Admit], Admit]:
    def wrap(real: Admit) -> Admit:
        def admit(*meant: Any) -> Any:
            state, turn_id, it, attempt, input_, now = meant
            return real(state, turn_id, it, None if input_ in blind else attempt, input_, now)

        return admit

    return wrap


_NOT_CLAIMS: Final = [input_ for input_ in Input if input_ is not Input.CLAIM]


def _stale_once_authorised(real: Admit) -> Admit:
    def admit(*meant: Any) -> Any:
        found, attempt = real(*meant), meant[3]
        if isinstance(found, Invocation) and found.owed > 1 and attempt not in {None, found.owed}:
            return Reason.STALE_ATTEMPT
        return found

    return admit


def _keeping_the_attempt(
    real: Callable[..., ExecutionRetried],
) -> Callable[..., ExecutionRetried]:
    def execution_retried(*of: Any, attempt: int, **fields: Any) -> ExecutionRetried:
        return real(*of, attempt=attempt - 1, **fields)

    return execution_retried


def _no_lease(*_: object) -> None:
    return


def _key_of_the_attempt(real: Callable[..., Execute]) -> Callable[..., Execute]:
    def execute(*of: Any) -> Execute:
        effect = real(*of)
        if effect.attempt == 1:
            return effect
        return changed(effect, idempotency_key=f"{effect.idempotency_key}/{effect.attempt}")

    return execute


def _every_lease(real: Callable[[State, Entry], bool]) -> Callable[[State, Entry], bool]:
    def is_live(self: State, entry: Entry) -> bool:
        at, kind, order = entry
        turn = self.turn
        if kind is DeadlineKind.LEASE and turn is not None and order < len(turn.order):
            deadline = turn.order[order].deadline
            entry = (at if deadline is None else deadline, kind, order)
        return real(self, entry)

    return is_live


_bug: Final = Shelf(Family.LEASES_AND_ATTEMPTS)

_STARTED_AGAIN: Final = moves(Phase.STARTED, FactType.TOOL_EXECUTION_STARTED)

BUGS: Final = (
    _bug(
        "a stale report",
        "what an earlier attempt says counts",
        "K-33",
        around(decide, "admit", _blind_to_stale(*_NOT_CLAIMS)),
    ),
    _bug(
        "a stale claim",
        "a claim of another attempt than the one that is owed is accepted",
        "K-33",
        around(decide, "admit", _blind_to_stale(Input.CLAIM)),
    ),
    _bug(
        "stale too early",
        "the old attempt no longer counts once a retry is authorised, before it is claimed",
        "K-33",
        around(decide, "admit", _stale_once_authorised),
    ),
    _bug(
        "attempts are not counted",
        "a retry keeps the number of the attempt before",
        "K-33",
        around(unchecked, "execution_retried", _keeping_the_attempt),
        also=("K-31",),
    ),
    _bug(
        "a key for each attempt",
        "the idempotency key of a retry is another",
        "K-7",
        around(effects, "_execute", _key_of_the_attempt),
        also=("section 9",),
    ),
    _bug(
        "a second executor",
        "another worker's claim of a call that runs is accepted",
        "K-33",
        row(Phase.STARTED, Input.CLAIM, Guard.OTHER_WORKER, **_STARTED_AGAIN),
    ),
    _bug(
        "claimed twice",
        "the same worker's claim that comes again starts the tool again",
        "K-33",
        row(Phase.STARTED, Input.CLAIM, Guard.SAME_WORKER, **_STARTED_AGAIN),
    ),
    _bug(
        "a lease without end",
        "a lease never runs out",
        "K-34",
        replaced(evolve, "_lease", _no_lease),
        also=("K-11", "section 9"),
    ),
    _bug(
        "renewed in vain",
        "the old deadline of a lease that was renewed still counts",
        "K-34",
        around(State, "_is_live", _every_lease),
        also=("section 9",),
    ),
    _bug(
        "a lost lease is renewed",
        "a lease that has run out can be renewed",
        "K-34",
        row(Phase.IN_DOUBT, Input.RENEW, **moves(Phase.STARTED, FactType.LEASE_RENEWED)),
    ),
    _bug(
        "a lost lease is a failure",
        "a call whose lease has run out counts as failed",
        "K-34",
        row(
            Phase.STARTED,
            Input.LEASE_OVER,
            **moves(Phase.FAILED, FactType.TOOL_EXECUTION_FAILED),
        ),
        also=("K-35", "K-11"),
    ),
    _bug(
        "no late truth",
        "the true report of a call in doubt is refused",
        "K-35",
        together(
            row(
                Phase.IN_DOUBT,
                Input.REPORT_RESULT,
                fact=None,
                target=Phase.IN_DOUBT,
                reason=Reason.LEASE_LOST,
            ),
            row(
                Phase.IN_DOUBT,
                Input.REPORT_ERROR,
                fact=None,
                target=Phase.IN_DOUBT,
                reason=Reason.LEASE_LOST,
            ),
        ),
    ),
    _bug(
        "silently executed again",
        "a call in doubt is owed again though nobody authorised it",
        "K-35",
        together(
            *(
                row(
                    Phase.STARTED,
                    input_,
                    **moves(Phase.RETRY_AUTHORISED, FactType.EXECUTION_IN_DOUBT),
                )
                for input_ in (Input.LOSE, Input.LEASE_OVER)
            )
        ),
        also=("K-33",),
    ),
    _bug(
        "claimed without authority",
        "a call in doubt may be claimed though nobody authorised a retry",
        "K-35",
        row(
            Phase.IN_DOUBT,
            Input.CLAIM,
            **moves(Phase.STARTED, FactType.EXECUTION_RETRIED),
        ),
        also=("K-33",),
    ),
    _bug(
        "authorised twice",
        "the same authorisation again asks for the retry again",
        "K-35",
        row(
            Phase.RETRY_AUTHORISED,
            Input.RESOLVE_RETRY,
            **moves(Phase.RETRY_AUTHORISED, FactType.RETRY_AUTHORISED),
        ),
        also=("K-31",),
    ),
)
