"""The persistent list of calls is a list, whatever is changed in whatever version of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock.lifecycle.phases import Phase
from turnlock.models.record import changed
from turnlock.views.call_list import CallList
from turnlock.views.call_view import CallView, Waits

PHASES = st.sampled_from(Phase)


def a_call(place: int, phase: Phase = Phase.REQUESTED) -> CallView:
    return CallView(
        run_id="r",
        turn_id="T1",
        epoch=1,
        position=place,
        invocation_id=f"i{place}",
        tool_name="ls",
        arguments={},
        requires_approval=False,
        phase=phase,
    )


def is_that_list(found: CallList, model: list[CallView]) -> bool:
    """Hold every way of looking into the list against a plain one."""
    return (
        [*found] == model
        and len(found) == len(model)
        and all(found[place] is it for place, it in enumerate(model))
        and all(found.get(it.invocation_id) is it for it in model)
        and all(
            [*found.waiting_for(waits)] == [it for it in model if it.waits is waits]
            and found.any_waiting_for(waits) is any(it.waits is waits for it in model)
            for waits in Waits
        )
    )


@given(
    begun=st.integers(0, 40),
    changes=st.lists(st.tuples(st.integers(0, 300), PHASES), max_size=60),
)
def test_every_version_stays_as_it_was(begun: int, changes: list[tuple[int, Phase]]) -> None:
    """Changed, grown, and branched off older versions: each version is its own plain list."""
    model = [a_call(place) for place in range(begun)]
    versions = [(CallList.of(model), model)]
    for pick, phase in changes:
        found, model = versions[pick % len(versions)]
        place = pick % (len(model) + 1)
        call = a_call(place, phase)
        if place == len(model):
            versions.append((found.with_added(call), [*model, call]))
        else:
            versions.append((found.with_call(call), [*model[:place], call, *model[place + 1 :]]))
    for found, model in versions:
        assert is_that_list(found, model)


def test_it_grows_over_the_edges_of_its_nodes() -> None:
    """One by one, past 16 and 256: the same as made at once."""
    grown = CallList()
    model = [a_call(place) for place in range(300)]
    for call in model:
        grown = grown.with_added(call)
    assert grown == CallList.of(model)
    assert is_that_list(grown, model)


def test_what_did_not_change_is_shared() -> None:
    """A change of one call leaves all others the very same objects."""
    before = CallList.of(a_call(place) for place in range(1_000))
    after = before.with_call(a_call(500, Phase.STARTED))

    assert sum(one is not two for one, two in zip(before, after, strict=True)) == 1


def test_it_is_a_sequence() -> None:
    """Slices, places from the end, equality, and what is not there."""
    calls = CallList.of(a_call(place) for place in range(20))

    assert calls[-1].position == 19
    assert [it.position for it in calls[17:]] == [17, 18, 19]
    assert calls == CallList.of(a_call(place) for place in range(20))
    assert calls != CallList.of(a_call(place) for place in range(19))
    assert calls != CallList.of([*calls[:19], changed(calls[19], worker="w")])
    assert hash(calls) == hash(CallList.of(calls))
    assert repr(CallList()) == "CallList([])"
    assert calls.get("nobody") is None
    for place in (20, -21):
        with pytest.raises(IndexError):
            calls[place]
