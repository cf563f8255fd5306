"""What a `useChat` client lacks: any prefix delivered, then the rest, is all at once (F-72)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs
from hypothesis import given
from hypothesis import strategies as st

from turnlock.server.clients.chat_parts import (
    Approval,
    Card,
    Chunk,
    Part,
    Shown,
    State,
    Step,
    Words,
    read_steps,
)

from ...clients.chat_model import Message

ENDS: Final[dict[State, dict[str, Any]]] = {
    State.OUTPUT: {"output": {"paid": 12}},
    State.ERROR: {"error": "it broke"},
    State.DENIED: {},
}
REASONS: Final = st.sampled_from([None, "why", "why not"])


@st.composite
def cards(draw: st.DrawFn, name: str) -> list[Card]:
    """A card, at each of its places from the first to the last."""
    path = [Card(call_id=name, tool_name="pay", input={"amount": 12}, state=State.AVAILABLE)]
    if draw(st.booleans()):
        asked = attrs.evolve(path[-1], state=State.REQUESTED, approval=Approval(id=f"ask {name}"))
        answer = Approval(id=f"ask {name}", approved=draw(st.booleans()), reason=draw(REASONS))
        edited = draw(st.sampled_from([{"amount": 12}, {"amount": 11}]))
        answered = attrs.evolve(asked, state=State.RESPONDED, approval=answer, input=edited)
        path += [asked, answered]
    state = draw(st.sampled_from([*ENDS]))
    path.append(attrs.evolve(path[-1], state=state, **ENDS[state]))
    return path


@st.composite
def texts(draw: st.DrawFn) -> list[Words]:
    """A text, from its first piece to its end."""
    whole = draw(st.sampled_from(["I pay.", "x", "äöü 😀"]))
    cuts = sorted({*draw(st.lists(st.integers(1, len(whole)), max_size=3)), len(whole)})
    said = [Words(text=whole[:it], is_whole=False) for it in cuts]
    return [*said, Words(text=whole, is_whole=True)]


@st.composite
def histories(draw: st.DrawFn) -> list[list[Step]]:
    """A reply from its beginning to its end: its steps after each thing that happened."""
    found: list[list[Step]] = [[]]
    for number in range(draw(st.integers(1, 3))):
        before = found[-1]
        paths: list[Sequence[Part]] = []
        if draw(st.booleans()):
            paths.append(draw(texts()))
        calls = range(draw(st.integers(0 if paths else 1, 2)))
        paths.extend([draw(cards(f"{number}.c{call}")) for call in calls])
        at = [0] * len(paths)
        while any(it < len(path) for it, path in zip(at, paths, strict=True)):
            ready = [it for it, path in enumerate(paths) if at[it] < len(path)]
            begun = [it for it in ready if at[it] > 0 or all(at[:it])]
            at[draw(st.sampled_from(begun))] += 1
            parts = [path[it - 1] for it, path in zip(at, paths, strict=True) if it]
            found.append([*before, Step(name=f"said/{number}", parts=parts)])
    return found


def told(history: Sequence[Sequence[Step]]) -> Iterator[Chunk]:
    """All that a client is sent that follows a reply from here on."""
    shown = Shown()
    for steps in history:
        yield from shown.lacks(steps)


def come_again(message: Message, steps: Sequence[Step]) -> Message:
    """A client asks again with what it has."""
    found, has_more = read_steps(message.parts)
    return message.again().take(Shown(found, has_more=has_more).lacks(steps))


def plain(message: Message) -> list[Any]:
    return message.plain()


@given(histories())
def test_f_72_told_as_it_happens_it_is_what_it_is_told_at_once(history: list[list[Step]]) -> None:
    assert plain(Message().take(told(history))) == plain(Message().take(told(history[-1:])))


@given(histories(), st.data())
def test_f_72_any_prefix_and_then_the_rest_is_all_at_once(
    history: list[list[Step]], data: st.DataObject
) -> None:
    """Cut after any chunk, and asked again at any later time, and again at the end."""
    last = data.draw(st.integers(0, len(history) - 1))
    chunks = [*told(history[: last + 1])]
    message = Message().take(chunks[: data.draw(st.integers(0, len(chunks)))])
    later = data.draw(st.integers(last, len(history) - 1))
    whole = [*told(history[later : later + 1])]

    message = come_again(message, history[later])
    assert plain(message) == plain(Message().take(whole))
    assert plain(come_again(message, history[-1])) == plain(Message().take(told(history[-1:])))


@given(histories(), st.data())
def test_f_72_who_has_all_lacks_nothing(history: list[list[Step]], data: st.DataObject) -> None:
    steps = data.draw(st.sampled_from(history))
    if any(isinstance(it, Words) and not it.is_whole for step in steps for it in step.parts):
        return  # it is told anew, so that it can be gone on with
    found, _ = read_steps(Message().take(told([steps])).parts)

    assert [*Shown(found).lacks(steps)] == []


@given(histories())
def test_f_72_a_call_ends_once_and_a_step_begins_once(history: list[list[Step]]) -> None:
    chunks = [*told(history)]
    ends = [it["toolCallId"] for it in chunks if it["type"].startswith("tool-output")]

    assert len(ends) == len({*ends})
    if not any(it["type"] == "reset-step" for it in chunks):
        kinds = [it["type"] for it in chunks if it["type"].endswith("-step")]
        assert kinds == [*(["start-step", "finish-step"] * len(history[-1]))][:-1]


def test_f_72_negative_control_the_model_of_the_client_tells_one_part_from_another() -> None:
    card = Card(call_id="c", tool_name="pay", input={}, state=State.AVAILABLE)
    other = attrs.evolve(card, state=State.DENIED)

    made = [
        plain(Message().take(told([[Step(name="said/1", parts=[it])]]))) for it in (card, other)
    ]
    assert made[0] != made[1]
