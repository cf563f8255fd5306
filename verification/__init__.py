"""The proof kit: oracle, exhaustive and random techniques, and what they report.

`verify` runs the techniques of a `Profile` against a system under test: a `Subject` in this process
(`InProcess`), a command that speaks the wire (`ProcessDriver`), or, with None, our own kernel. A
`ConformanceSuite` does it in pytest, an item for each rule; `TurnlockMachine` is the Hypothesis
machine to subclass, `scripts` a strategy for property tests of your own. The kit imports the
kernel, and the kernel never imports it.

These names are public; every other name in here may change with any release. A name is imported
when it is first asked for: pytest and Hypothesis are needed by those alone that are made of them.
"""

from typing import TYPE_CHECKING

from ..models.lazy import imported_when_asked

if TYPE_CHECKING:
    from .closure.technique import check_subject
    from .conformance_suite import ConformanceSuite
    from .errors import HarnessFailed, NotDeterministic, SubjectFailed
    from .findings import Coverage, Finding, Profile, Result, Status
    from .fuzz.machine import TurnlockMachine, Violated, deliveries, invocations, scripts, turns
    from .oracle.oracle import Oracle
    from .regressions import Regression, played_again, read_regression, written
    from .reports.html import to_html
    from .reports.json_report import to_json
    from .reports.junit import to_junit
    from .reports.report import Report, Stop, Verdict
    from .reports.terminal import to_text
    from .rulebook import RULES, Rule
    from .subjects.in_process import InProcess
    from .subjects.kernel import kernel_driver
    from .subjects.process import ProcessDriver
    from .subjects.subject import Capability, Driver, Explorable, Recoverable, Subject
    from .techniques import TECHNIQUES, Technique, verify

__all__ = [
    "RULES", "TECHNIQUES", "Capability", "ConformanceSuite", "Coverage", "Driver", "Explorable",
    "Finding", "HarnessFailed", "InProcess", "NotDeterministic", "Oracle", "ProcessDriver",
    "Profile", "Recoverable", "Regression", "Report", "Result", "Rule", "Status", "Stop",
    "Subject", "SubjectFailed", "Technique", "TurnlockMachine", "Verdict", "Violated",
    "check_subject", "deliveries", "invocations", "kernel_driver", "played_again",
    "read_regression", "scripts", "to_html", "to_json", "to_junit", "to_text", "turns", "verify",
    "written",
]  # fmt: skip

if not TYPE_CHECKING:  # checkers would take any name for one that this function knows
    __getattr__ = imported_when_asked(__name__, {
        "closure.technique": "check_subject",
        "conformance_suite": "ConformanceSuite",
        "errors": "HarnessFailed NotDeterministic SubjectFailed",
        "findings": "Coverage Finding Profile Result Status",
        "fuzz.machine": "TurnlockMachine Violated deliveries invocations scripts turns",
        "oracle.oracle": "Oracle",
        "regressions": "Regression played_again read_regression written",
        "reports.html": "to_html",
        "reports.json_report": "to_json",
        "reports.junit": "to_junit",
        "reports.report": "Report Stop Verdict",
        "reports.terminal": "to_text",
        "rulebook": "RULES Rule",
        "subjects.in_process": "InProcess",
        "subjects.kernel": "kernel_driver",
        "subjects.process": "ProcessDriver",
        "subjects.subject": "Capability Driver Explorable Recoverable Subject",
        "techniques": "TECHNIQUES Technique verify",
    }, extras={"conformance_suite": "verify", "fuzz.machine": "verify"})  # fmt: skip


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
