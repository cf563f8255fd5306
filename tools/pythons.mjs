// Runs tools/pythons_compare.py in a Pyodide: node pythons.mjs HOME CHECKOUT PACKAGES SCRIPTS
// The checkout and the environment's packages are mounted, of which pure ones are used; nothing is fetched.
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [home, checkout, packages, scripts] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(join(home, "node_modules/pyodide/pyodide.mjs")));
const python = await loadPyodide();
for (const [place, root] of [["/checkout", checkout], ["/packages", packages]]) {
  python.FS.mkdirTree(place);
  python.FS.mount(python.FS.filesystems.NODEFS, { root }, place);
}
python.globals.set("scripts", scripts);
process.exitCode = python.runPython(`
import runpy, sys
sys.path += ["/checkout/src", "/packages"]
sys.argv = ["pythons_compare.py", scripts]
sys.dont_write_bytecode = True
try:
    runpy.run_path("/checkout/tools/pythons_compare.py", run_name="__main__")
except SystemExit as end:
    status = end.code or 0
status
`);
