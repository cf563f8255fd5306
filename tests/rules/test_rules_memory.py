"""K-54 and K-55: what is remembered, how much of it and for how long."""

from __future__ import annotations

import math

import pytest

from turnlock import Limits, Reason
from turnlock.models.facts import TurnOpened

from ..outcome import happens, refused
from ..script import Script


def lives(play: Script, turn: str, *names: str) -> None:
    """A turn with these calls, opened, closed and taken."""
    play.opens(turn, *names)
    for name in names:
        play.rejects(name)
    play.acknowledges()


# ------------------------------------------------------------------------------------------- K-54


@pytest.mark.parametrize("closed_at", [0.0, 100.0, 1.7e9])
def test_k_54_an_entry_of_exactly_300_seconds_is_remembered(closed_at: float) -> None:
    """Age 300 is not past it."""
    play = Script()
    play.at(closed_at).opens("T1", "a")
    play.at(closed_at).rejects("a")
    play.at(closed_at).acknowledges()

    play.at(closed_at + 300.0)
    play.step = 0.0
    assert play.reports("a", turn="T1") == refused(Reason.LATE)
    assert play.reports("a", turn=None) == refused(Reason.LATE)
    assert play.seals(turn="T1") == refused(Reason.LATE)
    assert play.opens("T1", "a") == refused(Reason.TURN_REUSED)


@pytest.mark.parametrize("closed_at", [0.0, 100.0, 1.7e9])
def test_k_54_at_the_next_float_it_is_gone(closed_at: float) -> None:
    """Invocation and turn alike: refused all the same, with another reason, or opened anew."""
    play = Script()
    play.at(closed_at).opens("T1", "a")
    play.at(closed_at).rejects("a")
    play.at(closed_at).acknowledges()

    play.at(math.nextafter(closed_at + 300.0, math.inf))
    play.step = 0.0
    assert play.reports("a", turn="T1") == refused(Reason.NO_ACTIVE_TURN)
    assert play.reports("a", turn=None) == refused(Reason.NO_ACTIVE_TURN)
    assert play.seals(turn="T1") == refused(Reason.NO_ACTIVE_TURN)
    assert play.opens("T1", "a").reason is None


def test_k_54_the_age_counts_from_the_closing() -> None:
    """Not from the call's own end, and the interrupted are remembered like the settled."""
    play = Script()
    play.at(0.0).opens("T1", "a", "b")
    play.at(0.0).rejects("a")
    play.at(200.0).interrupts()

    assert play.at(500.0).reports("a", turn="T1") == refused(Reason.LATE)
    assert play.at(500.5).reports("a", turn="T1") == refused(Reason.NO_ACTIVE_TURN)


def remembered(play: Script, *entries: tuple[str, str | None]) -> list[bool]:
    """Which of these (turn, invocation) and (turn) are remembered as closed."""
    return [
        (play.seals(turn=turn) if name is None else play.reports(name, turn=turn)).reason
        is Reason.LATE
        for turn, name in entries
    ]


def test_k_54_the_least_recently_closed_leaves_first() -> None:
    """Of a turn: each invocation in expected order, then the turn itself."""
    entries = (("T1", "b"), ("T1", "a"), ("T1", "c"), ("T1", None))
    for bound in range(6):
        play = Script(limits=Limits(remembered=bound))
        lives(play, "T1", "b", "a", "c")
        assert remembered(play, *entries) == [place >= 4 - bound for place in range(4)]


def test_k_54_an_older_turn_leaves_before_a_younger_one() -> None:
    """Entry by entry."""
    play = Script(limits=Limits(remembered=3))
    lives(play, "T1", "a")
    assert remembered(play, ("T1", "a"), ("T1", None)) == [True, True]

    lives(play, "T2", "b")
    assert remembered(play, ("T1", "a"), ("T1", None), ("T2", "b"), ("T2", None)) == [
        *[False, True],
        *[True, True],
    ]

    lives(play, "T3", "a")
    assert remembered(play, ("T1", None), ("T2", "b"), ("T2", None), ("T3", "a")) == [
        *[False, False],
        *[True, True],
    ]


def test_k_54_at_most_1024_entries_by_default() -> None:
    """A turn of 1,023 calls fits with its own entry; of one of 1,024 the first call has left."""
    names = [f"i{number}" for number in range(1_024)]
    play = Script()
    lives(play, "T1", *names[:1_023])
    assert remembered(play, ("T1", "i0"), ("T1", "i1022"), ("T1", None)) == [True, True, True]

    play = Script()
    lives(play, "T1", *names)
    assert remembered(play, ("T1", "i0"), ("T1", "i1"), ("T1", None)) == [False, True, True]


def test_k_54_a_lookup_changes_nothing() -> None:
    """Neither its age nor its turn to leave: asking keeps nothing alive."""
    play = Script(limits=Limits(remembered=4, remember_for=10.0))
    play.step = 0.0
    lives(play, "T1", "a")
    lives(play, "T2", "b")
    for _ in range(10):
        assert play.reports("a", turn="T1") == refused(Reason.LATE)
        assert play.opens("T1", "x") == refused(Reason.TURN_REUSED)
    lives(play, "T3", "c")
    assert remembered(play, ("T1", "a"), ("T1", None), ("T2", "b")) == [False, False, True]

    assert play.at(9.0).reports("c", turn="T3") == refused(Reason.LATE)
    assert play.at(10.0).reports("c", turn="T3") == refused(Reason.LATE)
    assert play.at(10.5).reports("c", turn="T3") == refused(Reason.NO_ACTIVE_TURN)


def test_k_54_the_same_id_in_two_turns_is_two_entries() -> None:
    """The older one leaves, the younger one stays: with its turn, and without any."""
    play = Script(limits=Limits(remembered=3))
    lives(play, "T1", "a")
    lives(play, "T2", "a")

    assert remembered(play, ("T1", "a"), ("T2", "a")) == [False, True]
    assert play.reports("a", turn=None) == refused(Reason.LATE)


def test_k_54_an_invocation_is_forgotten_before_its_turn() -> None:
    """A report of the forgotten one is refused all the same: the safety is not the memory's."""
    play = Script(limits=Limits(remembered=1))
    lives(play, "T1", "a")
    assert play.reports("a", turn="T1") == refused(Reason.NO_ACTIVE_TURN)
    assert play.opens("T1", "a") == refused(Reason.TURN_REUSED)

    play.opens("T2", "b")
    assert play.reports("a", turn="T1") == refused(Reason.TURN_MISMATCH)
    assert play.reports("a", turn=None) == refused(Reason.UNKNOWN_INVOCATION)


def test_k_54_the_memory_is_a_fold_of_facts() -> None:
    """A recovered kernel remembers the same."""
    play = Script(limits=Limits(remembered=3))
    lives(play, "T1", "a")
    lives(play, "T2", "b")
    entries = (("T1", "a"), ("T1", None), ("T2", "b"), ("T2", None))

    assert remembered(play.recovered(), *entries) == remembered(play, *entries)


# ------------------------------------------------------------------------------------------- K-55


def test_k_55_a_forgotten_turn_opens_anew_unless_its_epoch_says_no() -> None:
    """Delivered again long after: with the epoch it is refused for good, without one it opens."""
    play = Script()
    play.opens("T1", "a", epoch=1)
    play.rejects("a")
    play.acknowledges()

    assert play.at(200.0).opens("T1", "a", epoch=1) == refused(Reason.TURN_REUSED)
    assert play.at(1e6).opens("T1", "a", epoch=1) == refused(Reason.STALE_EPOCH)
    assert play.at(2e6).recovered().opens("T1", "a", epoch=1) == refused(Reason.STALE_EPOCH)

    assert play.at(3e6).opens("T1", "a") == happens("TURN_OPENED T1").asking("execute a 1")
    assert play.last(TurnOpened).epoch == 2
