// Has the browser find packages as npm has installed them: nothing is built. Most are modules, and an
// import map names them. React and a few small ones are CommonJS still, and are wrapped here.
const PLACE = "/node_modules/"
const MODULES = {
	ai: "ai/dist/index.js",
	"@ai-sdk/react": "@ai-sdk/react/dist/index.js",
	"@ai-sdk/gateway": "@ai-sdk/gateway/dist/index.js",
	"@ai-sdk/provider": "@ai-sdk/provider/dist/index.js",
	"@ai-sdk/provider-utils": "@ai-sdk/provider-utils/dist/index.js",
	"@workflow/serde": "@workflow/serde/dist/index.js",
	"eventsource-parser/stream": "eventsource-parser/dist/stream.js",
	"dequal/lite": "dequal/lite/index.mjs",
	swr: "swr/dist/index/index.mjs",
	"zod/v4": "zod/v4/index.js",
	"zod/v4/": "zod/v4/",
	"zod/v4/mini": "zod/v4/mini/index.js",
	"zod/v4/core": "zod/v4/core/index.js",
}
const COMMON = {
	react: "react/cjs/react.production.js",
	"react/jsx-runtime": "react/cjs/react-jsx-runtime.production.js",
	"react-dom": "react-dom/cjs/react-dom.production.js",
	"react-dom/client": "react-dom/cjs/react-dom-client.production.js",
	scheduler: "scheduler/cjs/scheduler.production.js",
	throttleit: "throttleit/index.js",
	"use-sync-external-store/shim": "use-sync-external-store/cjs/use-sync-external-store-shim.production.js",
	"@vercel/oidc": "@vercel/oidc/dist/index-browser.js",
}

const made = new Map()

/** Return what a CommonJS file exports, once it and what it requires has been read. */
function common(url) {
	if (!made.has(url)) made.set(url, read(url))
	return made.get(url)
}

async function read(url) {
	const text = await (await fetch(url)).text()
	const needed = new Map()
	for (const [, name] of text.matchAll(/\brequire\("([^"]+)"\)/g)) {
		const place = COMMON[name] ? PLACE + COMMON[name] : new URL(`${name}.js`, new URL(url, location)).pathname
		needed.set(name, await common(place))
	}
	const module = { exports: {} }
	new Function("module", "exports", "require", text)(module, module.exports, (name) => needed.get(name))
	return module.exports
}

async function begin() {
	const imports = Object.fromEntries(Object.entries(MODULES).map(([name, path]) => [name, PLACE + path]))
	globalThis.wrapped = {}
	for (const [name, path] of Object.entries(COMMON)) {
		const found = (globalThis.wrapped[name] = await common(PLACE + path))
		const names = Object.keys(found).filter((it) => /^[A-Za-z_$][\w$]*$/.test(it) && it !== "default")
		const text = `const it = globalThis.wrapped[${JSON.stringify(name)}]; export default it
			${names.length ? `export const { ${names.join(", ")} } = it` : ""}`
		imports[name] = URL.createObjectURL(new Blob([text], { type: "text/javascript" }))
	}
	const map = Object.assign(document.createElement("script"), { type: "importmap" })
	map.textContent = JSON.stringify({ imports })
	document.head.append(map)
	await import("./page.js")
}

begin().catch((error) => (document.querySelector("#page").textContent = String(error)))
