"""The translator of `useChat` is a pure function: told in part, and then the rest, is told at once.

Its entries are those of real runs. A client is cut after each chunk at each moment of a run, asks
again with what it has, and once more at the end.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from turnlock.agent.messages import ToolCall
from turnlock.server.clients.chat_parts import Chunk, read_steps
from turnlock.server.clients.chat_translator import ChatTranslator, Has, Wanted
from turnlock.server.clients.entries import Entry
from turnlock.server.clients.story import Story
from turnlock.server.shown import Sent

from ...agent.speakers import asked, speech
from ...clients.chat_model import Message
from ..fronts import Ledger, Served, serving, speaking
from .chat_page import KINDS, ChatPage

FAULTY: Final = ToolCall(
    call_id="c1", tool_name="pay", arguments={"text": "{"}, fault="it is no JSON"
)
SPEECHES: Final = {
    "paying": [speech("I pay.", asked("pay", call_id="c1", amount=12)), speech("Done.")],
    "denied": [speech("I pay.", asked("pay", call_id="c1", amount=12)), speech("Done.")],
    "interrupted": [speech("I pay.", asked("pay", call_id="c1", amount=12)), speech("Done.")],
    "two steps": [
        speech(None, asked("look", call_id="c1")),
        speech("I pay.", asked("pay", call_id="c1", amount=12), asked("look", call_id="c2")),
        speech("Done."),
    ],
    "unreadable": [speech("I pay.", FAULTY), speech("I could not.")],
    "saying": [speech("Good day.")],
}


STEP: Final = 1 if os.environ.get("TURNLOCK_CRASHES") == "deep" else 6
"""How many moments of a run lie between those at which a client comes again."""


async def recorded(folder: Path, kind: str) -> list[Entry]:
    """The entries of a run in which that happens, twice: the second prompt is answered alike."""
    ledger = Ledger()
    async with serving(folder, speaking(ledger, *SPEECHES[kind])) as it:
        page = ChatPage()
        for number in (1, 2):
            page.say(f"go {number}", f"m{number}")
            await page.post(it.client())
            if page.chunks[-1]["finishReason"] == "tool-calls":
                await answered(it, page, kind)
        subscription = it.face.hub.subscribe("c", follow=False)
        return [
            Entry.of(sent)
            async for batch in subscription
            for sent in batch
            if isinstance(sent, Sent)
        ]


async def answered(it: Served, page: ChatPage, kind: str) -> None:
    if kind == "interrupted":
        assert (await it.client().post("/v1/runs/c/interrupt", json={})).status_code == 200
    else:
        parts = [part for message in page.messages for part in message["parts"]]
        (call,) = [it["toolCallId"] for it in parts if it.get("state") == "approval-requested"]
        page.answer(call, approved=kind != "denied", reason="so be it")
    await page.post(it.client())


def told(entries: Sequence[Entry], wanted: Wanted, *, since: int | None = None) -> Iterator[Chunk]:
    """What a client is sent that asks when there are so many entries, and then as they come.

    None: when there are all.
    """
    story = Story("c")
    translator = ChatTranslator(story, wanted)
    for count, entry in enumerate(entries, start=1):
        if not translator.is_over:
            translator.take(entry, story.take(entry))
            if count >= (len(entries) if since is None else since):
                yield from translator.look(is_late=False)


def asks_again(message: Message, wanted: Wanted) -> Wanted:
    """What the client asks for with what it has: of a message that never began, for the prompt."""
    if not message.id.startswith("reply/"):
        return wanted
    steps, has_more = read_steps(message.parts)
    return Wanted(has=Has(name=message.id, steps=steps, has_more=has_more))


@pytest.mark.parametrize("kind", SPEECHES)
def test_f_72_any_prefix_of_a_run_and_then_the_rest_is_all_at_once(
    tmp_path: Path, kind: str
) -> None:
    entries = asyncio.run(recorded(tmp_path, kind))
    prompts = [place for place, it in enumerate(entries) if it.note and it.note.kind == "user"]
    assert len(prompts) == 2
    for number, first in enumerate(prompts, start=1):
        wanted = Wanted(prompt=f"m{number}")
        whole = Message().take(told(entries, wanted))
        assert (whole.id, whole.error) == (f"reply/{number}", None)
        chunks = [*told(entries, wanted, since=first)]
        assert {it["type"] for it in chunks} <= KINDS
        # the stream of a prompt ends at its question: another request goes on with it
        for cut in range(len(chunks) + 1):
            message = Message().take(chunks[:cut])
            asks = asks_again(message, wanted)
            for since in range(first + cut % STEP, len(entries) + 1, STEP):
                again = message.again().take(told(entries, asks, since=since))
                again = again.again().take(told(entries, asks_again(again, wanted)))
                assert again.plain() == whole.plain(), (number, cut, since)
                assert again.finished == whole.finished


@pytest.mark.parametrize("kind", SPEECHES)
def test_f_71_f_74_the_replay_is_what_the_stream_was(tmp_path: Path, kind: str) -> None:
    """And a second one is the same, chunk by chunk."""
    entries = asyncio.run(recorded(tmp_path, kind))
    replay = [*told(entries, Wanted())]

    assert replay == [*told(entries, Wanted())]
    assert replay == [*told(entries, Wanted(prompt="m2"))]


def test_f_72_negative_control_a_client_that_says_it_has_what_it_has_not(tmp_path: Path) -> None:
    """It lacks what it was not told: what the tests above would find."""
    entries = asyncio.run(recorded(tmp_path, "saying"))
    wanted = Wanted(prompt="m1")
    chunks = [*told(entries, wanted)]
    whole = Message().take(chunks)
    lying = asks_again(whole, wanted)

    got = Message(id="reply/1").take(told(entries, lying))
    assert got.plain() != whole.plain()
