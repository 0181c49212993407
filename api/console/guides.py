"""Guides: Markdown files to HTML, by cmark-gfm. Which there are, their titles and their order say the list items of docs/README.md,
`- [Title](file.md): what it is about`."""
import html
import pathlib
import re
import subprocess

ITEM = re.compile(r"^- \[(.+?)\]\((\S+?\.md)\): (.+)$", re.M)
e = html.escape


class Guide:
    def __init__(self, root, title, link, about):
        self.file = (root / "docs" / link).resolve()
        self.title, self.about = title, about
        # The package's README is the one guide that has another name here than its file.
        self.name = "python" if self.file.name == "README.md" else self.file.stem
        self.address = "/docs/guides/" + self.name


def all_guides(root):
    return [Guide(root, *found) for found in ITEM.findall((root / "docs" / "README.md").read_text())]


def slug(title):
    """As GitHub makes it, so that links hold in both places."""
    return re.sub(r"[^\w\- ]", "", re.sub("<.*?>", "", html.unescape(title)).lower()).strip().replace(" ", "-")


def plain(text):
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", text))).strip()


def console(text):
    """Lines after a prompt are what one types; the rest is what is answered. (HTML, the typed lines alone.)"""
    shown, typed, continues = [], [], False
    for line in text.rstrip("\n").split("\n"):
        if line.startswith("$ ") or continues and line.startswith("> "):
            shown.append(f'<span class="prompt">{e(line[:2])}</span>{e(line[2:])}')
            typed.append(line[2:])
            continues = True
        else:
            shown.append(f'<span class="said">{e(line)}</span>')
            continues = False
    return "\n".join(shown), "\n".join(typed)


def block(language, text):
    is_short = text.count("\n") <= 1
    classes = "block" + (" short" if is_short else "") + (" wrap" if language in ("sh", "console") else "")
    data = ""
    shown = e(text)
    if language == "console":
        shown, typed = console(text)
        data = f' data-shell data-copy="{e(typed)}"'
    elif language == "sh":
        data = " data-shell"
    return f'<div class="{classes}"><span class="tools"></span><pre{data}><code>{shown}</code></pre></div>'


def rendered(guide, guides):
    """(contents, main, search entries) of a guide."""
    text = guide.file.read_text()
    body = subprocess.run(["cmark-gfm", "-e", "table", "-t", "html"], input=text, capture_output=True, text=True, check=True).stdout
    body = re.sub(r'<pre><code(?: class="language-([\w-]+)")?>(.*?)</code></pre>',
                  lambda found: block(found[1] or "", html.unescape(found[2])), body, flags=re.S)
    body = re.sub(r"<table>(.*?)</table>", r'<div class="scroll"><table>\1</table></div>', body, flags=re.S).replace("<th>", '<th scope="col">')
    addresses = {each.file: each.address for each in guides}

    def link(found):
        target, _, part = found[1].partition("#")
        if not target or "://" in target or target.startswith("/"):
            return found[0]
        address = addresses.get((guide.file.parent / html.unescape(target)).resolve())
        # What is in the repository and not on the site is named without a link.
        return f'<a href="{address}{"#" + part if part else ""}">{found[2]}</a>' if address else found[2]

    body = re.sub(r'<a href="([^"]*)">(.*?)</a>', link, body, flags=re.S)
    contents, search = [], []

    def heading(found):
        level, title = found[1], found[2]
        if level == "1":
            return f"<h1>{title}</h1>"
        name = slug(title)
        if level == "2":
            contents.append(("#" + name, plain(title)))
        return f'<h{level} id="{name}">{title}<a class="anchor" href="#{name}" aria-label="Link to {e(plain(title))}">#</a></h{level}>'

    body = re.sub(r"<h([1-4])>(.*?)</h\1>", heading, body, flags=re.S)
    parts = re.split(r'(?=<h[23] id=")', body)
    search.append(["guide", guide.title, guide.address, guide.about.replace("`", "") + " " + plain(parts[0])[:600]])
    for part in parts[1:]:
        name, title = re.match(r'<h[23] id="([^"]*)">(.*?)<a class="anchor"', part, re.S).groups()
        search.append(["guide", f"{plain(title)} · {guide.title}", f"{guide.address}#{name}", plain(re.sub(r"<h[23].*?</h[23]>", "", part, flags=re.S))[:600]])
    return contents, body, search
