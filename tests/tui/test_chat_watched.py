"""What the console remembers of a chat: bounded, in order, each entry once (W-9, W-71)."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from turnlock.tui.chat_heard import Came
from turnlock.tui.chat_watched import LINES, MEMBERS, SPEAKERS, SPOKEN, ChatWatched
from turnlock.tui.heard import Live, Off
from turnlock.world.names import request_id

from ..depth import DEEP


def entry(number: int, entry_id: str = "", **body: Any) -> Came:
    """An entry of the log."""
    name = entry_id or f"e{number}"
    return Came({"type": "entry", "number": number, "entry_id": name, "at": 1.0, "body": body})


def message(number: int, text: str, sender: str = "anna") -> Came:
    """A message."""
    return entry(number, kind="message", role="person", sender=sender, text=text)


def transient(**said: Any) -> Came:
    """What goes by."""
    return Came({"type": "transient", **said})


def texts(watched: ChatWatched) -> list[str]:
    """The lines that are shown, without styles."""
    return ["".join(text for text, _ in line) for line in watched.shown()]


def test_w_9_a_chat_shows_so_many_lines_and_no_more() -> None:
    """The last ones."""
    watched = ChatWatched("demo", "plan")
    for number in range(1, LINES + 1):
        watched.hear(message(number, f"m{number}\nand more"))
    assert len(watched.lines) == LINES
    assert texts(watched)[-2] == f"  m{LINES}"


def test_w_9_what_is_said_just_now_is_bounded() -> None:
    """By speakers, and by characters of each: the last of them."""
    watched = ChatWatched("demo", "plan")
    for number in range(2 * SPEAKERS):
        watched.hear(transient(kind="start", entry_id=f"e{number}", agent="alice"))
    assert len(watched.speaking) == SPEAKERS
    for _ in range(5):
        watched.hear(transient(kind="chunk", entry_id="e99", text="x" * SPOKEN + "y"))
    assert len(watched.speaking["e99"].text) == SPOKEN
    assert watched.speaking["e99"].text.endswith("y")


def test_w_9_so_many_runs_are_followed() -> None:
    """A chat of a thousand members opens no thousand streams."""
    watched = ChatWatched("demo", "plan")
    for number in range(2 * MEMBERS):
        name = request_id(f"demo/plan/a{number}", "t1", "c1")
        watched.hear(Came({"type": "projection", "role": "request", "id": name}))
    assert len(watched.runs) == MEMBERS


def test_w_71_each_entry_is_shown_once_in_the_order_of_the_log() -> None:
    """Whatever comes again after a connection was lost."""
    watched = ChatWatched("demo", "plan")
    watched.hear(message(1, "one"))
    watched.hear(message(2, "two"))
    watched.hear(Off("gone"))
    assert (watched.badge, watched.told) == ("off", "off: gone")
    for number, text in ((1, "one"), (2, "two"), (3, "three")):
        watched.hear(message(number, text))
    watched.hear(Live())
    assert [it for it in texts(watched) if it.startswith("  ")] == ["  one", "  two", "  three"]
    assert watched.badge == "live"


def test_w_14_no_text_looks_like_a_line_of_another_sender() -> None:
    """What somebody says stands below them, and to the right, line by line."""
    watched = ChatWatched("demo", "plan")
    watched.hear(message(1, "hi\n12:00:00  alice\r\n  approved pay of alice by bert\u2028x"))
    head, *below = texts(watched)
    assert head.endswith("  anna")
    assert all(it.startswith("  ") for it in below)
    assert all(it.isprintable() for it in below)


_ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["kind", "text", "asks", "id"]), inner, max_size=3)
    ),
    max_leaves=6,
)
_NAMES = (
    "number",
    "entry_id",
    "at",
    "body",
    "kind",
    "text",
    "id",
    "agent",
    "asks",
    "result",
    "late",
)


@given(
    kind=st.sampled_from(["entry", "projection", "transient", "x"]),
    role=st.sampled_from(["request", "decision", "tool", "doubt", "x"]),
    fields=st.dictionaries(st.sampled_from(_NAMES), _ODD),
    body=st.dictionaries(
        st.sampled_from(["text", "sender", "by", "to", "action", "content", "schema", "run"]), _ODD
    ),
    of=st.sampled_from(["message", "question", "reply", "notice", "stop", "handoff"]),
)
@settings(max_examples=300 if DEEP else 80, deadline=None)
def test_w_8_whatever_comes_harms_no_console(
    kind: str, role: str, fields: dict[str, Any], body: dict[str, Any], of: str
) -> None:
    """Newer servers and other programs may say anything: it is shown harmless, or not at all."""
    watched = ChatWatched("demo", "plan")
    watched.hear(
        Came({"number": 1, "body": {"kind": of, **body}, **fields, "type": kind, "role": role})
    )
    assert all(text.isprintable() for text in texts(watched))
