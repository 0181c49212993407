// "Try it": requests of the reference (data-try on a section) and curl lines of guides and errors (pre[data-shell]), edited and sent here.
import {el, copyButton} from "./dom.js";
import {parseLines, run} from "./curl.js";
import {answerNodes, findOutAboutTokens, send, withKnownIds} from "./send.js";

let made = 0;

const quoted = (text) => (/^[A-Za-z0-9_.:\/=@%+,?&-]+$/.test(text) && !/[?&]/.test(text) ? text : "'" + text.replace(/'/g, "'\\''") + "'");

function curlOf(method, target, headers, body) {
  const out = ["curl -s"];
  if (method !== "GET" && !(method === "POST" && body)) out.push("-X " + method);
  for (const [name, value] of headers) out.push("-H " + quoted(name + ": " + value));
  if (body) out.push(typeof body === "string" ? "--data-binary " + quoted(body) : "--data-binary @" + quoted(body.name || "file"));
  return [...out, quoted(location.origin + target)].join(" ");
}

function headerLines(text) {
  return text.split("\n").map((line) => line.trim()).filter(Boolean).map((line) => {
    const colon = line.indexOf(":");
    if (colon < 1) throw new Error("a header is NAME: VALUE, not '" + line + "'");
    return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
  });
}

// Runs `work(signal, show)` while the button says Stop; what it throws is shown.
function runner(button, output, work) {
  let control = null;
  button.addEventListener("click", async () => {
    if (control) return control.abort();
    control = new AbortController();
    const label = button.textContent;
    button.textContent = "Stop";
    output.replaceChildren(el("p", {role: "status"}, "Sent; waiting for the answer."));
    try {
      await work(control.signal, (nodes) => output.replaceChildren(...nodes));
    } catch (error) {
      const why = error.name === "AbortError" ? "Stopped." : error.message;
      output.append(el("p", {class: "status bad", role: "alert"}, why));
    }
    control = null;
    button.textContent = label;
    return undefined;
  });
}

function requestPanel(data) {
  const n = ++made;
  const field = (name, label, node) => {
    node.id = "try-" + n + "-" + name;
    return el("div", {class: "field"}, el("label", {for: node.id}, label), node);
  };
  const rows = (text) => Math.min(16, Math.max(2, text.split("\n").length));
  const bodies = data.bodies;
  const target = el("input", {type: "text", spellcheck: "false", value: withKnownIds(data.target)});
  const headers = el("textarea", {rows: "2", spellcheck: "false", placeholder: "Accept: application/json"});
  const kind = el("select", {}, bodies.map((body, i) => el("option", {value: i}, body.type)));
  const text = el("textarea", {spellcheck: "false", rows: "8"});
  const file = el("input", {type: "file"});
  const textField = field("body", "Body", text), fileField = field("file", "Body, from a file", file);
  const chooseBody = () => {
    const body = bodies[Number(kind.value)];
    if (!body) return;
    text.value = withKnownIds(body.text || "");
    text.rows = rows(text.value);
    textField.hidden = body.file === true;
    fileField.hidden = body.file !== true;
  };
  kind.addEventListener("change", chooseBody);
  const request = () => {
    const fields = headerLines(headers.value);
    const chosen = bodies[Number(kind.value)];
    let body;
    if (chosen && chosen.file) body = file.files[0];
    else if (chosen) body = text.value;
    if (chosen && body) fields.push(["Content-Type", chosen.type]);
    return {method: data.method, target: target.value, headers: fields, body};
  };
  const button = el("button", {type: "button", class: "send"}, "Send");
  const output = el("div", {class: "output", "aria-live": "polite"});
  const copy = copyButton(() => { const r = request(); return curlOf(r.method, r.target, r.headers, r.body); });
  copy.textContent = "Copy as curl";
  runner(button, output, async (signal, show) => {
    const answer = await send({...request(), signal, onText: (body) => show([el("pre", {class: "answer"}, body)])});
    show(answerNodes(answer));
  });
  const parts = [field("target", data.method + " path and query", target), field("headers", "Headers, one a line", headers)];
  if (bodies.length) parts.push(field("kind", "Media type of the body", kind), textField, fileField);
  chooseBody();
  return el("div", {class: "panel"}, ...parts, el("div", {class: "actions"}, button, copy), output);
}

function shellPanel(source, state) {
  const n = ++made;
  const text = el("textarea", {id: "try-" + n + "-lines", spellcheck: "false", rows: String(Math.min(20, source.split("\n").length + 1))});
  text.value = source;
  const button = el("button", {type: "button", class: "send"}, "Run");
  const output = el("div", {class: "output", "aria-live": "polite"});
  runner(button, output, async (signal, show) => {
    const shown = [];
    await run(parseLines(text.value), {variables: state, signal, onAnswer: (command, answer, result) => {
      shown.push(el("div", {class: "step"}, el("p", {class: "command"}, el("code", {}, command)), ...answerNodes(answer, result)));
      show(shown);
    }});
    if (!shown.length) show([el("p", {}, "Nothing was sent.")]);
  });
  return el("div", {class: "panel"}, el("div", {class: "field"}, el("label", {for: text.id}, "Edit and run against this server"), text),
    el("div", {class: "actions"}, button), output);
}

function addToggle(host, tools, name, makePanel) {
  const button = el("button", {type: "button", class: "small", "aria-expanded": "false", "aria-label": "Try it: " + name}, "Try it");
  let panel = null;
  button.addEventListener("click", () => {
    findOutAboutTokens();
    if (!panel) {
      panel = makePanel();
      host.append(panel);
    } else {
      panel.hidden = !panel.hidden;
    }
    button.setAttribute("aria-expanded", String(!panel.hidden));
    if (!panel.hidden) panel.querySelector("input, textarea").focus();
  });
  tools.prepend(button);
}

export function startTries() {
  for (const host of document.querySelectorAll("[data-try]")) {
    const data = JSON.parse(host.dataset.try);
    addToggle(host, host.querySelector(".tools"), data.method + " " + data.target.slice(0, 60), () => requestPanel(data));
  }
  const state = {};  // the shell variables of this page
  let number = 0;
  for (const pre of document.querySelectorAll("pre[data-shell]")) {
    const source = (pre.dataset.copy || pre.textContent).replaceAll("http://127.0.0.1:8080", location.origin).trimEnd();
    try {
      if (!parseLines(source).some((line) => line.kind === "curl")) continue;
    } catch {
      continue;  // needs a real shell: files, pipes to other programs
    }
    const host = pre.closest(".block");
    addToggle(host, host.querySelector(".tools"), "example " + ++number, () => shellPanel(source, state));
  }
}
