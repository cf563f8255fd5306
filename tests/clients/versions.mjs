// Which clients are there, as a driver finds them: that each can be imported at all.
import { HttpAgent } from "@ag-ui/client"
import { Chat } from "@ai-sdk/react"
import { DefaultChatTransport, WebSocketChatTransport, uiMessageChunkSchema } from "ai"
import { serve } from "./steps.mjs"

const kinds = { HttpAgent, Chat, DefaultChatTransport, WebSocketChatTransport, uiMessageChunkSchema }

serve({
	async versions(_, saw) {
		saw({ node: process.versions.node })
		return Object.fromEntries(Object.entries(kinds).map(([name, it]) => [name, typeof it]))
	},
	async fails() {
		throw new Error("as it should")
	},
	async waits({ for: ms }, saw) {
		saw("begun")
		await new Promise((done) => setTimeout(done, ms))
		return ms
	},
})
