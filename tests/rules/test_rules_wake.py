"""Section 9: the wake, which says when somebody should tick."""

from __future__ import annotations

import math

from turnlock import Effect, Scope

from ..outcome import gated, happens
from ..script import Script


def three_deadlines(at: dict[str, float]) -> Script:
    """A turn in which an approval, a lease and a grant have these deadlines, and one call more."""
    play = Script()
    play.step = 0.0
    play.opens("T1", gated("g", "other"), "l", gated("a", timeout=at["approval"]), "open")
    play.approves("g", Scope.SESSION, expires_in=at["grant"])
    play.claims("l", lease=at["lease"])
    return play


def kinds_asked(play: Script) -> list[str]:
    """The kinds of all effects of the last receive, wakes too."""
    effects: tuple[Effect, ...] = play.verdict.effects
    return [effect.type for effect in effects]


def test_section_9_the_wake_is_the_first_float_at_which_the_earliest_deadline_is_over() -> None:
    """A tick one float earlier has nothing to do, a tick then has."""
    play = three_deadlines({"approval": 10.0, "lease": 20.0, "grant": 30.0})
    over = math.nextafter(10.0, math.inf)
    assert play.wake == over

    assert play.at(10.0).ticks() == happens()
    assert play.at(over).ticks() == happens("TOOL_DENIED a")

    assert play.wake == math.nextafter(20.0, math.inf)


def test_section_9_the_wake_is_owed_anew_when_it_changes_and_only_then() -> None:
    """An earlier deadline, a renewal, an end: each time another wake, or none."""
    play = Script()
    play.opens("T1", "a", gated("b", timeout=50.0))
    assert play.wake == math.nextafter(50.0, math.inf)

    play.at(1.0).claims("a", lease=9.0)
    assert kinds_asked(play) == ["wake"]
    assert play.wake == math.nextafter(10.0, math.inf)

    play.at(2.0).logs("a")
    assert play.verdict.effects == ()

    play.at(3.0).renews("a", 7.0)
    assert play.verdict.effects == ()
    assert play.wake == math.nextafter(10.0, math.inf)

    play.at(4.0).renews("a", 100.0)
    assert kinds_asked(play) == ["wake"]
    assert play.wake == math.nextafter(50.0, math.inf)

    play.at(5.0).denies("b")
    assert play.wake == math.nextafter(104.0, math.inf)

    play.at(6.0).reports("a")
    assert play.wake is None
    assert kinds_asked(play) == ["continue"]


def test_section_9_the_wake_covers_the_deadlines_of_k_11_alone() -> None:
    """Nobody is woken for the memory."""
    play = Script()
    play.opens("T1", "a")
    play.rejects("a")

    assert play.wake is None
