"""The clients of Zarr that people have, against a server: zarr_check.py BINARY PYTHON3 PYTHON2 NODE_FOLDER.

PYTHON3 has zarr-python 3, obstore, xarray and dask, PYTHON2 zarr-python 2 and xarray of that time; NODE_FOLDER has zarrita. All of them read all
dtypes that they have, sharded evenly and unevenly, bit by bit; zarr-python 3 and xarray write; zarrita reads in Node and in a page of another
origin in headless Chromium, where that is installed. The Python of docs/zarr.md runs as it stands there."""
import http.server
import json
import pathlib
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading

import numpy as np

from file_formats import DTYPES, RAW, Meshd, awkward_bytes, mesh_of, ok, spec_of, write_npy
from server import ROOT

BINARY, PYTHON3, PYTHON2, NODE = sys.argv[1:5]
HERE = pathlib.Path(__file__).resolve().parent
# zarrita has no complex numbers, no float16 where the engine has no Float16Array, and reads no arrays without elements.
NOT_IN_ZARRITA = ("complex64", "complex128", "float16")
PAGE = """<!doctype html><script type="importmap">{"imports": %(imports)s}</script><script type="module">
const tell = (told) => fetch("/told", {method: "POST", body: JSON.stringify(told)});
import("/zarrita_reads.js").then(({read}) => read("%(url)s", "all", %(names)s)).then(tell, (error) => tell({error: String(error)}));
</script>"""


class Pages(http.server.SimpleHTTPRequestHandler):
    """The page, zarrita's modules, and where the page tells what it has read."""

    extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, ".js": "text/javascript", ".mjs": "text/javascript"}

    def __init__(self, *arguments):
        super().__init__(*arguments, directory=NODE)

    def do_GET(self):
        own = {"/page": (self.server.page, "text/html"), "/zarrita_reads.js": ((HERE / "zarrita_reads.js").read_text(), "text/javascript")}.get(self.path)
        if own is None:
            return super().do_GET()
        body = own[0].encode()
        self.send_response(200)
        self.send_header("Content-Type", own[1])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.server.told.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def module_map():
    """Where an import of a bare name goes: the entries of package.json for browsers."""
    imports = {}
    for package in pathlib.Path(NODE, "node_modules").rglob("package.json"):
        document = json.loads(package.read_text())
        name = document.get("name")
        if not name or package.parent.name != name.rsplit("/", 1)[-1]:
            continue
        at = "/" + str(package.parent.relative_to(NODE)) + "/"
        exports = document.get("exports", {".": document.get("module") or document.get("main")})
        for key, target in (exports if isinstance(exports, dict) and any(key.startswith(".") for key in exports) else {".": exports}).items():
            while isinstance(target, dict):
                target = target.get("browser") or target.get("import") or target.get("default") or next(iter(target.values()))
            if isinstance(target, str) and "*" not in key:
                imports[name + key[1:]] = at + target.removeprefix("./")
    return imports


def told_by(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def make_all(s):
    """An array of each dtype of Zarr below all/, in a described group; path -> bytes in hex."""
    rng = np.random.default_rng(3)
    mesh = mesh_of(s, ["x", "y"], [[0, 1], [2, 3], [4, 5]])
    out = {}
    shapes = [(7, 5), (6, 4), (), (0, 3), (2, 3, 4)]
    for i, (dtype, npy, _) in enumerate(each for each in DTYPES if each[1]):
        shape = shapes[i % len(shapes)]
        data = awkward_bytes(rng, dtype, shape)
        query = f"?name=all/{dtype}" + (f"&mesh={mesh}&spec={spec_of(rng, shape, ['x', 'y'])}" if i % 3 else "")
        ok(s.ask("POST", "/v1/arrays" + query, write_npy(np.frombuffer(data, npy).reshape(shape)), {"Content-Type": "application/x-npy"}), 201)
        out[dtype] = data.hex()
    ok(s.ask("POST", "/v1/arrays?name=all/half&dtype=bfloat16&shape=2", b"abcd", RAW), 201)
    document = {"zarr_format": 3, "node_type": "array", "shape": [3], "data_type": "float32", "fill_value": 0.0, "attributes": {"units": "K"},
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}}, "chunk_key_encoding": {"name": "default"},
                "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], "dimension_names": ["t"]}
    ok(s.ask("PUT", "/v1/zarr/v3/all/float32/zarr.json", document), 201)
    ok(s.ask("PUT", "/v1/zarr/v3/all/float32/c/0", np.array([1.5, np.nan], "<f4").tobytes(), RAW), 204)
    ok(s.ask("PUT", "/v1/zarr/v3/all/zarr.json", {"zarr_format": 3, "node_type": "group", "attributes": {"title": "all"}}), 204)
    ok(s.ask("POST", "/v1/zarr/v3/all:commit?replace=true"), 201)
    out["float32"] = np.array([1.5, np.nan, 0], "<f4").tobytes().hex()
    return out


def compare(told, expected):
    for way, arrays in told.items():
        missing = [name for name in expected if name not in arrays and "by path" not in way]
        wrong = [name for name, data in arrays.items() if data != expected[name]]
        assert not wrong and not missing, (way, wrong, missing)
        print(f"{way}: {len(arrays)} arrays, bit by bit", flush=True)


def in_chromium(s, pages, names):
    sys.path.insert(0, str(ROOT / "tests/http"))
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if not program:
        print("chromium is not installed: zarrita was not tried in a browser")
        return None
    pages.page = PAGE % {"imports": json.dumps(module_map()), "url": s.url, "names": json.dumps(names)}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = subprocess.Popen([program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                                    f"--user-data-dir={profile}", "--host-resolver-rules=MAP *.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
                                    f"http://named.test:{pages.server_address[1]}/page"], stderr=subprocess.DEVNULL)
        try:
            return pages.told.get(timeout=120)
        finally:
            browser.kill()
            browser.wait()


def test_guide(s):
    """The blocks of docs/zarr.md, with the address of this server."""
    blocks = re.findall(r"^```py\n(.*?)^```", (ROOT / "docs/zarr.md").read_text(), re.M | re.S)
    assert len(blocks) == 2
    ok(s.ask("POST", "/v1/arrays?name=run7/w", write_npy(np.zeros((2, 3))), {"Content-Type": "application/x-npy"}), 201)
    for block in blocks:
        code = "import urllib.request\n" + block.replace("http://127.0.0.1:8080", s.url)
        subprocess.run([PYTHON3, "-W", "ignore", "-c", code], check=True, timeout=120)
    read = ok(s.ask("GET", "/v1/arrays/by-name/run8/t/data"))
    assert np.frombuffer(read).tolist() == [1, 2, 4]
    print("the Python of docs/zarr.md runs", flush=True)


def main():
    pages = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    pages.told = queue.Queue()
    threading.Thread(target=pages.serve_forever, daemon=True).start()
    with Meshd(BINARY, "--devices", "8", "--cors-origin", f"http://named.test:{pages.server_address[1]}") as s:
        expected = make_all(s)
        for python in (PYTHON3, PYTHON2):
            compare(told_by(python, str(HERE / "zarr_reads.py"), s.url, "all"), expected)
        script = pathlib.Path(NODE, "zarrita_reads.js")
        shutil.copy(HERE / "zarrita_reads.js", script)
        names = [name for name, data in expected.items() if name not in NOT_IN_ZARRITA and data]
        known = {name: expected[name] for name in names}
        compare(told_by("node", str(script), s.url, "all", *names), known)
        told = in_chromium(s, pages, names)
        if told is not None:
            assert "error" not in told, told
            compare({f"{way}, in Chromium": arrays for way, arrays in told.items()}, known)
        wrote = told_by(PYTHON3, str(HERE / "zarr_writes.py"), s.url)
        for version in (3, 2):
            ok(s.ask("POST", f"/v1/zarr/v{version}:commit"), 201)
        for path, data in wrote.items():
            got = ok(s.ask("GET", f"/v1/arrays/by-name/{path}/data"))
            assert got.hex() == data, path
        print(f"zarr-python 3 and xarray wrote {len(wrote)} arrays through obstore and fsspec, bit by bit", flush=True)
        test_guide(s)


main()
