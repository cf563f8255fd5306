"""The rules of kernel.md: what each says, which steps exercise it, which one an answer breaks.

Pure functions over the dicts of the wire (section 12); nothing here knows the kernel.
"""

from ...wire.plain import is_receipt
from .accusation import accused, of_its_story, of_its_tick, tick_after
from .attribution import rules_of
from .blame import blamed
from .difference import ABSENT, Difference, described, differences, first_difference, verdict_of
from .rules import RULES, Rule, rule_called

__all__ = [
    "ABSENT",
    "RULES",
    "Difference",
    "Rule",
    "accused",
    "blamed",
    "described",
    "differences",
    "first_difference",
    "is_receipt",
    "of_its_story",
    "of_its_tick",
    "rule_called",
    "rules_of",
    "tick_after",
    "verdict_of",
]
