"use strict";
// JSON that tells 1 from 1.0, as canonical JSON does (K-32): JavaScript's own numbers cannot.
// A whole number that JavaScript holds exactly is a number here; every other one is a `Num`.

class Num {
  constructor(text) {
    this.text = text; // as Python's json.dumps writes it
  }

  valueOf() {
    return Number(this.text); // so that Num + 1 and Num < 2 are what they look like
  }
}

// A float as Python prints it: the shortest digits, an exponent from 1e16 on and below 1e-4.
function float(value) {
  if (value instanceof Num) value = Number(value);
  if (!Number.isFinite(value)) throw new SyntaxError("a number is not finite");
  const size = Math.abs(value);
  if (size === 0) return new Num(Object.is(value, -0) ? "-0.0" : "0.0");
  if (size >= 1e-4 && size < 1e16) return new Num(Number.isInteger(value) ? `${value}.0` : `${value}`);
  const [digits, exponent] = value.toExponential().split("e");
  return new Num(`${digits}e${exponent[0]}${exponent.slice(1).padStart(2, "0")}`);
}

const TOKEN =
  /[ \t\r\n]*(?:([{}[\],:])|("(?:[^"\\\u0000-\u001f]|\\.)*")|(-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?)|(true|false|null))/y;
const OWN = { enumerable: true, configurable: true, writable: true };
const WORDS = { true: true, false: false, null: null };

// Parse a text, or throw a SyntaxError. Keys that stand twice are refused.
function parse(text) {
  let at = 0;
  let token; // the match that comes next

  function advance() {
    TOKEN.lastIndex = at;
    token = TOKEN.exec(text);
    if (token) at = TOKEN.lastIndex;
    else if (text.slice(at).trim()) throw new SyntaxError(`no JSON at character ${at}`);
  }

  function expect(mark) {
    if (token?.[1] !== mark) throw new SyntaxError(`no ${mark} before character ${at}`);
    advance();
  }

  function items(close, one) {
    advance();
    if (token?.[1] !== close) {
      for (one(); token?.[1] === ","; one()) advance();
    }
    expect(close);
  }

  function object() {
    const made = {};
    items("}", () => {
      if (!token?.[2]) throw new SyntaxError(`no key before character ${at}`);
      const key = JSON.parse(token[2]);
      advance();
      expect(":");
      if (Object.hasOwn(made, key)) throw new SyntaxError(`the key ${key} stands twice`);
      if (key === "__proto__") Object.defineProperty(made, key, { ...OWN, value: value() });
      else made[key] = value();
    });
    return made;
  }

  function value() {
    if (!token) throw new SyntaxError("it ends too early");
    const [, mark, string, number, fraction, exponent, word] = token;
    if (mark === "{") return object();
    if (mark === "[") {
      const made = [];
      items("]", () => made.push(value()));
      return made;
    }
    if (mark) throw new SyntaxError(`no value before character ${at}`);
    advance();
    if (string) return JSON.parse(string);
    if (word) return WORDS[word];
    if (fraction || exponent) return float(Number(number));
    return Number.isSafeInteger(Number(number)) ? Number(number) + 0 : new Num(number);
  }

  advance();
  const parsed = value();
  if (token) throw new SyntaxError(`more than one value before character ${at}`);
  return parsed;
}

const SURROGATE = /[\ud800-\udfff]/;
const byCodePoint = (one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other));

// The text of a value; fields that are undefined are left out. Canonical: the keys are sorted.
function write(value, canonical = false) {
  if (value instanceof Num) return value.text;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((item) => write(item, canonical)).join(",")}]`;
  const keys = Object.keys(value);
  if (canonical) keys.sort(keys.some((key) => SURROGATE.test(key)) ? byCodePoint : undefined);
  let text = "";
  for (const key of keys) {
    if (value[key] === undefined) continue;
    text += `${text && ","}${JSON.stringify(key)}:${write(value[key], canonical)}`;
  }
  return `{${text}}`;
}

module.exports = { canonical: (value) => write(value, true), float, parse, write };
