"""Section 6, every (phase, input) pair: the table of kernel.md, written down by hand once more.

A cell says what must come of it: a FACT about the invocation, a reason, or `-` for nothing. Each is
driven through the kernel from a run in which invocation `a` was brought into that phase. The rows
split the spec's phases where its notes D and S do; `n/a` cannot come about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from turnlock import Match, Refused, Scope

from ..outcome import Outcome, call, gated
from ..script import Script

DECISIONS = """
phase                    | approve               | approve session       | approve edited        | deny
REQUESTED, gated         | TOOL_APPROVED         | TOOL_APPROVED         | TOOL_APPROVED         | TOOL_DENIED
REQUESTED, not gated     | not_awaiting_approval | not_awaiting_approval | not_awaiting_approval | not_awaiting_approval
APPROVED, once           | duplicate             | already_decided       | already_decided       | already_decided
APPROVED, for session    | already_decided       | duplicate             | already_decided       | already_decided
APPROVED, edited         | already_decided       | already_decided       | duplicate             | already_decided
APPROVED, by grant       | duplicate             | already_decided       | already_decided       | already_decided
STARTED, approved        | duplicate             | already_decided       | already_decided       | already_decided
STARTED, never gated     | not_awaiting_approval | not_awaiting_approval | not_awaiting_approval | not_awaiting_approval
STARTED, interrupting    | not_awaiting_approval | not_awaiting_approval | not_awaiting_approval | not_awaiting_approval
IN_DOUBT, approved       | duplicate             | already_decided       | already_decided       | already_decided
IN_DOUBT, never gated    | not_awaiting_approval | not_awaiting_approval | not_awaiting_approval | not_awaiting_approval
RETRY_AUTHORISED         | not_awaiting_approval | not_awaiting_approval | not_awaiting_approval | not_awaiting_approval
IN_DOUBT, interrupting   | not_awaiting_approval | not_awaiting_approval | not_awaiting_approval | not_awaiting_approval
SUCCEEDED, approved      | duplicate             | already_decided       | already_decided       | already_decided
SUCCEEDED, never gated   | not_awaiting_approval | not_awaiting_approval | not_awaiting_approval | not_awaiting_approval
FAILED, approved         | duplicate             | already_decided       | already_decided       | already_decided
FAILED, never gated      | not_awaiting_approval | not_awaiting_approval | not_awaiting_approval | not_awaiting_approval
FAILED, rejected pending | not_awaiting_approval | not_awaiting_approval | not_awaiting_approval | not_awaiting_approval
FAILED, though approved  | duplicate             | already_decided       | already_decided       | already_decided
DENIED, by decision      | already_decided       | already_decided       | already_decided       | duplicate
DENIED, by expiry        | already_decided       | already_decided       | already_decided       | already_decided
DENIED, interrupted      | already_decided       | already_decided       | already_decided       | already_decided
DENIED, though approved  | duplicate             | already_decided       | already_decided       | already_decided
"""  # noqa: E501

STARTS = """
phase                    | claim                  | claim by w1            | renew           | reject                | lose
REQUESTED, gated         | not_approved           | not_approved           | not_started     | TOOL_EXECUTION_FAILED | not_started
REQUESTED, not gated     | TOOL_EXECUTION_STARTED | TOOL_EXECUTION_STARTED | not_started     | TOOL_EXECUTION_FAILED | not_started
APPROVED, once           | TOOL_EXECUTION_STARTED | TOOL_EXECUTION_STARTED | not_started     | TOOL_EXECUTION_FAILED | not_started
APPROVED, for session    | TOOL_EXECUTION_STARTED | TOOL_EXECUTION_STARTED | not_started     | TOOL_EXECUTION_FAILED | not_started
APPROVED, edited         | TOOL_EXECUTION_STARTED | TOOL_EXECUTION_STARTED | not_started     | TOOL_EXECUTION_FAILED | not_started
APPROVED, by grant       | TOOL_EXECUTION_STARTED | TOOL_EXECUTION_STARTED | not_started     | TOOL_EXECUTION_FAILED | not_started
STARTED, approved        | already_started        | duplicate              | LEASE_RENEWED   | already_started       | EXECUTION_IN_DOUBT
STARTED, never gated     | already_started        | duplicate              | LEASE_RENEWED   | already_started       | EXECUTION_IN_DOUBT
STARTED, interrupting    | already_started        | duplicate              | LEASE_RENEWED   | already_started       | EXECUTION_IN_DOUBT
IN_DOUBT, approved       | not_authorised         | not_authorised         | lease_lost      | already_started       | duplicate
IN_DOUBT, never gated    | not_authorised         | not_authorised         | lease_lost      | already_started       | duplicate
RETRY_AUTHORISED         | EXECUTION_RETRIED      | EXECUTION_RETRIED      | lease_lost      | already_started       | duplicate
IN_DOUBT, interrupting   | not_authorised         | not_authorised         | lease_lost      | already_started       | duplicate
SUCCEEDED, approved      | already_settled        | already_settled        | already_settled | already_settled       | already_settled
SUCCEEDED, never gated   | already_settled        | already_settled        | already_settled | already_settled       | already_settled
FAILED, approved         | already_settled        | already_settled        | already_settled | already_settled       | already_settled
FAILED, never gated      | already_settled        | already_settled        | already_settled | already_settled       | already_settled
FAILED, rejected pending | already_settled        | already_settled        | already_settled | already_settled       | already_settled
FAILED, though approved  | already_settled        | already_settled        | already_settled | already_settled       | already_settled
DENIED, by decision      | already_settled        | already_settled        | already_settled | already_settled       | already_settled
DENIED, by expiry        | already_settled        | already_settled        | already_settled | already_settled       | already_settled
DENIED, interrupted      | already_settled        | already_settled        | already_settled | already_settled       | already_settled
DENIED, though approved  | already_settled        | already_settled        | already_settled | already_settled       | already_settled
"""  # noqa: E501

REPORTS = """
phase                    | report ok                | report other             | report boom           | report bang
REQUESTED, gated         | not_started              | not_started              | not_started           | not_started
REQUESTED, not gated     | not_started              | not_started              | not_started           | not_started
APPROVED, once           | not_started              | not_started              | not_started           | not_started
APPROVED, for session    | not_started              | not_started              | not_started           | not_started
APPROVED, edited         | not_started              | not_started              | not_started           | not_started
APPROVED, by grant       | not_started              | not_started              | not_started           | not_started
STARTED, approved        | TOOL_EXECUTION_SUCCEEDED | TOOL_EXECUTION_SUCCEEDED | TOOL_EXECUTION_FAILED | TOOL_EXECUTION_FAILED
STARTED, never gated     | TOOL_EXECUTION_SUCCEEDED | TOOL_EXECUTION_SUCCEEDED | TOOL_EXECUTION_FAILED | TOOL_EXECUTION_FAILED
STARTED, interrupting    | TOOL_EXECUTION_SUCCEEDED | TOOL_EXECUTION_SUCCEEDED | TOOL_EXECUTION_FAILED | TOOL_EXECUTION_FAILED
IN_DOUBT, approved       | TOOL_EXECUTION_SUCCEEDED | TOOL_EXECUTION_SUCCEEDED | TOOL_EXECUTION_FAILED | TOOL_EXECUTION_FAILED
IN_DOUBT, never gated    | TOOL_EXECUTION_SUCCEEDED | TOOL_EXECUTION_SUCCEEDED | TOOL_EXECUTION_FAILED | TOOL_EXECUTION_FAILED
RETRY_AUTHORISED         | TOOL_EXECUTION_SUCCEEDED | TOOL_EXECUTION_SUCCEEDED | TOOL_EXECUTION_FAILED | TOOL_EXECUTION_FAILED
IN_DOUBT, interrupting   | TOOL_EXECUTION_SUCCEEDED | TOOL_EXECUTION_SUCCEEDED | TOOL_EXECUTION_FAILED | TOOL_EXECUTION_FAILED
SUCCEEDED, approved      | duplicate                | conflicting_duplicate    | conflicting_duplicate | conflicting_duplicate
SUCCEEDED, never gated   | duplicate                | conflicting_duplicate    | conflicting_duplicate | conflicting_duplicate
FAILED, approved         | conflicting_duplicate    | conflicting_duplicate    | duplicate             | conflicting_duplicate
FAILED, never gated      | conflicting_duplicate    | conflicting_duplicate    | duplicate             | conflicting_duplicate
FAILED, rejected pending | conflicting_duplicate    | conflicting_duplicate    | duplicate             | conflicting_duplicate
FAILED, though approved  | conflicting_duplicate    | conflicting_duplicate    | duplicate             | conflicting_duplicate
DENIED, by decision      | already_settled          | already_settled          | already_settled       | already_settled
DENIED, by expiry        | already_settled          | already_settled          | already_settled       | already_settled
DENIED, interrupted      | already_settled          | already_settled          | already_settled       | already_settled
DENIED, though approved  | already_settled          | already_settled          | already_settled       | already_settled
"""  # noqa: E501

RESOLUTIONS = """
phase                    | resolve retry    | resolve ok               | resolve boom
REQUESTED, gated         | not_in_doubt     | not_in_doubt             | not_in_doubt
REQUESTED, not gated     | not_in_doubt     | not_in_doubt             | not_in_doubt
APPROVED, once           | not_in_doubt     | not_in_doubt             | not_in_doubt
APPROVED, for session    | not_in_doubt     | not_in_doubt             | not_in_doubt
APPROVED, edited         | not_in_doubt     | not_in_doubt             | not_in_doubt
APPROVED, by grant       | not_in_doubt     | not_in_doubt             | not_in_doubt
STARTED, approved        | not_in_doubt     | not_in_doubt             | not_in_doubt
STARTED, never gated     | not_in_doubt     | not_in_doubt             | not_in_doubt
STARTED, interrupting    | not_in_doubt     | not_in_doubt             | not_in_doubt
IN_DOUBT, approved       | RETRY_AUTHORISED | TOOL_EXECUTION_SUCCEEDED | TOOL_EXECUTION_FAILED
IN_DOUBT, never gated    | RETRY_AUTHORISED | TOOL_EXECUTION_SUCCEEDED | TOOL_EXECUTION_FAILED
RETRY_AUTHORISED         | duplicate        | TOOL_EXECUTION_SUCCEEDED | TOOL_EXECUTION_FAILED
IN_DOUBT, interrupting   | interrupting     | TOOL_EXECUTION_SUCCEEDED | TOOL_EXECUTION_FAILED
SUCCEEDED, approved      | already_settled  | already_settled          | already_settled
SUCCEEDED, never gated   | already_settled  | already_settled          | already_settled
FAILED, approved         | already_settled  | already_settled          | already_settled
FAILED, never gated      | already_settled  | already_settled          | already_settled
FAILED, rejected pending | already_settled  | already_settled          | already_settled
FAILED, though approved  | already_settled  | already_settled          | already_settled
DENIED, by decision      | already_settled  | already_settled          | already_settled
DENIED, by expiry        | already_settled  | already_settled          | already_settled
DENIED, interrupted      | already_settled  | already_settled          | already_settled
DENIED, though approved  | already_settled  | already_settled          | already_settled
"""

WORLD = """
phase                    | interrupt   | approval over | lease over         | grace over            | grant
REQUESTED, gated         | TOOL_DENIED | TOOL_DENIED   | -                  | n/a                   | TOOL_APPROVED
REQUESTED, not gated     | TOOL_DENIED | -             | -                  | n/a                   | -
APPROVED, once           | TOOL_DENIED | -             | -                  | n/a                   | -
APPROVED, for session    | TOOL_DENIED | -             | -                  | n/a                   | -
APPROVED, edited         | TOOL_DENIED | -             | -                  | n/a                   | -
APPROVED, by grant       | TOOL_DENIED | -             | -                  | n/a                   | -
STARTED, approved        | -           | -             | EXECUTION_IN_DOUBT | TOOL_EXECUTION_FAILED | -
STARTED, never gated     | -           | -             | EXECUTION_IN_DOUBT | TOOL_EXECUTION_FAILED | -
STARTED, interrupting    | duplicate   | -             | EXECUTION_IN_DOUBT | TOOL_EXECUTION_FAILED | n/a
IN_DOUBT, approved       | -           | -             | -                  | TOOL_EXECUTION_FAILED | -
IN_DOUBT, never gated    | -           | -             | -                  | TOOL_EXECUTION_FAILED | -
RETRY_AUTHORISED         | -           | -             | -                  | TOOL_EXECUTION_FAILED | -
IN_DOUBT, interrupting   | duplicate   | -             | -                  | TOOL_EXECUTION_FAILED | n/a
SUCCEEDED, approved      | -           | -             | -                  | -                     | -
SUCCEEDED, never gated   | -           | -             | -                  | -                     | -
FAILED, approved         | -           | -             | -                  | -                     | -
FAILED, never gated      | -           | -             | -                  | -                     | -
FAILED, rejected pending | -           | -             | -                  | -                     | -
FAILED, though approved  | -           | -             | -                  | -                     | -
DENIED, by decision      | -           | -             | -                  | -                     | -
DENIED, by expiry        | -           | -             | -                  | -                     | -
DENIED, interrupted      | duplicate   | -             | -                  | -                     | n/a
DENIED, though approved  | duplicate   | -             | -                  | -                     | n/a
"""  # noqa: E501

WAYS = {
    "REQUESTED, gated": "gated",
    "REQUESTED, not gated": "free",
    "APPROVED, once": "gated, approve",
    "APPROVED, for session": "gated, approve session",
    "APPROVED, edited": "gated, approve edited",
    "APPROVED, by grant": "gated, grant exactly",
    "STARTED, approved": "gated, approve, claim by w1",
    "STARTED, never gated": "free, claim by w1",
    "STARTED, interrupting": "free, claim by w1, interrupt",
    "IN_DOUBT, approved": "gated, approve, claim by w1, lose",
    "IN_DOUBT, never gated": "free, claim by w1, lose",
    "RETRY_AUTHORISED": "free, claim by w1, lose, resolve retry",
    "IN_DOUBT, interrupting": "free, claim by w1, lose, resolve retry, interrupt",
    "SUCCEEDED, approved": "gated, approve, claim by w1, report ok",
    "SUCCEEDED, never gated": "free, claim by w1, report ok",
    "FAILED, approved": "gated, approve, claim by w1, report boom",
    "FAILED, never gated": "free, claim by w1, report boom",
    "FAILED, rejected pending": "gated, reject",
    "FAILED, though approved": "gated, approve, reject",
    "DENIED, by decision": "gated, deny",
    "DENIED, by expiry": "expiring, tick",
    "DENIED, interrupted": "gated, interrupt",
    "DENIED, though approved": "gated, approve, interrupt",
}
"""How each phase is brought about."""

KEEPERS = (gated("g", n=2), gated("h", n=3), call("k", "other"))
"""The rest of the turn: two that can be granted, and one that runs and keeps the turn alive."""


def attempt(play: Script) -> int:
    """The attempt that may be claimed."""
    return 2 if "execute a 2" in play.owed else 1


def opened(play: Script, first: str, *, timeout: float | None) -> None:
    expiring = 1.0 if first == "expiring" else timeout
    a = call("a", n=1, timeout=timeout) if first == "free" else gated("a", n=1, timeout=expiring)
    play.opens("T1", a, *KEEPERS)
    play.claims("k")


VERBS: dict[str, Callable[[Script], Outcome]] = {
    "approve": lambda play: play.approves("a"),
    "approve session": lambda play: play.approves("a", Scope.SESSION),
    "approve edited": lambda play: play.approves("a", arguments={"n": 9}),
    "deny": lambda play: play.denies("a"),
    "claim": lambda play: play.claims("a", attempt(play)),
    "claim by w1": lambda play: play.claims("a", attempt(play), worker="w1"),
    "claim with a lease": lambda play: play.claims("a", worker="w1", lease=100.0),
    "renew": lambda play: play.renews("a", 1e6),
    "reject": lambda play: play.rejects("a", "boom"),
    "lose": lambda play: play.loses("a"),
    "report ok": lambda play: play.reports("a", "ok"),
    "report other": lambda play: play.reports("a", "other"),
    "report boom": lambda play: play.fails("a", "boom"),
    "report bang": lambda play: play.fails("a", "bang"),
    "resolve retry": lambda play: play.retries("a"),
    "resolve ok": lambda play: play.resolves("a", "ok"),
    "resolve boom": lambda play: play.resolves_error("a", "boom"),
    "interrupt": lambda play: play.interrupts(grace=5e5),
    "approval over": lambda play: play.at(play.clock + 1000.0).ticks(),
    "lease over": lambda play: play.at(play.clock + 1000.0).ticks(),
    "grace over": lambda play: play.at(play.clock + 1e6).ticks(),
    "grant": lambda play: play.approves("g", Scope.SESSION, Match.TOOL),
    "grant exactly": lambda play: play.approves("h", Scope.SESSION, arguments={"n": 1}),
    "tick": lambda play: play.ticks(),
}


def brought_to(situation: str, *, by: str) -> Script:
    """A run in which `a` is in this situation, and has the deadline that the input wants."""
    play = Script()
    first, *verbs = WAYS[situation].split(", ")
    opened(play, first, timeout=500.0 if by == "approval over" else None)
    for verb in verbs:
        wanted = "claim with a lease" if (verb, by) == ("claim by w1", "lease over") else verb
        outcome = VERBS[wanted](play)
        assert outcome.reason is None, (situation, verb)
    if by == "grace over" and "interrupt" not in verbs:
        play.interrupts(grace=5e5)
    return play


def cells() -> Iterator[tuple[str, str, str]]:
    for table in (DECISIONS, STARTS, REPORTS, RESOLUTIONS, WORLD):
        head, *rows = table.strip().splitlines()
        _, *inputs = (cell.strip() for cell in head.split("|"))
        for row in rows:
            situation, *expected = (cell.strip() for cell in row.split("|"))
            assert len(expected) == len(inputs), row
            yield from ((situation, by, cell) for by, cell in zip(inputs, expected, strict=True))


CELLS = [cell for cell in cells() if cell[2] != "n/a"]


@pytest.mark.parametrize(
    ("situation", "by", "expected"), CELLS, ids=[f"{cell[0]} - {cell[1]}" for cell in CELLS]
)
def test_every_pair(situation: str, by: str, expected: str) -> None:
    """The cell's fact happens to `a`, or its reason is given and nothing happens to anybody."""
    play = brought_to(situation, by=by)
    before = len(play.names_of("a"))
    owed = play.kernel.pending_effects

    outcome = VERBS[by](play)

    happened = play.names_of("a")[before:]
    if expected == "-":
        assert (outcome.reason, happened) == (None, [])
    elif expected.isupper():
        assert (outcome.reason, happened) == (None, [expected])
    else:
        assert (outcome.reason, outcome.facts, outcome.asks) == (expected, (), ())
        assert play.kernel.pending_effects == owed
        assert isinstance(play.verdict, Refused)
        assert play.verdict.phase in {situation.split(",", maxsplit=1)[0], "INTERRUPTING"}


def test_every_pair_stands_here() -> None:
    """Each table has every situation once, so that none of their cells is left out."""
    for table in (DECISIONS, STARTS, REPORTS, RESOLUTIONS, WORLD):
        rows = [row.split("|")[0].strip() for row in table.strip().splitlines()[1:]]
        assert rows == list(WAYS)


def test_every_pair_of_the_terminal_phases_keeps_its_reason_when_all_else_is_over() -> None:
    """The whole row again, one after the other on one invocation: still the same answers."""
    for situation in WAYS:
        if situation.split(",")[0] not in {"SUCCEEDED", "FAILED", "DENIED"}:
            continue
        play = brought_to(situation, by="all")
        for row, by, expected in CELLS:
            if row == situation and expected.islower():
                assert VERBS[by](play).reason == expected
