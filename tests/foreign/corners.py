"""What goes wrong where nobody looks: numbers, nulls, text, joined ids, clocks, sizes, defaults."""

# ruff: noqa: E501, Q000, Q003
# fmt: off
from __future__ import annotations

from typing import Final

from .handmade import Shelf
from .planting import Bug

_bug: Final = Shelf("corner")

# ------------------------------------------------------------------------------ JSON
_bug("the digest escapes what is not ASCII", "K-32", "text",
     ", ensure_ascii=False", "")
_bug("the digest sorts the outermost keys alone", "K-32", "text",
     "return json.dumps(value, sort_keys=True, ", "if isinstance(value, dict):\n        value = {key: value[key] for key in sorted(value)}\n    return json.dumps(value, ")
_bug("keys are sorted without regard to case", "K-32", "text",
     "return json.dumps(value, sort_keys=True, ", "if isinstance(value, dict):\n        value = {key: value[key] for key in sorted(value, key=str.lower)}\n    return json.dumps(value, ")
_bug("keys are sorted by UTF-16, as JavaScript does", "K-32", "text",
     "return json.dumps(value, sort_keys=True, ", "if isinstance(value, dict):\n        value = {key: value[key] for key in sorted(value, key=lambda k: k.encode('utf-16-be', 'surrogatepass'))}\n    return json.dumps(value, ")
_bug("outcomes are compared as Python compares", "K-30 S6 K-36 K-32", "call",
     'raise Refuse("duplicate" if same', 'same = self.outcome[0] == kind and self.outcome[1] == payload\n            raise Refuse("duplicate" if same')
_bug("outcomes are compared as text", "K-30 S6 K-36 K-32", "call",
     'raise Refuse("duplicate" if same', 'same = self.outcome[0] == kind and str(self.outcome[1]) == str(payload)\n            raise Refuse("duplicate" if same')
_bug("outcomes are compared with the order of their keys", "K-30 S6 K-32", "call",
     'raise Refuse("duplicate" if same', 'same = same and str(self.outcome[1]) == str(payload)\n            raise Refuse("duplicate" if same')
_bug("integers beyond 2^53 are rounded in the digest", "K-32", "text",
     "return hashlib.sha256(canonical(value)", "return hashlib.sha256(canonical(json.loads(json.dumps(value), parse_int=lambda t: int(t) if abs(int(t)) < 2**53 else int(float(t))))")
_bug("integers beyond 2^53 are rounded in what runs", "K-32", "call",
     'self.arguments: Raw = spec["arguments"]', 'self.arguments: Raw = {k: int(float(v)) if isinstance(v, int) and abs(v) > 2**53 else v for k, v in spec["arguments"].items()}')
_bug("integers beyond 2^63 are refused", "K-32 K-30 K-36 K-20", "mail",
     "given = copy.deepcopy(given)  # K-32", 'given = copy.deepcopy(given)  # K-32\n        if isinstance(given.get("result"), int) and abs(given["result"]) >= 2**63:\n            given["result"] = None')
_bug("whole floats are digested as integers", "K-32", "text",
     "return hashlib.sha256(canonical(value)", "return hashlib.sha256(canonical(json.loads(json.dumps(value), parse_float=lambda t: int(float(t)) if float(t).is_integer() and abs(float(t)) < 1e16 else float(t)))")
_bug("floats are digested with fifteen digits", "K-32", "text",
     "return hashlib.sha256(canonical(value)", "return hashlib.sha256(canonical(json.loads(json.dumps(value), parse_float=lambda t: float(f'{float(t):.15g}')))")
_bug("large floats are digested without an exponent", "K-32", "text",
     'canonical(value).encode', 'canonical(value).replace("e+16", "0000000000000000").replace("1e-07", "1e-7").encode')
_bug("minus zero is zero", "K-32 K-30", "text",
     'return json.dumps(value,', 'value = json.loads(json.dumps(value).replace("-0.0", "0.0"))\n    return json.dumps(value,')
_bug("1 and 1.0 are one outcome", "K-30 S6 K-32", "call",
     'raise Refuse("duplicate" if same', 'same = same or (self.outcome[0] == kind and self.outcome[1] == payload and not isinstance(payload, bool) and not isinstance(self.outcome[1], bool))\n            raise Refuse("duplicate" if same')
_bug("nulls within arguments are dropped", "K-32 S3", "mail",
     'spec.setdefault("observed"', 'spec["arguments"] = {k: v for k, v in spec["arguments"].items() if v is not None}\n    spec.setdefault("observed"')
_bug("nulls within a result are dropped", "K-36 K-30 K-52", "mail",
     'self.result: Any = given.get("result")', 'self.result: Any = given.get("result")\n        if isinstance(self.result, dict):\n            self.result = {k: v for k, v in self.result.items() if v is not None}')
_bug("text is normalised", "K-32 K-30 K-36", "mail",
     "given = copy.deepcopy(given)  # K-32", "import json, unicodedata\n        given = json.loads(unicodedata.normalize('NFC', json.dumps(given, ensure_ascii=False)))")
_bug("text beyond the BMP is replaced", "K-32 K-30 K-36", "mail",
     "given = copy.deepcopy(given)  # K-32", "import json\n        given = json.loads(''.join(c if ord(c) < 0x10000 else '?' for c in json.dumps(given, ensure_ascii=False)))")
_bug("results of text are stripped", "K-30 K-52 K-36", "mail",
     'self.result: Any = given.get("result")', 'self.result: Any = given.get("result")\n        if isinstance(self.result, str):\n            self.result = self.result.strip()')
_bug("errors are stripped", "K-30 K-52 S4", "mail",
     'self.error: str = given.get("error", "")', 'self.error: str = given.get("error", "").strip()')
_bug("only the first line of an error is kept", "K-30 K-52 S4", "mail",
     'self.error: str = given.get("error", "")', 'self.error: str = given.get("error", "").split("\\n")[0]')
_bug("results longer than 255 are cut", "K-30 K-52 K-36", "mail",
     'self.result: Any = given.get("result")', 'self.result: Any = given.get("result")\n        if isinstance(self.result, str):\n            self.result = self.result[:255]')
_bug("results longer than 4,096 are cut", "K-30 K-52 K-36", "mail",
     'self.result: Any = given.get("result")', 'self.result: Any = given.get("result")\n        if isinstance(self.result, str):\n            self.result = self.result[:4096]')
_bug("ids longer than 64 are cut", "K-7 K-20 S9 S4", "text",
     'str(part).replace("%"', 'str(part)[:64].replace("%"')
_bug("an empty list in a result becomes an object", "K-36 K-30 K-52", "mail",
     'self.result: Any = given.get("result")', 'self.result: Any = {} if given.get("result") == [] else given.get("result")')
_bug("false is told to the model as null", "K-36 K-52", "call",
     '"reason")] = payload', '"reason")] = None if payload is False else payload')

# ------------------------------------------------------------------------------ null is absent
for _field, _rules in (
    ("run_id", "S3 S5"), ("turn_id", "S3 S5 K-20"), ("attempt", "S3 S5 K-33"), ("epoch", "S3 K-21 K-55"),
    ("sealed", "S3 K-21 S8"), ("scope", "S3 K-40"), ("match", "S3 K-40"), ("expires_in", "S3 K-40 K-57"),
    ("arguments_digest", "S3 K-32"), ("arguments", "S3 K-32"), ("worker", "S3 K-33 S4"), ("lease", "S3 K-34 K-57"),
    ("grace", "S3 K-53"), ("reason", "S3 S4"), ("decided_by", "S3 S4"),
):
    _bug(f"a null {_field} is none of its values", _rules, "mail",
         'if value is not None or name == "result"\n        }',
         f'if value is not None or name == "result"\n        }}\n        if "{_field}" in raw and raw["{_field}"] is None:\n            given["{_field}"] = "null"')
_bug("null arguments of a decision are edited ones", "S3 K-32", "mail",
     'self.arguments: Raw | None = given.get("arguments")', 'self.arguments: Raw | None = given.get("arguments", {} if "arguments" in raw else None)')
_bug("a null approval_timeout is at once", "S3 K-57 K-11 K-34", "mail",
     "    spec = {name: value for name, value in raw.items() if value is not None}", '    raw = {**raw, "approval_timeout": 0} if "approval_timeout" in raw and raw["approval_timeout"] is None else raw\n    spec = {name: value for name, value in raw.items() if value is not None}')
_bug("a null observed is told as null", "S3 K-58 S4", "mail",
     'spec.setdefault("observed", False)', 'spec.setdefault("observed", None if "observed" in raw else False)')
_bug("a null provider_call_id is given back", "S3 K-52 S4", "mail",
     'spec.setdefault("observed", False)', 'spec.setdefault("observed", False)\n    if "provider_call_id" in raw:\n        spec["provider_call_id"] = raw["provider_call_id"]')
_bug("a null error beside a result is an error", "S3 K-36", "mail",
     'self.has_result: bool = "result" in given', 'self.has_result: bool = "result" in given and "error" not in raw')
_bug("a null reason of a denial is told", "S3 S4", "run",
     'mail.reason or "denied"', 'mail.reason if mail.reason is not None else "None"')

# ------------------------------------------------------------------------------ zero is a value
_bug("approval_timeout 0 is none", "K-57 S3 K-34 K-11", "acts",
     "None if timeout is None else self.now + timeout", "None if not timeout else self.now + timeout")
_bug("lease 0 is none", "K-34 K-57 S3", "acts",
     "None if lease is None else", "None if not lease else")
_bug("grace 0 is the default", "K-53 S3", "mail",
     'given.get("grace", 10.0)', '(given.get("grace") or 10.0)')
_bug("expires_in 0 is none", "K-40 K-57 S3 K-42", "acts",
     "None if mail.expires_in is None else", "None if not mail.expires_in else")
_bug("epoch 0 is none", "K-21 K-55 S3", "run",
     "if mail.epoch is not None and", "if mail.epoch and")
_bug("an attempt below 0 is none", "S5 K-33 S3", "call",
     "if attempt is None:", "if attempt is None or attempt < 0:")
_bug("edited arguments that are empty are none", "K-32", "mail",
     'self.arguments: Raw | None = given.get("arguments")', 'self.arguments: Raw | None = given.get("arguments") or None')
_bug("an empty digest is none", "K-32 S3", "mail",
     'given.get("arguments_digest")', 'given.get("arguments_digest") or None')
_bug("digests are compared without regard to case", "K-32", "run",
     "shown != call.digest()", "shown.lower() != call.digest()")
_bug("digests are compared by their beginning", "K-32", "run",
     "shown != call.digest()", "not call.digest().startswith(shown)")
_bug("a limit of 0 is the default", "K-56 K-54", "ledger",
     "for k, v in given.items() if v is not None}", "for k, v in given.items() if v}")
_bug("a clock before 1970 stands still", "K-10", "ledger",
     "self.latest = -math.inf", "self.latest = 0.0")

# ------------------------------------------------------------------------------ ids
_bug("turn and call are joined in the memory", "K-20 K-54 K-7", "run",
     "(mail.turn_id, name)))  # S5 K-20", '(mail.turn_id, name)) if not any(len(e) == 2 and "/".join(e) == f"{mail.turn_id}/{name}" for e in self.memory.closed) else "late")  # S5 K-20')
_bug("ids are not escaped", "K-7 S9", "text",
     '.replace("%", "%25").replace("/", "%2F")', "")
_bug("a percent sign is not escaped", "K-7 S9", "text",
     '.replace("%", "%25")', "")
_bug("a slash is not escaped", "K-7 S9", "text",
     '.replace("/", "%2F")', "")
_bug("a slash is escaped twice", "K-7 S9", "text",
     '.replace("%", "%25").replace("/", "%2F")', '.replace("/", "%2F").replace("%", "%25")')
_bug("ids are escaped as in URLs", "K-7 S9", "text",
     'str(part).replace("%", "%25").replace("/", "%2F")', "__import__('urllib.parse').parse.quote(str(part), safe='')")
_bug("escapes are in lower case", "K-7 S9", "text",
     '"%2F"', '"%2f"')
_bug("ids are compared without regard to case", "K-20", "run",
     "turn, name = self.turn, mail.invocation_id", "turn, name = self.turn, mail.invocation_id\n        if turn is not None and name not in turn.calls:\n            name = next((n for n in turn.calls if n.lower() == name.lower()), name)")
_bug("turn ids are compared without regard to case", "K-20 K-22 K-21 K-53", "run",
     "self.turn.name != mail.turn_id:  # K-22", "self.turn.name.lower() != str(mail.turn_id).lower():  # K-22")
_bug("ids are stripped", "K-20 K-21", "mail",
     'self.invocation_id: str = given.get("invocation_id", "")', 'self.invocation_id: str = given.get("invocation_id", "").strip()')
_bug("ids that differ by spaces are one in a turn", "K-21 K-20", "run",
     'len({call["invocation_id"] for call in calls})', 'len({call["invocation_id"].strip() for call in calls})')
_bug("ids that differ by case are one in a turn", "K-21 K-20", "run",
     'len({call["invocation_id"] for call in calls})', 'len({call["invocation_id"].lower() for call in calls})')
_bug("tools are compared without regard to case", "K-40 K-41", "books",
     "tool == self.tool and", "tool.lower() == self.tool.lower() and")
_bug("workers are compared without regard to case", "K-33", "call",
     "mail.worker == self.worker", "mail.worker.lower() == str(self.worker).lower()")
_bug("a tool covers those whose names begin alike", "K-40 K-41", "books",
     "tool == self.tool and", "tool.startswith(self.tool) and")
_bug("ids of digits come first, as keys of objects in JavaScript", "K-52", "turn",
     "[call.told() for call in self.calls.values()]", "[c.told() for _, c in sorted(self.calls.items(), key=lambda i: (0, int(i[0])) if i[0].isdecimal() else (1, 0))]")
_bug("constructor is a call of every turn, as in JavaScript's objects", "K-20 K-21 K-22", "run",
     "if len({call[", 'if any(c["invocation_id"] in ("constructor", "__proto__", "toString") for c in calls):\n            raise Refuse("duplicate_invocation")\n        if len({call[')
_bug("the provider's id names a call, too", "K-20 S3", "run",
     "turn, name = self.turn, mail.invocation_id", 'turn, name = self.turn, mail.invocation_id\n        if turn is not None and name not in turn.calls:\n            name = next((n for n, c in turn.calls.items() if c.spec.get("provider_call_id") == name), name)')
_bug("the provider's id is not given back", "S3 K-52 S9", "call",
     'if "provider_call_id" in self.spec:', "if False:")
_bug("nothing is owed for runs of another kind", "K-61 K-3 K-33 S9", "ledger",
     "if call.ready:  # S9", 'if call.ready and self.config.get("kind") in (None, "own"):  # S9')
_bug("an agent without a name has no id", "S4", "ledger",
     'if config.get(key) is not None', 'if config.get(key) is not None and config.get("agent_name") is not None')

# ------------------------------------------------------------------------------ clocks
_bug("time is rounded to milliseconds", "K-10 K-34 S4", "run",
     "max(mail.now, self.latest)", "max(round(mail.now, 3), self.latest)")
_bug("time is in whole milliseconds", "K-10 K-34 S4", "run",
     "max(mail.now, self.latest)", "max(int(mail.now * 1000) / 1000, self.latest)")
_bug("time is in microseconds", "K-10 K-34 S4", "run",
     "max(mail.now, self.latest)", "max(round(mail.now, 6), self.latest)")
_bug("time is in whole seconds", "K-10 K-34 S4", "run",
     "max(mail.now, self.latest)", "max(float(int(mail.now)), self.latest)")
_bug("time is a float of 32 bits", "K-10 K-34 S4", "run",
     "max(mail.now, self.latest)", "max(__import__('struct').unpack('f', __import__('struct').pack('f', mail.now))[0], self.latest)")
_bug("facts tell their time in milliseconds", "K-10 S4", "ledger",
     '"at": self.now,', '"at": round(self.now, 3),')
_bug("leases are rounded to milliseconds", "K-34 S4", "acts",
     "None if lease is None else self.now + lease", "None if lease is None else round(self.now + lease, 3)")
_bug("approval deadlines are rounded to milliseconds", "K-34 S4 K-11", "acts",
     "None if timeout is None else self.now + timeout", "None if timeout is None else round(self.now + timeout, 3)")
_bug("the grace is in whole seconds", "K-53 K-34", "run",
     "self.now + mail.grace", "self.now + int(mail.grace)")
_bug("a wake is a microsecond past the deadline", "S9 K-34", "text",
     "math.nextafter(deadline, math.inf)", "deadline + 1e-6")
_bug("a wake is the least float later, where deadlines are small", "S9 K-34", "text",
     "math.nextafter(deadline, math.inf)", "deadline + 2.220446049250313e-16 * max(1.0, abs(deadline) / 2)")
_bug("a deadline is over a millisecond later", "K-34 K-11", "acts",
     "if self.now > deadline[0]", "if self.now > deadline[0] + 0.001")
_bug("a memory's age is counted in whole seconds", "K-54", "books",
     "now - at <= self._seconds", "int(now - at) <= self._seconds")
_bug("leases end by the clock of 32 bits", "K-34", "acts",
     "None if lease is None else self.now + lease", "None if lease is None else min(self.now + lease, 2.0**31 - 1)")

# ------------------------------------------------------------------------------ order
_bug("an interrupt denies in the order of the ids", "K-53 S4", "run",
     "for call in turn.calls.values():  # K-53", "for _, call in sorted(turn.calls.items()):  # K-53")
_bug("the grace fails in the order of the ids", "K-53 S4", "acts",
     "for call in self._the_turn().calls.values():  # K-53", "for _, call in sorted(self._the_turn().calls.items()):  # K-53")
_bug("ties of deadlines go by the ids", "K-11", "acts",
     "calls = list(self.turn.calls.values())", "calls = [c for _, c in sorted(self.turn.calls.items())]")
_bug("ties of kinds are turned round", "K-11", "acts",
     "deadline[:3])[3]", "(deadline[0], -deadline[1], deadline[2]))[3]")
_bug("a lease goes before an approval of the same time", "K-11", "acts",
     "deadline[:3])[3]", "(deadline[0], {0: 1, 1: 0}.get(deadline[1], deadline[1]), deadline[2]))[3]")
_bug("the grace goes before a grant of the same time", "K-11", "acts",
     "deadline[:3])[3]", "(deadline[0], {2: 3, 3: 2}.get(deadline[1], deadline[1]), deadline[2]))[3]")
_bug("grants of one time expire youngest first", "K-11 K-42", "acts",
     "yield grant.ends, 2, place,", "yield grant.ends, 2, -place,")
_bug("grants are looked through by their ids", "K-41 S4", "books",
     "for grant in self:  # K-41 K-42", "for _, grant in sorted(self.live.items()):  # K-41")
_bug("a memory closed at one time forgets by name", "K-54", "books",
     "del self.closed[next(iter(self.closed))]", "del self.closed[min(self.closed)]")

# ------------------------------------------------------------------------------ sizes, defaults
_bug("a turn has a thousand calls by default", "K-56", "ledger",
     '"calls": 10_000', '"calls": 1_000 - 1')
_bug("a turn has eight calls by default", "K-56", "ledger",
     '"calls": 10_000', '"calls": 8')
_bug("a hundred grants are in force by default", "K-56", "ledger",
     '"grants": 1_000', '"grants": 100')
_bug("nine grants are in force by default", "K-56", "ledger",
     '"grants": 1_000', '"grants": 9')
_bug("twelve continuations are owed by default", "K-56", "ledger",
     '"continuations": 1_000', '"continuations": 12')
_bug("a thousand entries are remembered by default", "K-54", "ledger",
     '"remembered": 1_024', '"remembered": 1_000')
_bug("a hundred entries are remembered by default", "K-54", "ledger",
     '"remembered": 1_024', '"remembered": 100')
_bug("a minute is remembered by default", "K-54", "ledger",
     '"remember_for": 300.0', '"remember_for": 60.0')
_bug("ten minutes are remembered by default", "K-54", "ledger",
     '"remember_for": 300.0', '"remember_for": 600.0')
_bug("memory has no bound", "K-54", "books",
     "while len(self.closed) > self._most:", "while False:")
_bug("sequence numbers have two digits", "S4 K-9", "ledger",
     '"sequence": len(self.journal) + 1', '"sequence": len(self.journal) % 99 + 1')
_bug("the journal keeps a hundred facts", "K-2 S4 K-9", "ledger",
     "self.latest = self.now  # K-10", "self.latest = self.now  # K-10\n        if len(self.journal) > 100:\n            del self.journal[0]")
_bug("grant ids have one digit", "K-40 K-7", "books",
     "self.issued + 1)", "self.issued % 9 + 1)")
_bug("epochs have one digit", "K-55 K-7 K-21", "run",
     "self.epochs += 1", "self.epochs = self.epochs % 9 + 1")
_bug("attempts end at three", "K-33 K-31", "call",
     "self.attempt += 1", "self.attempt = min(self.attempt + 1, 3)")
_bug("the continuation tells eight results", "K-52", "turn",
     "for call in self.calls.values()]", "for call in list(self.calls.values())[:8]]")
_bug("a grant reaches ten waiting calls", "K-41", "acts",
     "for other in self._the_turn().calls.values():  # K-41", "for other in list(self._the_turn().calls.values())[:10]:  # K-41")

# ------------------------------------------------------------------------------ what means nothing
_bug("a timeout binds a call that needs no approval", "S3 K-11 K-57 S9", "acts",
     "if call.awaits and call.approve_by is not None:", "if call.phase == \"REQUESTED\" and call.approve_by is not None:",
     "        if call.gated:  # S4 S6", '        if not call.gated and spec.get("approval_timeout") is not None:\n            call.approve_by = self.now + spec["approval_timeout"]\n        if call.gated:  # S4 S6')
_bug("the match of scope once is told", "S3 S4 K-40", "run",
     "match=mail.match if lasting else None", 'match=mail.match if lasting or mail.match == "tool" else None')
_bug("an expiry of scope once is a grant", "S3 K-40", "run",
     'lasting = mail.scope != "once"', 'lasting = mail.scope != "once" or mail.expires_in is not None')
_bug("a log about an unknown call is refused", "S3 S5 K-20", "run",
     '"""Diagnostics are taken and forgotten (section 3)."""', "self._find(mail)")
_bug("a log is a fact", "S3 S4", "run",
     '"""Diagnostics are taken and forgotten (section 3)."""', 'self._tell("TOOL_LOG", "log", mail.turn_id, invocation_id=mail.invocation_id)')
_bug("the reason of an interrupt is not told", "S4 K-53", "run",
     "            reason=mail.reason,\n        )", "        )")
_bug("an empty reason of a denial is kept", "S4", "run",
     'mail.reason or "denied"', 'mail.reason if mail.reason is not None else "denied"')

CORNERS: Final[tuple[Bug, ...]] = tuple(_bug.bugs)
