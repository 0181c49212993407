"""How curl behaves and what it needs, row by row, with the real curl: curl_test.py BINARY [ROW]. Each row is a habit of people in shells.
MESHD_LONG=1 judges what curl says that requests take, too."""

import json
import os
import pathlib
import re
import statistics
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from server import run_stories

NUMBERS = struct.pack("<24f", *range(24))


class Shell:
    """curl in a folder of its own, with a.npy, a.bin and zeros.bin in it. No line may take longer than LONGEST seconds, as long as a client
    would wait for a missing Content-Length, an idle connection or a slow probe to be given up; where times are judged, none of the trivial routes
    more than LONGEST_TRIVIAL."""

    LONGEST = 4
    LONGEST_TRIVIAL = 0.05

    def __init__(self, server, folder):
        self.url, self.folder = server.url, folder
        head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (8, 3), }"
        head += b" " * (-(len(head) + 11) % 64) + b"\n"
        (folder / "a.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + NUMBERS)
        (folder / "a.bin").write_bytes(NUMBERS)
        (folder / "zeros.bin").write_bytes(bytes(4 << 20))

    def run(self, line, code=0):
        """Output of a shell line; `$URL` is the server."""
        done = subprocess.run(["bash", "-c", "set -o pipefail; " + line], cwd=self.folder, env={**os.environ, "URL": self.url, "HOME": str(self.folder)},
                              capture_output=True, timeout=60)
        assert done.returncode == code, f"{line}: exit {done.returncode}, {done.stdout[:400]!r} {done.stderr[:400]!r}"
        return done.stdout

    def status(self, arguments):
        """(status, seconds) of one request."""
        status, seconds = self.run(f"curl -s -o out -w '%{{http_code}} %{{time_total}}' {arguments}").split()
        assert float(seconds) < self.LONGEST, f"curl {arguments} took {seconds} s"
        return int(status)

    def array(self):
        return self.run("curl -s \"$URL/v1/arrays?name=digits\" -H 'Content-Type: application/x-npy' --data-binary @a.npy | jq -r .id").decode().strip()


def post_without_body(s):
    assert s.status("-X POST $URL/v1/sessions") == 201
    array = s.array()
    assert s.status(f"-X POST $URL/v1/arrays/{array}:delete") == 204
    assert s.status("-X POST $URL/v1/run") in (400, 422)
    assert s.status("-X PUT $URL/v1/info") == 405


def data_binary_without_type(s):
    made = json.loads(s.run("curl -s \"$URL/v1/arrays\" --data-binary @a.npy"))
    assert made["shape"] == [8, 3] and made["dtype"] == "float32"
    made = json.loads(s.run("curl -s \"$URL/v1/arrays?dtype=float32&shape=24\" --data-binary @a.bin"))
    assert made["shape"] == [24]
    # Over 8 KiB, where the library behind the front would stop.
    made = json.loads(s.run("curl -s \"$URL/v1/arrays?dtype=uint8&shape=4194304\" --data-binary @zeros.bin"))
    assert made["bytes"] == 4 << 20
    refused = json.loads(s.run("curl -s \"$URL/v1/arrays\" -H 'Content-Type: image/png' --data-binary @a.bin"))
    assert refused["status"] == 415 and "-H 'Content-Type: application/x-npy'" in refused["detail"]


def large_bodies_expect_100(s):
    trace = s.run("curl -sv \"$URL/v1/arrays?dtype=uint8&shape=4194304\" -H 'Content-Type: application/octet-stream' -H 'Expect: 100-continue' "
                  "--data-binary @zeros.bin 2>&1 >/dev/null").decode()
    assert "100 Continue" in trace and "201 Created" in trace, trace
    # Refused before a byte of the body is asked for.
    for arguments, status in (("$URL/v1/nothing", 404), ("$URL/v1/info", 405), ("$URL/v1/arrays -H 'Authorization: Basic YTpi'", 401),
                              ("$URL/v1/arrays -H 'Content-Type: image/png'", 415),
                              ("'$URL/v1/arrays?dtype=uint8&shape=7' -H 'Content-Type: application/octet-stream'".replace("'$URL", "\"$URL").replace("shape=7'", "shape=7\""), 400)):
        trace = s.run(f"curl -sv {arguments} -H 'Expect: 100-continue' --data-binary @zeros.bin 2>&1 >/dev/null").decode(errors="replace")
        assert "100 Continue" not in trace and f" {status} " in trace, (arguments, trace)


def chunked_uploads(s):
    made = json.loads(s.run("cat zeros.bin | curl -s -X POST -T - \"$URL/v1/arrays?dtype=uint8&shape=4194304\" -H 'Content-Type: application/octet-stream'"))
    assert made["bytes"] == 4 << 20
    made = json.loads(s.run("cat a.npy | curl -s -X POST -T - \"$URL/v1/arrays\" -H 'Content-Type: application/x-npy'"))
    assert made["shape"] == [8, 3]
    refused = json.loads(s.run("{ cat zeros.bin || true; } 2>/dev/null | curl -s -X POST -T - \"$URL/v1/arrays\" -H 'Content-Type: application/octet-stream'"))
    assert refused["status"] == 422 and {"/dtype", "/shape"} == {entry["pointer"] for entry in refused["errors"]}


def compressed(s):
    plain = s.run("curl -s $URL/openapi.json")
    assert s.run("curl -s --compressed $URL/openapi.json") == plain
    head = s.run("curl -s --compressed -D - -o /dev/null $URL/openapi.json").decode()
    assert re.search(r"(?mi)^content-encoding: (gzip|zstd)", head), head
    array = s.run("curl -s \"$URL/v1/arrays?dtype=uint8&shape=4194304\" --data-binary @zeros.bin | jq -r .id").decode().strip()
    size = s.run(f"curl -s --compressed -o back.bin -w '%{{size_download}}' $URL/v1/arrays/{array}/data && cmp back.bin zeros.bin")
    assert int(size) < 50000, size
    assert json.loads(s.run("gzip -c a.npy | curl -s $URL/v1/arrays -H 'Content-Type: application/x-npy' -H 'Content-Encoding: gzip' --data-binary @-"))["shape"] == [8, 3]


def slices_need_no_brackets(s):
    array = s.array()
    got = s.run(f"curl -s \"$URL/v1/arrays/{array}/data?slice=0:8:2,::2\"")
    assert struct.unpack("<8f", got) == tuple(float(row * 3 + column) for row in (0, 2, 4, 6) for column in (0, 2))
    mesh = s.run("curl -s $URL/v1/meshes --json '{\"axis_names\": [\"x\", \"y\"], \"devices\": [[0, 1], [2, 3]]}' | jq -r .id").decode().strip()
    assert json.loads(s.run(f"curl -s \"$URL/v1/arrays?mesh={mesh}&spec=x.y,\" --data-binary @a.npy"))["sharding"]["spec"] == [["x", "y"], []]


def continue_and_ranges(s):
    array = s.array()
    s.run(f"curl -s -o whole.bin $URL/v1/arrays/{array}/data && head -c 40 whole.bin >part.bin && curl -s -C - -o part.bin $URL/v1/arrays/{array}/data && cmp part.bin whole.bin")
    assert s.run(f"curl -s -r 4-11 $URL/v1/arrays/{array}/data") == NUMBERS[4:12]
    assert s.run(f"curl -s -r -8 $URL/v1/arrays/{array}/data") == NUMBERS[-8:]
    assert s.status(f"-r 4-11 $URL/v1/arrays/{array}/data") == 206
    assert s.status(f"-r 96- $URL/v1/arrays/{array}/data") == 416
    assert s.run(f"curl -s -r 0-3,8-11 $URL/v1/arrays/{array}/data") == NUMBERS


def names_for_downloads(s):
    array = s.array()
    assert s.run(f"curl -s -OJ -w '%{{filename_effective}}' \"$URL/v1/arrays/{array}/data?format=npy\"").decode() == f"{array}.npy"
    assert (s.folder / f"{array}.npy").read_bytes().endswith(NUMBERS)
    s.run(f"curl -s -OJ $URL/v1/arrays/{array}/data")
    assert (s.folder / f"{array}.bin").read_bytes() == NUMBERS


def unbuffered_events(s):
    session = s.run("curl -s -X POST $URL/v1/sessions | jq -r .id").decode().strip()
    log = ("func.func @main(%n: tensor<i32>) -> tensor<i32> { stablehlo.custom_call @xla_ffi_python_cpu_callback(%n) "
           "{has_side_effect = true, mhlo.backend_config = {index = 0 : ui64}} : (tensor<i32>) -> () return %n : tensor<i32> }")
    for number in (1, 2):
        s.run(f"curl -sf $URL/v1/sessions/{session}/jobs --json '" + json.dumps({"program": {"text": log}, "arguments": [number]}) + "' >/dev/null")
    # 28: the time was up, as nobody ends the stream.
    events = s.run(f"curl -s -N -m 2 $URL/v1/sessions/{session}/events", code=28).decode()
    assert re.findall(r"(?m)^id: ?(\d+)$", events) == ["1", "2"] and "event: effect" in events, events
    events = s.run(f"curl -s -N -m 2 -H 'Last-Event-ID: 1' $URL/v1/sessions/{session}/events", code=28).decode()
    assert re.findall(r"(?m)^id: ?(\d+)$", events) == ["2"], events
    assert re.findall(r"(?m)^id: ?(\d+)$", s.run(f"curl -s -N -m 2 $URL/v1/sessions/{session}/events?after=1", code=28).decode()) == ["2"]


def failing_in_scripts(s):
    s.run("curl -sf $URL/v1/nothing", code=22)
    body = s.run("curl -s --fail-with-body $URL/v1/nothing", code=22)
    assert json.loads(body)["code"] == "not_found"
    for arguments in ("$URL/v1/nothing", "-X PUT $URL/v1/info", "$URL/v1/run --json '{'", "-H 'Accept: image/png' $URL/v1/arrays/x/data", "-r 99- $URL/v1/arrays/x/data"):
        body = s.run(f"curl -s {arguments}")
        assert json.loads(body)["status"] >= 400 and body.endswith(b"\n"), arguments


def pipes_to_jq(s):
    assert s.run("curl -sS $URL/v1/devices | jq -r '.items | length'").strip() == b"8"
    for target in ("/v1/info", "/v1/devices", "/livez", "/readyz?verbose", "/health", "/metrics", "/openapi.json", "/docs/errors", "/v1/nothing"):
        assert s.run(f"curl -s \"$URL{target}\"").endswith(b"\n"), target
    assert s.run("curl -s $URL/v1/info").count(b"\n") == 1
    assert s.run("curl -s \"$URL/v1/info?pretty\"").count(b"\n") > 5


def json_option(s):
    got = json.loads(s.run("curl -s $URL/v1/run --json '{\"program\": {\"text\": \"func.func @main(%a: tensor<3xf32>) -> tensor<3xf32> { %0 = stablehlo.negate %a : tensor<3xf32> return %0 : tensor<3xf32> }\"}, \"arguments\": [[1, 2, 3]]}'"))
    assert got["results"][0]["data"] == [-1, -2, -3]


def one_connection_for_many(s):
    """Fifty requests on one connection and none waits for the one before to time out."""
    targets = " ".join("-o /dev/null $URL/livez" for _ in range(50))
    times = s.run(f"curl -s -w '%{{num_connects}} %{{time_total}}\\n' {targets}").split()
    assert sum(map(int, times[::2])) == 1 and sum(map(float, times[1::2])) < Shell.LONGEST, times


def trivial_routes_are_quick(s):
    """A hundred calls of each trivial route by one curl on one connection: the median and the 99th percentile (of 100 the one before the last) take
    at most LONGEST_TRIVIAL seconds, by curl's own time_total."""
    calls = 100
    made = json.loads(s.run("curl -s $URL/v1/sessions --json '{}'"))["id"]
    array = s.array()
    for arguments in ("$URL/livez", "$URL/readyz", "$URL/health", "$URL/v1/info", "$URL/v1/devices", "$URL/v1/nothing", f"$URL/v1/arrays/{array}",
                      f"$URL/v1/arrays/{array}/data", f"-I $URL/v1/arrays/{array}/data", f"$URL/v1/sessions/{made}", "-X PUT $URL/v1/info", "-X OPTIONS $URL/v1/arrays"):
        one = arguments.split("$URL")
        line = one[0] + " ".join(f"-o /dev/null $URL{one[1]}" for _ in range(calls))
        shown = s.run(f"curl -s -w '%{{num_connects}} %{{time_total}}\\n' {line}").split()
        times = sorted(map(float, shown[1::2]))
        assert len(times) == calls and sum(map(int, shown[::2])) == 1, (arguments, shown)
        median, p99 = statistics.median(times), times[calls * 99 // 100 - 1]
        print(f"  curl {arguments}: median {median * 1e3:.2f} ms, p99 {p99 * 1e3:.2f} ms")
        assert max(times) < s.LONGEST, (arguments, times[-1])
        assert "MESHD_LONG" not in os.environ or max(median, p99) <= s.LONGEST_TRIVIAL, f"curl {arguments}: median {median} s, p99 {p99} s"


ROWS = [post_without_body, data_binary_without_type, large_bodies_expect_100, chunked_uploads, compressed, slices_need_no_brackets, continue_and_ranges,
        names_for_downloads, unbuffered_events, failing_in_scripts, pipes_to_jq, json_option, one_connection_for_many,
        trivial_routes_are_quick]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="meshd-curl-") as folder:
        sys.exit(run_stories(ROWS, teller=lambda server: Shell(server, pathlib.Path(folder))))
