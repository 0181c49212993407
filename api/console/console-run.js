// A page to write and run a program, and to see its results, effects, picture and profile.
import {el} from "./dom.js";
import {ask, post} from "./console-api.js";
import {bar, button, bytes, count, facts, milliseconds, shape, sharding, table, values} from "./console-parts.js";
import {explanation, field, jsonOf} from "./console-programs.js";

const EXAMPLES = {
  numpy: ['def f(x, w):\n    y = x @ w\n    log("mean {}", y.mean())\n    return jnp.tanh(y).sum(axis=0)', "[[[1, 2, 3], [4, 5, 6]], [[0.1, 0], [0, 0.1], [0.1, 0.1]]]"],
  stablehlo: ["func.func @main(%a: tensor<2x3xf32>, %b: tensor<3x2xf32>) -> tensor<2x2xf32> {\n  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>\n  return %0 : tensor<2x2xf32>\n}",
    "[[[1, 2, 3], [4, 5, 6]], [[1, 0], [0, 1], [1, 1]]]"],
};

/** What came of a run. */
export function outcome(answer) {
  const nodes = [];
  answer.results.forEach((result, i) => nodes.push(el("h3", {}, "Result " + i + ": " + result.dtype + shape(result.shape) + (answer.shardings?.results[i] ? ", " + sharding(answer.shardings.results[i]) : "")), values(result)));
  if (!answer.results.length) nodes.push(el("p", {class: "quiet"}, "The program has no results."));
  if (answer.effects?.length) nodes.push(effects(answer.effects));
  const {statistics} = answer;
  if (statistics) nodes.push(facts([["steps", count(statistics.steps)], ["peak", bytes(statistics.peak_bytes)], ["in queues", milliseconds(statistics.queue_ms)], ["on the devices", milliseconds(statistics.run_ms)]]));
  if (answer.profile) nodes.push(...profile(answer.profile));
  return nodes;
}

export const effects = (list) => table("Effects", [["number", (row) => String(row.sequence)], ["effect", (row) => row.effect], ["name", (row) => row.name],
  ["values", (row) => row.values.map((value) => JSON.stringify(value.data ?? value.base64 ?? null)).join(", ").slice(0, 400)]], list);

function profile(of) {
  const longest = Math.max(...of.steps.map((step) => step.ms), 0);
  const trace = el("a", {download: "trace.json"}, "Save the trace for Perfetto");
  trace.href = URL.createObjectURL(new Blob([JSON.stringify(of)], {type: "application/json"}));
  return [el("h3", {}, "Profile"), table("Steps", [["step", (row) => row.op], ["line", (row) => String(row.line ?? ""), "number"], ["time", (row) => bar("", row.ms, longest, milliseconds(row.ms))],
    ["executions", (row) => count(row.executions), "number"], ["operations", (row) => count(row.operations), "number"], ["bytes", (row) => bytes(row.bytes), "number"],
    ["of the machine's limit", (row) => (row.limit_share === undefined ? "" : (row.limit_share * 100).toPrecision(2) + " %"), "number"]], of.steps),
    facts([["page faults", count(of.page_faults)], ["wake-ups", count(of.wake_ups)]]), el("p", {}, trace)];
}

export async function page(root, id, signal, failed) {
  const stored = id ? await ask("/v1/programs/" + id, {signal}) : null;
  const format = el("select", {}, el("option", {value: "numpy"}, "NumPy syntax"), el("option", {value: "stablehlo"}, "StableHLO"));
  const text = el("textarea", {rows: "10", spellcheck: "false", class: "editor"}), given = el("textarea", {rows: "4", spellcheck: "false"});
  const mesh = el("textarea", {rows: "2", spellcheck: "false", placeholder: '{"axis_names": ["x"], "devices": [0, 1, 2, 3]}'});
  const shardings = el("textarea", {rows: "2", spellcheck: "false", placeholder: '[{"spec": [["x"], []]}, null]'});
  const wantsProfile = el("input", {type: "checkbox", id: "field-profile"});
  const output = el("div", {class: "output", "aria-live": "polite"});
  const example = () => { [text.value, given.value] = EXAMPLES[format.value]; };
  example();
  format.addEventListener("change", () => { if (Object.values(EXAMPLES).some(([known]) => known === text.value)) example(); });
  if (stored) {
    format.value = stored.format === "numpy" ? "numpy" : "stablehlo";
    text.value = stored.text;
    given.value = stored.parameters ? "[]" : JSON.stringify(stored.arguments.map((one) => one.shape.reduceRight((inner, dim) => Array.from({length: Math.min(dim, 8)}, () => inner), 1)));
  }
  const placed = () => ({mesh: jsonOf(mesh, "Mesh"), in_shardings: jsonOf(shardings, "Shardings of the arguments")});
  const go = async () => {
    const began = performance.now();
    const answer = await post("/v1/run", {program: {format: format.value, text: text.value}, arguments: jsonOf(given, "Arguments") ?? [], ...placed(), profile: wantsProfile.checked}, signal);
    output.replaceChildren(el("p", {class: "status good"}, "Done in " + milliseconds(performance.now() - began) + "."), ...outcome(answer));
  };
  const shown = async (work) => {
    try {
      document.getElementById("console-note").textContent = "";
      await work();
    } catch (error) {
      if (error.name === "AbortError") throw error;
      const {document: problem} = error;
      output.replaceChildren(el("div", {class: "status bad", role: "alert"}, el("pre", {}, error.text || error.message), problem?.code ? el("a", {href: "/docs/errors#" + problem.code}, "What " + problem.code + " means") : null));
    }
  };
  const explain = async () => {
    const registered = await post("/v1/programs", {format: format.value, text: text.value}, signal);
    // What has no shape of its own is taken as the arguments that stand above.
    const types = (jsonOf(given, "Arguments") ?? []).map((one) => (one && typeof one === "object" && !Array.isArray(one) ? one : {dtype: "float32", shape: dimsOf(one)}));
    const body = {...placed(), ...(format.value === "numpy" ? {arguments: types.map(({dtype, shape: dims}) => ({dtype, shape: dims}))} : {})};
    output.replaceChildren(...await explanation(registered.id, body, text.value, signal));
  };
  text.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    shown(go).catch(failed);
  });
  root.append(field("format", "Language", format), field("text", "Program", text, "Control+Enter runs it."),
    field("arguments", "Arguments, as JSON", given, 'A list: nested lists, {"dtype", "shape", "data"}, or {"array": "arr_..."}'),
    el("details", {open: Boolean(stored && stored.meshes.length)}, el("summary", {}, "Mesh and shardings"), field("mesh", "Mesh", mesh), field("shardings", "Shardings of the arguments", shardings)),
    el("p", {}, wantsProfile, el("label", {for: "field-profile"}, " with a profile of its steps")),
    el("p", {class: "actions"}, button("Run", () => shown(go), failed, "send"), button("Explain", () => shown(explain), failed), button("Store it", () => shown(async () => {
      const made = await post("/v1/programs", {format: format.value, text: text.value}, signal);
      location.hash = "#program/" + made.id;
    }), failed)), output);
}

const dimsOf = (value) => (Array.isArray(value) ? [value.length, ...(value.length ? dimsOf(value[0]) : [])] : []);
