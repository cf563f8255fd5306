"""The JUnit document: a case for each rule and each technique, valid whatever the names are."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from turnlock.verification.reports.junit import to_junit
from turnlock.verification.reports.report import Report, fingerprint
from turnlock.verification.rulebook import RULES

from .samples import HELD, HOSTILE, NOT_DONE, SKIPPED, STOP, broken, double_start, report


def cases(of: Report, suite: str) -> dict[str, ET.Element]:
    """The cases of a suite, by the first word of the name (a rule's number, a technique)."""
    root = ET.fromstring(to_junit(of))  # noqa: S314 - it is our own document
    found = root.findall(f"testsuite[@name='turnlock.{suite}']/testcase")
    assert root.get("tests") == str(len(root.findall("testsuite/testcase")))
    assert root.get("failures") == str(len(root.findall("testsuite/testcase/failure")))
    return {case.get("name", ""): case for case in found}


def outcome(case: ET.Element) -> str:
    tags = {child.tag for child in case} - {"properties", "system-out"}
    assert len(tags) <= 1
    return tags.pop() if tags else "passed"


def rules(of: Report) -> dict[str, str]:
    found = cases(of, "rules")
    return {name.split(" ")[0]: outcome(case) for name, case in found.items()}


def test_every_rule_has_its_case() -> None:
    """Judged: passed; exercised by nothing or not visible: skipped, with why."""
    found = cases(report(HELD), "rules")
    assert len(found) == len(RULES)
    assert outcome(found["K-33 claim before start"]) == "passed"
    assert outcome(found["K-20 ids mean something within their turn"]) == "skipped"
    why = found["K-4 declared tables"].find("skipped")
    assert why is not None
    assert "tests compare the code with its tables" in str(why.get("message"))
    steps = found["K-33 claim before start"].find("properties/property")
    assert steps is not None
    assert (steps.get("name"), steps.get("value")) == ("steps judged", "4100")


def test_a_broken_rule_fails_with_its_story() -> None:
    found = cases(report(HELD, broken(double_start())), "rules")
    failure = found["K-33 claim before start"].find("failure")
    assert failure is not None
    assert "worker w2" in str(failure.text)
    assert outcome(found["K-52 one continuation"]) == "passed"


def test_a_known_violation_is_skipped_by_name() -> None:
    finding = double_start()
    known = report(HELD, broken(finding), known=(fingerprint(finding),), now_passing=("K-9: x",))
    assert rules(known)["K-33"] == "skipped"
    assert outcome(cases(known, "baseline")["K-9: x"]) == "failure"


def test_a_rule_that_the_book_does_not_hold_is_not_lost() -> None:
    assert rules(report(broken(double_start(rule="K-99"))))["K-99"] == "failure"


def test_techniques_that_did_not_check_are_not_green() -> None:
    found = broken(double_start(), technique="guided")
    of = report(HELD, SKIPPED, NOT_DONE, found, broken(technique="rules"), stops=(STOP,))
    assert {name: outcome(case) for name, case in cases(of, "techniques").items()} == {
        "closure": "passed",
        "recovery": "skipped",
        "exports": "error",
        "guided": "failure",
        "rules": "failure",
        "conformance": "error",
    }


@pytest.mark.parametrize("name", [HOSTILE, "￾￿", "]]>"])
def test_hostile_names_stay_text(name: str) -> None:
    """XML holds no NUL, ESC or surrogate: they are escaped, and the rest is as it was."""
    document = to_junit(report(broken(double_start(name)), subject=name, command=name))
    document.encode()
    root = ET.fromstring(document)  # noqa: S314 - it is our own document
    subject = root.find("testsuite/properties/property[@name='subject']")
    assert subject is not None
    assert str(subject.get("value")).startswith(name[:2].replace("￾￿", "\\ufffe\\uffff"))


def test_findings_of_one_cause_name_their_story() -> None:
    """Each rule stays red; the one story names the other, which says where it is told."""
    told = double_start()
    other = double_start(rule="K-30", message="another claim")
    root = ET.fromstring(to_junit(report(broken(told), broken(other))))  # noqa: S314 - our own

    texts = [case.findtext("failure") or "" for case in root.iter("testcase")]
    (main,) = [text for text in texts if "also seen as: K-30: another claim" in text]
    (named,) = [text for text in texts if "one story with K-33" in text]
    assert main != named
