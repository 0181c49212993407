// Parts of the console's views: tables, facts, charts, words for numbers.
import {el} from "./dom.js";
import {ask, query} from "./console-api.js";

export const bytes = (n) => {
  if (n === null || n === undefined) return "any";
  let i = 0;
  for (; n >= 1024 && i < 4; ++i) n /= 1024;
  return (i === 0 || n >= 100 ? Math.round(n) : n.toPrecision(3)) + " " + ["B", "KiB", "MiB", "GiB", "TiB"][i];
};
export const count = (n) => Number(n).toLocaleString("en-US");
export const milliseconds = (ms) => (ms < 1 ? (ms * 1000).toPrecision(3) + " µs" : ms < 1000 ? ms.toPrecision(3) + " ms" : (ms / 1000).toPrecision(3) + " s");
export const duration = (seconds) => (seconds < 120 ? Math.round(seconds) + " s" : seconds < 7200 ? Math.round(seconds / 60) + " min" : seconds < 172800 ? Math.round(seconds / 3600) + " h" : Math.round(seconds / 86400) + " days");
export const between = (start, end) => milliseconds(Math.max(0, new Date(end) - new Date(start)));
export const when = (text) => {
  const time = el("time", {datetime: text}, new Date(text).toLocaleString(undefined, {dateStyle: "short", timeStyle: "medium"}));
  return time;
};
export const shape = (dims) => "[" + dims.join(", ") + "]";
export const sharding = (of) => !of ? "on one device" : of.sdy || "P(" + (of.spec || []).map((axes) => (axes.length === 0 ? "None" : axes.length === 1 ? "'" + axes[0] + "'" : "(" + axes.map((axis) => "'" + axis + "'").join(", ") + ")")).join(", ") + ")";
export const meshText = (mesh) => (mesh.axes.length ? mesh.axes.map((axis) => axis.name + "=" + axis.size).join(", ") : "empty") + (mesh.is_abstract ? " (abstract)" : "");
export const short = (id) => id.replace(/^([a-z]+_).*(.{8})$/, "$1…$2");
export const link = (view, id, text) => el("a", {href: "#" + view + "/" + encodeURIComponent(id), title: id}, text || short(id));
export const badge = (state) => el("span", {class: "badge state-" + state}, state);

/** columns: [heading, row => text or node, "number"?] */
export function table(caption, columns, rows) {
  const body = rows.map((row) => el("tr", {}, columns.map(([, cell, kind], i) => el(i === 0 ? "th" : "td", {scope: i === 0 ? "row" : false, class: kind || false}, cell(row)))));
  return el("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": caption}, el("table", {},
    el("caption", {}, caption), el("thead", {}, el("tr", {}, columns.map(([heading, , kind]) => el("th", {scope: "col", class: kind || false}, heading)))), el("tbody", {}, body)));
}

export const facts = (pairs) => el("dl", {class: "facts"}, pairs.filter(([, value]) => value !== undefined && value !== null && value !== "")
  .map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]).flat());

export function button(text, work, failed, kind) {
  const node = el("button", {type: "button", class: kind || false}, text);
  node.addEventListener("click", async () => {
    node.disabled = true;
    try {
      await work(node);
    } catch (error) {
      failed(error);
    }
    node.disabled = false;
  });
  return node;
}

/** A list of the API, a page at a time, in `root`; `filters` are query parameters. Answers what shows the list anew. */
export function paged(root, {caption, path, columns, empty, filters, signal}) {
  const place = el("div", {}), more = el("p", {class: "actions"});
  root.append(place, more);
  let pages = 1, asked = 0;
  const show = async () => {
    const number = ++asked;
    const items = [];
    let cursor = "";
    for (let page = 0; page < pages; ++page) {
      const answer = await ask(path + query({limit: 50, cursor, ...(filters ? filters() : {})}), {signal});
      items.push(...answer.items);
      cursor = answer.next || "";
      if (!cursor) break;
    }
    if (number !== asked) return;  // a later request is under way or answered: its filters hold
    place.replaceChildren(items.length ? table(caption, columns, items) : el("p", {class: "quiet"}, empty));
    more.replaceChildren(...(cursor ? [button("Show more", async () => { ++pages; await show(); }, () => {})] : []));
  };
  return show;
}

const SVG = "http://www.w3.org/2000/svg";
export function svg(tag, attributes, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** Lines over time. series: [{name, values}], times in ms; `format` writes a value. The last values are its text for those who do not see it. */
export function lineChart(title, times, series, format) {
  const width = 560, height = 150, left = 8, bottom = 20, top = 10;
  const flat = series.flatMap(({values}) => values).filter((value) => Number.isFinite(value));
  const high = Math.max(...flat, 0) || 1;
  const first = times[0] || 0, span = Math.max(1, (times.at(-1) || 0) - first);
  const x = (time) => left + (time - first) / span * (width - 2 * left);
  const y = (value) => height - bottom - value / high * (height - bottom - top);
  const said = title + ": " + series.map(({name, values}) => name + " " + (values.length ? format(values.at(-1)) : "nothing")).join(", ");
  const plot = svg("svg", {viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": said});
  for (const part of [0, 0.5, 1]) {
    const at = y(high * part);
    plot.append(svg("line", {x1: left, x2: width - left, y1: at, y2: at, class: "grid"}));
    const text = svg("text", {x: left, y: at - 3, class: "tick"});
    text.textContent = format(high * part);
    plot.append(text);
  }
  series.forEach(({values}, n) => {
    const points = values.map((value, i) => [times[i], value]).filter(([, value]) => Number.isFinite(value)).map(([time, value]) => x(time).toFixed(1) + "," + y(value).toFixed(1));
    plot.append(svg("polyline", {points: points.join(" "), class: "line line-" + n % 6}));
  });
  const legend = el("ul", {class: "legend"}, series.map(({name, values}, n) => el("li", {class: "key-" + n % 6}, name + ": " + (values.length ? format(values.at(-1)) : "-"))));
  return el("figure", {class: "chart-box"}, el("figcaption", {}, title), plot, legend);
}

/** Bars, one for each of [name, value]. */
export function barChart(title, bars, format) {
  const high = Math.max(...bars.map(([, value]) => value), 0) || 1;
  const width = 560, height = 140, bottom = 4;
  const step = width / Math.max(1, bars.length);
  const plot = svg("svg", {viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": title + ": " + bars.map(([name, value]) => name + " " + format(value)).join(", ")});
  bars.forEach(([name, value], i) => {
    const tall = value / high * (height - bottom - 6);
    const bar = svg("rect", {x: i * step + step * 0.08, y: height - bottom - tall, width: step * 0.84, height: tall, class: "bar-fill"});
    const about = svg("title", {});
    about.textContent = name + ": " + format(value);
    bar.append(about);
    plot.append(bar);
  });
  return el("figure", {class: "chart-box"}, el("figcaption", {}, title), plot,
    el("p", {class: "quiet"}, bars.length ? "from " + bars[0][0] + " to " + bars.at(-1)[0] + ", at most " + format(high) : "nothing"));
}

/** A share of a whole as a bar with words. */
export const meter = (name, value, limit, format) => bar(name, value, limit, format(value) + (limit ? " of " + format(limit) : ""));
export function bar(name, value, limit, text) {
  return el("div", {class: "meter"}, el("span", {class: "meter-name"}, name),
    limit ? el("meter", {min: 0, max: limit, value, "aria-label": (name ? name + ": " : "") + text}, text) : el("span", {}), el("span", {class: "meter-text"}, text));
}

/** Values of an array of any rank as a table of its last two dimensions, or as text. */
export function values(of) {
  const cell = (value) => (Array.isArray(value) ? value.join(" + i ") : typeof value === "number" && !Number.isInteger(value) ? String(Number(value.toPrecision(7))) : String(value));
  const dims = of.shape;
  if (of.data === undefined) return el("p", {class: "quiet"}, of.array ? link("array", of.array) : "not sent");
  if (dims.length === 0) return el("p", {class: "value"}, el("code", {}, cell(of.data)));
  if (dims.length <= 2 && dims.every((dim) => dim <= 64)) {
    const rows = dims.length === 1 ? [of.data] : of.data;
    return el("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "Values"}, el("table", {class: "grid-of-values"}, el("tbody", {}, rows.map((row) => el("tr", {}, row.map((value) => el("td", {class: "number"}, cell(value))))))));
  }
  return el("pre", {class: "answer", tabindex: "0"}, JSON.stringify(of.data).slice(0, 20000));
}
