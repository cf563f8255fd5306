"""K-6 and K-7: bounds with names and defaults, and ids that say what they are for."""

from __future__ import annotations

from typing import Any, cast

import attrs
import pytest

from turnlock import Cancel, Continue, Execute, Kernel, Limits, Match, Run, Scope, Wake
from turnlock.models.facts import GrantIssued
from turnlock.models.ids import escape

from ..outcome import call, gated, happens
from ..script import Script

# ------------------------------------------------------------------------------------------- K-6


LIMITS: tuple[attrs.Attribute[Any], ...] = attrs.fields(cast("Any", Limits))


def test_k_6_every_bound_has_a_name_and_a_default() -> None:
    """Exactly these, with the values of K-54 and K-56."""
    limits = Limits()

    assert {field.name: getattr(limits, field.name) for field in LIMITS} == {
        "remembered": 1_024,
        "remember_for": 300.0,
        "calls": 10_000,
        "grants": 1_000,
        "continuations": 1_000,
    }


def weight(kernel: Kernel) -> int:
    """How much a kernel retains: every object that can be reached from it through our own."""
    seen: set[int] = set()
    open_ends: list[Any] = [kernel]
    while open_ends:
        it: Any = open_ends.pop()
        if id(it) in seen or isinstance(it, type) or callable(it):
            continue
        seen.add(id(it))
        if isinstance(it, str | bytes | int | float):
            continue
        if hasattr(it, "items"):
            open_ends += it.values()
        if hasattr(it, "__iter__"):
            open_ends += it
        for kind in type(it).__mro__:
            slots = vars(kind).get("__slots__", ())
            for slot in (slots,) if isinstance(slots, str) else slots:
                if hasattr(it, slot):
                    open_ends.append(getattr(it, slot))
        open_ends += list(getattr(it, "__dict__", {}).values())
    return len(seen)


def live_one_turn(play: Script, number: int) -> None:
    """A turn with everything that leaves something behind: grants, deadlines, memory."""
    play.opens(f"T{number}", gated("a", timeout=1e6), "b", gated("c", n=1, timeout=2.0))
    play.approves("a", Scope.SESSION, expires_in=50.0)
    play.claims("b", lease=1000.0)
    for _ in range(30):
        play.renews("b", 1000.0)
    play.claims("a", lease=2000.0)
    play.reports("a")
    play.reports("b")
    play.acknowledges()


def test_k_6_what_is_retained_does_not_grow_with_what_has_happened() -> None:
    """Three hundred turns weigh what a hundred weigh: all that stays is bounded."""
    play = Script(limits=Limits(remembered=8))
    weights: list[int] = []
    for number in range(1, 301):
        live_one_turn(play, number)
        if number % 100 == 0:
            weights.append(weight(play.kernel))

    assert len(play.journal) > 10_000
    assert max(weights) - min(weights) <= weights[0] * 0.05
    assert weights[0] < 500


def test_k_6_one_long_turn_does_not_grow_with_what_happens_in_it() -> None:
    """Ten thousand renewals leave one lease, ten thousand refusals leave nothing.

    An earlier deadline is alive all the time, so that none of the leases can come up and be
    dropped.
    """
    play = Script()
    play.step = 0.0
    play.opens("T1", "a", gated("b", timeout=5.0))
    play.claims("a", lease=100.0)
    before = weight(play.kernel)
    for number in range(10_000):
        play.renews("a", 100.0 + number)
        play.reports("nobody")

    assert weight(play.kernel) <= before + 200


# ------------------------------------------------------------------------------------------- K-7


def test_k_7_ids_of_all_effects() -> None:
    """Section 9: execute, cancel, continue and wake, and the key of a call."""
    play = Script()
    play.opens("T1", "a", gated("b", timeout=5.0))
    execute = play.last(Execute)
    assert execute.effect_id == "execute/r/1/T1/a/1"
    assert execute.idempotency_key == "call/r/1/T1/a"
    assert play.last(Wake).effect_id == "wake/r"

    play.claims("a")
    play.interrupts()
    assert play.last(Cancel).effect_id == "cancel/r/1/T1/a/1"

    play.reports("a")
    play.opens("T2", "c")
    play.rejects("c")
    assert play.last(Continue).effect_id == "continue/r/2/T2"


def test_k_7_attempts_have_ids_of_their_own_and_one_key() -> None:
    """A retry is another effect of the same call."""
    play = Script()
    play.opens("T1", "a")
    play.claims("a")
    play.loses("a")
    play.retries("a")

    retry = play.last(Execute)
    assert retry.effect_id == "execute/r/1/T1/a/2"
    assert retry.idempotency_key == "call/r/1/T1/a"

    play.claims("a", 2)
    play.interrupts()
    assert play.last(Cancel).effect_id == "cancel/r/1/T1/a/2"


def test_k_7_a_slash_or_percent_inside_a_part_is_written_out() -> None:
    """Joined parts can be told apart again, in every id."""
    play = Script(Run(run_id="r/1"))
    play.opens("T/1%", "a/b%2F")
    assert play.last(Execute).effect_id == "execute/r%2F1/1/T%2F1%25/a%2Fb%252F/1"
    assert play.last(Execute).idempotency_key == "call/r%2F1/1/T%2F1%25/a%2Fb%252F"

    play.claims("a/b%2F")
    play.reports("a/b%2F")
    assert play.last(Continue).effect_id == "continue/r%2F1/1/T%2F1%25"

    play.opens("T2", gated("g", timeout=5.0), "x")
    assert play.last(Wake).effect_id == "wake/r%2F1"
    play.approves("g", Scope.SESSION, Match.TOOL)
    assert play.last(GrantIssued).grant_id == "grant/r%2F1/1"

    play.claims("x")
    play.interrupts()
    assert play.last(Cancel).effect_id == "cancel/r%2F1/2/T2/x/1"


@pytest.mark.parametrize(
    ("part", "written"),
    [
        ("a", "a"),
        ("a/b", "a%2Fb"),
        ("a%2Fb", "a%252Fb"),
        ("%", "%25"),
        ("//", "%2F%2F"),
        ("é", "é"),
    ],
)
def test_k_7_escaping_is_one_to_one(part: str, written: str) -> None:
    """A percent is written first, so that no two parts are written alike."""
    assert escape(part) == written


def test_k_7_different_calls_never_share_an_id() -> None:
    """Even if their parts, joined naively, would."""
    play = Script()
    play.opens("T", "a/1", "a", "a%2F1", "a%252F1")

    ids = {it.effect_id for it in play.kernel.pending_effects}
    keys = {it.idempotency_key for it in play.kernel.pending_effects if isinstance(it, Execute)}
    assert len(ids) == len(keys) == 4


def test_k_7_a_turn_id_used_again_has_another_epoch() -> None:
    """Once the turn is forgotten its id may come again; nothing it asks for has an old id."""
    play = Script(limits=Limits(remembered=0))
    ids: list[str] = []
    for _ in range(2):
        assert play.opens("T1", "a") == happens("TURN_OPENED T1").asking("execute a 1")
        ids += [it.effect_id for it in play.verdict.effects]
        play.claims("a")
        play.reports("a")
        ids += [it.effect_id for it in play.verdict.effects]
        play.acknowledges()

    assert ids == [
        "execute/r/1/T1/a/1",
        "continue/r/1/T1",
        "execute/r/2/T1/a/1",
        "continue/r/2/T1",
    ]


def test_k_7_ids_are_a_function_of_what_they_name_alone() -> None:
    """Not of time, nor of what else the run has done."""
    early, late = Script(), Script().at(1e9)
    late.opens("T0", gated("x"), sealed=False)
    late.adds(call("y"))
    late.interrupts()
    early.opens("T0", "z")
    early.rejects("z")
    for play in (early, late):
        play.opens("T1", "a")

    assert early.last(Execute) == late.last(Execute)
