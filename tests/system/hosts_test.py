#!/usr/bin/env python3
"""One mesh over two ranks of a real MPI, on this machine: hosts_test.py BINARY. The same requests go to one process and to
`mpirun -n 2 meshd serve`; answers are the same to the byte but for times. Where MPI is not installed, or meshd was built without, it
says so and ends with 77, which CTest counts as skipped."""
import base64
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from server import LOG, Meshd, logging, ok, until  # noqa: E402

RUN = pathlib.Path(__file__).resolve().parents[1] / "conformance" / "run.py"
# Unbound, so that ranks share the cores.
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
          "--mca", "btl", "self,vader", "-n"]
MESH = {"axis_names": ["x", "y"], "devices": [[0, 1], [2, 3], [4, 5], [6, 7]]}

LAYER = """func.func @main(%a: tensor<8x6xf32>, %w: tensor<6x4xf32>) -> (tensor<8x4xf32>, tensor<f32>) {
  %0 = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
  %1 = stablehlo.tanh %0 : tensor<8x4xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %2 = stablehlo.reduce(%1 init: %z) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
  return %1, %2 : tensor<8x4xf32>, tensor<f32>
}"""

# Each device's loop runs as often as its number and one; every turn logs.
DIVERGING = """sdy.mesh @mesh = <["x"=8]>
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<1xf32>) {
    %p = stablehlo.partition_id : tensor<ui32>
    %n = stablehlo.convert %p : (tensor<ui32>) -> tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %m = stablehlo.add %n, %one : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %w:2 = stablehlo.while(%i = %z, %v = %b) : tensor<i32>, tensor<1xf32>
    cond {
      %t = stablehlo.compare LT, %i, %m, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %t : tensor<i1>
    } do {
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.custom_call @xla_ffi_python_cpu_callback(%v) {has_side_effect = true, mhlo.backend_config = {index = 0 : ui64}} : (tensor<1xf32>) -> ()
      %u = stablehlo.add %v, %v : tensor<1xf32>
      stablehlo.return %j, %u : tensor<i32>, tensor<1xf32>
    }
    sdy.return %w#1 : tensor<1xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}"""

# Counts to %n on all devices of the mesh, which meet in every turn: it takes as long as a test wants.
MEETING = """sdy.mesh @mesh = <["x"=8]>
func.func @main(%a: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %n: tensor<i32>) -> tensor<f32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0:2 = stablehlo.while(%i = %c, %s = %z) : tensor<i32>, tensor<f32> cond {
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %b = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %d = stablehlo.cosine %b : tensor<64xf32>
    %e = stablehlo.multiply %a, %d : tensor<64xf32>
    %r = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [0] : (tensor<64xf32>, tensor<f32>) -> tensor<f32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %r : tensor<i32>, tensor<f32>
  }
  return %0#1 : tensor<f32>
}"""


def floats(shape, count):
    values = [((i * 37) % 101) / 17 - 2.5 for i in range(count)]
    return {"dtype": "float32", "shape": shape, "base64": base64.b64encode(struct.pack(f"<{count}f", *values)).decode()}


def alike(servers, body, path="/v1/run", headers=None):
    """What both answer, which is the same but for what a clock or an id says."""
    shown = []
    for server in servers:
        answer = ok(server.ask("POST", path, body, headers))
        shown.append({key: answer.get(key) for key in ("results", "effects")})
    assert shown[0] == shown[1], f"one process: {shown[0]}\ntwo ranks: {shown[1]}"
    return shown[1]


def programs_have_the_same_bits(servers):
    for specs in ([["x"], []], [[], ["y"]]), ([["x", "y"], []], [[], []]), ([[], ["y"]], [["y"], ["x"]]):
        alike(servers, {"program": {"text": LAYER}, "arguments": [floats([8, 6], 48), floats([6, 4], 24)], "mesh": MESH,
                        "in_shardings": [{"spec": spec} for spec in specs]})


def the_first_nan_of_a_chain_is_named(servers):
    """Of a run whose ops are not fused, on all ranks; the next run of the program is fused again."""
    for at, device in ((7, 7), (1, 1)):
        x = [1.0] * 8
        x[at] = -1.0
        body = {"program": {"format": "numpy", "text": "def f(x):\n  a = x * 2\n  b = jnp.log(a)\n  return b + 1"}, "arguments": [x],
                "mesh": MESH, "in_shardings": [{"spec": [["x", "y"]]}], "profile": True}
        for server in servers:
            found = ok(server.ask("POST", "/v1/run", {**body, "debug_nans": True}))["first_nonfinite"]
            assert found == {"value": "nan", "op": "stablehlo.log", "line": 3, "device": device}, found
            steps = [step["op"] for step in ok(server.ask("POST", "/v1/run", body))["profile"]["steps"]]
            assert steps == ["fused multiply .. add (3 ops)"], steps


def effects_are_in_the_same_order(servers):
    shown = alike(servers, {"program": {"text": DIVERGING}, "arguments": [[1, 2, 3, 4, 5, 6, 7, 8]],
                            "callbacks": {"0": {"effect": "log", "name": "v"}}})
    assert len(shown["effects"]) == 36, len(shown["effects"])


def logging_on_all(number):
    """A job that logs its number, on a mesh of all devices."""
    return {**logging(number), "mesh": MESH}


def jobs_of_a_session_log_in_its_order(servers):
    lists = []
    for server in servers:
        session = ok(server.ask("POST", "/v1/sessions", {}), 201)["id"]
        ids = [ok(server.ask("POST", f"/v1/sessions/{session}/jobs", logging_on_all(n), {"Prefer": "respond-async"}), 202)["id"] for n in range(6)]
        for job in ids:
            until(lambda: ok(server.ask("GET", f"/v1/jobs/{job}"))["state"] == "done", "the job is done")
        lists.append([item["values"] for item in ok(server.ask("GET", f"/v1/sessions/{session}/effects"))["items"]])
    assert lists[0] == lists[1] and len(lists[0]) == 6, lists


# Whole shards that devices need of others: of a manual computation that calls what differs replicated, on a mesh that lists devices in
# another order, on devices outside of a mesh.
READ_ELSEWHERE = ['''sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x6xf32>) -> (tensor<2x6xf32>, tensor<2x6xf32>) {
  %0:2 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{}, {"y"}]>, <@mesh, [{}, {}]>] manual_axes={"x", "y"} (%b: tensor<2x3xf32>) {
    %1 = stablehlo.add %b, %b : tensor<2x3xf32>
    %2 = stablehlo.concatenate %1, %b, dim = 1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
    sdy.return %1, %2 : tensor<2x3xf32>, tensor<2x6xf32>
  } : (tensor<8x6xf32>) -> (tensor<2x6xf32>, tensor<2x6xf32>)
  return %0#0, %0#1 : tensor<2x6xf32>, tensor<2x6xf32>
}''', '''sdy.mesh @near = <["x"=8]>
sdy.mesh @far = <["x"=8], device_ids=[7, 5, 6, 4, 0, 1, 3, 2]>
func.func @main(%a: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@near, [{"x"}, {}]>})
    -> (tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@far, [{"x"}, {}]>}, tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@near, [{"x"}, {}]>}) {
  %0 = stablehlo.add %a, %a : tensor<8x6xf32>
  return %0, %0 : tensor<8x6xf32>, tensor<8x6xf32>
}''', '''sdy.mesh @few = <["x"=2], device_ids=[2, 3]>
sdy.mesh @all = <["x"=8]>
func.func @main(%a: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@few, [{}, {}]>}) -> (tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@all, [{}, {}]>}) {
  %0 = stablehlo.add %a, %a : tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}''']

# The sum of eight rows of 2 MiB: each rank makes a part of it.
LARGE_SUM = '''func.func @main(%n: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %i = stablehlo.iota dim = 1 : tensor<8x524288xf32>
  %b = stablehlo.broadcast_in_dim %n, dims = [] : (tensor<f32>) -> tensor<8x524288xf32>
  %m = stablehlo.multiply %i, %b : tensor<8x524288xf32>
  %r = stablehlo.iota dim = 0 : tensor<8x524288xf32>
  %p = stablehlo.add %m, %r {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<8x524288xf32>
  %s = stablehlo.sine %p : tensor<8x524288xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%s init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8x524288xf32>, tensor<f32>) -> tensor<524288xf32>
  %1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<524288xf32>, tensor<f32>) -> tensor<f32>
  %2 = stablehlo.reduce(%0 init: %z) applies stablehlo.maximum across dimensions = [0] : (tensor<524288xf32>, tensor<f32>) -> tensor<f32>
  return %1, %2 : tensor<f32>, tensor<f32>
}'''


def shards_of_other_ranks_are_read(servers):
    for text in READ_ELSEWHERE:
        alike(servers, {"program": {"text": text}, "arguments": [floats([8, 6], 48)]})


def large_sums_have_the_same_bits(servers):
    for number in range(3):
        alike(servers, {"program": {"text": 'sdy.mesh @mesh = <["x"=8]>\n' + LARGE_SUM}, "arguments": [0.1 + number / 7]})


def bytes_between_processes_are_told(servers):
    body = {"mesh": MESH, "in_shardings": [{"spec": [["x", "y"]]}, {"spec": []}]}
    told = []
    for server in servers:
        program = ok(server.ask("POST", "/v1/programs", LAYER, {"Content-Type": "text/plain"}), 201)["id"]
        told.append(ok(server.ask("POST", f"/v1/programs/{program}:explain", body, {"Accept": "application/json"})))
    one, two = told
    assert "between_processes" not in one and not any("bytes_between_processes" in step for step in one["steps"]), one
    # The second argument, and half of the first one; half of the first result. The sum is of one number from each device.
    assert two["between_processes"] == {"steps": 2 * 4 * 4, "arguments": 6 * 4 * 4 + 4 * 6 * 4, "results": 4 * 4 * 4}, two["between_processes"]
    assert sum(step["bytes_between_processes"] for step in two["steps"]) == 2 * 4 * 4, two["steps"]
    moves = [move for kind in ("collectives", "neighbours", "unruled", "written") for move in two["functions"][0][kind]]
    assert sum(move["bytes_between_processes"] for move in moves) == 2 * 4 * 4, moves
    run = {"program": {"text": LAYER}, "arguments": [floats([8, 6], 48), floats([6, 4], 24)], "profile": True, **body}
    steps = ok(servers[1].ask("POST", "/v1/run", run))["profile"]["steps"]
    assert sum(step["bytes_between_processes"] for step in steps) == 2 * 4 * 4, steps


# 8 MiB in and out.
LARGE = """func.func @main(%a: tensor<1024x2048xf32>, %s: tensor<f32>) -> tensor<1024x2048xf32> {
  %b = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<1024x2048xf32>
  %0 = stablehlo.multiply %a, %b : tensor<1024x2048xf32>
  %1 = stablehlo.sine %0 : tensor<1024x2048xf32>
  return %1 : tensor<1024x2048xf32>
}"""
LARGE_BYTES = 1024 * 2048 * 4


def large_run(server, array, factor, **more):
    body = {"program": {"text": LARGE}, "arguments": [{"array": array}, factor], "mesh": MESH, "profile": True,
            "in_shardings": [{"spec": ["x", "y"]}, {"spec": []}], "results": {"encoding": "array"}, **more}
    answer = ok(server.ask("POST", "/v1/run", body))
    return answer["results"][0].get("array"), answer["profile"].get("between_processes")


def mesh_id(server, mesh):
    status, _, document = server.ask("POST", "/v1/meshes", mesh)
    assert status in (200, 201), document
    return document["id"]


def large_array(server):
    mesh = mesh_id(server, MESH)
    data = struct.pack("<2048f", *(i / 7 for i in range(2048))) * 1024
    return ok(server.ask("POST", f"/v1/arrays?dtype=float32&shape=1024,2048&mesh={mesh}&spec=x,y", data, {"Content-Type": "application/octet-stream"}), 201)["id"]


def data_of(server, array, query=""):
    return ok(server.ask("GET", f"/v1/arrays/{array}/data{query}"))


def arrays_stay_with_the_rank_that_has_them(servers):
    found = []
    for server in servers:
        chain, sent = [large_array(server)], []
        for turn in range(3):
            array, bytes_sent = large_run(server, chain[-1], 1.5 + turn)
            chain.append(array)
            sent.append(bytes_sent)
        again, bytes_again = large_run(server, chain[0], 1.5)
        # Read as a whole, a slice, one shard of rank 1, in another layout; compared; updated; given away; deleted.
        reads = [data_of(server, array) for array in chain[1:]] + [data_of(server, again)]
        reads.append(data_of(server, chain[2], "?slice=500:600,1000:1100"))
        reads.append(ok(server.ask("GET", f"/v1/arrays/{chain[2]}/shards/7")))
        mesh = mesh_id(server, {"axis_names": ["z"], "devices": [6, 1, 4]})
        moved = ok(server.ask("POST", f"/v1/arrays/{chain[2]}:reshard", {"mesh": mesh, "spec": [None, "z"]}), 201)["id"]
        reads.append(data_of(server, moved))
        assert ok(server.ask("POST", f"/v1/arrays/{chain[1]}:compare", {"array": again, "mode": "bits"}))["equal"] is True
        ok(server.ask("PUT", f"/v1/arrays/{chain[3]}/data?slice=1000:1010,2040:2048", struct.pack("<80f", *range(80)), {"Content-Type": "application/octet-stream"}))
        changed, bytes_changed = large_run(server, chain[3], 0.5)
        reads += [data_of(server, chain[3]), data_of(server, changed)]
        given, bytes_given = large_run(server, changed, 2.5, donate=[0])
        reads.append(data_of(server, given))
        assert ok(server.ask("GET", f"/v1/arrays/{changed}"))["state"] == "donated"
        updates = [large_run(server, chain[2], factor, update=[{"argument": 0, "result": 0}], results={"encoding": "none"})[1] for factor in (0.5, 3.5)]
        assert ok(server.ask("GET", f"/v1/arrays/{chain[2]}"))["version"] == 3
        reads.append(data_of(server, chain[2]))
        found.append(reads)
        for array in (moved, chain[1]):
            ok(server.ask("DELETE", f"/v1/arrays/{array}"), 204)
    assert found[0] == found[1], "what two ranks answer is not what one process does"
    assert sent[0]["arguments"] == LARGE_BYTES // 2 + 4 and bytes_again["arguments"] == 4, (sent, bytes_again)
    assert [each["arguments"] for each in sent[1:]] == [4, 4], f"results are where the next run needs them: {sent}"
    assert all(each["results"] == 0 for each in [*sent, bytes_again]), "results stay on their ranks"
    assert bytes_changed["arguments"] == LARGE_BYTES // 8 + 4, f"the shard that the update wrote: {bytes_changed}"
    assert bytes_given["arguments"] == 4, bytes_given
    assert all(each["arguments"] == 4 and each["results"] == 0 for each in updates), f"new versions stay, too: {updates}"
    metrics = servers[1].ask("GET", "/metrics")[2].decode()
    kept = next(float(line.split()[-1]) for line in metrics.splitlines() if line.startswith('meshd_rank_array_bytes{rank="1"}'))
    assert kept >= LARGE_BYTES // 2, kept


def devices_name_their_process(servers):
    items = ok(servers[1].ask("GET", "/v1/devices"))["items"]
    assert [device["process_index"] for device in items] == [0, 0, 0, 0, 1, 1, 1, 1], items


def cancelled_job_frees_the_devices_of_all_ranks(servers):
    server = servers[1]
    body = {"program": {"text": MEETING}, "arguments": [[0.5] * 64, 2_000_000_000]}
    job = ok(server.ask("POST", "/v1/run", body, {"Prefer": "respond-async"}), 202)["id"]
    until(lambda: ok(server.ask("GET", f"/v1/jobs/{job}"))["state"] == "running", "it runs")
    ok(server.ask("DELETE", f"/v1/jobs/{job}"), 202)
    alike(servers, {"program": {"text": MEETING}, "arguments": [[0.5] * 64, 50]})


def rank_that_hangs_is_told_by_readyz(servers):
    server = servers[1]
    rank = ranks_of(server)[1]
    os.kill(rank, signal.SIGSTOP)
    try:
        until(lambda: server.ask("GET", "/readyz")[0] == 503, "it is not ready")
        assert b"rank 1 has not answered" in server.ask("GET", "/readyz")[2]
        assert ok(server.ask("GET", "/livez")).strip() == b"ok"
    finally:
        os.kill(rank, signal.SIGCONT)
    until(lambda: server.ask("GET", "/readyz")[0] == 200, "it is ready again")


def conformance_cases_pass(servers):
    """A part of those that ./dev check-hosts runs, with random shardings."""
    for word in ("dot_general", "argmax_over_devices"):
        subprocess.run([sys.executable, str(RUN), "--url", servers[1].url, "--shard", "1", "-q", "-j", "2", "-k", word], check=True,
                       stdout=subprocess.DEVNULL)


STORIES = [programs_have_the_same_bits, arrays_stay_with_the_rank_that_has_them, shards_of_other_ranks_are_read, large_sums_have_the_same_bits, bytes_between_processes_are_told, the_first_nan_of_a_chain_is_named, effects_are_in_the_same_order, jobs_of_a_session_log_in_its_order, devices_name_their_process,
           cancelled_job_frees_the_devices_of_all_ranks, rank_that_hangs_is_told_by_readyz, conformance_cases_pass]


def ranks_of(server):
    """Process ids of the ranks that a launcher started, by rank; PMIx tells them theirs."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            if words[:1] != [os.fsencode(server.binary)] or f"127.0.0.1:{server.port}".encode() not in words:
                continue
            variables = dict(line.split(b"=", 1) for line in (entry / "environ").read_bytes().split(b"\0") if b"=" in line)
        except OSError:
            continue
        found[int(variables[b"PMIX_RANK"])] = int(entry.name)
    return [found[rank] for rank in sorted(found)]


def ends_cleanly(binary):
    """SIGTERM to rank 0 drains, stops the others, and mpirun ends with 0; the data are there for one process."""
    folder = tempfile.mkdtemp(prefix="meshd-test-")
    try:
        server = Meshd(binary, "--devices", "4", data=folder, launcher=[*MPIRUN, "2"])
        server.start()
        array = ok(server.ask("POST", "/v1/arrays", {"dtype": "float32", "shape": [2], "data": [1, 2]}), 201)["id"]
        os.kill(ranks_of(server)[0], signal.SIGTERM)
        assert server.process.wait(60) == 0, server.process.returncode
        with Meshd(binary, "--devices", "4", data=folder) as one:
            assert ok(one.ask("GET", f"/v1/arrays/{array}/data?format=json"))["data"] == [1, 2]
        # A rank that dies ends the job; nothing acknowledged is lost.
        server.start()
        server.assert_runs()
        os.kill(ranks_of(server)[1], signal.SIGKILL)
        assert server.process.wait(60) != 0
        server.start()
        assert ok(server.ask("GET", f"/v1/arrays/{array}/data?format=json"))["data"] == [1, 2]
        os.kill(ranks_of(server)[0], signal.SIGTERM)
        server.process.wait(60)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def shards_on_the_disks_of_ranks_outlive_the_job(binary):
    """Killed or stopped, with the same ranks, with others or as one process: what was stored is there, or the start says whose is not."""
    folder = tempfile.mkdtemp(prefix="meshd-test-")
    try:
        server = Meshd(binary, "--devices", "8", data=folder, launcher=[*MPIRUN, "2"])
        server.start()
        array, _ = large_run(server, large_array(server), 1.5)
        data = data_of(server, array)
        ranks = pathlib.Path(folder, "data", "ranks")
        files = [path for path in (ranks / "1" / "blobs").rglob("*.rank1")]
        assert len(files) == 4 and sum(path.stat().st_size for path in files) >= LARGE_BYTES // 2, files
        server.assert_runs()
        os.kill(ranks_of(server)[1], signal.SIGKILL)
        server.process.wait(60)
        orphan = files[0].with_name(files[0].name.replace(".v1.", ".v9."))
        shutil.copy(files[0], orphan)
        for count in (2, 4, 1):
            server.launcher = [*MPIRUN, str(count)] if count > 1 else []
            server.start()
            assert data_of(server, array) == data, f"with {count} ranks"
            assert not orphan.exists(), "a file that no row names is left"
            again, _ = large_run(server, array, 0.5)
            told = data_of(server, again)
            ok(server.ask("DELETE", f"/v1/arrays/{again}"), 204)
            os.kill(ranks_of(server)[0] if count > 1 else server.process.pid, signal.SIGTERM)
            assert server.process.wait(60) == 0
        assert len(told) == LARGE_BYTES
        done = subprocess.run([binary, "fsck", "--data", folder + "/data"], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done
        # Without the disk of rank 1 nothing starts, and nothing is lost.
        (ranks / "1").rename(ranks / "away")
        for launcher in ([], [*MPIRUN, "2"]):
            done = subprocess.run([*launcher, binary, "serve", "--devices", "8", "--listen", "127.0.0.1:0", "--data", folder + "/data"],
                                  capture_output=True, text=True, timeout=120)
            assert done.returncode != 0 and "rank 1 has 4 shards" in done.stderr + done.stdout, done
        shutil.rmtree(ranks / "1", ignore_errors=True)
        (ranks / "away").rename(ranks / "1")
        server.launcher = [*MPIRUN, "2"]
        server.start()
        assert data_of(server, array) == data
        os.kill(ranks_of(server)[0], signal.SIGTERM)
        server.process.wait(60)
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def uneven_devices_are_refused(binary):
    done = subprocess.run([*MPIRUN, "2", binary, "serve", "--devices", "3", "--listen", "127.0.0.1:0", "--data", tempfile.gettempdir() + "/unused"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and "3 devices do not divide by 2 ranks" in done.stderr + done.stdout, done


def has_mpi(binary):
    """Whether ranks of it can be started; says so where they cannot."""
    if shutil.which("mpirun") is not None and (pathlib.Path(binary).parent / "libmeshd_mpi.so").exists():
        return True
    print("MPI is not installed, or meshd was built without it: skipped")
    return False


def main():
    binary = sys.argv[1]
    if not has_mpi(binary):
        return 77
    failed = 0
    with Meshd(binary, "--devices", "8") as one, Meshd(binary, "--devices", "8", launcher=[*MPIRUN, "2"]) as two:
        checks = [lambda story=story: story((one, two)) for story in STORIES if not sys.argv[2:] or story.__name__ in sys.argv[2:]]
        names = [story.__name__ for story in STORIES if not sys.argv[2:] or story.__name__ in sys.argv[2:]]
        for name, check in zip(names, checks):
            failed += not passes(name, check)
    for check in (ends_cleanly, shards_on_the_disks_of_ranks_outlive_the_job, uneven_devices_are_refused):
        if not sys.argv[2:] or check.__name__ in sys.argv[2:]:
            failed += not passes(check.__name__, lambda: check(binary))
    return 1 if failed else 0


def passes(name, check):
    try:
        check()
        print(f"passed {name}", flush=True)
        return True
    except Exception:
        print(f"FAILED {name}")
        traceback.print_exc(file=sys.stdout)
        return False


if __name__ == "__main__":
    sys.exit(main())
