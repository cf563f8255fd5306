"""One self-contained page: it needs no network, no script and no other file."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterator
from typing import Final

from ..findings import Finding, Result, Status
from ..rulebook import RULES, Difference, rule_called
from .heat import counts_table, heat_maps
from .page_style import STYLE
from .report import Report, Verdict, Violation
from .stories import BY_FIELD, difference, json_lines, marked, pointed, steps
from .terminal import figures_text
from .words import printable

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
            *(_violation(violation, drawn) for violation in report.violations),
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
    new = [violation for violation in report.violations if not violation.known]
    if new:
        rules = ", ".join(dict.fromkeys(violation.finding.rule for violation in new))
        yield f"{len(new)} violation{'' if len(new) == 1 else 's'}, of {rules}."
    known = len(report.violations) - len(new)
    if known:
        yield f"{known} known, in the baseline: they do not fail the verification."
    for name in report.now_passing:
        yield f"Passes now, take it out of the baseline: {name}."
    for stop in report.stops:
        yield f"{stop.technique} was stopped, {stop.verdict}: {stop.message}"
    undone = [one for one in report.results if one.status in {Status.SKIPPED, Status.NOT_DONE}]
    for result in undone:
        yield f"{result.technique} {result.status}: {result.why}"
    held = sum(1 for result in report.results if result.status is Status.HOLDS)
    yield f"Techniques that hold: {held} of {len(report.results) + len(report.stops)}."


def _violation(violation: Violation, drawn: Callable[[Finding], str]) -> str:
    finding = violation.finding
    rule = rule_called(finding.rule)
    known = " (known: in the baseline)" if violation.known else ""
    length = len(finding.script)
    minimal = "no shorter script shows it" if finding.minimal else "perhaps not the shortest"
    found = difference(finding)
    return (
        f"<h2>{_text(rule.id)} {_text(rule.title)}{known}</h2>"
        f"<p class='rule'>{_text(rule.sentence)}</p><p>{_text(finding.message)}</p>"
        f"<p class='soft'>Found by {_text(', '.join(violation.techniques))}; "
        f"{length} step{'' if length == 1 else 's'}, {minimal}; "
        f"fingerprint <code>{violation.fingerprint}</code></p>"
        + (drawn(finding) or _story(finding))
        + _answers(finding, found)
        + _as_json(finding)
    )


def _story(finding: Finding) -> str:
    """Tell the script step by step, and where the last answer differs."""
    items = [f"{step.sender}, {step.at}: {step.words}" for step in steps(finding)]
    found = difference(finding)
    if items and found is not None:
        items[-1] += f" – differs at {pointed(found)}"
    told = "".join(f"<li>{_text(item)}</li>" for item in items)
    return f"<ol class='story'>{told}</ol>" if told else ""


def _answers(finding: Finding, found: Difference | None) -> str:
    return (
        f"<div class='answers'>"
        f"<div><h3>Expected</h3><pre class='right'>{_json(finding.expected, found)}</pre></div>"
        f"<div><h3>Got</h3><pre>{_json(finding.got, found)}</pre></div></div>"
    )


def _json(value: object, found: Difference | None) -> str:
    """Write JSON, the lines that differ marked: by shade, by a bar, and for readers as marks."""
    lines: list[str] = []
    for line in json_lines(value, depth=BY_FIELD):
        text = _text(line.text)
        lines.append(f"<mark>{text}</mark>" if marked(line, found) else f"{text}\n")
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
    exercised = report.coverage.rules
    broken = {violation.finding.rule for violation in report.violations}
    rows: list[str] = []
    for rule in RULES:
        count = exercised.get(rule.id, 0)
        if rule.id in broken:
            tone, said = "bad", "violated"
        elif not rule.visible:
            tone, said = "warn", "not visible"
        else:
            tone, said = ("good", "holds") if count else ("warn", "not exercised")
        what = rule.sentence + (f" Receipts cannot show it: {rule.held}." if rule.held else "")
        rows.append(
            f"<tr><th scope='row'>{_text(rule.id)}</th><td class='status {tone}'>{said}</td>"
            f"<td>{_text(what)}</td><td class='number'>{count:,}</td></tr>"
        )
    return (
        "<h2>Rule by rule</h2><div class='scroll'><table><thead><tr><th scope='col'>rule</th>"
        "<th scope='col'>status</th><th scope='col'>what it says</th>"
        "<th scope='col' class='number'>steps</th></tr></thead>"
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
