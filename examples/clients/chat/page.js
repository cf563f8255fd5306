// A page with useChat, as its documentation has it; all that is turnlock's is the address and the token.
import { useChat } from "@ai-sdk/react"
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from "ai"
import { createElement as h, useEffect, useMemo, useState } from "react"
import { createRoot } from "react-dom/client"

const { server } = await (await fetch("/where.json")).json()

/** A chat is a run of the server's; the page keeps what was said in it, as such pages do. */
const chatId = (location.hash ||= `#chat-${crypto.randomUUID()}`).slice(1)
const kept = JSON.parse(sessionStorage.getItem(chatId) ?? "[]")

function Page() {
	const [token, setToken] = useState(sessionStorage.getItem("token") ?? "")
	if (!token) return h(Token, { take: (it) => (sessionStorage.setItem("token", it), setToken(it)) })
	return h(Chat, { token })
}

function Chat({ token }) {
	const [notice, setNotice] = useState("")
	const transport = useMemo(
		() => new DefaultChatTransport({ api: `${server}/v1/chat`, headers: { Authorization: `Bearer ${token}` } }),
		[token],
	)
	const chat = useChat({
		id: chatId,
		messages: kept,
		transport,
		resume: true,
		// its cards are answered together: then the answers are sent
		sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
		onData: ({ type, data }) => {
			if (type === "data-turnlock-refused") setNotice(`That was not taken: ${data.reason}.`)
		},
	})
	const { messages, status, error } = chat
	const asks = messages.some((it) => it.parts.some((part) => part.state === "approval-requested"))
	useEffect(() => sessionStorage.setItem(chatId, JSON.stringify(messages)), [messages])
	// somebody else may decide, at a console: while a card asks, look again
	useEffect(() => {
		if (!asks || status !== "ready") return
		const timer = setInterval(() => chat.resumeStream(), 3000)
		return () => clearInterval(timer)
	}, [asks, status])
	return h(
		"main",
		null,
		h("ol", null, messages.map((message) => h(Message, { key: message.id, message, chat, setNotice }))),
		h("p", { className: "notice", role: "alert" }, error ? error.message : notice),
		h("p", { className: "state" }, status),
		h(Say, { chat, setNotice }),
	)
}

function Message({ message, chat, setNotice }) {
	const parts = message.parts.map((part, place) => {
		const key = `${place}`
		if (part.type === "text") return h("p", { key, className: `said ${message.role}` }, h("span", null, part.text))
		if (part.type === "dynamic-tool") return h(Card, { key, part, chat, setNotice })
		return null
	})
	return h("li", null, parts)
}

const STATES = {
	"input-available": "runs",
	"approval-requested": "asks",
	"approval-responded": "answered",
	"output-available": "done",
	"output-error": "failed",
	"output-denied": "denied",
}

function Card({ part, chat, setNotice }) {
	const answer = (approved) => {
		setNotice("")
		chat.addToolApprovalResponse({ id: part.approval.id, approved })
	}
	return h(
		"article",
		{ className: STATES[part.state] },
		h("strong", null, part.toolName),
		h("pre", null, JSON.stringify(part.input, null, 1)),
		part.state === "approval-requested" &&
			h(
				"p",
				null,
				h("button", { className: "yes", onClick: () => answer(true) }, "Approve"),
				h("button", { onClick: () => answer(false) }, "Deny"),
			),
		h("p", { className: "state" }, STATES[part.state], part.approval?.reason && `: ${part.approval.reason}`),
		part.state === "output-available" && h("pre", null, JSON.stringify(part.output)),
		part.state === "output-error" && h("pre", null, part.errorText),
	)
}

function Say({ chat, setNotice }) {
	const [text, setText] = useState("")
	const send = (event) => {
		event.preventDefault()
		if (!text.trim()) return
		setNotice("")
		chat.sendMessage({ text })
		setText("")
	}
	const given = { value: text, placeholder: "pay Ada 5", "aria-label": "Message", onChange: (it) => setText(it.target.value) }
	return h("form", { onSubmit: send }, h("input", given), h("button", null, "Send"))
}

function Token({ take }) {
	const [text, setText] = useState("")
	const send = (event) => (event.preventDefault(), text && take(text.trim()))
	const given = { value: text, type: "password", "aria-label": "Token", placeholder: "the token that was printed" }
	return h("form", { onSubmit: send }, h("input", { ...given, onChange: (it) => setText(it.target.value) }), h("button", null, "Enter"))
}

createRoot(document.querySelector("#page")).render(h(Page))
