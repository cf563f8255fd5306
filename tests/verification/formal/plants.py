"""For each property of the hand-written specification a text that breaks it, and where it shows."""

from __future__ import annotations

import re
from typing import NamedTuple

from turnlock.verification.formal.scope import MODULE, Scope, parsed, text_of


class Plant(NamedTuple):
    """One place of the text, what stands there instead, the scope, and constants of its own."""

    old: str
    new: str
    scope: str = "life"
    constants: dict[str, str] = {}  # noqa: RUF012 - never changed

    def text(self) -> str:
        """The specification with the bug. The place must stand there once."""
        whole = text_of(f"{MODULE}.tla")
        assert whole.count(self.old) == 1, (self.old, whole.count(self.old))
        return whole.replace(self.old, self.new)

    def read_scope(self) -> Scope:
        text = text_of(f"{MODULE}-{self.scope}.cfg")
        for name, value in self.constants.items():
            text, replaced = re.subn(rf"    {name} = .+", f"    {name} = {value}", text)
            assert replaced == 1, name
        return parsed(self.scope, text)


_DENY = """    /\\ Becomes(i, In("DENIED", calls[i]),
               Denied("deny", i, "decision", IF reason = None THEN "denied" ELSE reason))"""
_DENY_PAST_THE_DOOR = """    /\\ calls' = [calls EXCEPT ![i] = In("DENIED", calls[i])]
    /\\ facts' = <<Denied("deny", i, "decision", "denied")>>
    /\\ lives' = LivesAfter(lives, facts', Members)
    /\\ UNCHANGED <<now, epoch, turn, continuations, grants, issued, memory>>"""
_TWO = {"Calls": "2", "Sizes": "{2}", "MaxCalls": "2", "Gated": "{}"}

RULES = {
    # A retry is written down as a second start.
    "K31": Plant("IF next = 1\n", "IF TRUE\n"),
    # Results are counted: the first one settles the turn.
    "K50": Plant(
        "done    == \\A i \\in Range(t.order) : Terminal(c[i])",
        "done    == {i \\in Range(t.order) : Terminal(c[i])} # {}",
        constants=_TWO,
    ),
    # A denial takes a way of its own.
    "K51": Plant(_DENY, _DENY_PAST_THE_DOOR),
    # A turn of one call settles without a continuation.
    "K52": Plant("IF t.order = <<>> THEN continuations", "IF Len(t.order) < 2 THEN continuations"),
    # An authorised retry outlives the interrupt.
    "K53": Plant('[] c.phase = "RETRY_AUTHORISED" -> In("IN_DOUBT", c)', ""),
    # A closed turn is not remembered itself.
    "K54": Plant("\\o closed \\o <<entry(None)>>", "\\o closed"),
}

OTHERS = {
    "TypeOK": Plant('Becomes(i, In("IN_DOUBT", calls[i]),', 'Becomes(i, In("LOST", calls[i]),'),
    "K34": Plant("!.phase = phase, !.deadline = None]", "!.phase = phase]"),
    "K41": Plant(
        'others == IF scope = "once" THEN {} ELSE', "others == IF TRUE THEN {} ELSE", "grants"
    ),
    "TurnGrants": Plant('SelectSeq(g, LAMBDA x : x.scope # "turn")', "g", "grants"),
    "Unique": Plant("    /\\ call.id \\notin Members\n", ""),
    "K11": Plant("    /\\ NothingDue\n    /\\ Active\n", "    /\\ Active\n"),
    "K30": Plant(
        '    /\\ calls[i].phase \\in {"REQUESTED", "APPROVED"}\n',
        '    /\\ calls[i].phase \\in {"REQUESTED", "APPROVED", "SUCCEEDED"}\n',
    ),
    "K33": Plant(
        "        /\\ Ready(c)\n        /\\ IF Owed",
        '        /\\ Ready(c) \\/ c.phase = "STARTED"\n        /\\ IF Owed',
    ),
    "K35": Plant('In("RETRY_AUTHORISED", calls[i])', 'In("APPROVED", calls[i])'),
    "K40": Plant("/\\ issued' = issued + 1", "/\\ issued' = issued + 2", "grants"),
    "K42": Plant("Append(grants, grant)", "<<grant>>", "grants", {"MaxGrants": "2"}),
    "LastWord": Plant(
        'facts\' = Append(said, [type |-> type, input |-> "settle", turn |-> t.id])',
        'facts\' = <<[type |-> type, input |-> "settle", turn |-> t.id]>> \\o said',
    ),
    "NeverContinues": Plant(
        'SealTurn(t) ==\n    /\\ Is(t, {"OPEN"})',
        'SealTurn(t) ==\n    /\\ Is(t, {"OPEN", "INTERRUPTING"})',
    ),
    "K55": Plant("/\\ epoch' = epoch + 1", "/\\ epoch' = epoch"),
}
