// Search over the index that the server embeds (/docs/assets/search.json): once fetched, it needs no server.
import {el} from "./dom.js";

const MOST = 30;
let index = null;
let chosen = -1;

const words = (text) => text.toLowerCase().split(/[^a-z0-9_.]+/).filter(Boolean);

// How well an entry fits all words of a query; 0: not at all. A title counts more than a text, a whole word more than a part.
function score(entry, query) {
  let sum = 0;
  for (const word of query) {
    const at = entry.title.indexOf(word);
    const last = entry.title.split(/[ ./:_-]/);
    if (entry.title === word) sum += 100;
    else if (last.includes(word)) sum += 40;
    else if (at >= 0) sum += 20 - Math.min(10, entry.title.length / 20);
    else if (entry.name.includes(word)) sum += 15;
    else if (entry.text.includes(word)) sum += 3;
    else return 0;
  }
  return sum;
}

function find(entries, text) {
  const query = words(text);
  if (!query.length) return [];
  return entries.map((entry) => [score(entry, query), entry]).filter(([value]) => value > 0)
    .sort((a, b) => b[0] - a[0]).slice(0, MOST).map(([, entry]) => entry);
}

async function load() {
  if (index) return index;
  const answer = await fetch("/docs/assets/search.json");
  if (!answer.ok) throw new Error("the index answered " + answer.status);
  index = (await answer.json()).map(([kind, title, address, text]) =>
    ({kind, shown: title, address, about: text, title: title.toLowerCase(), name: address.toLowerCase(), text: text.toLowerCase()}));
  return index;
}

export function startSearch() {
  const dialog = document.getElementById("search");
  const input = document.getElementById("search-words");
  const list = document.getElementById("search-results");
  const status = document.getElementById("search-status");

  const choose = (next) => {
    const options = [...list.children];
    if (options[chosen]) options[chosen].setAttribute("aria-selected", "false");
    chosen = options.length ? (next + options.length) % options.length : -1;
    if (chosen < 0) return input.removeAttribute("aria-activedescendant");
    options[chosen].setAttribute("aria-selected", "true");
    options[chosen].scrollIntoView({block: "nearest"});
    return input.setAttribute("aria-activedescendant", options[chosen].id);
  };
  const show = async () => {
    try {
      const found = find(await load(), input.value);
      list.replaceChildren(...found.map((entry, n) => el("li", {role: "option", id: "result-" + n, "aria-selected": "false"},
        el("a", {href: entry.address, tabindex: "-1"}, el("strong", {}, entry.shown), el("span", {class: "kind"}, entry.kind),
          el("span", {class: "about"}, entry.about.slice(0, 160))))));
      input.setAttribute("aria-expanded", String(found.length > 0));
      status.textContent = input.value.trim() === "" ? "Type to search; arrows choose, Enter opens." :
        found.length === 0 ? "Nothing has these words." : found.length === MOST ? "The best " + MOST + ":" : found.length + " found:";
      choose(0);
    } catch (error) {
      status.textContent = "The search index could not be loaded: " + error.message;
    }
  };
  const open = () => {
    if (!dialog.open) dialog.showModal();
    input.select();
    show();
  };
  const follow = (link) => {
    dialog.close();
    location.assign(link.href);
  };
  document.getElementById("search-open").addEventListener("click", open);
  input.addEventListener("input", show);
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      choose(chosen + (event.key === "ArrowDown" ? 1 : -1));
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (list.children[chosen]) follow(list.children[chosen].querySelector("a"));
    }
  });
  list.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    follow(link);
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  addEventListener("keydown", (event) => {
    const types = event.target.closest && event.target.closest("input, textarea, select, [contenteditable]");
    if ((event.key === "k" && (event.ctrlKey || event.metaKey)) || (event.key === "/" && !types)) {
      event.preventDefault();
      open();
    }
  });
}
