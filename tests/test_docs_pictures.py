"""The pictures of the documentation are what would be drawn now, and each is shown somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).resolve().parents[1]
TOOL = ROOT / "tools" / "draw_docs.py"
FOLDER = ROOT / "docs" / "pictures"
README = ROOT / "README.md"
PAGES = (README, *sorted({*(ROOT / "docs").rglob("*.md")} - {ROOT / "docs" / "pypi.md"}))


def draw(*arguments: str, root: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run the tool of a checkout, with the package of this one."""
    command = [sys.executable, str(root / "tools" / TOOL.name), *arguments]
    environment = {"PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_pictures_are_drawn_from_what_is_enforced() -> None:
    """What people see is what the kernel does: a changed table changes its picture."""
    done = draw("--check")

    assert (done.returncode, done.stderr) == (0, "")


def test_what_was_changed_by_hand_is_told_and_drawn_anew(tmp_path: Path) -> None:
    """The negative control: a missing picture, a changed one and a changed block are each named."""
    for name in ("tools", "docs/pictures", "server/machines", "examples/corpus"):
        (tmp_path / name).mkdir(parents=True)
        for file in (ROOT / name).iterdir():
            if file.is_file():
                (tmp_path / name / file.name).write_bytes(file.read_bytes())
    for name in ("README.md", "docs/diagrams.md"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    turn = tmp_path / "docs" / "pictures" / "turn.svg"
    turn.write_text(turn.read_text(encoding="utf-8").replace("OPEN", "SHUT"), encoding="utf-8")
    (tmp_path / "docs" / "pictures" / "life.svg").unlink()
    readme = tmp_path / "README.md"
    readme.write_text(
        readme.read_text(encoding="utf-8").replace("stateDiagram-v2", "stateDiagram"),
        encoding="utf-8",
    )

    told = draw("--check", root=tmp_path)

    assert told.returncode == 1
    assert [line.split()[0] for line in told.stderr.splitlines()] == [
        "docs/pictures/turn.svg",
        "docs/pictures/life.svg",
        "README.md",
    ]
    assert draw(root=tmp_path).returncode == 0
    for name in ("docs/pictures/turn.svg", "docs/pictures/life.svg", "README.md"):
        assert (tmp_path / name).read_bytes() == (ROOT / name).read_bytes()


def links(page: Path) -> list[str]:
    """Where a page leads: addresses without their fragments."""
    return re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))


def test_every_picture_is_shown_and_every_link_leads_somewhere() -> None:
    shown: set[Path] = set()
    for page in PAGES:
        for link in links(page):
            if "://" not in link:
                target = (page.parent / link).resolve()
                assert target.exists(), f"{page.name}: {link}"
                shown.add(target)
    assert {path for path in FOLDER.iterdir() if path.suffix == ".svg"} <= shown


@pytest.mark.parametrize("picture", sorted(FOLDER.glob("*.svg")), ids=lambda path: path.stem)
def test_every_picture_can_be_read_aloud_and_needs_nothing_else(picture: Path) -> None:
    """A title and a description for those who do not see it; no script, no address, no image."""
    text = picture.read_text(encoding="utf-8")
    root = ET.fromstring(text)  # noqa: S314 - our own file
    space = "{http://www.w3.org/2000/svg}"

    assert (root.findtext(f"{space}title") or "").strip()
    assert len((root.findtext(f"{space}desc") or "").split()) > 5
    assert {element.tag for element in root.iter()}.isdisjoint({f"{space}script", f"{space}image"})
    assert text.replace('xmlns="http://www.w3.org/2000/svg"', "").count("://") == 0


def test_the_python_of_the_page_runs(tmp_path: Path) -> None:
    """Each block by itself, as its reader would type it."""
    blocks = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "diagrams.md").read_text("utf-8"), re.DOTALL
    )

    assert len(blocks) == 2
    for block in blocks:
        done = subprocess.run(
            [sys.executable, "-c", block],
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
    assert {path.name for path in tmp_path.iterdir()} == {"run.html", "pay.svg"}
