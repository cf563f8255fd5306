"""``turnlock explain``: a rule of kernel.md, or a reason for a refusal, with what holds it."""

from __future__ import annotations

import difflib
import re
import shutil
from collections.abc import Iterator
from itertools import groupby
from textwrap import wrap
from typing import Final

import click

from ..models.reasons import Reason
from ..models.safe_text import harmless
from ..verification.rulebook.specification import document, specification

_HELP: Final = """Show what WHAT says, and what holds it.

WHAT is a rule (K-33, or 33), a section of the specification ("section 5"), or the reason of a
refusal (late). Shown are its text, the rows of the tables that enforce it or give it, and, of a
checkout, the tests that name it and the planted bugs that break it. Without WHAT all rules and
reasons are listed.

\b
Exit status:
  0  shown
  2  there is no such rule or reason
"""

_WIDTH: Final = 100
"""Characters of a line, or fewer where the terminal has fewer."""


@click.command("explain", help=_HELP, short_help="Show a rule or a reason, and what holds it.")
@click.argument("what", nargs=-1)
def command(*, what: tuple[str, ...]) -> None:
    """Show one, or list all."""
    told = _explained(" ".join(what)) if what else _listed()
    click.echo("\n".join(told))


def _explained(asked: str) -> Iterator[str]:
    name = _name(asked)
    text = specification()
    if name in {str(reason) for reason in Reason}:
        yield f"{name}, a reason for a refusal"
        yield ""
        yield from _plain(_entries()[name])
        return
    for section in text.sections:
        if name == f"section {section.number}":
            yield f"kernel.md, section {section.number}: {section.title}"
            yield ""
            yield from _plain(section.text)
            return
    for rule in text.rules:
        if name == rule.id:
            yield f"{rule.id} {rule.title}"
            yield f"kernel.md, section {rule.section.number}: {rule.section.title}"
            yield ""
            yield from _plain(rule.text)
            yield from _plain(_entries()[f"{rule.id} {rule.title}"].partition("\n\n")[2])
            return
    raise click.UsageError(_unknown(asked))


def _name(asked: str) -> str:
    """Return the id of what is asked for, as the text writes it, if it is written any known way."""
    words = asked.strip().lower()
    if number := re.fullmatch(r"k?[- ]?(\d+)", words):
        return f"K-{int(number[1])}"
    if number := re.fullmatch(r"(?:section|§)\s*(\d+)", words):
        return f"section {int(number[1])}"
    return re.sub(r"[\s-]+", "_", words)


def _entries() -> dict[str, str]:
    """Return the parts of the generated index, by their headings."""
    _, *parts = re.split(r"^### (.+)\n", document("index.md"), flags=re.MULTILINE)
    bodies = (re.split(r"^## ", body, flags=re.MULTILINE)[0].strip() for body in parts[1::2])
    return dict(zip(parts[::2], bodies, strict=True))


def _plain(text: str) -> Iterator[str]:
    """Yield the lines of a Markdown text for a terminal: wrapped, but for tables and code."""
    width = min(_WIDTH, shutil.get_terminal_size().columns)
    for unit in _units(text):
        if unit.startswith(("|", "```", "{", " ")):
            yield unit
            continue
        bare = re.sub(r"\*\*([^*]+)\*\*|(?<!\w)\*([^*]+)\*", r"\1\2", unit)
        bare = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", bare)
        hang = "  " if bare.startswith("- ") else ""
        yield from wrap(bare, width, subsequent_indent=hang, break_on_hyphens=False) or [""]


def _units(text: str) -> Iterator[str]:
    """Join the lines of each paragraph and each item; tables, code and blank lines stay."""
    unit: list[str] = []
    for line in [*text.splitlines(), ""]:
        if unit and (not line or re.match(r"- |\d+\. |\||```|\{", line)):
            yield " ".join(unit)
            unit = []
        if re.match(r"\||```|\{|$", line):
            yield line
        else:
            unit.append(line.strip())


def _listed() -> Iterator[str]:
    yield "Rules, by section of kernel.md:"
    for section, rules in groupby(specification().rules, key=lambda rule: rule.section):
        yield ""
        yield f"{section.number}. {section.title}"
        yield from (f"  {rule.id:5} {rule.title}" for rule in rules)
    yield ""
    yield "Reasons for a refusal:"
    yield ""
    yield from wrap(" ".join(Reason), _WIDTH, initial_indent="  ", subsequent_indent="  ")


def _unknown(asked: str) -> str:
    names = [*(rule.id for rule in specification().rules), *map(str, Reason)]
    titles = {rule.title: rule.id for rule in specification().rules}
    near = [titles.get(it, it) for it in _near(_name(asked), asked, [*names, *titles])]
    hint = f"did you mean {' or '.join(dict.fromkeys(near))}?" if near else "all are listed by"
    end = "" if near else " turnlock explain"
    return f"there is no rule and no reason {harmless(asked, limit=80)!r}; {hint}{end}"


def _near(name: str, asked: str, names: list[str]) -> list[str]:
    found = difflib.get_close_matches(name, names, n=3) or difflib.get_close_matches(
        asked.lower(), names, n=3
    )
    return found or [it for it in names if name in it][:3]
