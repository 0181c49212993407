// The console's requests. Errors are Problems with the server's own words.
import {askForToken, checkedTarget, token} from "./send.js";

export class Problem extends Error {
  constructor(status, document, fallback) {
    super(document && document.detail ? document.detail : fallback);
    this.status = status;
    this.document = document || {};
  }
  /** Detail, the fields that are wrong, and the excerpt of a program with its caret. */
  get text() {
    const {errors, hint} = this.document;
    const fields = (errors || []).filter((error) => !this.message.includes(error.detail)).map((error) => (error.pointer ? error.pointer + ": " : "") + error.detail);
    const excerpts = (errors || []).map((error) => error.excerpt).filter(Boolean);
    return [this.message, ...fields, ...excerpts, hint || ""].filter(Boolean).join("\n");
  }
}

/** Reads the token of this tab; `changed` is called when another one is typed. */
export async function startTokens(changed) {
  const field = document.getElementById("token");
  try {
    field.value = sessionStorage.getItem("meshd-token") || "";
  } catch {
    // Typed again then.
  }
  field.addEventListener("change", () => {
    try {
      sessionStorage.setItem("meshd-token", field.value);
    } catch {
      // Kept in the field alone.
    }
    changed();
  });
}

export async function request(target, {method = "GET", body, accept = "application/json", signal, headers = {}} = {}) {
  const fields = new Headers({Accept: accept, ...headers});
  if (token()) fields.set("Authorization", "Bearer " + token());
  if (body !== undefined) fields.set("Content-Type", "application/json");
  const answer = await fetch(checkedTarget(target), {method, headers: fields, body: body === undefined ? undefined : JSON.stringify(body), signal,
                                                     cache: "no-store", redirect: "error", credentials: "omit"});
  if (answer.ok) return answer;
  if (answer.status === 401) askForToken(true);
  let document = null;
  try {
    document = await answer.json();
  } catch {
    // Whatever it was, the status says something.
  }
  throw new Problem(answer.status, document, answer.status + " " + answer.statusText);
}

export const ask = async (target, options) => (await request(target, options)).json();
export const post = (target, body, signal) => ask(target, {method: "POST", body, signal});
export const query = (values) => {
  const given = Object.entries(values).filter(([, value]) => value !== "" && value !== undefined && value !== null);
  return given.length ? "?" + new URLSearchParams(given) : "";
};

/** A picture of the server for an <img>, where no script of it runs. */
export async function picture(target, alt, options) {
  const answer = await request(target, {accept: "image/svg+xml", ...options});
  const image = document.createElement("img");
  image.alt = alt;
  image.className = "answer-picture";
  image.src = URL.createObjectURL(await answer.blob());
  image.addEventListener("load", () => URL.revokeObjectURL(image.src), {once: true});
  return image;
}

/** Events of a stream, one after the other: {id, event, data (JSON)}. Resumes after a lost connection until the signal, or that the session is deleted, ends it. */
export async function* events(target, signal) {
  let last = "";
  for (;;) {
    try {
      const answer = await request(target, {accept: "text/event-stream", signal, headers: last ? {"Last-Event-ID": last} : {}});
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const {value, done} = await reader.read();
        if (done) break;
        text += value;
        for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
          const fields = {event: "message", data: ""};
          for (const line of text.slice(0, end).split("\n")) {
            const colon = line.indexOf(":");
            if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 1).replace(/^ /, "");
          }
          text = text.slice(end + 2);
          if (fields.id) last = fields.id;
          if (fields.data) yield {id: fields.id, event: fields.event, data: JSON.parse(fields.data)};
          if (fields.event === "closed") return;
        }
      }
    } catch (error) {
      if (signal.aborted || error instanceof Problem) throw error;
    }
    await pause(1000, signal);
  }
}

/** Waits; throws AbortError when the signal ends it. */
export function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(new DOMException("ended", "AbortError"));
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => { clearTimeout(timer); reject(new DOMException("ended", "AbortError")); }, {once: true});
    return undefined;
  });
}

/** Calls `work` now and then again every `ms` while the page is seen, until the signal ends it. */
export async function repeat(ms, signal, work) {
  for (;;) {
    if (!document.hidden) await work();
    await pause(ms, signal);
  }
}
