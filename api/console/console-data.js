// Arrays and meshes: lists, pictures of shards, values, statistics.
import {el} from "./dom.js";
import {ask, picture, post, Problem, request} from "./console-api.js";
import {badge, barChart, button, bytes, count, facts, link, meshText, paged, shape, sharding, short, table, values, when} from "./console-parts.js";

const BINS = 32;
// Counts of equal parts between the least and the largest finite value, and what is not finite.
const STATISTICS = `def f(x):
    v = x.reshape(-1).astype(jnp.float32)
    ok = jnp.isfinite(v)
    low = jnp.where(ok, v, jnp.inf).min()
    high = jnp.where(ok, v, -jnp.inf).max()
    mean = jnp.where(ok, v, 0).sum() / jnp.maximum(ok.sum(), 1)
    bin = jnp.clip(jnp.floor((v - low) / jnp.maximum(high - low, 1e-30) * ${BINS}), 0, ${BINS - 1}).astype(jnp.int32)
    counts = jnp.zeros(${BINS}, jnp.int32).at[bin].add(ok.astype(jnp.int32))
    return low, high, mean, (~ok).sum(), counts
`;

export async function arrays(root, _, signal, failed) {
  const prefix = el("input", {type: "search", id: "prefix", placeholder: "model/", spellcheck: "false"});
  root.append(el("form", {class: "filter", role: "search"}, el("label", {for: "prefix"}, "Names that begin with"), prefix));
  const show = paged(root, {caption: "Arrays", path: "/v1/arrays", signal, empty: "There are no such arrays.", filters: () => ({prefix: prefix.value}),
    columns: [["name", (row) => link("array", row.id, row.name || short(row.id))], ["dtype", (row) => row.dtype], ["shape", (row) => shape(row.shape)], ["sharding", (row) => sharding(row.sharding)],
      ["bytes", (row) => bytes(row.bytes), "number"], ["durability", (row) => row.durability], ["state", (row) => badge(row.state)], ["version", (row) => String(row.version), "number"], ["created", (row) => when(row.created)]]});
  prefix.closest("form").addEventListener("submit", (event) => event.preventDefault());
  prefix.addEventListener("input", () => show().catch(failed));
  await show();
}

// The first values of each dimension, so that a screen holds them.
const slices = (dims) => dims.map((dim, i) => "0:" + Math.min(dim, i === dims.length - 1 ? 16 : i === dims.length - 2 ? 32 : 1)).join(",");

async function statistics(id, signal) {
  const answer = await post("/v1/run", {program: {format: "numpy", text: STATISTICS}, arguments: [{array: id}]}, signal);
  const [low, high, mean, others, counts] = answer.results.map((result) => result.data);
  const edge = (i) => Number((low + (high - low) * i / BINS).toPrecision(4)).toString();
  return [facts([["least", String(low)], ["largest", String(high)], ["mean", String(mean)], ["not finite", count(others)]]),
    barChart("Histogram of all values", counts.map((n, i) => [edge(i), n]), count)];
}

export async function array(root, id, signal, failed) {
  const of = await ask("/v1/arrays/" + id, {signal});
  root.append(facts([["name", of.name || "none"], ["id", el("code", {}, of.id)], ["dtype", of.dtype], ["shape", shape(of.shape)], ["elements", count(of.size)], ["bytes", bytes(of.bytes)],
    ["mesh", of.mesh ? link("mesh", of.mesh) : null], ["sharding", sharding(of.sharding)], ["shape of a shard", shape(of.shard_shape)], ["shards", String(of.shard_count)],
    ["durability", of.durability], ["state", badge(of.state)], ["version", String(of.version)], ["created", when(of.created)]]));
  const remove = button("Delete this array", async (node) => {
    if (node.dataset.sure !== "yes") {
      node.dataset.sure = "yes";
      node.textContent = "Delete it: sure?";
      return;
    }
    await request("/v1/arrays/" + id, {method: "DELETE"});
    location.hash = "#arrays";
  }, failed, "danger");
  if (of.state === "ready") {
    const save = ["npy", "json", "safetensors"].map((format) => button("Save as " + format, async () => {
      const answer = await request("/v1/arrays/" + id + "/data?format=" + format, {accept: "*/*", signal});
      const anchor = el("a", {download: (of.name || of.id).replaceAll("/", "_") + "." + format});
      anchor.href = URL.createObjectURL(await answer.blob());
      anchor.click();
      URL.revokeObjectURL(anchor.href);
    }, failed));
    root.append(el("p", {class: "actions"}, save, remove));
  } else {
    root.append(el("p", {class: "actions"}, remove));
  }
  root.append(el("h2", {}, "Shards"));
  root.append(await picture("/v1/arrays/" + id + "/sharding.svg", "Where each shard of the array is", {signal}).catch((error) => el("p", {class: "quiet"}, error.message)));
  const shards = await ask("/v1/arrays/" + id + "/shards", {signal}).catch((error) => { failed(error); return {items: []}; });
  root.append(el("details", {}, el("summary", {}, "Shards as a table"), table("Shards", [["device", (row) => String(row.device)], ["process", (row) => String(row.process)],
    ["index", (row) => row.index.map((range) => range.join(":")).join(", ") || "all"], ["replica", (row) => String(row.replica_id), "number"], ["shape", (row) => shape(row.shape)]], shards.items)));
  if (of.state !== "ready") return;
  root.append(el("h2", {}, "Values"));
  try {
    const part = slices(of.shape);
    const some = of.size === 0 ? {shape: of.shape, data: []} : await ask("/v1/arrays/" + id + "/data?format=json" + (part ? "&slice=" + part : ""), {signal});
    while (some.shape.length > 2 && some.shape[0] === 1) {
      some.shape = some.shape.slice(1);
      [some.data] = some.data;
    }
    root.append(el("p", {class: "quiet"}, part ? "slice=" + part : "the one value"), values(some));
  } catch (error) {
    failed(error);
  }
  if (of.size === 0 || /complex|bool|float[468]_|int[24]$/.test(of.dtype)) return;
  root.append(el("h2", {}, "Statistics"));
  const place = el("div", {}, el("p", {class: "quiet"}, "A program computes them where the shards are."));
  root.append(place);
  try {
    place.replaceChildren(...await statistics(id, signal));
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    place.replaceChildren(el("p", {class: "quiet"}, error.message));
  }
}

export async function meshes(root, _, signal) {
  const show = paged(root, {caption: "Meshes", path: "/v1/meshes", signal, empty: "No mesh has been stored.",
    columns: [["mesh", (row) => link("mesh", row.id)], ["axes", meshText], ["devices", (row) => count(row.size), "number"], ["created", (row) => when(row.created)]]});
  await show();
}

export async function mesh(root, id, signal) {
  const of = await ask("/v1/meshes/" + id, {signal});
  root.append(facts([["id", el("code", {}, of.id)], ["axes", meshText(of)], ["devices", count(of.size)], ["abstract mesh", of.abstract ? link("mesh", of.abstract) : null], ["created", when(of.created)]]));
  if (!of.device_ids || of.axes.length === 0) return;
  // The last axis goes to the right, all others down.
  const columns = of.shape.at(-1), head = of.axes.slice(0, -1), rows = [];
  for (let at = 0; at < of.device_ids.length && rows.length < 512; at += columns) {
    let rest = at / columns;
    const place = head.map((axis) => axis).reverse().map((axis) => { const n = rest % axis.size; rest = Math.floor(rest / axis.size); return axis.name + "=" + n; }).reverse().join(", ");
    rows.push({place: place || of.axes[0].name, devices: of.device_ids.slice(at, at + columns)});
  }
  root.append(el("h2", {}, "Devices"), table("Devices along the axes", [["", (row) => row.place],
    ...Array.from({length: Math.min(columns, 64)}, (__, n) => [of.axes.at(-1).name + "=" + n, (row) => String(row.devices[n]), "number"])], rows));
}
