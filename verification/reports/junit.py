"""A JUnit report: one test case for each rule of kernel.md, and one for each technique."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from xml.etree import ElementTree as ET

from ..findings import Result, Status
from ..judging import why_broken, why_not_judged
from ..rulebook import RULES, Rule, rule_called
from .headline import headline
from .report import Report, Story, Violation
from .stories import printable
from .terminal import figures_text, finding_lines


def to_junit(report: Report) -> str:
    """Return the XML document; what XML cannot hold is escaped as text."""
    root = ET.Element("testsuites", name="turnlock verify", time=f"{report.seconds:.3f}")
    suites = [_rules(report), _techniques(report)]
    if report.now_passing:
        suites.append(_baseline(report))
    for suite in suites:
        suite.set("timestamp", report.started)
        suite.set("tests", str(len(suite.findall("testcase"))))
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped",) * 2):
            suite.set(attribute, str(len(suite.findall(f"testcase/{tag}"))))
        root.append(suite)
    for attribute in ("tests", "failures", "errors", "skipped"):
        root.set(attribute, str(sum(int(suite.get(attribute, "0")) for suite in suites)))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=False) + "\n"


def _rules(report: Report) -> ET.Element:
    suite = _suite("rules", report)
    judged, unjudged = report.judged, report.not_judged
    broken: dict[str, list[Violation]] = {rule.id: [] for rule in RULES}
    for violation in report.violations:
        broken.setdefault(violation.finding.rule, []).append(violation)
    for rule_id, violations in broken.items():
        rule = rule_called(rule_id)
        case = _case(suite, "rules", f"{rule.id} {rule.title}".rstrip(), 0.0)
        _property(case, "steps judged", str(judged.rules.get(rule_id, 0)))
        if violations:
            _broken(case, violations, report)
        elif rule_id in judged.broken:
            new = any(not violation.known for violation in report.violations)
            _say(case, "failure" if new else "skipped", why_broken(judged.broken[rule_id]))
        else:
            _unbroken(case, rule, unjudged)
    return suite


def _told(violation: Violation, stories: Sequence[Story], command: str) -> Iterator[str]:
    """Tell a violation: with what else its story shows, or with the story that it belongs to."""
    story = next(it for it in stories if violation in (it.violation, *it.also))
    told = story.violation
    if violation != told:
        yield f"one story with {told.finding.rule}, {told.fingerprint}: {told.finding.message}"
    yield from finding_lines(violation.finding, command)
    if violation == told:
        yield from (f"also seen as: {it.finding.rule}: {it.finding.message}" for it in story.also)


def _broken(case: ET.Element, violations: list[Violation], report: Report) -> None:
    stories, command = report.stories, report.stdio
    new = [violation for violation in violations if not violation.known]
    if new:
        _say(
            case,
            "failure",
            new[0].finding.message,
            "\n\n".join("\n".join(_told(one, stories, command)) for one in new),
        )
    else:
        known = ", ".join(violation.fingerprint for violation in violations)
        _say(case, "skipped", f"violated, and known: the baseline holds {known}")


def _unbroken(case: ET.Element, rule: Rule, unjudged: Mapping[str, int]) -> None:
    if not rule.visible:
        _say(case, "skipped", f"receipts cannot show it: {rule.held}")
    elif rule.id in unjudged:
        steps = unjudged[rule.id]
        _say(case, "error" if steps else "skipped", why_not_judged(steps))


def _techniques(report: Report) -> ET.Element:
    suite = _suite("techniques", report)
    known = {violation.fingerprint for violation in report.violations if violation.known}
    for result in report.results:
        case = _case(suite, "techniques", result.technique, result.seconds)
        for name, value in result.figures.items():
            _property(case, name, str(value))
        _technique(case, report, result, known)
    for stop in report.stops:
        case = _case(suite, "techniques", stop.technique, 0.0)
        told = "" if stop.finding is None else "\n".join(finding_lines(stop.finding, report.stdio))
        _say(case, "error", f"{stop.verdict}: {stop.message}", told)
    return suite


def _technique(case: ET.Element, report: Report, result: Result, known: set[str]) -> None:
    found = [one for one in report.violations if result.technique in one.techniques]
    new = [violation for violation in found if violation.fingerprint not in known]
    if new:
        told = "\n".join(f"{one.finding.rule}: {one.finding.message}" for one in new)
        _say(case, "failure", f"violations: {len(new)}", told)
    elif result.status is Status.VIOLATED and not found:
        _say(case, "failure", f"violated: {figures_text(result.figures)}")
    elif found:
        _say(case, "skipped", "all that it found is known: the baseline holds it")
    elif result.status is Status.SKIPPED:
        _say(case, "skipped", result.why)
    elif result.status is Status.NOT_DONE:
        _say(case, "error", f"not done: {result.why}")
    else:
        ET.SubElement(case, "system-out").text = printable(result.guarantee)


def _baseline(report: Report) -> ET.Element:
    suite = _suite("baseline", report)
    for name in report.now_passing:
        case = _case(suite, "baseline", name, 0.0)
        _say(case, "failure", "it passes now: take it out of the baseline")
    return suite


def _suite(name: str, report: Report) -> ET.Element:
    suite = ET.Element("testsuite", name=f"turnlock.{name}")
    facts = {
        "verdict": headline(report),
        "subject": report.subject,
        "profile": report.profile,
        "seed": str(report.seed),
    }
    for key, value in {**facts, **report.versions, "command": report.command}.items():
        _property(suite, key, value)
    return suite


def _case(suite: ET.Element, kind: str, name: str, seconds: float) -> ET.Element:
    return ET.SubElement(
        suite,
        "testcase",
        classname=f"turnlock.{kind}",
        name=printable(name),
        time=f"{seconds:.3f}",
    )


def _property(of: ET.Element, name: str, value: str) -> None:
    properties = of.find("properties")
    if properties is None:
        properties = ET.SubElement(of, "properties")
    ET.SubElement(properties, "property", name=printable(name), value=printable(value))


def _say(case: ET.Element, tag: str, message: str, text: str = "") -> None:
    ET.SubElement(case, tag, message=printable(message)).text = printable(text or message)
