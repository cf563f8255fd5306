"""AG-UI's translator as a function: any prefix delivered, then the rest, equals all at once (F-61).

Each story is one that a server has written; each is cut after every event of every prefix of it.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnlock.agent.loop import Agent
from turnlock.agent.messages import Answer, Stop, as_note
from turnlock.runtime.journal.ledger import Cursor, Domain, Note
from turnlock.server.clients.agui_events import Agui
from turnlock.server.clients.agui_messages import Messages
from turnlock.server.clients.entries import Entry
from turnlock.server.clients.story import Story
from turnlock.server.shown import Sent

from ...agent.speakers import Speaker, by_answers, speech
from ..fronts import Ledger, Served, serving
from .agui_page import Event, Page
from .agui_played import LOOK, PAY

Says = Sequence[tuple[str, dict[str, Any]]]
"""What a person does, one after another: a prompt, or an answer to all that is asked."""

STORIES: dict[str, Says] = {
    "approved": [("prompt", {}), ("answer", {"approved": True})],
    "denied": [("prompt", {}), ("answer", {"approved": False, "reason": "no"})],
    "edited": [("prompt", {}), ("answer", {"approved": True, "arguments": {"amount": 1}})],
    "waiting": [("prompt", {})],
    "twice": [("prompt", {}), ("answer", {"approved": True}), ("prompt", {})],
    "stopped": [("prompt", {}), ("stop", {})],
}


async def recorded(it: Served, run_id: str = "t") -> list[Entry]:
    """All entries of a run."""
    subscription = it.face.hub.subscribe(run_id, follow=False)
    return [Entry.of(e) async for batch in subscription for e in batch if isinstance(e, Sent)]


def written(folder: Path, says: Says, **more: Any) -> list[Entry]:
    """The entries of a run in which a person did this."""

    async def write() -> list[Entry]:
        page, ledger = Page(), Ledger()
        model = Speaker([speech("I pay now.", PAY, LOOK), speech("Done.")], which=_by_turns)
        agent = Agent(model=model, tools=ledger.tools(), **more)
        async with serving(folder, agent) as it:
            for number, (what, said) in enumerate(says):
                if what == "prompt":
                    page.say(f"pay {number}", f"m{number}")
                    await page.run(it.client())
                elif what == "stop":
                    await it.client().post("/v1/runs/t/interrupt", json={})
                else:
                    await page.run(it.client(), page.answers(**said))
            return await recorded(it)

    return asyncio.run(write())


def _by_turns(model: Speaker, question: Any) -> int:
    return by_answers(model, question) % 2


def told(entries: Sequence[Entry], page: Page) -> list[Event]:
    """What a page is told that has what it has."""
    messages = Messages(copy.deepcopy(page.messages))
    held = page.state.get("turnlock", {}).get("cursor", "")

    def make(story: Story) -> Agui:
        return Agui(story, run_id="run-of-the-page", messages=messages, above=Cursor.read(held))

    story = Story("t")
    begun = Agui(story, run_id="run-of-the-page").start()
    events = translated(entries, story, make)
    return [begun, *(_plain(it) for it in events)]


def translated(
    entries: Iterable[Entry], story: Story, make: Callable[[Story], Agui]
) -> list[Event]:
    """All that the translator says of these entries, and then that no more has happened."""
    past = [(entry, story.take(entry)) for entry in entries]
    translator = make(story)
    events = [event for it in past for event in translator.take(*it)]
    return [*events, *translator.look(is_late=True)]


def _plain(event: Event) -> Event:
    decoded: Event = msgspec.json.decode(msgspec.json.encode(event))
    return decoded


def read(page: Page, events: Sequence[Event], *, cut: int | None = None) -> Page:
    """Have a page read a stream, or its first events."""
    page.begin()
    for event in events[:cut]:
        page.take(event)
    return page


@pytest.mark.parametrize("start", ["whole", "early"])
@pytest.mark.parametrize("name", STORIES)
def test_f_61_any_prefix_and_then_the_rest_is_all_at_once(
    tmp_path: Path, name: str, start: str
) -> None:
    """Wherever the journal stood, and wherever its stream was cut, the messages are the same."""
    entries = written(tmp_path, STORIES[name], start=start)
    whole = read(Page(), told(entries, Page()))
    assert whole.messages
    facts = [e["value"] for e in whole.named("CUSTOM")]
    for length in range(len(entries) + 1):
        part = told(entries[:length], Page())
        for cut in range(len(part) + 1):
            page = read(Page(), part, cut=cut)
            before = [e["value"] for e in page.named("CUSTOM")]
            known = page.state.get("turnlock")
            read(page, told(entries, page))
            assert page.messages == whole.messages, (length, cut)
            after = [e["value"] for e in page.named("CUSTOM")]
            assert (before + after if known else after) == facts
            assert page.over == whole.over


@pytest.mark.parametrize("name", STORIES)
def test_f_61_what_has_everything_is_told_nothing(tmp_path: Path, name: str) -> None:
    """The negative control of the property: a stream is not the same each time."""
    entries = written(tmp_path, STORIES[name])
    page = read(Page(), told(entries, Page()))
    again = told(entries, page)
    assert [e["type"] for e in again] == ["RUN_STARTED", "STATE_DELTA", "RUN_FINISHED"]


@pytest.mark.parametrize("name", STORIES)
def test_f_61_the_messages_that_are_kept_are_those_of_the_page(tmp_path: Path, name: str) -> None:
    """What the translator takes the page to have is what the page's reducer has."""
    entries = written(tmp_path, STORIES[name])
    messages = Messages(())
    story = Story("t")
    events = translated(
        entries, story, lambda it: Agui(it, run_id="run-of-the-page", messages=messages)
    )
    page = read(Page(), [Agui(story, run_id="run-of-the-page").start(), *map(_plain, events)])
    assert messages.all == page.messages


@given(st.data())
@settings(max_examples=60)
def test_f_61_what_a_page_has_wrong_is_put_right(data: st.DataObject) -> None:
    """Texts and arguments that no prefix of the truth are: they are replaced, and nothing else."""
    texts = data.draw(st.lists(st.text(max_size=12), min_size=1, max_size=4))
    entries = [
        it
        for place, text in enumerate(texts)
        for it in (_said(2 * place + 1, "user", f"p{place}"), _said(2 * place + 2, "answer", text))
    ]
    whole = read(Page(), told(entries, Page()))
    page = Page(messages=copy.deepcopy(whole.messages))
    for message in page.messages:
        if message["role"] == "assistant":
            message["content"] = data.draw(st.text(max_size=12))
    mine = {"id": "mine", "role": "system", "content": "stays"}
    page.messages.insert(0, mine)
    read(page, told(entries, page))
    assert page.messages == [mine, *whole.messages]


def _said(number: int, who: str, text: str) -> Entry:
    name, body = f"said/{number}", {"text": text}
    if who == "user":
        note = Note(domain=Domain.MESSAGE, kind="user", body={"id": name, **body}, at=1.0, id=name)
    else:
        note = as_note(Answer(text=text or None, stop=Stop.DONE), name=name, at=1.0)
    return Entry(
        event_id=f"event/t/0.{number}",
        cursor=Cursor(0, number),
        at=1.0,
        correlation=msgspec.Raw(b"null"),
        note=note,
    )


@given(st.lists(st.text(min_size=1, max_size=5), max_size=5), st.text(max_size=12), st.booleans())
def test_f_61_pieces_and_then_the_whole_say_the_whole(
    pieces: list[str], text: str, is_prefix: bool
) -> None:
    """What is heard while it is spoken is superseded by what is kept, whatever it was (F-8)."""
    whole = "".join(pieces) + text if is_prefix else text
    page, story, messages = Page(), Story("t"), Messages(())
    page.begin()
    translator = Agui(story, run_id="run-of-the-page", messages=messages)
    page.take(translator.start())
    prompt, answer = _said(1, "user", "go"), _said(2, "answer", whole)
    for event in translator.take(prompt, story.take(prompt)):
        page.take(event)
    for piece in pieces:
        for event in translator.hear("said/2", piece):
            page.take(event)
    for event in translator.take(answer, story.take(answer)):
        page.take(event)
    for event in translator.look(is_late=False):
        page.take(event)
    assert page.over == "success"
    texts = {m["id"]: m["content"] for m in page.messages}
    assert texts.get("said/2", "") == whole
    assert messages.all == page.messages
