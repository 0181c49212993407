#!/usr/bin/env python3
"""The main job: train a classifier on 1,797 real handwritten digits on a running meshd, and hold it to JAX's own numbers.

Data, programs and answers are those of digits/ beside this file. Needs Python 3.9 and nothing else. Shows progress on a terminal,
says what it found, exits 1 when anything differs from digits/README.md.
"""
import argparse
import http.client
import json
import pathlib
import sys
import time
import urllib.parse

DIGITS = pathlib.Path(__file__).resolve().parent / "digits"
MESH = {"axis_names": ["x", "y"], "devices": [[0, 1], [2, 3], [4, 5], [6, 7]]}
SPECS = {"b1": "y", "b2": "", "w1": ",y", "w2": "y,"}


class Server:
    def __init__(self, url):
        self.url = urllib.parse.urlsplit(url)
        self.connection = http.client.HTTPConnection(self.url.hostname, self.url.port or 80, timeout=60)

    def ask(self, method, path, body=None, kind="application/json"):
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        self.connection.request(method, path, body, {"Content-Type": kind} if body is not None else {})
        answer = self.connection.getresponse()
        data = answer.read()
        return answer.status, json.loads(data) if "json" in (answer.getheader("Content-Type") or "") else data

    def must(self, method, path, body=None, kind="application/json"):
        status, answer = self.ask(method, path, body, kind)
        if status >= 300:
            raise SystemExit(f"{method} {path} gave HTTP {status}: {answer.get('detail') if isinstance(answer, dict) else answer!r}")
        return answer

    def upload(self, name, mesh, spec, durability):
        query = urllib.parse.urlencode({"name": name, "mesh": mesh, "spec": spec, "durability": durability})
        return self.must("POST", f"/v1/arrays?{query}", (DIGITS / f"{name}.npy").read_bytes(), "application/x-npy")["id"]


def progress(step, steps, loss, started):
    if sys.stderr.isatty():
        rate = (step + 1) / max(time.time() - started, 1e-9)
        bar = "#" * (30 * (step + 1) // steps)
        sys.stderr.write(f"\r  training [{bar:<30}] {step + 1}/{steps}  loss {loss:.4f}  {rate:.0f} steps/s ")
        sys.stderr.write("\n" if step + 1 == steps else "")
        sys.stderr.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("--durability", default="durable", choices=["durable", "memory"])
    parser.add_argument("--curl", action="store_true", help="print the curl lines that do a part of it by hand")
    options = parser.parse_args()
    answers = json.loads((DIGITS / "answers.json").read_text())
    server = Server(options.url)
    wrong = []

    mesh = server.must("POST", "/v1/meshes", MESH)["id"]
    images = server.upload("images", mesh, "x,", options.durability)
    labels = server.upload("labels", mesh, "x", options.durability)
    parameters = {name: server.upload(name, mesh, spec, options.durability) for name, spec in SPECS.items()}
    programs = {name: server.must("POST", "/v1/programs", (DIGITS / f"{name}.mlir").read_bytes(), "text/plain")["id"]
                for name in ("step", "predict")}
    session = server.must("POST", "/v1/sessions", {"name": "digits"})["id"]

    started, seen, losses = time.time(), [], []
    for step in range(answers["steps"]):
        first = step * answers["batch"] % answers["trained_images"]
        batch = f"{first}:{first + answers['batch']}"
        answer = server.must("POST", f"/v1/sessions/{session}/jobs", {
            "program": {"id": programs["step"]},
            "arguments": [{"array": parameters[name]} for name in ("b1", "b2", "w1", "w2")]
                         + [{"array": images, "slice": batch}, {"array": labels, "slice": batch}],
            "mesh": MESH,
            "callbacks": answers["step_callback"],
            "results": {"encoding": "array", "durability": options.durability}})
        seen += list(parameters.values())
        parameters = {name: answer["results"][i]["array"] for i, name in enumerate(("b1", "b2", "w1", "w2"))}
        losses.append(answer["effects"][0]["values"][0]["data"])
        progress(step, answers["steps"], losses[-1], started)
    seconds = time.time() - started

    log, after = [], 0
    while True:
        page = server.must("GET", f"/v1/sessions/{session}/effects?after={after}&limit=100")
        log += page["items"]
        if page["next"] is None:
            break
        after = page["next"]
    if [entry["sequence"] for entry in log] != list(range(1, answers["steps"] + 1)):
        wrong.append(f"the log has {len(log)} entries, not 1..{answers['steps']} once each")
    worst = 0.0
    for step, (entry, expected) in enumerate(zip(log, answers["losses"])):
        value = entry["values"][0]["data"]
        worst = max(worst, abs(value - expected) / abs(expected))
        if entry["name"] != "loss" or not abs(value - expected) <= answers["loss_rtol"] * abs(expected):
            wrong.append(f"step {step}: {entry['name']} {value}, JAX has {expected}")
    gone = sum(server.ask("GET", f"/v1/arrays/{name}/data")[0] == 410 for name in seen)
    if gone != len(seen):
        wrong.append(f"{len(seen) - gone} of {len(seen)} donated parameters can still be read")

    found = {}
    for cut, shardings in (("unsharded", None), ("over x, uneven", [None] * 4 + [{"spec": [["x"], []]}]),
                           ("over x and y, uneven", [None] * 4 + [{"spec": [["x", "y"], []]}])):
        request = {"program": {"id": programs["predict"]}, "mesh": MESH, "reshard": True,
                   "arguments": [{"array": parameters[name]} for name in ("b1", "b2", "w1", "w2")] + [{"array": images, "slice": ":"}]}
        if shardings:
            request["in_shardings"] = shardings
        predicted = server.must("POST", "/v1/run", request)["results"][0]["data"]
        differ = sum(a != b for a, b in zip(predicted, answers["predictions"]))
        found[cut] = differ
        if differ > answers["predictions_that_may_differ"]:
            wrong.append(f"images {cut}: {differ} predictions differ from JAX's")
    truth = server.must("GET", f"/v1/arrays/{labels}/data?format=json")["data"]
    trained = answers["trained_images"]
    accuracy = [sum(p == t for p, t in zip(predicted[a:b], truth[a:b])) / (b - a) for a, b in ((0, trained), (trained, len(truth)))]

    print(f"trained {answers['steps']} steps in {seconds:.1f} s: loss {losses[0]:.4f} -> {losses[-1]:.4f}, "
          f"at most {worst:.1e} from JAX's (allowed {answers['loss_rtol']:.0e})")
    print(f"log: {len(log)} entries in order; donated parameters gone: {gone} of {len(seen)}")
    print(f"predictions that differ from JAX's: {', '.join(f'{n} (images {cut})' for cut, n in found.items())}")
    print(f"accuracy: {accuracy[0]:.4f} trained, {accuracy[1]:.4f} held out (JAX: {answers['accuracy_trained']:.4f}, {answers['accuracy_held_out']:.4f})")
    for problem in wrong[:10]:
        print("WRONG:", problem)
    if options.curl:
        print(f"""
By hand:
  curl -s {options.url}/v1/sessions/{session}/effects?limit=3
  curl -s {options.url}/v1/arrays/{parameters['w1']}
  curl -s {options.url}/v1/arrays/{parameters['w1']}/shards
  curl -s '{options.url}/v1/arrays/{parameters['b2']}/data?format=json'
  curl -s -N {options.url}/v1/sessions/{session}/events
  curl -s {options.url}/v1/run --json '{{"program":{{"text":"func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {{ %0 = stablehlo.tanh %x : tensor<3xf32> return %0 : tensor<3xf32> }}"}},"arguments":[[1,2,3]]}}'""")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
