"""Events that no provider should send: the folds of Anthropic and Google break on none (W-51)."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock.agent.errors import ProviderFailure
from turnlock.agent.folds import anthropic, google
from turnlock.agent.messages import Stop, as_note, from_note
from turnlock.agent.speaking import CallBegan, CallEnded, Ended, Fold, Said, Text

from .folding import folded, of
from .recordings import recordings

NO_EVENT = (LookupError, TypeError, ValueError, AttributeError, ProviderFailure)
"""What a fold may raise; `Asked.spoken` makes a `ModelError` of it."""

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=3),
    lambda it: st.lists(it, max_size=3) | st.dictionaries(st.text(max_size=3), it, max_size=3),
    max_leaves=6,
)


def maybe(*likely: Any) -> st.SearchStrategy[Any]:
    """One of these mostly, else any JSON."""
    return st.sampled_from(likely * 4) | JSON


def sometimes(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """An object in which any of these may be missing."""
    return st.fixed_dictionaries({}, optional=fields)


BLOCK = sometimes(
    type=maybe("text", "thinking", "tool_use", "server_tool_use", "new"),
    text=maybe("", "a"),
    thinking=maybe("", "b"),
    id=maybe("i", ""),
    name=maybe("look", ""),
    input=maybe({}, {"a": 1}),
    citations=maybe([], None),
)
DELTA = sometimes(
    type=maybe("text_delta", "thinking_delta", "input_json_delta", "citations_delta", "new"),
    text=maybe("x"),
    thinking=maybe("y"),
    partial_json=maybe('{"a":', "1}", ""),
    citation=JSON,
    stop_reason=maybe("end_turn", "tool_use", "max_tokens", "refusal", "new"),
)
ANTHROPIC = sometimes(
    type=maybe(
        *("message_start", "content_block_start", "content_block_delta", "content_block_stop"),
        *("message_delta", "message_stop", "ping", "error", "new"),
    ),
    index=maybe(0, 1, 2),
    message=sometimes(usage=JSON, id=JSON, content=JSON) | JSON,
    content_block=BLOCK | JSON,
    delta=DELTA | JSON,
    usage=sometimes(input_tokens=maybe(3), output_tokens=maybe(4)) | JSON,
)
PARTIAL = sometimes(
    jsonPath=maybe("$.a", "$.a[0]", "$.a.b", "$['q']", "$.a[9]"),
    stringValue=maybe("s"),
    numberValue=maybe(1.5, 2.0),
    nullValue=maybe("NULL_VALUE"),
    willContinue=maybe(True, False),
)
PART = sometimes(
    text=maybe("", "a"),
    thought=maybe(True, False),
    thoughtSignature=maybe("s=="),
    executableCode=maybe({"code": "1"}),
    toolCall=maybe({"toolType": "T"}),
    functionCall=JSON
    | sometimes(
        id=maybe("i"),
        name=maybe("look", "dig"),
        args=maybe({"a": 1}),
        partialArgs=st.lists(PARTIAL, max_size=2) | JSON,
        willContinue=maybe(True),
    ),
)
GOOGLE = sometimes(
    candidates=st.lists(
        sometimes(
            content=sometimes(parts=st.lists(PART, max_size=3) | JSON) | JSON,
            finishReason=maybe("STOP", "MAX_TOKENS", "SAFETY", "new"),
            index=maybe(0, 1),
        ),
        max_size=2,
    )
    | JSON,
    promptFeedback=maybe({"blockReason": "SAFETY"}),
    usageMetadata=sometimes(promptTokenCount=maybe(3)) | JSON,
    error=maybe(None),
)


@attrs.frozen
class Hostile:
    """A provider's fold and what may be fed to it."""

    fold: Callable[[], Fold]
    event: st.SearchStrategy[Any]
    recorded: list[list[Any]]


def short(provider: str) -> list[list[Any]]:
    """The events of its recordings with calls, those with fewer than forty."""
    found = [[*it.events()] for it in recordings(provider, streamed=True) if it.calls]
    return [it for it in found if len(it) < 40]


PROVIDERS = {
    "anthropic": Hostile(
        lambda: anthropic.AnthropicFold(spec="anthropic:m"), ANTHROPIC, short("anthropic")
    ),
    "google": Hostile(lambda: google.GoogleFold(spec="google:m"), GOOGLE, short("google")),
}
each = pytest.mark.parametrize("hostile", PROVIDERS.values(), ids=PROVIDERS)


@each
@given(data=st.data())
def test_w_51_whatever_comes_in_whatever_order_is_an_answer_or_told_as_none(
    hostile: Hostile, data: st.DataObject
) -> None:
    """What is an answer can be kept, and agrees with what was said of it while it came."""
    check(hostile, data.draw(st.lists(hostile.event | JSON, max_size=8)))


def check(hostile: Hostile, events: list[Any]) -> None:
    """Hold what is made of events against what was said while they came."""
    try:
        said, ended = folded(hostile.fold(), events)
    except NO_EVENT:
        return
    answer = ended.answer
    assert from_note(as_note(answer)) == answer
    assert len(answer.identified()) == len(answer.calls)
    assert "".join(it.text for it in of(Text, said)) == (answer.text or "")
    assert [it.place for it in of(CallBegan, said)] == [*range(len(answer.calls))]
    for told in of(CallEnded, said):
        assert answer.calls[told.place] == told.call


class Hasty(anthropic.AnthropicFold):
    """Tells of a call at its close, as if nothing could take that back."""

    def feed(self, event: Any) -> list[Said]:
        return [*super().feed(event), *self._latest.told()]

    def end(self) -> Ended:
        self._latest.calls.clear()
        return super().end()


def test_the_check_finds_a_fold_that_tells_too_early() -> None:
    """The negative control: a call that was cut by the bound, told as whole."""
    (few, *_) = [it for it in short("anthropic") if len(it) < 20]
    reason = {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}
    events = [reason if it["type"] == "message_delta" else it for it in few]

    check(PROVIDERS["anthropic"], events)
    with pytest.raises(AssertionError):
        check(attrs.evolve(PROVIDERS["anthropic"], fold=Hasty), events)


def edited(data: st.DataObject, events: list[Any], others: st.SearchStrategy[Any]) -> list[Any]:
    """Some events lost, doubled, out of order, or others between them."""
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(events)))
        match data.draw(st.sampled_from(["lose", "double", "swap", "put", "take"])):
            case "lose":
                del events[at : at + 1]
            case "double":
                events[at:at] = events[at : at + 1]
            case "swap":
                events[at : at + 2] = reversed(events[at : at + 2])
            case "put":
                events.insert(at, data.draw(others))
            case _:
                events.insert(data.draw(st.integers(0, len(events))), data.draw(others))
    return events


@each
@given(data=st.data())
def test_w_51_a_real_response_with_events_lost_doubled_or_out_of_order(
    hostile: Hostile, data: st.DataObject
) -> None:
    """As above; these come further."""
    events = data.draw(st.sampled_from(hostile.recorded))
    check(hostile, edited(data, [*events], hostile.event))


def deltas(count: int) -> dict[str, list[Any]]:
    """One long response of each provider: text, and a call in many pieces."""

    def block(index: int, kind: str, delta: dict[str, Any], **fields: Any) -> list[Any]:
        name = "content_block"
        begin = {"type": f"{name}_start", "index": index, name: {"type": kind, **fields}}
        more = {"type": f"{name}_delta", "index": index, "delta": delta}
        return [begin, *[more] * count, {"type": f"{name}_stop", "index": index}]

    pieces = {"type": "input_json_delta", "partial_json": "1"}
    parts: list[Any] = [
        *[{"text": "word "}] * count,
        {"functionCall": {"name": "look", "willContinue": True}},
        *[some(stringValue="word ", willContinue=True)] * count,
        *[some(path=f"$.b[{n}]", numberValue=n) for n in range(count)],
        {"functionCall": {}},
    ]
    contents: list[Any] = [{"candidates": [{"content": {"parts": [it]}}]} for it in parts]
    return {
        "anthropic": [
            {"type": "message_start", "message": {"id": "m"}},
            *block(0, "text", {"type": "text_delta", "text": "word "}, text=""),
            *block(1, "tool_use", pieces, id="c", name="look", input={}),
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        ],
        "google": [*contents, {"candidates": [{"finishReason": "STOP"}]}],
    }


def some(path: str = "$.a", **value: Any) -> Any:
    return {"functionCall": {"partialArgs": [{"jsonPath": path, **value}], "willContinue": True}}


@pytest.mark.parametrize("name", PROVIDERS)
def test_w_51_ten_times_as_many_deltas_cost_about_ten_times_as_much(name: str) -> None:
    """What one costs is measured in `benchmarks/bench_tokens.py`."""

    def seconds(count: int) -> float:
        events, best = deltas(count)[name], float("inf")
        for _ in range(2):
            fold, began = PROVIDERS[name].fold(), time.thread_time()
            for event in events:
                fold.feed(event)
            assert fold.end().stop in {Stop.CALLS, Stop.LENGTH}
            best = min(best, time.thread_time() - began)
        return best

    gc.disable()  # what other tests have left is not for this one to look through
    try:
        few, many = seconds(1_000), seconds(10_000)
    finally:
        gc.enable()

    assert many < 30 * few
