"""Triton's own HTTP clients, unmodified, against a server: triton_check.py BINARY, with a Python that has tritonclient[http] and numpy.

Each call of tritonclient.http.InferenceServerClient and of its asyncio twin, and the calls that perf_analyzer makes of a server before,
while and after it measures."""
import asyncio
import concurrent.futures
import json
import pathlib
import sys
import urllib.request

import ml_dtypes  # noqa: F401, numpy knows bfloat16 by it
import numpy as np
import tritonclient.http as triton
import tritonclient.http.aio as triton_aio
from tritonclient.utils import InferenceServerException

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from server import Meshd

BINARY = sys.argv[1]
CLIENTS, REQUESTS = 32, 20
DIGITS = {"program": {"format": "numpy", "text": "def f(x, w, b):\n  y = jnp.tanh(x @ w + b)\n  return y, jnp.argmax(y, axis=1)"},
          "outputs": ["scores", "class"], "max_batch_size": 16, "batching": {"max_queue_delay_microseconds": 2000}}
TYPES = {"BOOL": "bool", "UINT8": "uint8", "UINT16": "uint16", "UINT32": "uint32", "UINT64": "uint64", "INT8": "int8", "INT16": "int16",
         "INT32": "int32", "INT64": "int64", "FP16": "float16", "FP32": "float32", "FP64": "float64", "BF16": "bfloat16"}
RANDOM = np.random.default_rng(7)
WEIGHTS, BIAS = RANDOM.standard_normal((8, 4)).astype(np.float32), RANDOM.standard_normal(4).astype(np.float32)


def put(port, name, document):
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/models/{name}", json.dumps(document).encode(),
                                     {"Content-Type": "application/json"}, method="PUT")
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def value(array):
    return {"dtype": str(array.dtype), "shape": array.shape, "data": array.tolist()}


def expect(rows):
    scores = np.tanh(rows @ WEIGHTS + BIAS)
    return scores, np.argmax(scores, axis=1)


def refused(call, *words):
    try:
        call()
    except InferenceServerException as error:
        text = str(error)
        assert all(word in text for word in words) and "decoding the response" not in text, text
        return error.status()
    raise AssertionError(f"not refused: {words}")


def input_of(rows, name="x", datatype="FP32", binary=True):
    out = triton.InferInput(name, list(rows.shape), datatype)
    out.set_data_from_numpy(rows, binary_data=binary)
    return out


def judge(result, rows):
    scores, classes = expect(rows)
    np.testing.assert_allclose(result.as_numpy("scores"), scores, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(result.as_numpy("class"), classes)


def metadata(client):
    assert client.is_server_live() and client.is_server_ready()
    assert client.is_model_ready("digits") and client.is_model_ready("digits", "1")
    assert not client.is_model_ready("digits", "7") and not client.is_model_ready("nothing")
    server = client.get_server_metadata()
    assert server["name"] == "meshd" and "binary_tensor_data" in server["extensions"], server
    for version in ("", "1"):
        model = client.get_model_metadata("digits", version)
        assert model["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 8]}], model
        assert model["outputs"] == [{"name": "scores", "datatype": "FP32", "shape": [-1, 4]},
                                    {"name": "class", "datatype": "INT32", "shape": [-1]}], model
        config = client.get_model_config("digits", version)
        assert config["max_batch_size"] == 16 and config["input"] == [{"name": "x", "data_type": "TYPE_FP32", "dims": [8]}], config
    index = client.get_model_repository_index()
    assert {"name": "digits", "version": "1", "state": "READY", "reason": ""} in index, index


def inference(client):
    rows = RANDOM.standard_normal((5, 8)).astype(np.float32)
    for binary in (True, False):
        outputs = [triton.InferRequestedOutput(name, binary_data=binary) for name in ("scores", "class")]
        judge(client.infer("digits", [input_of(rows, binary=binary)], outputs=outputs), rows)
        judge(client.infer("digits", [input_of(rows, binary=binary)]), rows)
    result = client.infer("digits", [input_of(rows)], model_version="1", request_id="mine", priority=1, timeout=5_000_000,
                          outputs=[triton.InferRequestedOutput("class")])
    assert result.get_response()["id"] == "mine" and result.get_response()["model_version"] == "1", result.get_response()
    assert result.as_numpy("scores") is None and result.get_output("class")["shape"] == [5]
    large = RANDOM.standard_normal((16, 8)).astype(np.float32)
    for sent in (None, "gzip", "deflate"):
        for answered in (None, "gzip", "deflate"):
            judge(client.infer("digits", [input_of(large)], request_compression_algorithm=sent, response_compression_algorithm=answered), large)
    # Long enough that the server compresses it.
    zeros = np.zeros((16, 2048), np.float32)
    for answered in ("gzip", "deflate"):
        got = client.infer("wide", [input_of(zeros)], request_compression_algorithm=answered, response_compression_algorithm=answered)
        assert (got.as_numpy("output_0") == 1).all()
    # What generate_request_body and parse_response_body are for: a client's own HTTP.
    body, head = triton.InferenceServerClient.generate_request_body([input_of(rows)])
    asked = urllib.request.Request(f"http://127.0.0.1:{client.port}/v2/models/digits/infer", body,
                                   {"Inference-Header-Content-Length": str(head), "Content-Type": "application/octet-stream"})
    with urllib.request.urlopen(asked) as answer:
        judge(triton.InferenceServerClient.parse_response_body(
            answer.read(), header_length=int(answer.headers["Inference-Header-Content-Length"])), rows)


def datatypes(client, port):
    for datatype, name in TYPES.items():
        model = "echo_" + name
        put(port, model, {"program": {"format": "numpy", "text": "def f(x): return x"}, "max_batch_size": 4,
                          "arguments": [{"input": "x", "dtype": name, "shape": [-1, 3]}]})
        kind = np.dtype(name)
        rows = np.array([[0, 1, 1], [1, 0, 1]]).astype(kind)
        got = client.infer(model, [input_of(rows, datatype=datatype)]).as_numpy("output_0")
        np.testing.assert_array_equal(np.asarray(got, dtype=kind), rows)
        if name not in ("float16", "bfloat16"):
            got = client.infer(model, [input_of(rows, datatype=datatype, binary=False)],
                               outputs=[triton.InferRequestedOutput("output_0", binary_data=False)]).as_numpy("output_0")
            np.testing.assert_array_equal(got, rows)
    big = np.array([[2**63 - 1, -2**63, 2**53 + 1]], np.int64)
    got = client.infer("echo_int64", [input_of(big, datatype="INT64", binary=False)],
                       outputs=[triton.InferRequestedOutput("output_0", binary_data=False)])
    np.testing.assert_array_equal(got.as_numpy("output_0"), big)


def refusals(client):
    rows = np.zeros((2, 8), np.float32)
    refused(lambda: client.infer("nothing", [input_of(rows)]), "nothing", "is not found")
    refused(lambda: client.infer("digits", [input_of(rows)], model_version="9"), "version 9")
    refused(lambda: client.infer("digits", [input_of(np.zeros((17, 8), np.float32))]), "batch-size must be 1 to 16")
    refused(lambda: client.infer("digits", [input_of(np.zeros((2, 7), np.float32))]), "unexpected shape", "[-1,8]")
    refused(lambda: client.infer("digits", [input_of(np.zeros((2, 8)), datatype="FP64")]), "data-type", "FP64")
    refused(lambda: client.infer("digits", [input_of(rows, name="y")]), "unexpected inference input 'y'")
    refused(lambda: client.infer("digits", [input_of(rows)], sequence_id=3, sequence_start=True), "sequence")
    refused(lambda: client.infer("digits", [input_of(rows)], parameters={"mine": 1}), "not a parameter")
    refused(lambda: client.infer("digits", [input_of(rows)], priority=9), "priority levels")
    outputs = [triton.InferRequestedOutput("class", class_count=2)]
    refused(lambda: client.infer("digits", [input_of(rows)], outputs=outputs), "classification")
    texts = triton.InferInput("x", [1, 1], "BYTES")
    texts.set_data_from_numpy(np.array([[b"a"]], dtype=object))
    refused(lambda: client.infer("digits", [texts]), "BYTES")
    shared = triton.InferInput("x", [2, 8], "FP32")
    shared.set_shared_memory("region", 64)
    refused(lambda: client.infer("digits", [shared]), "shared memory")
    for call in (client.get_system_shared_memory_status, client.get_cuda_shared_memory_status, client.unregister_system_shared_memory,
                 client.unregister_cuda_shared_memory, lambda: client.register_system_shared_memory("a", "/a", 8),
                 lambda: client.register_cuda_shared_memory("a", b"handle", 0, 8)):
        refused(call, "shared memory")
    for call in (client.get_trace_settings, client.update_trace_settings, lambda: client.get_trace_settings("digits")):
        refused(call, "traces")
    for call in (client.get_log_settings, lambda: client.update_log_settings({"log_info": True})):
        refused(call, "settings of the log")


def repository(client):
    client.unload_model("digits", unload_dependents=True)
    assert not client.is_model_ready("digits")
    refused(lambda: client.infer("digits", [input_of(np.zeros((1, 8), np.float32))]), "unloaded")
    assert {"name": "digits", "version": "1", "state": "UNAVAILABLE", "reason": "unloaded"} in client.get_model_repository_index()
    client.load_model("digits")
    assert client.is_model_ready("digits")
    refused(lambda: client.load_model("nothing"), "is not found")
    refused(lambda: client.load_model("digits", config='{"max_batch_size": 1}'), "configuration")


def statistics_of(client, version="1"):
    return client.get_inference_statistics("digits", version)["model_stats"][0]


def many_clients(port):
    """Requests of many clients at once run together, and each gets its own rows."""
    def session(seed):
        random = np.random.default_rng(seed)
        with triton.InferenceServerClient(f"127.0.0.1:{port}", concurrency=4) as own:
            batches = [random.standard_normal((1 + i % 3, 8)).astype(np.float32) for i in range(REQUESTS)]
            # The client itself waits 10 ms behind each: its requests overlap those of other threads.
            for rows, future in [(rows, own.async_infer("digits", [input_of(rows)])) for rows in batches]:
                judge(future.get_result(), rows)
            return sum(len(one) for one in batches)
    with triton.InferenceServerClient(f"127.0.0.1:{port}") as client:
        before = statistics_of(client)
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            rows = sum(pool.map(session, range(CLIENTS)))
        after = statistics_of(client)
    requests = CLIENTS * REQUESTS
    count = lambda kind: after["inference_stats"][kind]["count"] - before["inference_stats"][kind]["count"]
    assert after["inference_count"] - before["inference_count"] == rows
    assert count("success") == count("queue") == count("compute_infer") == requests and count("fail") == 0
    executions = after["execution_count"] - before["execution_count"]
    assert executions < requests, f"{executions} batches for {requests} requests: none ran together"
    assert sum(one["compute_infer"]["count"] for one in after["batch_stats"]) == after["execution_count"]
    return executions, requests


def perf_analyzer(port):
    """What perf_analyzer asks of a server: metadata, configuration, statistics before and after, and inference in between."""
    def session(number):
        with triton.InferenceServerClient(f"127.0.0.1:{port}") as own:
            for _ in range(REQUESTS):
                own.infer("digits", [input_of(np.full((2, 8), number, np.float32))])
    with triton.InferenceServerClient(f"127.0.0.1:{port}") as client:
        assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("digits")
        assert {"name", "version", "extensions"} <= set(client.get_server_metadata())
        model, config = client.get_model_metadata("digits"), client.get_model_config("digits")
        assert [one["dims"] for one in config["input"]] == [one["shape"][1:] for one in model["inputs"]]
        assert client.get_inference_statistics()["model_stats"], "of all models"
        before = statistics_of(client)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(session, range(4)))
        after = statistics_of(client)
    made = after["inference_stats"]["success"]["count"] - before["inference_stats"]["success"]["count"]
    assert made == 4 * REQUESTS, made
    for part in ("queue", "compute_input", "compute_infer", "compute_output"):
        assert after["inference_stats"][part]["ns"] >= before["inference_stats"][part]["ns"]
    parts = sum(after["inference_stats"][part]["ns"] for part in ("queue", "compute_input", "compute_infer", "compute_output"))
    assert parts <= after["inference_stats"]["success"]["ns"] and after["last_inference"] > 0


async def asynchronous(port):
    async with triton_aio.InferenceServerClient(f"127.0.0.1:{port}") as client:
        assert await client.is_server_live() and await client.is_server_ready() and await client.is_model_ready("digits")
        assert (await client.get_model_metadata("digits"))["name"] == "digits"
        assert (await client.get_model_config("digits"))["name"] == "digits"
        assert await client.get_model_repository_index()
        await client.unload_model("wide")
        await client.load_model("wide")
        batches = [RANDOM.standard_normal((2, 8)).astype(np.float32) for _ in range(CLIENTS)]
        for result, rows in zip(await asyncio.gather(*(client.infer("digits", [input_of(rows)]) for rows in batches)), batches):
            judge(result, rows)
        result = await client.infer("wide", [input_of(np.zeros((16, 2048), np.float32))], request_compression_algorithm="deflate",
                                    response_compression_algorithm="gzip")
        assert (result.as_numpy("output_0") == 1).all()


def main():
    with Meshd(BINARY, "--devices", "4") as server:
        document = put(server.port, "digits", {**DIGITS, "arguments": [{"input": "x", "dtype": "float32", "shape": [-1, 8]},
                                                                      value(WEIGHTS), value(BIAS)]})
        assert document["state"] == "READY" and document["version"] == 1, document
        put(server.port, "wide", {"program": {"format": "numpy", "text": "def f(x): return x + 1"}, "max_batch_size": 16,
                                  "arguments": [{"input": "x", "dtype": "float32", "shape": [-1, 2048]}]})
        with triton.InferenceServerClient(f"127.0.0.1:{server.port}") as client:
            client.port = server.port
            metadata(client)
            inference(client)
            datatypes(client, server.port)
            refusals(client)
            repository(client)
        batches, requests = many_clients(server.port)
        perf_analyzer(server.port)
        asyncio.run(asynchronous(server.port))
    print(f"tritonclient: each call of the table; {requests} requests at once ran as {batches} batches")


main()
