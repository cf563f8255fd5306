"use strict";
// State as the fold of facts (K-2), the effects it owes (K-3), and its deadlines (K-11).

const { createHash } = require("node:crypto");
const { canonical, float } = require("./json.js");

const TERMINAL = ["SUCCEEDED", "FAILED", "DENIED"];

const digest = (value) => createHash("sha256").update(canonical(value)).digest("hex"); // K-32
const part = (text) => String(text).replace(/[%/]/g, encodeURIComponent);
const id = (...parts) => parts.map(part).join("/"); // K-7
const time = (value) => (value === undefined ? null : Number(value));

const fresh = () => ({
  sequence: 0, at: -Infinity, epoch: 0, turn: null,
  memory: [], continuations: [], grants: [], issued: 0,
  approved: {}, // for a bug alone: see README.md
});

function member(call) {
  return {
    id: call.invocation_id, tool: call.tool_name, arguments: call.arguments,
    gated: call.requires_approval, observed: call.observed === true, phase: "REQUESTED", attempt: 0,
    deadline: null, worker: null, decision: null, outcome: null,
  };
}

const isTerminal = (one) => TERMINAL.includes(one.phase);
const inDoubt = (one) => one.phase === "IN_DOUBT" || one.phase === "RETRY_AUTHORISED";
const awaits = (one) => one.phase === "REQUESTED" && one.gated;
const find = (state, name) => state.turn?.members.find((one) => one.id === name);
const covers = (grant, one) =>
  grant.tool_name === one.tool &&
  (grant.match === "tool" || grant.arguments_digest === digest(one.arguments)); // K-40

function owedAttempt(one) {
  if (one.observed) return null; // K-58: another runtime starts it
  if (one.phase === "APPROVED" || (one.phase === "REQUESTED" && !one.gated)) return 1;
  return one.phase === "RETRY_AUTHORISED" ? one.attempt + 1 : null;
}

function close(state, at, limits, settled) {
  const { turn } = state;
  if (settled && turn.members.length > 0) {
    const results = turn.members.map((one) => ({
      invocation_id: one.id, tool_name: one.tool, ...one.outcome,
    }));
    state.continuations.push({ turn_id: turn.id, epoch: turn.epoch, results }); // K-52
  }
  for (const name of [...turn.members.map((one) => one.id), null]) { // K-54; null: the turn itself
    state.memory = state.memory.filter((it) => it.turn !== turn.id || it.name !== name);
    state.memory.push({ turn: turn.id, name, at });
  }
  state.memory = state.memory.slice(Math.max(0, state.memory.length - limits.remembered));
  state.grants = state.grants.filter((grant) => grant.scope !== "turn"); // K-42
  state.turn = null;
}

function end(one, phase, outcome) {
  Object.assign(one, { phase, outcome, deadline: null });
}

function start(one, fact) {
  const { attempt, worker = null, lease_until: lease } = fact;
  Object.assign(one, { phase: "STARTED", attempt, worker, deadline: time(lease) });
}

// What each fact does to the state, and to the member that it names.
const FOLD = {
  TURN_OPENED(state, fact) {
    const { turn_id, epoch, sealed, calls } = fact;
    const phase = sealed ? "SEALED" : "OPEN";
    state.turn = { id: turn_id, epoch, phase, grace: null, members: calls.map(member) };
    state.epoch = epoch;
  },
  CALL_ADDED: (state, fact) => state.turn.members.push(member(fact.call)),
  TURN_SEALED: (state) => (state.turn.phase = "SEALED"),
  TURN_INTERRUPTING(state, fact) {
    Object.assign(state.turn, { phase: "INTERRUPTING", grace: Number(fact.grace_until) });
    for (const one of state.turn.members) { // K-60
      if (one.phase === "RETRY_AUTHORISED") one.phase = "IN_DOUBT";
    }
  },
  TURN_SETTLED: (state, fact, _, limits) => close(state, Number(fact.at), limits, true),
  TURN_INTERRUPTED: (state, fact, _, limits) => close(state, Number(fact.at), limits, false),
  CONTINUATION_TAKEN(state, fact) {
    state.continuations = state.continuations.filter((owed) => owed.turn_id !== fact.turn_id);
  },
  GRANT_ISSUED(state, fact) {
    state.issued += 1;
    state.grants.push({ ...fact, deadline: time(fact.expires_at) });
  },
  GRANT_REVOKED(state, fact) {
    state.grants = state.grants.filter((grant) => grant.grant_id !== fact.grant_id);
  },
  GRANT_EXPIRED: (state, fact) => FOLD.GRANT_REVOKED(state, fact),
  TOOL_APPROVAL_REQUESTED: (_, fact, one) => (one.deadline = time(fact.deadline)),
  TOOL_APPROVED(state, fact, one) {
    const { scope, match, arguments: edited, grant_id } = fact;
    one.decision = { approved: true, scope, match, edited: grant_id ? undefined : edited };
    Object.assign(one, { phase: "APPROVED", deadline: null });
    if (edited !== undefined) one.arguments = edited;
    state.approved[one.id] = true;
  },
  TOOL_DENIED(_, fact, one) {
    if (fact.cause === "decision") one.decision = { approved: false };
    end(one, "DENIED", { status: "denied", reason: fact.reason });
  },
  TOOL_EXECUTION_STARTED: (_, fact, one) => start(one, fact),
  EXECUTION_RETRIED: (_, fact, one) => start(one, fact),
  LEASE_RENEWED: (_, fact, one) => (one.deadline = Number(fact.lease_until)),
  EXECUTION_IN_DOUBT: (_, fact, one) => Object.assign(one, { phase: "IN_DOUBT", deadline: null }),
  RETRY_AUTHORISED: (_, fact, one) => (one.phase = "RETRY_AUTHORISED"),
  TOOL_EXECUTION_SUCCEEDED: (_, fact, one) =>
    end(one, "SUCCEEDED", { status: "succeeded", result: fact.result }),
  TOOL_EXECUTION_FAILED: (_, fact, one) =>
    end(one, "FAILED", { status: "failed", error: fact.error }),
};

function fold(state, fact, limits) {
  state.sequence = fact.sequence;
  state.at = Number(fact.at);
  FOLD[fact.type](state, fact, find(state, fact.invocation_id), limits);
}

// The deadlines, in the order in which ties are served (K-11); the oldest goes first.
function deadlines(state) {
  const members = state.turn?.members ?? [];
  const found = [
    ...members.filter(awaits).map((one) => ({ kind: "approval", at: one.deadline, one })),
    ...members.filter((one) => one.phase === "STARTED")
      .map((one) => ({ kind: "lease", at: one.deadline, one })),
    ...state.grants.map((grant) => ({ kind: "grant", at: grant.deadline, grant })),
    { kind: "grace", at: state.turn?.grace ?? null },
  ];
  return found.filter((it) => it.at !== null && it.at < Number.MAX_VALUE).sort((a, b) => a.at - b.at);
}

function nextFloat(value) { // the first float past a deadline (K-34)
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value === 0 ? 0 : value);
  view.setBigInt64(0, view.getBigInt64(0) + (value < 0 ? -1n : 1n));
  return view.getFloat64(0);
}

// All the effects owed: executes, cancels, continuations, then the wake (section 9).
function pending(state, run) {
  const { turn } = state;
  const effects = [];
  for (const one of turn?.members ?? []) {
    const attempt = owedAttempt(one);
    if (attempt === null) continue;
    const where = [run, turn.epoch, turn.id, one.id];
    effects.push({
      type: "execute", effect_id: id("execute", ...where, attempt), turn_id: turn.id,
      invocation_id: one.id, attempt, tool_name: one.tool, arguments: one.arguments,
      idempotency_key: id("call", ...where),
    });
  }
  for (const one of turn?.phase === "INTERRUPTING" ? turn.members : []) {
    if (one.phase !== "STARTED") continue;
    const effect_id = id("cancel", run, turn.epoch, turn.id, one.id, one.attempt);
    effects.push({
      type: "cancel", effect_id, turn_id: turn.id, invocation_id: one.id, attempt: one.attempt,
    });
  }
  for (const { turn_id, epoch, results } of state.continuations) {
    effects.push({ type: "continue", effect_id: id("continue", run, epoch, turn_id), turn_id, results });
  }
  const [first] = deadlines(state);
  if (first) effects.push({ type: "wake", effect_id: id("wake", run), at: float(nextFloat(first.at)) });
  return effects;
}

module.exports = {
  awaits, covers, deadlines, digest, find, fold, fresh, id, inDoubt, isTerminal, member, owedAttempt,
  pending,
};
