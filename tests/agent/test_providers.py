"""What all providers share: how a model is opened, and what its endpoint may do wrong (W-50)."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import pytest

from turnlock.agent.errors import ModelError
from turnlock.agent.messages import Stop
from turnlock.agent.providers import MODELS, open_model
from turnlock.agent.providers.client import MissingClient
from turnlock.agent.speaking import Ended, Question, Said, Text, listen
from turnlock.models.errors import InvalidValue

from .playing import Play, Server, playing
from .recordings import Recording, recordings
from .spoken import PROVIDERS, Provider

each_provider = pytest.mark.parametrize("provider", PROVIDERS.values(), ids=PROVIDERS)


def asked(
    provider: Provider, *plays: Play, **options: Any
) -> tuple[Ended | ModelError, list[Said], Server]:
    """Ask a model once, and return what came of it."""

    async def ask() -> tuple[Ended | ModelError, list[Said], Server]:
        said: list[Said] = []
        async with playing(*plays) as server:
            model = provider.model(server.url, **options)
            try:
                return await listen(model, Question(()), hear=said.append), said, server
            except ModelError as error:
                return error, said, server
            finally:
                await model.close()

    return asyncio.run(ask())


def spoken(provider: Provider) -> Play:
    """A streamed answer that begins with text and goes on for some events."""

    def begins(recording: Recording) -> bool:
        events = list(recording.events())
        first, _ = provider.folded(recording, events[: len(events) // 2])
        return len(events) > 3 and any(isinstance(it, Text) for it in first)

    return Play.of(next(filter(begins, recordings(provider.name, streamed=True))))


@pytest.mark.parametrize("spec", ["gpt-5", "openai", "openai:", ":m", "mistral:m", ""])
def test_a_model_that_no_provider_has_is_refused_with_the_four(spec: str) -> None:
    """Before anything is imported."""
    with pytest.raises(InvalidValue, match="openai, openai-responses, anthropic, google"):
        open_model(spec)


@each_provider
def test_w_50_without_its_client_a_model_says_what_to_install(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The extra is named after the provider."""
    hidden = {"openai": "openai", "openai-responses": "openai"}.get(provider.name, provider.name)
    module = {"google": "google.genai"}.get(hidden, hidden)
    for name in [it for it in sys.modules if it == module or it.startswith(f"{module}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(MissingClient, match=rf"pip install 'turnlock\[{hidden}\]'"):
        open_model(f"{provider.name}:m", api_key="k")


@each_provider
def test_w_50_without_a_key_a_model_says_where_it_belongs(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is asked."""
    for name in ("OPENAI", "ANTHROPIC", "GOOGLE", "GEMINI"):
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)

    with pytest.raises(MissingClient, match=r"there is no key; put it into [A-Z]+_API_KEY"):
        open_model(f"{provider.name}:m")


@each_provider
def test_every_provider_opens_and_says_who_it_is(provider: Provider) -> None:
    """By the spec that its answers have."""
    model: Any = provider.model("http://127.0.0.1:1")

    assert model.spec == f"{provider.name}:m"
    assert provider.name in MODELS


@each_provider
def test_w_50_what_fails_before_the_first_byte_is_asked_again(provider: Provider) -> None:
    """By the client, which waits as it is told."""
    away = Play(
        body=b'{"error": {"message": "away"}}',
        content_type="application/json",
        status=503,
        headers={"retry-after": "0.01", "retry-after-ms": "10"},
    )
    end, _, server = asked(provider, away, spoken(provider), retries=1)

    assert isinstance(end, Ended)
    assert end.stop is not Stop.CUT
    assert len(server.asked) == 2


@each_provider
def test_w_50_what_fails_after_the_first_byte_is_not(provider: Provider) -> None:
    """It is cut; the text that had come was heard (W-52)."""
    play = spoken(provider)
    for cleanly in (True, False):
        cut = Play(body=play.body, cut=len(play.body) * 2 // 3, cleanly=cleanly)
        end, said, server = asked(provider, cut, retries=2)

        assert isinstance(end, Ended)
        assert end.stop is Stop.CUT
        assert any(isinstance(it, Text) for it in said)
        assert len(server.asked) == 1


@each_provider
def test_w_50_a_connection_that_breaks_before_the_first_event_is_an_error(
    provider: Provider,
) -> None:
    """It may be another's fault: the address, or the network."""
    end, said, _ = asked(provider, Play(body=b" ", cut=1, cleanly=False))

    assert isinstance(end, ModelError)
    assert said == []
    assert "cannot be reached" in str(end)


@each_provider
def test_w_50_silence_is_an_error_that_says_so(provider: Provider) -> None:
    """Before the first event."""
    end, _, _ = asked(provider, Play(body=b"", hangs=1.0), timeout=0.1)

    assert isinstance(end, ModelError)
    assert "it took too long; try again later" in str(end)


STATUSES = {
    401: "see to [A-Z]+_API_KEY",
    404: "see to the name of the model",
    429: "try again later",
}


@each_provider
@pytest.mark.parametrize(("status", "fix"), STATUSES.items())
def test_w_50_a_status_says_what_to_do(provider: Provider, status: int, fix: str) -> None:
    """With what the endpoint says, without what would move a cursor."""
    body = json.dumps({"error": {"message": "no\x1b[2J", "code": status, "status": "x"}})
    play = Play(body=body.encode(), content_type="application/json", status=status)
    end, _, _ = asked(provider, play)

    assert isinstance(end, ModelError)
    with pytest.raises(ModelError, match=rf"(?s)model m at http.*answered {status}: no.*{fix}"):
        raise end
    assert "\x1b" not in str(end)


BAD = {"a text": '"text"', "a number": "3", "deep": "[" * 3_000 + "]" * 3_000, "half": '{"x": '}


@each_provider
@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_a_bad_event_is_shown_shortened(provider: Provider, data: str) -> None:
    """Whether its client, its fold or the JSON reader refuses it."""
    kind = "event: message_start\n"
    end, _, _ = asked(provider, Play(body=f"{kind}data: {data}\n\n".encode()))

    assert isinstance(end, ModelError)
    assert "is this its base URL?" in str(end)
    assert len(str(end)) < 1_200


@pytest.mark.parametrize("provider", [PROVIDERS["openai"], PROVIDERS["openai-responses"]])
def test_an_endpoint_that_does_not_stream_when_it_is_asked_to(provider: Provider) -> None:
    """What it says at once is as good; a page is not."""
    whole = next(it for it in recordings(provider.name, streamed=False) if it.calls)
    end, _, _ = asked(provider, Play.of(whole))
    page, _, _ = asked(provider, Play(body=b"<html>hello", content_type="text/html"))

    assert end == provider.spoken(whole)[1]
    assert isinstance(page, ModelError)
    assert "<html>hello" in str(page)
