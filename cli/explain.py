"""``turnlock explain``: a rule of docs/spec, a reason for a refusal, or the code of an answer.

With a rule of kernel.md and with a reason stands what holds it; the rules of the other texts are
shown as they are written.
"""

from __future__ import annotations

import difflib
import re
import shutil
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import groupby
from textwrap import wrap
from typing import Final

import attrs
import click

from ..models.reasons import Reason
from ..models.safe_text import harmless
from ..verification.rulebook.specification import document, specification

_HELP: Final = """Show what WHAT says, and what holds it.

WHAT is a rule (K-33, or 33), a section of the specification ("section 5"), or the reason of a
refusal (late). Shown are its text, the rows of the tables that enforce it or give it, and, of a
checkout, the tests that name it and the planted bugs that break it. WHAT may be a rule of the
other texts, too (D-13, F-6, G-4, S-10, W-10), or the code of an answer (unknown_run): these are
shown as they are written. Without WHAT all are listed.

\b
Exit status:
  0  shown
  2  there is no such rule, reason or code
"""

_WIDTH: Final = 100
"""Characters of a line, or fewer where the terminal has fewer."""

_TEXTS: Final = {
    "D": "distributed.md",
    "F": "face.md",
    "G": "guards.md",
    "S": "server.md",
    "W": "world.md",
}
"""The other texts of docs/spec, by the letter of their rules."""

_CODES: Final = ("face.md, section 9: Errors", "S-84")
"""Where the codes of answers are listed: a section, and a rule of the server's text."""


@attrs.frozen
class _Passage:
    """A rule of another text, or (without an id) a paragraph: where it stands, and its Markdown."""

    id: str
    place: str
    text: str


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
    for passage in _passages():
        if passage.id and name == passage.id:
            yield from (passage.id, passage.place, "", *_plain(passage.text))
            return
    if name in _codes():
        yield from _code(name)
        return
    raise click.UsageError(_unknown(asked))


def _code(name: str) -> Iterator[str]:
    named = [it for it in _passages() if f"`{name}`" in it.text]
    listed = next(it for it in named if it.id in _CODES or it.place in _CODES)
    yield f"{name}, a code of an answer or of an error"
    yield " of ".join(filter(None, (listed.id, listed.place)))
    yield ""
    cells = [cell.strip() for cell in listed.text.strip("|").split("|")]
    yield from _plain(": ".join(cells))
    if others := [it.id for it in named if it.id and it is not listed]:
        yield f"Named by {', '.join(others)}"


def _name(asked: str) -> str:
    """Return the id of what is asked for, as the text writes it, if it is written any known way."""
    words = asked.strip().lower()
    if number := re.fullmatch(r"k?[- ]?(\d{1,4})", words):
        return f"K-{int(number[1])}"
    if number := re.fullmatch(r"(?:section|§)\s*(\d{1,4})", words):
        return f"section {int(number[1])}"
    if elsewhere := re.fullmatch(r"([dfgsw])[- ]?(\d{1,4})([a-z]?)", words):
        return f"{elsewhere[1].upper()}-{int(elsewhere[2])}{elsewhere[3]}"
    return re.sub(r"[\s-]+", "_", words)


@cache
def _passages() -> tuple[_Passage, ...]:
    """Return all rules of the other texts, and the lines of their sections that are no rule's."""
    return tuple(it for name in _TEXTS.values() for it in _passages_of(name))


def _passages_of(name: str) -> Iterator[_Passage]:
    """Yield the passages of one text: a rule is a list item, stands behind one, or is a row.

    Whatever else stands in a section is a passage without an id: a row, or a whole paragraph.
    """
    text = re.sub(r"(?<=\. )(?=\*\*[A-Z]-\d)", "\n- ", document(name))
    place, head, before = name, "", ""
    for unit in _units(text):
        head, before = head if before.startswith("|") else unit, unit
        if heading := re.match(r"## (\d+)\. (.+)", unit):
            place = f"{name}, section {heading[1]}: {heading[2]}"
        elif rule := re.match(r"(?:- |\| )\**([DFGSW]-\d+[a-z]?)\b\**\s", unit):
            told = f"{head}\n{unit}" if unit.startswith("|") else unit[rule.end() :]
            yield _Passage(rule[1], place, told)
        else:
            yield _Passage("", place, unit)


@cache
def _codes() -> tuple[str, ...]:
    """Return the codes that the texts list and that are no reasons of the kernel."""
    listed = [it.text for it in _passages() if it.id in _CODES or it.place in _CODES]
    names = dict.fromkeys(re.findall(r"(?:[,:/|] |^)`([a-z_]+)`", "\n".join(listed), re.MULTILINE))
    return tuple(it for it in names if it not in set(map(str, Reason)))


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
    yield from _named("Reasons for a refusal:", Reason)
    for letter, name in _TEXTS.items():
        ids = [it.id for it in _passages() if it.id.startswith(letter)]
        yield from _named(f"Rules of {name}:", ids)
    yield from _named("Codes of answers and errors:", _codes())


def _named(title: str, names: Iterable[str]) -> Iterator[str]:
    yield from ("", title, "")
    lines = wrap(" ".join(names), _WIDTH - 2, break_on_hyphens=False)
    yield from (f"  {line}" for line in lines)


def _unknown(asked: str) -> str:
    names = [*(rule.id for rule in specification().rules), *map(str, Reason), *_codes()]
    names += [it.id for it in _passages() if it.id]
    titles = {rule.title: rule.id for rule in specification().rules}
    if letter := re.match(r"[A-Z]-", _name(asked)):
        names = [it for it in names if it.startswith(letter[0])]
    near = [titles.get(it, it) for it in _near(_name(asked), asked, [*names, *titles])]
    hint = f"did you mean {' or '.join(dict.fromkeys(near))}?" if near else "all are listed by"
    end = "" if near else " turnlock explain"
    return f"there is no rule, reason or code {harmless(asked, limit=80)!r}; {hint}{end}"


def _near(name: str, asked: str, names: list[str]) -> list[str]:
    found = difflib.get_close_matches(name, names, n=3) or difflib.get_close_matches(
        asked.lower(), names, n=3
    )
    return found or [it for it in names if name in it][:3]
