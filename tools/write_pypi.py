"""Write docs/pypi.md, the README as PyPI shows it; with --check, compare instead of writing.

PyPI draws no Mermaid, and a relative link leads nowhere there. So the section with the pictures is
left out, and a link to a file becomes an address if [project.urls] of pyproject.toml has a `Source`
to put before it, else its text with the place of the file in the source distribution.
"""

from __future__ import annotations

import re
import sys
import tomllib
from typing import Final

from generated import ROOT, keep

PAGE: Final = ROOT / "docs" / "pypi.md"
_PICTURES: Final = re.compile(r"^## See it\n.*?(?=^## )", re.DOTALL | re.MULTILINE)
_LINK: Final = re.compile(r"\[([^\]]+)\]\((?!\w+:|#)([^)]+)\)")


def as_shown(readme: str, source: str | None) -> str:
    """Return the README with whole addresses below `source`, or with places where it is None."""
    text, cut = _PICTURES.subn("", readme)
    if cut != 1:
        raise ValueError(
            "README.md has no section 'See it' to leave out: change tools/write_pypi.py"
        )
    if source is not None:
        return _LINK.sub(rf"[\1]({source}/blob/main/\2)", text)
    placed = _LINK.sub(r"\1 (`\2`)", text)
    return f"{placed}\nPlaces in brackets are files of the source distribution.\n"


def main() -> int:
    """Write the page, or compare it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    wanted = as_shown(readme, project.get("urls", {}).get("Source"))
    return keep({PAGE: wanted}, told_by="README.md says")


if __name__ == "__main__":
    sys.exit(main())
