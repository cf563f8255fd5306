// AG-UI's own HttpAgent (F-111).
//
// Its stream can be cut after so many events, as a network would: that is all that is done to it.
// An agent lives as long as the process, under the name that a test gives it.
import { HttpAgent, buildResumeArray } from "@ag-ui/client"
import { serve } from "./steps.mjs"

const GONE = "the network is gone"
const agents = new Map()

/** What is cut, and how: the client reads event by event, and the next reading after it fails. */
class Line {
	cut = null
	how = "error"

	async fetch(url, init) {
		const response = await fetch(url, init)
		if (!response.ok || response.body === null) return response
		const reader = response.body.getReader()
		const decoder = new TextDecoder()
		const encoder = new TextEncoder()
		const cut = this.cut
		let passed = 0
		let text = ""
		const next = async () => {
			for (;;) {
				const end = text.indexOf("\n\n")
				if (end >= 0) {
					const part = text.slice(0, end + 2)
					text = text.slice(end + 2)
					return part
				}
				const { done, value } = await reader.read()
				if (done) return null
				text += decoder.decode(value, { stream: true })
			}
		}
		const pull = async (controller) => {
			if (cut !== null && passed >= cut) {
				await reader.cancel()
				return this.how === "error" ? controller.error(new TypeError(GONE)) : controller.close()
			}
			const part = await next()
			if (part === null) return controller.close()
			if (part.startsWith("data: ")) passed++
			controller.enqueue(encoder.encode(part))
		}
		const { status, headers } = response
		const cancel = () => reader.cancel()
		return new Response(new ReadableStream({ pull, cancel }, { highWaterMark: 0 }), { status, headers })
	}
}

function told({ it, events }, error = null) {
	return {
		messages: it.messages,
		state: it.state,
		interrupts: it.pendingInterrupts,
		events,
		error,
	}
}

async function ran(found, parameters) {
	found.events.length = 0
	try {
		await found.it.runAgent(parameters)
		return told(found)
	} catch (error) {
		return told(found, error?.message ?? String(error))
	}
}

// The client prints what it raises; and what it lets go of a stream that was cut rejects once more,
// which ends Node and no browser.
console.error = () => {}
process.on("unhandledRejection", (error) => {
	if (error?.message !== GONE) throw error
})

serve({
	async open({ agent: name, url, token, thread, query = "", messages }) {
		const line = new Line()
		const headers = { Authorization: `Bearer ${token}` }
		const it = new HttpAgent({
			url: `${url}/v1/agui${query}`,
			threadId: thread,
			headers,
			initialMessages: messages,
			fetch: (url, init) => line.fetch(url, init),
		})
		const events = []
		it.subscribe({ onEvent: ({ event }) => void events.push(event) })
		agents.set(name, { it, line, events })
	},
	/** Cut the next streams after so many events; null: none. */
	async cuts({ agent, after, how = "error" }) {
		Object.assign(agents.get(agent).line, { cut: after, how })
	},
	async say({ agent, text, id }) {
		const found = agents.get(agent)
		found.it.addMessage({ id, role: "user", content: text })
		return ran(found)
	},
	/** Ask again with what it has; with the same answers, where it was asked something. */
	async run({ agent, resume }) {
		return ran(agents.get(agent), resume === undefined ? {} : { resume })
	},
	/** Answer all that is asked: by call, or all alike. */
	async answer({ agent, payload, of = {}, status = "resolved" }) {
		const found = agents.get(agent)
		const said = ({ toolCallId }) => of[toolCallId] ?? { status, payload }
		const responses = Object.fromEntries(found.it.pendingInterrupts.map((it) => [it.id, said(it)]))
		const resume = buildResumeArray(found.it.pendingInterrupts, responses)
		return { ...(await ran(found, { resume })), resume }
	},
	async told({ agent }) {
		return told(agents.get(agent))
	},
})
