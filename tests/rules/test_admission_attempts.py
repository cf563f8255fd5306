"""Section 5, rule 4: which attempt a delivery may name."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from turnlock import (
    Reason,
)

from ..outcome import gated, happens, refused
from ..script import Script


@pytest.mark.parametrize("attempt", [-1, 0, 2, 99])
def test_4_a_claim_must_name_the_owed_attempt(attempt: int) -> None:
    """While an execute is owed: the first, of a free or an approved call, or the retry's."""
    play = Script()
    play.opens("T1", "a", gated("b"), "c")
    play.approves("b")
    play.claims("c")
    play.loses("c")
    play.retries("c")

    assert play.claims("a", attempt) == refused(Reason.STALE_ATTEMPT)
    assert play.claims("b", attempt) == refused(Reason.STALE_ATTEMPT)
    if attempt != 2:
        assert play.claims("c", attempt) == refused(Reason.STALE_ATTEMPT)
    assert play.claims("c", 2) == happens("EXECUTION_RETRIED c")


def test_4_a_claim_while_nothing_is_owed_must_name_the_current_attempt() -> None:
    """Started, in doubt, settled: another attempt is stale, the current one meets the table."""
    play = Script()
    play.opens("T1", "a", "other")
    play.claims("a")
    assert play.claims("a", 2) == refused(Reason.STALE_ATTEMPT)
    assert play.claims("a", 1) == refused(Reason.ALREADY_STARTED)

    play.loses("a")
    assert play.claims("a", 2) == refused(Reason.STALE_ATTEMPT)
    assert play.claims("a", 1) == refused(Reason.NOT_AUTHORISED)

    play.reports("a")
    assert play.claims("a", 2) == refused(Reason.STALE_ATTEMPT)
    assert play.claims("a", 1) == refused(Reason.ALREADY_SETTLED)


def test_4_while_a_retry_is_owed_the_old_attempt_is_stale_for_a_claim_alone() -> None:
    """A claim wants the owed one, all others the current one."""
    play = Script()
    play.opens("T1", "a", "other")
    play.claims("a")
    play.loses("a")
    play.retries("a")

    assert play.claims("a", 1) == refused(Reason.STALE_ATTEMPT)
    assert play.loses("a", attempt=2) == refused(Reason.STALE_ATTEMPT)
    assert play.loses("a", attempt=1) == refused(Reason.DUPLICATE)
    assert play.renews("a", 1.0, attempt=2) == refused(Reason.STALE_ATTEMPT)
    assert play.renews("a", 1.0, attempt=1) == refused(Reason.LEASE_LOST)
    assert play.retries("a", 2) == refused(Reason.STALE_ATTEMPT)
    assert play.retries("a", 1) == refused(Reason.DUPLICATE)
    assert play.reports("a", attempt=2) == refused(Reason.STALE_ATTEMPT)
    assert play.reports("a", attempt=1) == happens("TOOL_EXECUTION_SUCCEEDED a")


ATTEMPTED: dict[str, Callable[[Script, int], object]] = {
    "renew": lambda play, attempt: play.renews("a", 1.0, attempt=attempt),
    "report a result": lambda play, attempt: play.reports("a", attempt=attempt),
    "report an error": lambda play, attempt: play.fails("a", attempt=attempt),
    "lose": lambda play, attempt: play.loses("a", attempt=attempt),
    "resolve": lambda play, attempt: play.resolves("a", 1, attempt=attempt),
    "resolve retry": lambda play, attempt: play.retries("a", attempt),
}


@pytest.mark.parametrize("kind", ATTEMPTED)
def test_4_once_started_any_other_attempt_is_stale(kind: str) -> None:
    """Before the second claim and after it, settled or not."""
    play = Script()
    play.opens("T1", "a", "other")
    play.claims("a")
    for attempt in (0, 2):
        assert ATTEMPTED[kind](play, attempt) == refused(Reason.STALE_ATTEMPT)
    play.loses("a")
    play.retries("a")
    play.claims("a", 2)
    for attempt in (1, 3):
        assert ATTEMPTED[kind](play, attempt) == refused(Reason.STALE_ATTEMPT)
    play.reports("a")
    assert ATTEMPTED[kind](play, 1) == refused(Reason.STALE_ATTEMPT)
    assert ATTEMPTED[kind](play, 2) in (
        refused(Reason.ALREADY_SETTLED),
        refused(Reason.DUPLICATE),
        refused(Reason.CONFLICTING_DUPLICATE),
    )


@pytest.mark.parametrize("kind", ATTEMPTED)
def test_4_before_any_start_the_attempt_is_not_looked_at(kind: str) -> None:
    """Pending, ready, rejected or denied: the table answers, whatever the attempt."""
    for lines in ((), ("approves",), ("rejects",), ("denies",)):
        play = Script()
        play.opens("T1", gated("a"), "other")
        for line in lines:
            getattr(play, line)("a")
        assert ATTEMPTED[kind](play, 99) == ATTEMPTED[kind](play, 1)
        assert ATTEMPTED[kind](play, 99) != refused(Reason.STALE_ATTEMPT)


def test_4_a_claim_before_any_start_with_nothing_owed_is_not_looked_at() -> None:
    """It waits for approval, or never will be started."""
    play = Script()
    play.opens("T1", gated("a"), gated("b", n=1), "c", "other")
    play.denies("b")
    play.rejects("c")

    assert play.claims("a", 99) == refused(Reason.NOT_APPROVED)
    assert play.claims("b", 99) == refused(Reason.ALREADY_SETTLED)
    assert play.claims("c", 99) == refused(Reason.ALREADY_SETTLED)


def test_4_an_attempt_that_is_not_given_is_not_looked_at() -> None:
    """A report without one settles the current attempt."""
    play = Script()
    play.opens("T1", "a", "other")
    play.claims("a")
    play.loses("a")
    play.retries("a")
    play.claims("a", 2)

    assert play.reports("a") == happens("TOOL_EXECUTION_SUCCEEDED a")
