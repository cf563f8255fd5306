"""Behind the documented lock every schedule is right; hosts without it are caught."""

from __future__ import annotations

import random
import sys
from functools import partial
from typing import Any

import pytest

from turnlock.engine.kernel import put_state, state_of
from turnlock.verification.errors import HarnessFailed
from turnlock.verification.findings import Profile, Status

from . import technique
from .hosts import (
    Host,
    LockedHost,
    Steps,
    locked,
    unlocked,
)
from .linearizability import Model
from .mixes import ending, mix
from .playing import judged, lock_finding, play_steps, play_threads
from .stories import RUN, STORIES
from .technique import (
    RIGHT,
    WRONG,
    Figures,
    check,
    first_failure,
)

Raw = dict[str, Any]


@pytest.mark.parametrize("name", RIGHT)
def test_hosts_as_documented_hold(name: str) -> None:
    """Linearizable, and with a journal that recovers: every story, one preemption."""
    for story in STORIES:
        figures = Figures()

        assert first_failure(RIGHT[name], story, bound=1, figures=figures) is None
        assert figures.schedules == figures.histories > 10


@pytest.mark.parametrize("name", WRONG)
def test_hosts_that_are_wrong_are_caught_with_one_preemption(name: str) -> None:
    """And their findings say what no order explains, or what the journal does not give."""
    findings = [first_failure(WRONG[name], story, bound=1, figures=Figures()) for story in STORIES]
    found = [finding for finding in findings if finding is not None]

    assert found
    for finding in found:
        assert finding.rule == "K-9"
        assert finding.expected != finding.got
        assert "no order of" in finding.message or "the journal" in finding.message


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_without_preemption_nobody_is_caught(story: Any) -> None:
    """A bound of 0 proves nothing: each receive runs undisturbed."""
    for play in (partial(play_steps, unlocked), partial(play_steps, locked)):
        assert first_failure(play, story, bound=0, figures=Figures()) is None


def test_a_lock_that_does_not_exclude_is_caught() -> None:
    """It waits until the lock is free, and forgets to take it."""

    def looks_locked(host: Host, delivery: Raw) -> Steps:
        yield lambda: not host.held
        return (yield from unlocked(host, delivery))

    play = partial(play_steps, looks_locked)
    assert any(first_failure(play, story, bound=1, figures=Figures()) for story in STORIES)


def thread_round(host: LockedHost, seed: int = 0) -> tuple[Any, Any]:
    scripts = mix(random.Random(seed), 1, threads=4, operations=6)
    played = play_threads(host, scripts)
    for delivery in ending(1):
        invoked = played.history.stamp()
        played.history.add(delivery, host.receive(delivery), invoked)
    return judged(played, [], Model.of(RUN))


@pytest.mark.parametrize("seed", range(5))
def test_threads_behind_the_lock_hold(seed: int) -> None:
    """The search finds an order by itself, and it leads to where the lock's own order leads."""
    host = LockedHost(RUN)

    found, finding = thread_round(host, seed)

    assert finding is None
    assert len(found.order) == len(host.taken) == 4 * 6 + len(ending(1))
    assert Model.of(RUN, host.taken).moment.state == found.model.moment.state
    assert found.model.moment.state["turn"] is None


def test_a_lock_that_was_taken_in_another_order_than_it_says_is_caught() -> None:
    """A record of the lock from back to front explains other receipts than those given."""
    host = LockedHost(RUN)
    found, _ = thread_round(host)
    swapped = host.taken[::-1]

    assert lock_finding(host.taken, Model.of(RUN, host.taken), found) is None
    finding = lock_finding(swapped, Model.of(RUN, swapped), found)
    assert finding is not None
    assert "order in which the lock was taken" in finding.message


def test_a_host_that_answers_from_an_old_state_is_caught() -> None:
    """Every third delivery is judged by a copy of the state that it then throws away."""

    class Forgetful(LockedHost):
        def receive(self, delivery: Raw) -> Raw:
            if len(self.taken) % 3 != 2:
                return super().receive(delivery)
            state, journal = state_of(self.kernel).clone(), list(self.journal)
            told = super().receive(delivery)
            put_state(self.kernel, state)
            self.journal = journal
            return told

    found, finding = thread_round(Forgetful(RUN))

    assert finding is not None
    assert found.stuck is not None
    assert finding.script[-1] == found.stuck.delivery


def test_a_thread_that_raises_is_told() -> None:
    class Failing(LockedHost):
        def receive(self, delivery: Raw) -> Raw:
            raise OSError("disk full")

    with pytest.raises(HarnessFailed, match="disk full"):
        thread_round(Failing(RUN))


def test_the_technique_holds_and_leaves_the_interpreter_as_it_was() -> None:
    interval = sys.getswitchinterval()

    result = check(profile=Profile.DEV, progress=lambda _: None)

    assert result.status is Status.HOLDS
    assert result.figures["preemption_bound"] == 1
    assert 0 not in result.figures.values()
    assert "linearizable" in result.guarantee
    assert sys.getswitchinterval() == interval


def test_a_violation_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(technique, "RIGHT", WRONG)
    monkeypatch.setattr(technique, "STORIES", STORIES[:1])

    result = check(profile=Profile.DEV, progress=lambda _: None)

    assert result.status is Status.VIOLATED
    assert len(result.findings) == 1


def test_schedules_without_teeth_are_the_harness_s_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a host that is wrong is not caught, what holds means nothing."""
    monkeypatch.setattr(technique, "WRONG", RIGHT)
    monkeypatch.setattr(technique, "STORIES", STORIES[:1])

    with pytest.raises(HarnessFailed, match="were not caught"):
        check(profile=Profile.DEV, progress=lambda _: None)
