"""K-9: a receive is one commit, whole or not at all, and recovery keeps it so."""

from __future__ import annotations

import pytest

from turnlock import CorruptJournal, Fact, Kernel, Limits, Match, Reason, Scope

from ..outcome import gated, happens, refused
from ..script import Script
from .story import CROWD, RUN, STORY, journal


def test_k_9_the_facts_of_one_receive_are_one_commit() -> None:
    """Each names the sequence of the last fact of its receive, those of deadlines included."""
    kernel = Kernel(RUN)
    for now, line in STORY:
        facts = kernel.receive(line, now).facts
        assert (
            [fact.commit for fact in facts] == [facts[-1].sequence] * len(facts) if facts else True
        )


def test_k_9_a_refused_receive_commits_its_deadlines_together() -> None:
    """Two leases run out before a refused claim: the two facts are one commit."""
    play = Script()
    play.opens("T1", "a", "b")
    play.claims("a", lease=1.0)
    play.claims("b", lease=1.0)

    assert play.at(10.0).claims("a") == refused(
        Reason.NOT_AUTHORISED, "EXECUTION_IN_DOUBT a", "EXECUTION_IN_DOUBT b"
    )

    assert [(fact.sequence, fact.commit) for fact in play.verdict.facts] == [(4, 5), (5, 5)]


def test_k_9_numbers_of_a_commit_with_several_facts() -> None:
    """An approval for the session, its grant and what it covers: three facts, one commit."""
    play = Script()
    play.opens("T1", gated("a"), gated("b"))
    assert play.approves("a", Scope.SESSION) == happens(
        "TOOL_APPROVED a", "GRANT_ISSUED grant/r/1", "TOOL_APPROVED b"
    ).asking("execute a 1", "execute b 1")

    assert [(fact.sequence, fact.commit) for fact in play.journal] == [
        *[(1, 3), (2, 3), (3, 3)],
        *[(4, 6), (5, 6), (6, 6)],
    ]


def test_k_9_sequences_count_from_one_without_gaps() -> None:
    """However often the crowd is refused in between."""
    kernel = Kernel(RUN)
    sequences: list[int] = []
    for now, line in STORY:
        sequences += [fact.sequence for fact in kernel.receive(line, now).facts]
        for _ in range(2):
            assert kernel.receive(CROWD[-2], now).reason is Reason.RUN_MISMATCH

    assert sequences == list(range(1, len(sequences) + 1))


@pytest.mark.parametrize("cut", range(len(journal()) + 1))
def test_k_9_recovery_drops_an_incomplete_last_commit_whole(cut: int) -> None:
    """A journal torn after any fact is the journal up to its last whole commit."""
    facts = journal()
    whole: list[Fact] = []
    for end in range(cut + 1):
        if end and facts[end - 1].commit == facts[end - 1].sequence:
            whole = facts[:end]

    torn = Kernel.recover(RUN, facts[:cut])
    clean = Kernel.recover(RUN, whole)

    assert torn.sequence == clean.sequence == len(whole)
    assert torn.pending_effects == clean.pending_effects
    for delivery in CROWD[:40]:
        assert torn.receive(delivery, 100.0) == clean.receive(delivery, 100.0)


def test_k_9_a_success_without_its_settling_is_dropped() -> None:
    """The example of the rule: the turn is not left open for ever, the report is awaited again."""
    play = Script()
    play.opens("T1", "a")
    play.claims("a")
    play.reports("a")
    assert play.names[-2:] == ["TOOL_EXECUTION_SUCCEEDED a", "TURN_SETTLED T1"]

    play.journal.pop()
    torn = play.recovered()

    assert torn.owed == []
    assert torn.reports("a") == happens("TOOL_EXECUTION_SUCCEEDED a", "TURN_SETTLED T1").asking(
        "continue T1"
    )
    assert torn.verdict.facts[0].sequence == 3


def test_k_9_what_is_refused_is_refused_wholly() -> None:
    """An approval whose grant finds no room approves nothing, a turn too large opens nothing."""
    play = Script(limits=Limits(grants=0, calls=2))
    play.opens("T1", gated("a"), gated("b"))

    assert play.approves("a", Scope.SESSION, Match.TOOL) == refused(Reason.LIMIT_REACHED)
    assert play.owed == []
    assert play.approves("a") == happens("TOOL_APPROVED a").asking("execute a 1")

    play.rejects("a")
    play.rejects("b")
    assert play.opens("T2", "a", "b", "c") == refused(Reason.LIMIT_REACHED)
    assert play.claims("a", turn="T2") == refused(Reason.NO_ACTIVE_TURN)


def test_k_9_a_journal_with_a_hole_is_no_torn_one() -> None:
    """Only the end can be missing; anything else is told, with its place."""
    facts = journal()

    with pytest.raises(CorruptJournal) as raised:
        Kernel.recover(RUN, [*facts[:4], *facts[5:]])

    assert raised.value.sequence == 6
