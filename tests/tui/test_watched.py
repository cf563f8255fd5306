"""What a console folds and writes: what is and what was by one fold, texts whole and harmless."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnlock import Claim, Decide, Fact, OpenTurn, Report, Run
from turnlock.lifecycle.phases import Phase
from turnlock.lifecycle.table import INVOCATION
from turnlock.models.safe_text import harmless_lines
from turnlock.models.strict_json import parse
from turnlock.tui.heard import Facts, Gap, Ignored, Live, Off
from turnlock.tui.machine import EDGES, drawn, next_steps, path_of
from turnlock.tui.texts import differing, spelt
from turnlock.tui.watched import Badge, Watched
from turnlock.views.run_view import RunView

from .consoles import RUN, call, deliver, facts, opened

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[Fact]:
    """The facts of a run with one call denied, one approved that ran, one that waits."""
    db = tmp_path_factory.mktemp("told") / "a.db"
    calls = opened(call("a"), call("b"), call("c", gated=False))
    story = (
        calls,
        Decide(turn_id="t1", invocation_id="a", approved=False, decided_by="bert"),
        Decide(turn_id="t1", invocation_id="b", approved=True, decided_by="anna"),
        Claim(turn_id="t1", invocation_id="c", attempt=1),
        Report(turn_id="t1", invocation_id="c", attempt=1, result=1),
        Claim(turn_id="t1", invocation_id="b", attempt=1),
        Report(turn_id="t1", invocation_id="b", attempt=1, error="no"),
        OpenTurn(turn_id="t2", calls=(call("a"),)),
    )
    asyncio.run(deliver(db, *story))
    return asyncio.run(facts(db))


def test_f_98_what_was_is_folded_as_what_is(told: list[Fact], monkeypatch: object) -> None:
    watched = Watched(RUN)
    for cut in (0, 3, 4, 11):  # however they come, and some twice
        watched.hear(Facts(facts=tuple(told[cut : cut + 7]), head=len(told)))
    for it in range(len(told) + 1):
        watched.look_at(it)
        assert watched.shown == RunView.of(Run(run_id=RUN), told[:it])
        assert len(watched.past) == it
    assert watched.moment is None


def test_f_94_the_badge_says_how_what_is_shown_relates_to_what_is(told: list[Fact]) -> None:
    watched = Watched(RUN)
    assert (watched.badge, watched.may_decide) == (Badge.CATCHING_UP, False)
    watched.hear(Facts(facts=tuple(told[:4]), head=len(told)))
    assert watched.told == f"catching up 4 of {len(told)}"
    watched.hear(Live())
    assert (watched.badge, watched.may_decide) == (Badge.LIVE, True)
    watched.look_at(2)
    assert (watched.told, watched.may_decide) == ("replay 2 of 4", False)
    watched.look_at(None)
    watched.hear(Gap("fact 5 is missing"))
    assert (watched.told, watched.may_decide) == ("gap: fact 5 is missing", False)
    watched.hear(Facts(facts=tuple(told[4:]), head=len(told)))
    assert watched.told.startswith("catching up")
    watched.hear(Live())
    watched.hear(Off("gone"))
    assert (watched.told, watched.may_decide) == ("off: gone", False)
    watched.hear(Facts(facts=(told[2],), head=len(told)))
    assert watched.told == "off: gone"  # nothing new was told


def test_f_94_facts_that_cannot_be_are_never_live(told: list[Fact]) -> None:
    watched = Watched(RUN)
    watched.hear(Live())
    watched.hear(Facts(facts=(told[3],), head=4))
    assert (watched.badge, watched.may_decide) == (Badge.OFF, False)


def test_f_92_ignored_deliveries_are_bounded() -> None:
    watched = Watched(RUN)
    for it in range(1_000):
        watched.hear(Ignored(at=float(it), reason="late", what=str(it)))
    assert len(watched.ignored) == 100
    assert watched.ignored[-1].what == "999"


def test_f_92_the_machine_is_drawn_from_the_enforced_table() -> None:
    """Each way of the table joins a track that ends at its target, and no other does."""
    moves = {
        (it.phase, it.target)
        for it in INVOCATION.rows
        if it.fact is not None and it.phase is not it.target
    }
    assert set(EDGES) == moves
    lines = ["".join(text for text, _ in line) for line in drawn(())]
    phases = list(Phase)
    for column, target in enumerate(it for it in phases if it is not Phase.REQUESTED):
        at = len(lines[0]) - 2 * 7 + 2 * column
        ends = lines[2 * phases.index(target)]
        assert ends[at] in "┘┤┐"
        joined = {
            source for source in phases[:5] if lines[2 * phases.index(source) + 1][at] in "┬┐┤┴┘┼"
        }
        assert joined == {source for source, to in moves if to is target}


def test_f_92_the_path_of_a_call_is_lit(told: list[Fact]) -> None:
    view = RunView.of(Run(run_id=RUN), told)
    (first,) = view.recent
    paths = {it.invocation_id: path_of(it, told) for it in first.calls}
    assert paths == {
        "a": (Phase.REQUESTED, Phase.DENIED),
        "b": (Phase.REQUESTED, Phase.APPROVED, Phase.STARTED, Phase.FAILED),
        "c": (Phase.REQUESTED, Phase.STARTED, Phase.SUCCEEDED),
    }
    assert view.turn is not None
    (waits,) = view.turn.calls
    assert path_of(waits, told) == (Phase.REQUESTED,)
    lit = [line[0] for line in drawn(paths["b"]) if "reverse" in line[0][1]]
    assert [text.split()[-1] for text, _ in lit] == ["FAILED"]
    steps = [(str(it), to) for it, to, _ in next_steps(waits.allowed, waits.phase)]
    assert ("approve", Phase.APPROVED) in steps


@given(JSON)
@settings(max_examples=40, deadline=None)
def test_f_91_arguments_are_spelt_whole_and_harmless(value: object) -> None:
    """What is shown is read back as the very value, and moves no cursor."""
    try:
        text = spelt({"value": value})  # type: ignore[dict-item]
    except ValueError:  # a lone surrogate: the kernel takes none
        return
    assert parse(text) == {"value": value}
    assert harmless_lines(text) == text


@given(st.lists(st.sampled_from("abc"), max_size=8), st.lists(st.sampled_from("abc"), max_size=8))
@settings(max_examples=40, deadline=None)
def test_f_93_a_difference_tells_all_that_differs(before: list[str], after: list[str]) -> None:
    found = list(differing("\n".join(before), "\n".join(after)))
    removed = sorted(line for sign, line in found if sign == "-")
    added = sorted(line for sign, line in found if sign == "+")
    old, new = "\n".join(before).split("\n"), "\n".join(after).split("\n")
    assert sorted([*old, *added]) == sorted([*new, *removed])
    assert bool(removed or added) == (old != new)


def test_f_93_a_large_difference_is_quick() -> None:
    before = "\n".join(str(it) for it in range(20_000))
    found = list(differing(before, before.replace("\n10000\n", "\nten thousand\n")))
    assert found == [("-", "10000"), ("+", "ten thousand")]


def test_without_the_extra_the_command_says_what_to_install(tmp_path: Path) -> None:
    """And no other command loads Textual."""
    code = """
import sys
sys.modules["textual"] = None
from turnlock.cli import main, places, runs_at, tui
assert not [it for it in sys.modules if it.startswith(("textual.", "httpx", "starlette"))]
sys.stdin = sys.stdout = type("T", (), {"isatty": lambda _: True, "write": print,
                                        "flush": lambda _: None})()
tui.at_terminal = lambda: True
tui.command.main(["--db", "x.db"])
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert 'pip install "turnlock[tui]"' in ended.stderr
    assert ended.returncode == 2


def test_spelt_is_what_json_is() -> None:
    assert spelt({"a": "\u202e\x1b\x7fü\U000e0100"}) == (
        '{\n  "a": "\\u202e\\u001b\\u007fü\\udb40\\udd00"\n}'
    )
    assert json.loads(spelt({"a": "\U000e0100"})) == {"a": "\U000e0100"}
