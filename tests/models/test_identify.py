"""identify_calls: unique ids from what a provider sent, and its own kept beside (K-20, K-21)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from turnlock.models.errors import InvalidValue
from turnlock.models.identify import ProviderCall, identify_calls

from .strategies import make, minimal, records

TRICKY = ["x", "x~2", "x~3", "x~2~2", "call~1", "call~2", "call~1~2", "~2", "~", "call", "y"]
call_ids = st.none() | st.sampled_from(["", *TRICKY]) | st.text("x~2", max_size=4)
responses = st.lists(call_ids, max_size=8)
used_ids = st.sets(st.sampled_from(TRICKY) | st.text("x~2", min_size=1, max_size=4))


def sent(*ids: str | None) -> list[ProviderCall]:
    """Calls of one response, as a provider sent them."""
    return [
        ProviderCall(call_id=one, tool_name="ls", arguments={}, requires_approval=False)
        for one in ids
    ]


def ids_of(*ids: str | None, used: Any = (), grow: bool = False) -> list[str]:
    """The invocation ids that a response with these ids gets."""
    return [call.invocation_id for call in identify_calls(sent(*ids), used=used, grow=grow)]


@given(responses, used_ids, st.booleans())
@example([None, "call~1"], set(), False)
@example([None, "call~1"], set(), True)
@example(["x", "x", "x~2"], set(), False)
@example(["x", "x", "x~2"], set(), True)
@example(["x~2", "x", "x"], {"x~3"}, False)
def test_ids_are_unique_and_new(ids: list[str | None], used: set[str], grow: bool) -> None:
    made = ids_of(*ids, used=used, grow=grow)

    assert len(set(made)) == len(made) == len(ids)
    assert not used & set(made)
    assert all(made)


@given(responses, used_ids)
def test_a_response_delivered_twice_gets_the_same_ids_twice(
    ids: list[str | None], used: set[str]
) -> None:
    assert identify_calls(sent(*ids), used=used) == identify_calls(sent(*ids), used=used)
    assert ids_of(*ids, used=used) == ids_of(*ids, used=frozenset(used) | {"never sent"})


@given(responses, used_ids)
@example([None, "call~1"], set())
@example([None, None, "call~1"], set())
@example(["", "call~1"], set())
def test_a_providers_id_is_kept_where_it_can_be(ids: list[str | None], used: set[str]) -> None:
    """The first call that has an id keeps it, unless it is used: no made-up id takes it."""
    made = ids_of(*ids, used=used)
    seen: set[str] = set()
    for one, given_id in zip(made, ids, strict=True):
        if given_id and given_id not in used and given_id not in seen:
            assert one == given_id
        if given_id:
            seen.add(given_id)
            assert one == given_id or one.startswith(f"{given_id}~")


@given(st.lists(records(ProviderCall), max_size=5))
def test_all_the_rest_is_passed_on(calls: list[ProviderCall]) -> None:
    """In the order sent; the provider's id is kept as correlation, the empty one too."""
    made = identify_calls(iter(calls))

    assert [call.provider_call_id for call in made] == [call.call_id for call in calls]
    for one, call in zip(made, calls, strict=True):
        assert one.tool_name == call.tool_name
        assert one.arguments is call.arguments
        assert one.requires_approval is call.requires_approval
        assert one.approval_timeout is call.approval_timeout


@given(responses, used_ids, st.text("x~2", max_size=4))
def test_ids_already_given_do_not_change_with_what_is_appended(
    ids: list[str | None], used: set[str], later: str
) -> None:
    """As long as what comes later is an id that the response had before."""
    if later in ids:
        assert ids_of(*ids, later, used=used)[: len(ids)] == ids_of(*ids, used=used)


@given(responses, used_ids)
@example([None, "call~1"], set())
@example(["x", "x", "x~2"], set())
def test_w_57_a_list_that_grows_changes_no_id(ids: list[str | None], used: set[str]) -> None:
    """Each call alone knows those before it, and so it is with any number of them."""
    made = ids_of(*ids, used=used, grow=True)

    for count in range(len(ids)):
        assert ids_of(*ids[:count], used=used, grow=True) == made[:count]


@given(responses, used_ids)
def test_w_57_growing_keeps_ids_that_nobody_else_has(ids: list[str | None], used: set[str]) -> None:
    """A provider's id is kept unless it was given before; where nothing clashes, all is alike."""
    made = ids_of(*ids, used=used, grow=True)

    for place, (one, given_id) in enumerate(zip(made, ids, strict=True)):
        if given_id and given_id not in used and given_id not in made[:place]:
            assert one == given_id
    if set(made) == set(ids):
        assert made == ids == ids_of(*ids, used=used)


def test_w_57_ids_that_see_the_whole_list_do_change() -> None:
    """Why there is `grow`: without it, the first call is another once the second has come."""
    assert ids_of(None) == ["call~1"]
    assert ids_of(None, "call~1") == ["call~1~2", "call~1"]

    assert ids_of(None, grow=True) == ["call~1"]
    assert ids_of(None, "call~1", grow=True) == ["call~1", "call~1~2"]
    assert ids_of("x", "x", "x~2", grow=True) == ["x", "x~2", "x~2~2"]


@pytest.mark.parametrize(
    ("ids", "used", "made"),
    [
        (["a", "b"], (), ["a", "b"]),
        ([None, None], (), ["call~1", "call~2"]),
        (["", "a", ""], (), ["call~1", "a", "call~3"]),
        (["XXXX", "XXXX", None], (), ["XXXX", "XXXX~2", "call~3"]),
        (["x", "x", "x"], (), ["x", "x~2", "x~3"]),
        (["x"], ("x",), ["x~2"]),
        (["x", "x"], ("x", "x~2"), ["x~3", "x~4"]),
        (["x", "x~2", "x"], (), ["x", "x~2", "x~3"]),
        (["x", "x", "x~2"], (), ["x", "x~3", "x~2"]),
        (["x~2", "x~2", "x", "x"], (), ["x~2", "x~2~2", "x", "x~3"]),
        ([None, "call~1"], (), ["call~1~2", "call~1"]),
        (["call~2", None], (), ["call~2", "call~2~2"]),
        ([None, "call~1", "call~1"], (), ["call~1~2", "call~1", "call~1~3"]),
        ([None, "call~1", "call~1~2"], (), ["call~1~3", "call~1", "call~1~2"]),
        ([None], ("call~1", "call~1~2"), ["call~1~3"]),
        (["a/b", "a%2Fb"], (), ["a/b", "a%2Fb"]),
        ([], (), []),
    ],
)
def test_examples(ids: list[str | None], used: tuple[str, ...], made: list[str]) -> None:
    assert ids_of(*ids, used=used) == made


def test_used_may_be_any_container() -> None:
    """Only asked, never iterated: a host may ask its database."""

    class Asked:
        def __contains__(self, one: object) -> bool:
            return one in {"x", "x~2"}

    assert ids_of("x", used=Asked()) == ["x~3"]


def test_many_calls_with_one_id_are_not_tried_from_the_first_number_again() -> None:
    """As many as a turn may hold (K-56); trying each number anew would take half a minute."""

    class Counted(set[str]):
        asked = 0

        def __contains__(self, one: object) -> bool:
            self.asked += 1
            return super().__contains__(one)

    used = Counted({"x", *(f"x~{number}" for number in range(2, 5_001))})
    made = [call.invocation_id for call in identify_calls(sent(*["x"] * 5_000), used=used)]

    assert made == [f"x~{number}" for number in range(5_001, 10_001)]
    assert used.asked == 10_000


@pytest.mark.parametrize(
    ("wrong", "place"),
    [
        ({"call_id": 5}, "call_id"),
        ({"call_id": "\ud800"}, "call_id"),
        ({"tool_name": ""}, "tool_name"),
        ({"arguments": "{}"}, "arguments"),
        ({"requires_approval": None}, "requires_approval"),
        ({"approval_timeout": -1}, "approval_timeout"),
    ],
)
def test_what_a_provider_sent_is_checked(wrong: dict[str, Any], place: str) -> None:
    with pytest.raises(InvalidValue) as raised:
        make(ProviderCall, **{**minimal(ProviderCall), **wrong})

    assert raised.value.place == place
