"""The order of service (section 10), against a queue that looks at all that waits each time."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, repeat
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnlock.engine import inbox as module
from turnlock.engine.inbox import CAPACITY, LANES, STARVATION_BOUND, Inbox, Lane
from turnlock.models.calls import Call
from turnlock.models.deliveries import (
    DELIVERIES,
    Acknowledge,
    AddCall,
    Claim,
    Decide,
    Delivery,
    Interrupt,
    Log,
    Lose,
    OpenTurn,
    Reject,
    Renew,
    Report,
    Resolution,
    Resolve,
    Revoke,
    SealTurn,
    Tick,
)
from turnlock.models.errors import InboxFull, InvalidValue

WORST = STARVATION_BOUND + len(Lane) - 2
BUILDERS = (OpenTurn, AddCall, SealTurn)
CALL = Call(invocation_id="a", tool_name="ls", arguments={}, requires_approval=False)

# How to build each delivery for a turn, and those that can do without one.
OF_A_TURN: dict[type[Delivery], Callable[[str], Delivery]] = {
    Interrupt: lambda turn: Interrupt(turn_id=turn),
    Report: lambda turn: Report(turn_id=turn, invocation_id="a", result=None),
    Reject: lambda turn: Reject(turn_id=turn, invocation_id="a", error="no such tool"),
    Lose: lambda turn: Lose(turn_id=turn, invocation_id="a"),
    Resolve: lambda turn: Resolve(
        turn_id=turn, invocation_id="a", attempt=1, resolution=Resolution.RETRY
    ),
    Decide: lambda turn: Decide(turn_id=turn, invocation_id="a", approved=True),
    Acknowledge: lambda turn: Acknowledge(turn_id=turn),
    Claim: lambda turn: Claim(turn_id=turn, invocation_id="a", attempt=1),
    Renew: lambda turn: Renew(turn_id=turn, invocation_id="a", lease=1.0),
    OpenTurn: lambda turn: OpenTurn(turn_id=turn, calls=(CALL,)),
    AddCall: lambda turn: AddCall(turn_id=turn, call=CALL),
    SealTurn: lambda turn: SealTurn(turn_id=turn),
    Log: lambda turn: Log(turn_id=turn, invocation_id="a", text="…"),
}
OF_NO_TURN: dict[type[Delivery], Callable[[], Delivery]] = {
    Revoke: lambda: Revoke(grant_id="grant/run/1"),
    Report: lambda: Report(invocation_id="a", error="boom"),
    Reject: lambda: Reject(invocation_id="a", error="no such tool"),
    Lose: lambda: Lose(invocation_id="a"),
    Log: lambda: Log(invocation_id="a", text="…"),
    Tick: Tick,
}
ONE_OF_EACH_LANE: dict[Lane, Callable[[], Delivery]] = {
    Lane.STOP: OF_NO_TURN[Revoke],
    Lane.OUTCOME: OF_NO_TURN[Report],
    Lane.DECISION: lambda: Acknowledge(turn_id="T1"),
    Lane.CLAIM: lambda: Claim(turn_id="T1", invocation_id="a", attempt=1),
    Lane.MEMBERSHIP: lambda: SealTurn(turn_id="T2"),
    Lane.REST: Tick,
}

# ---------------------------------------------------------------------------------------- the model


def turn_of(delivery: Any) -> str | None:
    """Return the turn that a delivery names, if any."""
    turn: str | None = getattr(delivery, "turn_id", None)
    return turn


def those_that_may_go(waiting: Iterable[Delivery]) -> Iterator[tuple[int, Delivery]]:
    """Nothing overtakes an earlier open, add or seal of its own turn."""
    building: set[str | None] = set()
    for place, delivery in enumerate(waiting):
        turn = turn_of(delivery)
        if turn not in building:
            yield place, delivery
        if isinstance(delivery, BUILDERS):
            building.add(turn)


class DumbInbox:
    """The same rules, read off the list of all that waits: O(n²), and plain to see."""

    def __init__(self, *, capacity: int, bound: int) -> None:
        self.capacity = capacity
        self.bound = bound
        self.waiting: list[Delivery] = []
        self.passed = dict.fromkeys(Lane, 0)

    def put(self, delivery: Delivery) -> bool:
        if len(self.waiting) == self.capacity:
            return False
        self.waiting.append(delivery)
        return True

    def servable(self) -> dict[Lane, int]:
        """By lane, where the first delivery stands that may go."""
        first: dict[Lane, int] = {}
        for place, delivery in those_that_may_go(self.waiting):
            first.setdefault(LANES[type(delivery)], place)
        return first

    def take(self) -> Delivery | None:
        servable = self.servable()
        if not servable:
            return None
        starving = [lane for lane in servable if self.passed[lane] >= self.bound]
        longest = max((self.passed[lane] for lane in starving), default=0)
        lane = min(
            (lane for lane in starving if self.passed[lane] == longest), default=min(servable)
        )
        for other in servable:
            self.passed[other] = 0 if other is lane else self.passed[other] + 1
        return self.waiting.pop(servable[lane])


# --------------------------------------------------------------------------------------- strategies

Build: TypeAlias = Callable[[], Delivery]
Script: TypeAlias = list[tuple[Build | None, int]]


def bound_to(build: Callable[[str], Delivery], turn: str) -> Build:
    return lambda: build(turn)


BUILDS: list[Build] = [
    *OF_NO_TURN.values(),
    *(bound_to(build, turn) for build in OF_A_TURN.values() for turn in ("T1", "T2", "T3")),
]
times = st.one_of(st.integers(1, 4), st.integers(1, WORST))


def scripts_of(few: list[Build]) -> st.SearchStrategy[Script]:
    return st.lists(st.tuples(st.one_of(st.none(), st.sampled_from(few)), times), max_size=20)


scripts = st.lists(st.sampled_from(BUILDS), min_size=2, max_size=6).flatmap(scripts_of)
"""Put so many of one kind, or (None) take so many; of few kinds, so that they meet."""


def steps(script: Script) -> Iterable[Build | None]:
    return chain.from_iterable(repeat(build, count) for build, count in script)


# --------------------------------------------------------------------------------------- properties


@given(
    script=scripts,
    capacity=st.sampled_from([1, 7, 50, CAPACITY]),
    bound=st.sampled_from([1, 2, 5, STARVATION_BOUND]),
)
@settings(deadline=None)
def test_it_serves_as_the_dumb_one_does(script: Script, capacity: int, bound: int) -> None:
    """Every take hands out the very delivery that the rules name; a full inbox stays as it is."""
    inbox, dumb = Inbox(capacity=capacity), DumbInbox(capacity=capacity, bound=bound)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "STARVATION_BOUND", bound)
        for build in steps(script):
            if build is None:
                assert inbox.take() is dumb.take()
            else:
                delivery = build()
                if dumb.put(delivery):
                    inbox.put(delivery)
                else:
                    with pytest.raises(InboxFull):
                        inbox.put(delivery)
            assert len(inbox) == len(dumb.waiting)
        for delivery in inbox.drain():
            assert delivery is dumb.take()
    assert dumb.waiting == []


@given(script=scripts)
@settings(deadline=None)
def test_nothing_is_lost_doubled_or_out_of_line(script: Script) -> None:
    """What was put comes out once; after what its lane and turn, and its own turn's building, owe.

    Of two of one lane and one turn the earlier goes first, and so do two that name no turn.
    """
    inbox = Inbox()
    arrived: list[Delivery] = []
    served: list[Delivery] = []
    for build in steps(script):
        if build is not None:
            arrived.append(build())
            inbox.put(arrived[-1])
        elif (delivery := inbox.take()) is not None:
            served.append(delivery)
    served += inbox.drain()

    place = {id(delivery): index for index, delivery in enumerate(served)}
    assert sorted(map(id, arrived)) == sorted(place)
    assert len(served) == len(arrived)
    last: dict[tuple[Lane, str | None], int] = {}
    last_building: dict[str | None, int] = {}
    for delivery in arrived:
        now, turn, lane = place[id(delivery)], turn_of(delivery), LANES[type(delivery)]
        assert now > last.get((lane, turn), -1)
        assert now > last_building.get(turn, -1)
        last[lane, turn] = now
        if lane is Lane.MEMBERSHIP:
            last_building[turn] = now


@given(script=scripts)
@settings(deadline=None)
def test_a_lane_is_first_come_first_served(script: Script) -> None:
    """Of what may go, a lane hands out what arrived first, whether or not it was ever held."""
    inbox = Inbox()
    waiting: list[Delivery] = []
    for build in steps(script):
        if build is not None:
            waiting.append(build())
            inbox.put(waiting[-1])
        elif (delivery := inbox.take()) is not None:
            lane = LANES[type(delivery)]
            place, first = next(
                (place, other)
                for place, other in those_that_may_go(waiting)
                if LANES[type(other)] is lane
            )
            assert first is delivery
            del waiting[place]


@given(
    rounds=st.lists(
        st.tuples(st.sets(st.sampled_from(Lane)), st.integers(1, STARVATION_BOUND)), max_size=12
    )
)
@settings(deadline=None)
def test_no_lane_is_passed_over_more_often_than_the_bound(
    rounds: list[tuple[set[Lane], int]],
) -> None:
    """Whichever lanes are kept busy, and however they change, the bound holds for each."""
    inbox = Inbox()
    waiting = dict.fromkeys(Lane, 0)
    passed = dict.fromkeys(Lane, 0)
    for busy, count in rounds:
        for _ in range(count):
            for lane in busy:
                inbox.put(ONE_OF_EACH_LANE[lane]())
                waiting[lane] += 1
            taken = inbox.take()
            for lane in Lane:
                if taken is not None and LANES[type(taken)] is lane:
                    waiting[lane] -= 1
                    passed[lane] = 0
                elif waiting[lane]:
                    passed[lane] += 1
                    assert passed[lane] <= WORST


# ----------------------------------------------------------------------------------------- examples


def served(*deliveries: Delivery) -> list[Delivery]:
    """Put all, then take all."""
    inbox = Inbox()
    for delivery in deliveries:
        inbox.put(delivery)
    return list(inbox.drain())


def test_use_case_10_queue_priority_processes_result_before_pending_invocation_request() -> None:
    """Seed use case 10: a result goes before a request that was pending already."""
    request = Claim(turn_id="T1", invocation_id="b", attempt=1)
    next_turn = OpenTurn(turn_id="T2", calls=(CALL,))
    result = Report(turn_id="T1", invocation_id="a", result="done")

    assert served(request, next_turn, result) == [result, request, next_turn]


def test_every_delivery_has_the_lane_of_section_10() -> None:
    """The lanes are the list of section 10, and none of the deliveries is without one."""
    by_lane = {lane: {kind for kind, of in LANES.items() if of is lane} for lane in Lane}

    assert list(by_lane.values()) == [
        {Interrupt, Revoke},
        {Report, Reject, Lose, Resolve},
        {Decide, Acknowledge},
        {Claim, Renew},
        {OpenTurn, AddCall, SealTurn},
        {Log, Tick},
    ]
    assert set(LANES) == set(DELIVERIES) == {*OF_A_TURN, *OF_NO_TURN}


def test_a_report_does_not_overtake_the_opening_of_its_turn() -> None:
    """Otherwise the kernel would refuse a true report as of no turn that it knows."""
    opening = OpenTurn(turn_id="T1", calls=(), sealed=False)
    adding = AddCall(turn_id="T1", call=CALL)
    early = Report(turn_id="T1", invocation_id="a", result=1)
    sealing = SealTurn(turn_id="T1")
    later = Report(turn_id="T1", invocation_id="a", result=2)

    assert served(opening, adding, early, sealing, later) == [
        *[opening, adding],
        *[early, sealing],
        later,
    ]


def test_a_held_delivery_blocks_nobody_and_keeps_its_place() -> None:
    """Others of its lane go by while it is held; once let go, it stands before what came later."""
    opening = OpenTurn(turn_id="T2", calls=(CALL,))
    held = Report(turn_id="T2", invocation_id="a", result="held")
    other = Report(turn_id="T1", invocation_id="a", result="other")
    inbox = Inbox()
    for delivery in (opening, held, other):
        inbox.put(delivery)

    assert inbox.take() is other
    assert inbox.take() is opening

    inbox.put(later := Report(turn_id="T1", invocation_id="b", result="later"))
    assert list(inbox.drain()) == [held, later]


def test_what_was_held_falls_in_between_what_was_not() -> None:
    """Once let go, a lane goes by arrival again, as if nothing of it had been held."""
    opening = OpenTurn(turn_id="T2", calls=(CALL,))
    logs = [
        Log(turn_id=turn, invocation_id="a", text=str(number))
        for number, turn in enumerate(["T2", "T1", "T2", "T2", "T1"])
    ]

    assert served(opening, *logs) == [opening, *logs]


def test_a_delivery_without_a_turn_has_no_own_turn() -> None:
    """A report that names no turn is never held, whatever waits before it."""
    opening = OpenTurn(turn_id="T1", calls=(CALL,))
    report = Report(invocation_id="a", result=1)

    assert served(opening, report) == [report, opening]


def test_a_turn_is_not_held_by_what_came_after() -> None:
    """An interrupt waits for what was put before it, not for what is put after it."""
    interrupt = Interrupt(turn_id="T1")
    sealing = SealTurn(turn_id="T1")

    assert served(interrupt, sealing) == [interrupt, sealing]


@pytest.mark.parametrize("lane", list(Lane)[1:])
def test_a_starving_lane_goes_next(lane: Lane) -> None:
    """Alone under a flood of interrupts, a lane is passed over `STARVATION_BOUND` times."""
    inbox = Inbox()
    inbox.put(starving := ONE_OF_EACH_LANE[lane]())
    for _ in range(2 * STARVATION_BOUND):
        inbox.put(Revoke(grant_id="grant/run/1"))

    order = list(inbox.drain())

    assert next(at for at, taken in enumerate(order) if taken is starving) == STARVATION_BOUND


def test_the_bound_is_reached_when_all_starve_at_once() -> None:
    """The bound is exact: of five lanes that starve at once, the lowest is passed over 68 times."""
    inbox = Inbox()
    for _ in range(2 * WORST):
        for build in ONE_OF_EACH_LANE.values():
            inbox.put(build())

    lanes = [LANES[type(taken)] for taken in inbox.drain()]

    assert WORST == 68
    assert lanes[:STARVATION_BOUND] == [Lane.STOP] * STARVATION_BOUND
    assert lanes[STARVATION_BOUND : WORST + 1] == list(Lane)[1:]
    assert lanes[WORST + 1] is Lane.STOP


def test_a_full_inbox_refuses_and_loses_nothing() -> None:
    """Held ones count too; the caller is told so, and may put the delivery again after a take."""
    opening = OpenTurn(turn_id="T1", calls=(CALL,))
    held = Report(turn_id="T1", invocation_id="a", result=1)
    sealing = SealTurn(turn_id="T1")
    inbox = Inbox(capacity=2)
    inbox.put(opening)
    inbox.put(held)

    with pytest.raises(InboxFull, match="holds 2 deliveries, its capacity; take some"):
        inbox.put(sealing)
    assert len(inbox) == 2

    assert inbox.take() is opening
    inbox.put(sealing)
    assert list(inbox.drain()) == [held, sealing]


def test_an_empty_inbox_has_nothing_to_hand_out() -> None:
    """None is the answer, however often it is asked."""
    inbox = Inbox()

    assert (inbox.take(), inbox.take(), len(inbox), inbox.capacity) == (None, None, 0, 100_000)


def test_what_is_put_while_draining_is_served() -> None:
    """A drain ends when nothing waits, not when what waited at its start is gone."""
    inbox = Inbox()
    inbox.put(Tick())
    drained = 0
    for _ in inbox.drain():
        drained += 1
        if drained < 3:
            inbox.put(Tick())

    assert drained == 3


@pytest.mark.parametrize("capacity", [0, -1, True, 2.0, "2", None])
def test_a_capacity_is_a_positive_integer(capacity: Any) -> None:
    """K-8: an inbox that could never hold anything cannot be built."""
    with pytest.raises(InvalidValue, match=r"capacity: .* is no positive whole number; give 1"):
        Inbox(capacity=capacity)


def test_what_is_no_delivery_raises_at_the_caller() -> None:
    """K-8: the mistake surfaces where it is made, not in the loop that takes."""
    inbox = Inbox()
    stranger: Any = {"type": "tick"}

    with pytest.raises(InvalidValue, match=r"delivery: \{'type': 'tick'\} is no delivery; build"):
        inbox.put(stranger)
    assert len(inbox) == 0


def test_letting_go_of_a_hundred_thousand_is_one_step() -> None:
    """What a barrier holds is let go whole: a strand per lane joins, whatever its length."""
    inbox = Inbox()
    inbox.put(OpenTurn(turn_id="T1", calls=(CALL,)))
    held = [OF_A_TURN[kind]("T1") for kind in (Interrupt, Report, Decide, Claim, Log)]
    for index in range(CAPACITY - 1):
        inbox.put(held[index % len(held)])

    assert type(inbox.take()) is OpenTurn

    assert [len(line.strands) if line else 0 for line in inbox._lines] == [1, 1, 1, 1, 0, 1]
    assert len(list(inbox.drain())) == CAPACITY - 1
    assert (inbox._held, inbox._barriers) == ({}, {})


def test_nothing_is_kept_of_what_was_taken() -> None:
    """K-6: turns that were served leave no trace, however many there were."""
    inbox = Inbox()
    for number in range(1_000):
        inbox.put(OpenTurn(turn_id=f"T{number}", calls=(CALL,)))
        inbox.put(Report(turn_id=f"T{number}", invocation_id="a", result=number))
    assert len(inbox._held) == len(inbox._barriers) == 1_000

    assert len(list(inbox.drain())) == 2_000

    assert (len(inbox), inbox._held, inbox._barriers) == (0, {}, {})
    assert not any(line.strands for line in inbox._lines if line)
