"""How each provider's fold and model are made in tests, and what went to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import attrs

from turnlock.agent.folds import anthropic, chat_completions, google, responses
from turnlock.agent.folds.response_items import kind_of
from turnlock.agent.messages import Answer, Message, Prompt, Results
from turnlock.agent.providers import open_model
from turnlock.agent.speaking import Ended, Fold, Model, Said
from turnlock.models.calls import CallResult, Status

from .recordings import Recording, recordings


@attrs.frozen(kw_only=True)
class Provider:
    """One provider. `base_path` follows the host in its base URL."""

    name: str
    fold: Callable[[], Fold]
    as_events: Callable[[Any], Iterable[Any]]
    ids: Callable[[Any], tuple[list[str], list[str]]]
    """The ids of the calls, and of the results, in a request's body."""
    items: Callable[[Any], list[Any]]
    """What its own message of an answer consists of."""
    base_path: str = ""

    def model(self, url: str, **options: Any) -> Model:
        """Return a model of it at this host, asked once."""
        options = {"timeout": 5.0, "retries": 0} | options
        return open_model(f"{self.name}:m", base_url=url + self.base_path, api_key="k", **options)

    def spoken(self, recording: Recording) -> tuple[list[Said], Ended]:
        """Fold a recording from its bytes."""
        return self.folded(recording, list(recording.events()))

    def folded(self, recording: Recording, events: list[Any]) -> tuple[list[Said], Ended]:
        """Fold these of its events."""
        fold, said = self.fold(), list[Said]()
        for event in events:
            for one in [event] if recording.streamed else self.as_events(event):
                said += fold.feed(one)
        return said, fold.end()


def _chat_ids(request: Any) -> tuple[list[str], list[str]]:
    asked = [
        call["id"] for message in request["messages"] for call in message.get("tool_calls", ())
    ]
    return asked, [it["tool_call_id"] for it in request["messages"] if it["role"] == "tool"]


def _item_ids(request: Any) -> tuple[list[str], list[str]]:
    items = [it for it in request["input"] if "type" in it]
    asked = [it.get("call_id") or it["id"] for it in items if kind_of(it) is not None]
    outputs = [it for it in items if it["type"].endswith(("_call_output", "_approval_response"))]
    outputs += [it for it in items if it["type"] == "tool_search_output"]
    outputs = [it for it in outputs if it.get("call_id") not in _hosted(items)]
    told = [it.get("call_id") or it.get("approval_request_id") or it["id"] for it in outputs]
    return asked, [it for it in told if it is not None]


def _hosted(items: list[Any]) -> set[str | None]:
    """The calls that the provider ran itself, whose outputs are its own."""
    return {
        it.get("call_id") for it in items if kind_of(it) is None and it["type"].endswith("_call")
    }


def _block_ids(request: Any) -> tuple[list[str], list[str]]:
    blocks = [it for message in request["messages"] for it in message["content"]]
    asked = [it["id"] for it in blocks if it["type"] == "tool_use"]
    return asked, [it["tool_use_id"] for it in blocks if it["type"] == "tool_result"]


def _part_ids(request: Any) -> tuple[list[str], list[str]]:
    parts = [it for content in request["contents"] for it in content["parts"]]
    asked = [it["functionCall"]["id"] for it in parts if "functionCall" in it]
    return asked, [it["functionResponse"]["id"] for it in parts if "functionResponse" in it]


PROVIDERS = {
    it.name: it
    for it in (
        Provider(
            name="openai",
            fold=lambda: chat_completions.ChatCompletionsFold(spec="openai:m"),
            as_events=chat_completions.as_events,
            ids=_chat_ids,
            items=lambda raw: [raw],
            base_path="/v1",
        ),
        Provider(
            name="openai-responses",
            fold=lambda: responses.ResponsesFold(spec="openai-responses:m"),
            as_events=responses.as_events,
            ids=_item_ids,
            items=lambda raw: [*raw],
            base_path="/v1",
        ),
        Provider(
            name="anthropic",
            fold=lambda: anthropic.AnthropicFold(spec="anthropic:m"),
            as_events=anthropic.as_events,
            ids=_block_ids,
            items=lambda raw: [*raw["content"]],
        ),
        Provider(
            name="google",
            fold=lambda: google.GoogleFold(spec="google:m"),
            as_events=google.as_events,
            ids=_part_ids,
            items=lambda raw: [*raw["content"]["parts"]],
        ),
    )
}
"""Those that have a fold."""


def conversations(provider: Provider) -> Iterator[list[Message]]:
    """Yield each recorded conversation with calls, as it would have been kept here."""
    found: dict[str, list[Recording]] = {}
    for it in recordings(provider.name):
        found.setdefault(it.conversation, []).append(it)
    for told in found.values():
        said: list[Message] = []
        for it in told:
            if it.calls is None:
                continue
            answer = provider.spoken(it)[1].answer
            said += [Prompt(text="go on"), answer, _results(answer, it, len(said) // 3 + 1)]
        if said:
            yield said


def _results(answer: Answer, recording: Recording, number: int) -> Results:
    told = [*recording.results, *[("ok", "")] * len(answer.calls)]
    calls = zip(answer.identified(), told, strict=False)
    return Results(
        turn_id=f"t{number}",
        results=tuple(
            _result(call.invocation_id, call.tool_name, status, content or "nothing")
            for call, (status, content) in calls
        ),
    )


def _result(invocation_id: str, tool_name: str, status: str, content: str) -> CallResult:
    payload: dict[str, Any] = {
        "ok": {"status": Status.SUCCEEDED, "result": content},
        "error": {"status": Status.FAILED, "error": content},
        "denied": {"status": Status.DENIED, "reason": content},
    }[status]
    return CallResult(invocation_id=invocation_id, tool_name=tool_name, **payload)
