"""The agents of a Python file, as `turnlock serve --agent FILE[:NAME]` takes them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from turnlock.adapters.agents_file import load_agents
from turnlock.models.errors import InvalidValue

TWO = """
from turnlock.agent import Agent, ScriptedModel, Script
from beside import NAME
model = ScriptedModel(Script(name=NAME, turns=()))
first = Agent(model=model)
second = Agent(model=model, instructions="Be brief.")
_hidden = Agent(model=model)
other = 7
"""


def written(folder: Path, text: str = TWO, name: str = "agents.py") -> str:
    """Write a file of agents, and what it imports from beside it."""
    (folder / "beside.py").write_text("NAME = 'x'\n")
    (folder / name).write_text(text)
    return str(folder / name)


def test_s_51_the_agents_are_those_of_the_variables_in_their_order(tmp_path: Path) -> None:
    """All that are public, or the one that is named; what stands beside is imported as usual."""
    place, path = written(tmp_path), [*sys.path]
    assert list(load_agents(place)) == ["first", "second"]
    assert list(load_agents(f"{place}:second")) == ["second"]
    assert sys.path == path
    sys.modules.pop("beside", None)


def test_a_file_whose_name_has_a_colon_is_a_file(tmp_path: Path) -> None:
    """The whole text is a file, if there is one."""
    assert list(load_agents(written(tmp_path, name="a:b.py"))) == ["first", "second"]
    sys.modules.pop("beside", None)


@pytest.mark.parametrize(
    ("text", "place", "cause"),
    [
        ("x = 1", "", "has no agent"),
        (TWO, ":third", "has no agent 'third'"),
        (TWO, ":other", "has no agent 'other'"),
        ("x = 1\n1/0", "", r"agents\.py', line 2: raised .*ZeroDivisionError: division by zero"),
        ("raise ValueError('\\x1b[31m')", "", "raised while it was imported"),
        ("\ndef (", "", r"line 2: .*SyntaxError"),
        ("raise SystemExit(3)", "", "line 1: has ended the process"),
        ("import nothing_of_this_name", "", "ModuleNotFoundError"),
    ],
)
def test_what_is_no_file_of_agents_says_why(
    tmp_path: Path, text: str, place: str, cause: str
) -> None:
    """Cause, place and fix; nothing of it is left in the interpreter, or raw in the message."""
    modules = {*sys.modules}
    file = written(tmp_path, text)
    with pytest.raises(InvalidValue, match=cause) as told:
        load_agents(f"{file}{place}")
    assert "\x1b" not in str(told.value)
    assert "agents.py" in str(told.value)
    sys.modules.pop("beside", None)
    if place == "" and text != "x = 1":
        assert not {name for name in {*sys.modules} - modules if name.startswith("turnlock_agents")}


def test_what_is_not_there_or_no_python_is_said(tmp_path: Path) -> None:
    """No file, a folder, another kind of file."""
    (tmp_path / "agents.txt").write_text("")
    for place in ("none.py", "", "agents.txt"):
        with pytest.raises(InvalidValue, match="is no"):
            load_agents(str(tmp_path / place))
