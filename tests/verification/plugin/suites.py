"""Test files that a user might write, for pytester to run.

It forgets what such a file imported; a name that `turnlock.verification` has found once stays. So
they import the class from its module.
"""

from __future__ import annotations

RIGHT = """
from turnlock.verification.conformance_suite import ConformanceSuite
from turnlock.verification.subjects.kernel import KernelSubject

class TestKernel(ConformanceSuite):
    techniques = ("sample",)

    def make_sut(self):
        return KernelSubject()
"""

THEIRS = """
import itertools

from turnlock.verification.conformance_suite import ConformanceSuite
from turnlock.verification.oracle.oracle import Oracle

class Theirs:
    capabilities = frozenset()

    def reset(self, run):
        self.oracle = Oracle(run)

    def receive(self, delivery):
        receipt = self.oracle.receive(delivery)
        {fault}
        return receipt

class TestTheirs(ConformanceSuite):
    techniques = {techniques}
    {more}

    def make_sut(self):
        return Theirs()
"""
STARTS_TWICE = """
        if receipt.get("reason") == "already_started" and delivery["type"] == "claim":
            receipt = {"accepted": True, "facts": [], "effects": []}
"""
NEVER_THE_SAME = """
        receipt["facts"] = [{"type": str(number)} for number in [next(COUNT)]]
"""
REFUSES_ALL = """
        receipt = {"accepted": False, "reason": "late", "facts": [], "effects": []}
"""
ACCEPTS_ALL = """
        receipt = {"accepted": True, "facts": [], "effects": []}
"""
CRASHES = """
        raise RuntimeError("out of memory")
"""


def theirs(fault: str = "pass", techniques: str = '("sample",)', more: str = "") -> str:
    """A kernel of their own (the oracle), with a fault of this kind, and its suite."""
    source = THEIRS.replace("{fault}", fault.strip())
    source = source.replace("{techniques}", techniques).replace("{more}", more)
    return source.replace("class Theirs:", "COUNT = itertools.count()\n\nclass Theirs:")
