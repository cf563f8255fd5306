"""The judge of a fleet, judged: a ledger that is right, and forged ones, one for each rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs
import pytest

from turnlock import (
    Acknowledge,
    Call,
    Claim,
    Fact,
    Kernel,
    Lose,
    OpenTurn,
    Report,
    Resolution,
    Resolve,
    Run,
)
from turnlock.models.facts import ContinuationTaken, ToolExecutionStarted, TurnOpened
from turnlock.models.record import changed

from .judge import RULES, Case, Recorded, violations
from .ledger import (
    Began,
    Ended,
    Event,
    Heard,
    Joined,
    Kept,
    Killed,
    Opened,
    Owned,
    Raised,
    Stopped,
    Unrenewed,
    WentOn,
    checksum,
)

RUN: Final = Run(run_id="r0")
KEY: Final = "call/r0/1/t1/c0"
EFFECT: Final = "continue/r0/1/t1"
VALUE: Final = "what the tool returned"


def facts_of(*, doubted: bool = False) -> list[Fact]:
    """One turn of one call to its end; where it was in doubt a second attempt is its end."""
    call = Call(invocation_id="c0", tool_name="act", arguments={}, requires_approval=False)
    at = {"turn_id": "t1", "invocation_id": "c0"}
    again = (
        Lose(attempt=1, **at),
        Resolve(attempt=1, resolution=Resolution.RETRY, **at),
        Claim(attempt=2, worker="w/2", lease=30.0, **at),
    )
    deliveries = (
        OpenTurn(turn_id="t1", calls=(call,)),
        Claim(attempt=1, worker="w/1", lease=30.0, **at),
        *(again if doubted else ()),
        Report(attempt=2 if doubted else 1, result=VALUE, **at),
        Acknowledge(turn_id="t1"),
    )
    kernel = Kernel(RUN)
    return [fact for it in deliveries for fact in kernel.receive(it, 1.0).facts]


@attrs.define
class Story:
    """A case to be forged: a host that does all of it, at seconds 1, 2, 3 and so on."""

    facts: list[Fact] = attrs.field(factory=facts_of)
    events: list[Event] = attrs.field(factory=list[Event])

    def note(self, kind: type[Event], *, by: str = "a", **more: Any) -> None:
        self.events.append(kind(by=by, at=float(len(self.events) + 1), **more))

    def owned(self, *, by: str = "a", fence: int = 1) -> None:
        self.note(Owned, by=by, run="r0", fence=fence)

    def kept(self, first: int, last: int, *, by: str = "a", fence: int = 1) -> None:
        told = checksum(self.facts[first - 1 : last])
        self.note(Kept, by=by, run="r0", fence=fence, first=first, last=last, checksum=told)

    def began(self, *, by: str = "a", attempt: int = 1, worker: str = "w/1") -> None:
        named = {"run": "r0", "turn": "t1", "invocation": "c0"}
        self.note(Began, by=by, key=KEY, attempt=attempt, worker=worker, **named)

    def ended(self, *, by: str = "a", attempt: int = 1, value: str = VALUE) -> None:
        self.note(Ended, by=by, key=KEY, attempt=attempt, value=value, run="r0")

    def heard(self, *, by: str = "a", sure: bool = True, result: str | None = VALUE) -> None:
        at = float(len(self.events) + 1) - 0.25
        self.note(
            Heard,
            by=by,
            effect=EFFECT,
            run="r0",
            turn="t1",
            results={"c0": result},
            sure=at if sure else None,
        )

    def taken_over(self) -> None:
        """Host `b` has the run from now on."""
        self.owned(by="b", fence=2)

    def rules(self) -> set[str]:
        case = Case(
            events=self.events,
            journal={"r0": Recorded(run=RUN, facts=self.facts)},
            turns={"r0": 1},
        )
        return {it.name for it in violations(case)}


def story() -> Story:
    """What happened where nothing went wrong."""
    told = Story()
    told.note(Joined, ahead=0.0)
    told.owned()
    told.kept(1, 1)
    told.note(Opened, run="r0", turn="t1")
    told.kept(2, 2)
    told.began()
    told.ended()
    told.kept(3, 4)
    told.heard()
    told.kept(5, 5)
    return told


def test_what_is_right_is_found_right() -> None:
    assert story().rules() == set()


def without_the_end(told: Story) -> None:
    told.facts = [it for it in told.facts if not isinstance(it, ContinuationTaken)]
    told.events.pop()


def once_more(told: Story) -> None:
    told.began(by="b")


def by_another_worker(told: Story) -> None:
    told.began(worker="w/9", attempt=9)


def with_another_result(told: Story) -> None:
    told.ended(value="of somebody else")


def without_a_return(told: Story) -> None:
    told.events = [it for it in told.events if not isinstance(it, Ended)]


def told_something_else(told: Story) -> None:
    told.note(Raised, effect=EFFECT)
    told.heard(result="something else")


def kept_something_else(told: Story) -> None:
    told.facts[4] = changed(told.facts[4], at=2.0)


def written_by_the_older(told: Story) -> None:
    at = next(at for at, it in enumerate(told.events) if isinstance(it, Kept))
    told.events[at] = changed_event(told.events[at], fence=2)


def kept_again(told: Story) -> None:
    told.kept(5, 5)


def opened_by_two(told: Story) -> None:
    told.note(Opened, by="b", run="r0", turn="t1")


def heard_by_two(told: Story) -> None:
    told.taken_over()
    told.heard(by="b")


def heard_by_the_taken(told: Story) -> None:
    told.note(Raised, effect=EFFECT)
    told.taken_over()
    told.heard()


def out_of_order(told: Story) -> None:
    told.facts[1], told.facts[2] = told.facts[2], told.facts[1]
    told.events = [it for it in told.events if not isinstance(it, Kept)]


def changed_event(event: Event, **fields: Any) -> Event:
    return attrs.evolve(event, **fields)


FORGED: Final[Sequence[tuple[str, Callable[[Story], None]]]] = (
    ("unfinished", without_the_end),
    ("ran_twice", once_more),
    ("started_without_a_fact", by_another_worker),
    ("lost_result", with_another_result),
    ("made_up_result", without_a_return),
    ("told_otherwise", told_something_else),
    ("lost_facts", kept_something_else),
    ("two_writers", written_by_the_older),
    ("two_writers", kept_again),
    ("opened_twice", opened_by_two),
    ("continued_twice", heard_by_two),
    ("handed_over_by_the_taken", heard_by_the_taken),
    ("broken_journal", out_of_order),
)


@pytest.mark.parametrize(("rule", "forge"), FORGED, ids=lambda it: getattr(it, "__name__", it))
def test_what_is_forged_is_found_by_the_name_of_its_rule(
    rule: str, forge: Callable[[Story], None]
) -> None:
    told = story()
    forge(told)

    assert told.rules() == {rule}


def test_every_rule_has_a_forgery() -> None:
    assert {rule for rule, _ in FORGED} == {rule.__name__ for rule in RULES}


def test_a_run_that_the_journal_does_not_know_is_unfinished() -> None:
    case = Case(events=[], journal={}, turns={"r0": 1})

    assert [it.name for it in violations(case)] == ["unfinished"]


def test_a_turn_that_stands_twice_in_the_journal_is_found() -> None:
    told = story()
    told.facts += [it for it in told.facts if isinstance(it, TurnOpened)]

    assert "opened_twice" in told.rules()


def died(told: Story) -> None:
    told.note(Killed, since=told.events[-1].at + 0.5)


def stood_still(told: Story) -> None:
    told.note(Stopped, since=told.events[-1].at + 0.5)
    told.taken_over()
    told.note(WentOn)
    told.events.pop(-2)


def went_without_renewal(told: Story) -> None:
    told.note(Unrenewed, since=told.events[-1].at - 0.5)


@pytest.mark.parametrize("happened", [died, stood_still, went_without_renewal])
def test_who_dies_or_stands_still_in_its_callback_may_be_heard_again(
    happened: Callable[[Story], None],
) -> None:
    """Nobody knows what it had done: the next owner hands it over again, under the same id."""
    told = story()
    happened(told)
    heard_by_two(told)

    assert told.rules() == set()


def test_who_stood_still_before_it_took_it_is_no_excuse() -> None:
    told = Story()
    told.note(Killed, by="c", since=0.5)
    told.events += story().events
    heard_by_two(told)

    assert told.rules() == {"continued_twice"}


def test_who_stood_still_between_the_look_and_the_call_may_be_late() -> None:
    """Nobody can close that gap; who never looked has none."""
    told = story()
    told.note(Raised, effect=EFFECT)
    sure = told.events[-1].at + 0.25
    told.note(Stopped, since=sure + 0.25)
    told.taken_over()
    told.note(WentOn)
    told.heard()
    late = told.events.pop()
    told.events.append(changed_event(late, sure=sure))
    assert told.rules() == set()

    told.events[-1] = changed_event(late, sure=None)
    assert told.rules() == {"handed_over_by_the_taken"}


def test_what_is_in_doubt_may_run_again_and_its_first_result_be_dropped() -> None:
    """A new attempt is no double; what the first one returned, too late, is nobody's outcome."""
    told = Story(facts=facts_of(doubted=True))
    told.owned()
    told.kept(1, 2)
    told.began()
    told.taken_over()
    told.kept(3, 5, by="b", fence=2)
    told.began(by="b", attempt=2, worker="w/2")
    told.ended(by="b", attempt=2)
    told.ended(value="too late")
    told.kept(6, 8, by="b", fence=2)
    told.heard(by="b")
    assert told.rules() == set()

    claims = [it for it in told.facts if isinstance(it, ToolExecutionStarted)]
    told.facts[told.facts.index(claims[0])] = changed(claims[0], worker="w/3")
    told.events = [it for it in told.events if not isinstance(it, Kept)]
    assert told.rules() == {"started_without_a_fact"}
