"""The rules of kernel.md as reports name them, and what holds those that receipts cannot show."""

from __future__ import annotations

from typing import Final

import attrs

from .payloads import WIRE
from .specification import specification


@attrs.frozen
class Rule:
    """One rule: its number in kernel.md (or its section, where it has none), and what it says.

    A visible rule can be seen kept or broken from outside, in receipts. For the others `held` says
    what keeps them.
    """

    id: str
    title: str
    sentence: str
    held: str = ""

    @property
    def visible(self) -> bool:
        """Whether receipts can show that it is kept or broken."""
        return not self.held

    def __str__(self) -> str:
        """Say it in short, and how to read all of it."""
        where = f"docs/{self.id}" if self.id == WIRE else f"turnlock explain {self.id}"
        return f"{self.id}: {self.sentence} ({where})"


_HELD: Final = {
    "K-1": "a sample of scripts is played twice, and a difference is reported as such, not as a"
    " violation; for our kernel tests read every import",
    "K-4": "it speaks of how a kernel is written; for ours tests compare the code with its tables",
    "K-5": "proved on our tables by `prove`, in tests and on demand",
    "K-6": "what a kernel retains cannot be seen from outside; the bounds that can are K-54 and"
    " K-56",
    "K-8": "the scripts hold well-formed deliveries only; for our wire tests send malformed ones",
    "K-60": "it speaks of how a kernel is written; what follows from it shows under K-53",
    "K-61": "the kernel does nothing with it; runtimes do",
}
"""What keeps the rules that receipts cannot show."""

_SECTIONS: Final = (
    Rule(
        "section 3",
        "deliveries",
        "A log and a tick are always accepted; an optional field that is null is absent, but for a"
        " result: there null counts.",
    ),
    Rule("section 4", "facts", "Facts happen in the order of the text, with the fields of it."),
    Rule("section 5", "admission", "Before all else, a delivery for another run is refused."),
    Rule(
        "section 6",
        "one invocation",
        "In each phase of an invocation, the table says what becomes of each delivery.",
    ),
    Rule(
        "section 9",
        "effects",
        "Each effect is owed as long as its row says; a wake for the earliest deadline, at the"
        " first instant at which it is over.",
    ),
    Rule("section 11", "reasons", "A refusal gives one reason, of the closed list."),
    Rule(
        "section 12",
        "receipts",
        "Every delivery is answered by a receipt: accepted or a reason, facts, effects.",
    ),
    Rule(WIRE, "by decision", "What kernel.md leaves open is as docs/wire.md says, by decision."),
)
"""What has no number of its own."""

RULES: Final[tuple[Rule, ...]] = (
    *(
        Rule(stated.id, stated.title, stated.sentence, _HELD.get(stated.id, ""))
        for stated in sorted(specification().rules, key=lambda it: it.number)
    ),
    *_SECTIONS,
)
"""In the order of their numbers; then the sections whose demands have no number of their own."""

_BY_ID: Final = {rule.id: rule for rule in RULES}


def rule_called(rule_id: str) -> Rule:
    """Return the rule with this id; one that kernel.md does not have is told by its id alone."""
    return _BY_ID.get(rule_id, Rule(rule_id, "", ""))
