// Reads [{place, text}, …] from standard input and parses each text with the real Mermaid, from the
// folder of node_modules that the first argument names. Ends with 1 at the first that is refused.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const installed = createRequire(`${process.argv[2]}/installed.js`);
const { JSDOM } = installed("jsdom");
// Mermaid is written for browsers: its parser cleans texts with DOMPurify, which needs a window.
globalThis.window = new JSDOM("<body></body>").window;
globalThis.document = window.document;
const { default: mermaid } = await import(pathToFileURL(installed.resolve("mermaid")));

async function refusal(text) {
  try {
    const { diagramType } = await mermaid.parse(text);
    return { kind: diagramType };
  } catch (error) {
    return { cause: error.message ?? String(error) };
  }
}

// The negative control: a parser that takes these would take anything.
const BROKEN = ["stateDiagram-v2\n  A --> : go", "sequenceDiagram\n  a ->>> b hi", "gantt\n  nonsense", "plain words"];
for (const text of BROKEN) {
  const { cause } = await refusal(text);
  if (cause === undefined) {
    console.error(`the control failed: Mermaid takes ${JSON.stringify(text)}`);
    process.exit(1);
  }
}
console.log(`refused, as it must be: ${BROKEN.length} broken diagrams`);

for (const { place, text } of JSON.parse(readFileSync(0, "utf8"))) {
  const { kind, cause } = await refusal(text);
  if (cause !== undefined) {
    console.error(`${place}: ${cause}`);
    process.exit(1);
  }
  console.log(`${place}: ${kind}`);
}
