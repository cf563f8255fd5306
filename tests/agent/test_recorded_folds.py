"""Every recorded response of Anthropic and Google means what other programs found in it (W-51)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import attrs
import pytest

from turnlock.agent.folds import anthropic, google
from turnlock.agent.messages import Answer, Stop, as_note, from_note
from turnlock.agent.speaking import CallBegan, CallEnded, CallText, Fold, Text

from .folding import folded, of, raw
from .recordings import Recording, recordings


@attrs.frozen
class Meaning:
    """How a provider's responses are read."""

    fold: Callable[..., Fold]
    as_events: Callable[[Any], Iterable[Any]]

    def of(self, recording: Recording) -> tuple[list[Any], Fold]:
        """Its events, also where it came at once, and the fold for them."""
        events: Iterator[Any] = recording.events()
        if not recording.streamed:
            events = iter([*self.as_events(next(events))])
        return [*events], self.fold(spec=f"{recording.provider}:m")


MEANINGS = {
    "anthropic": Meaning(anthropic.AnthropicFold, anthropic.as_events),
    "google": Meaning(google.GoogleFold, google.as_events),
}

RECORDED = [
    pytest.param(it, id=it.name)
    for provider in MEANINGS
    for it in recordings(provider)
    if it.status == 200
]


def as_known(answer: Answer) -> list[tuple[str | None, str, Any]]:
    """The calls as recordings tell them."""
    return [(it.call_id, it.tool_name, dict(it.arguments)) for it in answer.calls]


@pytest.mark.parametrize("recording", RECORDED)
def test_w_51_a_recorded_response_means_what_is_known_of_it(recording: Recording) -> None:
    """Its calls, and that what is said while it comes is what it is in the end."""
    events, fold = MEANINGS[recording.provider].of(recording)
    said, ended = folded(fold, events)
    answer = ended.answer

    if recording.calls is not None:
        known = [(i, name, json.loads(text or "{}")) for i, name, text in recording.calls]
        assert as_known(answer) == known
    assert ended.stop in {Stop.DONE, Stop.CALLS, Stop.OTHER}
    assert "".join(it.text for it in of(Text, said)) == (answer.text or "")
    assert [it.call for it in of(CallEnded, said)] == [*answer.calls]
    assert [it.tool_name for it in of(CallBegan, said)] == [it.tool_name for it in answer.calls]
    for call in of(CallEnded, said):
        text = "".join(it.text for it in of(CallText, said) if it.place == call.place)
        assert json.loads(text or "{}") == call.call.arguments
    assert from_note(as_note(answer)) == answer


def begins_anew(events: Iterable[Any]) -> bool:
    """Several responses in one file, or one that goes on after it has said why it stopped."""
    starts = [it for it in events if it.get("type") == "message_start"]
    stops = [it for it in events if any("finishReason" in c for c in it.get("candidates", ()))]
    return len(starts) > 1 or len(stops) > 1


@pytest.mark.parametrize(
    "recording",
    [it for it in RECORDED if it.values[0].streamed],  # type: ignore[union-attr]
)
def test_w_52_cut_at_each_tenth_no_call_differs_and_no_cut_answer_is_kept(
    recording: Recording,
) -> None:
    """`cut` until it has said why; a call that is told is one of the whole answer, raw and all."""
    meaning = MEANINGS[recording.provider]
    events, fold = meaning.of(recording)
    if begins_anew(events):
        return
    _, whole = folded(fold, events)
    stops: list[Stop] = []
    for tenth in range(10):
        _, fold = meaning.of(recording)
        said, ended = folded(fold, events[: len(events) * tenth // 10])
        told = of(CallEnded, said)
        assert [it.call for it in told] == [*whole.answer.calls][: len(told)]
        for it in told:
            assert contents(raw(whole.answer))[: len(contents(it.raw))] == contents(it.raw)
        if ended.stop is not Stop.CUT:
            assert as_known(ended.answer) == as_known(whole.answer)
            assert ended.answer.text == whole.answer.text
        stops.append(ended.stop)
    assert stops[0] is Stop.CUT


def contents(message: Any) -> Any:
    """What a provider's message holds."""
    content: Any = message["content"]
    return content["parts"] if isinstance(content, Mapping) else content
