// The AI SDK's own Chat, of which useChat is the hook, on both of its transports (F-111).
//
// Its streams can be cut after so many events, as a network would: that is all that is done to it.
// A chat lives as long as the process, under the name that a test gives it.
import { Chat } from "@ai-sdk/react"
import {
	DefaultChatTransport,
	WebSocketChatTransport,
	lastAssistantMessageIsCompleteWithApprovalResponses,
	readUIMessageStream,
	uiMessageChunkSchema,
} from "ai"
import { serve } from "./steps.mjs"

const chats = new Map()
const turn = (ms = 0) => new Promise((done) => setTimeout(done, ms))

/** What is cut and how; and how much came, of the latest request. */
class Line {
	cut = null
	how = "network error"
	events = 0
	requests = 0

	begins() {
		this.events = 0
		this.requests++
	}

	/** Count an event; whether it is the last one that is let through. */
	isLast() {
		this.events++
		return this.cut !== null && this.events >= this.cut
	}
}

const cutting = (line) => async (url, init) => {
	const response = await fetch(url, init)
	line.begins()
	if (!response.ok || response.body === null) return response
	let rest = ""
	const decoder = new TextDecoder()
	const encoder = new TextEncoder()
	const cut = new TransformStream({
		start(controller) {
			if (line.cut === 0) controller.error(new TypeError(line.how))
		},
		transform(bytes, controller) {
			const parts = (rest + decoder.decode(bytes, { stream: true })).split("\n\n")
			rest = parts.pop()
			for (const part of parts) {
				controller.enqueue(encoder.encode(`${part}\n\n`))
				if (!part.startsWith("data:") || part === "data: [DONE]") continue
				if (line.isLast()) return controller.error(new TypeError(line.how))
			}
		},
	})
	const { status, headers } = response
	return new Response(response.body.pipeThrough(cut), { status, headers })
}

const socketed = (line, headers) =>
	class extends WebSocket {
		constructor(url, protocols) {
			super(url, { protocols, headers })
		}

		send(text) {
			if (JSON.parse(text).type !== "abort") line.begins()
			super.send(text)
		}

		set onmessage(hear) {
			let cut = false
			this.addEventListener("message", (event) => {
				if (cut) return
				if (line.cut === 0) {
					cut = true
					return this.close()
				}
				hear(event)
				if (JSON.parse(event.data).type === "chunk" && line.isLast()) {
					cut = true
					this.close()
				}
			})
		}
	}

function opened({ chat: name, url, token, transport = "http", run, auto = true, agent }) {
	const line = new Line()
	const headers = { Authorization: `Bearer ${token}` }
	const data = []
	const query = agent === undefined ? "" : `?agent=${agent}`
	const it = new Chat({
		id: run ?? name,
		transport:
			transport === "http"
				? new DefaultChatTransport({ api: `${url}/v1/chat${query}`, headers, fetch: cutting(line) })
				: new WebSocketChatTransport({ url: `${url}/v1/chat-ws${query}`, webSocket: socketed(line, headers) }),
		sendAutomaticallyWhen: auto ? lastAssistantMessageIsCompleteWithApprovalResponses : undefined,
		onData: (part) => data.push(part),
	})
	return { it, line, data }
}

/** What the client has now; what came beside its messages is told once. */
function told({ it, line, data }) {
	return {
		messages: it.messages,
		status: it.status,
		error: it.error?.message ?? null,
		events: line.events,
		requests: line.requests,
		data: data.splice(0),
	}
}

/** Wait until the client does nothing: it sends some answers by itself, behind a promise or two. */
async function quiet({ it, line }) {
	for (let still = 0, requests = -1; still < 3; ) {
		await turn(2)
		const busy = it.status === "submitted" || it.status === "streaming" || requests !== line.requests
		still = busy ? 0 : still + 1
		requests = line.requests
	}
}

const parts = ({ it }) => it.messages.flatMap((message) => message.parts)
const asking = (chat, call) =>
	parts(chat).find((part) => part.toolCallId === call && part.approval !== undefined)?.approval.id

serve({
	async open(given) {
		chats.set(given.chat, opened(given))
	},
	/** Cut each stream from now on after so many events; null: none. */
	async cuts({ chat, after, how = "network error" }) {
		Object.assign(chats.get(chat).line, { cut: after, how })
	},
	async send({ chat, text, id }) {
		const found = chats.get(chat)
		await found.it.sendMessage({ id, role: "user", parts: [{ type: "text", text }] })
		await quiet(found)
		return told(found)
	},
	/** Begin to send, and let it go on. */
	async begin({ chat, text, id }) {
		chats.get(chat).it.sendMessage({ id, role: "user", parts: [{ type: "text", text }] })
	},
	async wait({ chat }) {
		await quiet(chats.get(chat))
		return told(chats.get(chat))
	},
	/** What a page does when a button of a card is pressed. */
	async answer({ chat, call, id, approved, reason }) {
		const found = chats.get(chat)
		await found.it.addToolApprovalResponse({ id: id ?? asking(found, call), approved, reason })
		await quiet(found)
		return told(found)
	},
	/** Send what was answered, whether or not the client does so by itself. */
	async submit({ chat }) {
		const found = chats.get(chat)
		await found.it.sendMessage()
		await quiet(found)
		return told(found)
	},
	async resume({ chat }) {
		const found = chats.get(chat)
		await found.it.resumeStream()
		await quiet(found)
		return told(found)
	},
	async regenerate({ chat }) {
		const found = chats.get(chat)
		await found.it.regenerate()
		await quiet(found)
		return told(found)
	},
	async stop({ chat }) {
		await chats.get(chat).it.stop()
		return told(chats.get(chat))
	},
	/** Put messages in the client's memory, as a page does that has kept them. */
	async put({ chat, messages }) {
		chats.get(chat).it.messages = messages
	},
	async look({ chat }) {
		return told(chats.get(chat))
	},
	/** What the client's own fold makes of a message and these chunks. */
	async fold({ message, chunks }) {
		const stream = new ReadableStream({
			start(controller) {
				for (const chunk of chunks) controller.enqueue(chunk)
				controller.close()
			},
		})
		let last = message
		for await (const made of readUIMessageStream({ message, stream, terminateOnError: true })) last = made
		return last
	},
	/** Whether the client's own schema takes each of these chunks. */
	async valid({ chunks }) {
		const { validate } = uiMessageChunkSchema()
		return Promise.all(chunks.map(async (it) => (await validate(it)).success))
	},
})
