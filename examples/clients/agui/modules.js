// Has the browser find packages as npm has installed them: nothing is built. All are modules, and an
// import map names them, but for rxjs: its bundle is a script, and is wrapped here.
const PLACE = "/node_modules/"
const MODULES = {
	"@ag-ui/client": "@ag-ui/client/dist/index.mjs",
	"@ag-ui/core": "@ag-ui/core/dist/index.mjs",
	"@ag-ui/core/schemas": "@ag-ui/core/dist/schemas.mjs",
	"@ag-ui/proto": "@ag-ui/proto/dist/index.mjs",
	"@bufbuild/protobuf/wire": "@bufbuild/protobuf/dist/esm/wire/index.js",
	"compare-versions": "compare-versions/lib/esm/index.js",
	"fast-json-patch": "fast-json-patch/index.mjs",
	"untruncate-json": "untruncate-json/dist/esm/index.js",
	uuid: "uuid/dist/esm-browser/index.js",
	"zod/v4": "zod/v4/index.js",
}

const wrapped = (name, it) => {
	const text = `const it = ${name}; export const { ${Object.keys(it).join(", ")} } = it`
	return URL.createObjectURL(new Blob([text], { type: "text/javascript" }))
}

const imports = Object.fromEntries(Object.entries(MODULES).map(([name, path]) => [name, PLACE + path]))
imports.rxjs = wrapped("rxjs", rxjs)
imports["rxjs/operators"] = wrapped("rxjs.operators", rxjs.operators)
const map = Object.assign(document.createElement("script"), { type: "importmap" })
map.textContent = JSON.stringify({ imports })
document.head.append(map)
import("./page.js").catch((error) => (document.querySelector("#notice").textContent = String(error)))
