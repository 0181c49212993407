// The part of the shell that the guides' examples are written in, so that they run in a page: lines of
//   curl [-s] [-i] [-N] [-o /dev/null] [-w FORMAT] [-X METHOD] [-H 'NAME: VALUE'] [--json TEXT | -d TEXT | --data-binary TEXT] URL [| jq [-r|-c] FILTER]
//   NAME=TEXT   or   NAME=$(curl ... | jq -r FILTER)   joined by newlines, ';' and '&&'
// with quotes as in a shell and $NAME in double quotes or bare. FILTER is a path such as .items[0].id; the whole document is shown for others.
// Anything else throws: the page then offers no "try it".
import {send} from "./send.js";

class Reader {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }
  get next() { return this.text[this.at]; }
  done() { return this.at >= this.text.length; }
  blanks() { while (/[ \t]/.test(this.next || "") || this.text.startsWith("\\\n", this.at)) this.at += this.next === "\\" ? 2 : 1; }
}

const NAME = /^[A-Za-z_][A-Za-z0-9_]*/;

// A word is a list of parts: {text} or {name}, joined when variables are known.
function word(reader) {
  const parts = [];
  const push = (text) => parts.push({text});
  const variable = () => {
    ++reader.at;
    const braces = reader.next === "{";
    if (braces) ++reader.at;
    const found = NAME.exec(reader.text.slice(reader.at));
    if (!found) throw new Error("only $NAME is known after a '$'");
    reader.at += found[0].length;
    if (braces && reader.text[reader.at++] !== "}") throw new Error("expected } after ${" + found[0]);
    parts.push({name: found[0]});
  };
  const began = reader.at;
  while (!reader.done() && !/[\s;|&()<>]/.test(reader.next)) {
    if (reader.next === "'") {
      const end = reader.text.indexOf("'", reader.at + 1);
      if (end < 0) throw new Error("a ' is not closed");
      push(reader.text.slice(reader.at + 1, end));
      reader.at = end + 1;
    } else if (reader.next === '"') {
      for (++reader.at; reader.next !== '"';) {
        if (reader.done()) throw new Error('a " is not closed');
        if (reader.next === "$") {
          variable();
        } else if (reader.next === "\\" && /["\\$`\n]/.test(reader.text[reader.at + 1] || "")) {
          if (reader.text[reader.at + 1] !== "\n") push(reader.text[reader.at + 1]);
          reader.at += 2;
        } else if (reader.next === "`") {
          throw new Error("backquotes are not run here");
        } else {
          push(reader.text[reader.at++]);
        }
      }
      ++reader.at;
    } else if (reader.next === "$") {
      variable();
    } else if (reader.next === "\\") {
      push(reader.text[reader.at + 1] || "");
      reader.at += 2;
    } else if (/[`*]/.test(reader.next)) {
      throw new Error("'" + reader.next + "' is not run here");
    } else {
      push(reader.text[reader.at++]);
    }
  }
  if (reader.at === began) throw new Error("did not expect '" + (reader.next || "the end") + "'");
  return parts;
}

const plain = (parts) => parts.map((part) => part.text ?? "$" + part.name).join("");

function command(reader, ends) {
  const words = [[]];
  const began = reader.at;
  for (;;) {
    reader.blanks();
    if (reader.done() || ends.includes(reader.next)) break;
    if (reader.next === "|") {
      ++reader.at;
      words.push([]);
    } else if (reader.text.startsWith("&&", reader.at)) {
      break;
    } else {
      words[words.length - 1].push(word(reader));
    }
  }
  const [curl, jq, ...more] = words;
  if (more.length || !curl.length || plain(curl[0]) !== "curl") throw new Error("only curl, and jq behind it, run here");
  if (jq && (!jq.length || plain(jq[0]) !== "jq")) throw new Error("only jq reads an answer here");
  const flags = jq ? jq.slice(1).map(plain) : [];
  return {kind: "curl", words: curl.slice(1), filter: jq ? flags.filter((flag) => !/^-[rcS.]+$/.test(flag)).join(" ") || "." : null,
          shown: reader.text.slice(began, reader.at).trim()};
}

/** [{kind: "curl", words, filter, shown, name?} | {kind: "set", name, value}]; throws an Error that says what does not run here. */
export function parseLines(text) {
  const reader = new Reader(text);
  const out = [];
  for (;;) {
    while (!reader.done() && (/[\s;]/.test(reader.next) || reader.text.startsWith("&&", reader.at))) reader.at += reader.next === "&" ? 2 : 1;
    if (reader.done()) return out.map(checked);
    if (reader.next === "#") {
      while (!reader.done() && reader.next !== "\n") ++reader.at;
      continue;
    }
    const assigned = /^([A-Za-z_][A-Za-z0-9_]*)=/.exec(reader.text.slice(reader.at));
    if (!assigned) {
      out.push(command(reader, ";\n"));
    } else {
      reader.at += assigned[0].length;
      if (reader.text.startsWith("$(", reader.at)) {
        reader.at += 2;
        out.push({...command(reader, ")"), name: assigned[1]});
        if (reader.next !== ")") throw new Error("a $( is not closed");
        ++reader.at;
      } else {
        out.push({kind: "set", name: assigned[1], value: reader.done() || /\s/.test(reader.next) ? [] : word(reader)});
      }
    }
    reader.blanks();
    if (!reader.done() && !/[\n;]/.test(reader.next) && !reader.text.startsWith("&&", reader.at))
      throw new Error("did not expect '" + reader.next + "'");
  }
}

const TAKES = {"-X": "method", "-H": "header", "-d": "body", "--data-binary": "body", "--data": "body", "--json": "json", "-m": "seconds",
               "-o": "output", "-w": "format"};

/** The request of a curl command, its words being texts. */
export function requestOf(words) {
  const out = {method: "", headers: [], body: undefined, target: ""};
  for (let i = 0; i < words.length; ++i) {
    const takes = TAKES[words[i]];
    if (!takes) {
      if (/^-[sSiNG]+$/.test(words[i]) || words[i] === "--no-buffer") continue;
      if (words[i].startsWith("-")) throw new Error("curl's " + words[i] + " is not run here");
      out.target = words[i].startsWith("http") || words[i].startsWith("/") ? words[i] : "http://" + words[i];
      continue;
    }
    const value = words[++i];
    if (value === undefined) throw new Error(words[i - 1] + " needs a value");
    if (takes === "method") out.method = value;
    // The status and the answer are shown in any case.
    if (takes === "output" && value !== "/dev/null") throw new Error("files are not written from here");
    if (takes === "seconds") out.seconds = Number(value);
    if (takes === "header") out.headers.push([value.slice(0, value.indexOf(":")).trim(), value.slice(value.indexOf(":") + 1).trim()]);
    if (takes === "body" || takes === "json") {
      if (value.startsWith("@")) throw new Error("files are not sent from here");
      out.body = value;
      if (takes === "json") out.headers.unshift(["Content-Type", "application/json"], ["Accept", "application/json"]);
    }
  }
  if (!out.target) throw new Error("curl needs a URL");
  if (!out.method) out.method = out.body === undefined ? "GET" : "POST";
  // Headers that are given twice: the last one holds, as --json's do not go over -H.
  const seen = new Set();
  out.headers = out.headers.reverse().filter(([name]) => !seen.has(name.toLowerCase()) && seen.add(name.toLowerCase())).reverse();
  return out;
}

// Whether it could run once its variables are known.
function checked(line) {
  if (line.kind === "curl") requestOf(line.words.map(plain));
  return line;
}

/** What a path filter selects; undefined where the filter is more than a path. */
export function select(document, filter) {
  if (filter === ".") return document;
  if (!/^(\.[A-Za-z_][A-Za-z0-9_]*|\[-?\d+\]|\.\[-?\d+\])+$/.test(filter)) return undefined;
  let at = document;
  for (const [, name, number] of filter.matchAll(/\.?([A-Za-z_][A-Za-z0-9_]*)|\[(-?\d+)\]/g)) {
    if (at === null || at === undefined) return null;
    at = name !== undefined ? at[name] : at.at(Number(number));
  }
  return at === undefined ? null : at;
}

const textOf = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

/** Runs parsed lines; `variables` are read and set. `onAnswer(command, answer, text)` for each answer, `text` where a filter chose a part. */
export async function run(lines, {variables, signal, onAnswer}) {
  const fill = (parts) => parts.map((part) => {
    if (part.text !== undefined) return part.text;
    if (part.name === "URL") return location.origin;
    if (!(part.name in variables)) throw new Error("$" + part.name + " has no value yet: run the example above that sets it");
    return variables[part.name];
  }).join("");
  for (const line of lines) {
    if (line.kind === "set") {
      variables[line.name] = fill(line.value);
      continue;
    }
    const request = requestOf(line.words.map(fill));
    const timed = request.seconds ? AbortSignal.any([signal, AbortSignal.timeout(request.seconds * 1000)]) : signal;
    const answer = await send({...request, signal: timed});
    const chosen = line.filter && answer.json !== undefined ? select(answer.json, line.filter) : undefined;
    onAnswer((line.name ? line.name + "=" : "") + line.shown, answer, chosen === undefined ? undefined : textOf(chosen));
    if (line.name) {
      if (answer.status >= 400) throw new Error(line.name + " was not set: the answer is an error");
      variables[line.name] = chosen === undefined ? answer.body : typeof chosen === "string" ? chosen : JSON.stringify(chosen);
    }
  }
}
