"""One self-contained page: it needs no network, no script and no other file."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from math import log10
from typing import Final

from ..findings import NO_ANSWER, Finding, Result, Status
from ..rulebook import RULES, Difference, rule_called
from .headline import why
from .report import Report, Stop, Story, Verdict, Violation
from .stories import (
    BY_FIELD,
    differing,
    json_lines,
    labelled,
    marked,
    pasted,
    pointed,
    printable,
    steps,
)
from .terminal import figures_text

_TONE: Final = {
    Verdict.HOLDS: "good",
    Verdict.VIOLATED: "bad",
    Status.HOLDS: "good",
    Status.VIOLATED: "bad",
}
"""Everything else is neither good nor bad: it warns."""


def to_html(report: Report, *, drawn: Callable[[Finding], str] = lambda _: "") -> str:
    """Return the whole document; whatever comes from outside is escaped.

    `drawn` returns the picture of a finding, as HTML; where it returns nothing, the script is told
    in words. (The proof kit stands beside the pictures and imports none: who has both passes it.)
    """
    title = f"{report.subject}: {report.verdict}"
    body = "".join(
        (
            _verdict(report),
            *(_stopped(stop, drawn, report.stdio) for stop in report.stops),
            *(_story(story, drawn, report.stdio) for story in report.stories),
            _techniques(report),
            _coverage(report),
            _rules(report),
            _again(report),
        )
    )
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_text(title)}</title><style>{STYLE}</style></head>"
        f"<body>{body}</body></html>\n"
    )


def _text(value: object) -> str:
    return html.escape(printable(str(value)), quote=True)


def _verdict(report: Report) -> str:
    tone = _TONE.get(report.verdict, "warn")
    said = "".join(f"<p>{_text(sentence)}</p>" for sentence in _in_words(report))
    return (
        f"<h1>turnlock verify · {_text(report.subject)} · profile {_text(report.profile)}"
        f" · seed {report.seed} · {_text(report.started)}</h1>"
        f"<div class='verdict {tone}'><strong>{_text(str(report.verdict).capitalize())}</strong>"
        f"{said}</div>"
    )


def _in_words(report: Report) -> Iterator[str]:
    yield why(report)
    for name in report.now_passing:
        yield f"Passes now, take it out of the baseline: {name}."
    for stop in report.stops:
        yield f"{stop.technique} was stopped, {stop.verdict}: {stop.message}"
    undone = [one for one in report.results if one.status in {Status.SKIPPED, Status.NOT_DONE}]
    for result in undone:
        yield f"{result.technique} {result.status}: {result.why}"


def _story(story: Story, drawn: Callable[[Finding], str], command: str) -> str:
    violation = story.violation
    finding = violation.finding
    rule = rule_called(finding.rule)
    known = " (known: in the baseline)" if violation.known else ""
    length = len(finding.script)
    minimal = "no shorter script shows it" if finding.minimal else "perhaps not the shortest"
    also = "".join(f"<li>{_seen_as(one)}</li>" for one in story.also)
    return (
        f"<h2>{_text(rule.id)} {_text(rule.title)}{known}</h2>"
        f"<p class='rule'>{_text(rule.sentence)}</p><p>{_text(finding.message)}</p>"
        f"<p class='soft'>Found by {_text(', '.join(violation.techniques))}; "
        f"{length} step{'' if length == 1 else 's'}, {minimal}; "
        f"fingerprint <code>{violation.fingerprint}</code></p>"
        + (f"<p class='soft'>Also seen as:</p><ul class='soft'>{also}</ul>" if also else "")
        + _shown(finding, drawn, command)
    )


def _stopped(stop: Stop, drawn: Callable[[Finding], str], command: str) -> str:
    """Show the script of a stop; without one the verdict has told it all."""
    if stop.finding is None:
        return ""
    return (
        f"<h2>{_text(str(stop.verdict).capitalize())}, in {_text(stop.technique)}</h2>"
        f"<p>{_text(stop.message)}</p>{_shown(stop.finding, drawn, command)}"
    )


def _shown(finding: Finding, drawn: Callable[[Finding], str], command: str) -> str:
    """Show a script: drawn or told, both answers to its last step, and how to play it again."""
    picture = "" if finding.rule == NO_ANSWER else drawn(finding)
    return (
        (picture or _told(finding))
        + _answers(finding)
        + _to_paste(finding, command)
        + _as_json(finding)
    )


def _seen_as(violation: Violation) -> str:
    finding = violation.finding
    return (
        f"{_text(finding.rule)} in {_text(', '.join(violation.techniques))}:"
        f" {_text(finding.message)} (fingerprint <code>{violation.fingerprint}</code>)"
    )


def _to_paste(finding: Finding, command: str) -> str:
    lines = pasted(finding, command)
    if not lines:
        return f"<p>It shows in no receipt; {_text(finding.technique)} finds it again.</p>"
    text = "\n".join(lines)
    return f"<h3>To see the answers, and to have them judged again</h3><pre>{_text(text)}</pre>"


def _told(finding: Finding) -> str:
    """Tell the script step by step, and where the last answer differs."""
    items = [f"{step.sender}, {step.at}: {step.words}" for step in steps(finding)]
    found = differing(finding)
    if items and found:
        items[-1] += f" – differs at {pointed(found[0])}"
    told = "".join(f"<li>{_text(item)}</li>" for item in items)
    return f"<ol class='story'>{told}</ol>" if told else ""


def _answers(finding: Finding) -> str:
    found = differing(finding)
    (one, first), (other, second) = labelled(finding)
    came = _text(second) if isinstance(second, str) else _json(second, found, got=True)
    return (
        f"<div class='answers'><div><h3>{one.capitalize()}</h3>"
        f"<pre class='right'>{_json(first, found, got=False)}</pre></div>"
        f"<div><h3>{other.capitalize()}</h3><pre>{came}</pre></div></div>"
    )


def _json(value: object, found: Sequence[Difference], *, got: bool) -> str:
    """Write JSON, the lines that differ marked: by shade, by a bar, and for readers as marks."""
    lines: list[str] = []
    for line in json_lines(value, depth=BY_FIELD):
        text = _text(line.text)
        lines.append(f"<mark>{text}</mark>" if marked(line, found, got=got) else f"{text}\n")
    return "".join(lines)


def _as_json(finding: Finding) -> str:
    script = "\n".join(json.dumps(delivery, ensure_ascii=False) for delivery in finding.script)
    return (
        "<details><summary>The script as JSON lines, and its run</summary>"
        f"<pre>{_text(json.dumps(finding.run, ensure_ascii=False))}\n\n{_text(script)}</pre>"
        "</details>"
    )


def _techniques(report: Report) -> str:
    rows = "".join(_technique(result) for result in report.results) + "".join(
        f"<tr><th scope='row'>{_text(stop.technique)}</th><td class='status warn'>stopped</td>"
        f"<td>{_text(stop.verdict)}: {_text(stop.message)}</td><td></td></tr>"
        for stop in report.stops
    )
    return (
        "<h2>What was checked, and what it guarantees</h2><div class='scroll'><table><thead><tr>"
        "<th scope='col'>technique</th><th scope='col'>status</th>"
        "<th scope='col'>guarantee and figures</th><th scope='col' class='number'>seconds</th>"
        f"</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _technique(result: Result) -> str:
    tone = _TONE.get(result.status, "warn")
    said = result.why if tone == "warn" else result.guarantee
    return (
        f"<tr><th scope='row'>{_text(result.technique)}</th>"
        f"<td class='status {tone}'>{_text(result.status)}</td>"
        f"<td class='said'>{_text(said)}"
        f"<div class='soft'>{_text(figures_text(result.figures))}</div></td>"
        f"<td class='number'>{result.seconds:.2f}</td></tr>"
    )


def _coverage(report: Report) -> str:
    coverage = report.coverage
    reasons = counts_table("Reasons of refusal", coverage.reasons) if coverage.reasons else ""
    maps = heat_maps(coverage.pairs)
    return f"<h2>What was reached</h2>{maps}{reasons}" if maps or reasons else ""


def _rules(report: Report) -> str:
    judged, unjudged = report.judged, report.not_judged
    broken = {*judged.broken, *(violation.finding.rule for violation in report.violations)}
    rows: list[str] = []
    for rule in RULES:
        if rule.id in broken:
            tone, said = "bad", "violated"
        elif not rule.visible:
            tone, said = "warn", "not visible"
        elif rule.id in unjudged:
            tone, said = "warn", "not judged"
        else:
            tone, said = "good", "holds"
        what = rule.sentence + (f" Receipts cannot show it: {rule.held}." if rule.held else "")
        rows.append(
            f"<tr><th scope='row'>{_text(rule.id)}</th><td class='status {tone}'>{said}</td>"
            f"<td>{_text(what)}</td><td class='number'>{judged.rules.get(rule.id, 0):,}</td></tr>"
        )
    return (
        "<h2>Rule by rule</h2><div class='scroll'><table><thead><tr><th scope='col'>rule</th>"
        "<th scope='col'>status</th><th scope='col'>what it says</th>"
        "<th scope='col' class='number'>steps judged</th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _again(report: Report) -> str:
    facts = {
        "command": report.command,
        "seed": str(report.seed),
        "profile": str(report.profile),
        **report.versions,
        "started": report.started,
        "seconds": f"{report.seconds:.1f}",
    }
    said = "".join(
        f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>" for name, value in facts.items()
    )
    return f"<h2>To repeat it</h2><dl class='mono'>{said}</dl>"


# ------------------------------------------------------------------------------
# The style of the HTML page: no script, no font, no image; light and dark; prints on paper.


STYLE: Final = """
:root { color-scheme: light dark;
  --paper: #ffffff; --ink: #1c2330; --soft: #5a6474; --line: #d5dae3; --panel: #f5f7fa;
  --good: #16713f; --bad: #b3261e; --warn: #8a5a00; --badpaper: #fdecea; --goodpaper: #e7f4ec;
  --warnpaper: #fbf1dc; --accent: #2455a4;
  --s1: #e4edf9; --s2: #c6daf3; --s3: #9dbfe9; --s4: #6f9fdc; --s5: #4a80c8; --s5ink: #ffffff; }
@media (prefers-color-scheme: dark) { :root {
  --paper: #14181f; --ink: #e4e8ef; --soft: #9aa5b5; --line: #333c49; --panel: #1b212a;
  --good: #6fcf97; --bad: #ff8a80; --warn: #f0c36d; --badpaper: #3a1d1f; --goodpaper: #17301f;
  --warnpaper: #35290f; --accent: #8ab4f8;
  --s1: #1b2a40; --s2: #213a5c; --s3: #294d7d; --s4: #33629f; --s5: #4079c2; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1040px; padding: 24px 20px 64px; background: var(--paper);
  color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
h1 { font-size: 15px; font-weight: 600; color: var(--soft); margin: 0 0 8px; }
h2 { font-size: 20px; margin: 44px 0 12px; padding-top: 12px; border-top: 1px solid var(--line); }
h3 { font-size: 15px; margin: 24px 0 8px; }
p { margin: 6px 0; max-width: 76ch; }
code, pre, .mono { font: 13px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono",
  monospace; }
.verdict { padding: 18px 22px; border-radius: 8px; border-left: 8px solid; }
.verdict strong { display: block; font-size: 28px; line-height: 1.25; }
.verdict.good { background: var(--goodpaper); border-color: var(--good); }
.verdict.good strong { color: var(--good); }
.verdict.bad { background: var(--badpaper); border-color: var(--bad); }
.verdict.bad strong { color: var(--bad); }
.verdict.warn { background: var(--warnpaper); border-color: var(--warn); }
.verdict.warn strong { color: var(--warn); }
.rule { font-weight: 600; } .said { white-space: pre-line; } .soft { color: var(--soft); }
table { border-collapse: collapse; width: 100%; }
th[scope=row] { white-space: nowrap; }
th, td { text-align: left; vertical-align: top; padding: 6px 10px; border-bottom: 1px solid
  var(--line); } thead th { color: var(--soft); font-weight: 600; font-size: 13px; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.status { font-weight: 600; white-space: nowrap; } .status.good { color: var(--good); }
.status.bad { color: var(--bad); } .status.warn { color: var(--warn); }
.scroll { overflow-x: auto; }
.answers { display: grid; grid-template-columns: 1fr 1fr; gap: 16px; }
@media (max-width: 760px) { .answers { grid-template-columns: 1fr; } }
.answers h3 { margin: 12px 0 6px; }
pre { margin: 0; padding: 12px 14px; background: var(--panel); border: 1px solid var(--line);
  border-radius: 6px; white-space: pre-wrap; overflow-wrap: anywhere; }
pre mark { display: block; margin: 0 -14px; padding: 0 14px; color: inherit; font-weight: 600;
  background: var(--badpaper); box-shadow: inset 4px 0 var(--bad); }
pre.right mark { background: var(--goodpaper); box-shadow: inset 4px 0 var(--good); }
details { margin: 14px 0; } summary { cursor: pointer; color: var(--accent); }
svg { max-width: 100%; height: auto; margin: 12px 0; } ol.story { max-width: 90ch; }
table.heat { width: auto; } table.heat th { font-weight: 500; font-size: 12px; padding: 4px 6px; }
table.heat td { text-align: right; font-size: 12px; padding: 4px 6px; border: 1px solid var(--line);
  font-variant-numeric: tabular-nums; } table.heat tbody th { white-space: nowrap; }
.shade1 { background: var(--s1); } .shade2 { background: var(--s2); }
.shade3 { background: var(--s3); } .shade4 { background: var(--s4); }
.shade5 { background: var(--s5); color: var(--s5ink); }
.never { color: var(--bad); font-weight: 600; outline: 1px dashed var(--bad);
  outline-offset: -2px; }
td.none { background: repeating-linear-gradient(135deg, transparent 0 5px, var(--panel) 5px 7px); }
ul.counts { list-style: none; margin: 0; padding: 0; display: grid; gap: 4px;
  grid-template-columns: repeat(auto-fill, minmax(230px, 1fr)); }
ul.counts li { display: flex; justify-content: space-between; gap: 12px; padding: 3px 10px;
  border-radius: 4px; font-variant-numeric: tabular-nums; }
ul.counts span { overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 20px; margin: 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
@media print { body { max-width: none; padding: 0; font-size: 11px; } h2, h3 {
  break-after: avoid; } .answers, tr, svg { break-inside: avoid; } * {
  print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""


# ------------------------------------------------------------------------------
# Coverage as tables: phase × input with shaded cells, and reasons with their counts.
#
# Shade alone says nothing: every cell holds its count in figures, and what was never reached says
# `never` in text.


JOINT: Final = " × "
"""Between the phase and the input in the name of a pair (findings.Coverage)."""
_TURN_PHASES: Final = ("OPEN", "SEALED", "INTERRUPTING", "SETTLED", "INTERRUPTED")
_SHADES: Final = 5


def heat_maps(pairs: Mapping[str, int]) -> str:
    """Return a table for invocations and one for turns; pairs that no rule names are left blank."""
    cells: dict[tuple[str, str], int] = {}
    for name, count in pairs.items():
        phase, _, entry = name.partition(JOINT)
        cells[phase, entry] = count
    machines = {
        "One invocation": {key: n for key, n in cells.items() if key[0] not in _TURN_PHASES},
        "One turn": {key: n for key, n in cells.items() if key[0] in _TURN_PHASES},
    }
    return "".join(_heat_map(title, found) for title, found in machines.items() if found)


def counts_table(title: str, counts: Mapping[str, int]) -> str:
    """Return a list of names with counts, the never reached first."""
    rows = sorted(counts.items(), key=lambda item: (item[1] > 0, item[0]))
    return (
        f"<h3>{_escaped(title)}</h3><ul class='counts'>"
        + "".join(
            f"<li{_shade(n)}><span>{_escaped(name)}</span> {_said(n)}</li>" for name, n in rows
        )
        + "</ul>"
    )


def _heat_map(title: str, cells: Mapping[tuple[str, str], int]) -> str:
    phases = list(dict.fromkeys(phase for phase, _ in cells))
    entries = list(dict.fromkeys(entry for _, entry in cells))
    never = sum(1 for count in cells.values() if not count)
    told = f"{len(cells) - never} of {len(cells)} pairs reached"
    head = "".join(f"<th scope='col'>{_escaped(phase)}</th>" for phase in phases)
    return (
        f"<h3>{title}: {told}</h3><div class='scroll'><table class='heat'>"
        f"<thead><tr><th scope='col'>input</th>{head}</tr></thead><tbody>"
        + "".join(_rows(phases, entries, cells))
        + "</tbody></table></div>"
    )


def _rows(
    phases: Sequence[str], entries: Sequence[str], cells: Mapping[tuple[str, str], int]
) -> Iterator[str]:
    for entry in entries:
        row = "".join(_cell(cells.get((phase, entry))) for phase in phases)
        yield f"<tr><th scope='row'>{_escaped(entry)}</th>{row}</tr>"


def _cell(count: int | None) -> str:
    if count is None:
        return "<td class='none'></td>"
    return f"<td{_shade(count)}>{_said(count)}</td>"


def _shade(count: int) -> str:
    """Shade by order of magnitude: counts differ by many."""
    if not count:
        return " class='never'"
    return f" class='shade{min(_SHADES, 1 + int(log10(count)))}'"


def _said(count: int) -> str:
    return f"{count:,}" if count else "never"


def _escaped(text: str) -> str:
    return escape(printable(text), quote=True)
