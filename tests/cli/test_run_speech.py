"""What the model says is shown whole and once, however it comes in pieces."""

from __future__ import annotations

import random

import pytest
from rich.console import Console

from turnlock.agent import Again, Answer, CallBegan, Ended, Stop, Text, Thought, ToolCall
from turnlock.agent.setup import ANSWERS
from turnlock.cli import run, run_lines
from turnlock.cli.run_lines import StdinLines, lines_of
from turnlock.cli.run_speech import Speech

TEXT = "one\n\ntwo three\x1b[2J\nfour " * 20 + "end"
CALL = ToolCall(call_id="c", tool_name="look", arguments={})


def pieces(text: str, *, seed: int) -> list[str]:
    """The text, cut anywhere."""
    throw = random.Random(seed)
    cuts = sorted(throw.randrange(len(text) + 1) for _ in range(30))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@pytest.mark.parametrize("seed", range(5))
def test_lines_are_told_whole_and_once(seed: int) -> None:
    """On a bottom by lines, on a plain terminal by chunks; an answer that came at once, too."""
    told: list[str] = []
    speech = Speech(told.append, aside=False, chunk=None)
    for piece in pieces(TEXT, seed=seed):
        speech.hear(Text(piece))
    speech.hear(Ended(Answer(text=TEXT)))
    assert "\n".join(told) == TEXT
    assert speech.shown == TEXT

    chunks: list[str] = []
    plain = Speech(told.append, aside=False, chunk=chunks.append)
    told.clear()
    for piece in pieces(TEXT, seed=seed):
        plain.hear(Text(piece))
    plain.hear(Ended(Answer(text=TEXT)))
    assert (told, "".join(chunks)) == ([], TEXT.replace("\x1b", "\\x1b") + "\n")

    speech.hear(Ended(Answer(text="at once")))
    assert told == ["at once"]


def test_where_answers_go_elsewhere_only_what_stands_beside_calls_is_told() -> None:
    told: list[str] = []
    speech = Speech(told.append, aside=True, chunk=None)
    speech.hear(Text("I look"))
    speech.hear(Ended(Answer(text="I look", calls=(CALL,), stop=Stop.CALLS)))
    speech.hear(Text("blue"))
    speech.hear(Ended(Answer(text="blue")))
    assert (told, speech.shown) == (["I look"], None)


def test_what_is_void_is_said_to_be() -> None:
    """W-52, W-54: cut and asked again is said once; a second start in one response as well."""
    told: list[str] = []
    speech = Speech(told.append, aside=False, chunk=None)
    speech.hear(Text("half"))
    speech.hear(Ended(Answer(text="half", stop=Stop.CUT)))
    speech.hear(Again())
    speech.hear(Text("wh"))
    speech.hear(Again())
    speech.hear(Text("whole"))
    speech.hear(Ended(Answer(text="whole", stop=Stop.LENGTH)))
    assert told == [
        "half",
        "(the answer was cut off: what came of it is void, and the model is asked again)",
        "wh",
        "(the answer begins anew: what came of it is void)",
        "whole",
        "(the answer ends here because a bound of its length was reached)",
    ]


def test_a_line_that_never_ends_is_bounded() -> None:
    """1 MB of it: broken, nothing lost, and never more rows than four."""
    told: list[str] = []
    speech = Speech(told.append, aside=False, chunk=None)
    console = Console(width=20)
    for _ in range(10_000):
        speech.hear(Text("y" * 100))
    assert len(list(speech.rows(console))) <= 4
    speech.hear(Ended(Answer(text="y" * 1_000_000)))
    assert "".join(told) == "y" * 1_000_000
    assert max(map(len, told)) <= 4_200


def test_the_bottom_tells_what_the_model_does() -> None:
    speech = Speech(list[str]().append, aside=False, chunk=None)
    console = Console(width=80)
    shown = list[str]()
    for said in (Thought("hm\x1b"), CallBegan(0, "look"), Text("now")):
        speech.hear(said)
        shown += [row.plain for row in speech.rows(console)]
    assert shown == ["the model thinks: hm\\x1b", "the model writes a call of look …", "now"]


@pytest.mark.parametrize(("term", "installed"), [("dumb", True), ("xterm", False)])
def test_without_the_library_or_a_terminal_for_it_lines_are_plain(
    monkeypatch: pytest.MonkeyPatch, term: str, installed: bool
) -> None:
    def find_spec(_: str) -> object:
        return object() if installed else None

    monkeypatch.setattr(run_lines, "is_terminal", lambda: True)
    monkeypatch.setattr(run_lines, "find_spec", find_spec)
    monkeypatch.setenv("TERM", term)
    assert isinstance(lines_of(converses=True, stop=lambda: None), StdinLines)


def test_the_help_text_tells_the_limit_of_the_agent() -> None:
    """It is written twice: the help imports no agent."""
    assert run.ANSWERS == ANSWERS
