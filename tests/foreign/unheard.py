"""What goes wrong where two rules meet: of kinds that no other list has.

Deadlines and deliveries of one instant, epochs and limits that count something else, grants at their
last instant, what a refusal lists once more, observed calls, and single facts that a recovery misreads.
"""

# ruff: noqa: E501
# fmt: off
from __future__ import annotations

from typing import Final

from .handmade import Shelf
from .planting import Bug

_bug: Final = Shelf("unheard")

# ------------------------------------------------------------------------------ of one instant
_bug("an interrupt comes before what is due", "K-11", "run",
     "self._let_time_pass()", 'if mail.type != "interrupt":\n            self._let_time_pass()')
_bug("a report comes before the lease that is over", "K-11 K-34", "run",
     "self._let_time_pass()", 'if mail.type != "report":\n            self._let_time_pass()')
_bug("a renewal saves a lease that is over", "K-11 K-34", "run",
     "self._let_time_pass()", 'if mail.type != "renew":\n            self._let_time_pass()')
_bug("a turn that time has closed keeps the next one out", "K-11 K-21", "run",
     "self._let_time_pass()", "self._was = self.turn\n        self._let_time_pass()",
     'if self.turn is not None:\n            raise Refuse("turn_open" if self.turn.name', 'if self._was is not None:\n            raise Refuse("turn_open" if self._was.name')
_bug("a grant of no time reaches nothing that waits", "K-41 K-40 K-34", "acts",
     "if other.awaits and grant", "if ends != self.now and other.awaits and grant")
_bug("what is interrupted is remembered from its grace", "K-54 K-53", "acts",
     "list(turn.calls), self.now)", "list(turn.calls), turn.grace_until or self.now)")

# ------------------------------------------------------------------------------ epochs and limits
_bug("epochs are counted for each id", "K-21 K-55 K-7", "run",
     "        name, calls = str(mail.turn_id), mail.calls\n", "        name, calls = str(mail.turn_id), mail.calls\n        opened = sum(fact['type'] == 'TURN_OPENED' and fact['turn_id'] == name for fact in self.journal)\n",
     "mail.epoch != self.epochs + 1", "mail.epoch != opened + 1", "self.epochs += 1", "self.epochs = opened + 1")
_bug("an interrupted turn gives its epoch back", "K-21 K-55 K-7", "acts",
     'self._tell("TURN_INTERRUPTED", "settle", turn.name)', 'self._tell("TURN_INTERRUPTED", "settle", turn.name)\n            self.epochs -= 1')
_bug("a turn without calls has no epoch of its own", "K-21 K-55 K-7", "run",
     "self.epochs += 1", "self.epochs += 1 if calls or self.epochs == 0 else 0")
_bug("memory keeps one entry more", "K-54", "books",
     "> self._most", "> self._most + 1")
_bug("a memory of none keeps one", "K-54", "books",
     "> self._most", "> max(1, self._most)")
_bug("the limit of an opening counts gated calls", "K-56", "run",
     'if len(calls) > self.limits["calls"]', 'if len([one for one in calls if one["requires_approval"]]) > self.limits["calls"]')
_bug("grants are limited for each tool", "K-56", "run",
     "len(self.grants.live) >=", "len([one for one in self.grants if one.tool == call.tool]) >=")
_bug("a turn is reused where a remembered call has its name", "K-21 K-54 K-20", "run",
     "if self.memory.holds((name,), self.now) or", "if self.memory.holds((name,), self.now) or self.memory.holds_call(name, self.now) or")
_bug("the id of a remembered turn is that of a call", "K-20 K-54 S5", "books",
     "if len(entry) == 2 and entry[1] == name", "if entry[-1] == name")

# ------------------------------------------------------------------------------ grants
_bug("a second approval is refused, and its grant issued", "K-2 K-40 K-31 S6", "run",
     "raise call.second_decision(mail)", 'if call.phase == "APPROVED" and mail.approved and mail.scope != "once":\n                self._grant(call, mail)\n            raise call.second_decision(mail)')
_bug("a grant's expiry takes back what it approved", "K-42", "acts",
     'self._end_grant(grant.name, "GRANT_EXPIRED", "grant_over")', 'self._end_grant(grant.name, "GRANT_EXPIRED", "grant_over")\n        for call in self.turn.calls.values() if self.turn is not None else ():\n            if call.phase == "APPROVED" and grant.covers(call.tool, call.digest()):\n                call.phase = "REQUESTED"\n                self.review(call)')
_bug("a grant for the turn covers only what waits already", "K-41 K-40", "books",
     "if grant.covers(tool, digest):\n                return", 'if grant.scope != "turn" and grant.covers(tool, digest):\n                return')
_bug("a session begins with the next turn", "K-41 K-40", "acts",
     "            if grant is not None:\n                self._cover", "            if grant is not None and any(fact['type'] == 'TURN_OPENED' for fact in self.journal[[fact.get('grant_id') for fact in self.journal].index(grant.name):]):\n                self._cover")

# ------------------------------------------------------------------------------ attempts
_bug("a retry claimed by the lost worker is a duplicate", "K-33 K-31 S6", "call",
     "        if self.phase == STARTED:\n            mine", '        if self.phase == RETRY and mail.worker is not None and mail.worker == self.worker:\n            raise Refuse("duplicate")\n        if self.phase == STARTED:\n            mine')
_bug("a second attempt must be named", "K-33 S5 S3", "call",
     "if attempt is None:\n            return", 'if attempt is None:\n            if self.attempt > 1:\n                raise Refuse("stale_attempt")\n            return')
_bug("in doubt the attempt before may report, too", "K-33 S5", "call",
     "if attempt != expected:", "if attempt != expected and not (self.phase == IN_DOUBT and attempt == expected - 1 > 0):")

# ------------------------------------------------------------------------------ digests
_bug("a digest of the edited arguments counts as shown", "K-32", "run",
     "from .mail import Mail, Raw, Refuse\n", "from .mail import Mail, Raw, Refuse\nfrom .text import digest\n",
     "if shown is not None and shown != call.digest():", "if shown is not None and shown != call.digest() and shown != digest(mail.arguments):")
_bug("an added call's digest is that of no arguments", "K-32 S4", "acts",
     "from .text import joined, just_past\n", "from .text import digest, joined, just_past\n",
     "arguments_digest=call.digest(),", 'arguments_digest=call.digest() if source == "open_turn" else digest({}),')

# ------------------------------------------------------------------------------ listed once more
_bug("a duplicate lists what is owed again", "K-2 K-3", "run",
     'receipt = {"accepted": False, "reason": refused.reason}', 'receipt = {"accepted": False, "reason": refused.reason}\n            if refused.reason == "duplicate":\n                self._fresh += [key for key in self.owing if key not in self._fresh]')
_bug("a late report lists the continuation again", "K-2 K-3 K-52", "run",
     'receipt = {"accepted": False, "reason": refused.reason}', 'receipt = {"accepted": False, "reason": refused.reason}\n            if refused.reason == "late" and mail.type == "report":\n                self._fresh += [key for key in self.continuations.values() if key not in self._fresh]')
_bug("an acknowledgement lists the other continuations", "K-3 K-52", "run",
     "self.taken(str(mail.turn_id))", "self.taken(str(mail.turn_id))\n        self._fresh += [key for key in self.continuations.values() if key not in self._fresh]")
_bug("a late loss is taken, and nothing comes of it", "K-54 S5 K-20", "run",
     '        call = self._find(mail)\n        call.check_running("duplicate")', '        try:\n            call = self._find(mail)\n        except Refuse as refused:\n            if refused.reason == "late":\n                return\n            raise\n        call.check_running("duplicate")')

# ------------------------------------------------------------------------------ facts and results
_bug("the continuation leaves added calls out", "K-52 K-50", "acts",
     "if turn.calls:\n", "added = {fact['call']['invocation_id'] for fact in self.journal if fact['type'] == 'CALL_ADDED'}\n            turn.calls = {name: call for name, call in turn.calls.items() if name not in added} or turn.calls\n            if turn.calls:\n")
_bug("an added call's request has no agent", "S4", "ledger",
     "            **self.agent,\n", '            **(self.agent if source != "add_call" else {}),\n')
_bug("who edited is not told", "S4", "run",
     "decided_by=mail.decided_by,\n        )\n        self.review", "decided_by=mail.decided_by if mail.arguments is None else None,\n        )\n        self.review")
_bug("nothing is resolved while the turn is interrupted", "K-53 S6 K-35", "call",
     'if way == "retry":\n', 'if interrupting and not (way == "retry" and self.observed):\n            raise Refuse("interrupting")\n        if way == "retry":\n')
_bug("a report without a turn finds none that is interrupted", "S5 K-20 K-53", "run",
     "elif turn is None:\n                raise", "elif turn is None or turn.phase == INTERRUPTING:\n                raise",
     "if turn is not None and name in turn.calls:", "if turn is not None and turn.phase != INTERRUPTING and name in turn.calls:")
_bug("a log for another run is taken", "S5 S3", "run",
     "mail.run_id is not None and mail", 'mail.type != "log" and mail.run_id is not None and mail')

# ------------------------------------------------------------------------------ observed calls
_bug("an observed call has the attempt that its claim names", "K-58 K-33", "run",
     "call.start(mail.worker, self._until(mail.lease))", "call.start(mail.worker, self._until(mail.lease))\n        if call.observed:\n            call.attempt = mail.attempt or 1")
_bug("an observed call cannot be resolved", "K-58 K-35", "call",
     'if way == "retry":\n            if self.observed:\n                raise Refuse("not_owned")\n', 'if self.observed and self.phase == IN_DOUBT:\n            raise Refuse("not_owned")\n        if way == "retry":\n')
_bug("an observed call has no lease", "K-58 K-34", "run",
     "self._until(mail.lease))\n        held", "None if call.observed else self._until(mail.lease))\n        held")
_bug("who runs an observed call is not told", "K-58 K-33 S4", "run",
     "call.start(mail.worker, ", "call.start(None if call.observed else mail.worker, ")

# ------------------------------------------------------------------------------ what a recovery misreads
_bug("recovery asks again for what a grant approved", "K-2 K-41", "restore",
     "call.approve(edited, ", 'if "grant_id" not in fact or fact["input"] != "grant":\n            call.approve(edited, ')
_bug("recovery takes a settled turn for two epochs", "K-2 K-55 K-21", "restore",
     "run.turn = None", 'run.turn = None\n    run.epochs += fact["type"] == "TURN_INTERRUPTED"')
_bug("recovery forgets the approval deadline of an added call", "K-2 K-11", "restore",
     'call.approve_by = fact.get("deadline")', 'call.approve_by = fact.get("deadline") if fact["input"] == "open_turn" else None')
_bug("recovery forgets the lease of a retry", "K-2 K-34", "restore",
     ', fact.get("lease_until"))', ', fact.get("lease_until") if kind == "TOOL_EXECUTION_STARTED" else None)')
_bug("a second recovery takes doubt for a start", "K-2 K-35", "restore",
     "    return fresh\n", "    fresh.times = getattr(run, 'times', 0) + 1\n    if fresh.times > 1 and fresh.turn is not None:\n        for call in fresh.turn.calls.values():\n            if call.phase == IN_DOUBT:\n                call.phase = 'STARTED'\n    return fresh\n")
_bug("recovery puts added calls first", "K-2 K-52", "restore",
     'run.review(turn.add(fact["call"]))', 'run.review(turn.add(fact["call"]))\n        turn.calls = dict(sorted(turn.calls.items(), key=lambda one: one[0] != fact["call"]["invocation_id"]))')
_bug("recovery forgets why a call was rejected", "K-2 K-52", "restore",
     'call.finish(FAILED, fact["error"])', 'call.finish(FAILED, fact["error"] if fact["cause"] != "rejected" else "")')

UNHEARD: Final[tuple[Bug, ...]] = tuple(_bug.bugs)
