// The console (face.md, F-90 … F-98). What was recorded becomes text nodes; what is shown is a fold of
// entries; what is decided, the server judges.

// ---- recorded text

const set = Object.assign
const UNSEEN =
	/[^\P{C}\n\t]|[\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0e\uffa0\u{e0100}-\u{e01ef}]|(?! )\p{Zs}|(?<=^|\ufe0f)\ufe0f/gu

/** Spell what cannot be seen, or moves what is: control, bidirectional, zero-width (F-91). */
const spell = (text) => String(text).replace(UNSEEN, (it) => `\\u{${it.codePointAt(0).toString(16)}}`)

/** Read JSON so that numbers are written again as they stood: 1.0, 2 ** 64. */
const exact = (text) =>
	JSON.parse(text, (_, value, context) =>
		typeof value === "number" && JSON.rawJSON && String(value) !== context.source
			? JSON.rawJSON(context.source)
			: value,
	)

const number = (value) => (value == null ? null : Number(value.rawJSON ?? value))
const pretty = (value) => JSON.stringify(value, null, 2) ?? ""

/** JSON for an editor: what is unseen stands in escapes of JSON itself, and so stays what it is. */
const editable = (value) =>
	pretty(value).replace(UNSEEN, (it) =>
		it.replace(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`),
	)

/** The difference of two texts: lines, each after " ", "-" or "+". */
function difference(old, young) {
	const [a, b, found] = [old.split("\n"), young.split("\n"), []]
	for (let [i, j] = [0, 0]; i < a.length || j < b.length; ) {
		if (a[i] === b[j]) [i, j] = [i + 1, j + (found.push(` ${a[i]}`) && 1)]
		else {
			let [x, y] = [a.length, b.length] // where both go on alike, the nearest such place
			for (let far = 1; far < 2000 && x === a.length; far += 1)
				for (let k = 0; k <= far; k += 1)
					if (i + k < x && j + far - k < y && a[i + k] === b[j + far - k]) [x, y] = [i + k, j + far - k]
			for (; i < x; i += 1) found.push(`-${a[i]}`)
			for (; j < y; j += 1) found.push(`+${b[j]}`)
		}
	}
	return found
}

// ---- the fold

/** Compare two cursors: "", "n" or "n.k" (S-71). */
function order(a, b) {
	const [[m, i = 0], [n, j = 0]] = [a.split(".").map(Number), b.split(".").map(Number)]
	return m - n || i - j
}

const isDoubted = (call) => /^(IN_D|RETRY)/.test(call.phase)
const isAsked = (call) => call.phase === "REQUESTED" && call.arguments_digest != null

class Fold {
	constructor(leads) {
		set(this, { leads, sequence: 0, turn: null, calls: [], byId: new Map(), said: new Map() })
	}

	take(entry) {
		const { fact, note } = entry
		if (note?.domain === "message") this.hear(note, entry)
		if (!fact) return
		TURNS[fact.type]?.(this, fact)
		const call = this.turn?.calls.get(fact.invocation_id)
		if (call) this.step(call, fact)
		this.sequence = fact.sequence
	}

	step(call, fact) {
		const next = this.leads[`${call.phase} ${fact.type}`]
		if (next) call.path.push((call.phase = next))
		set(call, CALLS[fact.type]?.(fact, call, number(fact.at)))
	}

	add({ invocation_id, tool_name, arguments: given }, turn_id, at) {
		const call_id = `${this.turn.epoch}.${invocation_id.replaceAll("%", "%25").replaceAll(".", "%2E")}`
		const call = { call_id, turn_id, invocation_id, tool_name, arguments: given, attempt: 0, at: number(at) }
		this.calls.push(set(call, { phase: "REQUESTED", path: ["REQUESTED"] }))
		this.turn.calls.set(invocation_id, call)
		this.byId.set(call_id, call)
	}

	hear({ kind, body }, { occurred_at, cursor }) {
		const { text = body.sealed ? "(sealed)" : "", calls = [], message_id, id = message_id ?? cursor } = body
		if (kind === "user") this.said.delete(`waiting/${message_id}`) // in line
		// a part of an answer stands where the answer will
		this.said.set(id.replace(/^part(\/\d+).*/, "said$1"), { kind, text: text ?? "", calls, at: number(occurred_at) })
	}
}

const TURNS = {
	TURN_OPENED(fold, { turn_id, epoch, calls, at }) {
		fold.turn = { id: turn_id, epoch, calls: new Map() }
		for (const call of calls) fold.add(call, turn_id, at)
	},
	CALL_ADDED: (fold, { call, turn_id, at }) => fold.add(call, turn_id, at),
	TURN_INTERRUPTING(fold, fact) {
		fold.turn.stopping = true
		for (const call of fold.turn.calls.values()) fold.step(call, fact)
	},
	TURN_SETTLED: (fold) => (fold.turn = null),
	TURN_INTERRUPTED: (fold) => (fold.turn = null),
}

const decision = (fact, approved, at) => ({
	approved,
	at,
	by: fact.decided_by,
	cause: fact.grant_id ? "grant" : (fact.cause ?? "decision"),
	reason: fact.reason ?? fact.error,
	scope: fact.scope,
	edited: fact.arguments != null,
})
const began = ({ attempt }, call, at) => ({ attempt, deadline: null, began: call.began ?? at })
const CALLS = {
	TOOL_APPROVAL_REQUESTED: ({ arguments_digest, deadline }, _, asked) => ({ arguments_digest, deadline, asked }),
	TOOL_APPROVED: (fact, call, at) => ({
		arguments: fact.arguments ?? call.arguments,
		decision: decision(fact, true, at),
		deadline: null,
	}),
	TOOL_DENIED: (fact, call, at) => ({
		decision: fact.cause === "decision" ? decision(fact, false, at) : call.decision,
		outcome: { status: "denied", reason: fact.reason ?? fact.error, cause: fact.cause, at },
	}),
	TOOL_EXECUTION_STARTED: began,
	EXECUTION_RETRIED: began,
	EXECUTION_IN_DOUBT: (_, __, doubted) => ({ doubted }),
	TOOL_EXECUTION_SUCCEEDED: ({ result }, _, at) => ({ outcome: { status: "succeeded", result, at } }),
	TOOL_EXECUTION_FAILED: ({ error, cause }, _, at) => ({ outcome: { status: "failed", error, cause, at } }),
}

// ---- words

const CLOCK = new Intl.DateTimeFormat([], { timeStyle: "medium" })
const plain = (name) => String(name).replaceAll("_", " ").toLowerCase()
const path = (...parts) => `/v1/${parts.map(encodeURIComponent).join("/")}`

function clock(at) {
	if (at == null) return ""
	const then = new Date(number(at) * 1000)
	const today = then.toDateString() === new Date().toDateString()
	return (today ? "" : `${then.toLocaleDateString()} `) + CLOCK.format(then)
}

function span(seconds) {
	const units = [[1, "ms", 0.001], [90, "s", 1], [5400, "min", 60], [Infinity, "h", 3600]]
	const [, unit, size] = units.find(([most]) => seconds < most)
	return `${Math.max(0, Math.round(seconds / size))} ${unit}`
}

function decided({ approved, by, cause, reason, scope, edited, at }) {
	const who = by ?? { grant: "a grant", expiry: "its deadline", interrupt: "the interrupt" }[cause]
	const how = [approved ? "approved" : "denied", edited && "as edited", who && `by ${who}`]
	if (scope && scope !== "once") how.push(`for this ${scope}`)
	if (at != null) how.push(`at ${clock(at)}`)
	return how.filter(Boolean).join(" ") + (reason ? `: ${reason}` : "")
}

function fate({ decision: made, outcome, phase }) {
	const { status = plain(phase), error } = outcome ?? {}
	if (status === "denied") return decided(made ?? { ...outcome, approved: false })
	return (made ? `${decided(made)}; ` : "") + status + (error ? `: ${error}` : "")
}

function refusal({ body }) {
	const { reason, title, detail, call } = body ?? {}
	return [plain(reason ?? title ?? "not answered"), call?.decision ? decided(call.decision) : detail].filter(Boolean).join(": ")
}

const TELLING = ["decided_by", "reason", "error", "scope", "result", "arguments", "grant_id"]

function words({ fact, note, gap, problem }) {
	const brief = (value) => (typeof value === "string" ? value : JSON.stringify(value)).slice(0, 300)
	if (gap) return ["gap", `${gap.reason}: ${gap.from} … ${gap.to}`]
	if (problem) return ["error", problem.detail]
	if (note) return [`${note.domain} ${note.kind}`, brief(note.body.text ?? note.body)]
	const { tool_name, invocation_id } = fact.call ?? fact
	const subject = invocation_id ? [tool_name, invocation_id] : [fact.turn_id]
	const told = TELLING.filter((name) => fact[name] != null && fact[name] !== "once").map((name) => brief(fact[name]))
	return [plain(fact.type), [...subject, ...told].filter(Boolean).join("  ")]
}

// ---- the page

const $ = (id) => document.getElementById(id)

function h(tag, text, ...more) {
	const [name, className = ""] = tag.split(".")
	const made = set(document.createElement(name), { className })
	made.append(...(text == null ? [] : [spell(text)]), ...more)
	return made
}

function copy(id) {
	const made = $(id).content.firstElementChild.cloneNode(true)
	const parts = { element: made }
	for (const part of made.querySelectorAll("[data-p]")) parts[part.dataset.p] = part
	return parts
}

function put(element, text) {
	const shown = spell(text)
	if (element.textContent !== shown) element.textContent = shown
}

function show(element, whether) {
	if (element.hidden === Boolean(whether)) element.hidden = !whether
}

const region = (ariaLabel, text) => set(h("pre", text), { tabIndex: 0, role: "region", ariaLabel })

function fill(element, stamp, make) {
	if (element.stamp === stamp) return
	element.stamp = stamp
	element.replaceChildren(...make())
}

/** Arrange children; the focus stays where it is. */
function arrange(element, wanted) {
	const { children } = element
	if (wanted.length === children.length && wanted.every((it, place) => it === children[place])) return
	const focused = document.activeElement
	element.replaceChildren(...wanted)
	if (element.contains(focused)) focused.focus({ preventScroll: true })
}

const SIGNS = { idle: "·", awaiting_approval: "?", executing: ">", processing_results: "↩", interrupted: "┴" }
set(SIGNS, { in_doubt: "~", live: "●", catching_up: "…", gap: "✗", replay: "◂", off: "○" })

function look(element, name, text = plain(name)) {
	element.dataset.look = name
	put(element, `${SIGNS[name] ?? "·"} ${text}`)
}

function warn(text) {
	put($("alert"), text)
	show($("hush"), text)
}

/** A list of any length of which only what is seen is in the page; the newest stands at the top. */
class Rows {
	constructor(element, row) {
		set(this, { element, row, count: 0, chosen: -1, height: 30, made: new Map() })
		this.pad = element.appendChild(set(h("div.pad"), { role: "none" }))
		element.addEventListener("scroll", () => this.paint(), { passive: true })
		element.addEventListener("keydown", (event) => this.key(event))
		element.addEventListener("click", ({ target }) => {
			const at = target.closest("[role=option]")?.place
			if (at != null) this.pick(at)
		})
		new ResizeObserver(() => this.paint()).observe(element)
	}

	set(count, anew) {
		const more = count - this.count
		if (anew) this.chosen = -1
		this.count = count
		show(this.element, count)
		this.pad.style.height = `${count * this.height}px`
		if (more && !anew && this.element.scrollTop > 1) this.element.scrollTop += more * this.height
		this.paint()
	}

	paint() {
		const { element, count, made, height, pad } = this
		const first = Math.max(0, Math.floor(element.scrollTop / height) - 5)
		const last = Math.min(count, first + Math.ceil(element.clientHeight / height) + 10)
		for (const [place, row] of made)
			if (place < count - last || place >= count - first) (row.remove(), made.delete(place))
		for (let from = first; from < last; from += 1) {
			const place = count - 1 - from
			if (!made.has(place)) made.set(place, pad.insertBefore(set(h("div"), { role: "option", place }), pad.children[from - first]))
			const row = made.get(place)
			row.id = `${element.id}-${place}`
			row.style.top = `${from * height}px`
			row.ariaSelected = String(place === this.chosen)
			row.ariaSetSize = count
			row.ariaPosInSet = from + 1
			this.row(place, row)
		}
		const is = made.values().next().value?.offsetHeight
		if (!is || is === height) return
		this.height = is // letters are as large as their reader wants
		this.set(count, false)
	}

	pick(place) {
		const { element, height } = this
		this.chosen = place
		const top = (this.count - 1 - place) * height
		const least = top + height - element.clientHeight
		element.scrollTop = Math.min(top, Math.max(least, element.scrollTop))
		this.paint()
		element.setAttribute("aria-activedescendant", `${element.id}-${place}`)
		this.choose(place)
	}

	key(event) {
		const by = { ArrowDown: -1, ArrowUp: 1 }[event.key]
		if (!by || event.ctrlKey || event.altKey || event.metaKey) return
		event.preventDefault()
		const from = this.chosen < 0 ? this.count : this.chosen
		this.pick(Math.min(this.count - 1, Math.max(0, from + by)))
	}
}

// ---- the server

async function http(method, to, body, more) {
	const headers = { "Content-Type": "application/json", "Turnlock-Console": "1", ...more }
	const answer = await fetch(to, { method, headers, body: body && JSON.stringify(body) }).catch(() => null)
	const text = await answer?.text()
	return { status: answer?.status ?? 0, body: text ? exact(text) : { title: "not answered" } }
}

/** One socket for all runs (F-50), opened again by itself. */
class Stream {
	constructor(heed) {
		set(this, { heed, ids: 0, asked: new Map(), wait: 250 })
		setInterval(() => this.look(15_000, 25_000), 5000)
		const wake = () => document.hidden || this.look(1000, 3000)
		document.addEventListener("visibilitychange", wake)
		this.open()
	}

	open() {
		clearTimeout(this.again)
		const socket = new WebSocket(location.origin.replace("http", "ws") + "/v1/stream", "turnlock.v1")
		set(this, { socket, heard: Date.now(), pinged: 0 })
		socket.onopen = () => ((this.wait = 250), this.heed({ type: "on" }))
		socket.onclose = ({ code }) => this.lost(code)
		socket.onmessage = ({ data }) => {
			set(this, { heard: Date.now(), pinged: 0 })
			const said = exact(data)
			const answer = this.asked.get(said.id)
			this.asked.delete(said.id)
			if (!answer) this.heed(said)
			else answer(said.type === "answer" ? said : { status: said.problem?.status, body: said.problem })
		}
	}

	/** Whether what was heard is of now: not before an hour of sleep (F-42). */
	get fresh() {
		return this.socket.readyState === 1 && Date.now() - this.heard < 40_000
	}

	lost(code) {
		set(this.socket, { onopen: null, onclose: null, onmessage: null })
		this.socket.close()
		for (const answer of this.asked.values()) answer(null)
		this.asked.clear()
		if (code !== 1008) this.again = setTimeout(() => this.open(), this.wait)
		this.wait = Math.min(4000, this.wait * 2)
		this.heed({ type: "off", code })
	}

	/** Ping after `quiet` ms without a word; what stays silent then is taken for dead. */
	look(quiet, dead) {
		const { readyState } = this.socket
		const silent = Date.now() - (this.pinged || this.heard)
		if (readyState > 1) return quiet < 15_000 && this.open()
		if (this.pinged || !readyState) silent > dead && this.lost()
		else if (silent > quiet) {
			this.pinged = Date.now()
			this.send("ping")
			setTimeout(() => this.look(quiet, dead), dead + 100)
		}
		draw()
	}

	send(type, fields) {
		const id = (this.ids += 1)
		if (this.socket.readyState === 1) this.socket.send(JSON.stringify({ type, id, ...fields }))
		return id
	}

	/** Ask; null where nobody knows whether it was heard (F-96). */
	ask(type, fields) {
		if (this.socket.readyState !== 1) return null
		return new Promise((answer) => this.asked.set(this.send(type, fields), answer))
	}
}

// ---- one run

/** What this page knows of a run: its entries, their fold, its cards, and what was typed. */
class Run {
	constructor(id) {
		set(this, { id, cards: new Map(), deck: h("div.deck"), state: "off", draft: "" })
		this.forget()
	}

	forget() {
		set(this, { last: "", head: "", view: null, entries: [], facts: [], fold: new Fold(leads) })
		set(this, { past: null, place: null, deltas: new Map(), refused: [], chosen: null })
	}

	get shown() {
		return this.past ?? this.fold
	}

	get open() {
		return this.state === "live" && stream.fresh && !this.past && can("decide")
	}

	/** The calls of the open turn: the view's, while it is ahead of what was streamed. */
	get calls() {
		const ahead = !this.past && this.view && order(this.view.cursor, this.last) > 0
		return ahead ? (this.view.turn?.calls ?? []) : [...(this.shown.turn?.calls.values() ?? [])]
	}

	find(id) {
		return this.calls.find((it) => it.call_id === id) ?? this.shown.byId.get(id)
	}

	/** What the server allows of a call as it stands; null: it has not said so. */
	allowed(call) {
		const told = this.view?.turn?.calls.find((it) => it.call_id === call.call_id)
		const state = (it) => [it?.phase, it?.attempt ?? 0, it?.arguments_digest].join()
		return state(told) === state(call) ? told.allowed : null
	}

	subscribe() {
		this.leave()
		this.state = "catching_up"
		this.sub = stream.send("subscribe", { run_id: this.id, after: this.last, diagnostics: true })
		this.look()
	}

	leave() {
		if (this.sub) stream.send("unsubscribe", { id: this.sub })
		this.deltas.clear()
		set(this, { sub: 0, state: "off" })
	}

	async look() {
		if (this.looking) return (this.more = true)
		set(this, { looking: true, more: false, looked: this.last })
		const { status, body } = await http("GET", path("runs", this.id))
		this.looking = false
		if (status === 200) this.view = body
		if (this.more) this.look()
		draw()
	}

	heed(said) {
		const data = said.data ?? said
		if (said.type === "event") this.take(data)
		else if (said.type === "gap") this.keep({ gap: data, cursor: data.to })
		else if (said.type === "replay") this.state = "catching_up"
		else if (said.type === "live") {
			this.state = "live"
			for (const card of this.cards.values()) card.unknown = false
			this.look()
		} else if (said.type === "delta") {
			const key = `${data.item} ${data.kind}`
			this.deltas.set(key, ((this.deltas.get(key) ?? "") + (data.dropped ? "…" : "") + data.text).slice(-65536))
		} else if (said.type === "diagnostic") this.refused = [data, ...this.refused].slice(0, 100)
		else if (said.type === "error") this.fault(data.problem ?? {}, data)
	}

	take(entry) {
		if (order(entry.cursor, this.last) <= 0) return // is here already (F-52)
		if (entry.after === this.last) this.keep(entry)
		else if (this.state !== "gap") {
			this.subscribe()
			this.state = "gap"
		}
	}

	keep(entry) {
		if (this.state === "gap") this.state = "catching_up"
		this.last = entry.cursor
		if (entry.fact) this.facts.push(this.entries.length)
		this.entries.push(entry)
		this.fold.take(entry)
		const ends = entry.note?.body.id ?? entry.fact?.invocation_id
		for (const key of this.deltas.keys()) if (key.startsWith(ends)) this.deltas.delete(key)
	}

	fault(problem, { event_id = problem.event_id }) {
		if (event_id) return this.keep({ problem, cursor: event_id.split("/").at(-1) })
		this.state = "off"
		warn(refusal({ body: problem }))
		if (problem.title !== "cursor_ahead") return
		this.forget() // an older journal was put in its place: it is read anew
		this.subscribe()
	}

	/** Fold the same entries with the same code, up to the n-th fact (F-98). */
	replay(place) {
		const live = place >= this.facts.length
		this.place = live ? null : Math.max(0, place)
		this.past = live ? null : new Fold(leads)
		if (!live) for (const entry of this.entries.slice(0, this.facts[this.place])) this.past.take(entry)
	}
}

// ---- cards

// Just after cards have moved a pointer may have meant another one.
let movedAt = 0
const isMoving = () => performance.now() - movedAt < 350

function move() {
	movedAt = performance.now()
	setTimeout(draw, 360)
}

/** A question, made once for its approval id, and only updated (F-93). */
class Card {
	constructor(run, call) {
		set(this, copy("card"), { run, call, doubt: isDoubted(call), under: "", said: "", unknown: false })
		const { element } = this
		this.title.id = `card-${run.cards.size}-${performance.now()}`
		element.setAttribute("aria-labelledby", this.title.id)
		put(this.title, call.tool_name)
		put(this.name, `${call.invocation_id}  ${call.turn_id}`)
		put(this.args, pretty(call.arguments))
		this.args.ariaLabel = spell(`Arguments of ${call.tool_name} ${call.invocation_id}`)
		for (const type of ["focusin", "click"]) element.addEventListener(type, () => choose(this))
		element.addEventListener("focusout", draw)
		const presses = { approve: () => this.decide(true), deny: () => this.decide(false) }
		for (const way of ["result", "error", "retry"]) presses[way] = () => this.resolve(way)
		for (const [name, act] of Object.entries(presses))
			this[name].onclick = ({ detail }) => {
				if (!detail || !isMoving()) act()
			}
		put(this.digest, call.arguments_digest ?? "")
		show(this.unclear, this.doubt)
		show(this.digested, !this.doubt)
		this.pencil.onclick = () => this.edit(this.editor.hidden)
		this.draft.oninput = draw
		this.draft.onkeydown = (event) => {
			if (event.key !== "Escape" || event.isComposing) return
			event.stopPropagation()
			this.edit(false)
		}
	}

	get asked() {
		return this.doubt ? isDoubted(this.call) : isAsked(this.call)
	}

	/** Where somebody types, the card stays as it is until he leaves. */
	get held() {
		const { activeElement } = document
		return activeElement.matches("input, select, textarea") && this.element.contains(activeElement)
	}

	/** Whether it may be asked for now: one decision is under way at a time (F-96). */
	may(what) {
		const free = this.run.open && !this.under && !this.unknown && this.asked
		return Boolean(free && this.run.allowed(this.call)?.includes(what))
	}

	update(call) {
		this.call = call
		const { run, asked, element } = this
		const opened = asked || this.held
		look(this.sign, call.phase, "")
		element.dataset.look = call.phase
		element.ariaCurrent = String(run.card === this)
		element.classList.toggle("done", !asked)
		if (this.body.hidden === opened) move()
		if (!opened && this.body.contains(document.activeElement)) element.focus({ preventScroll: true })
		show(this.body, opened)
		put(this.fate, asked ? "" : fate(call))
		if (!asked) set(this, { under: "", said: "", unknown: false })
		const mine = can("decide")
		const row = opened && !run.past && mine
		show(this.row, row && !this.doubt)
		show(this.ways, row && this.doubt)
		const allowed = run.allowed(call)
		if (asked && !allowed && run.open && run.looked !== run.last) run.look()
		const offers = this.doubt
			? { result: "resolve_result", error: "resolve_error", retry: "resolve_retry" }
			: { approve: "approve", deny: "deny" }
		for (const [name, what] of Object.entries(offers)) {
			show(this[name], !allowed || allowed.includes(what))
			this[name].ariaDisabled = String(!this.may(what) || isMoving())
		}
		if (!this.doubt) this.compare()
		let note = this.under || this.said
		if (this.unknown) note = "Sent, and not answered: unknown until the stream tells."
		else if (asked && run.past) note = "As it stood then: nothing can be decided in a replay."
		else if (asked && !mine) note = "You may look; to decide needs another token."
		else if (asked && !run.open) note = "Not live: decisions wait until all is shown."
		put(this.note, note)
		this.tick()
	}

	compare() {
		const able = this.run.view?.capabilities
		show(this.pencil, able?.edit_arguments !== false)
		this.pencil.ariaExpanded = String(!this.editor.hidden)
		for (const option of this.scope.options) option.hidden = option.disabled = !(able?.scopes ?? ["once"]).includes(option.value.split(" ")[0])
		const edit = this.edited()
		put(this.approve, edit ? "Approve edited" : "Approve")
		if (this.editor.hidden) return
		fill(this.diff, this.draft.value, () => {
			if (edit?.wrong) return [h("div.wrong", `✗ ${edit.wrong}`)]
			if (!edit) return [h("div", "no difference")]
			const kinds = { "+": "div.plus", "-": "div.minus", " ": "div" }
			return difference(pretty(this.call.arguments), pretty(edit.arguments)).map((line) => h(kinds[line[0]], line))
		})
	}

	/** The edited arguments, or what is wrong with them; null where nothing was changed. */
	edited() {
		if (this.doubt || this.editor.hidden) return null
		try {
			const value = exact(this.draft.value)
			if (!/^\s*\{/.test(this.draft.value)) return { wrong: "not a JSON object" }
			return pretty(value) === pretty(this.call.arguments) ? null : { arguments: value }
		} catch (error) {
			return { wrong: `not JSON: ${error.message}` }
		}
	}

	edit(whether) {
		if (this.doubt || !this.asked || this.run.past || this.pencil.hidden) return
		if (whether && !this.draft.value) this.draft.value = editable(this.call.arguments)
		show(this.editor, whether)
		move()
		const field = whether ? this.draft : this.pencil
		field.focus()
		draw()
	}

	tick() {
		const { asked, doubted, deadline, attempt } = this.call
		let told = asked ? `asked ${clock(asked)}` : ""
		if (this.doubt) told = `attempt ${attempt}, in doubt since ${clock(doubted)}`
		else if (this.asked && deadline == null) told += " – waits for ever"
		else if (this.asked) told += ` – until ${clock(deadline)}, ${span(number(deadline) - Date.now() / 1000)} left`
		put(this.when, told)
	}

	decide(approved) {
		if (!this.may(approved ? "approve" : "deny")) return
		const edit = approved ? this.edited() : null
		if (edit?.wrong) return warn(`Not sent: ${edit.wrong}`)
		const { turn_id, invocation_id, arguments_digest } = this.call
		const [scope, match] = this.scope.value.split(" ")
		const reason = this.reason.value.trim()
		const body = { turn_id, invocation_id, approved, arguments_digest, ...edit, ...(reason && { reason }) }
		this.send("decide", approved && match ? { ...body, scope, match } : body)
	}

	resolve(resolution) {
		if (!this.may(`resolve_${resolution}`)) return
		const { turn_id, invocation_id, attempt } = this.call
		const body = { turn_id, invocation_id, attempt, resolution }
		const told = this.told.value.trim()
		if (resolution === "error") body.error = told || "it did not happen"
		try {
			if (resolution === "result") body.result = told ? exact(told) : null
		} catch {
			body.result = told
		}
		this.send("resolve", body)
	}

	async send(type, body) {
		set(this, { under: "Sent…", said: "" })
		draw()
		const answer = await stream.ask(type, { run_id: this.run.id, body })
		this.under = ""
		if (!answer) this.unknown = this.asked
		else if (answer.status === 202) this.said = "Posted to the owner of the run."
		else if (answer.body?.accepted) this.said = "Taken."
		else if (answer.status === 200) this.said = `So it was already: ${refusal(answer)}`
		else warn((this.said = `Refused: ${refusal(answer)}`))
		this.run.look()
		draw()
	}
}

function drawCards() {
	const id = (call) => [call.call_id, call.turn_id, isDoubted(call) ? call.attempt : call.arguments_digest].join(" ")
	for (const call of run.calls) {
		if ((!isAsked(call) && !isDoubted(call)) || run.cards.has(id(call))) continue
		const card = new Card(run, call)
		run.cards.set(id(call), card)
		run.deck.append(card.element)
		move()
	}
	let waiting = 0
	const done = []
	for (const [id, card] of run.cards) {
		const call = run.find(card.call.call_id)
		const there = call && (card.doubt ? call.attempt === card.call.attempt && (call.doubted || isDoubted(call)) : call.arguments_digest)
		if (card.element.hidden === Boolean(there)) move()
		show(card.element, there)
		if (there) card.update(call)
		if (there && card.asked) waiting += 1
		else if (!run.past && run.card !== card) done.push(id)
	}
	for (const id of done.slice(0, -6)) {
		run.cards.get(id).element.remove()
		run.cards.delete(id)
	}
	put($("cards-title"), waiting ? `Waits for you: ${waiting}` : "Nothing waits for you")
}

function choose(card) {
	if (run.card === card) return
	run.card = card
	run.chosen = card.call.call_id
	draw()
}

// ---- the other parts of a run

function drawTalk() {
	const talk = $("talk")
	const atEnd = talk.scrollTop + talk.clientHeight > talk.scrollHeight - 8
	const said = [...run.shown.said]
	const lines = said.slice(-300)
	if (!run.past)
		for (const [key, text] of run.deltas) {
			const kind = key.split(" ").at(-1)
			if (kind !== "output") lines.push([key, { kind, text, calls: [] }])
		}
	const before = new Map([...talk.children].map((line) => [line.key, line]))
	const now = lines.map(([name, { kind, text, calls, at }]) => {
		const key = `${run.id} ${name}`
		const line = before.get(key) ?? set(h("div.said"), { key })
		line.dataset.kind = kind
		const asking = calls.length ? `asks for ${calls.map((call) => call.tool_name).join(", ")}` : ""
		fill(line, kind + text.length, () => [h("small", `${kind} ${clock(at)}`), h("div", text), h("small", asking)])
		return line
	})
	arrange(talk, now)
	show(talk, now.length)
	if (atEnd) talk.scrollTop = talk.scrollHeight
}

const cell = (kind, text) => h(`span.${kind}`, text)
const lists = {}
const filtered = {} // what the filter of facts lets through, extended as entries come
const entryAt = (place) => run.entries[filtered.places?.[place] ?? place]

function makeLists() {
	lists.calls = new Rows($("calls"), (place, row) => {
		const call = run.shown.calls[place]
		fill(row, `${run.id} ${call.call_id} ${call.phase}`, () => {
			const pill = h("span.pill")
			look(pill, call.phase, call.phase)
			const took = call.outcome && call.began ? span(call.outcome.at - call.began) : ""
			const name = h("span.name", null, h("b", call.tool_name), " ", h("code", call.invocation_id))
			const args = JSON.stringify(call.arguments).slice(0, 300)
			return [cell("id", call.turn_id), name, cell("args", args), pill, cell("time", took)]
		})
	})
	lists.calls.choose = (place) => ((run.chosen = run.shown.calls[place]?.call_id), draw())
	lists.facts = new Rows($("facts"), (place, row) => {
		const entry = entryAt(place)
		row.ariaCurrent = run.past && entry.cursor === String(run.past.sequence) ? "step" : null
		fill(row, `${run.id} ${entry.cursor}`, () => {
			const [what, which] = words(entry)
			return [cell("id", entry.cursor), cell("time", clock(entry.occurred_at)), cell("what", what), cell("args", which)]
		})
	})
	lists.facts.choose = (place) => {
		const { fact, note, gap, problem } = entryAt(place)
		put($("fact"), pretty(fact ?? note ?? gap ?? problem))
		show($("fact"), true)
		const same = (it) => fact && it.invocation_id === fact.invocation_id && it.turn_id === fact.turn_id
		run.chosen = run.shown.calls.findLast(same)?.call_id ?? run.chosen
		draw()
	}
}

function drawFacts() {
	const [text, seen] = [$("filter").value.trim().toLowerCase(), run.entries.length]
	const key = `${run.id} ${text}`
	const anew = filtered.key !== key || filtered.seen > seen
	if (anew) set(filtered, { key, seen: 0, places: text ? [] : null })
	for (; filtered.seen < seen; filtered.seen += 1)
		if (text && hay(run.entries[filtered.seen]).includes(text)) filtered.places.push(filtered.seen)
	lists.facts.set(filtered.places?.length ?? seen, anew)
	const [count, slider] = [run.facts.length, $("place")]
	slider.max = count
	slider.value = run.place ?? count
	slider.ariaValueText = run.past ? `replay: ${run.place} of ${count}` : "live"
	put($("at"), `${run.place ?? count} of ${count}`)
	show($("now"), run.past)
}

const hay = (entry) => (entry.hay ??= [...words(entry), JSON.stringify(entry.fact ?? entry.note)].join(" ").toLowerCase())

function drawAside() {
	const call = run.find(run.chosen) ?? run.calls.find(isAsked) ?? run.shown.calls.at(-1)
	const way = call?.path ?? (call ? [call.phase] : [])
	const taken = new Set(way.slice(1).map((to, place) => `${way[place]} ${to}`))
	for (const { dataset, classList } of $("machine").children) {
		classList.toggle("on", way.includes(dataset.look) || taken.has(dataset.move))
		classList.toggle("now", call?.phase === dataset.look)
	}
	put($("path"), call ? `${call.tool_name} ${call.invocation_id}: ${way.join(" → ")}` : "No call yet.")
	const output = call && run.deltas.get(`${call.invocation_id} output`)
	const { result, error, reason, status } = call?.outcome ?? {}
	fill($("call"), `${run.id} ${call?.call_id} ${way} ${output?.length} ${call?.decision?.at}`, () => {
		const parts = call && { turn: call.turn_id, attempt: call.attempt, decision: call.decision && decided(call.decision) }
		const texts = call && { arguments: pretty(call.arguments), output, [status]: status && (error ?? reason ?? pretty(result)) }
		const told = Object.entries({ ...parts, ...texts }).filter(([, text]) => text)
		return told.flatMap(([name, text]) => [h("dt", name), name in parts ? h("dd", text) : h("dd", null, region(name, text))])
	})
	put($("refused-count"), run.refused.length)
	fill($("refused"), `${run.id} ${run.refused.length} ${run.refused[0]?.at}`, () =>
		run.refused.map(({ reason, type, delivery = "", invocation_id, turn_id, text = "", at }) => {
			const about = [h("code", invocation_id ?? turn_id ?? ""), h("span", ` ${text} `), h("small", clock(at))]
			return h("li", null, h("b", reason ?? plain(type)), ` ${delivery} `, ...about)
		}),
	)
}

async function tell(asked) {
	const answer = await asked
	if (!answer) warn("Sent, and not answered: the stream will tell.")
	else if (answer.status < 200 || answer.status > 299) warn(`Refused: ${refusal(answer)}`)
	else return answer
}

// ---- the list of runs

const entries = new Map()
const waits = (entry) => entry.waiting + entry.in_doubt > 0

/** The order of F-30. */
function ranked(one, other) {
	if (waits(one) !== waits(other)) return waits(one) ? -1 : 1
	const since = (it) => number(it.waiting_since ?? it.latest_at)
	return waits(one) ? since(one) - since(other) : since(other) - since(one)
}

function drawRuns() {
	const count = [...entries.values()].filter(waits).length
	document.title = count ? `(${count}) turnlock` : "turnlock"
	show($("waiting"), count)
	look($("waiting"), "awaiting_approval", count === 1 ? "1 run waits for you" : `${count} runs wait for you`)
	const sorted = [...entries.values()].sort(ranked)
	const lines = sorted.map((entry) => {
		entry.line ??= copy("item")
		const { element, link, pill, small } = entry.line
		put(link.firstChild, entry.run_id)
		link.href = `#run=${encodeURIComponent(entry.run_id)}`
		link.ariaCurrent = entry.run_id === run?.id ? "page" : null
		look(pill, entry.status)
		const about = entry.trouble ?? (waits(entry) && entry.tool_name)
		put(small, [entry.kind, about, clock(entry.waiting_since ?? entry.latest_at)].filter(Boolean).join(" · "))
		return element
	})
	arrange($("runs"), lines)
}

// ---- the whole

const leads = {}
const runs = new Map()
let me = { roles: [] }
let stream = null
const can = (role) => me.roles.includes(role)
let run = null
let changed = true // the list of runs
let drawing = false

/** Draw with the next frame, or soon. */
function draw() {
	if (drawing || !stream) return
	drawing = true
	const now = () => ((drawing = false), drawNow())
	const many = run?.state === "catching_up" && run.entries.length > 300
	if (document.hidden || many) setTimeout(now, 100)
	else requestAnimationFrame(now)
}

function drawNow() {
	if (changed) drawRuns()
	changed = false
	const state = !stream.fresh ? "off" : run?.past ? "replay" : (run?.state ?? "live")
	const [said, count] = $("badge").children
	$("badge").dataset.look = state
	look(said, state)
	const of = (cursor) => Number(cursor.split(".")[0])
	put(count, state === "catching_up" ? `${of(run.last)} of ${Math.max(of(run.last), of(run.head))}` : "")
	document.body.dataset.screen = run ? "run" : "runs"
	for (const id of ["of-run", "aside"]) show($(id), run)
	show($("nothing"), !run)
	put($("run"), run?.id ?? "")
	const { kind = "" } = entries.get(run?.id) ?? {}
	put($("kind"), kind)
	show($("stop"), run?.open && run.fold.turn && !run.fold.turn.stopping)
	show($("status"), run && !run.past)
	if (!run) return
	const { status = "idle", trouble, findings } = entries.get(run.id) ?? run.view ?? {}
	const why = trouble ?? findings?.at(-1)?.cause
	look($("status"), status, why && `${plain(status)}: ${why}`)
	show($("say"), can("run") && kind !== "guard")
	drawCards()
	drawTalk()
	lists.calls.set(run.shown.calls.length)
	drawFacts()
	drawAside()
}

function heed(said) {
	if (said.type === "on") {
		stream.send("runs")
		run?.subscribe()
	} else if (said.type === "off") {
		for (const it of runs.values()) set(it, { state: "off", sub: 0 })
		http("GET", "/v1/session").then(({ status }) => status === 401 && leave("Your token has ended."))
	} else if (/^runs?$/.test(said.type)) {
		for (const it of said.runs ?? [said]) entries.set(it.run_id, { ...it, line: entries.get(it.run_id)?.line })
		changed = true
		const longest = [...entries.values()].filter(waits).sort(ranked)[0]
		if (said.runs && longest && !run && innerWidth > 700) location.replace(`#run=${encodeURIComponent(longest.run_id)}`)
	} else
		for (const it of runs.values())
			if (said.run_id ? said.run_id === it.id : said.id === it.sub) {
				if (said.type === "subscribed") it.head = said.head
				it.heed(said)
			}
	draw()
}

function go() {
	const id = new URLSearchParams(location.hash.slice(1)).get("run")
	if (id === (run?.id ?? null)) return
	if (run) run.draft = $("prompt").value
	run?.leave()
	for (const list of Object.values(lists)) list.set(0, true)
	run = id === null ? null : (runs.get(id) ?? new Run(id))
	changed = true
	if (run) {
		runs.set(id, run)
		$("cards").replaceChildren(run.deck)
		$("prompt").value = run.draft
		if (stream.fresh) run.subscribe()
		else run.look()
	}
	show($("fact"), false)
	draw()
}

function leave(why) {
	show($("door"), true)
	warn(why)
	$("token").focus()
}

function enter({ status, body }, why = "") {
	if (status !== 200) return leave(why)
	me = body
	show($("door"), false)
	warn("")
	put($("me"), me.name)
	if (stream) stream.open()
	else stream = new Stream(heed)
	go()
	draw()
}

async function bringToken() {
	const token = $("token").value.trim()
	$("token").value = ""
	const answer = await http("POST", "/v1/session", {}, { Authorization: `Bearer ${token}` })
	enter(answer, refusal(answer))
}

/** A text that is sent again keeps its id, and is said once (F-23). */
async function say() {
	const [field, to] = [$("prompt"), path("runs", run.id, "prompts")]
	const text = field.value.trim()
	if (!text) return
	if (field.sent?.text !== text || field.to !== to) set(field, { to, sent: { text, message_id: crypto.randomUUID() } })
	if (!(await tell(http("POST", to, field.sent)))) return
	if (field.value.trim() === text) field.value = ""
	field.sent = null
}

function askInterrupt() {
	if ($("stop").hidden) return
	run.stopping = run.fold.turn.id
	put($("ask-title"), `Interrupt turn ${run.stopping}?`)
	$("ask").showModal()
}

function interrupt() {
	$("ask").close()
	tell(stream.ask("interrupt", { run_id: run.id, body: { turn_id: run.stopping } }))
}

function step(by) {
	run?.replay((run.place ?? run.facts.length) + by)
	draw()
}

function nextCard(by) {
	const cards = [...(run?.cards.values() ?? [])].filter((it) => !it.element.hidden)
	const at = cards.indexOf(run?.card)
	cards[at < 0 ? 0 : at + by]?.element.focus()
}

const KEYS = {
	j: () => nextCard(1),
	k: () => nextCard(-1),
	a: () => run?.card?.approve?.click(),
	d: () => run?.card?.deny?.click(),
	e: () => run?.card?.edit(true),
	i: askInterrupt,
	"/": () => $("filter").focus(),
	ArrowLeft: () => step(-1),
	ArrowRight: () => step(1),
	"?": () => $("keys").showModal(),
}

const PRESSES = {
	...KEYS,
	interrupt,
	say,
	bringToken,
	hush: () => warn(""),
	now: () => step(1 / 0),
	out: () => http("DELETE", "/v1/session").then(() => location.reload()),
	close: () => document.querySelector("dialog[open]").close(),
}

/** Keys act on the page alone: not in a field, with a modifier, or held down (F-95). */
function key(event) {
	const { target, key: name } = event
	if (document.querySelector("dialog[open]") || event.isComposing || event.defaultPrevented) return
	if (name === "Escape") return warn(""), show($("fact"), false)
	if (event.repeat || event.ctrlKey || event.altKey || event.metaKey || (event.shiftKey && !"?/".includes(name))) return
	if (!KEYS[name] || target.closest("input, textarea, select, [contenteditable]")) return
	event.preventDefault()
	KEYS[name]()
}

async function start() {
	for (const { dataset, textContent } of $("machine").children) {
		const [from, to] = dataset.move?.split(" ") ?? []
		for (const fact of dataset.on?.split(" ") ?? []) leads[`${from} ${fact}`] = to
		if (dataset.look) [SIGNS[dataset.look]] = textContent.split(" ")
	}
	makeLists()
	document.addEventListener("click", ({ target }) => PRESSES[target.closest("[data-do]")?.dataset.do]?.())
	$("place").oninput = () => (run.replay(Number($("place").value)), draw())
	$("filter").oninput = draw
	$("token").onkeydown = ({ key: name }) => void (name === "Enter" && bringToken())
	$("prompt").onkeydown = (event) => void (event.key === "Enter" && (event.ctrlKey || event.metaKey) && say())
	document.addEventListener("keydown", key)
	addEventListener("hashchange", () => stream && go())
	setInterval(() => run?.cards.forEach((card) => card.tick()), 1000)
	const code = new URLSearchParams(location.hash.slice(1)).get("code")
	if (code) history.replaceState(null, "", location.pathname)
	const answer = code ? await http("POST", "/v1/session", { code }) : {}
	const why = code ? `${refusal(answer)} – the address that was printed works once` : ""
	enter(answer.status === 200 ? answer : await http("GET", "/v1/session"), why)
}

if (globalThis.document && $("runs")) start()
export { $, Fold, SIGNS, Stream, arrange, clock, copy, difference, editable, exact, fill, h, http, look, number, order, path, plain, pretty, put, refusal, region, set, show, span, spell, warn }
