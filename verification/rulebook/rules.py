"""Every rule of kernel.md, with its sentence, and how it is held where receipts cannot show it."""

from __future__ import annotations

from typing import Final

import attrs


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


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        "K-1",
        "sans-I/O",
        "Time is an argument; the same facts, delivery and time give the same verdict.",
        held="a sample of scripts is played twice, and a difference is reported as such, not as a"
        " violation; for our kernel tests read every import",
    ),
    Rule(
        "K-2",
        "decide, evolve",
        "State is the fold of facts, recovery folds the journal, and a refusal adds nothing.",
    ),
    Rule(
        "K-3",
        "effects owed",
        "A receive returns what it added to the effects owed; after recovery the same set is owed,"
        " with the same ids.",
    ),
    Rule(
        "K-4",
        "declared tables",
        "Every pair of phase and input stands in one table, and nothing else moves a phase.",
        held="it speaks of how a kernel is written; for ours tests compare the code with its"
        " tables",
    ),
    Rule(
        "K-5",
        "proved tables",
        "The tables are total, without overlap, reachable, absorbing at the end, never falling in"
        " rank.",
        held="proved on our tables by `prove`, in tests and on demand",
    ),
    Rule(
        "K-6",
        "bounds",
        "Everything retained is bounded, each bound with a name, a default and a source.",
        held="what a kernel retains cannot be seen from outside; the bounds that can are K-54 and"
        " K-56",
    ),
    Rule(
        "K-7",
        "ids",
        "Every id is made from run, epoch, turn, invocation and attempt, joined by `/`, with `/`"
        " and `%` escaped.",
    ),
    Rule(
        "K-8",
        "construction",
        "A delivery that cannot be built is refused before it is received.",
        held="the scripts hold well-formed deliveries only; for our wire tests send malformed ones",
    ),
    Rule(
        "K-9",
        "one commit",
        "A receive is accepted wholly or refused wholly; its facts are one commit, numbered without"
        " gaps.",
    ),
    Rule(
        "K-10",
        "the clock",
        "A time before the latest fact's is taken as that fact's time.",
    ),
    Rule(
        "K-11",
        "what is due",
        "Every receive first lets happen what has come due, oldest deadline first, whatever becomes"
        " of the delivery.",
    ),
    Rule(
        "K-20",
        "ids mean something within their turn",
        "An invocation id is looked up in the turn that is named; without one, what may be two"
        " calls is ambiguous.",
    ),
    Rule(
        "K-21",
        "opening a turn",
        "A turn opens when none is active, its id is neither remembered nor owed, its epoch is the"
        " next, its ids are unique and it is not both sealed and empty: checked in that order.",
    ),
    Rule(
        "K-22",
        "what names a turn",
        "Adding, sealing, interrupting, acknowledging and revoking reach only the turn, the"
        " continuation or the grant that they name.",
    ),
    Rule(
        "K-30",
        "first outcome wins",
        "The first outcome is frozen: a second is a duplicate or a conflicting duplicate, and"
        " replaces nothing.",
    ),
    Rule(
        "K-31",
        "lifecycle facts",
        "Each lifecycle fact happens at most once to an invocation, one of them ends it, and a"
        " second decision decides nothing.",
    ),
    Rule(
        "K-32",
        "nobody executes what was not shown",
        "An approval counts for the arguments whose digest it echoes; edited arguments replace"
        " them and have a digest of their own.",
    ),
    Rule(
        "K-33",
        "claim before start",
        "An accepted claim of the owed attempt is the only way to start: one approval, one start.",
    ),
    Rule(
        "K-34",
        "leases and deadlines",
        "A deadline is over when the time is strictly past it; a lease over is an execution lost.",
    ),
    Rule(
        "K-35",
        "in doubt",
        "What was started and lost is in doubt until a true report or somebody resolves it; nothing"
        " is silently executed again.",
    ),
    Rule(
        "K-36",
        "falsy results",
        "`null`, `0`, an empty text, `false` and an empty list are results.",
    ),
    Rule(
        "K-40",
        "scope",
        "An approval for a turn or a session issues a grant for the exact arguments that will run,"
        " or for the tool.",
    ),
    Rule(
        "K-41",
        "grants cover",
        "What a live grant covers is approved at once, naming the grant, the oldest first; what is"
        " pending, when the grant is issued.",
    ),
    Rule(
        "K-42",
        "grants end",
        "A grant ends by its scope, its expiry or a revocation, and by nothing else; a deny covers"
        " its own invocation.",
    ),
    Rule(
        "K-50",
        "settled by membership",
        "A turn is settled when it is sealed and every expected invocation is terminal.",
    ),
    Rule(
        "K-51",
        "one door",
        "Denied, rejected, failed and succeeded calls settle alike: a denial is a result like any"
        " other.",
    ),
    Rule(
        "K-52",
        "one continuation",
        "Settling asks for exactly one continuation, with the results in expected order, owed until"
        " it is acknowledged.",
    ),
    Rule(
        "K-53",
        "interrupt",
        "An interrupt denies what has not started, asks to cancel what runs, fails the rest when"
        " the grace is over, and never continues.",
    ),
    Rule(
        "K-54",
        "memory",
        "What has closed is remembered, so many entries and so long, and what comes again about it"
        " is late or reused.",
    ),
    Rule(
        "K-55",
        "epochs",
        "An opening that is delivered again with its epoch is refused for good.",
    ),
    Rule(
        "K-56",
        "limits",
        "Calls of a turn, grants in force and continuations owed are limited; what would go beyond"
        " is refused, last.",
    ),
    Rule(
        "K-57",
        "no deadline invented",
        "What was given no timeout, lease or grace waits for ever.",
    ),
    Rule(
        "section 4",
        "facts",
        "Facts happen in the order of the text, each with the fields that state needs.",
    ),
    Rule(
        "section 5",
        "admission",
        "Before all else, a delivery for another run is refused.",
    ),
    Rule(
        "section 9",
        "wake",
        "A wake is owed for the earliest deadline, at the first instant at which it is over.",
    ),
    Rule(
        "section 11",
        "reasons",
        "A refusal gives one reason, of the closed list.",
    ),
    Rule(
        "section 12",
        "receipts",
        "Every delivery is answered by a receipt: accepted or a reason, facts, effects.",
    ),
)
"""In the order of kernel.md; the sections are those whose demands have no number of their own."""

_BY_ID: Final = {rule.id: rule for rule in RULES}


def rule_called(rule_id: str) -> Rule:
    """Return the rule with this id. Raises `KeyError` where kernel.md has none."""
    return _BY_ID[rule_id]
