"""The pages of guards: their Python stands in the examples, and their commands do what they say."""

from __future__ import annotations

import inspect
import os
import re
import runpy
import shlex
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import pytest
from click.testing import CliRunner

from turnlock.cli.main import main
from turnlock.guards import At, CallContext, Guard, Outcome, Status
from turnlock.models.values import Json

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "guards"
PAGES = sorted((ROOT / "docs").glob("guards*.md"))
DEEP = os.environ.get("TURNLOCK_GUARDS") == "deep"
OFFLINE = re.compile(
    r"(?:[A-Z_]+=\S+ )*"
    r"(?:python examples/guards/|turnlock (?:approve|deny|resolve|show|runs|check)\b)"
)
"""What begins a command that needs no network and ends by itself."""


def blocks(page: Path, language: str) -> list[str]:
    """The blocks of a page that are in a language, dedented."""
    text = page.read_text(encoding="utf-8")
    fenced = re.compile(rf"^( *)```{language}\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
    found: list[tuple[str, str]] = fenced.findall(text)
    return [textwrap.dedent(block) for _, block in found]


def lines_of(text: str) -> list[str]:
    """Its lines without the blank ones, and without what only its place in a file indents."""
    return [line.rstrip() for line in textwrap.dedent(text).splitlines() if line.strip()]


def stands_in(block: str, source: str) -> bool:
    """Whether a block stands in a file, line for line, as deep as it may be there."""
    wanted, there = lines_of(block), [it.rstrip() for it in source.splitlines() if it.strip()]
    for begin in range(len(there) - len(wanted) + 1):
        piece = there[begin : begin + len(wanted)]
        if lines_of("\n".join(piece)) == wanted:
            return True
    return False


def commands(block: str) -> Iterator[tuple[str, list[str]]]:
    """The commands of a console block, each with the lines that it prints."""
    command, said = "", list[str]()
    for line in block.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, said
            command, said = line[2:], []
        else:
            said.append(line)
    if command:
        yield command, said


@pytest.mark.parametrize("page", PAGES, ids=lambda it: it.name)
def test_the_python_of_a_page_is_that_of_an_example(page: Path) -> None:
    sources = [it.read_text(encoding="utf-8") for it in sorted(EXAMPLES.rglob("*.py"))]
    for block in blocks(page, "python"):
        assert any(stands_in(block, it) for it in sources), f"in no file of {EXAMPLES}:\n{block}"


def test_what_is_no_piece_of_a_file_is_seen() -> None:
    """The negative control: a word that differs, a line left out, a line less deep."""
    source = "def f():\n    a = 1\n    if a:\n        b = 2\n"
    assert stands_in("a = 1\nif a:\n    b = 2\n", source)
    for other in ("a = 1\nif a:\n    b = 3\n", "a = 1\n    b = 2\n", "a = 1\nif a:\nb = 2\n"):
        assert not stands_in(other, source)


def test_the_examples_are_held_by_both_type_checkers() -> None:
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    assert "examples/guards" in tools["mypy"]["files"]
    assert "examples/guards" in tools["pyright"]["include"]


@pytest.mark.parametrize(
    "page",
    [it for it in PAGES if it.name not in {"guards.md", "guards-mcp.md"}],
    ids=lambda it: it.name,
)
def test_the_examples_of_a_page_print_what_it_says(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In this process, where the frameworks are imported already; their journals conform.

    Those of MCP start processes: tests/guards/mcp/test_examples.py has some of them.
    """
    monkeypatch.chdir(tmp_path)
    ran = 0
    for command, said in (it for block in blocks(page, "console") for it in commands(block)):
        if not command.startswith("python examples/guards/"):
            continue
        script, *arguments = shlex.split(command)[1:]
        guarded = "turnlock" in (ROOT / script).read_text(encoding="utf-8")
        assert guarded is bool(arguments), "without a guard there is no journal to name"
        monkeypatch.setattr(sys, "argv", [script, *arguments])
        runpy.run_path(str(ROOT / script), run_name="__main__")
        assert capsys.readouterr().out.splitlines() == said, f"$ {command}"
        ran += 1
    assert ran >= 2, "one without a guard, and one with it"
    journals = sorted(tmp_path.glob("*.db"))
    assert journals
    for it in journals:
        checked = CliRunner().invoke(main, ["check", "--db", str(it)])
        assert checked.exit_code == 0, checked.output


def unclaimed(
    _: Guard, at: At, tool: str, arguments: Mapping[str, Json], fn: Any, **__: Any
) -> Any:
    """Run a call as if nothing had been: no claim, no record, no approval."""
    value = fn(CallContext(at=at, tool=tool, arguments=arguments, attempt=1, idempotency_key=""))
    return Outcome(status=Status.SUCCEEDED, value=value, attempt=1)


async def aunclaimed(*given: Any, **options: Any) -> Any:
    """As `unclaimed`."""
    outcome = unclaimed(*given, **options)
    value = await outcome.value if inspect.isawaitable(outcome.value) else outcome.value
    return attrs.evolve(outcome, value=value)


@pytest.mark.parametrize("framework", ["agent_framework", "openai", "pydantic_ai"])
def test_with_the_claim_switched_off_an_example_pays_twice(
    framework: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The negative control of what a page shows, where the framework asks by itself."""
    example = EXAMPLES / f"{framework}_pay.py"
    monkeypatch.setattr(sys, "argv", [str(example), str(tmp_path / "agent.db")])
    monkeypatch.setattr(Guard, "call", unclaimed)
    monkeypatch.setattr(Guard, "acall", aunclaimed)
    with suppress(Exception):  # what is not in doubt cannot be resolved, and is not refused
        runpy.run_path(str(example), run_name="__main__")
    assert "sent twice: paid 2 times" in capsys.readouterr().out


@pytest.mark.parametrize(
    "page", [it for it in PAGES if DEEP or it.name == "guards.md"], ids=lambda it: it.name
)
def test_the_commands_of_a_page_do_what_it_says(page: Path, tmp_path: Path) -> None:
    """In one folder, one after the other; `…` stands for what differs from time to time.

    What needs a network or never ends is not run; other pages than the general one at night.
    """
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "src")}
    ran = 0
    for command, said in (it for block in blocks(page, "console") for it in commands(block)):
        if not OFFLINE.match(command):
            continue
        done = subprocess.run(
            ["/bin/bash", "-c", command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        wanted = ".*".join(map(re.escape, "\n".join(said).split("…")))
        assert re.fullmatch(wanted, done.stdout.strip(), re.DOTALL), (
            f"$ {command}\n{done.stdout}{done.stderr}"
        )
        ran += 1
    if page.name == "guards.md":
        assert ran == 10
        bank = (tmp_path / "bank.txt").read_text(encoding="utf-8").splitlines()
        assert len(bank) == 2, "each journal has paid once"
