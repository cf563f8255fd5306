"""The fold that clients of others are shown: what no server of a test writes by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from turnlock.agent.messages import Answer, Prompt, Stop, ToolCall, as_note
from turnlock.runtime.journal.ledger import Cursor, Domain, Note
from turnlock.server.clients.entries import Entry
from turnlock.server.clients.story import Answered, Happening, Prompted, Story, Troubled
from turnlock.server.problems import Problem


def entry(note: Note, part: int = 1) -> Entry:
    """A note, as it is told."""
    return Entry(
        event_id=f"event/r/0.{part}",
        cursor=Cursor(0, part),
        at=1.0,
        correlation=msgspec.Raw(b"null"),
        note=note,
    )


def noted(kind: str, name: str, domain: Domain = Domain.MESSAGE, **body: Any) -> Entry:
    """A note of this kind."""
    return entry(Note(domain=domain, kind=kind, body={"id": name, **body}, at=1.0, id=name))


def told(story: Story, *entries: Entry) -> list[Happening]:
    """All that happens by these."""
    return [it for entry in entries for it in story.take(entry)]


def user(number: int, text: str, **more: Any) -> Entry:
    """A prompt."""
    return entry(as_note(Prompt(text=text, **more), name=f"said/{number}"))


def test_f_71_prompts_are_counted_and_known_by_the_ids_of_clients() -> None:
    """One without such an id has that of its note; what a host tells the model is nobody's."""
    story = Story("r")
    happened = told(
        story,
        user(1, "one", message_id="m1"),
        entry(as_note(Answer(text="A"), name="said/2")),
        user(3, "does not fit", misfit=True),
        entry(as_note(Answer(text="B"), name="said/4")),
        user(5, "two"),
    )
    assert [(it.message_id, it.number) for it in happened if isinstance(it, Prompted)] == [
        ("m1", 1),
        ("said/5", 2),
    ]
    assert [(it.message_id, it.reply) for it in happened if isinstance(it, Answered)] == [
        ("said/2", 1),
        ("said/4", 1),
    ]
    assert (story.knows("m1"), story.prompt("m1"), story.prompt("m2")) == (True, "one", None)


def test_f_25_a_prompt_that_waits_is_known_and_nobody_has_the_word() -> None:
    """Until it is said, and answered."""
    story = Story("r")
    assert story.is_at_rest
    told(story, noted("waiting", "waiting/m1", message_id="m1", text="one"))
    assert (story.knows("m1"), story.is_at_rest) == (True, False)
    told(story, user(1, "one", message_id="m1"))
    assert (story.is_at_rest, story.is_asking) == (False, True)
    told(story, entry(as_note(Answer(text="A"), name="said/2")))
    assert story.is_at_rest


@pytest.mark.parametrize("sealed", [True, False])
def test_f_61_an_answer_that_is_sealed_is_told_without_its_words(*, sealed: bool) -> None:
    """Whoever has no key sees that it asks for calls; these are in the facts."""
    call = ToolCall(call_id="c", tool_name="pay", arguments={})
    clear = as_note(Answer(text="secret", calls=(call,), stop=Stop.CALLS), name="said/2")
    body: Mapping[str, Any] = {"id": "said/2", "sealed": "AAAA"} if sealed else clear.body
    story = Story("r")
    note = Note(domain=Domain.MESSAGE, kind="assistant", body=body, at=1.0, id="said/2")
    *_, answered = told(story, user(1, "one"), entry(note))
    assert isinstance(answered, Answered)
    assert (answered.has_calls, answered.text) == (True, "" if sealed else "secret")
    assert not story.is_at_rest


@pytest.mark.parametrize(
    "wrong",
    [
        noted("user", "said/2", text="not the first"),
        noted("assistant", "said/1", text="no calls"),
        noted("user", "said/1"),
    ],
)
def test_f_63_what_is_no_conversation_is_a_problem(wrong: Entry) -> None:
    """With its code: a stream ends with it."""
    with pytest.raises(Problem) as raised:
        told(Story("r"), wrong)
    assert raised.value.code == "runtime_reference_invalid"


def test_f_63_a_trouble_is_over_once_something_happens() -> None:
    """What a session said that has failed is nothing any more, once it has gone on."""
    story = Story("r")
    ended = noted("session_ended", "x", Domain.ERROR, text="it broke", why="failed")
    happened = told(story, user(1, "one"), ended)
    assert isinstance(happened[-1], Troubled)
    assert story.trouble is not None
    assert (story.trouble.code, story.trouble.is_final) == ("runtime_unavailable", False)
    told(story, entry(as_note(Answer(text="A"), name="said/2")))
    assert story.trouble is None


def test_f_61_runs_of_another_runtime_have_messages_of_their_own() -> None:
    """Named as it names them; it is at rest once it says that its turn is over."""
    story = Story("r", kind="codex")
    happened = told(
        story,
        noted("waiting", "waiting/m1", message_id="m1", text="go"),
        noted("user", "said/1", message_id="m1", text="go"),
        noted("sent", "sent/m1", message_id="m1"),
        noted("assistant", "turn/item", text="I go."),
    )
    assert [type(it) for it in happened] == [Prompted, Answered]
    assert isinstance(happened[-1], Answered)
    assert (happened[-1].message_id, happened[-1].text) == ("turn/item", "I go.")
    assert not story.is_at_rest
    told(story, noted("turn/completed", "t", Domain.TURN))
    assert story.is_at_rest


@pytest.mark.parametrize("kind", ["refused", "outcome_unknown"])
def test_f_63_a_prompt_that_the_runtime_did_not_take_is_a_trouble(kind: str) -> None:
    """Nobody waits for its answer."""
    story = Story("r", kind="codex")
    told(story, noted("user", "said/1", message_id="m1", text="go"))
    happened = told(story, noted(kind, f"{kind}/m1", message_id="m1", text="it would not"))
    assert isinstance(happened[-1], Troubled)
    assert (happened[-1].code, happened[-1].is_final) == ("runtime_command_failed", True)
    assert story.is_at_rest
