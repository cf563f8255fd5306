"""What real providers sent, through the folds and through the official clients (W-50 … W-57)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import attrs
import pytest

from turnlock.agent import Agent
from turnlock.agent.errors import ModelError, ProviderFailure
from turnlock.agent.messages import (
    Answer,
    Message,
    Results,
    Stop,
    Tokens,
    as_note,
    from_note,
)
from turnlock.agent.speaking import (
    Again,
    CallEnded,
    Ended,
    Question,
    Said,
    Text,
    listen,
)
from turnlock.agent.wire_ids import TAKEN_BY_ALL
from turnlock.runtime.tools.tool import Tool

from .playing import Play, playing
from .recordings import Recording, recordings
from .spoken import PROVIDERS, Provider, conversations

each_provider = pytest.mark.parametrize("provider", PROVIDERS.values(), ids=PROVIDERS)

TENTHS = range(1, 10)
SPLICED = "gemini-cli/user-policy#0"
"""Two responses in one, put together by hand: it goes on after it has said why it stopped."""


def failing(recording: Recording, provider: Provider) -> bool:
    """Whether its provider says in it that it failed."""
    try:
        provider.spoken(recording)
    except ProviderFailure:
        return True
    return False


def whole(provider: Provider, *, streamed: bool | None = None) -> list[Recording]:
    """Those that are answers."""
    return [it for it in recordings(provider.name, streamed=streamed) if not failing(it, provider)]


def valid(said: list[Said]) -> list[Said]:
    """What stands at the end: what came before `Again` is void."""
    begun = max((n for n, it in enumerate(said) if isinstance(it, Again)), default=-1)
    return said[begun + 1 :]


@each_provider
def test_w_51_each_recording_is_folded_and_its_calls_are_those_that_are_known(
    provider: Provider,
) -> None:
    """From bytes; what listeners heard is the answer's text, and no recorded answer is cut."""
    known = 0
    for recording in whole(provider):
        said, ended = provider.spoken(recording)

        heard = "".join(it.text for it in valid(said) if isinstance(it, Text))
        assert heard == (ended.answer.text or ""), recording.name
        assert ended.stop is not Stop.CUT, recording.name
        assert ended.answer.spec == f"{provider.name}:m"
        if recording.calls is not None:
            known += 1
            got = [(it.call_id, it.tool_name, it.arguments) for it in ended.answer.calls]
            wanted = [(it, name, json.loads(text or "{}")) for it, name, text in recording.calls]
            assert got == wanted, recording.name
    assert known > 20


@each_provider
def test_w_53_calls_that_were_told_to_have_ended_are_the_answers(provider: Provider) -> None:
    """In their order, and each with the provider's message up to it."""
    for recording in whole(provider):
        said, ended = provider.spoken(recording)
        told = [it for it in valid(said) if isinstance(it, CallEnded)]

        assert [it.call for it in told] in ([], [*ended.answer.calls]), recording.name
        assert [it.place for it in told] == [*range(len(told))]
        whole_message = provider.items(ended.answer.raw)
        for it in told:
            items = provider.items(it.raw)
            assert whole_message[: len(items)] == items, recording.name
        assert from_note(as_note(ended.answer)) == ended.answer


async def _through_client(provider: Provider, found: list[Recording]) -> None:
    """Hold what the client makes of recordings against what their bytes mean."""
    async with playing(*map(Play.of, found)) as server:
        for streams in (True, False):
            asked = [it for it in found if it.streamed is streams]
            server.plays = [*map(Play.of, asked), Play(body=b"")]
            model = provider.model(server.url, streams=streams)
            for recording in asked:
                said: list[Said] = []
                ended = await listen(model, Question(()), hear=said.append)
                wanted, whole_end = provider.spoken(recording)
                assert ended == whole_end, recording.name
                assert said[:-1] == wanted, recording.name
            await model.close()


@each_provider
def test_w_50_the_official_client_says_the_same(provider: Provider) -> None:
    """Every recording, streamed and not, in pieces that end anywhere."""
    asyncio.run(_through_client(provider, whole(provider)))


@each_provider
def test_w_50_a_timeout_is_of_silence_and_not_of_the_whole_answer(provider: Provider) -> None:
    """Slow is not silent; what falls silent after its first event is cut (W-52)."""
    slow = max(whole(provider, streamed=True), key=lambda it: len([*it.events()]))

    async def ask(*, pause: float, patience: float) -> Stop:
        play = Play.of(slow, piece=len(slow.body) // 4 + 1, pause=pause)
        async with playing(play) as server:
            model = provider.model(server.url, timeout=patience)
            try:
                return (await listen(model, Question(()))).stop
            finally:
                await model.close()

    assert asyncio.run(ask(pause=0.4, patience=1.2)) is provider.spoken(slow)[1].stop
    assert asyncio.run(ask(pause=2.0, patience=0.8)) is Stop.CUT


@each_provider
def test_w_50_what_a_provider_says_of_its_failure_is_told(provider: Provider) -> None:
    """As an error that says what to do."""

    async def ask(recording: Recording) -> None:
        async with playing(Play.of(recording)) as server:
            model = provider.model(server.url, streams=recording.streamed)
            with pytest.raises(ModelError, match=r"model m at http.*; .*goes on from here"):
                await listen(model, Question(()))
            await model.close()

    for recording in recordings(provider.name):
        if failing(recording, provider):
            asyncio.run(ask(recording))


def _cut(recording: Recording, tenth: int) -> Recording:
    """The first tenths of its bytes, as a plain reader has them: no event that is not whole."""
    body = recording.body[: len(recording.body) * tenth // 10].decode(errors="ignore")
    ends = max(body.rfind("\n\n"), body.rfind("\r\n\r\n"))
    return attrs.evolve(recording, body=body[: max(ends, 0)].encode())


def _agrees(said: list[Said], ended: Ended, end: Ended) -> None:
    """Hold what came of a cut stream against the whole: nothing in it differs."""
    for it in said:
        if isinstance(it, CallEnded):
            assert it.call == end.answer.calls[it.place]
    if ended.stop is not Stop.CUT:  # the reason had come, and only the count of tokens was missing
        assert attrs.evolve(ended.answer, tokens=Tokens()) == attrs.evolve(
            end.answer, tokens=Tokens()
        )


@each_provider
def test_w_52_streams_cut_at_each_tenth_are_no_answers(provider: Provider) -> None:
    """No call that differs, no cut answer kept."""
    cut = 0
    for recording in whole(provider, streamed=True):
        said, end = provider.spoken(recording)
        if any(isinstance(it, Again) for it in said) or recording.name == SPLICED:
            continue  # what is cut off is another response
        for tenth in TENTHS:
            part = _cut(recording, tenth)
            ended_said, ended = provider.folded(part, list(part.events()))
            _agrees(ended_said, ended, end)
            cut += ended.stop is Stop.CUT
    assert cut > 100


async def _cut_through_client(provider: Provider, recording: Recording) -> None:
    """Hold what the client makes of each cut, cleanly and not, against the whole."""
    whole_end = provider.spoken(recording)[1]
    async with playing(Play(body=b"")) as server:
        model = provider.model(server.url)
        for tenth in TENTHS:
            for cleanly in (True, False):
                cut = len(recording.body) * tenth // 10
                server.plays = [Play.of(recording, cut=cut, cleanly=cleanly)]
                said: list[Said] = []
                with suppress(ModelError):  # nothing had come
                    ended = await listen(model, Question(()), hear=said.append)
                    _agrees(said[:-1], ended, whole_end)
        await model.close()


@each_provider
def test_w_52_connections_cut_at_each_tenth_are_no_answers(provider: Provider) -> None:
    """Through the official client: what breaks after the first event is cut, too."""
    with_calls = [it for it in whole(provider, streamed=True) if it.calls]
    for recording in (with_calls[0], with_calls[-1]):
        asyncio.run(_cut_through_client(provider, recording))


@each_provider
def test_w_51_an_agent_runs_a_recorded_call_and_hears_the_answer_to_it(provider: Provider) -> None:
    """The whole way: streamed, run, told under the id of its call, answered."""
    asks = next(it for it in whole(provider, streamed=True) if len(it.calls or ()) == 1)
    answers = next(
        it for it in whole(provider, streamed=True) if provider.spoken(it)[1].stop is Stop.DONE
    )
    (call,) = provider.spoken(asks)[1].answer.calls
    ran: list[dict[str, Any]] = []

    async def perform(**given: Any) -> str:
        ran.append(given)
        return "seen"

    async def play() -> tuple[str, list[Any]]:
        tool = Tool(name=call.tool_name, call=perform, parameters={"type": "object"})
        async with playing(Play.of(asks), Play.of(answers)) as server:
            model = provider.model(server.url)
            async with Agent(model=model, tools=[tool]) as agent:
                said = str(await agent.run("go"))
            await model.close()
            return said, server.asked

    said, (_, told) = asyncio.run(play())

    assert said == provider.spoken(answers)[1].answer.text
    assert ran == [call.arguments]
    asked, results = provider.ids(told)
    assert asked == results
    assert "seen" in json.dumps(told)


def _everything_twice() -> Iterator[Message]:
    """All recorded conversations of all providers in one, and again: each id comes twice."""
    for _ in range(2):
        for provider in PROVIDERS.values():
            for said in conversations(provider):
                yield from said


@each_provider
def test_w_56_recorded_conversations_go_back_to_each_provider(provider: Provider) -> None:
    """No id that is refused or comes twice, and each call is answered once, after it."""
    messages = tuple(_everything_twice())

    async def ask() -> object:
        async with playing(Play(body=b"")) as server:
            model = provider.model(server.url)
            await listen(model, Question(messages))
            await model.close()
        (request,) = server.asked
        return request

    request = asyncio.run(ask())
    asked, told = provider.ids(request)

    calls = sum(len(it.calls) for it in messages if isinstance(it, Answer))
    assert len(asked) == len(told) == calls
    assert set(asked) == set(told)
    assert len(set(asked)) == calls
    ours = [it for it in asked if not it.startswith("mcpr_")]  # an item's own id, as it came
    assert all(TAKEN_BY_ALL.fullmatch(it) for it in ours)
    assert sum(isinstance(it, Results) for it in messages) > 50
