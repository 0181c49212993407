// Stored programs: their text with the sharding of each line, and what :explain says of them.
import {el} from "./dom.js";
import {ask, picture, post, Problem, request} from "./console-api.js";
import {button, bytes, count, facts, paged, link, shape, short, table, when} from "./console-parts.js";

const type = (of) => of.dtype + shape(of.shape);

export async function list(root, _, signal) {
  root.append(el("p", {}, el("a", {href: "#run"}, "Write and run a program")));
  const show = paged(root, {caption: "Programs", path: "/v1/programs", signal, empty: "No program has been stored.",
    columns: [["program", (row) => link("program", row.id, row.name || short(row.id))], ["format", (row) => row.format],
      ["created", (row) => when(row.created)]]});
  await show();
}

/** JSON of a field; nothing where it is empty. Throws with the field's name. */
export function jsonOf(field, name) {
  if (!field.value.trim()) return undefined;
  try {
    return JSON.parse(field.value);
  } catch (error) {
    throw new Problem(0, {detail: name + " is not JSON: " + error.message});
  }
}

export function field(name, label, node, about) {
  node.id = "field-" + name;
  if (about) node.setAttribute("aria-describedby", node.id + "-about");
  return el("div", {class: "field"}, el("label", {for: node.id}, label), node, about ? el("p", {class: "quiet", id: node.id + "-about"}, about) : null);
}

const moved = (collective) => collective.kind + " " + collective.axes + ", " + bytes(collective.bytes) + " a device: " + collective.why;

/** Each line of the text with the shardings of its values and what is moved for it. */
export function annotated(text, explained) {
  const of = new Map();
  const add = (line, entry) => of.set(line, [...(of.get(line) || []), entry]);
  for (const part of explained.functions) {
    for (const value of part.values) add(value.line, [value.value + " ", value.shardings.map((one) => one || "replicated").join(", "), value.decided ? value.decided.text : ""]);
    for (const collective of part.collectives) add(collective.line, ["moves ", moved(collective), ""]);
  }
  const lines = text.split("\n").map((line, i) => ({number: i + 1, line}));
  return table("The program, line by line", [["line", (row) => String(row.number), "number"], ["text", (row) => el("code", {class: "source"}, row.line)],
    ["sharding", (row) => (of.get(row.number) || []).map(([name, said, why]) => el("div", {title: why}, el("strong", {}, name), said))]], lines);
}

/** The picture, totals and lines of an answer of :explain. */
export async function explanation(id, body, text, signal) {
  const target = "/v1/programs/" + id + ":explain";
  const explained = await post(target, body, signal);
  const {totals, memory} = explained;
  const nodes = [facts([["devices", count(explained.devices)], ["operations of a device", count(totals.flops)], ["bytes moved to a device", bytes(totals.bytes_moved)],
    ["peak of a device", bytes(memory.device.peak)], ["peak of the process", bytes(memory.process.peak)],
    ["cannot run", explained.cannot_run.map((one) => one.text || JSON.stringify(one)).join("; ")], ["warnings", explained.warnings.join("; ")]])];
  const arguments_ = explained.functions[0].arguments.map((one, i) => ({name: "argument " + i, sharding: one, why: explained.functions[0].decided.arguments[i]?.text}));
  const results = explained.functions[0].results.map((one, i) => ({name: "result " + i, sharding: one, why: explained.functions[0].decided.results[i]?.text}));
  nodes.push(table("Arguments and results", [["", (row) => row.name], ["sharding", (row) => row.sharding || "replicated"], ["decided by", (row) => row.why || ""]], [...arguments_, ...results]));
  nodes.push(annotated(text, explained));
  nodes.push(table("Steps of the plan", [["step", (row) => row.name], ["lines", (row) => row.lines.join(", ")], ["operations", (row) => count(row.flops), "number"], ["bytes", (row) => bytes(row.bytes), "number"], ["shards", (row) => count(row.shards), "number"]], explained.steps));
  nodes.push(await picture(target, "The program with its shardings and what is moved", {method: "POST", body, signal}));
  return nodes;
}

export async function program(root, id, signal, failed) {
  const of = await ask("/v1/programs/" + id, {signal});
  root.append(facts([["name", of.name || "none"], ["id", el("code", {}, of.id)], ["format", of.format], ["arguments", of.parameters ? of.parameters.join(", ") : of.arguments.map(type).join(", ")],
    ["results", of.results.map(type).join(", ")], ["effects", of.effects.map((effect) => effect.kind || effect.name || JSON.stringify(effect)).join(", ")],
    ["cannot run", of.cannot_run.map((one) => one.text || JSON.stringify(one)).join("; ")], ["created", when(of.created)]]));
  root.append(el("p", {class: "actions"}, el("a", {class: "as-button", href: "#run/" + id}, "Run it"), button("Delete it", async () => {
    await request("/v1/programs/" + id, {method: "DELETE"});
    location.hash = "#programs";
  }, failed, "danger")));
  root.append(el("h2", {}, "Text"), el("pre", {class: "answer", tabindex: "0"}, of.text || ""), el("h2", {}, "Explain"));
  const mesh = el("textarea", {rows: "2", spellcheck: "false"}), shardings = el("textarea", {rows: "2", spellcheck: "false"}), types = el("textarea", {rows: "2", spellcheck: "false"});
  mesh.value = '{"axes": [{"name": "x", "size": 8}]}';
  shardings.value = of.arguments.length ? JSON.stringify(of.arguments.map((one, i) => (i === 0 && one.shape.length ? {spec: one.shape.map((__, n) => (n === 0 ? ["x"] : []))} : null))) : "";
  const output = el("div", {"aria-live": "polite"});
  const form = [field("mesh", "Mesh", mesh, "Abstract meshes may have more devices than this server."), field("shardings", "Shardings of the arguments", shardings)];
  if (of.format === "numpy") form.push(field("types", "Types of the arguments", types, 'A function in NumPy syntax is traced for them: [{"dtype": "float32", "shape": [8, 4]}]'));
  root.append(...form, el("p", {class: "actions"}, button("Explain", async () => {
    const body = {mesh: jsonOf(mesh, "Mesh"), in_shardings: jsonOf(shardings, "Shardings of the arguments"), ...(of.format === "numpy" ? {arguments: jsonOf(types, "Types of the arguments")} : {})};
    output.replaceChildren(...await explanation(id, body, of.text, signal));
  }, failed, "send")), output);
}
