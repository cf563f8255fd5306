"use strict";
// node shim.js [--bug NAME]: serves the wire (kernel.md section 12) on stdin and stdout.

const { parse, write } = require("./json.js");
const { BUGS, Kernel } = require("./kernel.js");

function play(run, script, bug) {
  const kernel = new Kernel(run, bug);
  return script.map((step) => (step.type === "recover" ? kernel.recover() : kernel.receive(step)));
}

function answer(line, bug) {
  let id = null;
  try {
    const request = parse(line);
    id = request.id ?? null;
    return { id, scripts: request.scripts.map((script) => play(request.run, script, bug)) };
  } catch (error) {
    return { id, error: { code: "invalid_value", message: String(error), at: "line 1 column 1" } };
  }
}

const [flag, bug = null] = process.argv.slice(2);
if (flag && !(flag === "--bug" && BUGS.includes(bug))) {
  console.error(`usage: node shim.js [--bug ${BUGS.join(" | ")}]`);
  process.exitCode = 2;
} else {
  // Not node:readline: for that, U+2028 inside a text ends a line, too.
  let rest = "";
  const serve = (line) => process.stdout.write(`${write(answer(line, bug))}\n`);
  process.stdin.setEncoding("utf8");
  process.stdin.on("data", (chunk) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop();
    lines.forEach(serve);
  });
  process.stdin.on("end", () => rest && serve(rest));
}
