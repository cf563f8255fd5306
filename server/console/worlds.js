// Chats of worlds (world.md 11, F-90). What was said becomes text nodes; what is shown is a fold of a chat's
// one stream; what is decided, the server judges.
import { $, SIGNS, Stream, arrange, clock, copy, exact, fill, h, http, look, number, path, plain, pretty, put, refusal, region, set, show, span, spell, warn } from "./console.js"

const HELD = 20_000 // lines of a chat that are held; older ones are let go
const SHOWN = 200 // of them in the page at once
const LONG = 20_000 // characters of one that are shown before somebody asks for all
const LIVE = 65_536 // characters that are held of what is said just now

set(SIGNS, { approval: "?", question: "?", doubt: "~", running: ">", speaking: "✎", to_publish: "↩", to_hear: "…", failing: "✗", closed: "┴" })

// ---- words

const words = (value) => (typeof value === "string" ? value : value == null ? "" : pretty(value))
const parts = (id) => id.split("/").map((it) => it.replaceAll("%2F", "/").replaceAll("%25", "%"))
const many = (count, one, more) => `${count} ${count === 1 ? one : more}`

function kept(key) {
	try {
		return JSON.parse(sessionStorage.getItem(key)) ?? []
	} catch {
		return []
	}
}

/** What an entry of the log says: its kind, who, a text, and what stands beside it. */
function entryLine({ body, entry_id, late }) {
	const { kind, sender, role, text, by, action, content, reason, run = "", server } = body ?? {}
	const agent = words(run).split("/")[2] ?? ""
	if (kind === "message") return { kind: role === "agent" ? "agent" : "person", who: words(sender), text: words(text) }
	if (kind === "handoff") return { kind, who: `${words(sender)} hands over`, text: words(text) }
	if (kind === "notice") return { kind, who: "notice", text: words(text) }
	if (kind === "question") return { kind: "act", who: `? ${words(server)} asks for ${agent}`, text: words(text) }
	if (kind === "reply") return { kind: "act", who: `${words(by)}: ${words(action)}${late ? ", too late: its call did not wait" : ""}`, more: content && ["answer", content] }
	if (kind === "stop") return { kind: "act", who: `┴ ${words(by)} stops ${agent}`, text: words(reason) }
	return { kind: "act", who: words(kind ?? entry_id), more: ["entry", body] }
}

/** What a projection says. */
function projectionLine({ role, agent, tool_name, asks, attempt, approved, decided_by, scope, grant_id, reason, status, result, error, ...it }) {
	const line = { kind: "act" }
	if (role === "request") return set(line, { who: `? ${agent} asks for ${asks.tool_name}`, more: ["arguments", asks.arguments] })
	if (role === "doubt") return set(line, { who: `~ ${agent}: nobody knows whether ${asks.tool_name} happened, attempt ${attempt}`, more: ["arguments", asks.arguments] })
	if (role === "decision") {
		const how = `${decided_by ?? (grant_id ? "a grant" : "nobody")} ${approved ? "approves" : "denies"} ${tool_name} of ${agent}`
		const far = it.arguments ? ", edited" : scope && scope !== "once" ? ` for this ${scope}` : ""
		return set(line, { who: `${approved ? "+" : "-"} ${how}${far}`, text: words(reason), more: it.arguments && ["edited arguments", it.arguments] })
	}
	const long = (result && typeof result === "object") || words(result).length > 300
	const sign = { succeeded: "✓", failed: "✗" }[status] ?? "-"
	return set(line, { who: `${sign} ${tool_name} of ${agent}: ${plain(status)}`, text: words(error ?? reason ?? (long ? "" : result)), more: long && ["result", result] })
}

// ---- one chat

/** What this page knows of a chat: its lines, what waits, what is said just now, and what was typed. */
class Chat {
	constructor(world, name) {
		set(this, { world, name, id: `${world}/${name}`, cards: new Map(), deck: h("div.deck"), state: "off", draft: "" })
		this.at = path("worlds", world, "chats", name)
		this.box = kept(this.boxKey)
		this.forget()
	}

	forget() {
		set(this, { last: "", number: 0, gone: 0, lines: [], waiting: new Map(), live: new Map(), view: null, end: null })
	}

	/** Of one person: nobody says what another has typed. */
	get boxKey() {
		return `say ${me.name} ${this.id}`
	}

	get open() {
		return this.state === "live" && stream.fresh && can("decide")
	}

	subscribe() {
		this.leave()
		this.state = "catching_up"
		this.sub = stream.send("subscribe", { world: this.world, chat: this.name, after: this.last })
	}

	leave() {
		clearTimeout(this.again)
		if (this.sub) stream.send("unsubscribe", { id: this.sub })
		this.live.clear() // what was said just then is void: the log tells what became of it
		set(this, { sub: 0, state: "off" })
	}

	heed(said) {
		if (said.type === "entry") this.enter(said)
		else if (said.type === "projection") this.project(said)
		else if (said.type === "transient") this.pass(said)
		else if (said.type === "error") this.fault(said.problem ?? said)
		else if (said.type === "ended") this.ended()
		else if (said.type === "live") {
			set(this, { state: "live", last: said.cursor })
			for (const card of this.cards.values()) card.unknown = false
			this.send()
		}
		if (this.state === "live") this.soon()
	}

	ended() {
		set(this, { sub: 0, state: "off" })
		if (!this.refused) this.again = setTimeout(() => chat === this && stream.fresh && this.subscribe(), 1000)
	}

	fault(problem) {
		warn(refusal({ body: problem }))
		this.refused = problem.title === "not_found"
		if (/cursor/.test(problem.title)) this.forget() // an older journal was put in its place: it is read anew
	}

	line(line, at) {
		this.lines.push(set(line, { key: this.gone + this.lines.length, at: number(at) }))
		if (this.lines.length > HELD) this.gone += this.lines.splice(0, HELD / 4).length
	}

	enter(said) {
		if (said.number <= this.number) return // is here already
		set(this, { last: said.cursor, number: said.number })
		const { entry_id, body, at } = said
		const line = entryLine(said)
		this.line(line, at)
		this.live.delete(entry_id)
		const run = entry_id.split("/").slice(0, 3).join("/")
		for (const [id, { over }] of this.live) if (over && id.startsWith(`${run}/`)) this.live.delete(id)
		if (body?.kind === "question" && /^question(\/[^/]+){5}$/.test(entry_id)) this.waiting.set(entry_id, { role: "question", id: entry_id, ...body, at })
		if (body?.kind === "reply") this.waiting.delete(body.to)
		this.box = this.box.filter((it) => !(entry_id.startsWith("say/") && entry_id.endsWith(`/${it.message_id}`)))
		if (this.state === "live" && line.kind !== "act") put($("told"), `${line.who}: ${line.text.slice(0, 300)}`)
	}

	project(said) {
		const { role, id, cursor, at } = said
		this.last = cursor
		const line = projectionLine(said)
		this.line(line, at)
		if (role === "request" || role === "doubt") {
			this.waiting.set(id, said)
			if (this.state === "live") put($("told"), line.who)
			return
		}
		const call = id.slice(id.indexOf("/"))
		this.waiting.delete(`request${call}`)
		if (role !== "tool") return
		for (const it of this.waiting.keys()) if (it.startsWith(`doubt${call}/`)) this.waiting.delete(it)
		this.live.delete(id)
	}

	/** Something that is said just now, and not kept (W-52): a new try voids the one before. */
	pass({ kind, entry_id, agent, try: attempt, text, thought, call, message, dropped }) {
		if (kind === "start") {
			for (const [id, it] of this.live) if (it.over && it.agent === agent) this.live.delete(id)
			this.live.delete(entry_id)
		}
		let it = this.live.get(entry_id)
		if (!it) {
			const log = kind === "log"
			const run = log ? parts(entry_id)[1] : entry_id
			it = { agent: agent ?? run.split("/")[2]?.split("#")[0], log, text: log || attempt ? "" : "…", thought: "", calls: new Map(), attempt }
			this.live.set(entry_id, it)
		}
		const add = (old, more) => (old + (dropped ? "…" : "") + more).slice(-LIVE)
		if (text != null) it.text = add(it.text, text)
		if (thought != null) it.thought = add(it.thought, thought)
		if (call) {
			const key = call.place ?? call.tool_name
			const had = it.calls.get(key) ?? { tool_name: "", text: "" }
			it.calls.set(key, { tool_name: call.tool_name ?? had.tool_name, text: add(had.text, call.text ?? "") })
		}
		if (kind === "end") it.over = true
		if (kind === "error") set(it, { over: true, wrong: message, text: "", thought: "", calls: new Map() })
	}

	soon() {
		this.timer ??= setTimeout(() => ((this.timer = null), this.look()), 300)
	}

	/** Ask how the chat stands. It only takes away: what began to wait, the stream tells. */
	async look() {
		const before = [...this.waiting.keys()]
		const { status, body } = await http("GET", this.at)
		if (status !== 200) return
		this.view = body
		const waits = new Set([...body.requests, ...body.doubts, ...body.questions].map((it) => it.id))
		if (this.state === "live") for (const id of before) if (!waits.has(id)) this.waiting.delete(id)
		draw()
	}

	// What is said here is kept until it is acknowledged; said again, it is said once (F-23).

	say(text) {
		this.box.push({ text, message_id: crypto.randomUUID() })
		this.keep()
		this.send()
	}

	keep() {
		if (this.box.length) sessionStorage.setItem(this.boxKey, JSON.stringify(this.box))
		else sessionStorage.removeItem(this.boxKey)
		draw()
	}

	async send() {
		if (this.sending) return
		this.sending = true
		for (let next; (next = this.box.find((it) => !it.why)); ) {
			const { status, body } = await http("POST", `${this.at}/messages`, { text: next.text, message_id: next.message_id })
			if (status === 200 || status === 201) this.box = this.box.filter((it) => it !== next)
			else if (!status || status === 429 || status > 499) {
				next.late = true
				setTimeout(() => this.send(), 4000)
				break
			} else next.why = refusal({ body })
			this.keep()
		}
		this.sending = false
		this.keep()
	}
}

// ---- cards

// Just after cards have moved a pointer may have meant another one.
let movedAt = 0
const isMoving = () => performance.now() - movedAt < 350

/** Something that waits for a person, made once, and only updated (F-93). */
class Card {
	constructor(chat, it) {
		set(this, copy("card"), { chat, it, under: "", told: "", unknown: false })
		const { element, row } = this
		const { role, id, asks, text, schema } = it
		this.title.id = `card-${performance.now()}-${chat.cards.size}`
		element.setAttribute("aria-labelledby", this.title.id)
		const as = role === "request" ? "approval" : role
		element.dataset.look = as
		look(this.sign, as, "")
		put(this.title, asks?.tool_name ?? `${words(it.server)} asks`)
		const [, run, turn, invocation, attempt] = parts(id)
		this.call = { run_id: run, turn_id: turn, invocation_id: invocation, attempt: Number(attempt) }
		put(this.name, `${run.split("/").at(-1)}  ${invocation}`)
		show(this.args, asks)
		put(this.args, pretty(asks?.arguments))
		this.args.ariaLabel = spell(`Arguments of ${asks?.tool_name} ${invocation}`)
		show(this.digested, asks?.arguments_digest)
		put(this.digest, asks?.arguments_digest ?? "")
		put(this.words, role === "doubt" ? "It was started, and nobody knows whether it happened. Look there first." : words(text))
		if (role === "request") this.asks(it.choices)
		else if (role === "doubt") this.doubts()
		else this.questions(schema)
		show(row, can("decide"))
		for (const type of ["focusin", "click"]) element.addEventListener(type, () => choose(this))
		element.addEventListener("focusout", () => setTimeout(draw))
	}

	button(text, kind, act) {
		const made = this.row.appendChild(h(`button.${kind}`, text))
		made.onclick = ({ detail }) => {
			if (this.may && !(detail && isMoving())) act()
		}
		return made
	}

	field(label) {
		return this.row.appendChild(set(h("input"), { ariaLabel: label, placeholder: label }))
	}

	asks(choices) {
		const digest = { arguments_digest: this.it.asks.arguments_digest }
		const approve = (scope) => () => this.send("decide", { request_id: this.it.id, approved: true, scope, ...digest })
		if (choices.includes("once")) this.approve = this.button("Approve once", "good", approve("once"))
		if (choices.includes("session")) this.button("Approve for this session", "session", approve("session"))
		if (!choices.includes("deny")) return
		const reason = this.field("reason, told to the model")
		this.deny = this.button("Deny", "danger", () => {
			const why = reason.value.trim()
			this.send("decide", { request_id: this.it.id, approved: false, ...(why && { reason: why }) })
		})
	}

	doubts() {
		const resolve = (resolution) => () => {
			const [{ run_id, ...body }, told] = [this.call, field.value.trim()]
			if (resolution === "error") body.error = told || "it did not happen"
			if (resolution === "result") body.result = told ? read(told) : null
			this.send("resolve", { ...body, resolution }, { run_id })
		}
		const may = (name, text, kind) => this.it.choices.includes(name) && this.button(text, kind, resolve(name))
		may("result", "It succeeded", "good")
		const field = this.field("result, as JSON or text; or the error")
		may("error", "It failed", "danger")
		may("retry", "Retry", "retry")
	}

	questions(schema) {
		const reply = (action, more) => this.send("reply", { question_id: this.it.id, action, ...more })
		const fields = Object.entries(schema?.properties ?? {}).map(([name, part]) => formField(name, part ?? {}, (schema.required ?? []).includes?.(name)))
		this.form.append(...fields.map(({ element }) => element))
		if (schema)
			this.button("Answer", "good", () => {
				try {
					const content = {}
					for (const { name, value } of fields) {
						const given = value()
						if (given !== undefined) Object.defineProperty(content, name, { value: given, enumerable: true })
					}
					reply("accept", { content })
				} catch (error) {
					warn(`Not sent: ${error.message}`)
				}
			})
		this.button("Decline", "danger", () => reply("decline"))
		this.button("Cancel", "cancel", () => reply("cancel"))
	}

	/** One answer is under way at a time, however often it is asked for (F-96). */
	get may() {
		return this.chat.open && !this.under && !this.unknown && this.waits
	}

	get waits() {
		return this.chat.waiting.has(this.it.id)
	}

	update() {
		for (const button of this.row.querySelectorAll("button")) button.ariaDisabled = String(!this.may || isMoving())
		this.element.ariaCurrent = String(this.chat.card === this)
		this.element.classList.toggle("done", !this.waits)
		let note = this.under || this.told
		if (!this.waits) note = "Answered; the chat says by whom."
		else if (this.unknown) note = "Sent, and not answered: unknown until the stream tells."
		else if (!can("decide")) note = "You may look; to decide needs another token."
		else if (!this.chat.open) note = "Not live: decisions wait until all is shown."
		put(this.note, note)
		this.tick()
	}

	tick() {
		const { at, asks, role, attempt } = this.it
		const deadline = asks?.deadline
		let told = role === "doubt" ? `attempt ${attempt}, in doubt since ${clock(at)}` : `asked ${clock(at)}`
		if (role === "request") told += deadline == null ? " – waits for ever" : ` – until ${clock(deadline)}, ${span(Math.max(0, number(deadline) - Date.now() / 1000))} left`
		put(this.when, told)
	}

	async send(type, body, to = { world: this.chat.world, chat: this.chat.name }) {
		set(this, { under: "Sent…", told: "" })
		draw()
		const answer = await stream.ask(type, { ...to, body })
		const { status } = answer ?? {}
		this.under = ""
		if (!answer) this.unknown = true
		else if (status === 202) this.told = "Posted to the owner of the run."
		else if (status === 200 || status === 201) this.told = "Taken."
		else warn((this.told = `Refused: ${refusal(answer)}`))
		this.chat.soon()
		draw()
	}
}

/** JSON, or else the text itself. */
function read(text) {
	try {
		return exact(text)
	} catch {
		return text
	}
}

/** The values that a field takes alone, with the words for them; null: any. */
function choicesOf(part) {
	if (Array.isArray(part.enum)) return part.enum.map((it, place) => [it, part.enumNames?.[place] ?? it])
	const listed = part.oneOf ?? part.anyOf
	return Array.isArray(listed) ? listed.filter((it) => it && "const" in it).map((it) => [it.const, it.title ?? it.const]) : null
}

/** A field of a question's form: its element, and what was put there; undefined: nothing. */
function formField(name, part, required) {
	const { type, title, description, default: given, items, minimum, maximum, format } = part
	const called = spell(words(title ?? name))
	const label = called + (required ? " *" : "")
	const bounds = [minimum, maximum].map(words)
	const small = h("small", words(description) + (bounds.join("") && ` ${bounds.join(" … ")}`))
	const made = (tag, more) => set(h(tag), more)
	const whole = (...inside) => h("label", null, ...inside, small)
	const tick = (checked) => made("input", { type: "checkbox", checked })
	const missing = () => {
		throw new Error(`${called} is missing`)
	}
	const choices = choicesOf(type === "array" ? (items ?? {}) : part)
	if (type === "array" && choices) {
		const ticks = choices.map(([value, text]) => [value, text, tick(Array.isArray(given) && given.includes(value))])
		const element = h("fieldset", null, h("legend", null, label), small, ...ticks.map(([, text, it]) => h("label", null, it, spell(words(text)))))
		const value = () => {
			const found = ticks.filter(([, , it]) => it.checked).map(([value]) => value)
			return found.length || required ? found : undefined
		}
		return { name, element, value }
	}
	if (choices) {
		const field = made("select")
		const options = choices.map(([value, text], place) => made("option", { value: place, textContent: spell(words(text)), selected: value === given }))
		field.append(made("option", { value: "", textContent: "–", selected: given == null }), ...options)
		return { name, element: whole(label, field), value: () => (field.value ? choices[field.value][0] : required ? missing() : undefined) }
	}
	if (type === "boolean") {
		const field = tick(given === true)
		return { name, element: whole(field, label), value: () => field.checked }
	}
	const listed = type === "array"
	const lines = listed && Array.isArray(given) ? given.map(words).join("\n") : words(given)
	const field = listed ? made("textarea", { rows: 3, value: lines, placeholder: "one a line" }) : made("input", { value: lines, type: format === "date" ? "date" : "text" })
	const isNumber = type === "number" || type === "integer"
	if (isNumber) field.inputMode = "decimal"
	const value = () => {
		const text = field.value
		if (listed) return text.trim() || required ? text.split("\n").filter((it) => it.trim()) : undefined
		if (!text.trim()) return required ? (isNumber ? missing() : text) : undefined
		if (!isNumber) return text
		if (!/^\s*-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?\s*$/.test(text)) throw new Error(`${called} is no number`)
		return exact(text)
	}
	return { name, element: whole(label, field), value }
}

function drawCards() {
	for (const [id, it] of chat.waiting) {
		if (chat.cards.has(id)) continue
		const card = new Card(chat, it)
		chat.cards.set(id, card)
		chat.deck.append(card.element)
		move()
	}
	for (const [id, card] of chat.cards) {
		if (card.waits || card.element.contains(document.activeElement)) card.update()
		else {
			card.element.remove()
			chat.cards.delete(id)
			if (chat.card === card) chat.card = null
			move()
		}
	}
	put($("cards-title"), chat.waiting.size ? `Waits for you: ${chat.waiting.size}` : "")
}

function move() {
	movedAt = performance.now()
	setTimeout(draw, 360)
}

function choose(card) {
	chat.card = card
	draw()
}

// ---- the page

function full(text) {
	if (text.length <= LONG) return [h("div", text)]
	const all = h("button.quiet", `Show all ${text.length.toLocaleString()} characters`)
	const div = h("div", `${text.slice(0, LONG)}…`)
	all.onclick = () => (put(div, text), all.remove())
	return [div, all]
}

function lineOf(line) {
	const { kind, who, text, more, at } = line
	const made = set(h("div.said", null, h("small", null, h("b", who), ` ${clock(at)}`)), { key: line.key })
	made.dataset.kind = kind
	if (text) made.append(...full(text))
	if (more) {
		const details = h("details", null, h("summary", more[0]))
		details.ontoggle = () => fill(details, true, () => [h("summary", more[0]), region(more[0], pretty(more[1]))])
		made.append(details)
	}
	return made
}

/** What is said just now: made once for its entry, and only updated. */
function liveOf(id, it) {
	if (!it.element) {
		it.element = h("div.said", null, ...(it.parts = ["small", "div.thought", "div", "div.calls"].map((tag) => h(tag))))
		it.element.dataset.kind = "live"
	}
	const [head, thought, text, calls] = it.parts
	const trying = it.attempt > 1 ? `, try ${it.attempt}` : ""
	put(head, it.log ? `> a tool of ${it.agent} writes` : it.wrong ? `✗ ${it.agent}: no answer${trying}: ${it.wrong}` : `✎ ${it.agent} ${it.over ? "goes on" : "speaks"}${trying}`)
	put(thought, it.thought)
	put(text, it.text)
	put(calls, [...it.calls.values()].map((call) => `> ${call.tool_name} ${call.text}`).join("\n"))
	for (const part of it.parts) show(part, part.textContent)
	return it.element
}

function drawTalk() {
	const talk = $("talk")
	const atEnd = talk.scrollTop + talk.clientHeight > talk.scrollHeight - 24
	const { lines, gone, live } = chat
	const end = chat.end === null ? lines.length : Math.max(SHOWN, Math.min(lines.length, chat.end - gone))
	const first = Math.max(0, end - SHOWN)
	if (talk.of !== chat) talk.replaceChildren()
	const before = new Map([...talk.children].map((it) => [it.key, it]))
	const now = lines.slice(first, end).map((line) => before.get(line.key) ?? lineOf(line))
	if (chat.end === null) for (const [id, it] of live) now.push(liveOf(id, it))
	arrange(talk, now)
	if (chat.end === null && (atEnd || talk.of !== chat)) talk.scrollTop = talk.scrollHeight
	talk.of = chat
	show($("earlier"), first)
	show($("newest"), chat.end !== null || talk.scrollTop + talk.clientHeight < talk.scrollHeight - 24)
	show($("held"), gone && !first)
	put($("held"), `${many(gone, "older line is", "older lines are")} not held here`)
}

function turn(by) {
	const { lines, gone, end } = chat
	const next = (end ?? gone + lines.length) + by
	chat.end = by > 0 || next >= gone + lines.length ? null : Math.max(next, gone + SHOWN)
	drawTalk()
	const talk = $("talk")
	talk.scrollTop = by > 0 ? talk.scrollHeight : 0
	talk.focus({ preventScroll: true })
}

function drawMembers() {
	const { members = [] } = chat.view ?? {}
	chat.made ??= new Map()
	const rows = members.map(({ agent, run_id, stands, failing }) => {
		const speaks = [...chat.live.values()].some((it) => it.agent === agent && !it.over)
		let row = chat.made.get(run_id)
		if (!row) {
			row = h("li", null, h("b", agent), h("span.pill"), set(h("button.danger", "Interrupt"), { ariaLabel: `Interrupt ${agent}`, onclick: () => askInterrupt(agent) }), set(h("a", "run"), { href: `./#run=${encodeURIComponent(run_id)}`, ariaLabel: `The run of ${agent}` }), h("small"))
			chat.made.set(run_id, row)
		}
		const [, pill, button, , small] = row.children
		look(pill, failing ? "failing" : speaks && stands !== "approval" ? "speaking" : stands)
		show(button, chat.open && (speaks || !/^(idle|to_hear|to_publish)$/.test(stands)))
		put(small, words(failing))
		return row
	})
	arrange($("members"), rows)
}

function drawPending() {
	fill($("pending"), `${chat.id} ${JSON.stringify(chat.box)}`, () =>
		chat.box.map((it) => {
			const how = it.why ? `✗ Refused, ${it.why}` : it.late ? "○ Not answered yet" : "… Sending"
			const line = h("li", null, h("span", `${how}: ${it.text.slice(0, 2000)}`))
			const back = () => {
				chat.box = chat.box.filter((other) => other !== it)
				if (!$("prompt").value) $("prompt").value = it.text
				chat.keep()
			}
			if (it.why) line.append(set(h("button", "Take back"), { onclick: back }))
			return line
		}),
	)
}

// ---- the list of worlds

const worlds = new Map() // by name: title, and the chats where it was looked at
const chats = new Map()
const runs = new Map() // by chat, then by run
const questions = new Map() // how many wait, by chat: no list of runs tells of them

const runsOf = (id) => [...(runs.get(id)?.values() ?? [])]
const isBusy = (it) => /^(exec|proc)/.test(it.status)

function countOf(id) {
	const open = chats.get(id)
	return open?.state === "live" ? open.waiting.size : runsOf(id).reduce((sum, it) => sum + it.waiting + it.in_doubt, questions.get(id) ?? 0)
}

function standsOf(id, { closed }) {
	const count = countOf(id)
	if (count) return ["approval", many(count, "waits", "wait")]
	if (closed) return ["closed"]
	return runsOf(id).some(isBusy) ? ["running", "at work"] : null
}

function drawWorlds() {
	let waiting = 0
	const lines = [...worlds.values()].map((it) => {
		it.line ??= h("li", null, h("strong"), h("ul"))
		const [head, list] = it.line.children
		fill(head, `${it.title}`, () => [spell(it.title || it.world), ...(it.title ? [" ", h("code", it.world)] : [])])
		const rows = [...(it.known?.values() ?? [])].map((known) => {
			known.line ??= h("li", null, h("a", null, h("b"), h("span.pill"), " ", h("small")))
			const link = known.line.firstChild
			const [name, pill, small] = link.children
			put(name, known.title || known.chat)
			put(small, known.title ? known.chat : "")
			link.href = `#${new URLSearchParams({ world: it.world, chat: known.chat })}`
			const id = `${it.world}/${known.chat}`
			link.ariaCurrent = id === chat?.id ? "page" : null
			const stands = standsOf(id, known)
			show(pill, stands)
			if (stands) look(pill, ...stands)
			if (countOf(id)) waiting += 1
			return known.line
		})
		arrange(list, rows)
		return it.line
	})
	arrange($("worlds"), lines)
	document.title = `${waiting ? `(${waiting}) ` : ""}turnlock chats`
	show($("waiting"), waiting)
	look($("waiting"), "approval", many(waiting, "chat waits for you", "chats wait for you"))
}

async function lookAround() {
	const { status, body } = await http("GET", "/v1/worlds")
	if (status !== 200) return
	show($("none"), !body.worlds.length)
	for (const it of body.worlds) worlds.set(it.world, { ...worlds.get(it.world), ...it })
	for (const { world } of body.worlds.slice(0, 50)) {
		const found = await http("GET", path("worlds", world, "chats"))
		if (found.status !== 200) continue
		const had = worlds.get(world).known
		worlds.get(world).known = new Map(found.body.chats.map((it) => [it.chat, { ...it, line: had?.get(it.chat)?.line }]))
	}
	for (const id of runs.keys()) {
		const [world, name] = id.split("/")
		if (id === chat?.id || !worlds.has(world) || !runsOf(id).some(isBusy)) questions.delete(id)
		else questions.set(id, (await http("GET", path("worlds", world, "chats", name))).body.questions?.length ?? 0)
	}
	chat?.soon()
	if (!chats.size && !location.hash && innerWidth > 704) {
		const all = [...worlds.values()].flatMap((it) => [...(it.known?.keys() ?? [])].map((name) => [it.world, name]))
		const first = all.find(([world, name]) => countOf(`${world}/${name}`)) ?? all[0]
		if (first) location.replace(`#${new URLSearchParams({ world: first[0], chat: first[1] })}`)
	}
	draw()
}

// ---- the whole

let me = { roles: [] }
let stream = null
let chat = null
let stopping = ""
let drawing = false
const can = (role) => me.roles.includes(role)

/** Draw with the next frame, or soon. */
function draw() {
	if (drawing || !stream) return
	drawing = true
	const now = () => ((drawing = false), drawNow())
	if (document.hidden || (chat?.state === "catching_up" && chat.lines.length > SHOWN)) setTimeout(now, 100)
	else requestAnimationFrame(now)
}

function drawNow() {
	drawWorlds()
	const state = !stream.fresh ? "off" : (chat?.state ?? "live")
	const [said, count] = $("badge").children
	$("badge").dataset.look = state
	look(said, state)
	put(count, state === "catching_up" && chat.lines.length ? many(chat.gone + chat.lines.length, "line", "lines") : "")
	document.body.dataset.screen = chat ? "run" : "runs"
	for (const id of ["of-run", "aside"]) show($(id), chat)
	show($("nothing"), !chat)
	const known = worlds.get(chat?.world)?.known?.get(chat.name)
	put($("run"), chat ? chat.view?.title || known?.title || chat.name : "")
	show($("status"), chat?.view)
	if (!chat) return
	const { idle } = chat.view ?? {}
	look($("status"), ...(known?.closed ? ["closed"] : chat.waiting.size ? ["approval", "waits for people"] : idle ? ["idle"] : ["running", "at work"]))
	show($("say"), can("run") && !known?.closed)
	show($("mute"), !can("run") || known?.closed)
	put($("mute"), known?.closed ? "This chat is closed." : "You may look; to say something needs another token.")
	drawCards()
	drawPending()
	drawTalk()
	drawMembers()
}

function heed(said) {
	if (said.type === "on") {
		stream.send("runs")
		chat?.subscribe()
		lookAround()
	} else if (said.type === "off") {
		for (const it of chats.values()) {
			it.live.clear()
			set(it, { state: "off", sub: 0 })
		}
		http("GET", "/v1/session").then(({ status }) => status === 401 && leave("Your token has ended."))
	} else if (/^runs?$/.test(said.type))
		for (const it of said.runs ?? [said]) {
			const id = it.run_id.split("/").slice(0, 2).join("/")
			if (it.run_id.split("/").length !== 3) continue
			runs.set(id, (runs.get(id) ?? new Map()).set(it.run_id, it))
			if (id === chat?.id) chat.soon()
		}
	else if (chat && (said.world ? `${said.world}/${said.chat}` === chat.id : said.id === chat.sub || said.run_id === chat.id)) chat.heed(said)
	draw()
}

function go() {
	const asked = new URLSearchParams(location.hash.slice(1))
	const [world, name] = [asked.get("world"), asked.get("chat")]
	const id = world && name ? `${world}/${name}` : null
	if (id === (chat?.id ?? null)) return
	if (chat) chat.draft = $("prompt").value
	chat?.leave()
	chat = id === null ? null : (chats.get(id) ?? new Chat(world, name))
	if (chat) {
		chats.set(id, chat)
		chat.refused = false
		$("cards").replaceChildren(chat.deck)
		$("prompt").value = chat.draft
		chat.look()
		if (stream.fresh) chat.subscribe()
	}
	draw()
}

function leave(why) {
	show($("door"), true)
	warn(why)
	$("token").focus()
}

function enter({ status, body }, why = "") {
	if (status !== 200) return leave(why)
	if (stream && me.name !== body.name) return location.reload() // its box is another's
	me = body
	show($("door"), false)
	warn("")
	put($("me"), me.name)
	stream?.open()
	stream ??= new Stream(heed)
	go()
	draw()
}

async function bringToken() {
	const token = $("token").value.trim()
	$("token").value = ""
	const answer = await http("POST", "/v1/session", {}, { Authorization: `Bearer ${token}` })
	enter(answer, refusal(answer))
}

function say() {
	const text = $("prompt").value.trim()
	if (!text || !chat) return
	$("prompt").value = ""
	turn(1)
	$("prompt").focus()
	chat.say(text)
}

function askInterrupt(agent) {
	stopping = agent
	put($("ask-title"), `Interrupt ${agent}?`)
	$("ask").showModal()
}

async function interrupt() {
	$("ask").close()
	const answer = await stream.ask("interrupt", { world: chat.world, chat: chat.name, body: { agent: stopping } })
	if (!answer) warn("Sent, and not answered: the stream will tell.")
	else if (answer.status > 299) warn(`Refused: ${refusal(answer)}`)
	chat.soon()
}

function nextCard(by) {
	const cards = [...(chat?.cards.values() ?? [])]
	const at = cards.indexOf(chat?.card)
	cards[at < 0 ? 0 : at + by]?.element.focus()
}

const KEYS = {
	j: () => nextCard(1),
	k: () => nextCard(-1),
	a: () => chat?.card?.approve?.click(),
	d: () => chat?.card?.deny?.click(),
	"/": () => $("prompt").focus(),
	"?": () => $("keys").showModal(),
}

const PRESSES = {
	...KEYS,
	interrupt,
	say,
	bringToken,
	earlier: () => turn(-SHOWN / 2),
	newest: () => turn(1),
	hush: () => warn(""),
	out: () => http("DELETE", "/v1/session").then(() => location.reload()),
	close: () => document.querySelector("dialog[open]").close(),
}

/** Keys act on the page alone: not in a field, with a modifier, or held down (F-95). */
function key(event) {
	const { target, key: name } = event
	if (document.querySelector("dialog[open]") || event.isComposing || event.defaultPrevented) return
	if (name === "Escape") return warn("")
	if (event.repeat || event.ctrlKey || event.altKey || event.metaKey || (event.shiftKey && !"?/".includes(name))) return
	if (!KEYS[name] || target.closest("input, textarea, select")) return
	event.preventDefault()
	KEYS[name]()
}

document.addEventListener("click", ({ target }) => PRESSES[target.closest("[data-do]")?.dataset.do]?.())
document.addEventListener("keydown", key)
$("token").onkeydown = ({ key: name }) => void (name === "Enter" && bringToken())
$("prompt").onkeydown = (event) => void (event.key === "Enter" && (event.ctrlKey || event.metaKey) && say())
$("talk").addEventListener("scroll", draw, { passive: true })
addEventListener("hashchange", () => stream && go())
setInterval(() => (chat?.cards.forEach((card) => card.tick()), draw()), 1000)
setInterval(() => !document.hidden && stream?.fresh && lookAround(), 10_000)
enter(await http("GET", "/v1/session"))
