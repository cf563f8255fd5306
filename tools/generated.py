"""Generated pages: written, or with --check compared with what would be written."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]


def keep(pages: Mapping[Path, str], *, told_by: str) -> int:
    """Write the pages; with --check among the arguments name those that differ, and return 1.

    `told_by` completes the sentence "it is not what …", as in ``the tables say``.
    """
    stale = {page: text for page, text in pages.items() if not _is(page, text)}
    if "--check" not in sys.argv[1:]:
        for page, text in stale.items():
            page.write_text(text, encoding="utf-8")
        return 0
    for page in stale:
        place = page.relative_to(ROOT).as_posix()
        sys.stderr.write(f"{place} is not what {told_by}; run: make tables\n")
    return 1 if stale else 0


def _is(page: Path, text: str) -> bool:
    return page.exists() and page.read_text(encoding="utf-8") == text
