#!/usr/bin/env python3
"""Latency of whole jobs over one kept connection, and jobs a second that are durable before they run, whose requests bring values
of several sizes: jobs_bench.py URL. Medians of a warm server; ratios are against GET /livez."""
import base64
import http.client
import json
import os
import statistics
import sys
import threading
import time
import urllib.parse

FIRST = "func.func @main(%a: tensor<{n}xui8>) -> tensor<1xui8> {{ %0 = stablehlo.slice %a [0:1] : (tensor<{n}xui8>) -> tensor<1xui8> return %0 : tensor<1xui8> }}"
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
    for clients in (1, 8):
        for size in (8, 4 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 4 << 20):
            rate = jobs_per_second(url, clients, size, 2.0)
            print(f"jobs with a row, {clients} clients, {size:8} bytes      {rate:8.0f} a second, {rate * size / 1e6:8.1f} MB/s")


# Each client has a session, whose jobs are in the database from before they run until they are over.
def jobs_per_second(url, clients, size, seconds):
    done = [0] * clients
    value = {"dtype": "uint8", "shape": [size], "base64": base64.b64encode(os.urandom(size)).decode()}
    text = FIRST.format(n=size)
    body = json.dumps({"program": {"text": text}, "arguments": [value], "results": {"encoding": "none"}})

    def work(client, end):
        connection = http.client.HTTPConnection(url.hostname, url.port)

        def ask(path, data):
            connection.request("POST", path, data, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            assert answer.status < 300, text
            return json.loads(text)

        session = ask("/v1/sessions", "{}")["id"]
        while time.perf_counter() < end:
            ask(f"/v1/sessions/{session}/jobs", body)
            done[client] += 1

    start = time.perf_counter()
    threads = [threading.Thread(target=work, args=(client, start + seconds)) for client in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / (time.perf_counter() - start)


main()
