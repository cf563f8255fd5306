"""What the pages about agents show runs as it stands, against an endpoint on loopback."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from threading import Thread

import pytest

from turnlock.agent.providers import MODELS

ROOT = Path(__file__).resolve().parents[2]
FIRST = ROOT / "examples" / "first-agent"


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def shown(name: str) -> list[str]:
    """The Python of a page, block by block."""
    return re.findall(r"^```python\n(.*?)^```", page(name), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    """What a program needs to speak to the endpoint of the comparison."""
    spec = spec_from_file_location("endpoint", ROOT / "examples/compare-agents/endpoint.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    with module.endpoint() as server:
        serving = Thread(target=server.serve_forever)
        serving.start()
        yield {
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            "OPENAI_BASE_URL": f"http://127.0.0.1:{server.server_port}/v1",
            "OPENAI_API_KEY": "none",
        }
        server.shutdown()
        serving.join()


def ran(*command: str, cwd: Path, environment: dict[str, str], typed: str = "") -> str:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        env=environment,
        input=typed,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_page_of_models_runs(tmp_path: Path, environment: dict[str, str]) -> None:
    """W-50, W-59: in one process, each block a program; what it prints says that it worked."""
    blocks = shown("models.md")
    program = "\n".join(f"exec(compile({block!r}, 'models.md', 'exec'), {{}})" for block in blocks)

    printed = ran("-c", program, cwd=tmp_path, environment=environment)

    assert printed.splitlines() == [
        "It rains in Oslo.openai:qwen3",
        "Oslo True",
        "You said: hello",
    ]


def test_the_page_of_models_names_every_provider() -> None:
    """W-50: those of the table are those that `open_model` knows."""
    rows = re.findall(r"^\| `([\w-]+):NAME` \|", page("models.md"), re.MULTILINE)

    assert rows == [*MODELS]


def test_the_readme_shows_the_agent_of_the_page_in_few_lines() -> None:
    """At most 22 lines of a user's code; the files are those that the page shows."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    programs = re.findall(r"^```python\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    (program,) = (text for text in programs if "approve=ask" in text)
    lines = [line for line in program.splitlines() if line.strip()]

    assert len(lines) <= 22
    compile(program, "README.md", "exec")


def test_the_first_agent_is_the_program_of_its_page(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """Asked once, paid once, and said; the bank's ten seconds are left out."""
    source = (FIRST / "agent.py").read_text(encoding="utf-8")
    assert source in shown("first-agent.md")
    assert "pay {'to': 'Ada', 'amount': 5}? y" in page("first-agent.md")
    shutil.copytree(FIRST, tmp_path, dirs_exist_ok=True)
    tools = (tmp_path / "tools.py").read_text(encoding="utf-8")
    (tmp_path / "tools.py").write_text(tools.replace("time.sleep(10)", "time.sleep(0)"), "utf-8")

    printed = ran("agent.py", cwd=tmp_path, environment=environment, typed="y\n")

    question = "pay {'to': 'Ada', 'amount': 5}? "
    assert printed == f"{question}It rains in Oslo, and Ada has her 5 euros.\n"
    assert (tmp_path / "ledger.txt").read_text(encoding="utf-8") == "5 to Ada\n"
