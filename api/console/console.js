// The console: views of this server's own API. The part of the address behind # says which: #arrays, #array/ID, #run, ...
import {Problem, startTokens} from "./console-api.js";
import {el} from "./dom.js";
import * as server from "./console-server.js";
import * as data from "./console-data.js";
import * as programs from "./console-programs.js";
import * as run from "./console-run.js";
import * as work from "./console-work.js";

// Name of a view -> its title and what fills it: (root, id, signal). The signal ends when another view is opened.
const VIEWS = {
  "": ["Overview", server.overview], devices: ["Devices and memory", server.devices], me: ["Principal and quotas", server.principal],
  arrays: ["Arrays", data.arrays], array: ["Array", data.array], meshes: ["Meshes", data.meshes], mesh: ["Mesh", data.mesh],
  programs: ["Programs", programs.list], program: ["Program", programs.program], run: ["Run a program", run.page],
  sessions: ["Sessions", work.sessions], session: ["Session", work.session], jobs: ["Jobs", work.jobs], job: ["Job", work.job],
};
let control = new AbortController();

function note(text, bad) {
  const place = document.getElementById("console-note");
  place.textContent = text;
  place.classList.toggle("bad", bad === true);
}

export function failed(error) {
  if (error.name === "AbortError") return;
  note(error instanceof Problem ? error.text : "The server did not answer: " + error.message, true);
}

async function open(first) {
  const [name, ...rest] = decodeURIComponent(location.hash.slice(1)).split("/");
  const [title, fill] = VIEWS[name] || ["There is no such view", (root) => root.append(el("p", {}, "Choose one of the contents."))];
  control.abort();
  control = new AbortController();
  const {signal} = control;
  const heading = document.getElementById("console-title");
  heading.textContent = title;
  document.title = title + " · Console · meshd";
  for (const link of document.querySelectorAll("#contents a")) {
    const here = link.hash === location.hash || (link.hash === "" && location.hash === "");
    if (here || (link.dataset.also && link.dataset.also === name)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  note("", false);
  const root = el("div", {id: "view"});
  document.getElementById("view").replaceWith(root);
  // Whoever uses a screen reader hears which view has opened.
  if (!first) {
    heading.tabIndex = -1;
    heading.focus({preventScroll: true});
    scrollTo(0, 0);
  }
  try {
    await fill(root, rest.join("/"), signal, failed);
  } catch (error) {
    failed(error);
  }
}

addEventListener("hashchange", () => open(false));
startTokens(() => open(false));
open(true);
