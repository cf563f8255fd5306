// What the console computes without a page: one question a line, its answer a line.
import { createInterface } from "node:readline"
import { pathToFileURL } from "node:url"

const { Fold, difference, editable, exact, order, spell } = await import(pathToFileURL(process.argv[2]))

const told = ({ byId, turn, sequence }) => ({
	sequence,
	turn: turn?.id ?? null,
	calls: [...byId.values()].map(({ call_id, phase, path, attempt, arguments_digest, deadline, decision, outcome, ...it }) => ({
		call_id,
		phase,
		path: [...path],
		attempt,
		arguments: it.arguments,
		arguments_digest: arguments_digest ?? null,
		approved: decision?.approved ?? null,
		by: decision?.by ?? null,
		status: outcome?.status ?? null,
		deadline: phase === "REQUESTED" ? (deadline ?? null) : null,
	})),
})

const ANSWERS = {
	fold({ leads, facts }) {
		const fold = new Fold(leads)
		return facts.map((fact) => (fold.take({ fact }), told(fold)))
	},
	said({ notes }) {
		const fold = new Fold({})
		for (const entry of notes) fold.take(entry)
		return [...fold.said.values()].map(({ kind, text }) => [kind, text])
	},
	spelt: ({ from, to }) => {
		const found = []
		for (let code = from; code < to; code += 1) if (spell(String.fromCodePoint(code)) !== String.fromCodePoint(code)) found.push(code)
		return found
	},
	spell: ({ text }) => spell(text),
	difference: ({ old, young }) => difference(old, young),
	edited: ({ text }) => editable(exact(text)),
	kept: ({ text }) => JSON.stringify(exact(editable(exact(text)))),
	order: ({ cursors }) => [...cursors].sort(order),
}

for await (const line of createInterface({ input: process.stdin })) {
	const { ask, ...rest } = JSON.parse(line)
	process.stdout.write(`${JSON.stringify(ANSWERS[ask](rest))}\n`)
}
