"use strict";
// A second, small implementation of turnlock's kernel.md: one run, deliveries in, receipts out.

const { canonical, float } = require("./json.js");
const {
  awaits, covers, deadlines, digest, find, fold, fresh, id, inDoubt, isTerminal, member, owedAttempt,
  pending,
} = require("./state.js");

const LIMITS = { remembered: 1024, remember_for: 300, calls: 10000, grants: 1000, continuations: 1000 };
const BUGS = ["approval-outlives-turn", "stale-approval", "duplicate-settles"]; // see README.md

const named = ({ effect_id, at }) => `${effect_id} ${at?.text}`; // a wake is owed anew with another at
const same = (one, other) => canonical(one) === canonical(other);

// An optional field that is null is absent, except `result` (section 3).
function given(delivery) {
  const kept = {};
  for (const [name, value] of Object.entries(delivery)) {
    if (value !== null || name === "result") kept[name] = value;
  }
  return kept;
}

// What a delivery is to the tables (K-59).
function inputOf({ type, approved, error, as }) {
  if (type === "decide") return approved ? "approve" : "deny";
  if (type === "report") return error === undefined ? "report_result" : "report_error";
  return type === "resolve" ? `resolve_${as}` : type;
}

// A call says whether it is observed (K-58).
const called = (call) => ({ observed: false, ...given(call) });

class Kernel {
  constructor(run, bug = null) {
    this.run = given(run);
    this.limits = { ...LIMITS, ...given(this.run.limits ?? {}) };
    this.bug = bug;
    this.journal = [];
    this.state = fresh();
  }

  // Judge one delivery: what is due happens first, whatever becomes of the delivery (K-11).
  receive(delivery) {
    const asked = given(delivery);
    const first = this.journal.length;
    this.before = null;
    const owed = this.state.continuations.map((one) => one.turn_id);
    this.now = Math.max(Number(asked.now), this.state.at); // K-10
    for (let [due] = deadlines(this.state); due && due.at < this.now; [due] = deadlines(this.state)) {
      this.input = `${due.kind}_over`;
      this.expire(due);
      this.settle();
    }
    this.input = inputOf(asked);
    const reason = this.judge(asked, owed);
    if (reason === undefined) this.settle();
    const facts = this.journal.slice(first);
    const effects = facts.length > 0 ? this.owed().filter((one) => !this.before.has(named(one))) : [];
    return { accepted: reason === undefined, reason, facts, effects }; // K-3: what it added
  }

  // Throw the state away and fold the journal (K-2).
  recover() {
    this.state = fresh();
    for (const fact of this.journal) fold(this.state, fact, this.limits);
    return { accepted: true, facts: [], effects: this.owed() };
  }

  owed() {
    return pending(this.state, this.run.run_id);
  }

  emit(type, payload = {}, turn_id = this.state.turn?.id ?? null, input = this.input) {
    this.before ??= new Set(this.owed().map(named));
    const { run_id } = this.run;
    const sequence = this.state.sequence + 1;
    const fact = { type, run_id, sequence, at: float(this.now), input, turn_id, ...payload };
    this.journal.push(fact);
    fold(this.state, fact, this.limits);
  }

  lifecycle(type, one, payload, input) {
    const { agent_id, agent_name } = this.run;
    const about = { invocation_id: one.id, tool_name: one.tool, agent_id, agent_name };
    this.emit(type, { ...about, ...payload }, undefined, input);
  }

  execution(type, one, payload = {}) {
    this.emit(type, { invocation_id: one.id, attempt: one.attempt, ...payload });
  }

  deny(one, cause, reason, decided_by) {
    this.lifecycle("TOOL_DENIED", one, { cause, reason, decided_by });
  }

  fail(one, cause, error) {
    this.lifecycle("TOOL_EXECUTION_FAILED", one, { cause, error });
  }

  expire({ kind, one, grant }) {
    if (kind === "approval") return this.deny(one, "expiry", "approval expired");
    if (kind === "lease") return this.execution("EXECUTION_IN_DOUBT", one);
    if (kind === "grant") return this.emit("GRANT_EXPIRED", { grant_id: grant.grant_id });
    for (const running of this.state.turn.members.filter((it) => !isTerminal(it))) {
      this.fail(running, "interrupted", "interrupted; outcome unknown"); // K-53
    }
  }

  // The one door through which a turn closes (K-50, K-51).
  settle() {
    const { turn } = this.state;
    if (!turn || !turn.members.every(isTerminal)) return;
    if (turn.phase === "SEALED") this.emit("TURN_SETTLED", {}, turn.id, "settle");
    if (turn.phase === "INTERRUPTING") this.emit("TURN_INTERRUPTED", {}, turn.id, "settle");
  }

  // Section 5: a reason, or undefined once the facts have happened.
  judge(asked, owed) {
    const { type } = asked;
    if (asked.run_id !== undefined && asked.run_id !== this.run.run_id) return "run_mismatch";
    if (type === "log" || type === "tick") return undefined;
    if (type === "open_turn") return this.open(asked);
    if (type === "acknowledge") {
      const taken = owed.includes(asked.turn_id);
      return taken ? this.emit("CONTINUATION_TAKEN", {}, asked.turn_id) : "no_continuation";
    }
    if (type === "revoke") {
      const { grant_id } = asked;
      if (!this.state.grants.some((grant) => grant.grant_id === grant_id)) return "unknown_grant";
      return this.emit("GRANT_REVOKED", { grant_id });
    }
    if (["add_call", "seal_turn", "interrupt"].includes(type)) {
      return this.admit(asked.turn_id, null) ?? this[type](asked);
    }
    const refused = this.admitInvocation(asked);
    return refused ?? this[type](asked, find(this.state, asked.invocation_id));
  }

  remembers(turn, name) { // K-54; without a turn, any turn's
    const { remember_for } = this.limits;
    return this.state.memory.some((it) => this.now - it.at <= remember_for && it.name === name &&
      (turn === undefined || it.turn === turn));
  }

  admit(turn, name) {
    const active = this.state.turn;
    if (active?.id === turn) return undefined;
    if (this.remembers(turn, name)) return "late";
    return active ? "turn_mismatch" : "no_active_turn";
  }

  admitInvocation({ type, turn_id, invocation_id: name, attempt }) {
    const one = find(this.state, name);
    if (turn_id !== undefined) {
      const careless = this.bug === "stale-approval" && type === "decide" && one && awaits(one);
      const refused = careless ? undefined : this.admit(turn_id, name);
      if (refused) return refused;
    } else {
      if (this.remembers(undefined, name)) return one ? "ambiguous_invocation" : "late";
      if (!this.state.turn) return "no_active_turn";
    }
    if (!one) return "unknown_invocation";
    if (attempt === undefined) return undefined;
    const due = owedAttempt(one);
    if (type === "claim" && due !== null) return attempt === due ? undefined : "stale_attempt";
    return one.attempt > 0 && attempt !== one.attempt ? "stale_attempt" : undefined;
  }

  open({ turn_id, calls, sealed = true, epoch }) { // K-21
    const { turn, continuations } = this.state;
    if (turn) return turn.id === turn_id ? "turn_open" : "turn_busy";
    const taken = continuations.some((one) => one.turn_id === turn_id);
    if (taken || this.remembers(turn_id, null)) return "turn_reused";
    const next = this.state.epoch + 1;
    if (epoch !== undefined && epoch !== next) return "stale_epoch";
    if (new Set(calls.map((call) => call.invocation_id)).size < calls.length) {
      return "duplicate_invocation";
    }
    if (sealed && calls.length === 0) return "empty_turn";
    if (calls.length > this.limits.calls) return "limit_reached";
    if (continuations.length >= this.limits.continuations) return "limit_reached";
    this.emit("TURN_OPENED", { epoch: next, sealed, calls: calls.map(called) }, turn_id);
    for (const call of calls.map(given)) this.gate(call);
  }

  gate(call) { // K-41
    if (!call.requires_approval) return;
    const one = member(call);
    const grant = this.state.grants.find((it) => covers(it, one));
    if (grant) return this.approveByGrant(one, grant);
    const deadline =
      call.approval_timeout === undefined ? undefined : float(this.now + Number(call.approval_timeout));
    const asked = { arguments: call.arguments, arguments_digest: digest(call.arguments), deadline };
    this.lifecycle("TOOL_APPROVAL_REQUESTED", one, asked);
  }

  approveByGrant(one, { grant_id }) {
    this.lifecycle("TOOL_APPROVED", one, { scope: "once", grant_id }, "grant");
  }

  add_call({ call }) {
    const { turn } = this.state;
    if (turn.phase === "SEALED") return "turn_sealed";
    if (turn.phase === "INTERRUPTING") return "interrupting";
    if (find(this.state, call.invocation_id)) return "duplicate_invocation";
    if (turn.members.length >= this.limits.calls) return "limit_reached";
    this.emit("CALL_ADDED", { call: called(call) });
    this.gate(given(call));
  }

  seal_turn() {
    const { phase } = this.state.turn;
    if (phase !== "OPEN") return phase === "SEALED" ? "duplicate" : "interrupting";
    this.emit("TURN_SEALED");
  }

  interrupt({ reason, grace = 10 }) { // K-53
    const { turn } = this.state;
    if (turn.phase === "INTERRUPTING") return "duplicate";
    this.emit("TURN_INTERRUPTING", { grace_until: float(this.now + Number(grace)), reason });
    for (const one of turn.members) {
      if (["REQUESTED", "APPROVED"].includes(one.phase)) this.deny(one, "interrupt", "interrupted");
    }
  }

  decide(asked, one) {
    if (!awaits(one)) return this.decideAgain(asked, one);
    const { approved, reason, decided_by, arguments: edited, expires_in } = asked;
    if (!approved) return this.deny(one, "decision", reason || "denied", decided_by);
    const shown = asked.arguments_digest;
    if (shown !== undefined && shown !== digest(one.arguments)) return "arguments_mismatch"; // K-32
    const { scope = "once" } = asked;
    const match = scope === "once" ? undefined : asked.match ?? "exact";
    if (match && this.state.grants.length >= this.limits.grants) return "limit_reached";
    this.lifecycle("TOOL_APPROVED", one, { scope, match, arguments: edited, reason, decided_by });
    if (!match) return undefined;
    const grant = { // K-40
      grant_id: id("grant", this.run.run_id, this.state.issued + 1), tool_name: one.tool, match,
      arguments_digest: digest(one.arguments), scope,
      expires_at: expires_in === undefined ? undefined : float(this.now + Number(expires_in)),
    };
    this.emit("GRANT_ISSUED", grant);
    for (const other of this.state.turn.members) {
      if (awaits(other) && covers(grant, other)) this.approveByGrant(other, grant);
    }
  }

  decideAgain({ approved, scope = "once", match = "exact", arguments: edited }, one) { // D
    const { decision } = one;
    if (!decision) return one.phase === "DENIED" ? "already_decided" : "not_awaiting_approval";
    if (approved !== decision.approved) return "already_decided";
    const alike = !approved || (scope === decision.scope &&
      (scope === "once" || match === decision.match) &&
      same([edited].filter((it) => it !== undefined), [decision.edited].filter((it) => it !== undefined)));
    return alike ? "duplicate" : "already_decided";
  }

  claim({ worker, lease }, one) { // K-33
    const outlived = this.bug === "approval-outlives-turn" && this.state.approved[one.id];
    if (isTerminal(one)) return "already_settled";
    if (awaits(one) && !outlived) return "not_approved";
    if (one.phase === "STARTED") return worker && worker === one.worker ? "duplicate" : "already_started";
    if (one.phase === "IN_DOUBT") return "not_authorised";
    const lease_until = lease === undefined ? undefined : float(this.now + Number(lease));
    const attempt = one.attempt + 1;
    if (one.phase === "RETRY_AUTHORISED") {
      return this.execution("EXECUTION_RETRIED", one, { attempt, worker, lease_until });
    }
    const started = { attempt, arguments: one.arguments, worker, lease_until };
    this.lifecycle("TOOL_EXECUTION_STARTED", one, started);
  }

  renew({ lease }, one) {
    if (isTerminal(one)) return "already_settled";
    if (one.phase !== "STARTED") return inDoubt(one) ? "lease_lost" : "not_started";
    this.execution("LEASE_RENEWED", one, { lease_until: float(this.now + Number(lease)) });
  }

  reject({ error }, one) {
    if (isTerminal(one)) return "already_settled";
    if (one.phase === "STARTED" || inDoubt(one)) return "already_started";
    this.fail(one, "rejected", error);
  }

  report({ result, error }, one) {
    if (one.phase === "DENIED") return "already_settled";
    if (["REQUESTED", "APPROVED"].includes(one.phase)) return "not_started";
    if (isTerminal(one)) { // S
      const alike = error === undefined
        ? one.phase === "SUCCEEDED" && same(result, one.outcome.result)
        : error === one.outcome.error;
      if (alike && this.bug === "duplicate-settles") return this.emit("TURN_SETTLED");
      return alike ? "duplicate" : "conflicting_duplicate"; // K-30
    }
    if (error !== undefined) this.fail(one, "reported", error);
    else this.lifecycle("TOOL_EXECUTION_SUCCEEDED", one, { result });
  }

  lose(_, one) {
    if (isTerminal(one)) return "already_settled";
    if (one.phase !== "STARTED") return inDoubt(one) ? "duplicate" : "not_started";
    this.execution("EXECUTION_IN_DOUBT", one);
  }

  resolve({ as, result, error }, one) { // K-35
    if (isTerminal(one)) return "already_settled";
    if (!inDoubt(one)) return "not_in_doubt";
    if (as === "error") return this.fail(one, "resolved", error);
    if (as === "result") return this.lifecycle("TOOL_EXECUTION_SUCCEEDED", one, { result });
    if (one.observed) return "not_owned"; // K-58
    if (one.phase === "RETRY_AUTHORISED") return "duplicate";
    if (this.state.turn.phase === "INTERRUPTING") return "interrupting";
    this.execution("RETRY_AUTHORISED", one);
  }
}

module.exports = { BUGS, Kernel };
