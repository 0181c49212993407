// What every page does: theme, contents on narrow screens, copy buttons, search and examples that run here.
import {copyButton} from "./dom.js";
import {startSearch} from "./search.js";
import {startTries} from "./try.js";

const THEMES = {"": ["◐", "as the system has it"], light: ["☀", "light"], dark: ["☾", "dark"]};
const root = document.documentElement;

function showTheme() {
  const [sign, name] = THEMES[root.dataset.theme || ""];
  const button = document.getElementById("theme");
  button.textContent = sign;
  button.setAttribute("aria-label", "Colour theme: " + name);
  button.title = "Colour theme: " + name;
}

function nextTheme() {
  const names = Object.keys(THEMES);
  const next = names[(names.indexOf(root.dataset.theme || "") + 1) % names.length];
  if (next) root.dataset.theme = next;
  else delete root.dataset.theme;
  try {
    localStorage.setItem("meshd-theme", next);
  } catch {
    // Only this page has it then.
  }
  showTheme();
}

function startContents() {
  const toggle = document.getElementById("contents-toggle");
  const contents = document.getElementById("contents");
  const set = (open) => {
    toggle.setAttribute("aria-expanded", String(open));
    contents.classList.toggle("open", open);
  };
  toggle.addEventListener("click", () => set(toggle.getAttribute("aria-expanded") !== "true"));
  contents.addEventListener("click", (event) => { if (event.target.closest("a")) set(false); });
  contents.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || toggle.getAttribute("aria-expanded") !== "true") return;
    set(false);
    toggle.focus();
  });
}

// The link of the section that is read now is marked, and kept in view where the contents scroll by themselves.
function followSections() {
  const links = new Map([...document.querySelectorAll("#contents a[href*='#']")].map((link) => [link.hash.slice(1), link]));
  const sections = [...links.keys()].map((id) => document.getElementById(id)).filter(Boolean);
  let marked = null, waiting = false;
  const mark = () => {
    waiting = false;
    let now = null;
    for (const section of sections) if (section.getBoundingClientRect().top < 120) now = section;
    const link = now && links.get(now.id);
    if (link === marked) return;
    if (marked) marked.removeAttribute("aria-current");
    if (link) link.setAttribute("aria-current", "location");
    marked = link;
    const side = document.querySelector(".side");
    if (!link || getComputedStyle(side).position !== "sticky") return;
    const at = link.getBoundingClientRect(), frame = side.getBoundingClientRect();
    if (at.top < frame.top || at.bottom > frame.bottom) side.scrollTop += at.top - frame.top - frame.height / 2;
  };
  addEventListener("scroll", () => {
    if (!waiting) requestAnimationFrame(mark);
    waiting = true;
  }, {passive: true});
  mark();
}

// An address that names something folded opens what holds it.
function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const holder = target && target.closest("details:not([open])");
  if (!holder) return;
  holder.open = true;
  target.scrollIntoView();
}

// What is wider than the page can be scrolled by keys.
function makeScrollable() {
  const wide = [...document.querySelectorAll("main pre, main .scroll")].map((node) => [node, node.scrollWidth > node.clientWidth]);
  for (const [node, scrolls] of wide) {
    if (!scrolls) {
      node.removeAttribute("tabindex");
      continue;
    }
    node.tabIndex = 0;
    if (!node.classList.contains("scroll")) continue;
    node.setAttribute("role", "region");
    node.setAttribute("aria-label", "Table, wider than the page");
  }
}
makeScrollable();
addEventListener("resize", makeScrollable);

for (const pre of document.querySelectorAll("main pre")) {
  const host = pre.closest(".block");
  if (host) host.querySelector(".tools").append(copyButton(() => pre.dataset.copy || pre.textContent));
}
for (const node of document.querySelectorAll("[data-origin]")) node.textContent = location.origin;
showTheme();
document.getElementById("theme").addEventListener("click", nextTheme);
startContents();
followSections();
openTarget();
addEventListener("hashchange", openTarget);
startSearch();
startTries();
