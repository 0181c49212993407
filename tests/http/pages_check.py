"""The documentation pages in a real browser, as people use them: pages_check.py BINARY AXE_JS [STORY...]. Needs chromium and Playwright
(check_pages.sh installs it); everything stays on loopback. Each function is a story; every page must keep the content security policy and
leave no error in the console."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import traceback

from playwright.sync_api import expect, sync_playwright

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from server import ROOT, Meshd

GUIDES = [re.sub(r".*/python/README$", "python", name) for name in re.findall(r"^- \[.+?\]\((\S+?)\.md\): ", (ROOT / "docs/README.md").read_text(), re.M)]
VIEWS = ["", "devices", "me", "arrays", "meshes", "programs", "run", "sessions", "jobs"]
PAGES = ["/", "/docs", *("/console#" + view for view in VIEWS), "/docs/ops", "/docs/errors", *(f"/docs/guides/{name}" for name in GUIDES)]
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


class Browser:
    def __init__(self, playwright, url, axe):
        program = shutil.which("chromium") or shutil.which("google-chrome")
        self.chromium = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        self.url, self.axe = url, axe

    @contextlib.contextmanager
    def page(self, path="/", viewport=DESKTOP, scheme="light", allowed=(), **options):
        """A page whose console must stay free of errors but for those that have one of the words of `allowed`."""
        context = self.chromium.new_context(viewport=viewport, color_scheme=scheme, **options)
        said = []
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append("a dialog: " + dialog.message))
        page.goto(self.url + path)
        yield page
        said = [text for text in said if not any(word in text for word in allowed)]
        assert not said, (path, said)
        context.close()


def every_page_is_readable(b):
    """Contrast, names and roles (axe: WCAG 2.2 A and AA), no sideways scrolling; on a desktop and a phone, light and dark."""
    axe = pathlib.Path(b.axe).read_text()
    for path in PAGES:
        for viewport in (DESKTOP, PHONE):
            for scheme in ("light", "dark"):
                with b.page(path, viewport, scheme):
                    pass
                with b.page(path, viewport, scheme, bypass_csp=True) as page:
                    page.evaluate(axe)
                    # The tests of one page of thousands of nodes; colour contrast is among them.
                    found = page.evaluate("async () => (await axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']})).violations")
                    shown = [(rule["id"], rule["help"], [node["html"][:160] for node in rule["nodes"][:3]]) for rule in found]
                    assert not shown, (path, viewport, scheme, shown)
                    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (path, viewport, "scrolls sideways")


def links_lead_somewhere(b):
    """Every link of a page to this server is answered, and names an element where it has a fragment."""
    ids, asked = {}, {}
    with b.page() as page:
        def ids_of(path):
            if path not in ids:
                answer = page.request.get(b.url + path, headers={"Accept": "text/html,*/*;q=0.5"})
                assert answer.ok, (path, answer.status)
                text = answer.text()
                ids[path] = set(re.findall(r'\bid="([^"]+)"', text))
                asked[path] = re.findall(r'href="([^"]*)"', text) if "<html" in text else []
            return ids[path]
        for path in PAGES:
            path = path.partition("#")[0]
            ids_of(path)
            for href in list(asked[path]):
                target, _, part = href.partition("#")
                if "://" in target or path == "/console" and part in VIEWS:
                    continue
                assert not part or part in ids_of(target or path), (path, href)
                ids_of(target or path)


def keyboard_alone(b):
    """Tab finds the skip link first and every control with an outline; / opens the search, Escape closes it."""
    with b.page("/docs/guides/from-curl") as page:
        page.keyboard.press("Tab")
        expect(page.locator(".skip")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("#main")).to_be_focused()
        page.keyboard.press("Tab")
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        page.keyboard.press("/")
        expect(page.locator("#search-words")).to_be_focused()
        page.keyboard.press("Escape")
        expect(page.locator("#search")).not_to_be_visible()


def search(b):
    """Finds guides, operations, ops and errors, best first; once it has its index, without the server."""
    with b.page(allowed=("ERR_INTERNET_DISCONNECTED",)) as page:
        page.keyboard.press("Control+k")
        for words, title, address in (("invalid_spec", "invalid_spec", "/docs/errors#invalid_spec"), ("dot_general", "stablehlo.dot_general", "/docs/ops#stablehlo.dot_general"),
                                      ("reshard", "POST /v1/arrays/{id}:reshard", "/docs#op-reshardArray"), ("uneven dimensions", "Uneven dimensions · Spec syntax", "/docs/guides/spec-syntax#uneven-dimensions")):
            page.fill("#search-words", words)
            first = page.locator("#search-results li").first
            expect(first.locator("strong")).to_have_text(title)
            assert first.locator("a").get_attribute("href") == address
        page.fill("#search-words", "zzzz")
        expect(page.locator("#search-status")).to_have_text("Nothing has these words.")
        page.context.set_offline(True)
        page.fill("#search-words", "donated")
        expect(page.locator("#search-results li").first).to_be_visible()
        page.context.set_offline(False)
        page.fill("#search-words", "array_donated")
        page.keyboard.press("Enter")
        page.wait_for_url("**/docs/errors#array_donated")
        expect(page.locator("#array_donated h3")).to_be_in_viewport()


def theme(b):
    """Follows the system until one chooses; the choice stays."""
    background = "getComputedStyle(document.body).backgroundColor"
    with b.page(scheme="dark") as page:
        dark = page.evaluate(background)
        page.click("#theme")
        light = page.evaluate(background)
        assert dark != light
        page.reload()
        assert page.evaluate(background) == light
        page.click("#theme")
        page.click("#theme")
        assert page.evaluate(background) == dark and page.get_attribute("html", "data-theme") is None


def contents_fold_on_a_phone(b):
    with b.page("/docs", PHONE) as page:
        expect(page.locator("#contents")).not_to_be_visible()
        page.click("#contents-toggle")
        expect(page.locator("#contents")).to_be_visible()
        page.click("#contents a[href='#op-listSessions']")
        expect(page.locator("#contents")).not_to_be_visible()
        expect(page.locator("#op-listSessions h3")).to_be_in_viewport()
        page.click("#contents-toggle")
        page.locator("#contents a").first.focus()
        page.keyboard.press("Escape")
        expect(page.locator("#contents-toggle")).to_be_focused()


def open_try(page, name):
    entry = page.locator(f"#op-{name}")
    entry.get_by_role("button", name="Try it").click()
    return entry


def try_operations(b):
    """A mesh is made, edited and read; the reference fills in the id that was made. A mistake is shown with its code."""
    with b.page("/docs", allowed=("422 (Unprocessable",)) as page:
        entry = open_try(page, "createMesh")
        entry.get_by_label("Body", exact=True).fill('{"axis_names": ["x", "y"], "devices": [[0, 1], [2, 3]]}')
        entry.get_by_role("button", name="Send").click()
        expect(entry.locator(".status")).to_contain_text(re.compile(r"^20[01] "))
        made = re.search(r'"id": "(mesh_\w+)"', entry.locator(".answer").inner_text())[1]
        read = open_try(page, "getMesh")
        assert made in read.get_by_label("GET path and query").input_value()
        read.get_by_role("button", name="Send").click()
        expect(read.locator(".status")).to_contain_text("200")
        expect(read.locator(".answer")).to_contain_text('"axes"')
        entry.get_by_label("Body", exact=True).fill('{"axis_names": ["x"], "devices": [99]}')
        entry.get_by_role("button", name="Send").click()
        expect(entry.locator(".status")).to_contain_text("422")
        expect(entry.get_by_role("link", name="What invalid_mesh means")).to_have_attribute("href", "/docs/errors#invalid_mesh")
        # Requests go to this server alone.
        read.get_by_label("GET path and query").fill("http://example.org/v1/meshes")
        read.get_by_role("button", name="Send").click()
        expect(read.get_by_role("alert")).to_contain_text("this server alone")


def answers_are_text(b):
    """Markup in an answer is shown, not run."""
    evil = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    with b.page("/docs", allowed=("422 (Unprocessable",)) as page:
        entry = open_try(page, "createSession")
        entry.get_by_label("Body", exact=True).fill('{"' + evil + '": 1}')
        entry.get_by_role("button", name="Send").click()
        expect(entry.locator(".answer")).to_contain_text("<img src=x onerror=alert(1)><script>alert(2)<")
        assert entry.locator(".output img, .output script").count() == 0


def try_a_guide(b):
    """The story of the terminal, run in the page from its first block to its last, with the variables of those before."""
    with b.page("/docs/guides/from-curl", allowed=("422 (Unprocessable", "404 (Not Found")) as page:
        blocks = page.locator(".block:has(pre[data-shell])")
        ran = 0
        for n in range(blocks.count()):
            block = blocks.nth(n)
            button = block.get_by_role("button", name="Try it")
            if not button.count():
                continue  # needs files, or programs beside curl and jq
            button.click()
            block.get_by_role("button", name="Run").click()
            expect(block.get_by_role("button", name="Run")).to_be_visible(timeout=15000)
            assert block.get_by_role("alert").count() == 0, block.inner_text()
            expected_bad = "tahn" in block.inner_text() or "DELETE" in block.inner_text()
            assert expected_bad or block.locator(".status.bad").count() == 0, block.inner_text()
            ran += 1
        assert ran >= 9, ran
        picture = page.locator(".answer-picture")
        expect(picture).to_have_count(1)
        assert picture.evaluate("async image => { await image.decode(); return image.naturalWidth; }") > 500


def try_errors(b):
    """Examples of errors that one request makes have the code that they are for."""
    with b.page("/docs/errors", allowed=("(", "Failed to load")) as page:
        for code in ("malformed_json", "not_found", "invalid_mesh", "invalid_spec", "invalid_request", "program_syntax", "mesh_immutable", "deleted_or_donated"):
            entry = page.locator(f"section#{code}")
            entry.get_by_role("button", name="Try it").click()
            entry.get_by_role("button", name="Run").click()
            expect(entry.locator(".answer").last).to_contain_text(f'"code": "{code}"', timeout=15000)


def examples_of_ops(b):
    with b.page("/docs/ops#stablehlo.dot_general") as page:
        entry = page.locator("[id='stablehlo.dot_general']")
        expect(entry).to_be_in_viewport()
        entry.get_by_role("button", name="Try it").click()
        entry.get_by_role("button", name="Send").click()
        expect(entry.locator(".status")).to_contain_text(re.compile("20[01]"))


def made(b, method, path, body=None, expected=(200, 201, 202)):
    """The document of a request of the test's own."""
    with b.page("/docs") as page:
        answer = page.request.fetch(b.url + path, method=method, headers={"Content-Type": "application/json"} if body else {}, data=json.dumps(body) if body else None)
        assert answer.status in expected, answer.text()
        return answer.json()


def console_shows_an_array(b):
    """From the list to the picture of its shards, its values, its statistics; it is deleted on the second click."""
    mesh = made(b, "POST", "/v1/meshes", {"axis_names": ["x"], "devices": [0, 1, 2, 3]})["id"]
    made(b, "POST", f"/v1/arrays?mesh={mesh}&spec=x,&name=console/w", {"dtype": "float32", "shape": [7, 2], "data": [[2 * i, 2 * i + 1] for i in range(7)]})
    with b.page("/console") as page:
        page.get_by_role("link", name="Arrays").click()
        page.get_by_label("Names that begin with").fill("console/")
        expect(page.locator("tbody tr")).to_have_count(1)
        page.get_by_role("link", name="console/w").click()
        expect(page.locator("#console-title")).to_have_text("Array")
        expect(page.locator("#console-title")).to_be_focused()
        picture = page.locator("img.answer-picture")
        assert picture.evaluate("async image => { await image.decode(); return image.naturalWidth; }") > 100
        expect(page.locator(".grid-of-values td")).to_have_count(14)
        expect(page.locator("dl.facts").last).to_contain_text("6.5", timeout=15000)  # the mean
        expect(page.get_by_role("img", name=re.compile("Histogram of all values"))).to_be_visible()
        page.get_by_role("button", name="Delete this array").click()
        page.get_by_role("button", name="Delete it: sure?").click()
        page.wait_for_url("**/console#arrays")


def console_runs_a_program(b):
    """The example runs by the keyboard; a profile; a mistake has its caret; the plan is explained; it is stored and found again."""
    with b.page("/console#run", allowed=("422 (Unprocessable",)) as page:
        page.get_by_label("with a profile").check()
        page.get_by_label("Program", exact=True).press("Control+Enter")
        expect(page.locator(".output")).to_contain_text("Result 0: float32[2]", timeout=15000)
        expect(page.locator(".output")).to_contain_text("mean {}")
        expect(page.get_by_role("link", name="Save the trace for Perfetto")).to_be_visible()
        page.get_by_label("Program", exact=True).fill("def f(x, w):\n    return jnp.tahn(x @ w)")
        page.get_by_role("button", name="Run").click()
        expect(page.get_by_role("alert")).to_contain_text("did you mean")
        expect(page.get_by_role("alert")).to_contain_text("return jnp.tahn(x @ w)")  # with a caret below
        expect(page.get_by_role("alert").get_by_role("link")).to_have_attribute("href", re.compile("/docs/errors#"))
        page.get_by_label("Language").select_option("stablehlo")
        page.get_by_label("Program", exact=True).fill("func.func @main(%a: tensor<8x4xf32>, %b: tensor<4x4xf32>) -> tensor<8x4xf32> {\n"
            "  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>\n  return %0 : tensor<8x4xf32>\n}")
        page.get_by_text("Mesh and shardings").click()
        page.get_by_label("Mesh", exact=True).fill('{"axes": [{"name": "x", "size": 4}]}')
        page.get_by_label("Shardings of the arguments").fill('[{"spec": [[], ["x"]]}, null]')
        page.get_by_role("button", name="Explain").click()
        lines = page.get_by_role("region", name="The program, line by line")
        expect(lines).to_contain_text("all_reduce", timeout=15000)
        assert page.locator("img.answer-picture").evaluate("async image => { await image.decode(); return image.naturalWidth; }") > 300
        page.get_by_role("button", name="Store it").click()
        expect(page.locator("#console-title")).to_have_text("Program")
        expect(page.locator("pre").first).to_contain_text("dot_general")


def console_follows_a_session(b):
    """The log grows while a job writes it; another job is cancelled from its page."""
    session = made(b, "POST", "/v1/sessions", {"effects": "streaming"})["id"]
    spin = {"program": {"format": "numpy", "text": "def f(x):\n  for i in range(100000000):\n    x = jnp.cos(x)\n  return x"}, "arguments": [1.0]}
    log = {"program": {"format": "numpy", "text": 'def f(x):\n  for i in range(3):\n    log("turn {}", i)\n  return x'}, "arguments": [1.0]}
    with b.page("/console#session/" + session) as page:
        expect(page.locator(".log li")).to_have_count(0)
        made(b, "POST", f"/v1/sessions/{session}/jobs", log)
        expect(page.locator(".log li")).to_have_count(3, timeout=15000)
        expect(page.locator(".log li").last).to_contain_text("turn {}")
        job = page.request.post(b.url + f"/v1/sessions/{session}/jobs", headers={"Prefer": "respond-async", "Content-Type": "application/json"}, data=json.dumps(spin)).json()["id"]
        page.goto(b.url + "/console#job/" + job)
        page.reload()
        page.get_by_role("button", name="Cancel it").click()
        expect(page.locator(".badge")).to_have_text("cancelled", timeout=15000)


def console_shows_the_server(b):
    """State, memory and quotas, and the charts of the last hour once there are two samples."""
    with b.page("/console") as page:
        expect(page.locator("dl.facts").first).to_contain_text("8 on ")
        page.get_by_role("link", name="Devices and memory").click()
        expect(page.locator(".meter").first).to_be_visible()
        expect(page.get_by_role("region", name="Devices").locator("tbody tr")).to_have_count(8)
        page.get_by_role("link", name="Principal and quotas").click()
        expect(page.locator("#view")).to_contain_text("anonymous")
        page.get_by_role("link", name="Overview").click()
        expect(page.get_by_role("img", name=re.compile("^Requests and finished jobs a second"))).to_be_visible(timeout=30000)


def without_scripts(b):
    """Everything can be read; what needs scripts is not shown."""
    with b.page("/docs", PHONE, java_script_enabled=False) as page:
        expect(page.locator("#op-createMesh h3")).to_be_visible()
        expect(page.locator("#contents")).to_be_visible()
        expect(page.locator("#search-open")).not_to_be_visible()


def with_tokens(playwright, binary, axe):
    """The field for a token comes when the server asks for one, and only then."""
    with tempfile.TemporaryDirectory() as folder:
        tokens = pathlib.Path(folder, "tokens")
        tokens.write_text("ann secret-of-ann\n")
        tokens.chmod(0o600)
        with Meshd(binary, "--devices", "8", "--tokens", str(tokens)) as server:
            b = Browser(playwright, server.url, axe)
            with b.page("/console#arrays", allowed=("401 (Unauthorized",)) as page:
                expect(page.locator("#token-field")).to_be_visible()
                page.fill("#token", "secret-of-ann")
                page.keyboard.press("Tab")
                expect(page.locator("#view")).to_contain_text("There are no such arrays.")
            with b.page("/docs", allowed=("401 (Unauthorized",)) as page:
                expect(page.locator("#token-field")).not_to_be_visible()
                entry = open_try(page, "getMe")
                expect(page.locator("#token-field")).to_be_visible()
                entry.get_by_role("button", name="Send").click()
                expect(entry.locator(".status")).to_contain_text("401")
                page.fill("#token", "secret-of-ann")
                entry.get_by_role("button", name="Send").click()
                expect(entry.locator(".status")).to_contain_text("200")
                expect(entry.locator(".answer")).to_contain_text('"ann"')
    print("with_tokens: as it should be")


STORIES = [every_page_is_readable, links_lead_somewhere, keyboard_alone, search, theme, contents_fold_on_a_phone, try_operations, answers_are_text,
           try_a_guide, try_errors, examples_of_ops, console_shows_an_array, console_runs_a_program, console_follows_a_session, console_shows_the_server,
           without_scripts]


def main():
    binary, axe, wanted = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3:]
    failed = 0
    with sync_playwright() as playwright:
        with Meshd(binary, "--devices", "8") as server:
            b = Browser(playwright, server.url, axe)
            for story in STORIES:
                if wanted and story.__name__ not in wanted:
                    continue
                try:
                    story(b)
                    print(f"{story.__name__}: as it should be", flush=True)
                except Exception:
                    failed += 1
                    print(f"FAILED {story.__name__}", flush=True)
                    traceback.print_exc(file=sys.stdout)
        if not wanted or "with_tokens" in wanted:
            with_tokens(playwright, binary, axe)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
