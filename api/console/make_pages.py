"""make_pages.py ROOT OUT.cpp: the documentation pages, their assets and the search index as a table in C++ (api/http/embedded.h).

Pages are the frame shell.html filled with: home.html, the API reference made from the contract (reference.py), and the guides (guides.py).
Those of ops and errors have marks (<!--contents-->, <!--main-->, and one in the search index) that the server fills from its tables."""
import hashlib
import html
import json
import pathlib
import re
import sys

import yaml

import guides
from reference import Reference

ASSETS = {"docs.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml",
          **{name: "text/javascript; charset=utf-8" for name in ("theme.js", "page.js", "dom.js", "search.js", "send.js", "try.js", "curl.js", "console.js", "console-api.js", "console-parts.js",
                                                               "console-server.js", "console-data.js", "console-programs.js", "console-run.js", "console-work.js")}}
AREAS = (("Guides", "/"), ("API", "/docs"), ("Ops", "/docs/ops"), ("Errors", "/docs/errors"), ("Console", "/console"))
VIEWS = (("The server", (("Overview", "#", ""), ("Devices and memory", "#devices", ""), ("Principal and quotas", "#me", ""))),
         ("Data", (("Arrays", "#arrays", "array"), ("Meshes", "#meshes", "mesh"))),
         ("Programs", (("Programs", "#programs", "program"), ("Run a program", "#run", ""))),
         ("Work", (("Sessions", "#sessions", "session"), ("Jobs", "#jobs", "job"))))
e = html.escape


def links(items):
    return "<ul>" + "".join(f'<li><a href="{e(href)}">{e(text)}</a></li>' for href, text in items) + "</ul>"


def with_code(text):
    return re.sub("`([^`]+)`", r"<code>\1</code>", e(text))


class Site:
    def __init__(self, root):
        self.here = root / "api" / "console"
        self.contract = yaml.safe_load((root / "openapi" / "openapi.yaml").read_text())
        self.guides = guides.all_guides(root)
        self.shell = (self.here / "shell.html").read_text()
        self.files = []
        self.search = []

    def add(self, path, media_type, text):
        self.files.append((path, media_type, text))

    def page(self, path, area, title, description, contents, main, scripts=("page.js",)):
        areas = "".join(f'<a href="{href}"{" aria-current=page" if name == area else ""}>{name}</a>' for name, href in AREAS)
        values = {"title": e(title), "description": e(description), "version": e(self.contract["info"]["version"]), "areas": areas,
                  "contents": contents, "main": main,
                  "scripts": "".join(f'<script type="module" src="/docs/assets/{name}"></script>' for name in scripts)}
        text = self.shell
        for name, value in values.items():
            text = text.replace("{{" + name + "}}", value)
        self.add(path, "text/html; charset=utf-8", text)

    def guide_list(self, now=None, inside=()):
        """All guides; below the one that is read, its sections."""
        out = ["<h2>Guides</h2><ul>"]
        for guide in self.guides:
            current = ' aria-current="page"' if guide is now else ""
            out.append(f'<li><a href="{guide.address}"{current}>{e(guide.title)}</a>{links(inside) if guide is now else ""}</li>')
        return "".join(out) + "</ul>"

    def make(self):
        cards = "".join(f'<li><a href="{g.address}"><strong>{e(g.title)}</strong><span>{with_code(g.about)}</span></a></li>' for g in self.guides)
        more = "<h2>Reference</h2>" + links((href, {"API": "API reference"}.get(name, name)) for name, href in AREAS[1:])
        self.page("/", "Guides", "Documentation", "Sharded arrays and array programs over HTTP", self.guide_list() + more,
                  (self.here / "home.html").read_text().replace("{{guides}}", cards))
        for guide in self.guides:
            contents, main, search = guides.rendered(guide, self.guides)
            self.search += search
            self.page(guide.address, "Guides", guide.title, guide.about.replace("`", ""), self.guide_list(guide, contents) + more, main)
        reference = Reference(self.contract)
        groups, main = reference.page()
        self.search += reference.search
        folded = "".join(f'<details{" open" if n < 3 else ""}><summary>{e(name)}</summary>{links(items)}</details>' for n, (name, items) in enumerate(groups))
        self.page("/docs", "API", "API reference", "Each operation of the API, with a form that sends it", f"<h2>API reference</h2>{folded}", main)
        for path, area, about in (("/docs/ops", "Ops", "Each op of the language with its constraints and an example"),
                                  ("/docs/errors", "Errors", "Each error code, what it means and how to mend it")):
            self.page(path, area, area, about, f"<h2>{area}</h2><!--contents-->", "<!--main-->")
        views = ""
        for group, entries in VIEWS:
            items = "".join(f'<li><a href="{address}" data-also="{also}">{name}</a></li>' for name, address, also in entries)
            views += f"<h2>{group}</h2><ul>{items}</ul>"
        self.page("/console", "Console", "Console", "Arrays, programs, sessions and jobs of this server", views, (self.here / "console.html").read_text(),
                  scripts=("page.js", "console.js"))
        for name, media_type in ASSETS.items():
            self.add("/docs/assets/" + name, media_type, (self.here / name).read_text())
        entries = [[kind, title, address, text.strip()] for kind, title, address, text in self.search]
        self.add("/docs/assets/search.json", "application/json", json.dumps(entries, ensure_ascii=False, separators=(",", ":"))[:-1] + "/*more*/]\n")


def literal(data):
    """Bytes as C++ string literals, a line at a time. Octal escapes always have three digits, so none runs into what follows."""
    out = []
    for line in data.splitlines(keepends=True):
        for start in range(0, len(line), 4000):
            piece = line[start:start + 4000]
            out.append('"' + "".join(chr(c) if 32 <= c < 127 and c not in (34, 63, 92) else f"\\{c:03o}" for c in piece) + '"')
    return "\n".join(out) or '""'


def main():
    root, target = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    site = Site(root)
    site.make()
    rows = []
    for path, media_type, text in site.files:
        data = text.encode()
        rows.append(f'{{"{path}", "{media_type}", std::string_view({literal(data)}, {len(data)}), "\\"{hashlib.sha256(data).hexdigest()[:20]}\\""}},\n')
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text('#include "api/http/embedded.h"\n\nnamespace meshd::api::embedded {\n\nstd::span<const SiteFile> site_files() {\n'
                      "  static constexpr SiteFile kFiles[] = {\n" + "".join(rows) + "  };\n  return kFiles;\n}\n\n}  // namespace meshd::api::embedded\n")


main()
