"""The parts of a message as `useChat` has them, and the chunks that make those of a reply of them.

The client folds chunks into the parts of one message: steps, each with the text of an answer and a
card for each of its calls. Here that fold is known from its other end: what it has, and what is
true; the difference is what is sent (F-72). Nothing is looked up but in these two, so it does not
matter in which request, or in which tab, it was shown (F-71, F-74).

What cannot be put right by adding to it, the client is told to begin anew: `reset-step` empties the
last step, which then is told whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, TypeAlias, cast

import attrs

Chunk: TypeAlias = "dict[str, Any]"
"""One of the client's schema (F-70)."""


class State(StrEnum):
    """Of a card, as the client calls them, in the order in which a card goes through them."""

    STREAMING = "input-streaming"
    AVAILABLE = "input-available"
    REQUESTED = "approval-requested"
    RESPONDED = "approval-responded"
    OUTPUT = "output-available"
    ERROR = "output-error"
    DENIED = "output-denied"

    @property
    def is_end(self) -> bool:
        """Whether its call has ended."""
        return self in {State.OUTPUT, State.ERROR, State.DENIED}


@attrs.frozen(kw_only=True)
class Words:
    """The text of an answer."""

    text: str
    is_whole: bool


@attrs.frozen(kw_only=True)
class Approval:
    """What a card says of a question; `approved` is None while nobody has answered."""

    id: str
    approved: bool | None = None
    reason: str | None = None


@attrs.frozen(kw_only=True)
class Card:
    """What is shown of a call."""

    call_id: str
    tool_name: str
    input: Any
    state: State
    approval: Approval | None = None
    output: Any = None
    error: str | None = None


Part: TypeAlias = Words | Card


@attrs.frozen(kw_only=True)
class Step:
    """One answer of the model and its calls: the text first, where there is one."""

    name: str
    """Of its text: `said/N`."""
    parts: Sequence[Part]


class Shown:
    """What a client has of one message, and what was done about it in this stream."""

    def __init__(self, steps: Sequence[Sequence[Part]] = (), *, has_more: bool = False) -> None:
        """Begin with what it says it has; `has_more`: before its first step, where nothing is."""
        self._steps: Final = [list(it) for it in steps]
        self._has_more = has_more and not self._steps
        self._settled = 0
        """The steps that nothing happens in any more."""
        self._begun: int | None = None
        """The step that was begun here and not ended."""
        self._speaking: int | None = None
        """The step whose text was begun here and not ended."""

    def lacks(self, steps: Sequence[Step]) -> Iterator[Chunk]:
        """Yield what makes these steps of what it has; then it has them."""
        if self._has_more:
            self._has_more = False
            yield {"type": "reset-step"}
        for place in range(self._settled, len(steps)):
            if place == len(self._steps):
                yield from self.end_step()
                yield {"type": "start-step"}
                self._steps.append([])
                self._begun = place
            yield from self._step(place, steps[place])
            is_over = all(map(_is_over, steps[place].parts))
            if is_over and place == self._settled and place + 1 < len(steps):
                self._settled += 1

    def end_step(self) -> Iterator[Chunk]:
        """Yield the end of the step that was begun here."""
        if self._begun is not None:
            self._begun = None
            yield {"type": "finish-step"}

    def _step(self, place: int, step: Step) -> Iterator[Chunk]:
        has, is_last = self._steps[place], place == len(self._steps) - 1
        if not self._can_grow(place, step.parts):
            if not is_last:
                yield from self._cards_alone(has, step.parts)
                return
            yield {"type": "reset-step"}
            has.clear()
            self._speaking = None
        for number, part in enumerate(step.parts):
            before = has[number] if number < len(has) else None
            if isinstance(part, Words):
                yield from self._words(place, step.name, before, part)
            else:
                yield from card_chunks(before, part, is_last=is_last) or ()
            has[number : number + 1] = [part]

    def _can_grow(self, place: int, parts: Sequence[Part]) -> bool:
        """Whether what it has of a step becomes these parts if more is told."""
        has = self._steps[place]
        if len(has) > len(parts):
            return False
        return all(
            self._can_speak_on(place, before, part)
            if isinstance(part, Words)
            else isinstance(before, Card) and card_chunks(before, part, is_last=True) is not None
            for before, part in zip(has, parts, strict=False)
        )

    def _can_speak_on(self, place: int, before: Part, words: Words) -> bool:
        if not isinstance(before, Words):
            return False
        if self._speaking == place:
            return words.text.startswith(before.text)
        return before.is_whole and before == words

    def _words(self, place: int, name: str, before: Part | None, words: Words) -> Iterator[Chunk]:
        if before is not None and self._speaking != place:
            return
        if before is None:
            yield {"type": "text-start", "id": name}
            self._speaking = place
        more = words.text[len(before.text) if isinstance(before, Words) else 0 :]
        if more:
            yield {"type": "text-delta", "id": name, "delta": more}
        if words.is_whole:
            yield {"type": "text-end", "id": name}
            self._speaking = None

    def _cards_alone(self, has: list[Part], parts: Sequence[Part]) -> Iterator[Chunk]:
        """Put right what stands in a step before the last: the client finds cards by their ids."""
        known = {it.call_id: it for it in parts if isinstance(it, Card)}
        for number, before in enumerate(has):
            card = known.get(before.call_id) if isinstance(before, Card) else None
            if card is not None:
                yield from card_chunks(before, card, is_last=False) or ()
                has[number] = card


def _is_over(part: Part) -> bool:
    return part.is_whole if isinstance(part, Words) else part.state.is_end


def card_chunks(before: Part | None, card: Card, *, is_last: bool) -> list[Chunk] | None:
    """Return what makes a card of what is shown of its call; None where nothing does.

    The input of a card is put right in the last step alone: elsewhere the client would make
    another card of it.
    """
    if before is None:
        shown, told = None, [_input(card)]
        state = State.AVAILABLE
    elif isinstance(before, Words) or before.call_id != card.call_id:
        return None
    else:
        shown, told, state = before, [], before.state
        if _goes_back(before, card):
            return None
        if is_last and (state is State.STREAMING or _differ(before, card)):
            told, state = [_input(card)], State.AVAILABLE
    asked, state = _approval(None if shown is None else shown.approval, card, state)
    told += asked
    if card.state.is_end and (
        shown is None or state is not card.state or _ends_otherwise(shown, card)
    ):
        told.append(_end(card))
    return told


def _differ(before: Card, card: Card) -> bool:
    return before.input != card.input or before.tool_name != card.tool_name


def _ends_otherwise(before: Card, card: Card) -> bool:
    return before.output != card.output or before.error != card.error


def _goes_back(before: Card, card: Card) -> bool:
    """Whether it shows what is not so and cannot be taken back by a chunk of its own."""
    if card.state.is_end:
        return before.state in {State.OUTPUT, State.ERROR} and card.state is State.DENIED
    if before.state.is_end:
        return True
    is_asked = before.approval is not None or before.state in {State.REQUESTED, State.RESPONDED}
    return card.approval is None and is_asked


def _approval(before: Approval | None, card: Card, state: State) -> tuple[list[Chunk], State]:
    """Return what has a card say who was asked and what was answered, and its state then."""
    approval = card.approval
    if approval is None:
        return [], state
    told: list[Chunk] = []
    answered = before is not None and before.approved is not None
    if (
        before is None
        or before.id != approval.id
        or (approval.approved is None and (answered or state is not State.REQUESTED))
        or (before.reason is not None and approval.reason is None)
    ):
        request = {"type": "tool-approval-request", "approvalId": approval.id}
        told.append({**request, "toolCallId": card.call_id})
        before, state = Approval(id=approval.id), State.REQUESTED
    if approval.approved is None:
        return told, state
    is_told = before == approval and (state is State.RESPONDED or state.is_end)
    if not is_told:
        response: Chunk = {
            "type": "tool-approval-response",
            "approvalId": approval.id,
            "approved": approval.approved,
        }
        if approval.reason is not None:
            response["reason"] = approval.reason
        told.append(response)
        state = State.RESPONDED
    return told, state


def _input(card: Card) -> Chunk:
    return {
        "type": "tool-input-available",
        "toolCallId": card.call_id,
        "toolName": card.tool_name,
        "input": card.input,
        "dynamic": True,
    }


def _end(card: Card) -> Chunk:
    named: Chunk = {"type": f"tool-{card.state}", "toolCallId": card.call_id}
    if card.state is State.OUTPUT:
        return {**named, "output": card.output, "dynamic": True}
    if card.state is State.ERROR:
        return {**named, "errorText": card.error or "", "dynamic": True}
    return named


def objects(told: Any) -> list[Mapping[str, Any]]:  # noqa: ANN401 - any JSON
    """Return the objects of a list; of anything else none."""
    found = cast("list[object]", told) if isinstance(told, list) else []
    return [cast("Mapping[str, Any]", it) for it in found if isinstance(it, Mapping)]


def read_steps(parts: Any) -> tuple[list[list[Part]], bool]:  # noqa: ANN401 - any JSON
    """Return the steps that the parts of a client's message are, and whether more stands before.

    Parts of kinds that are never sent are the page's own, and passed over.
    """
    steps: list[list[Part]] = []
    has_more = False
    for told in objects(parts):
        if told.get("type") == "step-start":
            steps.append([])
            continue
        part = _read_part(told)
        if part is not None and steps:
            steps[-1].append(part)
        has_more |= part is not None and not steps
    return steps, has_more


def _read_part(told: Mapping[str, Any]) -> Part | None:
    kind, text, call_id = told.get("type"), told.get("text"), told.get("toolCallId")
    if kind == "text" and isinstance(text, str):
        return Words(text=text, is_whole=told.get("state") != "streaming")
    if not isinstance(kind, str) or not isinstance(call_id, str):
        return None
    name = told.get("toolName") if kind == "dynamic-tool" else kind.removeprefix("tool-")
    state = told.get("state")
    if not isinstance(name, str) or state not in set(State):
        return None
    error = told.get("errorText")
    return Card(
        call_id=call_id,
        tool_name=name,
        input=told.get("input"),
        state=State(state),
        approval=_read_approval(told.get("approval")),
        output=told.get("output"),
        error=error if isinstance(error, str) else None,
    )


def _read_approval(told: Any) -> Approval | None:  # noqa: ANN401 - any JSON
    (found,) = objects([told]) or [dict[str, Any]()]
    name, approved, reason = found.get("id"), found.get("approved"), found.get("reason")
    if not isinstance(name, str):
        return None
    return Approval(
        id=name,
        approved=approved if isinstance(approved, bool) else None,
        reason=reason if isinstance(reason, str) else None,
    )
