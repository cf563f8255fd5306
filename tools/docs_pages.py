"""Pages of the site that stand outside of docs/: a hook of MkDocs, named in mkdocs.yml.

The README is the site's first page, and the changelog, the guide for contributors and the pages of
examples/ are part of it, so that a link to them is checked like any other. On a code host the same
files link to each other by their places in the checkout; here docs/ is the root, so links out of it
and into it are written anew. A link that leads anywhere else is left alone, and fails the build.
So does a public name that has no place on its page of the reference.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).resolve().parents[1]
OUTSIDE: Final = {
    "index.md": "README.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "examples/node-kernel/README.md": "examples/node-kernel/README.md",
    "examples/corpus/SOURCES.md": "examples/corpus/SOURCES.md",
}
"""The place in the site of each page, and its place in the checkout."""
REFERENCE: Final = (
    "turnlock",
    "turnlock.runtime",
    "turnlock.agent",
    "turnlock.toolkits",
    "turnlock.world",
    "turnlock.guards",
    "turnlock.verification",
    "turnlock.diagrams",
)
"""Packages whose public names each have a place in docs/reference."""
_LINK: Final = re.compile(r"(?<=\]\()(?!https?:|#)([^)\s]+)(?=\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that stand elsewhere."""
    for place, source in OUTSIDE.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Write links by their places in the checkout as links by their places in the site."""
    here = page.file.src_uri
    source = Path(OUTSIDE.get(here, f"docs/{here}"))

    def moved(link: re.Match[str]) -> str:
        path, mark, anchor = link[1].partition("#")
        there = (ROOT / source.parent / path).resolve()
        if not there.is_relative_to(ROOT):
            return link[1]
        in_checkout = there.relative_to(ROOT).as_posix()
        by_source = {checkout: site for site, checkout in OUTSIDE.items()}
        in_site = by_source.get(in_checkout, in_checkout.removeprefix("docs/"))
        up = "../" * here.count("/")
        return f"{up}{in_site}{mark}{anchor}"

    return _LINK.sub(moved, markdown)


def on_post_build(config: MkDocsConfig) -> None:
    """Hold the reference to what the packages export: what has no docstring is not on its page."""
    missing: list[str] = []
    for package in REFERENCE:
        page = Path(config.site_dir, "reference", f"{package.rpartition('.')[2]}.html")
        shown = set(re.findall(r'id="([^"]+)"', page.read_text(encoding="utf-8")))
        names: list[str] = import_module(package).__all__
        missing += [f"{package}.{name}" for name in names if f"{package}.{name}" not in shown]
    if missing:
        raise PluginError(
            f"docs/reference lacks {', '.join(missing)}: give each a docstring where it is defined"
        )
