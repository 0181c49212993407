#!/usr/bin/env python3
"""Latency of whole jobs over one kept connection: jobs_bench.py URL. Medians of a warm server; ratios are against GET /livez."""
import http.client
import json
import statistics
import sys
import time
import urllib.parse

ADD = "func.func @main(%a: tensor<{n}xf32>) -> tensor<{n}xf32> {{ %0 = stablehlo.add %a, %a : tensor<{n}xf32> return %0 : tensor<{n}xf32> }}"


def main():
    url = urllib.parse.urlsplit(sys.argv[1])
    connection = http.client.HTTPConnection(url.hostname, url.port)

    def ask(method, path, body=None, kind="application/json"):
        connection.request(method, path, body, {"Content-Type": kind} if body is not None else {})
        answer = connection.getresponse()
        data = answer.read()
        assert answer.status < 300, data
        return data

    def median(rounds, work):
        for _ in range(20):
            work()
        times = []
        for _ in range(rounds):
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
        return statistics.median(times) * 1e6

    floor = median(2000, lambda: ask("GET", "/livez"))
    print(f"GET /livez                                   {floor:8.0f} us")
    for devices in (1, 8):
        for size in (1024, 1 << 20):
            array = json.loads(ask("POST", f"/v1/arrays?dtype=float32&shape={size}&durability=memory", b"\0" * (4 * size), "application/octet-stream"))["id"]
            request = {"program": {"text": ADD.format(n=size)}, "arguments": [{"array": array}], "results": {"encoding": "none"}}
            if devices > 1:
                request.update({"mesh": {"axis_names": ["x"], "devices": list(range(devices))}, "in_shardings": [{"spec": [["x"]]}]})
            body = json.dumps(request)
            took = median(500, lambda: ask("POST", "/v1/run", body))
            print(f"run x + x, {size:8} f32, {devices} device{'s' if devices > 1 else ' '}           {took:8.0f} us, {took / floor:5.1f} x /livez")


main()
