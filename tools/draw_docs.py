"""Draw the pictures of the documentation anew; with --check, compare instead of drawing.

Every picture is what a command prints that the reader can type at the root of a checkout: the files
of docs/pictures and server/machines as `PICTURES` and `SHIPPED` say, and blocks in Markdown between
two lines such as

    <!-- turnlock diagram turn --format mmd -->
    <!-- end -->

Graphviz as WebAssembly lays the machines out, so that it makes no difference what is installed
where they are drawn.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path
from typing import Final

from click.testing import CliRunner

from turnlock.cli.main import main as turnlock

ROOT: Final = Path(__file__).resolve().parents[1]
PAGES: Final = ("README.md", "docs/diagrams.md")
CORPUS: Final = "examples/corpus/turns.jsonl"
HOSTILE: Final = f"{CORPUS} --run complex_agent_run --hostile 1 --decisions random --seed 7"

PICTURES: Final = {
    "invocation.svg": "invocation --engine wasi",
    "turn.svg": "turn --engine wasi",
    "status.svg": "status --engine wasi",
    "hostile-run.svg": f"run {HOSTILE} --view timeline",
    "sequence.svg": f"run {HOSTILE} --view sequence --turn 0",
    "life.svg": f"run {HOSTILE} --turn 0 --invocation call_q2 --engine wasi",
    "coverage.svg": f"coverage {CORPUS} --hostile 5 --decisions random --seed 7 --engine wasi",
    "counterexample.svg": "run docs/pictures/wrong-kernel.json",
}
"""The command, after `turnlock diagram`, that draws each file of docs/pictures."""
SHIPPED: Final = {
    f"{machine}.{theme}.svg": f"{machine} --engine wasi --theme {theme}"
    for machine in ("invocation", "turn", "status")
    for theme in ("light", "dark")
}
"""The same for server/machines: what a server shows without drawing it."""

_BLOCK: Final = re.compile(
    r"(<!-- turnlock diagram ([^\n]+) -->\n).*?(<!-- end -->\n)",
    re.DOTALL,
)


def main() -> int:
    """Draw everything, or name what is not what would be drawn."""
    os.chdir(ROOT)
    wanted = {
        f"docs/pictures/{name}": diagram(f"{command} --format svg")
        for name, command in PICTURES.items()
    }
    wanted |= {
        f"server/machines/{name}": diagram(f"{command} --format svg")
        for name, command in SHIPPED.items()
    }
    wanted |= {name: filled(Path(name).read_text(encoding="utf-8")) for name in PAGES}
    differ = [name for name, text in wanted.items() if not holds(Path(name), text)]
    for name in differ:
        if "--check" in sys.argv[1:]:
            sys.stderr.write(f"{name} is not what would be drawn; run: make diagrams\n")
        else:
            Path(name).write_text(wanted[name], encoding="utf-8")
            print(name)
    return int("--check" in sys.argv[1:] and bool(differ))


def holds(path: Path, text: str) -> bool:
    """Whether the file is what it should be."""
    return path.is_file() and path.read_text(encoding="utf-8") == text


def filled(page: str) -> str:
    """Return a page with its blocks drawn anew."""
    return _BLOCK.sub(lambda found: f"{found[1]}{block(found[2])}{found[3]}", page)


def block(command: str) -> str:
    """Return what a command prints as a fenced block, which code hosts show as a picture."""
    language = "mermaid" if command.endswith("--format mmd") else "text"
    return f"```{language}\n{diagram(command)}```\n"


def diagram(command: str) -> str:
    """Return what `turnlock diagram` prints for these arguments."""
    done = CliRunner().invoke(turnlock, ["diagram", *shlex.split(command)])
    if done.exit_code != 0:
        raise SystemExit(f"turnlock diagram {command}\n{done.output}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
