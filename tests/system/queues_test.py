#!/usr/bin/env python3
"""Programs that talk to their clients while they run: infeed, outfeed, send, recv and live questions, over crashes."""
import signal
import sys
import threading
import time

from server import ok, refused_with as refused, run_stories, until

ASYNC = {"Prefer": "respond-async"}
F4 = "tensor<4xf32>"
TOKEN = "!stablehlo.token"


def infeed(name, token, types, queue=""):
    count = len(types) + 1
    return f'{name}:{count} = "stablehlo.infeed"({token}) <{{infeed_config = "{queue}"}}> : ({TOKEN}) -> ({", ".join([*types, TOKEN])})'


def outfeed(name, token, value, kind, queue=""):
    return f'{name} = "stablehlo.outfeed"({value}, {token}) <{{outfeed_config = "{queue}"}}> : ({kind}, {TOKEN}) -> {TOKEN}'


ONE = f"""func.func @main(%a: {F4}) -> {F4} {{
  %t = stablehlo.create_token : {TOKEN}
  {infeed("%0", "%t", [F4])}
  %1 = stablehlo.add %a, %0#0 : {F4}
  return %1 : {F4}
}}"""
# Takes n entries, gives the running sum after each of them.
LOOP = f"""func.func @main(%n: tensor<i32>) -> tensor<f32> {{
  %t = stablehlo.create_token : {TOKEN}
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %start = stablehlo.constant dense<0.0> : tensor<f32>
  %0:3 = stablehlo.while(%i = %zero, %s = %start, %k = %t) : tensor<i32>, tensor<f32>, {TOKEN} cond {{
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    {infeed("%x", "%k", ["tensor<f32>"], "in")}
    %y = stablehlo.add %s, %x#0 : tensor<f32>
    {outfeed("%u", "%x#1", "%y", "tensor<f32>", "out")}
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %y, %u : tensor<i32>, tensor<f32>, {TOKEN}
  }}
  return %0#1 : tensor<f32>
}}"""
# Sends to the host, waits for its answer.
ASK = f"""func.func @main(%a: {F4}) -> {F4} {{
  %t = stablehlo.create_token : {TOKEN}
  %0 = "stablehlo.send"(%a, %t) <{{channel_handle = #stablehlo.channel_handle<handle = 5, type = 2>, is_host_transfer = true}}> : ({F4}, {TOKEN}) -> {TOKEN}
  %1:2 = "stablehlo.recv"(%0) <{{channel_handle = #stablehlo.channel_handle<handle = 6, type = 3>, is_host_transfer = true}}> : ({TOKEN}) -> ({F4}, {TOKEN})
  return %1#0 : {F4}
}}"""
# Partition 0 sends to 1, 1 to 2, ...; the recv stands before the send.
RING = """module { sdy.mesh @mesh = <["x"=4]>
  func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
    %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<2xf32>) {
      %t = stablehlo.create_token : !stablehlo.token
      %r:2 = "stablehlo.recv"(%t) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, is_host_transfer = false, source_target_pairs = dense<[[0, 1], [1, 2], [2, 3]]> : tensor<3x2xi64>}> : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)
      %c = stablehlo.add %b, %b : tensor<2xf32>
      %d = stablehlo.add %c, %r#0 : tensor<2xf32>
      %s = "stablehlo.send"(%c, %t) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, is_host_transfer = false, source_target_pairs = dense<[[0, 1], [1, 2], [2, 3]]> : tensor<3x2xi64>}> : (tensor<2xf32>, !stablehlo.token) -> !stablehlo.token
      sdy.return %d : tensor<2xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  } }"""
# Every device takes its part and gives it doubled.
EACH = f"""module {{ sdy.mesh @mesh = <["x"=2]>
  func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {{
    %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{{"x"}}]>] out_shardings=[<@mesh, [{{"x"}}]>] manual_axes={{"x"}} (%b: tensor<2xf32>) {{
      %t = stablehlo.create_token : {TOKEN}
      {infeed("%x", "%t", ["tensor<2xf32>"])}
      %y = stablehlo.add %b, %x#0 : tensor<2xf32>
      {outfeed("%u", "%x#1", "%y", "tensor<2xf32>")}
      sdy.return %y : tensor<2xf32>
    }} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }} }}"""


def f32(data):
    shape = []
    inner = data
    while isinstance(inner, list):
        shape.append(len(inner))
        inner = inner[0]
    return {"dtype": "float32", "shape": shape, "data": data}


def session(s):
    return ok(s.ask("POST", "/v1/sessions"), 201)["id"]


def feed(s, at, *values, queue="", status=201, **more):
    return ok(s.ask("POST", f"/v1/sessions/{at}/infeed", {"queue": queue, "values": [f32(value) for value in values], **more}), status)


def start(s, at, text, arguments, **more):
    return ok(s.ask("POST", f"/v1/sessions/{at}/jobs", {"program": {"text": text}, "arguments": arguments, **more}, ASYNC), 202)["id"]


def job(s, job_id, wait=20):
    return ok(s.ask("GET", f"/v1/jobs/{job_id}?wait={wait}"))


def waits_for(s, job_id, what):
    deadline = time.time() + 20
    while time.time() < deadline:
        seen = job(s, job_id, 0)
        if seen.get("progress", {}).get("waits_for") == what:
            return seen
        assert seen["state"] in ("queued", "running"), seen
        time.sleep(0.01)
    raise AssertionError(f"the job does not wait for {what}: {seen}")


def out(s, at, queue="", after=0, wait=0):
    items = ok(s.ask("GET", f"/v1/sessions/{at}/outfeed?queue={queue}&after={after}&wait={wait}"))["items"]
    assert [item["number"] for item in items] == list(range(after + 1, after + 1 + len(items))), items
    return [item["values"][0]["data"] for item in items]


def a_request_brings_what_its_infeeds_take(s):
    run = lambda text, arguments, entries: s.ask("POST", "/v1/run", {"program": {"text": text}, "arguments": arguments, "infeed": entries})
    assert ok(run(ONE, [[1, 2, 3, 4]], [{"values": [f32([10, 20, 30, 40])]}]))["results"][0]["data"] == [11, 22, 33, 44]
    answer = ok(run(LOOP, [3], [{"queue": "in", "values": [f32(v)]} for v in (1.0, 2.0, 4.0, 8.0)]))
    assert answer["results"][0]["data"] == 7.0
    assert [(e["effect"], e["name"], e["number"], e["values"][0]["data"]) for e in answer["effects"]] == [
        ("outfeed", "out", 1, 1.0), ("outfeed", "out", 2, 3.0), ("outfeed", "out", 3, 7.0)]
    assert "1 entries" in answer["warnings"][0], answer
    refused(run(LOOP, [3], [{"queue": "in", "values": [f32(1.0)]}]), 422, "entry 2", "queue 'in'")
    refused(run(ONE, [[1, 2, 3, 4]], []), 422, "entry 1")
    refused(run(ONE, [[1, 2, 3, 4]], [{"values": [f32([1, 2, 3])]}]), 422, "3xf32", "4xf32")
    refused(run(ONE, [[1, 2, 3, 4]], [{"queue": "other", "values": [f32([1, 2, 3, 4])]}]), 422, "/infeed/0/queue", "takes from ''")
    refused(run("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }", [1], [{"values": [f32(1.0)]}]), 422, "no infeed")
    refused(run(ONE, [[1, 2, 3, 4]], [{"values": [f32(1.0)], "parts": []}, {"value": []}, 3]), 422, "/infeed/0/parts", "/infeed/1/value", "/infeed/2")


def a_job_waits_until_it_is_fed(s):
    at = session(s)
    waiting = start(s, at, ONE, [[1, 2, 3, 4]])
    assert "infeed" in waits_for(s, waiting, {"infeed": ""})["progress"]["op"]
    assert feed(s, at, [1, 1, 1, 1]) == {"queue": "", "number": 1}
    done = job(s, waiting)
    assert done["state"] == "done" and done["answer"]["results"][0]["data"] == [2, 3, 4, 5], done
    # fed before it starts
    feed(s, at, [5, 5, 5, 5])
    answer = ok(s.ask("POST", f"/v1/sessions/{at}/jobs", {"program": {"text": ONE}, "arguments": [[0, 0, 0, 0]]}))
    assert answer["results"][0]["data"] == [5, 5, 5, 5]
    assert ok(s.ask("GET", f"/v1/sessions/{at}/infeed"))["items"] == [{"queue": "", "last": 2, "waiting": 0, "bytes": 0}]
    long = "q" * 256
    refused(s.ask("POST", f"/v1/sessions/{at}/infeed", {"queue": long, "values": [f32(1.0)]}), 422, "/queue", "255 characters, got 256")
    for method, route in (("GET", "outfeed"), ("DELETE", "infeed")):
        refused(s.ask(method, f"/v1/sessions/{at}/{route}?queue={long}"), 422, "queue", "255 characters, got 256")
        ok(s.ask(method, f"/v1/sessions/{at}/{route}?queue={'%C3%A9' * 255}"))
    # the request's own entries come first
    feed(s, at, 100.0, queue="in")
    answer = ok(s.ask("POST", f"/v1/sessions/{at}/jobs", {"program": {"text": LOOP}, "arguments": [2], "infeed": [{"queue": "in", "values": [f32(1.0)]}]}))
    assert [effect["values"][0]["data"] for effect in answer["effects"]] == [1.0, 101.0]


def a_stream_goes_in_and_out_while_the_program_runs(s):
    at = session(s)
    running = start(s, at, LOOP, [5])
    total = 0.0
    for n in range(5):
        waits_for(s, running, {"infeed": "in"})
        assert out(s, at, "out", after=n) == []
        answers = []
        reader = threading.Thread(target=lambda n=n: answers.extend(out(s, at, "out", after=n, wait=30)))
        reader.start()
        feed(s, at, float(n + 1), queue="in")
        total += n + 1
        reader.join(40)
        assert answers == [total], (n, answers)
        assert job(s, running, 0)["state"] == "running" or n == 4
    assert job(s, running)["answer"]["results"][0]["data"] == total
    log = ok(s.ask("GET", f"/v1/sessions/{at}/effects"))["items"]
    assert [(e["sequence"], e["number"], e["effect"], e["name"]) for e in log] == [(n, n, "outfeed", "out") for n in range(1, 6)]
    assert [effect["sequence"] for effect in job(s, running)["answer"]["effects"]] == [1, 2, 3, 4, 5]


def host_transfers_are_queues_too(s):
    at = session(s)
    asking = start(s, at, ASK, [[1, 2, 3, 4]])
    assert out(s, at, "channel_5", wait=30) == [[1, 2, 3, 4]]
    feed(s, at, [9, 8, 7, 6], queue="channel_6")
    assert job(s, asking)["answer"]["results"][0]["data"] == [9, 8, 7, 6]


def devices_of_a_program_send_to_each_other(s):
    answer = ok(s.ask("POST", "/v1/run", {"program": {"text": RING}, "arguments": [list(range(8))]}))
    doubled = [2.0 * i for i in range(8)]
    assert answer["results"][0]["data"] == [doubled[i] + (doubled[i - 2] if i >= 2 else 0) for i in range(8)]
    run = lambda text: s.ask("POST", "/v1/run", {"program": {"text": text}, "arguments": [list(range(8))]})
    lines = RING.splitlines()
    refused(run("\n".join(line for line in lines if '"stablehlo.send"' not in line)), 422, "channel 1", "recv", "does not come")
    lonely = "\n".join(line for line in lines if '"stablehlo.recv"' not in line).replace("%c, %r#0", "%c, %c")
    refused(run(lonely), 422, "channel 1", "send without a recv")
    waits = RING.replace('"stablehlo.send"(%c', '"stablehlo.send"(%d')
    refused(run(waits), 422, "channel 1", "waits for this recv")
    nobody = RING.replace(", source_target_pairs = dense<[[0, 1], [1, 2], [2, 3]]> : tensor<3x2xi64>", "")
    refused(run(nobody), 422, "source_target_pairs are missing")
    other = RING.replace("[1, 2], [2, 3]]", "[1, 2], [3, 2]]", 1)
    refused(run(other), 422, "differ from those of the send")
    alone = nobody.replace('"x"=4', '"x"=1').replace("tensor<2xf32>", "tensor<8xf32>")
    assert ok(run(alone))["results"][0]["data"] == [4.0 * i for i in range(8)], "one device may send to itself"


def every_device_gets_its_part(s):
    parts = lambda first, second: [{"device": 0, "values": [f32(first)]}, {"device": 1, "values": [f32(second)]}]
    run = lambda entry: s.ask("POST", "/v1/run", {"program": {"text": EACH}, "arguments": [[1, 2, 3, 4]], "infeed": [entry]})
    answer = ok(run({"parts": parts([10, 20], [30, 40])}))
    assert answer["results"][0]["data"] == [11, 22, 33, 44]
    assert [(e["device"], e["values"][0]["data"]) for e in answer["effects"]] == [(0, [11, 22]), (1, [33, 44])]
    assert ok(run({"values": [f32([100, 200])]}))["results"][0]["data"] == [101, 202, 103, 204], "one value for all of them"
    refused(run({"parts": parts([10, 20], [30, 40])[:1]}), 422, "1 parts", "2 devices")
    refused(run({"parts": [{"device": 0, "values": [f32([1, 2])]}, {"device": 7, "values": [f32([1, 2])]}]}), 422, "no part for device 1")
    refused(run({"parts": parts([1, 2, 3], [1, 2])}), 422, "part of device 0", "3xf32")
    refused(run({"parts": parts([1, 2], [1, 2])[:1] * 2}), 422, "fed twice")


def feeding_again_feeds_once(s):
    at = session(s)
    assert feed(s, at, 1.0, number=1)["number"] == 1
    assert feed(s, at, 1.0, number=1, status=200)["number"] == 1
    refused(s.ask("POST", f"/v1/sessions/{at}/infeed", {"values": [f32(2.0)], "number": 1}), 409, "the next one has number 2")
    refused(s.ask("POST", f"/v1/sessions/{at}/infeed", {"values": [f32(2.0)], "number": 3}), 409)
    assert feed(s, at, 2.0, number=2)["number"] == 2
    assert ok(s.ask("GET", f"/v1/sessions/{at}/infeed"))["items"][0]["waiting"] == 2
    refused(s.ask("POST", f"/v1/sessions/{at}/infeed", {"queue": "x" * 300, "values": [f32(2.0)]}), 422, "/queue")
    refused(s.ask("POST", f"/v1/sessions/{at}/infeed", {"queue": "x"}), 422, "values")


def failed_jobs_leave_the_queue_as_it_was(s):
    at = session(s)
    feed(s, at, [1, 2, 3])
    refused(s.ask("POST", f"/v1/sessions/{at}/jobs", {"program": {"text": ONE}, "arguments": [[1, 2, 3, 4]]}), 422, "entry 1", "3xf32")
    assert ok(s.ask("GET", f"/v1/sessions/{at}/infeed"))["items"][0]["waiting"] == 1
    assert ok(s.ask("DELETE", f"/v1/sessions/{at}/infeed")) == {"queue": "", "dropped": 1}
    feed(s, at, [1, 1, 1, 1])
    cancelled = start(s, at, LOOP, [2])
    waits_for(s, cancelled, {"infeed": "in"})
    feed(s, at, 1.0, queue="in")
    assert out(s, at, "out", wait=30) == [1.0]
    refused(s.ask("DELETE", f"/v1/sessions/{at}/infeed?queue=in"), 409, cancelled)
    ok(s.ask("DELETE", f"/v1/jobs/{cancelled}"), 202)
    assert job(s, cancelled)["state"] == "cancelled"
    assert out(s, at, "out") == [1.0], "what was shown stays"
    waiting = {item["queue"]: item["waiting"] for item in ok(s.ask("GET", f"/v1/sessions/{at}/infeed"))["items"]}
    assert waiting == {"": 1, "in": 1}
    answer = ok(s.ask("POST", f"/v1/sessions/{at}/jobs", {"program": {"text": ONE}, "arguments": [[0, 0, 0, 0]]}))
    assert answer["results"][0]["data"] == [1, 1, 1, 1]


def jobs_take_in_the_order_of_the_session(s):
    at = session(s)
    jobs = [start(s, at, LOOP, [2], mesh={"axis_names": ["x"], "devices": [n]}) for n in range(6)]
    for n in range(12):
        feed(s, at, float(n), queue="in")
    for n, one in enumerate(jobs):
        assert job(s, one)["answer"]["results"][0]["data"] == 4 * n + 1, n
    assert out(s, at, "out") == [value for n in range(6) for value in (2.0 * n, 4.0 * n + 1)]


def many_jobs_may_wait(s):
    """More than there are threads for jobs in the background, all on one device, and others run on it all the same."""
    sessions = [session(s) for _ in range(12)]
    device = {"axis_names": ["x"], "devices": [0]}
    waiting = [start(s, at, ONE, [[n, n, n, n]], mesh=device) for n, at in enumerate(sessions)]
    for one in waiting:
        waits_for(s, one, {"infeed": ""})
    double = "func.func @main(%a: tensor<f32>) -> tensor<f32> { %0 = stablehlo.add %a, %a : tensor<f32> return %0 : tensor<f32> }"
    assert ok(s.ask("POST", "/v1/run", {"program": {"text": double}, "arguments": [2.0], "mesh": device}))["results"][0]["data"] == 4.0
    for n, at in reversed(list(enumerate(sessions))):
        feed(s, at, [1, 1, 1, 1])
        assert job(s, waiting[n])["answer"]["results"][0]["data"] == [n + 1] * 4


def what_was_acknowledged_outlives_the_server(s):
    at = session(s)
    for n in range(3):
        feed(s, at, float(n + 1), queue="in")
    running = start(s, at, LOOP, [5])
    shown = []
    while len(shown) < 3:
        shown += out(s, at, "out", after=len(shown), wait=30)
    assert shown == [1.0, 3.0, 6.0]
    s.stop(signal.SIGKILL)
    s.start()
    assert out(s, at, "out") == [1.0, 3.0, 6.0], "what was shown stands"
    waits_for(s, running, {"infeed": "in"})
    feed(s, at, 4.0, queue="in", number=4)
    assert out(s, at, "out", after=3, wait=30) == [10.0]
    started = time.time()
    assert s.stop() == 0 and time.time() - started < 14, "a job that waits for its client does not hold up the end"
    s.start()
    seen = waits_for(s, running, {"infeed": "in"})
    assert seen["attempt"] == 2, "a crash counts, a stop does not"
    feed(s, at, 5.0, queue="in")
    assert job(s, running)["answer"]["results"][0]["data"] == 15.0
    assert out(s, at, "out") == [1.0, 3.0, 6.0, 10.0, 15.0]
    log = ok(s.ask("GET", f"/v1/sessions/{at}/effects"))["items"]
    assert [entry["sequence"] for entry in log] == [1, 2, 3, 4, 5] and {entry["job"] for entry in log} == {running}
    assert ok(s.ask("GET", f"/v1/sessions/{at}/infeed"))["items"] == [{"queue": "in", "last": 5, "waiting": 0, "bytes": 0}]


def closing_a_session_ends_what_waits(s):
    at = session(s)
    answers = []
    asking = threading.Thread(target=lambda: answers.append(s.ask("POST", f"/v1/sessions/{at}/jobs", {"program": {"text": ONE}, "arguments": [[1, 2, 3, 4]]})))
    asking.start()
    until(lambda: any("progress" in ok(s.ask("GET", f"/v1/jobs/{item['id']}")) for item in ok(s.ask("GET", f"/v1/sessions/{at}/jobs"))["items"]),
          "the job runs")
    assert s.ask("DELETE", f"/v1/sessions/{at}")[0] == 204
    asking.join(30)
    refused(answers[0], 409, "closed")
    refused(s.ask("POST", f"/v1/sessions/{at}/infeed", {"values": [f32(1.0)]}), 404)


def stored_arrays_can_be_fed(s):
    at = session(s)
    array = ok(s.ask("POST", "/v1/arrays", {"dtype": "float32", "shape": [4], "data": [4, 3, 2, 1]}), 201)["id"]
    ok(s.ask("POST", f"/v1/sessions/{at}/infeed", {"values": [{"array": array}]}), 201)
    ok(s.ask("DELETE", f"/v1/arrays/{array}"), 204)
    answer = ok(s.ask("POST", f"/v1/sessions/{at}/jobs", {"program": {"text": ONE}, "arguments": [[0, 0, 0, 0]]}))
    assert answer["results"][0]["data"] == [4, 3, 2, 1], "what was fed is a copy"
    refused(s.ask("POST", f"/v1/sessions/{at}/infeed", {"values": [{"array": array}]}), 404)


CALL = ('stablehlo.custom_call @xla_ffi_python_cpu_callback({operands}) {{backend_config = "", has_side_effect = {effect}, mhlo.backend_config = {{index = 0 : ui64}}}} '
        ': ({types}) -> {results}')
# Asks for each i below n what to add; the order is that of tokens.
QUIZ = """func.func @main(%n: tensor<i32>) -> tensor<f32> {
  %t = stablehlo.create_token : !stablehlo.token
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %start = stablehlo.constant dense<0.0> : tensor<f32>
  %0:3 = stablehlo.while(%i = %zero, %s = %start, %k = %t) : tensor<i32>, tensor<f32>, !stablehlo.token cond {
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %x:2 = CALL
    %y = stablehlo.add %s, %x#1 : tensor<f32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %y, %x#0 : tensor<i32>, tensor<f32>, !stablehlo.token
  }
  return %0#1 : tensor<f32>
}""".replace("CALL", CALL.format(operands="%k, %i, %s", effect="true", types="!stablehlo.token, tensor<i32>, tensor<f32>", results="(!stablehlo.token, tensor<f32>)"))
LIVE = {"0": {"effect": "callback", "name": "ask", "live": True}}


def answer_to(s, at, number, value, status=200):
    return s.ask("POST", f"/v1/sessions/{at}/callbacks/{number}", {"values": [value]})


def programs_ask_their_client(s):
    at = session(s)
    quiz = start(s, at, QUIZ, [3], callbacks=LIVE)
    total = 0.0
    for turn in range(3):
        asked = ok(s.ask("GET", f"/v1/sessions/{at}/callbacks/{turn + 1}", None, {"Prefer": "wait=30"}))
        assert [value["data"] for value in asked["values"]] == [turn, total], asked
        assert (asked["state"], asked["job"], asked["callback"], asked["name"], asked["ordered"]) == ("open", quiz, 0, "ask", True)
        assert asked["expected"] == [{"dtype": "float32", "shape": []}]
        assert [item["number"] for item in ok(s.ask("GET", f"/v1/sessions/{at}/callbacks?wait=5"))["items"]] == [turn + 1]
        waits_for(s, quiz, {"callback": turn + 1})
        refused(answer_to(s, at, turn + 1, [1, 2]), 422, "/values/0")
        refused(answer_to(s, at, turn + 1, f32([1.0])), 422, "/values/0", "1xf32")
        refused(s.ask("POST", f"/v1/sessions/{at}/callbacks/{turn + 1}", {"values": []}), 422, "expected 1 values")
        done = ok(answer_to(s, at, turn + 1, f32(turn + 0.5)))
        assert done["state"] == "answered" and done["answer"][0]["data"] == turn + 0.5
        assert ok(answer_to(s, at, turn + 1, turn + 0.5)) == done, "again, and without the dtype"
        refused(answer_to(s, at, turn + 1, 9.0), 409, "another reply")
        total += turn + 0.5
    done = job(s, quiz)
    assert done["answer"]["results"][0]["data"] == total
    assert [[value["data"] for value in effect["values"]] for effect in done["answer"]["effects"]] == [[0, 0.0], [1, 0.5], [2, 2.0]]
    assert ok(s.ask("GET", f"/v1/sessions/{at}/callbacks"))["items"] == []
    refused(s.ask("GET", f"/v1/sessions/{at}/callbacks/4"), 404, "no callback request 4")
    refused(s.ask("GET", f"/v1/sessions/{at}/callbacks/x"), 404)
    refused(s.ask("GET", f"/v1/sessions/{at}/callbacks?wait=-1"), 422, "wait")


def prepared_answers_come_before_questions(s):
    at = session(s)
    both = {"0": {**LIVE["0"], "answers": [[f32(1.0)], [f32(2.0)]]}}
    quiz = start(s, at, QUIZ, [3], callbacks=both)
    asked = ok(s.ask("GET", f"/v1/sessions/{at}/callbacks?wait=30"))["items"]
    assert [[value["data"] for value in question["values"]] for question in asked] == [[2, 3.0]]
    ok(answer_to(s, at, 1, 4.0))
    assert job(s, quiz)["answer"]["results"][0]["data"] == 7.0


def questions_need_a_session_and_an_answer(s):
    run = lambda text, callbacks, arguments: s.ask("POST", "/v1/run", {"program": {"text": text}, "arguments": arguments, "callbacks": callbacks})
    refused(run(QUIZ, LIVE, [1]), 422, "/callbacks/0/live", "session")
    refused(run(QUIZ, {"0": {"effect": "callback"}}, [1]), 422, "/callbacks/0", "live")
    log = ("func.func @main(%n: tensor<i32>) -> tensor<i32> {\n  " + CALL.format(operands="%n", effect="true", types="tensor<i32>", results="()")
           + "\n  return %n : tensor<i32>\n}")
    refused(run(log, {"0": {"effect": "log", "live": True}}, [1]), 422, "/callbacks/0/live", "nothing to answer")


def withdrawn_questions_take_no_answer(s):
    at = session(s)
    quiz = start(s, at, QUIZ, [1], callbacks=LIVE)
    waits_for(s, quiz, {"callback": 1})
    ok(s.ask("DELETE", f"/v1/jobs/{quiz}"), 202)
    assert job(s, quiz)["state"] == "cancelled"
    assert ok(s.ask("GET", f"/v1/sessions/{at}/callbacks"))["items"] == []
    assert ok(s.ask("GET", f"/v1/sessions/{at}/callbacks/1"))["state"] == "withdrawn"
    refused(answer_to(s, at, 1, 1.0), 409, "withdrawn")
    again = start(s, at, QUIZ, [1], callbacks=LIVE)
    waits_for(s, again, {"callback": 2})
    ok(answer_to(s, at, 2, 1.0))
    assert job(s, again)["state"] == "done"


def answers_outlive_the_server(s):
    at = session(s)
    quiz = start(s, at, QUIZ, [4], callbacks=LIVE)
    for turn in range(2):
        waits_for(s, quiz, {"callback": turn + 1})
        ok(answer_to(s, at, turn + 1, 10.0 ** turn))
    waits_for(s, quiz, {"callback": 3})
    before = ok(s.ask("GET", f"/v1/sessions/{at}/callbacks/3"))
    s.stop(signal.SIGKILL)
    s.start()
    waits_for(s, quiz, {"callback": 3})
    assert ok(s.ask("GET", f"/v1/sessions/{at}/callbacks/3")) == before, "the same question, under the same number"
    ok(answer_to(s, at, 3, 100.0))
    waits_for(s, quiz, {"callback": 4})
    # answered, then killed before or while the program uses it
    ok(answer_to(s, at, 4, 1000.0))
    s.stop(signal.SIGKILL)
    s.start()
    done = job(s, quiz, 40)
    assert done["state"] == "done" and done["answer"]["results"][0]["data"] == 1111.0, done
    assert [effect["values"][0]["data"] for effect in done["answer"]["effects"]] == [0, 1, 2, 3]
    assert len(ok(s.ask("GET", f"/v1/sessions/{at}/effects"))["items"]) == 4


STORIES = [programs_ask_their_client, prepared_answers_come_before_questions, questions_need_a_session_and_an_answer,
           withdrawn_questions_take_no_answer, answers_outlive_the_server,
           a_request_brings_what_its_infeeds_take, a_job_waits_until_it_is_fed, a_stream_goes_in_and_out_while_the_program_runs,
           host_transfers_are_queues_too, devices_of_a_program_send_to_each_other, every_device_gets_its_part, feeding_again_feeds_once,
           failed_jobs_leave_the_queue_as_it_was, jobs_take_in_the_order_of_the_session, many_jobs_may_wait,
           what_was_acknowledged_outlives_the_server, closing_a_session_ends_what_waits, stored_arrays_can_be_fed]


sys.exit(run_stories(STORIES))
