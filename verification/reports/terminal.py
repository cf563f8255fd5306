"""The short verdict that ends `turnlock verify` at a terminal: plain text, colour is the CLI's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from ..findings import Coverage, Finding, Result, Status
from ..judging import VISIBLE, why_not_judged
from ..rulebook import rule_called
from .headline import headline
from .report import Report, Stop, Story, Violation
from .stories import (
    BY_PART,
    answered,
    differing,
    json_lines,
    labelled,
    marked,
    pasted,
    pointed,
    printable,
    steps,
)

SHOWN: Final = 3
"""So many stories are told whole; the others by one line for each of their findings."""
SEEN: Final = 5
"""So many findings are named below their story."""
TOLD: Final = 8
"""So many places where an answer differs are named; all of them are marked."""
WIDE: Final = 2_000
"""So many characters of a line of JSON are shown."""
PASTED: Final = 10_000
"""Characters of a line to paste, at most; a longer one is a file to make."""


def to_text(report: Report) -> str:
    """Return the verdict first, then what each technique says, the violations, the guarantee."""
    parts = [
        f"{headline(report)}\n{_heading(report)}",
        "\n".join(_techniques(report)),
        *(_stopped(stop, report.stdio) for stop in report.stops),
        *_violations(report),
        "\n".join(_baseline(report)),
        "\n".join((*_coverage(report.coverage), *_judged(report))),
        "\n".join(_guarantee(report)),
        "\n".join(_ending(report)),
    ]
    return printable("\n\n".join(part for part in parts if part) + "\n")


def figures_text(figures: Mapping[str, int | float | str]) -> str:
    """Say figures in a line, thousands apart."""
    said = (
        f"{name} {value:,}" if isinstance(value, int | float) else f"{name} {value}"
        for name, value in figures.items()
    )
    return ", ".join(said)


def _heading(report: Report) -> str:
    return f"{report.subject}, profile {report.profile}, seed {report.seed}"


def _techniques(report: Report) -> Iterator[str]:
    width = max([len(name) for name in _names(report)], default=0)
    for result in report.results:
        what = result.why if result.status in _UNDONE else figures_text(result.figures)
        yield (
            f"  {result.technique:{width}}  {_STATUS[result.status]:8}"
            f"  {result.seconds:7.2f} s  {what}".rstrip()
        )
    for stop in report.stops:
        told = stop.message.partition("\n")[0] if stop.finding else stop.message
        yield f"  {stop.technique:{width}}  STOPPED   {stop.verdict}: {told}"


def _names(report: Report) -> list[str]:
    return [
        *(result.technique for result in report.results),
        *(stop.technique for stop in report.stops),
    ]


_UNDONE: Final = (Status.SKIPPED, Status.NOT_DONE)
_STATUS: Final = {
    Status.HOLDS: "holds",
    Status.VIOLATED: "VIOLATED",
    Status.SKIPPED: "skipped",
    Status.NOT_DONE: "NOT DONE",
}


def _violations(report: Report) -> Iterator[str]:
    new = [story for story in report.stories if not story.violation.known]
    for story in new[:SHOWN]:
        yield "\n".join(_story(story, report.stdio))
    others = [one for story in new[SHOWN:] for one in (story.violation, *story.also)]
    others += [violation for violation in report.violations if violation.known]
    if others:
        yield "\n".join(_in_brief(violation) for violation in others)


def _story(story: Story, command: str) -> Iterator[str]:
    violation = story.violation
    yield f"VIOLATED {_title(violation.finding)}"
    yield f"  found by {', '.join(violation.techniques)}, fingerprint {violation.fingerprint}"
    yield from (f"  {line}" for line in finding_lines(violation.finding, command))
    yield from (f"  also seen as: {_seen_as(one)}" for one in story.also[:SEEN])
    if len(story.also) > SEEN:
        yield f"  and as {len(story.also) - SEEN} more, which --json and --html name"


def _stopped(stop: Stop, command: str) -> str:
    """Tell a stop with the script that shows it; without one its line was all."""
    if stop.finding is None:
        return ""
    told = finding_lines(stop.finding, command)
    return "\n".join(
        (f"{str(stop.verdict).upper()} in {stop.technique}", *(f"  {it}" for it in told))
    )


def _seen_as(violation: Violation) -> str:
    """Name a finding of the same cause in a line."""
    by = ", ".join(violation.techniques)
    finding = violation.finding
    return f"{finding.rule} in {by}: {finding.message} (fingerprint {violation.fingerprint})"


def _title(finding: Finding) -> str:
    return f"{finding.rule} {rule_called(finding.rule).title}".rstrip()


def finding_lines(finding: Finding, command: str) -> Iterator[str]:
    """Tell one finding: the rule, what differs, the steps, expected and got; one line each.

    `command` is the system under test, to paste the script into; empty where it is none.
    """
    rule = rule_called(finding.rule)
    if rule.sentence:
        yield str(rule)
    if finding.also:
        yield f"breaks as well: {', '.join(finding.also)}"
    yield finding.message
    yield ""
    yield _about_the_script(finding)
    yield _cut(f"   run {json.dumps(finding.run, ensure_ascii=False)}")
    for step in steps(finding):
        at = f"at {step.at}: " if step.at else ""
        yield _cut(f"{step.number:2}. {at}{step.sender}: {step.words}")
        yield _cut(f"      {json.dumps(step.delivery, ensure_ascii=False)}")
        if step.receipt is not None and step.number < len(finding.script):
            yield _cut(f"      {answered(step.receipt)}")
    yield from map(_cut, _both_answers(finding))
    if command:
        yield from _again(finding, command)


def _again(finding: Finding, command: str) -> Iterator[str]:
    """Tell how it is played again."""
    lines = pasted(finding, command)
    if not lines:
        yield f"it shows in no receipt: turnlock verify --only {finding.technique} finds it again"
        return
    yield ""
    longest = max(map(len, lines))
    if longest > PASTED:
        yield f"a line for the shell would have {longest:,} characters, too many to paste:"
        yield "verify --findings FOLDER keeps it as a file, verify --replay FILE judges it again"
        return
    yield "to see the answers, and to have them judged again:"
    yield from lines


def _cut(line: str) -> str:
    return line if len(line) <= WIDE else f"{line[:WIDE]}… ({len(line):,} characters)"


def _about_the_script(finding: Finding) -> str:
    length = len(finding.script)
    minimal = "the shortest that shows it" if finding.minimal else "perhaps not the shortest"
    return f"The script, {length} step{'' if length == 1 else 's'}, {minimal}:"


def _both_answers(finding: Finding) -> Iterator[str]:
    found = differing(finding)
    for got, (label, value) in enumerate(labelled(finding)):
        yield ""
        yield f"{label}:"
        if isinstance(value, str):
            yield from (f"  {line}" for line in value.splitlines())
            continue
        for line in json_lines(value, depth=BY_PART):
            yield f"{'>' if marked(line, found, got=bool(got)) else ' '} {line.text}"
    if found:
        yield ""
        yield f"differs at {pointed(found[0])}"
        yield from (f"       and {pointed(one)}" for one in found[1:TOLD])
    if len(found) > TOLD:
        yield f"       and at {len(found) - TOLD} places more"


def _in_brief(violation: Violation) -> str:
    known = "known, in the baseline" if violation.known else "VIOLATED"
    return f"{known}: {_title(violation.finding)}: {violation.finding.message}"


def _baseline(report: Report) -> Iterator[str]:
    for name in report.now_passing:
        yield f"PASSES NOW, take it out of the baseline: {name}"


def _coverage(coverage: Coverage) -> Iterator[str]:
    reached = [name for name, count in coverage.reasons.items() if count]
    if coverage.reasons:
        yield f"reasons reached: {len(reached)} of {len(coverage.reasons)}"
        yield from _never("reasons", coverage.reasons)
    if coverage.pairs:
        pairs = sum(1 for count in coverage.pairs.values() if count)
        yield f"pairs of phase and input reached: {pairs} of {len(coverage.pairs)}"
        yield from _never("pairs", coverage.pairs)


def _judged(report: Report) -> Iterator[str]:
    judged = report.judged
    if not judged.scripts:
        return
    count = len(VISIBLE) - len(report.not_judged)
    yield f"rules judged: {count} of {len(VISIBLE)} that receipts can show"
    for rule, in_vain in report.not_judged.items():
        yield f"  {rule} {why_not_judged(in_vain)}"
    for what, scripts in list(judged.wrong.items())[:SHOWN]:
        yield f"  wrong first, in {scripts:,} of {judged.scripts:,} scripts: {what}"


def _never(what: str, counts: Mapping[str, int]) -> Iterator[str]:
    never = [name for name, count in counts.items() if not count]
    if never:
        yield f"  {what} never reached: {', '.join(never)}"


def _guarantee(report: Report) -> Iterator[str]:
    held = [one for one in report.results if one.status is Status.HOLDS and one.guarantee]
    if held:
        yield "What this guarantees, and what it does not:"
        for result in held:
            yield f"  {result.technique}: {result.guarantee}".replace("\n", "\n    ")


def _ending(report: Report) -> Iterator[str]:
    yield from _not_checked(report.results)
    known = sum(1 for violation in report.violations if violation.known)
    but = f", with {known} known in the baseline," if known else ""
    verdict = str(report.verdict).upper()
    yield f"{verdict}{but} after {report.seconds:.1f} s. Again: {report.command}"


def _not_checked(results: tuple[Result, ...]) -> Iterator[str]:
    undone = [result for result in results if result.status in _UNDONE]
    if undone:
        names = ", ".join(f"{result.technique} ({result.status})" for result in undone)
        yield f"Says nothing about what these would have checked: {names}."
