// Sessions with their live log, and jobs with progress, cancellation and the time that each part of them took.
import {el} from "./dom.js";
import {ask, events, pause, post, repeat, request} from "./console-api.js";
import {badge, between, button, count, facts, link, milliseconds, paged, short, svg, when} from "./console-parts.js";
import {outcome} from "./console-run.js";

const EVERY = 2000;
const LONGEST_LOG = 500;  // entries that a page keeps

export async function sessions(root, _, signal, failed) {
  root.append(el("p", {class: "actions"}, button("Open a session", async () => { location.hash = "#session/" + (await post("/v1/sessions", {}, signal)).id; }, failed)));
  const show = paged(root, {caption: "Sessions", path: "/v1/sessions", signal, empty: "There are no sessions.",
    columns: [["session", (row) => link("session", row.id, row.name || short(row.id))], ["state", (row) => badge(row.state)], ["jobs", (row) => count(row.jobs), "number"],
      ["effects in the log", (row) => count(row.last_sequence), "number"], ["mode", (row) => row.effects], ["created", (row) => when(row.created)]]});
  await repeat(EVERY * 2, signal, show);
}

const jobColumns = [["job", (row) => link("job", row.id)], ["number", (row) => String(row.number || ""), "number"], ["state", (row) => badge(row.state)], ["created", (row) => when(row.created)],
  ["took", (row) => (row.finished ? between(row.created, row.finished) : ""), "number"], ["error", (row) => row.error?.code || ""]];

export async function session(root, id, signal, failed) {
  const state = el("div", {}), log = el("ol", {class: "log", "aria-label": "Effects, newest last", tabindex: "0"}), progress = el("p", {role: "status"});
  const jobsPlace = el("div", {});
  root.append(state, el("p", {class: "actions"}, button("Resume", async () => { await post(`/v1/sessions/${id}:resume`, undefined, signal); }, failed),
    button("Close and delete it", async () => { await request("/v1/sessions/" + id, {method: "DELETE"}); location.hash = "#sessions"; }, failed, "danger")),
    el("h2", {}, "Log, live"), progress, log, el("h2", {}, "Jobs"), jobsPlace);
  const show = paged(jobsPlace, {caption: "Jobs of this session", path: "/v1/jobs", signal, empty: "It has had no jobs.", filters: () => ({session: id}), columns: jobColumns});
  const refresh = async () => {
    const of = await ask("/v1/sessions/" + id, {signal});
    state.replaceChildren(facts([["name", of.name || "none"], ["id", el("code", {}, of.id)], ["state", badge(of.state)], ["on error", of.on_error], ["halted by job", of.halted_by], ["effects", of.effects],
      ["jobs", count(of.jobs)], ["entries of the log", count(of.last_sequence)], ["created", when(of.created)]]));
    await show();
    return of;
  };
  const first = await refresh();
  const follow = async () => {
    // The last of a long log; what comes from now on is added.
    for await (const {event, data} of events(`/v1/sessions/${id}/events?after=${Math.max(0, first.last_sequence - 100)}`, signal)) {
      if (event === "progress") {
        progress.textContent = short(data.job) + ": " + (data.percent === undefined ? count(data.iterations ?? data.steps_done ?? 0) + " done" : data.percent + " %");
      } else if (event === "effect") {
        const atEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
        log.append(el("li", {value: String(data.sequence)}, el("code", {}, data.effect + " " + data.name), " ", data.values.map((value) => JSON.stringify(value.data)).join(", ").slice(0, 300)));
        if (log.childElementCount > LONGEST_LOG) log.firstChild.remove();
        if (atEnd) log.scrollTop = log.scrollHeight;
      }
    }
  };
  follow().catch(failed);
  await repeat(EVERY, signal, refresh);
}

export async function jobs(root, _, signal, failed) {
  const state = el("select", {id: "job-state"}, ["", "queued", "running", "done", "failed", "cancelled"].map((word) => el("option", {value: word}, word || "any")));
  root.append(el("form", {class: "filter"}, el("label", {for: "job-state"}, "State"), state));
  const show = paged(root, {caption: "Jobs, newest first", path: "/v1/jobs", signal, empty: "There are no such jobs.", filters: () => ({state: state.value}),
    columns: [...jobColumns.slice(0, 1), ["session", (row) => (row.session ? link("session", row.session) : "")], ...jobColumns.slice(1)]});
  state.addEventListener("change", () => show().catch(failed));
  await repeat(EVERY, signal, show);
}

/** How long a job waited, ran and committed: [name, milliseconds]. */
function timeline(of) {
  if (!of.finished) return null;
  const whole = new Date(of.finished) - new Date(of.created);
  const before = of.started ? new Date(of.started) - new Date(of.created) : whole;
  const statistics = of.answer?.statistics || {};
  const ran = Math.min(statistics.run_ms || 0, Math.max(0, whole - before));
  const queued = Math.min(statistics.queue_ms || 0, Math.max(0, whole - before - ran));
  const parts = [["waited for its start", before], ["waited for devices", queued], ["ran", ran], ["compiled, committed and the rest", Math.max(0, whole - before - ran - queued)]];
  const width = 560, all = Math.max(1, parts.reduce((sum, [, ms]) => sum + ms, 0));
  const plot = svg("svg", {viewBox: `0 0 ${width} 26`, class: "chart", role: "img", "aria-label": "Time of the job: " + parts.map(([name, ms]) => name + " " + milliseconds(ms)).join(", ")});
  let at = 0;
  parts.forEach(([, ms], n) => {
    const wide = ms / all * width;
    plot.append(svg("rect", {x: at, y: 2, width: Math.max(0, wide - 1), height: 22, class: "part-" + n}));
    at += wide;
  });
  return el("figure", {class: "chart-box times"}, el("figcaption", {}, "Where its time went"), plot, el("ul", {class: "legend"}, parts.map(([name, ms], n) => el("li", {class: "key-" + n}, name + ": " + milliseconds(ms)))));
}

export async function job(root, id, signal, failed) {
  const place = el("div", {});
  root.append(place);
  for (;;) {
    const of = await ask("/v1/jobs/" + id, {signal});
    const over = ["done", "failed", "cancelled"].includes(of.state);
    const {progress} = of;
    const nodes = [facts([["id", el("code", {}, of.id)], ["session", of.session ? link("session", of.session) : "none"], ["number", of.number ? String(of.number) : null], ["state", badge(of.state)],
      ["attempt", String(of.attempt)], ["created", when(of.created)], ["started", of.started ? when(of.started) : null], ["finished", of.finished ? when(of.finished) : null],
      ["error", of.error ? of.error.code + ": " + of.error.detail : null]])];
    if (progress) {
      nodes.push(facts(Object.entries(progress).map(([name, value]) => [name.replaceAll("_", " "), typeof value === "object" ? JSON.stringify(value) : String(value)])));
      if (progress.percent !== undefined) nodes.push(el("progress", {max: "100", value: String(progress.percent), "aria-label": "Progress of the job"}, progress.percent + " %"));
    }
    if (!over) nodes.push(el("p", {class: "actions"}, button("Cancel it", () => request("/v1/jobs/" + id, {method: "DELETE", signal}), failed, "danger")));
    const times = timeline(of);
    if (times) nodes.push(times);
    if (of.answer?.results) nodes.push(el("h2", {}, "Answer"), ...outcome(of.answer));
    place.replaceChildren(...nodes);
    if (over) return;
    await pause(1000, signal);
  }
}
