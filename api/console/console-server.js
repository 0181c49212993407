// The server as a whole: health, devices, memory, what happened in the last hour; the principal and its quotas.
import {el} from "./dom.js";
import {ask, repeat, request} from "./console-api.js";
import {badge, bytes, count, duration, facts, lineChart, meter, milliseconds, table} from "./console-parts.js";

const EVERY = 5000;

// Samples of Prometheus' text: [{name, labels, value}]
async function metrics(signal) {
  const text = await (await request("/metrics", {accept: "text/plain", signal})).text();
  return text.split("\n").filter((line) => line && !line.startsWith("#")).map((line) => {
    const found = /^([a-z_A-Z0-9:]+)(?:\{(.*)\})? (\S+)$/.exec(line);
    return found && {name: found[1], labels: Object.fromEntries([...(found[2] || "").matchAll(/([a-z_]+)="([^"]*)"/g)].map(([, name, value]) => [name, value])), value: Number(found[3])};
  }).filter(Boolean);
}

// Rates between neighbouring samples of a counter.
const rates = (samples, of) => samples.map((sample, i) => (i === 0 ? NaN : Math.max(0, of(sample) - of(samples[i - 1])) / Math.max(1, (sample.at - samples[i - 1].at) / 1000)));

async function history(signal) {
  const answer = await ask("/v1/history", {signal});
  return answer.samples.map((sample) => ({...sample, at: Date.parse(sample.time)}));
}

function historyCharts(samples) {
  if (samples.length < 2) return [el("p", {class: "quiet"}, "The server has just started: charts follow with its second sample.")];
  const times = samples.map((sample) => sample.at);
  const whole = (value) => (value >= 10 || value === 0 ? count(Math.round(value)) : value.toPrecision(2));
  const accounts = Object.keys(samples.at(-1).memory).filter((name) => samples.some((sample) => sample.memory[name] > 0));
  return [
    lineChart("Requests and finished jobs a second", times, [{name: "requests", values: rates(samples, (s) => s.requests)}, {name: "jobs", values: rates(samples, (s) => s.jobs)}], whole),
    lineChart("Jobs", times, [{name: "running", values: samples.map((s) => s.jobs_running)}, {name: "waiting", values: samples.map((s) => s.jobs_waiting)}], whole),
    lineChart("Memory by account", times, accounts.map((name) => ({name, values: samples.map((s) => s.memory[name])})), bytes),
    lineChart("Memory of the process", times, [{name: "resident", values: samples.map((s) => s.resident_bytes)}], bytes),
    lineChart("Busy devices", times, [{name: "devices", values: rates(samples, (s) => s.busy_seconds)}], whole),
  ];
}

export async function overview(root, _, signal) {
  const state = el("div", {}), charts = el("div", {class: "charts"});
  root.append(state, el("h2", {}, "The last hour"), charts);
  await repeat(EVERY, signal, async () => {
    const [health, info, me, samples] = await Promise.all([ask("/health", {signal}).catch((error) => error.document), ask("/v1/info", {signal}), ask("/v1/me", {signal}), history(signal)]);
    state.replaceChildren(facts([
      ["state", badge(health.status || "unknown")], ["checks", (health.checks || []).map((check) => check.name + (check.ok ? " ok" : " FAILS")).join(", ")],
      ["version", info.version], ["up for", duration(health.uptime_seconds || 0)], ["devices", info.devices + " on " + info.threads + " threads"],
      ["you are", me.principal + " (" + me.role + ")"], ["your arrays", count(me.usage.arrays) + ", " + bytes(me.usage.array_bytes)],
      ["compiled", count(info.compile.lower.count) + " programs lowered, " + count(info.compile.bind.hits) + " found ready"]]));
    charts.replaceChildren(...historyCharts(samples));
  });
}

export async function devices(root, _, signal) {
  const memory = el("div", {}), list = el("div", {}), other = el("div", {});
  root.append(el("h2", {}, "Memory ledger"), memory, el("h2", {}, "Devices"), list, el("h2", {}, "All metrics"), other);
  let open = false;
  await repeat(EVERY, signal, async () => {
    const [all, found] = await Promise.all([metrics(signal), ask("/v1/devices", {signal})]);
    const of = (name, labels = {}) => all.find((sample) => sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value))?.value;
    const accounts = all.filter((sample) => sample.name === "meshd_memory_held_bytes").map((sample) => sample.labels.account);
    memory.replaceChildren(...accounts.map((account) => meter(account, of("meshd_memory_held_bytes", {account}), of("meshd_memory_limit_bytes", {account}), bytes)));
    list.replaceChildren(table("Devices", [["device", (row) => String(row.id)], ["process", (row) => String(row.process_index)], ["kind", (row) => row.kind], ["queue", (row) => String(row.queue), "number"],
      ["busy", (row) => milliseconds((of("meshd_device_busy_seconds_total", {device: String(row.id)}) || 0) * 1000), "number"]], found.items));
    const details = el("details", {open}, el("summary", {}, all.length + " samples, as Prometheus reads them at /metrics"),
      table("Samples", [["metric", (row) => row.name], ["labels", (row) => Object.entries(row.labels).map(([key, value]) => key + "=" + value).join(" ")], ["value", (row) => String(row.value), "number"]],
        all.filter((sample) => !sample.name.endsWith("_bucket"))));
    details.addEventListener("toggle", () => { open = details.open; });
    other.replaceChildren(details);
  });
}

export async function principal(root, _, signal) {
  const me = await ask("/v1/me", {signal});
  root.append(facts([["principal", me.principal], ["role", me.role]]), el("h2", {}, "Quotas"));
  for (const [name, used] of Object.entries(me.usage)) root.append(meter(name.replace("_", " "), used, me.limits[name], name.endsWith("bytes") ? bytes : count));
  root.append(facts([["requests a second", me.limits.requests_per_second === null ? "any number" : count(me.limits.requests_per_second)]]));
}
