// What every driver shares: it reads a step a line, plays it, and prints what was seen a line each.
// A step is `async (given, saw) => value`; `saw(what)` prints {"id", "saw"}, its end {"id", "done"},
// and what it raises {"id", "failed"}. Steps that are asked for while others go on are played at once.
import { createInterface } from "node:readline"

const print = (line) => process.stdout.write(JSON.stringify(line) + "\n")

async function play(steps, { id, do: what, given }) {
	try {
		if (!Object.hasOwn(steps, what)) throw new Error(`there is no step ${what}`)
		const value = await steps[what](given, (saw) => print({ id, saw }))
		print({ id, done: value ?? null })
	} catch (error) {
		print({ id, failed: error?.stack ?? String(error) })
	}
}

/** Play what is asked for until there is no more to come; what is open then is let go. */
export async function serve(steps) {
	for await (const line of createInterface({ input: process.stdin })) play(steps, JSON.parse(line))
	process.exit(0)
}
