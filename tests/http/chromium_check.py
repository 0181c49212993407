"""Pages of other sites in a real browser: chromium_check.py BINARY. Needs chromium; everything stays on loopback.

A page of http://evil.test tries, with all that the web gives it, to change and to read a server on 127.0.0.1; the same page at an origin
that the operator named may do both. browsers_test.py sends what browsers should send; this shows that they do."""
import http.server
import json
import pathlib
import queue
import shutil
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from server import Meshd

VALUE = {"dtype": "float32", "shape": [2], "data": [1, 2]}
PAGE = """<!doctype html><title>page</title><iframe name="hidden"></iframe><script>
const url = "%(url)s", array = "%(array)s", session = "%(session)s", told = {};
const json = {"Content-Type": "application/json"};
const tries = {
  plain_post: () => fetch(url + "/v1/sessions", {method: "POST", mode: "no-cors", body: "{}"}).then(r => r.type),
  json_post: () => fetch(url + "/v1/sessions", {method: "POST", headers: json, body: "{}"}).then(async r => r.status + " " + r.headers.get("Location") + " " + (await r.json()).state),
  delete_array: () => fetch(url + "/v1/arrays/" + array, {method: "DELETE"}).then(r => "" + r.status),
  read: () => fetch(url + "/v1/arrays/" + array).then(async r => r.status + " " + r.headers.get("ETag") + " " + (await r.json()).dtype),
  beacon: async () => "" + navigator.sendBeacon(url + "/v1/arrays/" + array + ":delete"),
  form: async () => {
    const form = document.createElement("form");
    Object.assign(form, {method: "post", action: url + "/v1/arrays/" + array + ":delete", target: "hidden"});
    document.body.append(form);
    form.submit();
    return "sent";
  },
  sandbox: () => new Promise(done => {
    const frame = document.createElement("iframe");
    frame.sandbox = "allow-scripts";
    frame.srcdoc = `<script>fetch("${url}/v1/arrays/${array}:delete", {method: "POST", mode: "no-cors"}).finally(() => parent.postMessage("sandboxed", "*"))<\\/script>`;
    addEventListener("message", event => event.data == "sandboxed" && done("sent"));
    document.body.append(frame);
  }),
  image: () => new Promise(done => Object.assign(new Image(), {onload: () => done("loaded"), onerror: () => done("error"), src: url + "/v1/arrays/" + array + "/sharding.svg"})),
  script: () => new Promise(done => document.body.append(Object.assign(document.createElement("script"), {onload: () => done("loaded"), onerror: () => done("error"), src: url + "/v1/arrays"}))),
  events: () => new Promise(done => {
    const source = new EventSource(url + "/v1/sessions/" + session + "/events");
    source.onopen = () => { source.close(); done("open"); };
    source.onerror = () => { source.close(); done("error"); };
  }),
  socket: () => new Promise(done => Object.assign(new WebSocket(url.replace("http", "ws") + "/v1/sessions/" + session + "/events"), {onopen: () => done("open"), onerror: () => done("error")})),
};
(async () => {
  for (const [name, attempt] of Object.entries(tries)) {
    if (%(skip)s.includes(name)) continue;
    try { told[name] = await attempt(); } catch (error) { told[name] = error.name; }
  }
  setTimeout(() => fetch("/told", {method: "POST", body: JSON.stringify(told)}), 500);
})();
</script>"""


class Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = self.server.page.encode() if self.path == "/page" else b""
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.server.told.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


class Chromium:
    """A browser that finds *.test on loopback and nothing else anywhere."""

    def __init__(self, *arguments):
        self.profile = tempfile.mkdtemp(prefix="meshd-chromium-")
        program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-sync",
             "--disable-background-networking", "--disable-component-update", "--disable-default-apps", f"--user-data-dir={self.profile}",
             "--host-resolver-rules=MAP *.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)


def shown(url):
    """The page at `url` after its scripts ran."""
    with Chromium("--dump-dom", "--virtual-time-budget=20000", url) as browser:
        return browser.process.communicate(timeout=120)[0].decode()


def main():
    pages = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    pages.told = queue.Queue()
    threading.Thread(target=pages.serve_forever, daemon=True).start()
    at = pages.server_address[1]
    with Meshd(sys.argv[1], "--cors-origin", f"http://named.test:{at}") as server:
        array = server.ask("POST", "/v1/arrays", VALUE)[2]["id"]
        session = server.ask("POST", "/v1/sessions", {})[2]["id"]

        def tell(name, skip=()):
            pages.page = PAGE % {"url": server.url, "array": array, "session": session, "skip": json.dumps(list(skip))}
            with Chromium(f"http://{name}:{at}/page"):
                return pages.told.get(timeout=120)

        def kept():
            return [each["id"] for kind in ("arrays", "sessions") for each in server.ask("GET", f"/v1/{kind}")[2]["items"]]

        told = tell("evil.test")
        print("another site:", told)
        assert kept() == [array, session], kept()
        assert told == {"plain_post": "opaque", "json_post": "TypeError", "delete_array": "TypeError", "read": "TypeError", "beacon": "true", "form": "sent",
                        "sandbox": "sent", "image": "error", "script": "error", "events": "error", "socket": "error"}, told
        # The same from another port of the same address, which browsers call the same site.
        told = tell("127.0.0.1")
        print("another port:", told)
        assert kept() == [array, session] and told["read"] == told["delete_array"] == told["json_post"] == "TypeError", (told, kept())

        told = tell("named.test", skip=("form", "sandbox", "delete_array", "beacon", "plain_post"))
        print("named origin:", told)
        assert told["read"].startswith("200 \"") and told["read"].endswith(" float32"), told
        assert told["json_post"].startswith("201 /v1/sessions/ses_") and told["events"] == "open", told
        assert tell("named.test", skip=("form", "sandbox", "beacon", "plain_post", "json_post"))["delete_array"] == "204"

        # A name that was made to resolve to the server; and the server's own page, which reads the contract.
        assert "host_not_allowed" in shown(f"http://rebound.test:{server.port}/v1/arrays")
        own = shown(server.url + "/docs")
        assert "createArray" in own or "/v1/arrays" in own, own[:2000]
    print("chromium_check: all as it should be")


main()
