"""Ids that any provider takes, whatever another sent (W-56)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hypothesis import example, given
from hypothesis import strategies as st

from turnlock.agent.messages import Answer, Message, Prompt, Results, ToolCall
from turnlock.agent.wire_ids import wire_ids, wire_name
from turnlock.models.calls import CallResult, Status

SENT = st.one_of(
    st.none(),
    st.sampled_from(["", "c", "call_1_1", "call_1_2", "call_2_1", "call_1_1_2", "a~1", "x" * 41]),
    st.text(max_size=3),
)
"""What providers send for ids, and what we make ourselves."""


def conversation(turns: Sequence[Sequence[str | None]]) -> list[Message]:
    """Each turn a prompt, an answer with calls of these ids, and their results."""
    said: list[Message] = []
    for number, ids in enumerate(turns, start=1):
        calls = tuple(ToolCall(call_id=it, tool_name="look", arguments={}) for it in ids)
        answer = Answer(calls=calls)
        results = [
            CallResult(
                invocation_id=call.invocation_id,
                tool_name="look",
                status=Status.SUCCEEDED,
                result=call.invocation_id,
            )
            for call in answer.identified()
        ]
        said += [Prompt(text="go"), answer]
        if results:
            said.append(Results(turn_id=f"t{number}", results=tuple(results)))
    return said


@given(st.lists(st.lists(SENT, max_size=4), max_size=4))
@example([["c"], ["c"]])
@example([["call_1_2", None]])
@example([["call_2_1"], [None]])
@example([[None], ["call_1_1", "call_1_1"]])
def test_w_56_wire_ids_are_taken_by_all_and_new_in_the_conversation(
    turns: list[list[str | None]],
) -> None:
    """Whatever was sent; a result has the id of its call, and ids stay when more is said."""
    said = conversation(turns)
    ids = wire_ids(said)

    assert [len(it) for it in ids] == [
        0 if isinstance(m, Prompt) else len(m.calls if isinstance(m, Answer) else m.results)
        for m in said
    ]
    of_calls = [it for m, its in zip(said, ids, strict=True) if isinstance(m, Answer) for it in its]
    assert len(set(of_calls)) == len(of_calls)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,40}", it) for it in of_calls)
    for before, (m, its) in enumerate(zip(said, ids, strict=True), start=-1):
        if isinstance(m, Results):
            assert its == ids[before]
    assert all(wire_ids(said[:n]) == ids[:n] for n in range(len(said)))


def test_w_56_a_providers_own_id_is_kept() -> None:
    """The first time; the second time, and where it is refused elsewhere, it is made."""
    said = conversation([["a", "b~2", None], ["a", "c"]])

    assert [its for its in wire_ids(said) if its] == [
        ("a", "call_1_2", "call_1_3"),
        ("a", "call_1_2", "call_1_3"),
        ("call_2_1", "c"),
        ("call_2_1", "c"),
    ]


def test_w_56_results_may_be_told_in_any_order() -> None:
    """They go by their invocations."""
    prompt, answer, results = conversation([["a", None]])
    assert isinstance(results, Results)
    turned = Results(turn_id="t1", results=results.results[::-1])

    assert wire_ids([prompt, answer, turned])[-1] == ("call_1_2", "a")


@given(st.text(min_size=1, max_size=70))
@example("(no name)")
@example("9lives")
def test_w_56_names_that_a_model_made_up_go_back_as_every_provider_takes_them(name: str) -> None:
    """A tool's own name that all take is not touched."""
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", wire_name(name))
    assert wire_name("files__read-all_2") == "files__read-all_2"
