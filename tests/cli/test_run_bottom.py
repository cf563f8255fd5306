"""A real terminal: what is typed stays below what happens, and what happens is seen as it does."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

from turnlock import FactType
from turnlock.cli.run_bottom import is_gone

from .recordings import turnlock
from .sessions import Session, happens, on_terminal, played, types_of

TALKING = str(Path(__file__).with_name("talking.py"))
CTRL_C, END_OF_INPUT = "\x03", "\x04"


def talking(folder: Path, *arguments: str, **how: Any) -> Session:
    return on_terminal("a.db", *arguments, cwd=folder, program=(TALKING, "talk"), **how)


def test_what_is_typed_while_the_model_speaks_stays_whole_below_it(tmp_path: Path) -> None:
    """Text comes while it is said; a line that is typed ahead is the next prompt."""
    session = talking(tmp_path)
    session.stands("you:")
    session.type("words")
    session.says("word word word")
    session.type("and then", end="")
    session.until(
        lambda: (
            session.display()[-1] == "you: and then"
            and session.display()[-2].startswith("word word")
        ),
        "the draft below the text",
    )
    session.type(" more")
    session.until(lambda: session.display()[-2:] == ["next: and then more", "you:"], "it waits")
    session.stands("you: and then more", "you said and then more, and that is", "all", "you:")
    session.type("", end=END_OF_INPUT)

    assert session.ends() == 0
    text = "\n".join(session.display())
    assert text.count("and then more") == 2
    assert text.count("you: words") == 1
    said = re.findall(r"word", text[: text.index("you: and then more")])
    assert len(said) == 41  # each of them once, and the prompt


def test_an_answer_typed_while_tools_print_is_swallowed_by_no_line(tmp_path: Path) -> None:
    """Text beside calls is shown; the draft of a prompt comes back after the question."""
    session = talking(tmp_path, TERM="xterm-256color")
    session.type("pay")
    session.type("my dra", end="")
    session.says("wants to run")
    session.type("d not ", end="")
    session.until(
        lambda: (
            session.display().count("still looking") >= 3
            and session.display()[-1] == "answer: d not"
        ),
        "the answer below what the tool prints",
    )
    session.type("today")
    session.says("not today (by")
    session.stands("all", "you: my dra")
    session.type("ft")
    session.stands("you: my draft", "you said my draft, and that is", "all", "you:")
    session.type("", end=END_OF_INPUT)

    assert session.ends() == 0
    lines = session.display()
    assert "I will pay now." in lines
    assert "One moment please" in lines


def test_ctrl_c_stops_the_model_once_and_leaves_twice(tmp_path: Path) -> None:
    """Said in words; and the terminal is then as it was."""
    session = talking(tmp_path)
    before = termios.tcgetattr(session.keyboard)[3]
    session.type("words")
    session.says("word word")
    assert not termios.tcgetattr(session.keyboard)[3] & termios.ICANON
    session.type("never said")
    session.says("next: never said")
    os.write(session.keyboard, CTRL_C.encode())
    session.says("stopping this turn; Ctrl-C again leaves; 1 typed ahead will not be said")
    session.stands("(stopped; the model is told with the next prompt)", "you:")
    session.type("pay")
    session.says("wants to run")
    os.write(session.keyboard, CTRL_C.encode())
    session.stands("(stopped; the model is told with the next prompt)", "you:")
    session.process.send_signal(signal.SIGINT)

    assert session.process.wait(20) == 1
    assert termios.tcgetattr(session.keyboard)[3] == before
    assert session.display()[-1] == "left; the same command goes on"
    assert types_of(tmp_path / "a.db")[-1] is FactType.TURN_INTERRUPTED
    session.ends()


def test_resumed_after_a_kill_it_shows_the_end_and_what_waits(tmp_path: Path) -> None:
    """The last prompt, the last answer, the call; its arguments whole before they are approved."""
    first = talking(tmp_path, "pay long")
    first.says("wants to run")
    happens(tmp_path / "a.db", FactType.TOOL_EXECUTION_SUCCEEDED)
    os.kill(first.process.pid, signal.SIGKILL)
    first.ends()

    session = talking(tmp_path, "pay long")
    session.says("characters more")
    session.says("answer:")
    lines = session.display()
    start = lines.index("going on with run agent")
    assert lines[start + 1 : start + 4] == [
        "  you: pay long",
        "  model: I will pay now.",
        "         One moment please",
    ]
    assert lines[start + 4].startswith("  pay asks for approval ")
    assert any(re.fullmatch(r"… [\d,]+ characters more", line) for line in lines)
    session.type("a")
    session.says("not all of the arguments were shown")
    assert FactType.TOOL_APPROVED not in types_of(tmp_path / "a.db")
    session.type("w")
    session.until(lambda: session.shown.count(b"x" * 100) > 40, "the arguments whole")
    session.type("a")
    session.says("you said done, and that is")

    assert session.ends() == 0
    assert turnlock("check", "--db", str(tmp_path / "a.db")).exit_code == 0


def test_a_terminal_of_20_columns_gets_garbage_and_keeps_its_prompt(tmp_path: Path) -> None:
    """Control characters do nothing there, and a paste of many lines is one prompt."""
    session = talking(tmp_path, columns=20)
    session.stands("you:")
    paste = "one\ntwo \x1b]0;title\x07 \x1b[2J\x00 \u202ethree " + "long " * 30
    session.type(f"\x1b[200~{paste}\x1b[201~")
    session.says("all")
    session.stands("all", "you:")
    session.type("", end=END_OF_INPUT)

    assert session.ends() == 0
    assert b"]0;title" not in session.shown.replace(b"\\x1b]0;title", b"")
    assert max(map(len, session.display())) <= 20


def test_a_line_that_is_too_long_is_not_sent(tmp_path: Path) -> None:
    """1 MB and more of it: refused in words, and the session goes on."""
    session = talking(tmp_path)
    session.stands("you:")
    data = f"\x1b[200~{'y' * 1_000_001}\x1b[201~\n".encode()
    while data:
        data = data[os.write(session.keyboard, data) :]
    session.says("a line has at most 1,000,000 characters; this one was not sent")
    os.write(session.keyboard, CTRL_C.encode())
    session.type("hello")
    session.stands("you said hello, and that is", "all", "you:")
    session.type("", end=END_OF_INPUT)
    assert session.ends() == 0


def test_a_failure_is_told_and_a_cut_is_asked_again_in_words(tmp_path: Path) -> None:
    """The person has the word: return asks the model again. At the end of input it is left."""
    session = talking(tmp_path, NO_COLOR="1")
    session.type("cut")
    session.says("(the answer was cut off: what came of it is void, and the model is asked again)")
    session.stands("you said cut, and that is", "all", "you:")
    session.type("fail")
    session.says("the model cannot be reached; see to the network")
    session.says("press return to have the model asked again")
    session.type("")
    session.until(lambda: session.shown.count(b"cannot be reached") == 2, "asked again")
    session.stands("(say something else, or press return to have the model asked again)", "you:")
    session.type("", end=END_OF_INPUT)

    assert session.ends() == 0
    assert not re.search(rb"\x1b\[[\d;]*3[1-7]", session.shown)  # no colours


def test_the_end_of_input_in_a_question_leaves_it_open(tmp_path: Path) -> None:
    session = talking(tmp_path, "pay")
    session.says("answer:")
    os.write(session.keyboard, END_OF_INPUT.encode())
    assert session.ends() == 3
    session.says("left as it is: 1 call waits")


def test_a_terminal_that_goes_away_leaves_nobody_behind(tmp_path: Path) -> None:
    """No hang, though somebody was asked there; what waits is kept."""
    keyboard, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, TALKING, "talk", "a.db", "pay"],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        cwd=tmp_path,
        env={**os.environ, "TERM": "xterm"},
        start_new_session=True,
    )
    os.close(terminal)
    happens(tmp_path / "a.db", FactType.TOOL_APPROVAL_REQUESTED)
    os.close(keyboard)
    try:
        assert process.wait(20) != 0
    finally:
        process.kill()
        process.wait()


def test_a_terminal_is_gone_once_nobody_is_behind_it() -> None:
    """Its error is looked for: a session that nothing is written in would never meet it."""
    keyboard, terminal = pty.openpty()

    assert not is_gone(terminal)

    os.close(keyboard)

    assert is_gone(terminal)
    os.close(terminal)


def test_a_dumb_terminal_is_spoken_to_line_by_line(tmp_path: Path) -> None:
    """No escape at all; a prompt that a line came over is written again."""
    session = talking(tmp_path, TERM="dumb")
    session.says("you: ")
    session.type("pay")
    session.says("answer: ")
    session.says('succeeded: "blue"\r\nanswer: ')
    session.type("a")
    session.says("all\r\nyou: ")
    session.type("", end=END_OF_INPUT)

    assert session.ends() == 0
    assert b"\x1b" not in session.shown


def piped(folder: Path, text: bytes) -> tuple[str, str]:
    """What standard output and standard error get of a conversation whose prompts are piped."""
    done = subprocess.run(
        [sys.executable, TALKING, "talk", "memory:"],
        input=text,
        capture_output=True,
        cwd=folder,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        timeout=20,
        check=True,
    )
    return done.stdout.decode(), done.stderr.decode()


def test_a_pipe_gets_exactly_the_answers_and_text_beside_calls_is_not_lost(tmp_path: Path) -> None:
    """W-52: whatever was void, or stood beside calls, is on standard error alone."""
    answers, told = piped(tmp_path, b"pay\na\ncut\n")

    assert answers == "you said done, and that is\nall\nyou said cut, and that is\nall\n"
    assert "I will pay now.\nOne moment please\n" in told
    assert "cut off" in told
    assert "half a sen" not in told
    assert "nothing of this is kept: --db JOURNAL keeps it" in told


def test_a_pipe_may_hold_anything(tmp_path: Path) -> None:
    """Control characters, 1 MB on a line, and bytes that are no text."""
    answers, told = piped(
        tmp_path, "hello\x1b[2J\x00\u202e\n".encode() + b"y" * 1_000_000 + b"\n\xff\xfe\nmore\n"
    )

    assert answers.count("and that is\nall\n") == 4
    assert r"you said \xff\xfe, and" in answers
    assert answers.startswith(r"you said hello\x1b[2J\x00\u202e, and")
    assert len(answers) > 1_000_000
    assert "\x1b" not in answers + told
    assert "Traceback" not in told


def test_the_example_is_shipped(tmp_path: Path) -> None:
    """docs/first-agent.md without any file: `--tools example` pays a bill."""
    left = played("--tools", "example", "--db", str(tmp_path / "a.db"))
    assert left.returncode == 3
    assert "pay call_1 wants to run" in left.stderr


def test_bytes_that_are_no_text_end_nothing(tmp_path: Path) -> None:
    """They are escapes, as through a pipe."""
    session = talking(tmp_path)
    session.stands("you:")
    os.write(session.keyboard, b"\xc3(ab\r")
    session.stands("you: \\xc3(ab", "you said \\xc3(ab, and that is", "all", "you:")
    session.type("", end=END_OF_INPUT)
    assert session.ends() == 0


def test_a_doubt_that_is_left_names_resolve_and_drops_no_prompt_silently(tmp_path: Path) -> None:
    """The prompt says that it was not said; return asks again."""
    first = talking(tmp_path, "pay")
    first.says("wants to run")
    happens(tmp_path / "a.db", FactType.TOOL_EXECUTION_SUCCEEDED)
    first.type("a")
    first.until(lambda: any("pay c1 started" in it for it in first.display()), "pay starts")
    os.kill(first.process.pid, signal.SIGKILL)
    first.ends()

    session = talking(tmp_path)
    session.says("leave it in doubt")
    session.type("l")
    session.says("decide with turnlock resolve, or start")
    session.stands("you:")
    session.type("hello there")
    session.until(lambda: session.display()[-1] == "answer:", "it is asked again")
    session.type("l")
    session.says("not said: hello there")
    session.stands("you:")
    session.type("")
    session.until(lambda: session.display()[-1] == "answer:", "it is asked again")
    session.type("f the bank says so")
    session.stands("you said done, and that is", "all", "you:")
    session.type("", end=END_OF_INPUT)
    assert session.ends() == 0


def test_leaving_is_one_line_and_the_log_repeats_nothing(tmp_path: Path) -> None:
    """It says what ran; what the screen says of a doubt stands there once."""
    session = talking(tmp_path, "slow")
    session.until(lambda: any("linger c1 started" in it for it in session.display()), "it runs")
    os.write(session.keyboard, CTRL_C.encode())
    session.says("stopping this turn; Ctrl-C again leaves")
    os.write(session.keyboard, CTRL_C.encode())
    assert session.process.wait(20) == 1
    left = "left while this ran: linger c1; the same command goes on, and finds it in doubt"
    session.says(left)
    lines = session.display()
    assert lines[-1] == left
    assert not any("not stopped" in it or "was let go" in it for it in lines)
    session.ends()

    again = talking(tmp_path, "slow", columns=60)
    again.says("whether it happened is not known")
    again.says("(stopped; the model is told with the next prompt)")
    assert again.ends() == 4
    assert not any("find out, and say so" in it for it in again.display())


def test_a_selection_does_not_make_the_prompt_deaf(tmp_path: Path) -> None:
    """Ctrl-Space and shifted arrows select nothing."""
    session = talking(tmp_path)
    session.stands("you:")
    session.type("hell", end="\x00")
    session.type("o", end="\x1b[1;2D")
    session.type("", end="\x1b[C")
    session.type(" there")
    session.stands("you: hello there", "you said hello there, and that is", "all", "you:")
    session.type("", end=END_OF_INPUT)
    assert session.ends() == 0
