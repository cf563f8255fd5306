"""Recovery folds what a run wrote, and refuses what no run can have written (K-2, K-9)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from turnlock import (
    Acknowledge,
    AddCall,
    Call,
    Claim,
    CorruptJournal,
    Decide,
    Fact,
    FactType,
    Interrupt,
    Kernel,
    Limits,
    Lose,
    OpenTurn,
    Reject,
    Report,
    Revoke,
    Run,
    Scope,
    SealTurn,
    Tick,
)
from turnlock.lifecycle.invocation import Invocation
from turnlock.models.facts import (
    ExecutionRetried,
    RetryAuthorised,
    ToolApproved,
    ToolExecutionStarted,
)
from turnlock.models.record import changed
from turnlock.turn.turn import Turn

RUN = Run(run_id="r")


def call(name: str, *, gated: bool = False) -> Call:
    return Call(invocation_id=name, tool_name="ls", arguments={}, requires_approval=gated)


def journal() -> list[Fact]:
    """One turn with all there is: opened unsealed, added, approved by a grant, settled, taken."""
    kernel = Kernel(RUN)
    deliveries = [
        OpenTurn(turn_id="T1", calls=(call("a", gated=True),), sealed=False),
        AddCall(turn_id="T1", call=call("b")),
        SealTurn(turn_id="T1"),
        Decide(turn_id="T1", invocation_id="a", approved=True, scope=Scope.SESSION),
        Claim(turn_id="T1", invocation_id="a", attempt=1),
        Claim(turn_id="T1", invocation_id="b", attempt=1),
        Report(turn_id="T1", invocation_id="a", result=1),
        Report(turn_id="T1", invocation_id="b", error="no"),
        Acknowledge(turn_id="T1"),
        Revoke(grant_id="grant/r/1"),
    ]
    facts: list[Fact] = []
    for now, delivery in enumerate(deliveries):
        verdict = kernel.receive(delivery, float(now))
        assert verdict.accepted
        facts += verdict.facts
    return facts


FACTS = journal()


def place(kind: FactType, nth: int = 0) -> int:
    """The index of the nth fact of a kind."""
    return [index for index, fact in enumerate(FACTS) if fact.type is kind][nth]


def with_change(kind: FactType, **change: Any) -> list[Fact]:
    """The journal in which one fact says something else."""
    at = place(kind)
    return [*FACTS[:at], changed(FACTS[at], **change), *FACTS[at + 1 :]]


def renumbered(facts: list[Fact]) -> list[Fact]:
    """The facts with sequences without gaps, in the commits that they belonged to."""
    last = {fact.commit: number for number, fact in enumerate(facts, start=1)}
    return [
        changed(fact, sequence=number, commit=last[fact.commit])
        for number, fact in enumerate(facts, start=1)
    ]


def without(*kinds: FactType) -> list[Fact]:
    return renumbered([fact for fact in FACTS if fact.type not in kinds])


def then(kind: FactType, fact: Fact) -> list[Fact]:
    """The journal up to the commit of a fact, and one fact more."""
    end = FACTS[place(kind)].commit
    last = changed(fact, sequence=end + 1, commit=end + 1, at=FACTS[end - 1].at)
    return [*FACTS[:end], last]


def again(kind: FactType) -> list[Fact]:
    """The journal up to a fact, and that fact once more."""
    return then(kind, FACTS[place(kind)])


def test_every_prefix_of_whole_commits_is_a_run() -> None:
    """K-9: whatever was committed is there, and nothing of what was not."""
    for length in range(len(FACTS) + 1):
        prefix = FACTS[:length]

        kernel = Kernel.recover(RUN, prefix)

        whole = [fact.sequence for fact in prefix if fact.commit <= length]
        assert kernel.sequence == (whole[-1] if whole else 0)


def test_a_journal_may_be_given_whole_beside_a_snapshot() -> None:
    """Facts at or before the snapshot's sequence are passed over."""
    snapshot = Kernel.recover(RUN, FACTS[:6]).snapshot()

    kernel = Kernel.recover(RUN, FACTS, snapshot=snapshot)

    assert kernel.snapshot() == Kernel.recover(RUN, FACTS).snapshot()


CORRUPT: dict[str, tuple[list[Fact], str]] = {
    "another run": (
        with_change(FactType.TURN_SEALED, run_id="x"),
        "it belongs to run 'x', not 'r'",
    ),
    "a commit that ends before its fact": (
        with_change(FactType.TURN_SEALED, commit=1),
        "its commit 1 does not fit the facts before it",
    ),
    "a commit with two ends": (
        with_change(FactType.GRANT_ISSUED, commit=99),
        "its commit 99 does not fit the facts before it",
    ),
    "time backwards": (with_change(FactType.TURN_SEALED, at=0.5), "its time 0.5 lies before 1.0"),
    "a turn opened twice": (again(FactType.TURN_OPENED), "turn 'T1' is still active"),
    "an epoch left out": (
        with_change(FactType.TURN_OPENED, epoch=2),
        "its epoch is 2, the next one is 1",
    ),
    "one id twice": (
        with_change(FactType.TURN_OPENED, calls=(call("a"), call("a"))),
        "two of its calls have one id",
    ),
    "a turn reopened while its continuation is owed": (
        then(FactType.TURN_SETTLED, FACTS[0]),
        "the continuation of that turn is still owed",
    ),
    "a continuation taken twice": (again(FactType.CONTINUATION_TAKEN), "no continuation is owed"),
    "a grant out of number": (
        with_change(FactType.GRANT_ISSUED, grant_id="grant/r/7"),
        "the next grant is grant/r/1",
    ),
    "a grant revoked twice": (again(FactType.GRANT_REVOKED), "the grant is not in force"),
    "a call added twice": (again(FactType.CALL_ADDED), "the turn has that call already"),
    "a turn sealed twice": (again(FactType.TURN_SEALED), "the turn is SEALED"),
    "another turn": (
        with_change(FactType.TURN_SEALED, turn_id="T2"),
        "turn 'T2' is not the active one",
    ),
    "no turn": (without(FactType.TURN_OPENED), "turn 'T1' is not the active one"),
    "no such invocation": (
        with_change(FactType.TOOL_EXECUTION_STARTED, invocation_id="zz"),
        "the turn has no invocation 'zz'",
    ),
    "asked twice": (again(FactType.TOOL_APPROVAL_REQUESTED), "it does not wait to be asked"),
    "started twice": (again(FactType.TOOL_EXECUTION_STARTED), "the invocation is STARTED"),
    "approved after the start": (
        then(FactType.TOOL_EXECUTION_STARTED, FACTS[place(FactType.TOOL_APPROVED)]),
        "the invocation is STARTED",
    ),
    "approved twice": (again(FactType.TOOL_APPROVED), "the invocation is APPROVED"),
    "another tool": (
        with_change(FactType.TOOL_EXECUTION_STARTED, tool_name="rm"),
        "the tool is 'ls'",
    ),
    "an attempt that is not owed": (
        with_change(FactType.TOOL_EXECUTION_STARTED, attempt=7),
        "its attempt is 7, not 1",
    ),
    "settled too early": (
        without(FactType.TOOL_EXECUTION_FAILED),
        "1 of its invocations are not terminal",
    ),
    "left open by its last member": (
        without(FactType.TURN_SETTLED),
        "every member is terminal, and yet the turn was not closed",
    ),
}


@pytest.mark.parametrize("name", CORRUPT)
def test_a_journal_that_no_run_can_have_written_is_refused(name: str) -> None:
    """The error names the fact, the cause and the fix."""
    facts, cause = CORRUPT[name]

    with pytest.raises(CorruptJournal) as caught:
        Kernel.recover(RUN, facts)

    [kind] = {str(fact.type) for fact in facts if fact.sequence == caught.value.sequence}
    assert caught.value.cause == f"{kind}: {cause}"
    assert caught.value.fix == "restore the journal from a copy; no run writes this"


def test_a_journal_with_a_gap_is_refused() -> None:
    """What is missing may be elsewhere, so the advice is another."""
    with pytest.raises(CorruptJournal) as caught:
        Kernel.recover(RUN, [*FACTS[:3], *FACTS[4:]])
    assert str(caught.value) == (
        "fact 5: it follows fact 3; give all facts of the run once, in the order of their sequence"
    )


def doubtful(*, interrupted: bool) -> list[Fact]:
    """A journal in which b was never gated, and a is in doubt and may be retried."""
    kernel = Kernel(RUN)
    deliveries = [
        OpenTurn(turn_id="T1", calls=(call("a"), call("b"))),
        Claim(turn_id="T1", invocation_id="a", attempt=1),
        Lose(turn_id="T1", invocation_id="a"),
        Interrupt(turn_id="T1") if interrupted else Tick(),
    ]
    return [fact for delivery in deliveries for fact in kernel.receive(delivery, 0.0).facts]


def more(facts: list[Fact], kind: type[Fact], **fields: Any) -> list[Fact]:
    """The journal and one fact more, a commit of its own."""
    number = len(facts) + 1
    common = {"run_id": "r", "sequence": number, "commit": number, "at": 0.0, "turn_id": "T1"}
    made: Any = kind
    return [*facts, made(**common, **fields)]


def test_an_attempt_needs_what_its_rules_ask() -> None:
    """K-31, K-33, K-53: a start its approval, a retry its doubt and a turn that goes on."""
    facts = doubtful(interrupted=False)
    authorised = more(facts, RetryAuthorised, invocation_id="a", attempt=1)
    Kernel.recover(RUN, authorised)

    for journal_, cause in [
        (more(facts, RetryAuthorised, invocation_id="a", attempt=2), "its attempt is 2, not 1"),
        (
            more(facts, ExecutionRetried, invocation_id="a", attempt=2),
            "the invocation is IN_DOUBT",
        ),
        (
            more(authorised, RetryAuthorised, invocation_id="a", attempt=1),
            "the invocation is RETRY_AUTHORISED",
        ),
        (
            more(doubtful(interrupted=True), RetryAuthorised, invocation_id="a", attempt=1),
            "no retry can be authorised here",
        ),
        (
            more(
                facts,
                ToolApproved,
                invocation_id="b",
                tool_name="ls",
                scope=Scope.ONCE,
            ),
            "it does not wait for approval",
        ),
        (
            more(
                FACTS[: place(FactType.CALL_ADDED)],
                ToolExecutionStarted,
                invocation_id="a",
                tool_name="ls",
                attempt=1,
            ),
            "its attempt is 1, not owed at all",
        ),
    ]:
        with pytest.raises(CorruptJournal) as caught:
            Kernel.recover(RUN, journal_)
        assert caught.value.cause == f"{journal_[-1].type}: {cause}"


def test_a_commit_brings_all_that_belongs_to_it() -> None:
    """A gated call is asked about at once, and an interrupt denies what has not started."""
    asked = changed(FACTS[0], commit=1)
    with pytest.raises(CorruptJournal, match=": nobody was asked about 'a';"):
        Kernel.recover(RUN, [asked])

    whole = doubtful(interrupted=True)
    denied = [fact for fact in whole if fact.type is FactType.TOOL_DENIED]
    with pytest.raises(CorruptJournal, match=": 'b' was not denied by the interrupt;"):
        Kernel.recover(RUN, renumbered([fact for fact in whole if fact not in denied]))


def test_a_call_that_is_added_must_be_asked_about_in_its_commit() -> None:
    """What streams in later is held to the same as what a turn opens with."""
    kernel = Kernel(RUN)
    facts = [
        *kernel.receive(OpenTurn(turn_id="T1", calls=(call("a"),), sealed=False), 0.0).facts,
        *kernel.receive(AddCall(turn_id="T1", call=call("b", gated=True)), 1.0).facts,
    ]
    added = changed(facts[1], commit=2)

    with pytest.raises(CorruptJournal, match=": nobody was asked about 'b';"):
        Kernel.recover(RUN, [facts[0], added])


def test_what_time_brought_first_does_not_hide_what_a_commit_lacks() -> None:
    """A lease that ran out comes first in the interrupt's commit, and is told no more of (K-11)."""
    kernel = Kernel(RUN)
    facts = [
        *kernel.receive(
            OpenTurn(turn_id="T1", calls=(call("a"), call("b", gated=True))), 0.0
        ).facts,
        *kernel.receive(Claim(turn_id="T1", invocation_id="a", attempt=1, lease=1.0), 0.0).facts,
    ]
    doubt, interrupting, _ = kernel.receive(Interrupt(turn_id="T1"), 5.0).facts
    assert (doubt.type, interrupting.type) == (
        FactType.EXECUTION_IN_DOUBT,
        FactType.TURN_INTERRUPTING,
    )
    cut = [changed(fact, commit=interrupting.sequence) for fact in (doubt, interrupting)]

    with pytest.raises(CorruptJournal, match=": 'b' was not denied by the interrupt;"):
        Kernel.recover(RUN, [*facts, *cut])


def test_recovery_looks_at_each_member_a_few_times_however_many_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It once looked at all of them after every commit: two minutes for a turn of 10,000 calls."""
    many = 200
    kernel = Kernel(RUN)
    calls = tuple(call(f"c{number}") for number in range(many))
    deliveries = [
        OpenTurn(turn_id="T1", calls=calls),
        *(Claim(turn_id="T1", invocation_id=one.invocation_id, attempt=1) for one in calls),
        *(Report(turn_id="T1", invocation_id=one.invocation_id, result=1) for one in calls),
    ]
    facts = [fact for one in deliveries for fact in kernel.receive(one, 0.0).facts]
    looked = 0
    unfinished = Turn.unfinished

    def counted(turn: Turn) -> Iterator[Invocation]:
        nonlocal looked
        for invocation in unfinished(turn):
            looked += 1
            yield invocation

    monkeypatch.setattr(Turn, "unfinished", counted)
    recovered = Kernel.recover(RUN, facts)

    assert recovered.sequence == len(facts) == 2 * many + 2
    assert looked <= 4 * many


def test_a_turn_that_is_remembered_cannot_open_again() -> None:
    """Nor under other limits than it had: the limits belong to the run (K-54)."""
    forgetful = Run(run_id="r", limits=Limits(remembered=0))
    kernel = Kernel(forgetful)
    facts = [
        fact
        for _ in range(2)
        for delivery in (
            OpenTurn(turn_id="T1", calls=(call("a"),)),
            Reject(invocation_id="a", error="no such tool"),
            Acknowledge(turn_id="T1"),
        )
        for fact in kernel.receive(delivery, 0.0).facts
    ]
    Kernel.recover(forgetful, facts)

    with pytest.raises(CorruptJournal, match=r"closed; were the run's limits the same\?;"):
        Kernel.recover(RUN, facts)
