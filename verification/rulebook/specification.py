"""The specification as data: the rules and sections of kernel.md, read from the text itself.

The text ships with the package, as `turnlock/docs/spec`, so that whoever installed a wheel can be
shown the rule that an answer names. In the text a rule is a list item of this form, and ends where
its item ends:

    - **K-33** *claim before start* – claim is the only way to STARTED: …
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Final

import attrs

from ..errors import HarnessFailed

_PACKAGE: Final = __name__.removesuffix(".verification.rulebook.specification")
_SECTION: Final = re.compile(r"## (?P<number>\d+)\. (?P<title>.+)")
_RULE: Final = re.compile(r"- \*\*(?P<id>K-\d+)\*\* \*(?P<title>[^*]+)\* – (?P<text>.+)")
_FIRST_SENTENCE: Final = re.compile(r".+?[.](?=\s|$)", re.DOTALL)


@attrs.frozen(kw_only=True)
class Section:
    """A numbered section: its heading, and all of its text, the rules in it too (Markdown)."""

    number: int
    title: str
    text: str


@attrs.frozen(kw_only=True)
class Stated:
    """A rule as the text states it: `id` such as ``K-33``, and its words without line breaks."""

    id: str
    title: str
    text: str
    section: Section

    @property
    def number(self) -> int:
        """What counts the rules: 33 of ``K-33``."""
        return int(self.id.removeprefix("K-"))

    @property
    def sentence(self) -> str:
        """The first sentence, which says the rule in short."""
        found = _FIRST_SENTENCE.match(self.text)
        return found.group() if found else self.text


@attrs.frozen(kw_only=True)
class Specification:
    """kernel.md, taken apart: both in the order of the text."""

    sections: tuple[Section, ...]
    rules: tuple[Stated, ...]


def document(name: str) -> str:
    """Return a file of docs/spec, such as ``kernel.md``.

    Raises `HarnessFailed` where the package was installed without it.
    """
    place = files(_PACKAGE) / "docs" / "spec" / name
    try:
        return place.read_text(encoding="utf-8")
    except OSError as error:
        raise HarnessFailed(
            f"the specification is not there: {place} ({error.strerror}); install turnlock again"
        ) from error


@cache
def specification() -> Specification:
    """Return kernel.md as this version of the package has it; read once."""
    return parsed(document("kernel.md"))


def parsed(text: str) -> Specification:
    """Take a text in the form of kernel.md apart.

    Raises `ValueError`, naming the line, for a rule that is stated twice, stands before the first
    section, or starts with its number but not in the form above.
    """
    sections = tuple(_sections(text))
    rules = tuple(rule for section in sections for rule in _rules(section))
    seen: set[str] = set()
    for rule in rules:
        if rule.id in seen:
            raise ValueError(f"{rule.id} is stated twice; give the second a number of its own")
        seen.add(rule.id)
    for number, line in enumerate(text.splitlines(), start=1):
        begun = re.match(r"[-*\s]*\*\*(K-\d+)", line)
        if begun and begun.group(1) not in seen:
            raise ValueError(
                f"line {number}: {begun.group(1)} is not in the form of a rule, inside of a "
                "section; write '- **K-1** *title* – text'"
            )
    return Specification(sections=sections, rules=rules)


def _sections(text: str) -> Iterator[Section]:
    found: re.Match[str] | None = None
    lines: list[str] = []
    for line in [*text.splitlines(), "## 0. end"]:
        heading = _SECTION.fullmatch(line)
        if heading is None:
            lines.append(line)
            continue
        if found is not None:
            body = "\n".join(lines).strip()
            yield Section(number=int(found["number"]), title=found["title"], text=body)
        found, lines = heading, []


def _rules(section: Section) -> Iterator[Stated]:
    found: re.Match[str] | None = None
    words: list[str] = []
    for line in [*section.text.splitlines(), ""]:
        if found is not None and line.startswith("  "):
            words.append(line.strip())
            continue
        if found is not None:
            told = " ".join([found["text"], *words])
            yield Stated(id=found["id"], title=found["title"], text=told, section=section)
        found, words = _RULE.fullmatch(line), []
