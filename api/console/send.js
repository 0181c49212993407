// Sends a request to this server and shows its answer as text: status, time, headers, body.
import {el} from "./dom.js";

const MOST_SHOWN = 200000;  // characters of a body
const remembered = {};      // the last id of each kind that an answer had

try {
  Object.assign(remembered, JSON.parse(sessionStorage.getItem("meshd-ids") || "{}"));
} catch {
  // No storage.
}

// Ids have the form arr_0192f0c4-7c1e-7b52-9c7a-5d1f0e6a2b41; examples of the reference take the last that was made here.
const ID = /\b([a-z]+)_([0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{32,64})\b/g;
export const withKnownIds = (text) => text.replace(ID, (whole, kind) => remembered[kind] || whole);
function remember(document) {
  if (!document || typeof document.id !== "string") return;
  const found = /^([a-z]+)_/.exec(document.id);
  if (!found) return;
  remembered[found[1]] = document.id;
  try {
    sessionStorage.setItem("meshd-ids", JSON.stringify(remembered));
  } catch {
    // This page remembers it.
  }
}

export function token() {
  return document.getElementById("token").value.trim();
}
export function askForToken(focus) {
  document.getElementById("token-field").hidden = false;
  if (focus) document.getElementById("token").focus();
}

// Asks once whether the server wants a token, when the first example is opened.
let asked = false;
export async function findOutAboutTokens() {
  if (asked) return;
  asked = true;
  const field = document.getElementById("token");
  try {
    field.value = sessionStorage.getItem("meshd-token") || "";
  } catch {
    // Typed again then.
  }
  field.addEventListener("input", () => {
    try {
      sessionStorage.setItem("meshd-token", field.value);
    } catch {
      // Kept in the field alone.
    }
  });
  const answer = await fetch("/v1/me").catch(() => null);
  if (answer && answer.status === 401) askForToken(false);
}

// A target must be a path of this server: nothing here sends a token elsewhere.
export function checkedTarget(target) {
  const address = new URL(target, location.origin);
  if (address.origin !== location.origin) throw new Error("examples run against this server alone, not " + address.origin);
  return address.pathname + address.search;
}

/** Resolves to {status, statusText, headers, body (text), blob, ms, json}; `onText` gets text as it streams in. */
export async function send({method, target, headers, body, signal, onText}) {
  const fields = new Headers(headers);
  if (token() && !fields.has("Authorization")) fields.set("Authorization", "Bearer " + token());
  const began = performance.now();
  const answer = await fetch(checkedTarget(target), {method, headers: fields, body: method === "GET" || method === "HEAD" ? undefined : body,
                                                     signal, cache: "no-store", redirect: "error", credentials: "omit"});
  const type = (answer.headers.get("Content-Type") || "").toLowerCase();
  const out = {status: answer.status, statusText: answer.statusText, headers: [...answer.headers], type, body: "", blob: null};
  if (type.startsWith("text/event-stream")) {
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    try {
      for (;;) {
        const {value, done} = await reader.read();
        if (done || out.body.length > MOST_SHOWN) break;
        out.body += value;
        if (onText) onText(out.body);
      }
    } catch (error) {
      if (!["AbortError", "TimeoutError"].includes(error.name)) throw error;  // curl's -m shows what came, too
    }
  } else if (/json|text|yaml|xml/.test(type)) {
    out.blob = await answer.blob();
    out.body = await out.blob.text();
  } else {
    out.blob = await answer.blob();
  }
  out.ms = performance.now() - began;
  if (type.includes("json")) {
    try {
      out.json = JSON.parse(out.body);
      remember(out.json);
    } catch {
      // Shown as it came.
    }
  }
  if (answer.status === 401) askForToken(true);
  return out;
}

// Laid out for reading; integers that no double holds stay as they came, since the text is shown where they occur.
export function pretty(answer) {
  if (answer.json === undefined || /[0-9]{16,}/.test(answer.body)) return answer.body;
  return JSON.stringify(answer.json, null, 2).replace(/\[\s+((?:-?[0-9.eE+-]+|true|false|"[^"\n]{0,24}")(?:,\s+(?:-?[0-9.eE+-]+|true|false|"[^"\n]{0,24}"))*)\s+\]/g,
    (whole, inside) => { const line = "[" + inside.replace(/,\s+/g, ", ") + "]"; return line.length < 100 ? line : whole; });
}

/** The nodes that show an answer. */
export function answerNodes(answer, text = pretty(answer)) {
  const good = answer.status < 400;
  const nodes = [el("p", {class: "status " + (good ? "good" : "bad")},
    el("strong", {}, answer.status + " " + answer.statusText), " in " + answer.ms.toFixed(answer.ms < 10 ? 1 : 0) + " ms")];
  nodes.push(el("details", {}, el("summary", {}, "Headers (" + answer.headers.length + ")"),
    el("pre", {}, answer.headers.map(([name, value]) => name + ": " + value).join("\n"))));
  if (answer.type.startsWith("image/")) {
    // Scripts of a picture do not run in an img.
    const picture = el("img", {alt: "The picture that the server answered with", class: "answer-picture"});
    picture.src = URL.createObjectURL(answer.blob);
    nodes.push(picture);
  }
  if (text) nodes.push(el("pre", {class: "answer", tabindex: "0"}, text.slice(0, MOST_SHOWN) + (text.length > MOST_SHOWN ? "\n... and more" : "")));
  else if (answer.blob && answer.blob.size) nodes.push(el("p", {}, answer.blob.size + " bytes of " + (answer.type || "no named type")));
  else if (!answer.type.startsWith("image/")) nodes.push(el("p", {}, "No body."));
  if (answer.blob && answer.blob.size) {
    const link = el("a", {download: "answer"}, "Save the body");
    link.href = URL.createObjectURL(answer.blob);
    nodes.push(el("p", {}, link));
  }
  const code = answer.json && answer.json.code;
  if (!good && typeof code === "string" && /^[a-z_]+$/.test(code))
    nodes.push(el("p", {}, el("a", {href: "/docs/errors#" + code}, "What " + code + " means")));
  return nodes;
}
