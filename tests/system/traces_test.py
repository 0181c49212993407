"""Spans of requests and jobs reach a collector of OpenTelemetry traces (OTLP over HTTP), joined to the client's traceparent; a collector that
is not there holds nothing up. traces_test.py BINARY"""
import http.server
import json
import sys
import threading
import time

from server import Meshd, ok, until

PROGRAM = {"program": {"format": "numpy", "text": "def f(x): return x + 1"}, "arguments": [1]}
TRACE, CLIENT_SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


class Collector:
    """What POST /v1/traces brought, as spans by id."""

    def __init__(self):
        self.spans, self.resources, self.lock = {}, [], threading.Lock()
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                assert self.path == "/v1/traces" and self.headers["Content-Type"] == "application/json"
                with collector.lock:
                    for resource in document["resourceSpans"]:
                        collector.resources.append(attributes(resource["resource"]))
                        for scope in resource["scopeSpans"]:
                            for span in scope["spans"]:
                                collector.spans[span["spanId"]] = span
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1/traces"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def named(self, name, trace=None):
        with self.lock:
            return [span for span in self.spans.values() if span["name"] == name and trace in (None, span["traceId"])]

    def children(self, span):
        with self.lock:
            return {child["name"]: child for child in self.spans.values() if child.get("parentSpanId") == span["spanId"]}


def attributes(of):
    return {entry["key"]: next(iter(entry["value"].values())) for entry in of["attributes"]}


def inside(child, parent):
    # Spans of a request are counted from the moment when its answer was sent; the clock's resolution is a microsecond.
    slack = 2_000
    return int(parent["startTimeUnixNano"]) - slack <= int(child["startTimeUnixNano"]) <= int(child["endTimeUnixNano"]) <= int(parent["endTimeUnixNano"]) + slack


def a_run_is_a_span_with_its_stages(server, collector):
    status, fields, _ = server.ask("POST", "/v1/run", PROGRAM, {"traceparent": f"00-{TRACE}-{CLIENT_SPAN}-01"})
    assert status == 200
    span = until(lambda: collector.named("POST /v1/run", TRACE), "the span of the run")[0]
    assert span["parentSpanId"] == CLIENT_SPAN and span["kind"] == 2
    assert fields["traceparent"] == f"00-{TRACE}-{span['spanId']}-01", "the answer names the span"
    said = attributes(span)
    assert (said["http.request.method"], said["http.route"], said["http.response.status_code"]) == ("POST", "/v1/run", "200"), said
    stages = collector.children(span)
    assert {"parse", "lower", "run"} <= set(stages), stages
    assert all(inside(stage, span) for stage in stages.values()), (span, stages)
    assert "total" not in stages
    assert collector.resources[0]["service.name"] == "meshd"


def a_request_without_a_trace_begins_one(server, collector):
    status, fields, _ = server.ask("GET", "/v1/devices")
    trace = fields["traceparent"].split("-")[1]
    span = until(lambda: collector.named("GET /v1/devices", trace), "its span")[0]
    assert status == 200 and "parentSpanId" not in span


def a_job_is_a_child_of_the_request_that_brought_it(server, collector):
    session = ok(server.ask("POST", "/v1/sessions"), 201)["id"]
    _, fields, job = server.ask("POST", f"/v1/sessions/{session}/jobs", PROGRAM, {"Prefer": "respond-async"})
    _, trace, span, _ = fields["traceparent"].split("-")
    found = until(lambda: collector.named("job", trace), "the span of the job")[0]
    assert found["parentSpanId"] == span and attributes(found)["meshd.job"] == job["id"]
    assert "run" in collector.children(found)


def errors_are_marked(server, collector):
    _, fields, _ = server.ask("POST", "/v1/run", {"program": {"text": "nothing"}})
    span = until(lambda: collector.named("POST /v1/run", fields["traceparent"].split("-")[1]), "its span")[0]
    assert attributes(span)["error.type"] == "unsupported_op" and "status" not in span, f"a client's mistake is no error of the server: {span}"


def unsampled_traces_and_probes_are_left_alone(server, collector):
    other = "1" * 32
    server.ask("GET", "/v1/devices", headers={"traceparent": f"00-{other}-{CLIENT_SPAN}-00"})
    server.ask("GET", "/livez")
    _, fields, _ = server.ask("GET", "/v1/meshes")
    until(lambda: collector.named("GET /v1/meshes", fields["traceparent"].split("-")[1]), "a later span")
    assert not collector.named("GET /v1/devices", other) and not collector.named("GET /livez")


def the_last_spans_are_sent_at_the_end(binary):
    collector = Collector()
    with Meshd(binary, "--otlp-endpoint", collector.url) as server:
        ok(server.ask("POST", "/v1/run", PROGRAM))
        server.stop()
    assert collector.named("POST /v1/run")


def a_collector_that_is_not_there_holds_nothing_up(binary):
    with Meshd(binary, "--otlp-endpoint", "http://127.0.0.1:9/v1/traces") as server:
        began = time.monotonic()
        for _ in range(20):
            ok(server.ask("POST", "/v1/run", PROGRAM))
        assert time.monotonic() - began < 30
        dropped = lambda: [line for line in server.ask("GET", "/metrics")[2].decode().splitlines()  # noqa: E731
                           if line.startswith('meshd_trace_spans_total{outcome="dropped"}') and float(line.split()[1]) > 0]
        until(dropped, "spans that were dropped are counted")


def main():
    collector = Collector()
    with Meshd(sys.argv[1], "--otlp-endpoint", collector.url) as server:
        for story in (a_run_is_a_span_with_its_stages, a_request_without_a_trace_begins_one, a_job_is_a_child_of_the_request_that_brought_it,
                      errors_are_marked, unsampled_traces_and_probes_are_left_alone):
            story(server, collector)
            print(story.__name__)
    for story in (the_last_spans_are_sent_at_the_end, a_collector_that_is_not_there_holds_nothing_up):
        story(sys.argv[1])
        print(story.__name__)


if __name__ == "__main__":
    main()
