#!/usr/bin/env python3
"""Arrays by their names, and checkpoints as prefixes: names_test.py BINARY."""
import json
import signal
import struct
import sys
import threading
import urllib.parse

from server import ok, refused, run_stories, until

RAW = {"Content-Type": "application/octet-stream"}
DOUBLE = """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""


def make(s, name, data=b"abcd", status=201, headers=RAW, **query):
    words = urllib.parse.urlencode({"dtype": "uint8", "shape": len(data), "name": name, **query})
    answer = s.ask("POST", "/v1/arrays:upload?" + words, data, headers)
    return ok(answer, status) if status == 201 else answer


def put(s, name, data, query="", **headers):
    return s.ask("PUT", f"/v1/arrays/by-name/{name}/data{query}", data, {**RAW, **headers})


def of(s, name):
    return ok(s.ask("GET", f"/v1/arrays/by-name/{name}"))


def data(s, name):
    return ok(s.ask("GET", f"/v1/arrays/by-name/{name}/data"))


def tensors(arrays):
    head, at = {}, 0
    for name, values in arrays.items():
        head[name] = {"dtype": "U8", "shape": [len(values)], "data_offsets": [at, at + len(values)]}
        at += len(values)
    text = json.dumps(head).encode()
    return struct.pack("<Q", len(text)) + text + b"".join(arrays.values())


def read_tensors(file):
    (length,) = struct.unpack_from("<Q", file)
    head = json.loads(file[8:8 + length])
    return {name: file[8 + length + entry["data_offsets"][0]:8 + length + entry["data_offsets"][1]] for name, entry in head.items()}


def the_newest_of_a_name(s):
    make(s, "a/b", b"old!")
    newer = make(s, "a/b", b"new!!")
    assert of(s, "a/b")["id"] == newer["id"] and not newer["unique"]
    assert data(s, "a/b") == b"new!!"
    ok(s.ask("DELETE", "/v1/arrays/by-name/a/b"), 204)
    assert data(s, "a/b") == b"old!"
    ok(s.ask("DELETE", "/v1/arrays/by-name/a/b"), 204)
    refused(s.ask("GET", "/v1/arrays/by-name/a/b"), 404, "not_found", "'a/b'")
    refused(s.ask("GET", "/v1/arrays/by-name/a/b/data"), 404, "not_found")
    refused(s.ask("DELETE", "/v1/arrays/by-name/a/b"), 404, "not_found")


def names_of_all_kinds(s):
    """As they are, and escaped; one that ends in /data is written with %2F before it."""
    for name in ("w", "model/layer0/w", "a:b", "x y", "ä/日本", "%41", "data", "by-name", "a//b", "-", "arr_x", "q?#&=+"):
        escaped = urllib.parse.quote(name, safe="")
        answer = put(s, escaped, b"abc", "?dtype=uint8&shape=3")
        assert ok(answer, 201)["name"] == name
        assert of(s, escaped)["name"] == name and data(s, escaped) == b"abc"
        if "//" not in name:
            assert of(s, urllib.parse.quote(name))["name"] == name
    ok(put(s, "x%2Fdata", b"abc", "?dtype=uint8&shape=3"), 201)
    assert of(s, "x%2Fdata")["name"] == "x/data" and data(s, "x%2Fdata") == b"abc"
    refused(s.ask("GET", "/v1/arrays/by-name/x/data"), 404, "not_found", "'x'")


def one_of_a_name(s):
    held = make(s, "one", unique="true")
    assert held["unique"] and of(s, "one")["unique"]
    refused(make(s, "one", status=409, unique="true"), 409, "name_taken", held["id"], "uint8[4]", "held by")
    refused(make(s, "one", status=409), 409, "name_taken", held["id"])
    refused(make(s, "one", status=409, durability="memory"), 409, "name_taken", held["id"])
    make(s, "several")
    refused(make(s, "several", status=409, unique="true"), 409, "name_taken", "also that of")
    refused(s.ask("POST", "/v1/arrays:upload?dtype=uint8&shape=1&unique=true", b"x", RAW), 422, "invalid_query", "name=")
    refused(s.ask("POST", "/v1/arrays:upload?dtype=uint8&shape=1&name=x&unique=yes", b"x", RAW), 422, "invalid_query", "unique")
    # Over a restart, too, and for arrays in memory until then.
    kept = make(s, "memory", unique="true", durability="memory")
    refused(make(s, "memory", status=409), 409, "name_taken", kept["id"])
    s.stop(signal.SIGKILL)
    s.start()
    refused(make(s, "one", status=409), 409, "name_taken", held["id"])
    assert make(s, "memory", unique="true")["unique"]
    # Deleted, moved and donated arrays give it free, or take it with them.
    moved = ok(s.ask("POST", f"/v1/arrays/{held['id']}:move"), 201)
    assert moved["unique"] and of(s, "one")["id"] == moved["id"]
    assert not ok(s.ask("GET", f"/v1/arrays/{held['id']}"))["unique"]
    ok(s.ask("DELETE", f"/v1/arrays/{moved['id']}"), 204)
    assert make(s, "one", unique="true")["unique"]


def donated_arrays_give_their_name_free(s):
    held = ok(put(s, "params", struct.pack("<4f", 1, 2, 3, 4), "?dtype=float32&shape=4"), 201)
    body = {"program": {"text": DOUBLE}, "arguments": [{"array": held["id"]}], "donate": [0], "results": {"encoding": "array"}}
    made = ok(s.ask("POST", "/v1/run", body))["results"][0]["array"]
    assert ok(s.ask("GET", f"/v1/arrays/{held['id']}"))["state"] == "donated"
    answer = s.ask("GET", "/v1/arrays/by-name/params/data")
    refused(answer, 410, "deleted_or_donated")
    assert ok(put(s, "params", bytes(8), "?dtype=uint8&shape=8"), 201)["id"] != held["id"]
    ok(s.ask("DELETE", f"/v1/arrays/{made}"), 204)


def results_of_jobs_have_names(s):
    """One that donates the array of the name, too: what a training step does."""
    held = ok(put(s, "train/w", struct.pack("<4f", 1, 2, 3, 4), "?dtype=float32&shape=4"), 201)
    body = {"program": {"text": DOUBLE}, "arguments": [{"array": held["id"]}], "results": {"encoding": "array", "names": ["train/w"]}}
    refused(s.ask("POST", "/v1/run", body), 409, "name_taken", held["id"])
    session = ok(s.ask("POST", "/v1/sessions"), 201)["id"]
    for durability in ("durable", "memory"):
        for path in ("/v1/run", f"/v1/sessions/{session}/jobs"):
            named = of(s, "train/w")
            body["arguments"], body["donate"], body["results"]["durability"] = [{"array": named["id"]}], [0], durability
            made = ok(s.ask("POST", path, body))["results"][0]["array"]
            assert of(s, "train/w")["id"] == made and not of(s, "train/w")["unique"]
            assert ok(s.ask("GET", f"/v1/arrays/{named['id']}"))["state"] == "donated"
    assert struct.unpack("<4f", data(s, "train/w")) == (16, 32, 48, 64)
    # In the background: found by its name once the job is over.
    body.update(donate=[], arguments=[{"array": of(s, "train/w")["id"]}])
    body["results"]["names"] = ["train/next"]
    job = ok(s.ask("POST", f"/v1/sessions/{session}/jobs", body, {"Prefer": "respond-async"}), 202)
    until(lambda: ok(s.ask("GET", f"/v1/jobs/{job['id']}"))["state"] == "done", "the job is over")
    assert of(s, "train/next")["id"] == job["arrays"][0]
    body["results"]["names"] = ["a", "b"]
    refused(s.ask("POST", "/v1/run", body), 422, "invalid_request", "2 names for 1 results")
    body["results"] = {"encoding": "json", "names": ["a"]}
    refused(s.ask("POST", "/v1/run", body), 422, "invalid_request")


def new_data_and_new_types(s):
    first = ok(put(s, "p/w", b"abcd", "?dtype=uint8&shape=4"), 201)
    assert first["unique"]
    # The same type: the next version, of raw bytes without dtype and shape, too.
    again = ok(put(s, "p/w", b"efgh"))
    assert (again["id"], again["version"]) == (first["id"], 2) and data(s, "p/w") == b"efgh"
    ok(put(s, "p/w", b"XY", "?slice=1:3"))
    assert data(s, "p/w") == b"eXYh"
    etag = s.ask("GET", "/v1/arrays/by-name/p/w")[1]["ETag"]
    # Another type: 409 that says what is there; with If-Match another array in its place.
    refused(put(s, "p/w", b"12345678", "?dtype=uint8&shape=8"), 409, "name_taken", first["id"], "4xui8", "8xui8", etag)
    refused(put(s, "p/w", b"12345678", "?dtype=uint8&shape=8", **{"If-Match": '"other"'}), 412, "precondition_failed")
    refused(put(s, "nothing", b"1", "?dtype=uint8&shape=1", **{"If-Match": "*"}), 412, "precondition_failed")
    refused(put(s, "p/w", b"efgh", **{"If-None-Match": "*"}), 412, "precondition_failed")
    other = ok(put(s, "p/w", b"12345678", "?dtype=uint8&shape=8", **{"If-Match": etag}), 201)
    assert other["id"] != first["id"] and data(s, "p/w") == b"12345678"
    refused(s.ask("GET", f"/v1/arrays/{first['id']}"), 404, "not_found")
    # By POST, too.
    etag = s.ask("GET", "/v1/arrays/by-name/p/w")[1]["ETag"]
    third = make(s, "p/w", b"xyz", headers={**RAW, "If-Match": etag}, unique="true")
    assert of(s, "p/w")["id"] == third["id"]
    refused(make(s, "p/w", b"xyz", 412, {**RAW, "If-Match": etag}), 412, "precondition_failed")
    refused(s.ask("POST", "/v1/arrays:upload?dtype=uint8&shape=1", b"x", {**RAW, "If-Match": "*"}), 422, "invalid_query", "name")
    # A place in the query is another array's, even of the same type.
    mesh = s.ask("POST", "/v1/meshes", {"axis_names": ["x"], "devices": [0, 1, 2]})[2]["id"]
    refused(put(s, "p/w", b"xyz", f"?mesh={mesh}&spec=x"), 409, "name_taken")
    placed = ok(put(s, "p/w", b"xyz", f"?mesh={mesh}&spec=x", **{"If-Match": "*"}), 201)
    assert placed["shard_count"] == 3


def a_checkpoint_is_a_prefix(s):
    arrays = {"w1": b"abcd", "layer/w2": b"efg", "layer/b": b""}
    made = ok(s.ask("POST", "/v1/arrays:import?prefix=run7/step1/&unique=true", tensors(arrays), RAW), 201)["items"]
    assert [item["name"] for item in made] == ["run7/step1/" + name for name in arrays]
    assert read_tensors(ok(s.ask("GET", "/v1/arrays:export?prefix=run7/step1/"))) == arrays
    assert ok(s.ask("GET", "/v1/arrays:export?prefix=run7/step1/&format=npz&compression=deflate"))[:4] == b"PK\x03\x04"
    # All or none: a name that is taken leaves everything as it was.
    later = {"new": b"1", "w1": b"2"}
    refused(s.ask("POST", "/v1/arrays:import?prefix=run7/step1/&unique=true", tensors(later), RAW), 409, "name_taken", "run7/step1/w1")
    assert read_tensors(ok(s.ask("GET", "/v1/arrays:export?prefix=run7/step1/"))) == arrays
    ok(s.ask("POST", "/v1/arrays:import?prefix=run7/step1/&unique=true&replace=true", tensors(later), RAW), 201)
    assert read_tensors(ok(s.ask("GET", "/v1/arrays:export?prefix=run7/step1/"))) == {**arrays, **later}
    # Listed and deleted by prefix, and nothing else.
    make(s, "run7/step10/w1")
    make(s, "run70")
    names = [item["name"] for item in ok(s.ask("GET", "/v1/arrays?prefix=run7/step1/&limit=2"))["items"]]
    assert len(names) == 2 and all(name.startswith("run7/step1/") for name in names)
    assert ok(s.ask("DELETE", "/v1/arrays?prefix=run7/step1/")) == {"deleted": 4}
    assert ok(s.ask("DELETE", "/v1/arrays?prefix=run7/step1/")) == {"deleted": 0}
    refused(s.ask("GET", "/v1/arrays:export?prefix=run7/step1/"), 404, "not_found")
    assert {item["name"] for item in ok(s.ask("GET", "/v1/arrays?prefix=run7"))["items"]} == {"run7/step10/w1", "run70"}
    refused(s.ask("DELETE", "/v1/arrays"), 422, "invalid_query", "prefix")
    refused(s.ask("DELETE", "/v1/arrays?prefix="), 422, "invalid_query", "prefix")
    refused(s.ask("GET", "/v1/arrays:export?prefix=run7&id=arr_x"), 422, "invalid_query", "id")
    refused(s.ask("GET", "/v1/arrays:export"), 422, "invalid_query", "prefix")
    assert ok(s.ask("DELETE", "/v1/arrays?prefix=run7")) == {"deleted": 2}


def exports_have_the_array_that_a_name_addresses(s):
    make(s, "dup/a", b"old")
    make(s, "dup/a", b"newer")
    make(s, "dup", b"itself")
    assert read_tensors(ok(s.ask("GET", "/v1/arrays:export?prefix=dup/"))) == {"a": b"newer"}
    assert read_tensors(ok(s.ask("GET", "/v1/arrays:export?prefix=dup"))) == {"dup": b"itself", "/a": b"newer"}
    assert ok(s.ask("DELETE", "/v1/arrays?prefix=dup")) == {"deleted": 3}


def deleted_together_or_not_at_all(s):
    """One that a job has still to read keeps all."""
    held = ok(put(s, "busy/a", struct.pack("<4f", 1, 2, 3, 4), "?dtype=float32&shape=4"), 201)
    ok(put(s, "busy/b", b"abcd", "?dtype=uint8&shape=4"), 201)
    session = ok(s.ask("POST", "/v1/sessions"), 201)["id"]
    waits = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n  %t = stablehlo.create_token : !stablehlo.token\n  %0:2 = \"stablehlo.infeed\"(%t) <{infeed_config = \"\"}> : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)\n  %1 = stablehlo.add %a, %0#0 : tensor<4xf32>\n  return %1 : tensor<4xf32>\n}"
    body = {"program": {"text": waits}, "arguments": [{"array": held["id"]}]}
    job = ok(s.ask("POST", f"/v1/sessions/{session}/jobs", body, {"Prefer": "respond-async"}), 202)["id"]
    refused(s.ask("DELETE", "/v1/arrays?prefix=busy/"), 409, "array_in_use", held["id"])
    assert data(s, "busy/b") == b"abcd"
    ok(s.ask("POST", f"/v1/sessions/{session}/infeed", {"values": [{"dtype": "float32", "shape": [4], "data": [1, 1, 1, 1]}]}), 201)
    until(lambda: ok(s.ask("GET", f"/v1/jobs/{job}"))["state"] == "done", "the job is over")
    assert ok(s.ask("DELETE", "/v1/arrays?prefix=busy/")) == {"deleted": 2}


def races(s):
    """Of many that make a name their own at once, one does; readers of a name that is replaced always find an array."""
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(make(s, "race", status=0, unique="true")[0])) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [201] + [409] * 11, answers
    ended, seen = threading.Event(), []

    def read():
        while not ended.is_set():
            status, _, body = s.ask("GET", "/v1/arrays/by-name/race/data")
            seen.append((status, len(set(body))))
            seen.append((s.ask("GET", "/v1/arrays:export?prefix=race")[0], 1))

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for size in range(1, 60):
        ok(put(s, "race", bytes([size]) * size, f"?dtype=uint8&shape={size}", **{"If-Match": "*"}), 201)
    ended.set()
    for reader in readers:
        reader.join()
    assert set(seen) == {(200, 1)} or set(seen) == {(200, 1), (200, 4)}, set(seen)
    assert len(ok(s.ask("GET", "/v1/arrays?name=race"))["items"]) == 1


def others_have_names_of_their_own(s):
    ann, bob = {"Authorization": "Bearer ann"}, {"Authorization": "Bearer bob"}
    make(s, "mine", headers={**RAW, **ann}, unique="true")
    refused(s.ask("GET", "/v1/arrays/by-name/mine", headers=bob), 404, "not_found")
    refused(s.ask("GET", "/v1/arrays:export?prefix=mine", headers=bob), 404, "not_found")
    assert ok(s.ask("DELETE", "/v1/arrays?prefix=mine", headers=bob)) == {"deleted": 0}
    make(s, "mine", b"bobs", headers={**RAW, **bob}, unique="true")
    assert ok(s.ask("GET", "/v1/arrays/by-name/mine/data", headers=ann)) == b"abcd"


sys.exit(run_stories([the_newest_of_a_name, names_of_all_kinds, one_of_a_name, donated_arrays_give_their_name_free, results_of_jobs_have_names, new_data_and_new_types,
                      a_checkpoint_is_a_prefix, exports_have_the_array_that_a_name_addresses, deleted_together_or_not_at_all, races,
                      others_have_names_of_their_own]))
