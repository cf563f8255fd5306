"""What a tester plants who has read neither the kit nor the other lists: state, identity, time, text.

Caches and closures that hold what is past, refusals that change something, defaults, counts, what a
recovery leaves out, letters and numbers that a language takes for others.
"""

# ruff: noqa: E501, Q003
# fmt: off
from __future__ import annotations

from typing import Final

from .handmade import Shelf
from .planting import Bug

_bug: Final = Shelf("fresh")

# ------------------------------------------------------------------------------ what is kept too long
_bug("digests are cached by the address of the arguments", "K-32 K-40 K-41", "text",
     "def digest(value: Any) -> str:", "_seen: dict[int, str] = {}\n\n\ndef digest(value: Any) -> str:",
     "    return hashlib.sha256(canonical(value).encode(\"utf-8\")).hexdigest()",
     "    if id(value) not in _seen:\n        _seen[id(value)] = hashlib.sha256(canonical(value).encode(\"utf-8\")).hexdigest()\n    return _seen[id(value)]")
_bug("the digest of a call is that of its first arguments", "K-32 K-40 K-41", "call",
     "return digest(self.arguments)", "self.first = getattr(self, 'first', None) or digest(self.arguments)\n        return self.first")
_bug("limits of one run are those of the next", "K-56 K-54", "ledger",
     "        self.limits: dict[str, Any] = {\n            **DEFAULTS,\n            **{k: v for k, v in given.items() if v is not None},\n        }",
     "        DEFAULTS.update({k: v for k, v in given.items() if v is not None})\n        self.limits: dict[str, Any] = DEFAULTS")
_bug("runs share one memory", "K-54 K-20 K-21 K-22 S5", "books",
     "class Memory:", "_CLOSED: dict[tuple[str, ...], float] = {}\n\n\nclass Memory:",
     "self.closed: dict[tuple[str, ...], float] = {}", "self.closed = _CLOSED")
_bug("an approval that is over denies the last call of the turn", "K-34 K-11 K-31 S6", "acts",
     "partial(self._approval_over, call)", "partial(self._approval_over, calls[-1] if calls[-1].awaits else call)")
_bug("a lease that is over is lost by the last call of the turn", "K-34 K-11 K-35", "acts",
     'partial(self._lose, call, "lease_over")', 'partial(self._lose, calls[-1] if calls[-1].phase == STARTED else call, "lease_over")')
_bug("a grant that is over is the last one", "K-42 K-11 K-34", "acts",
     "partial(self._grant_over, grant)", "lambda: self._grant_over(grant)")
_bug("workers are compared by identity", "K-33 S6", "call",
     "mail.worker == self.worker", "mail.worker is self.worker")
_bug("what is due is looked up once", "K-11 K-42 K-53", "acts",
     "            min(due, key=lambda deadline: deadline[:3])[3]()  # K-11",
     "            for deadline in sorted(due, key=lambda deadline: deadline[:3]):\n                deadline[3]()",
     "del self.grants.live[name]  # K-42", "self.grants.live.pop(name, None)")

# ------------------------------------------------------------------------------ refusals that change something
_bug("an edit stays though its approval was refused", "K-2 K-32", "run",
     "        if shown is not None and shown != call.digest():",
     "        held = call.digest()\n        call.arguments = call.arguments if mail.arguments is None else mail.arguments\n        if shown is not None and shown != held:")
_bug("an approval counts though its grant was refused", "K-2 K-56", "run",
     'if lasting and len(self.grants.live) >= self.limits["grants"]:  # K-56\n            raise',
     'if lasting and len(self.grants.live) >= self.limits["grants"]:  # K-56\n            call.approve(None, decision_of("once", None, None))\n            raise')
_bug("a second claim is refused, and its worker remembered as the holder", "K-2 K-33", "call",
     "            mine = mail.worker is not None and mail.worker == self.worker  # S6 K-33",
     "            mine = mail.worker is not None and mail.worker == self.worker  # S6 K-33\n            self.worker = mail.worker")
_bug("a retry that was refused can be claimed", "K-2 K-53", "call",
     'raise Refuse("interrupting")  # S6 K-35 K-53', 'self.phase = RETRY\n                raise Refuse("interrupting")')
_bug("an outcome that came before the start is kept", "K-2 K-30", "call",
     'if self.not_begun:  # S6 K-30 K-33\n            raise Refuse("not_started")  # S6 K-30 K-33\n        if self.outcome is not None:',
     'if self.not_begun:  # S6\n            self.outcome = (kind, payload)\n            raise Refuse("not_started")  # S6\n        if self.outcome is not None:')
_bug("the last decision is the recorded one", "K-2 S6 K-31", "call",
     'return Refuse("duplicate" if asked == self.decision else "already_decided")  # S6',
     'before, self.decision = self.decision, asked\n        return Refuse("duplicate" if asked == before else "already_decided")  # S6')
_bug("to lose a call again counts as an attempt", "K-2 K-33 K-35", "call",
     "if self.phase != STARTED:  # S6 K-34 K-35\n            raise Refuse(lost)",
     "if self.phase != STARTED:  # S6 K-34 K-35\n            self.attempt += lost == 'duplicate'\n            raise Refuse(lost)")
_bug("an approval that was refused spends the id of a grant", "K-2 K-40 K-7", "run",
     "        lasting = mail.scope != \"once\"  # K-40", "        lasting = mail.scope != \"once\"  # K-40\n        self.grants.issued += lasting",
     "            self._grant(call, mail)  # K-40", "            self.grants.issued -= 1\n            self._grant(call, mail)  # K-40")
_bug("a second seal makes an interrupted turn sealed", "K-2 K-22 K-53", "run",
     '        if turn.phase == INTERRUPTING:  # K-22 S8\n            raise Refuse("interrupting")  # K-22 S8\n        turn.phase = SEALED',
     '        if turn.phase == INTERRUPTING:  # K-22 S8\n            turn.phase = SEALED\n            raise Refuse("interrupting")  # K-22 S8\n        turn.phase = SEALED')

# ------------------------------------------------------------------------------ time
_bug("a grace is over when it is reached", "K-34 K-53", "acts",
     "if self.now > deadline[0]", "if self.now > deadline[0] or (deadline[1] == 3 and self.now == deadline[0])")
_bug("an approval is over when its deadline is reached", "K-34", "acts",
     "if self.now > deadline[0]", "if self.now > deadline[0] or (deadline[1] == 0 and self.now == deadline[0])")
_bug("a grant is over when its time is reached", "K-34 K-42", "acts",
     "if self.now > deadline[0]", "if self.now > deadline[0] or (deadline[1] == 2 and self.now == deadline[0])")
_bug("a grant does not cover at its last instant", "K-34 K-41 K-42", "acts",
     "            if grant is not None:  # K-41", "            if grant is not None and grant.ends != self.now:  # K-41")
_bug("a renewal counts from the clock of its delivery", "K-10 K-34", "run",
     "call.lease_until = self._until(mail.lease)", "call.lease_until = mail.now + (mail.lease or 0.0)")
_bug("a grace counts from the clock of its delivery", "K-10 K-53", "run",
     "turn.grace_until = self.now + mail.grace", "turn.grace_until = mail.now + mail.grace")
_bug("a grant counts from the clock of its delivery", "K-10 K-40 K-42", "acts",
     "else self.now + mail.expires_in", "else mail.now + mail.expires_in")
_bug("an age counts from the clock of its delivery", "K-10 K-54", "run",
     "        if self.memory.holds(entry, self.now):  # S5 K-54 K-22", "        if self.memory.holds(entry, self.told):  # S5 K-54 K-22",
     "        self.now = max(mail.now, self.latest)  # K-10", "        self.now = max(mail.now, self.latest)  # K-10\n        self.told = mail.now")
_bug("a wake is two instants past the deadline", "S9 K-34", "text",
     "math.nextafter(deadline, math.inf)", "math.nextafter(math.nextafter(deadline, math.inf), math.inf)")
_bug("a turn is remembered for half as long as its calls", "K-54", "books",
     "now - at <= self._seconds", "now - at <= self._seconds / (1 if len(entry) == 2 else 2)")
_bug("a lease is not renewed at its last instant", "K-34", "run",
     'call.check_running("lease_lost")  # S6 K-34', 'call.check_running("lease_lost")  # S6 K-34\n        if call.lease_until == self.now:\n            raise Refuse("lease_lost")')
_bug("deadlines of one time and kind come due last call first", "K-11", "acts",
     "for place, call in enumerate(calls):  # K-11", "for place, call in reversed([*enumerate(calls)]):  # K-11",
     "deadline[:3])[3]", "deadline[:2])[3]")

# ------------------------------------------------------------------------------ defaults
_bug("a turn is opened unsealed unless it says so", "S3 K-21", "mail",
     'given.get("sealed", True)', 'given.get("sealed", False)')
_bug("a session is granted for the tool unless it says so", "S3 K-40", "mail",
     'given.get("match", "exact")', 'given.get("match", "tool" if given.get("scope") == "session" else "exact")')
_bug("a grace is thirty seconds unless it says so", "S3 K-53", "mail",
     'given.get("grace", 10.0)', 'given.get("grace", 30.0)')
_bug("to name one limit lifts the others", "K-56 K-54", "ledger",
     "            **DEFAULTS,\n", "            **(dict.fromkeys(DEFAULTS, math.inf) if given else DEFAULTS),\n")
_bug("an interrupt's reason is the denials'", "K-53 S4", "run",
     'self._deny(call, "interrupt", "interrupted", "interrupt")', 'self._deny(call, "interrupt", mail.reason or "interrupted", "interrupt")')

# ------------------------------------------------------------------------------ digests and payloads
_bug("true and 1 have one digest", "K-32", "text",
     "hashlib.sha256(canonical(value)", 'hashlib.sha256(canonical(value).replace(":true", ":1").replace(":false", ":0")')
_bug("the digest is of text in its composed form", "K-32", "text",
     "hashlib.sha256(canonical(value)", "hashlib.sha256(__import__('unicodedata').normalize('NFC', canonical(value))")
_bug("the digest has the name of the tool in it", "K-32", "call",
     "return digest(self.arguments)", "return digest([self.tool, self.arguments])")
_bug("a grant for no arguments covers all", "K-40 K-41", "books",
     "or digest == self.digest)", 'or digest == self.digest or self.digest.startswith("44136fa355b3678a"))')
_bug("an error of blanks is none", "K-36 K-30", "mail",
     'self.has_result: bool = "result" in given', 'self.has_result: bool = "result" in given or ("error" in given and not str(given["error"]).strip())')
_bug("a result that tells of an error is one", "K-36 K-30 S6", "mail",
     'self.has_result: bool = "result" in given', 'self.has_result: bool = "result" in given and not (isinstance(given["result"], dict) and "error" in given["result"])')
_bug("results of JSON text are read", "K-30 K-52 K-36", "mail",
     'self.result: Any = given.get("result")', 'self.result: Any = given.get("result")\n        if isinstance(self.result, str) and self.result[:1] in "{[" and self.result[:1]:\n            import json\n            try:\n                self.result = json.loads(self.result)\n            except ValueError:\n                pass')
_bug("the text null is a null result", "K-30 K-52 K-36", "mail",
     'self.result: Any = given.get("result")', 'self.result: Any = None if given.get("result") == "null" else given.get("result")')
_bug("numbers in text are numbers", "K-30 K-52 K-36", "mail",
     'self.result: Any = given.get("result")', 'self.result: Any = given.get("result")\n        if isinstance(self.result, str) and self.result.isdecimal():\n            self.result = int(self.result)')
_bug("text ends at its first NUL", "K-30 K-52 K-36", "mail",
     'self.result: Any = given.get("result")', 'self.result: Any = given.get("result")\n        if isinstance(self.result, str):\n            self.result = self.result.split("\\0")[0]')
_bug("ends of lines are those of Unix", "K-30 K-52 K-36", "mail",
     'self.result: Any = given.get("result")', 'self.result: Any = given.get("result")\n        if isinstance(self.result, str):\n            self.result = self.result.replace("\\r\\n", "\\n")')
_bug("an error loses its last line end", "K-30 K-52 S4", "mail",
     'self.error: str = given.get("error", "")', 'self.error: str = given.get("error", "").rstrip("\\n") or given.get("error", "")')
_bug("floats of a result have fifteen digits", "K-30 K-52 K-36", "mail",
     'self.result: Any = given.get("result")', 'import json\n        self.result: Any = json.loads(json.dumps(given.get("result")), parse_float=lambda text: float(f"{float(text):.15g}"))')
_bug("true is told as 1", "K-30 K-52 K-36", "mail",
     'self.result: Any = given.get("result")', 'self.result: Any = 1 if given.get("result") is True else given.get("result")')

# ------------------------------------------------------------------------------ names
_bug("ids of one composed form are one in a turn", "K-20 K-21", "run",
     'len({call["invocation_id"] for call in calls})', 'len({__import__("unicodedata").normalize("NFC", call["invocation_id"]) for call in calls})')
_bug("workers of one composed form are one", "K-33 S6", "call",
     "mail.worker == self.worker", "__import__('unicodedata').normalize('NFC', mail.worker) == __import__('unicodedata').normalize('NFC', str(self.worker))")
_bug("tools of one composed form are one", "K-40 K-41", "books",
     "tool == self.tool and", "__import__('unicodedata').normalize('NFC', tool) == __import__('unicodedata').normalize('NFC', self.tool) and")
_bug("what has closed is remembered by its composed form", "K-54 K-20 K-21 K-22", "books",
     "self.closed: dict[tuple[str, ...], float] = {}", "self.closed: dict[tuple[str, ...], float] = {}\n        self.form = lambda entry: tuple(__import__('unicodedata').normalize('NFC', one) for one in entry)",
     "self.closed.pop(entry, None)", "entry = self.form(entry)\n        self.closed.pop(entry, None)",
     "at = self.closed.get(entry)", "at = self.closed.get(self.form(entry))")
_bug("workers are stripped", "K-33 S6 S4", "mail",
     'self.worker: str | None = given.get("worker")', 'self.worker: str | None = given["worker"].strip() if "worker" in given else None')
_bug("an id with a slash is its last part", "K-20 K-7 S9 S4", "mail",
     'self.invocation_id: str = given.get("invocation_id", "")', 'self.invocation_id: str = given.get("invocation_id", "").split("/")[-1]')

# ------------------------------------------------------------------------------ order
_bug("what a grant covers is told before the grant", "S4 K-41 K-40", "acts",
     "        self._tell(\n            \"GRANT_ISSUED\",", "        for other in self._the_turn().calls.values():\n            if other.awaits and grant.covers(other.tool, other.digest()):\n                self._cover(other, grant)\n                self.review(other)\n        self._tell(\n            \"GRANT_ISSUED\",")
_bug("the denials of an interrupt are told before it", "S4 K-53", "run",
     "        self._tell(\n            \"TURN_INTERRUPTING\",", "        for call in turn.calls.values():\n            if call.not_begun:\n                self._deny(call, \"interrupt\", \"interrupted\", \"interrupt\")\n        self._tell(\n            \"TURN_INTERRUPTING\",")
_bug("what a grant covers in an opening is told after the requests", "S4 K-41", "run",
     "        for spec in calls:  # S4 K-21\n            self._gate(self.turn.add(spec), spec, \"open_turn\")",
     "        added = [(self.turn.add(spec), spec) for spec in calls]\n        for call, spec in sorted(added, key=lambda one: self.grants.oldest_for(one[0].tool, one[0].digest()) is not None):\n            self._gate(call, spec, \"open_turn\")")
_bug("the continuation tells its results as a set does", "K-52 K-1", "turn",
     "for call in self.calls.values()]", "for call in {*self.calls.values()}]")
_bug("a grant for the tool goes before an older one for the very arguments", "S4 K-41", "books",
     "for grant in self:  # K-41 K-42 S4", "for grant in sorted(self, key=lambda one: one.match != 'tool'):  # K-41 S4")

# ------------------------------------------------------------------------------ counts
_bug("grants for a turn do not count", "K-56", "run",
     "len(self.grants.live) >=", 'len([one for one in self.grants if one.scope == "session"]) >=')
_bug("calls that are over do not count", "K-56", "run",
     'len(turn.calls) >= self.limits["calls"]', 'len([one for one in turn.calls.values() if not one.over]) >= self.limits["calls"]')
_bug("an approval counts as a grant", "K-40 K-7", "run",
     "        self.review(call)  # S9 K-3\n        if lasting:", "        self.review(call)  # S9 K-3\n        self.grants.issued += not lasting\n        if lasting:")
_bug("a like grant is issued once", "K-40 K-56 K-42 S4", "run",
     "        if lasting:  # K-40\n            self._grant", "        if lasting and not any((one.tool, one.match, one.digest, one.scope) == (call.tool, mail.match, call.digest(), mail.scope) for one in self.grants):\n            self._grant")
_bug("the turn settles by the number of reports", "K-50 K-51 K-2", "run",
     "    def _on_report(self, mail: Mail) -> None:\n        call = self._find(mail)  # S5",
     "    def _on_report(self, mail: Mail) -> None:\n        call = self._find(mail)  # S5\n        turn = self._the_turn()\n        turn.reports = getattr(turn, 'reports', 0) + 1\n        if turn.reports > len(turn.calls):\n            for other in turn.calls.values():\n                other.outcome = other.outcome or (FAILED, 'never came')\n                other.phase = other.outcome[0] if not other.over else other.phase")
_bug("continuations that were taken count", "K-56 K-52", "run",
     'len(self.continuations) >= self.limits["continuations"]', 'max(len(self.continuations), sum(fact["type"] == "CONTINUATION_TAKEN" for fact in self.journal)) >= self.limits["continuations"]')

# ------------------------------------------------------------------------------ grants, turns, interrupts
_bug("a grant does not cover what is observed", "K-41 K-58", "acts",
     "            if grant is not None:  # K-41", "            if grant is not None and not call.observed:  # K-41")
_bug("a session's grant with an end is over with its turn", "K-42 K-40", "books",
     'if grant.scope == "turn":', 'if grant.scope == "turn" or grant.ends is not None:')
_bug("an interrupted turn of successes is settled", "K-53 K-50 K-52", "acts",
     "if turn.phase == SEALED:  # S8 K-50 K-53", "if turn.phase == SEALED or (turn.calls and all(one.phase == SUCCEEDED for one in turn.calls.values())):")
_bug("an interrupt takes back what is owed for other turns", "K-53 K-52 K-3 K-21", "run",
     "turn.phase = INTERRUPTING  # K-53 S8\n", "turn.phase = INTERRUPTING  # K-53 S8\n        for name in [*self.continuations]:\n            self.taken(name)\n")
_bug("a retry is the lost worker's alone", "K-33 K-35 S6", "call",
     "        if self.phase == STARTED:  # S6 K-33\n", '        if self.phase == RETRY and mail.worker != self.worker:\n            raise Refuse("not_authorised")\n        if self.phase == STARTED:  # S6 K-33\n')
_bug("an approval with a grant tells no reason", "S4 K-40", "run",
     "            reason=mail.reason,\n            decided_by", "            reason=None if lasting else mail.reason,\n            decided_by")
_bug("an edited call has another idempotency key", "S9 K-7", "ledger",
     '"idempotency_key": joined("call", *where),', '"idempotency_key": joined("call", *where, *([] if call.arguments == call.spec["arguments"] else ["edited"])),')

# ------------------------------------------------------------------------------ what a recovery leaves out
_bug("a recovered run has no agent", "K-2 S4", "restore",
     "fresh = Run(run.config)", 'fresh = Run({name: run.config[name] for name in ("run_id", "limits") if name in run.config})')
_bug("a recovered run has the limits of any", "K-2 K-56 K-54", "restore",
     "fresh = Run(run.config)", 'fresh = Run({name: value for name, value in run.config.items() if name != "limits"})')
_bug("a run that was recovered twice has no grants", "K-2 K-42 K-40", "restore",
     "    return fresh\n", "    fresh.times = getattr(run, 'times', 0) + 1\n    if fresh.times > 1:\n        fresh.grants.live.clear()\n    return fresh\n")
_bug("recovery counts attempts from one", "K-2 K-33", "restore",
     'call.start(fact.get("worker"), fact.get("lease_until"))', 'call.start(fact.get("worker"), fact.get("lease_until"))\n        call.attempt = 1')
_bug("recovery forgets who holds a retry", "K-2 K-33", "restore",
     'call.start(fact.get("worker"), ', 'call.start(None if kind == "EXECUTION_RETRIED" else fact.get("worker"), ')
_bug("recovery forgets that a grant decided", "K-2 S6", "restore",
     'call.approve(edited, decision_of(fact["scope"], fact.get("match"), edited))', 'call.approve(edited, None if "grant_id" in fact else decision_of(fact["scope"], fact.get("match"), edited))')
_bug("recovery gives every interrupt ten seconds", "K-2 K-53", "restore",
     'INTERRUPTING, fact["grace_until"]', 'INTERRUPTING, fact["at"] + 10.0')
_bug("recovery keeps the longer lease", "K-2 K-34", "restore",
     'call.lease_until = fact["lease_until"]  # K-2 K-34', 'call.lease_until = max(call.lease_until or 0.0, fact["lease_until"])')
_bug("recovery takes an empty edit for none", "K-2 K-32 K-40", "restore",
     'edited = fact.get("arguments")  # K-32 K-2', 'edited = fact.get("arguments") or None')
_bug("recovery remembers a turn from the beginning of the run", "K-2 K-54", "restore",
     'list(turn.calls), fact["at"])', 'list(turn.calls), run.journal[0]["at"])')
_bug("recovery lets an expired grant cover again", "K-2 K-42", "restore",
     'elif fact["type"] in {"GRANT_REVOKED", "GRANT_EXPIRED"}:', 'elif fact["type"] == "GRANT_REVOKED":')

FRESH: Final[tuple[Bug, ...]] = tuple(_bug.bugs)
