"""What people who write such a kernel get wrong: each a reading of the text that it does not allow."""

# ruff: noqa: E501, Q000, Q003, COM819
# fmt: off
from __future__ import annotations

from typing import Final

from .handmade import Shelf
from .planting import Bug

_bug: Final = Shelf("semantic")

# ------------------------------------------------------------------------------ attempts, claims
_bug("the retry runs under the attempt of the lost one", "K-33 K-31", "call",
     "self.attempt += 1  # K-33", "self.attempt = 1")
_bug("a claim without a worker is taken for the holder's own", "K-33", "call",
     "mail.worker is not None and mail.worker == self.worker", "mail.worker == self.worker")
_bug("any second claim is a duplicate", "K-33", "call",
     "mail.worker is not None and mail.worker == self.worker", "True")
_bug("a second claim is never a duplicate", "K-33", "call",
     "mail.worker is not None and mail.worker == self.worker", "False")
_bug("a second worker takes the claim over", "K-33", "call",
     'raise Refuse("duplicate" if mine else "already_started")',
     'if mine:\n                raise Refuse("duplicate")')
_bug("what is in doubt is simply claimed again", "K-35 K-33", "call",
     'raise Refuse("not_authorised")', "return")
_bug("a gated call is claimed before anybody approved it", "K-33 K-32", "call",
     'raise Refuse("not_approved")', "return")
_bug("a claim may name the attempt that is over", "K-33 S5", "call",
     "expected = self.attempt + 1  # S5", "expected = attempt if attempt == self.attempt else self.attempt + 1  # S5")
_bug("an attempt is never stale", "K-33 S5", "call",
     'raise Refuse("stale_attempt")', "return")
_bug("only older attempts are stale", "K-33 S5", "call",
     "if attempt != expected:", "if attempt < expected:")
_bug("a report of an attempt not yet claimed is taken", "K-33 S5", "call",
     "expected = self.attempt  # S5\n", "expected = max(self.attempt, attempt if self.phase == RETRY else 0)\n")
_bug("an attempt is looked at before any start", "K-33 S5", "call",
     "else:\n            return  # S5", "else:\n            expected = 1  # S5")
_bug("attempt 0 is no attempt at all", "K-33 S5 S3", "call",
     "if attempt is None:", "if not attempt:")
_bug("the retry keeps the lease of the lost attempt", "K-34 K-57 K-31", "call",
     "self.lease_until = lease_until  # K-34", "self.lease_until = lease_until or self.lease_until")
_bug("the retry keeps the worker of the lost attempt", "K-33 K-31", "call",
     "self.worker = worker  # S6", "self.worker = worker or self.worker  # S6")
_bug("a retry is told as a second start", "K-31", "run",
     "again = call.phase == RETRY", "again = False")
_bug("STARTED tells the attempt before", "K-33 S4", "run",
     '"attempt": call.attempt,\n', '"attempt": max(1, call.attempt - 1),\n')

# ------------------------------------------------------------------------------ outcomes
_bug("the last outcome wins", "K-30", "call",
     'raise Refuse("duplicate" if same else "conflicting_duplicate")',
     'self.outcome = (kind, payload)\n            raise Refuse("duplicate" if same else "conflicting_duplicate")')
_bug("a second outcome is never a conflict", "K-30", "call",
     '"duplicate" if same else "conflicting_duplicate"', '"duplicate"')
_bug("every second outcome is a conflict", "K-30", "call",
     '"duplicate" if same else "conflicting_duplicate"', '"conflicting_duplicate"')
_bug("error and result of one text are one outcome", "K-30", "call",
     "self.outcome[0] == kind and canonical", "canonical")
_bug("two errors are the same whatever their text", "K-30", "call",
     'raise Refuse("duplicate" if same', 'same = same or kind == FAILED == self.outcome[0]\n            raise Refuse("duplicate" if same')
_bug("a report about a denied call is a conflict", "K-30 S6 K-51", "call",
     'if self.phase == DENIED:  # S6\n            raise Refuse("already_settled")',
     'if self.phase == DENIED:  # S6\n            raise Refuse("conflicting_duplicate")')
_bug("what is in doubt takes no report", "K-35", "call",
     'if self.not_begun:  # S6 K-30 K-33\n            raise Refuse("not_started")  # S6 K-30 K-33\n        if self.outcome is not None:',
     'if self.not_begun or self.phase == IN_DOUBT:  # S6\n            raise Refuse("not_started")  # S6\n        if self.outcome is not None:')
_bug("an authorised retry takes no report of the lost attempt", "K-35 K-33 S6", "call",
     'if self.not_begun:  # S6 K-30 K-33\n            raise Refuse("not_started")  # S6 K-30 K-33\n        if self.outcome is not None:',
     'if self.phase == RETRY:\n            raise Refuse("stale_attempt")\n        if self.not_begun:  # S6 K-30 K-33\n            raise Refuse("not_started")  # S6 K-30 K-33\n        if self.outcome is not None:')
_bug("a report starts what nobody claimed", "K-33 K-30 S6", "call",
     'if self.not_begun:  # S6 K-30 K-33\n            raise Refuse("not_started")  # S6 K-30 K-33\n        if self.outcome is not None:',
     "if self.outcome is not None:")
_bug("the retry stays owed when a late report settles the call", "K-3 K-35", "acts",
     'source, result=result\n        )  # S4 K-30 K-36 K-59\n        self.review(call)', 'source, result=result)  # S4 K-36 K-59\n        _ = (call)')
_bug("the execute stays owed for a call that was rejected", "K-3", "acts",
     'error=error, cause=cause\n        )  # S4 K-30 K-59\n        self.review(call)', 'error=error, cause=cause)  # S4 K-59\n        _ = (call)')
_bug("a started call can be rejected", "K-33 K-31 S6", "call",
     'raise Refuse("already_started")  # S6 K-33 K-30\n\n    def check_outcome', 'return  # S6\n\n    def check_outcome')
_bug("a gated call cannot be rejected before it is approved", "K-33 S6 K-51 K-31", "call",
     "if not self.not_begun:  # S6", 'if self.awaits:\n            raise Refuse("not_approved")\n        if not self.not_begun:  # S6')
_bug("a null result is no result", "K-36", "mail",
     'self.has_result: bool = "result" in given', 'self.has_result: bool = given.get("result") is not None')
_bug("a falsy result is no result", "K-36", "mail",
     'self.has_result: bool = "result" in given', 'self.has_result: bool = bool(given.get("result"))')
_bug("an error text decides: a result with error-like text fails", "K-36 K-30", "run",
     "if mail.has_result:", 'if mail.has_result and mail.result != "error":')
_bug("a null result is left out of the fact", "K-36 S4", "ledger",
     ' if value is not None or name == "result"', " if value is not None")
_bug("a falsy result reaches the model as null", "K-36 K-52", "call",
     '"reason")] = payload', '"reason")] = payload or None')

# ------------------------------------------------------------------------------ doubt
_bug("what is lost is owed again at once", "K-35", "call",
     "self.phase = IN_DOUBT  # S6 K-35 K-34", "self.phase = RETRY  # S6 K-35 K-34")
_bug("a lease that runs out fails the call", "K-34 K-35 K-11", "acts",
     'partial(self._lose, call, "lease_over")',
     'lambda call=call: (self._fail(call, "lease over", "lease_over", "reported"), self._close_if_done())')
_bug("the lease goes on ticking in doubt", "K-34 K-11 K-35", "acts",
     "if call.phase == STARTED and call.lease_until is not None:",
     "if not call.over and call.lease_until is not None and call.attempt:")
_bug("a renewal brings back what was lost", "K-34 K-35", "call",
     "if self.phase != STARTED:  # S6 K-34 K-35\n            raise Refuse(lost)",
     'if self.phase != STARTED:  # S6 K-34 K-35\n            if lost == "lease_lost" and self.phase == IN_DOUBT:\n                self.phase = STARTED\n                return\n            raise Refuse(lost)')
_bug("a renewal is refused of a call without a lease", "K-34 S6", "call",
     "if self.phase != STARTED:  # S6 K-34 K-35", 'if lost == "lease_lost" and self.lease_until is None:\n            raise Refuse(lost)\n        if self.phase != STARTED:  # S6 K-35')
_bug("a renewal adds to the lease that is left", "K-34", "run",
     "call.lease_until = self._until(mail.lease)", "call.lease_until = (call.lease_until or self.now) + (mail.lease or 0)")
_bug("a renewal never makes a lease shorter", "K-34", "run",
     "call.lease_until = self._until(mail.lease)", "call.lease_until = max(call.lease_until or 0, self.now + (mail.lease or 0))")
_bug("lose of what is in doubt already is told again", "K-35 S6", "call",
     "if self.phase != STARTED:  # S6 K-34 K-35\n            raise Refuse(lost)",
     'if self.phase != STARTED and lost == "lease_lost":  # S6 K-35\n            raise Refuse(lost)')
_bug("losing what runs is refused while it has a lease", "K-35 S6", "run",
     'call.check_running("duplicate")', 'call.check_running("duplicate")\n        if call.lease_until is not None:\n            raise Refuse("not_in_doubt")')
_bug("a retry is authorised while the turn is being interrupted", "K-53 S6", "call",
     'raise Refuse("interrupting")  # S6 K-35 K-53', "pass")
_bug("a retry is authorised for what still runs", "K-35 S6", "call",
     "if self.phase not in {IN_DOUBT, RETRY}:", "if self.phase not in {IN_DOUBT, RETRY, STARTED}:")
_bug("a second authorisation is accepted", "K-31 S6 K-35", "call",
     'raise Refuse("duplicate")  # S6 K-35\n\n    def approve', 'return\n\n    def approve')
_bug("an authorised retry can no longer be resolved", "K-35 S6", "call",
     "if self.phase not in {IN_DOUBT, RETRY}:", 'if self.phase != IN_DOUBT and way != "retry" or self.phase not in {IN_DOUBT, RETRY}:')
_bug("a resolution is told as a report", "K-59 S4", "run",
     '"resolve_result")', '"report_result")')
_bug("an error by resolution has the cause of a report", "S4 K-59 K-30 K-35", "run",
     '"resolve_error", "resolved"', '"resolve_error", "reported"')

# ------------------------------------------------------------------------------ decisions
_bug("a second approval is a duplicate whatever its scope", "S6 K-40 K-31 K-42", "call",
     'return ("approved", scope, counts,', 'return ("approved",')
_bug("a second approval is compared with its match at scope once, too", "S6 K-40 S3 K-31", "call",
     'counts = match if scope != "once" else None', "counts = match")
_bug("edited arguments do not make another decision", "S6 K-32 K-31 K-40", "call",
     "None if edited is None else canonical(edited))", "None)")
_bug("to edit to what was there is no edit", "S6 K-32 K-31 K-40", "run",
     "decision_of(mail.scope, mail.match, mail.arguments))",
     "decision_of(mail.scope, mail.match, None if mail.arguments == call.arguments else mail.arguments))")
_bug("two denials are compared with their reasons", "S6 K-31 K-42 K-51", "run",
     'call.decision = ("denied",)', 'call.decision = ("denied", mail.reason)')
_bug("a second decision after the end is already settled", "S6 K-31 K-30 K-40", "call",
     "if self.decision is None:", 'if self.over:\n            return Refuse("already_settled")\n        if self.decision is None:')
_bug("a covered call was decided by nobody", "K-41 S6 K-31 K-40", "acts",
     "self._tell_life(\n            call, \"TOOL_APPROVED\", \"grant\"", "call.decision = None\n        self._tell_life(\n            call, \"TOOL_APPROVED\", \"grant\"")
_bug("a covered call counts as approved with the grant's scope", "K-41 S6 K-31 K-40", "acts",
     'decision_of("once", None, None)', "decision_of(grant.scope, grant.match, None)")
_bug("an expired approval counts as a denial by somebody", "S6 K-31 K-42 K-51", "acts",
     '"approval expired", "expiry")', '"approval expired", "expiry")\n        call.decision = ("denied",)')
_bug("an interrupted call counts as denied by somebody", "S6 K-31 K-53", "run",
     'self._deny(call, "interrupt", "interrupted", "interrupt")',
     'self._deny(call, "interrupt", "interrupted", "interrupt")\n                call.decision = ("denied",)')
_bug("a call that needs no approval takes one all the same", "K-33 S6 K-31 K-32 K-40", "call",
     "return self.phase == REQUESTED and self.gated", "return self.phase == REQUESTED")
_bug("a deny takes back an approval", "S6 K-31 K-42", "run",
     "if not call.awaits:", "if not call.awaits and (mail.approved or call.phase != \"APPROVED\"):")
_bug("an approval counts whatever was shown", "K-32", "run",
     "if shown is not None and shown != call.digest():", "if False:")
_bug("the digest is held against the edited arguments", "K-32", "run",
     "from .mail import Mail, Raw, Refuse\n", "from .mail import Mail, Raw, Refuse\nfrom .text import digest\n",
     "if shown is not None and shown != call.digest():",
     "if shown is not None and shown != digest(call.arguments if mail.arguments is None else mail.arguments):")
_bug("edited arguments make the digest unnecessary", "K-32", "run",
     "if shown is not None and", "if mail.arguments is None and shown is not None and")
_bug("edited arguments are told and not executed", "K-32", "call",
     "self.arguments = edited", "_ = edited")
_bug("edited arguments are merged into the old ones", "K-32", "call",
     "self.arguments = edited", "self.arguments = {**self.arguments, **edited}")
_bug("edited arguments are executed and not told", "K-32 S4", "run",
     "arguments=mail.arguments,  # S4 K-32", "")
_bug("the digest keeps the order of keys", "K-32", "text",
     "sort_keys=True, ", "")
_bug("the digest has spaces", "K-32", "text",
     'separators=(",", ":"), ', "")
_bug("a deny without a reason has an empty one", "S4 K-51", "run",
     'mail.reason or "denied"', 'mail.reason or ""')
_bug("who denied is not told", "S4", "run",
     '"decision", mail.decided_by', '"decision"')
_bug("who approved is not told", "S4", "run",
     "decided_by=mail.decided_by,  # S4", "")

# ------------------------------------------------------------------------------ grants
_bug("a grant for the tool covers every tool", "K-40 K-41", "books",
     "tool == self.tool and (self.match", "(self.match")
_bug("a grant always counts for its arguments alone", "K-40 K-41", "books",
     '(self.match == "tool" or digest == self.digest)', "digest == self.digest")
_bug("a grant always counts for its tool", "K-40 K-41", "books",
     '(self.match == "tool" or digest == self.digest)', "True")
_bug("the youngest grant covers", "K-41 S4", "books",
     "for grant in self:  # K-41 K-42", "for grant in reversed(list(self)):  # K-41")
_bug("a grant for a turn outlives it", "K-42 K-40", "books",
     'if grant.scope == "turn":', "if False:")
_bug("every grant ends with the turn", "K-42 K-40", "books",
     'if grant.scope == "turn":', "if True:")
_bug("an interrupt ends every grant", "K-42 K-53", "run",
     "turn.phase = INTERRUPTING  # K-53 S8", "turn.phase = INTERRUPTING\n        self.grants.live.clear()")
_bug("grants for a turn survive an interrupt", "K-42 K-40", "acts",
     "self.grants.turn_over()", "if turn.phase == SEALED:\n            self.grants.turn_over()")
_bug("a deny revokes the grants for its tool", "K-42", "run",
     'call.decision = ("denied",)  # S6', 'call.decision = ("denied",)\n            self.grants.live = {n: g for n, g in self.grants.live.items() if g.tool != call.tool}')
_bug("a grant does not reach what waits already", "K-41", "acts",
     "for other in self._the_turn().calls.values():  # K-41", "for other in ():  # K-41")
_bug("a grant reaches waiting calls before the approval only", "K-41", "acts",
     "for other in self._the_turn().calls.values():  # K-41",
     "names = list(self._the_turn().calls)\n        for other in [self._the_turn().calls[n] for n in names[: names.index(call.name)]]:  # K-41")
_bug("a grant approves the first waiting call alone", "K-41", "acts",
     "self.review(other)  # K-41 K-3", "self.review(other)  # K-41 K-3\n                break")
_bug("a grant approves waiting calls last first", "K-41 S4", "acts",
     "for other in self._the_turn().calls.values():  # K-41", "for other in reversed(self._the_turn().calls.values()):  # K-41")
_bug("the approval that issued a grant names it", "K-41 S4 K-40", "run",
     "decided_by=mail.decided_by,  # S4", "decided_by=mail.decided_by,\n            grant_id=self.grants.next_name() if lasting else None,")
_bug("a covered call's approval is asked for all the same", "K-41 K-31", "acts",
     "self._cover(call, grant)  # K-41\n            else:",
     'self._tell_life(call, "TOOL_APPROVAL_REQUESTED", source, arguments=call.arguments, arguments_digest=call.digest())\n                self._cover(call, grant)  # K-41\n            else:')
_bug("a covered call's approval does not name the grant", "K-41 S4", "acts",
     ', scope="once", grant_id=grant.name', ', scope="once"')
_bug("an approval by a grant has the grant's scope", "K-41 K-40", "acts",
     'scope="once", grant_id', "scope=grant.scope, grant_id")
_bug("an approval by a grant has the input of an approval", "K-59 K-41", "acts",
     '"TOOL_APPROVED", "grant"', '"TOOL_APPROVED", "approve"')
_bug("a grant is for the arguments that were asked, not those that run", "K-40 K-32", "run",
     "call.approve(mail.arguments, decision", "before = call.digest()\n        call.approve(mail.arguments, decision",
     "self._grant(call, mail)  # K-40", "call.digest, kept = (lambda: before), call.digest\n            self._grant(call, mail)\n            call.digest = kept")
_bug("scope once issues a grant, too", "K-40", "run",
     "if lasting:  # K-40", "if True:  # K-40")
_bug("scope turn issues no grant", "K-40", "run",
     "if lasting:  # K-40", 'if mail.scope == "session":  # K-40')
_bug("a grant id is used again", "K-40 K-7", "books",
     "self.issued + 1)", "len(self.live) + 1)")
_bug("grants count from 0", "K-40 K-7", "books",
     "self.issued + 1)", "self.issued)")
_bug("an expired grant goes without a fact", "K-42 K-11", "acts",
     'self._end_grant(grant.name, "GRANT_EXPIRED", "grant_over")', "del self.grants.live[grant.name]")
_bug("a grant never expires", "S9 K-42 K-11 K-40 K-34", "acts",
     "if grant.ends is not None:", "if False:")
_bug("only session grants expire", "S9 K-42 K-11 K-40 K-34", "acts",
     "if grant.ends is not None:", 'if grant.ends is not None and grant.scope == "session":')
_bug("a revocation takes back what the grant approved", "K-42", "run",
     "self._end_grant(mail.grant_id", "for call in self.turn.calls.values() if self.turn else ():\n            if call.phase == \"APPROVED\":\n                call.phase = \"REQUESTED\"\n                self.review(call)\n        self._end_grant(mail.grant_id")
_bug("a revocation is accepted of what is not in force", "K-22 K-42", "run",
     'raise Refuse("unknown_grant")', "return")
_bug("a grant's end has the turn that issued it", "S4 K-42", "acts",
     "self.turn.name if self.turn is not None else None, grant_id=name",
     'next((f["turn_id"] for f in self.journal if f["type"] == "GRANT_ISSUED" and f["grant_id"] == name), None), grant_id=name')
_bug("GRANT_ISSUED comes before TOOL_APPROVED", "S4 K-40 K-31", "run",
     "call.approve(mail.arguments, decision_of(mail.scope, mail.match, mail.arguments))",
     "call.approve(mail.arguments, decision_of(mail.scope, mail.match, mail.arguments))\n        if lasting:\n            self._grant(call, mail)",
     "self.review(call)\n        if lasting:\n            self._grant(call, mail)", "self.review(call)")

# ------------------------------------------------------------------------------ turns
_bug("the turn settles when all have reported, denied ones aside", "K-50 K-51 K-53", "turn",
     "all(call.over for call in self.calls.values())", 'all(call.phase in {"SUCCEEDED", "FAILED"} for call in self.calls.values())')
_bug("the turn settles with its last call's end, whatever the others do", "K-50 K-53", "turn",
     "all(call.over for call in self.calls.values())", "not self.calls or list(self.calls.values())[-1].over")
_bug("the turn settles when any call is over", "K-50", "turn",
     "all(call.over for call in self.calls.values())", "not self.calls or any(call.over for call in self.calls.values())")
_bug("a turn of denied calls alone goes without a continuation", "K-51 K-52", "acts",
     "if turn.calls:  # K-52", 'if any(call.phase != DENIED for call in turn.calls.values()):  # K-52')
_bug("the continuation leaves denied calls out", "K-52 K-51", "turn",
     "for call in self.calls.values()]", 'for call in self.calls.values() if call.phase != "DENIED"]')
_bug("the continuation tells its results backwards", "K-52", "turn",
     "[call.told() for call in self.calls.values()]", "[call.told() for call in reversed(self.calls.values())]")
_bug("the continuation tells results by their ids", "K-52", "turn",
     "[call.told() for call in self.calls.values()]", "[call.told() for _, call in sorted(self.calls.items())]")
_bug("a denied call is told as failed", "K-52 K-51 S9", "call",
     '"status": phase.lower()', '"status": "succeeded" if phase == SUCCEEDED else "failed"')
_bug("an open turn settles when all are over", "K-50 S8", "acts",
     "if turn.phase == OPEN or not turn.all_over:", "if not turn.all_over or (turn.phase == OPEN and not turn.calls):",
     "if turn.phase == SEALED:", "if turn.phase in (OPEN, SEALED):")
_bug("sealing does not settle what is over already", "K-50 S8 K-52", "run",
     'self._tell("TURN_SEALED", "seal_turn", turn.name)  # S4 K-59 K-22\n        self._close_if_done()', 'self._tell("TURN_SEALED", "seal_turn", turn.name)')
_bug("a turn sealed without calls stays open", "K-50 S8 K-52", "turn",
     "return all(", "return bool(self.calls) and all(")
_bug("a turn without calls continues, too", "K-52", "acts",
     "if turn.calls:  # K-52", "if True:  # K-52")
_bug("an interrupted turn continues", "K-53 K-52", "acts",
     'self._tell("TURN_INTERRUPTED", "settle", turn.name)', 'self._tell("TURN_INTERRUPTED", "settle", turn.name)\n            self.owe_continuation(turn)')
_bug("an interrupted turn is told as settled", "K-53 S4", "acts",
     'self._tell("TURN_INTERRUPTED", "settle"', 'self._tell("TURN_SETTLED", "settle"')
_bug("the closing fact has the input that ended the last call", "K-59", "acts",
     'self._tell("TURN_SETTLED", "settle", turn.name)', 'self._tell("TURN_SETTLED", self._facts[-1]["input"], turn.name)')
_bug("the continuation is taken before it was given", "K-22 K-52", "run",
     "mail.turn_id not in owed", "mail.turn_id not in self.continuations")
_bug("any acknowledgement takes the oldest continuation", "K-22 K-52", "run",
     "mail.turn_id not in owed", "not owed",
     "self.taken(str(mail.turn_id))", "self.taken(next(iter(self.continuations)))",)
_bug("a continuation is owed until the next turn opens", "K-52 K-3", "run",
     "self.epochs += 1  # K-21", "for owed in list(self.continuations):\n            self.taken(owed)\n        self.epochs += 1  # K-21")
_bug("an acknowledgement is accepted again and again", "K-22 K-52 K-3", "ledger",
     "del self.owing[self.continuations.pop(turn_id)]", "_ = self.continuations[turn_id]")
_bug("an acknowledgement is no fact", "K-52 S4 K-22", "run",
     'self._tell("CONTINUATION_TAKEN", "acknowledge", mail.turn_id)', "pass")
_bug("no turn opens while a continuation is owed", "K-21", "run",
     'raise Refuse("turn_open" if self.turn.name == name else "turn_busy")  # K-21', 'raise Refuse("turn_open" if self.turn.name == name else "turn_busy")  # K-21\n        if self.continuations:\n            raise Refuse("turn_busy")')
_bug("a turn whose continuation is owed may open anew", "K-21 K-54", "run",
     " or name in self.continuations", "")
_bug("an id that is remembered is reused before a turn is busy", "K-21 K-54", "run",
     "if self.turn is not None:  # K-21", 'if self.memory.holds((name,), self.now):\n            raise Refuse("turn_reused")\n        if self.turn is not None:  # K-21')
_bug("refused openings count as epochs", "K-55 K-2 K-21 K-7", "run",
     'raise Refuse("empty_turn")', 'self.epochs += 1\n            raise Refuse("empty_turn")')
_bug("a later epoch opens, too", "K-55 K-21", "run",
     "mail.epoch != self.epochs + 1", "mail.epoch <= self.epochs")
_bug("the epoch is that of the turn before", "K-55 K-21", "run",
     "mail.epoch != self.epochs + 1", "mail.epoch != self.epochs")
_bug("the epoch is looked at last", "K-55 K-21", "run",
     '        if mail.epoch is not None and mail.epoch != self.epochs + 1:  # K-21 K-55\n            raise Refuse("stale_epoch")  # K-21 K-55\n', "",
     '        if len(calls) > self.limits', '        if mail.epoch is not None and mail.epoch != self.epochs + 1:\n            raise Refuse("stale_epoch")\n        if len(calls) > self.limits')
_bug("two calls of one id are one", "K-21", "run",
     'raise Refuse("duplicate_invocation")\n        if mail.sealed', "pass\n        if mail.sealed")
_bug("a turn opened unsealed must have calls", "K-21", "run",
     "if mail.sealed and not calls:", "if not calls:")
_bug("an empty turn settles at once", "K-21 K-52", "run",
     '        if mail.sealed and not calls:  # K-21\n            raise Refuse("empty_turn")  # K-21\n', "",
     'self._gate(self.turn.add(spec), spec, "open_turn")  # S4 K-59', 'self._gate(self.turn.add(spec), spec, "open_turn")\n        if mail.sealed and not calls:\n            self._close_if_done()')
_bug("a call is added to a sealed turn", "K-22 S8", "run",
     'raise Refuse("turn_sealed")', "pass")
_bug("an id is looked at before the seal", "K-22", "run",
     '        if turn.phase == SEALED:  # K-22 S8\n            raise Refuse("turn_sealed")', '        if mail.call["invocation_id"] in turn.calls:\n            raise Refuse("duplicate_invocation")\n        if turn.phase == SEALED:  # K-22 S8\n            raise Refuse("turn_sealed")')
_bug("a call is added while the turn is interrupted", "K-22 S8 K-53", "run",
     'if turn.phase == INTERRUPTING:  # K-22 S8\n            raise Refuse("interrupting")  # K-22 S8\n        if mail.call', "if mail.call")
_bug("an added call replaces the one of its id", "K-22", "run",
     'raise Refuse("duplicate_invocation")\n        if len(turn', "pass\n        if len(turn")
_bug("an added call is not gated", "S4 K-31 K-41 K-59 K-22 K-33", "run",
     'self._gate(turn.add(mail.call), mail.call, "add_call")', "self.review(turn.add({**mail.call, \"requires_approval\": False}))")
_bug("an added call's request has the input of an opening", "K-59", "run",
     'mail.call, "add_call")', 'mail.call, "open_turn")')
_bug("a second seal is accepted", "K-22 S8", "run",
     'if turn.phase == SEALED:  # K-22 S8\n            raise Refuse("duplicate")', 'if turn.phase == SEALED:  # K-22 S8\n            return\n        if turn.phase == SEALED:\n            raise Refuse("duplicate")')
_bug("a seal while interrupting is a duplicate", "K-22 S8", "run",
     'raise Refuse("interrupting")  # K-22 S8\n        turn.phase', 'raise Refuse("duplicate")  # K-22 S8\n        turn.phase')

# ------------------------------------------------------------------------------ interrupt
_bug("an interrupt leaves what waits for approval", "K-53", "run",
     "if call.not_begun:  # K-53", "if call.not_begun and not call.awaits:  # K-53")
_bug("an interrupt leaves what is approved", "K-53", "run",
     "if call.not_begun:  # K-53", 'if call.phase == "REQUESTED":  # K-53')
_bug("an interrupt denies what runs", "K-53 K-31", "run",
     "if call.not_begun:  # K-53", 'if call.not_begun or call.phase == "STARTED":  # K-53')
_bug("an interrupt fails what is in doubt", "K-53", "run",
     "elif call.phase == RETRY:  # K-53 S6", 'elif call.phase == IN_DOUBT:\n                self._fail(call, "interrupted; outcome unknown", "grace_over", "interrupted")\n            elif call.phase == RETRY:  # K-53 S6')
_bug("an interrupt cancels nothing", "K-53 S9", "ledger",
     "if call.phase == STARTED and turn.phase == INTERRUPTING:", "if False:")
_bug("an interrupt cancels the first of what runs", "K-53 S9", "run",
     "            self.review(call)\n        self._close", '            self.review(call)\n            if call.phase == "STARTED":\n                break\n        self._close')
_bug("a second interrupt begins the grace anew", "K-53 S8", "run",
     'raise Refuse("duplicate")\n        turn.phase = INTER', "pass\n        turn.phase = INTER")
_bug("an interrupt without a grace waits for ever", "K-53 K-57 S3", "mail",
     'given.get("grace", 10.0)', 'given.get("grace", 1e18)')
_bug("an interrupt without a grace has none", "K-53 S3", "mail",
     'given.get("grace", 10.0)', 'given.get("grace", 0.0)')
_bug("the grace begins at the last fact", "K-53", "run",
     "turn.grace_until = self.now + mail.grace", "turn.grace_until = self.latest + mail.grace")
_bug("an interrupt leaves an authorised retry", "K-53", "run",
     "call.phase = IN_DOUBT  # K-53 S6", "pass")
_bug("what is interrupted takes no report", "K-53 S6", "run",
     "call = self._find(mail)  # S5\n        if mail.has_result:", 'call = self._find(mail)  # S5\n        if self.turn.phase == INTERRUPTING:\n            raise Refuse("interrupting")\n        if mail.has_result:')
_bug("a lease is not renewed while interrupting", "K-53 S6 K-34", "run",
     'call.check_running("lease_lost")', 'if self.turn.phase == INTERRUPTING:\n            raise Refuse("interrupting")\n        call.check_running("lease_lost")')
_bug("an interrupt of a turn in which nothing runs waits for the grace", "K-53 S8", "run",
     "self.review(call)  # K-53 K-3\n        self._close_if_done()", "self.review(call)  # K-53 K-3")
_bug("the grace fails the last first", "K-53 S4", "acts",
     "for call in self._the_turn().calls.values():  # K-53 S4", "for call in reversed(self._the_turn().calls.values()):  # K-53 S4")
_bug("the grace leaves what is in doubt", "K-53", "acts",
     "if not call.over:  # K-53", "if call.phase == STARTED:  # K-53")
_bug("the grace leaves the turn open where something was in doubt", "K-53 S8", "acts",
     "self._close_if_done()\n\n    def _close", "if not any(c.phase == \"IN_DOUBT\" for c in self._the_turn().calls.values()):\n            self._close_if_done()\n\n    def _close",
     "if not call.over:  # K-53", "if not call.over and call.phase == STARTED:  # K-53")
_bug("a cancel stays owed when its call is lost", "K-53 S9 K-3", "ledger",
     "if call.phase == STARTED and turn.phase == INTERRUPTING:", 'if call.phase in (STARTED, "IN_DOUBT") and call.attempt and turn.phase == INTERRUPTING:')
_bug("an interrupt reaches whatever turn is active", "K-53 K-22", "run",
     "def _on_interrupt(self, mail: Mail) -> None:\n        turn = self._reach(mail)", "def _on_interrupt(self, mail: Mail) -> None:\n        turn = self.turn or self._reach(mail)")

# ------------------------------------------------------------------------------ memory and ids
_bug("denied calls are not remembered", "K-54", "acts",
     "list(turn.calls), self.now)", "[n for n, c in turn.calls.items() if c.phase != DENIED], self.now)")
_bug("interrupted turns are not remembered", "K-54", "acts",
     "self.memory.close(turn.name, list(turn.calls), self.now)", "if turn.phase == SEALED:\n            self.memory.close(turn.name, list(turn.calls), self.now)")
_bug("empty turns are not remembered", "K-54", "acts",
     "self.memory.close(turn.name, list(turn.calls), self.now)", "if turn.calls:\n            self.memory.close(turn.name, list(turn.calls), self.now)")
_bug("a lookup makes a memory younger", "K-54 K-2", "books",
     "return at is not None and now - at <= self._seconds", "if at is not None and now - at <= self._seconds:\n            self.closed[entry] = now\n            return True\n        return False")
_bug("the youngest memory leaves first", "K-54", "books",
     "del self.closed[next(iter(self.closed))]", "del self.closed[next(reversed(self.closed))]")
_bug("a turn is remembered before its calls", "K-54", "books",
     "        for name in names:  # K-54\n", "        self._enter((turn_id,), at)\n        for name in names:  # K-54\n",
     "        self._enter((turn_id,), at)\n\n", "\n")
_bug("calls are remembered last first", "K-54", "books",
     "for name in names:  # K-54", "for name in reversed(names):  # K-54")
_bug("the memory counts turns, not entries", "K-54", "books",
     "while len(self.closed) > self._most:", "while sum(len(e) == 1 for e in self.closed) > self._most:")
_bug("a memory as old as may be is gone", "K-54 K-34", "books",
     "now - at <= self._seconds", "now - at < self._seconds")
_bug("what is too old is thrown away when looked at", "K-54 K-2", "books",
     "at = self.closed.get(entry)  # K-54 K-20", "self.closed = {e: t for e, t in self.closed.items() if now - t <= self._seconds}\n        at = self.closed.get(entry)")
_bug("a call is remembered without its turn", "K-54 K-20", "run",
     "raise Refuse(self._elsewhere(mail.turn_id, (mail.turn_id, name)))", 'raise Refuse("late" if self.memory.holds_call(name, self.now) else self._elsewhere(mail.turn_id, (mail.turn_id, name)))')
_bug("a call of a turn that is remembered is late, though never of it", "K-54 K-20 S5", "run",
     "(mail.turn_id, name)))  # S5 K-20", "(mail.turn_id,)))  # S5 K-20")
_bug("an ambiguous id means the active turn", "K-20 S5", "run",
     'raise Refuse("ambiguous_invocation")', "pass")
_bug("an id without a turn is late when any turn held it", "K-20 S5", "run",
     'raise Refuse("ambiguous_invocation")', 'raise Refuse("late")')
_bug("an id without a turn needs one", "K-20 S5", "run",
     "remembered = self.memory.holds_call(name, self.now)  # S5", 'raise Refuse("ambiguous_invocation")\n            remembered = False  # S5')
_bug("a call of another turn is found by its id", "K-20 S5", "run",
     "if turn is None or turn.name != mail.turn_id:  # S5 K-20", "if turn is None or (turn.name != mail.turn_id and name not in turn.calls):  # S5 K-20")
_bug("no turn active is told before what is late", "K-54 S5 K-22 K-20", "run",
     "if self.memory.holds(entry, self.now):  # S5", "if self.turn is not None and self.memory.holds(entry, self.now):  # S5")
_bug("what names another turn is late only when no turn is active", "K-54 S5 K-22 K-20", "run",
     "if self.memory.holds(entry, self.now):  # S5", "if self.turn is None and self.memory.holds(entry, self.now):  # S5")

# ------------------------------------------------------------------------------ time
_bug("the clock runs backwards", "K-10", "run",
     "max(mail.now, self.latest)", "mail.now")
_bug("the clock is that of the latest delivery", "K-10 K-2", "run",
     "max(mail.now, self.latest)", "max(mail.now, self.latest, self.now)")
_bug("a refusal moves the clock", "K-10 K-2", "run",
     'receipt = {"accepted": False', 'self.latest = self.now\n            receipt = {"accepted": False')
_bug("time passes after the delivery", "K-11", "run",
     "        self._let_time_pass()  # K-11\n", "",
     "        effects = [self.owing", "        self._let_time_pass()\n        effects = [self.owing")
_bug("what came due is not told with a refusal", "K-11", "run",
     'receipt = {"accepted": False, "reason": refused.reason}', 'receipt = {"accepted": False, "reason": refused.reason}\n            self._facts = []')
_bug("what is for another run brings no time", "K-11 S5", "run",
     "        self._let_time_pass()  # K-11\n", "        if mail.run_id in (None, self.name):\n            self._let_time_pass()\n")
_bug("a tick alone brings time", "K-11", "run",
     "        self._let_time_pass()  # K-11\n", '        if mail.type == "tick":\n            self._let_time_pass()\n')
_bug("a log brings no time", "K-11", "run",
     "        self._let_time_pass()  # K-11\n", '        if mail.type != "log":\n            self._let_time_pass()\n')
_bug("what came due is told at its deadline", "K-11", "acts",
     "min(due, key=lambda deadline: deadline[:3])[3]()", "first = min(due, key=lambda deadline: deadline[:3])\n            late, self.now = self.now, first[0]\n            first[3]()\n            self.now = late")
_bug("deadlines come due by kind, not by age", "K-11", "acts",
     "deadline[:3])[3]", "(deadline[1], deadline[0], deadline[2]))[3]")
_bug("deadlines come due in the order of the calls", "K-11", "acts",
     "deadline[:3])[3]", "(deadline[2], deadline[0], deadline[1]))[3]")
_bug("one deadline comes due at a time", "K-11", "acts",
     "min(due, key=lambda deadline: deadline[:3])[3]()  # K-11", "min(due, key=lambda deadline: deadline[:3])[3]()  # K-11\n            return")
_bug("a deadline is over when it is reached", "K-34", "acts",
     "if self.now > deadline[0]", "if self.now >= deadline[0]")
_bug("a wake is for the deadline itself", "S9 K-34", "text",
     "math.nextafter(deadline, math.inf)", "deadline")
_bug("a wake is owed once", "S9 K-3", "run",
     "if after is not None and after != wake:", "if after is not None and wake is None:")
_bug("a wake is listed every time", "S9 K-3", "run",
     "if after is not None and after != wake:", "if after is not None:")
_bug("a wake is for later deadlines only when they are nearer", "S9 K-3", "run",
     "if after is not None and after != wake:", 'if after is not None and (wake is None or after["at"] < wake["at"]):')
_bug("no wake is owed for a grant", "S9", "acts",
     "earliest = min((deadline[0] for deadline in self._deadlines())", "earliest = min((deadline[0] for deadline in self._deadlines() if deadline[1] != 2)")
_bug("another run is told only of what changes state", "S5", "run",
     "if mail.run_id is not None and mail.run_id != self.name:", 'if mail.type not in ("log", "tick") and mail.run_id is not None and mail.run_id != self.name:')
_bug("a delivery without a run is for another", "S5 S3", "run",
     "if mail.run_id is not None and mail.run_id != self.name:", "if mail.run_id != self.name:")

# ------------------------------------------------------------------------------ observed calls
_bug("an observed call is owed", "K-58", "call",
     "if self.observed:  # K-58 S9 K-3 K-33\n            return False", "if False:\n            return False")
_bug("an observed call needs no approval", "K-58 K-33", "call",
     'if self.awaits:  # S6 K-33\n', 'if self.awaits and not self.observed:  # S6 K-33\n')
_bug("an observed call is never gated", "K-58", "call",
     'self.gated: bool = spec["requires_approval"]', 'self.gated: bool = spec["requires_approval"] and not spec["observed"]')
_bug("an observed call is retried by order", "K-58", "call",
     'raise Refuse("not_owned")', "pass")
_bug("a retry of an observed call is not owned in any phase", "K-58 S6", "call",
     'if self.phase not in {IN_DOUBT, RETRY}:', 'if way == "retry" and self.observed:\n            raise Refuse("not_owned")\n        if self.phase not in {IN_DOUBT, RETRY}:')
_bug("while interrupting that comes before not owned", "K-58 S6 K-53", "call",
     "if self.observed:  # K-58\n                raise", "if self.observed and not interrupting:  # K-58\n                raise")
_bug("the claim of an observed call must name attempt 1", "K-58 S5 K-33", "call",
     "if claiming and self.ready:", "if claiming and (self.ready or (self.observed and self.not_begun)):")
_bug("an observed call is not cancelled", "K-58 K-53", "ledger",
     "if call.phase == STARTED and turn.phase", "if call.phase == STARTED and not call.observed and turn.phase")
_bug("an observed call is not interrupted", "K-58 K-53", "run",
     "if call.not_begun:  # K-53", "if call.not_begun and not call.observed:  # K-53")

# ------------------------------------------------------------------------------ effects, facts
_bug("every receive lists all that is owed", "K-3", "run",
     "for key in self._fresh if key in self.owing]", "for key in self.owing]")
_bug("what a deadline brought is owed and not listed", "K-3 K-11", "run",
     "self._let_time_pass()  # K-11", "self._let_time_pass()\n        self._fresh.clear()")
_bug("a refused delivery lists no effects", "K-3 K-11", "run",
     "effects = [self.owing", 'effects = [] if "reason" in receipt else [self.owing')
_bug("the idempotency key has the attempt", "S9 K-7", "ledger",
     'joined("call", *where)', 'joined("call", *where, call.attempt + 1)')
_bug("ids leave the epoch out", "K-7 S9", "ledger",
     "(self.name, turn.epoch, turn.name, call.name)", "(self.name, turn.name, call.name)")
_bug("ids leave the run out", "K-7 S9", "ledger",
     "(self.name, turn.epoch, turn.name, call.name)", "(turn.epoch, turn.name, call.name)")
_bug("a continuation's id leaves the epoch out", "K-7 S9", "ledger",
     'joined("continue", self.name, turn.epoch, turn.name)', 'joined("continue", self.name, turn.name)')
_bug("sequence numbers count from 0", "S4 K-9", "ledger",
     "len(self.journal) + 1", "len(self.journal)")
_bug("lifecycle facts do not say which agent", "S4", "ledger",
     "            **self.agent,\n", "")
_bug("a lost lease is told as lost by a person", "K-59", "acts",
     'partial(self._lose, call, "lease_over")', 'partial(self._lose, call, "lose")')
_bug("the end by grace is told as a report", "K-59 K-53", "acts",
     '"grace_over", "interrupted"', '"report_error", "interrupted"')
_bug("an interrupt's denials have the input of a deny", "K-59 K-53", "run",
     '"interrupt", "interrupted", "interrupt")', '"deny", "interrupted", "interrupt")')
_bug("an interrupt's denials have the cause of a decision", "S4 K-53", "run",
     '"interrupt", "interrupted", "interrupt")', '"interrupt", "interrupted", "decision")')
_bug("TURN_SETTLED comes before the outcome that settles", "S4 K-50 K-51", "acts",
     "call.finish(SUCCEEDED, result)  # S6 K-30\n", 'call.finish(SUCCEEDED, result)  # S6 K-30\n        turn = self._the_turn()\n        if turn.phase == SEALED and turn.all_over:\n            self._tell("TURN_SETTLED", "settle", turn.name)\n',
     'self._tell("TURN_SETTLED", "settle", turn.name)\n            if turn.calls', 'if not any(f["type"] == "TURN_SETTLED" for f in self._facts):\n                self._tell("TURN_SETTLED", "settle", turn.name)\n            if turn.calls')
_bug("nothing is owed for calls after the first", "K-3 S9 K-33", "run",
     'self._gate(self.turn.add(spec), spec, "open_turn")  # S4 K-59', 'self._gate(self.turn.add(spec), spec, "open_turn")\n            self._fresh = self._fresh[:1]')

# ------------------------------------------------------------------------------ recovery
_bug("a recovered run has the clock at its beginning", "K-2 K-10", "restore",
     'fresh.latest = fact["at"]', "pass")
_bug("a recovered run counts epochs anew", "K-2 K-55 K-7 K-3", "restore",
     'run.epochs = fact["epoch"]  # K-55 K-2', "pass")
_bug("a recovered run remembers nothing", "K-2 K-54", "restore",
     'run.memory.close(turn.name, list(turn.calls), fact["at"])', "pass")
_bug("a recovered run remembers interrupted turns no more", "K-2 K-54", "restore",
     'run.memory.close(turn.name, list(turn.calls), fact["at"])', 'if fact["type"] == "TURN_SETTLED":\n        run.memory.close(turn.name, list(turn.calls), fact["at"])')
_bug("recovery loses the continuations that are owed", "K-2 K-3 K-52", "restore",
     "run.owe_continuation(turn)", "pass")
_bug("recovery owes what was taken", "K-2 K-3 K-52", "restore",
     'run.taken(fact["turn_id"])', "pass")
_bug("recovery owes a continuation for interrupted turns", "K-2 K-3 K-52 K-53", "restore",
     'if fact["type"] == "TURN_SETTLED" and turn.calls:', "if turn.calls:")
_bug("recovery forgets edited arguments", "K-2 K-32 K-3", "restore",
     'edited = fact.get("arguments")', "edited = None")
_bug("recovery forgets when a grant expires", "K-2 K-42 K-3", "restore",
     'ends=fact.get("expires_at")', "ends=None")
_bug("recovery forgets revocations", "K-2 K-42", "restore",
     '{"GRANT_REVOKED", "GRANT_EXPIRED"}', '{"GRANT_EXPIRED"}')
_bug("recovery forgets that a turn's grants end with it", "K-2 K-42", "restore",
     "run.grants.turn_over()", "pass")
_bug("recovery forgets the interrupt", "K-2 K-53 K-3", "restore",
     'turn.phase, turn.grace_until = INTERRUPTING, fact["grace_until"]', 'turn.grace_until = fact["grace_until"]')
_bug("recovery does not withdraw the retry of an interrupted turn", "K-2 K-53 K-3", "restore",
     "call.phase = IN_DOUBT", "pass")
_bug("recovery forgets who holds a claim", "K-2 K-33", "restore",
     'call.start(fact.get("worker"),', "call.start(None,")
_bug("recovery forgets leases", "K-2 K-34 K-3", "restore",
     'fact.get("worker"), fact.get("lease_until"))', 'fact.get("worker"), None)')
_bug("recovery forgets that a lease was renewed", "K-2 K-34 K-3", "restore",
     'call.lease_until = fact["lease_until"]', "pass")
_bug("recovery takes a start for a doubt", "K-2 K-35", "restore",
     'call.start(fact.get("worker"), fact.get("lease_until"))', 'call.start(fact.get("worker"), fact.get("lease_until"))\n        call.lose()')
_bug("recovery owes what had been started", "K-2 K-3 K-33", "restore",
     'if kind in {"TOOL_EXECUTION_STARTED", "EXECUTION_RETRIED"}:', 'if kind == "EXECUTION_RETRIED":')
_bug("recovery takes an expired approval for a denial", "K-2", "restore",
     'if fact["cause"] == "decision":', 'if fact["cause"] != "interrupt":')
_bug("recovery forgets that somebody denied", "K-2", "restore",
     'call.decision = ("denied",)', "pass")
_bug("recovery forgets the deadline of an approval", "K-2 K-11 K-3", "restore",
     'call.approve_by = fact.get("deadline")', "pass")
_bug("recovery forgets the scope of an approval", "K-2", "restore",
     'decision_of(fact["scope"], fact.get("match"), edited)', 'decision_of("once", None, edited)')
_bug("recovery counts the grants that live", "K-2 K-40 K-7", "restore",
     "run.grants.issue(grant)", "run.grants.issue(grant)\n        run.grants.issued = len(run.grants.live)")
_bug("recovery forgets that a turn was sealed", "K-2 K-50", "restore",
     "turn.phase = SEALED", "pass")
_bug("recovery forgets calls that were added", "K-2 K-3", "restore",
     'run.review(turn.add(fact["call"]))', "pass")
_bug("recovery forgets what was observed", "K-2 K-58 K-3", "restore",
     "run.review(run.turn.add(spec))", 'run.review(run.turn.add({**spec, "observed": False}))')
_bug("a recovered run numbers its facts anew", "K-2 S4 K-9", "restore",
     "fresh.journal.append(fact)", "pass")

# ------------------------------------------------------------------------------ limits
_bug("the limit of grants counts those that were issued", "K-56", "run",
     "len(self.grants.live) >=", "self.grants.issued >=")
_bug("the limit of grants refuses scope once, too", "K-56", "run",
     "if lasting and len(self.grants", "if len(self.grants")
_bug("the limit of grants comes before the digest", "K-56 K-32", "run",
     "        shown = mail.arguments_digest  # K-32\n", '        if mail.scope != "once" and len(self.grants.live) >= self.limits["grants"]:\n            raise Refuse("limit_reached")\n        shown = mail.arguments_digest\n')
_bug("the limit of calls comes before the ids", "K-56 K-21", "run",
     "        if len({call[", '        if len(calls) > self.limits["calls"]:\n            raise Refuse("limit_reached")\n        if len({call[')
_bug("the limit of calls holds for openings alone", "K-56", "run",
     'if len(turn.calls) >= self.limits["calls"]:', "if False:")
_bug("the limit of calls holds for added calls alone", "K-56", "run",
     'if len(calls) > self.limits["calls"]:', "if False:")
_bug("the limit of continuations is not looked at", "K-56", "run",
     'if len(self.continuations) >= self.limits["continuations"]:', "if False:")
_bug("a turn may bring one continuation too many", "K-56", "run",
     'if len(self.continuations) >= self.limits["continuations"]:', 'if len(self.continuations) > self.limits["continuations"]:')

SEMANTIC: Final[tuple[Bug, ...]] = tuple(_bug.bugs)
"""In the order of the text."""
