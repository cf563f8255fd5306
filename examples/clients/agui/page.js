// A page with HttpAgent, as its documentation has it; all that is turnlock's is the address and the token.
import { HttpAgent, buildResumeArray } from "@ag-ui/client"

const { server } = await (await fetch("/where.json")).json()
const find = (id) => document.getElementById(id)
const made = (tag, given = {}, ...inside) => {
	const it = Object.assign(document.createElement(tag), given)
	it.append(...inside)
	return it
}

/** A thread is a run of the server's; the page keeps what was said in it, as such pages do. */
const threadId = (location.hash ||= `#thread-${crypto.randomUUID()}`).slice(1)
const kept = JSON.parse(sessionStorage.getItem(threadId) ?? '{"messages": [], "state": {}}')
const token = (sessionStorage.token ||= prompt("The token that was printed") ?? "")

const agent = new HttpAgent({
	url: `${server}/v1/agui`,
	threadId,
	headers: { Authorization: `Bearer ${token}` },
	initialMessages: kept.messages,
	initialState: kept.state,
})
/** What a person has said to what is asked, until all of it is answered: then it is sent. */
let answers = {}
let busy = false

agent.subscribe({
	onMessagesChanged: () => draw(),
	onCustomEvent: ({ event }) => {
		if (event.name === "DELIVERY_REFUSED") find("notice").textContent = `That was not taken: ${event.value.reason}.`
	},
	onRunErrorEvent: ({ event }) => (find("notice").textContent = event.message),
})

async function run(parameters = {}) {
	if (busy) return
	busy = true
	draw()
	try {
		await agent.runAgent(parameters)
	} catch (error) {
		find("notice").textContent = `${error.message}: it is asked again in a moment.`
		setTimeout(() => run(parameters), 2000)
	} finally {
		busy = false
		sessionStorage.setItem(threadId, JSON.stringify({ messages: agent.messages, state: agent.state }))
		draw()
	}
}

function answer(interrupt, payload) {
	find("notice").textContent = ""
	answers[interrupt.id] = { status: "resolved", payload }
	// the client answers all of a thread at once, or none
	if (agent.pendingInterrupts.every((it) => answers[it.id])) {
		const resume = buildResumeArray(agent.pendingInterrupts, answers)
		answers = {}
		run({ resume })
	} else draw()
}

/** Say nothing to what is asked: it decides nothing, and brings what others have decided. */
const look = () => {
	const nothing = Object.fromEntries(agent.pendingInterrupts.map((it) => [it.id, { status: "cancelled" }]))
	return run(agent.pendingInterrupts.length ? { resume: buildResumeArray(agent.pendingInterrupts, nothing) } : {})
}

function card(call) {
	const asks = busy ? undefined : agent.pendingInterrupts.find((it) => it.toolCallId === call.id)
	const end = agent.messages.find((it) => it.toolCallId === call.id)
	const state = asks ? "asks" : !end ? "runs" : end.content.startsWith('{"denied"') ? "denied" : end.content.startsWith('{"error"') ? "failed" : "done"
	const inside = [made("strong", {}, call.function.name)]
	if (asks && !answers[asks.id]) {
		const text = JSON.stringify(JSON.parse(call.function.arguments), null, 1)
		const edited = made("textarea", { value: text, rows: text.split("\n").length, ariaLabel: "Arguments" })
		const before = edited.value
		const approve = () => {
			const payload = { approved: true }
			try {
				if (edited.value !== before) payload.arguments = JSON.parse(edited.value)
			} catch {
				return (find("notice").textContent = "These arguments are no JSON.")
			}
			answer(asks, payload)
		}
		inside.push(
			edited,
			made("button", { className: "yes", onclick: approve }, "Approve"),
			made("button", { onclick: () => answer(asks, { approved: false }) }, "Deny"),
		)
	} else inside.push(made("pre", {}, call.function.arguments))
	inside.push(made("p", { className: "state" }, asks && answers[asks.id] ? "answered" : state))
	if (end) inside.push(made("pre", {}, end.content))
	return made("article", { className: state }, ...inside)
}

function draw() {
	const typing = document.activeElement?.tagName === "TEXTAREA" && !busy
	find("send").disabled = busy
	find("state").textContent = busy ? "speaks" : agent.pendingInterrupts.length ? "asks" : "ready"
	if (typing) return // what is being edited stays as it is
	find("messages").replaceChildren(
		...agent.messages
			.filter((it) => it.role === "user" || it.role === "assistant")
			.map((it) => {
				const said = it.content ? [made("p", { className: `said ${it.role}` }, made("span", {}, it.content))] : []
				return made("li", {}, ...said, ...(it.toolCalls ?? []).map(card))
			}),
	)
}

find("say").onsubmit = (event) => {
	event.preventDefault()
	const content = find("text").value.trim()
	if (!content) return
	find("text").value = find("notice").textContent = ""
	agent.addMessage({ id: crypto.randomUUID(), role: "user", content })
	look()
}
// somebody else may decide, at a console: while something is asked, look again
setInterval(() => {
	const typing = document.activeElement?.tagName === "TEXTAREA"
	if (!busy && !typing && agent.pendingInterrupts.length && !Object.keys(answers).length) look()
}, 3000)
draw()
look()
