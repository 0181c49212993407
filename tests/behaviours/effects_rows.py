#!/usr/bin/env python3
"""Effects: what a program tells the outside, in which order, and where it may."""
import signal
import threading
import time

from harness import ASYNC, DEVICES, floats, grid, main, mesh, ok, own_server, refused, run, upload
from programs import LOG, MAXIMAL, SLOW_LOG, call, sum_log, two_on_every_device
from server import until  # the harness has its folder on the path

A_WHILE = 50000
PURE = "func.func @main(%a: tensor<i32>) -> tensor<i32> { return %a : tensor<i32> }"
TWO = ("func.func @main(%t: !stablehlo.token {jax.token = true}, %n: tensor<i32>) -> (!stablehlo.token {jax.token = true}) {\n"
       f"  %u = {call([('n', 'tensor<i32>')], token='t', index=0)}\n  {call([('n', 'tensor<i32>')], index=1)}\n"
       "  return %u : !stablehlo.token\n}")


def session(s):
    return ok(s.ask("POST", "/v1/sessions"), 201)["id"]


def job(s, at, program, arguments, name="log", devices=None, headers=None, status=200, kind="log", **more):
    body = {"program": {"text": program}, "arguments": arguments, "callbacks": {"0": {"effect": kind, "name": name}},
            "results": {"encoding": "none"}, **more}
    if devices is not None:
        body["mesh"] = {"axis_names": ["x"], "devices": devices}
    return ok(s.ask("POST", f"/v1/sessions/{at}/jobs", body, headers), status)


def log(s, at):
    return ok(s.ask("GET", f"/v1/sessions/{at}/effects?limit=1000"))["items"]


def barrier(s, at):
    return ok(s.ask("POST", f"/v1/sessions/{at}/barrier"))


def behaviour_E1_a_program_lists_its_effects(s):
    store = lambda text: s.ask("POST", "/v1/programs", {"format": "stablehlo", "text": text})[2]
    assert store(PURE)["effects"] == []
    listed = ok(s.ask("GET", "/v1/programs/" + store(TWO)["id"]))["effects"]
    assert [(effect["callback"], effect["ordered"]) for effect in listed] == [(0, True), (1, False)], listed
    assert [effect["line"] for effect in listed] == [2, 3], "an effect is an instance of an op"


def behaviour_E2_effects_fire_though_nobody_uses_their_results(s):
    text = ("func.func @main(%n: tensor<i32>) -> tensor<i32> {\n"
            f"  %unused = {call([('n', 'tensor<i32>')], results=['tensor<i32>'])}\n  return %n : tensor<i32>\n}}")
    answer = run(s, text, [5], callbacks={"0": {"effect": "callback", "name": "ask", "answers": [[{"dtype": "int32", "shape": [], "data": 1}]]}})
    assert [effect["values"][0]["data"] for effect in answer["effects"]] == [5]


def behaviour_E4_tokens_are_hidden_from_callers(s):
    stored = s.ask("POST", "/v1/programs", {"format": "stablehlo", "text": LOG})[2]
    assert len(stored["arguments"]) == 1 and len(stored["results"]) == 1
    answer = run(s, LOG, [3])
    assert answer["results"][0]["data"] == 3 and len(answer["results"]) == 1 and answer["effects"][0]["values"][0]["data"] == 3
    bare = LOG.replace(" {jax.token = true}", "")
    assert run(s, bare, [4])["effects"][0]["values"][0]["data"] == 4, "without the mark, too"


def behaviour_E5_tokens_keep_effects_in_program_order(s):
    lines = [f"  %t{i + 1} = {call([('n', 'tensor<i32>')], token=f't{i}', index=i)}" for i in range(12)]
    text = ("func.func @main(%t0: !stablehlo.token {jax.token = true}, %n: tensor<i32>) -> (!stablehlo.token {jax.token = true}) {\n"
            + "\n".join(lines) + "\n  return %t12 : !stablehlo.token\n}")
    for _ in range(5):
        assert [effect["name"] for effect in run(s, text, [1])["effects"]] == [f"callback_{i}" for i in range(12)]


def behaviour_E6_sessions_have_tokens_of_their_own(s):
    one, two = session(s), session(s)
    for n in range(3):
        job(s, one, LOG, [n])
    job(s, two, LOG, [9])
    assert [entry["sequence"] for entry in log(s, one)] == [1, 2, 3] and [entry["sequence"] for entry in log(s, two)] == [1]
    tokens = lambda at: ok(s.ask("GET", f"/v1/sessions/{at}"))["tokens"]["log"]
    assert (tokens(one), tokens(two)) == (3, 1)


def behaviour_E7_order_holds_over_changing_devices(s):
    at = session(s)
    for n in range(8):
        devices = [n % 7, n % 7 + 1]
        job(s, at, two_on_every_device(2), [[10 * n, 10 * n + 1]], devices=devices, headers=ASYNC, status=202,
            callbacks={"0": {"effect": "log", "name": "a"}, "1": {"effect": "log", "name": "b"}})
    barrier(s, at)
    entries = log(s, at)
    assert len(entries) == 32
    for n in range(8):
        four = entries[4 * n:4 * n + 4]
        assert [entry["values"][0]["data"][0] for entry in four] == [10 * n, 10 * n + 1, 20 * n, 20 * n + 2], (n, four)


def behaviour_E8_a_slow_effect_does_not_hold_up_another_job(s):
    """Shown in the order of the session, executed as soon as the devices are free."""
    at = session(s)
    slow = job(s, at, SLOW_LOG, [2000000000], devices=[0], headers=ASYNC, status=202, name="slow")["id"]
    fast = job(s, at, LOG, [1], devices=[1], headers=ASYNC, status=202, name="fast")["id"]
    until(lambda: ok(s.ask("GET", f"/v1/jobs/{fast}")).get("progress", {}).get("steps_done", 0) >= 1, "the fast job's first step")
    seen = ok(s.ask("GET", f"/v1/jobs/{fast}"))
    assert ok(s.ask("GET", f"/v1/jobs/{slow}"))["state"] == "running", seen
    assert log(s, at) == [], "but nothing is visible before its turn"
    ok(s.ask("DELETE", f"/v1/jobs/{slow}"), 202)
    barrier(s, at)
    assert [entry["name"] for entry in log(s, at)] == ["fast"]


def behaviour_E9_slow_and_fast_jobs_log_in_the_order_of_submission(s):
    at = session(s)
    for _ in range(3):
        job(s, at, SLOW_LOG, [A_WHILE], devices=[0], headers=ASYNC, status=202, name="f")
        job(s, at, LOG, [0], devices=[1], headers=ASYNC, status=202, name="g")
    barrier(s, at)
    assert [entry["name"] for entry in log(s, at)] == ["f", "g"] * 3


def behaviour_E10_a_barrier_returns_when_all_is_visible(s):
    at = session(s)
    for n in range(4):
        job(s, at, SLOW_LOG, [A_WHILE], headers=ASYNC, status=202)
    barrier(s, at)
    assert len(log(s, at)) == 4


def behaviour_E11_a_barrier_waits_for_unordered_effects_too(s):
    text = f"func.func @main(%n: tensor<i32>) -> tensor<i32> {{\n  {call([('n', 'tensor<i32>')])}\n  return %n : tensor<i32>\n}}"
    at = session(s)
    for n in range(6):
        job(s, at, text, [n], devices=[n % 2], headers=ASYNC, status=202)
    barrier(s, at)
    assert sorted(entry["values"][0]["data"] for entry in log(s, at)) == list(range(6))
    assert all(entry["ordered"] is False for entry in log(s, at))


def behaviour_E12_a_second_barrier_returns_at_once(s):
    at = session(s)
    job(s, at, SLOW_LOG, [A_WHILE], headers=ASYNC, status=202)
    barrier(s, at)
    started = time.time()
    document = barrier(s, at)
    assert time.time() - started < 2 and document["last_sequence"] == 1


@own_server()
def behaviour_E13_shutdown_waits_for_effects_that_are_under_way(s):
    at = session(s)
    accepted = job(s, at, SLOW_LOG, [A_WHILE], headers=ASYNC, status=202)["id"]
    until(lambda: ok(s.ask("GET", f"/v1/jobs/{accepted}"))["state"] != "queued", "the job runs")
    assert s.stop(signal.SIGTERM) == 0
    s.start()
    entries = log(s, at)
    assert [entry["job"] for entry in entries] == [accepted], entries
    assert ok(s.ask("GET", f"/v1/jobs/{accepted}"))["state"] == "done"


def behaviour_E16_a_maximal_effect_happens_once(s):
    answer = run(s, sum_log(8, MAXIMAL), [list(range(8))])
    assert [effect["values"][0]["data"] for effect in answer["effects"]] == [28]


def behaviour_E21_without_effects_the_set_is_empty(s):
    assert s.ask("POST", "/v1/programs", {"format": "stablehlo", "text": PURE})[2]["effects"] == []
    assert run(s, PURE, [1])["effects"] == []


def behaviour_E23_a_barrier_is_its_sessions_own(s):
    busy, idle = session(s), session(s)
    running = job(s, busy, SLOW_LOG, [2000000000], headers=ASYNC, status=202)["id"]
    started = time.time()
    barrier(s, idle)
    assert time.time() - started < 5 and ok(s.ask("GET", f"/v1/jobs/{running}"))["state"] in ("queued", "running")
    ok(s.ask("DELETE", f"/v1/jobs/{running}"), 202)
    barrier(s, busy)


def behaviour_E3_the_kinds_of_effects_are_declared(s):
    kinds = {kind["name"]: kind for kind in ok(s.ask("GET", "/v1/effects"))["items"]}
    assert {"log", "print", "callback"} <= set(kinds) and all(kind["ordered"] is True for kind in kinds.values())
    assert kinds["log"]["shardable"] is True and kinds["print"]["shardable"] is False and kinds["callback"]["answers"] is True


def behaviour_E14_ordered_effects_that_are_not_shardable_need_one_device(s):
    body = {"program": {"text": two_on_every_device(2)}, "arguments": [[1, 2]], "mesh": {"axis_names": ["x"], "devices": [0, 1]},
            "callbacks": {"0": {"effect": "print", "name": "a"}}}
    refused(s.ask("POST", "/v1/run", body), 422, "not supported for more than 1 device", "`print`")
    alone = {**body, "program": {"text": two_on_every_device(1)}, "arguments": [[1]], "mesh": {"axis_names": ["x"], "devices": [0]}}
    assert ok(s.ask("POST", "/v1/run", alone))["effects"][0]["effect"] == "print"


def behaviour_E15_shardable_effects_are_ordered_by_point_on_each_shard(s):
    answer = run(s, two_on_every_device(4), [[10, 20, 30, 40]], mesh={"axis_names": ["x"], "devices": [5, 4, 3, 2]})
    events = answer["effects"]
    assert len(events) == 8
    for shard in range(4):
        own = [event for event in events if event["shard"] == shard]
        assert [event["values"][0]["data"] for event in own] == [[10 * shard + 10], [20 * shard + 20]], own
        assert own[0]["point"] < own[1]["point"] and {event["device"] for event in own} == {5 - shard}
    at = session(s)
    job(s, at, two_on_every_device(2), [[1, 2]], devices=[1, 0])
    assert [(entry["point"], entry["device"]) for entry in log(s, at)] == [(0, 1), (0, 0), (1, 1), (1, 0)]


def behaviour_E17_kinds_that_may_not_stand_in_control_flow(s):
    text = ("func.func @main(%n: tensor<i32>) -> tensor<i32> {\n  %zero = stablehlo.constant dense<0> : tensor<i32>\n"
            "  %one = stablehlo.constant dense<1> : tensor<i32>\n  %m = stablehlo.while(%i = %zero) : tensor<i32> cond {\n"
            "    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n    stablehlo.return %p : tensor<i1>\n"
            f"  }} do {{\n    {call([('i', 'tensor<i32>')])}\n    %j = stablehlo.add %i, %one : tensor<i32>\n    stablehlo.return %j : tensor<i32>\n  }}\n"
            "  return %m : tensor<i32>\n}")
    bound = lambda kind: {"program": {"text": text}, "arguments": [2], "callbacks": {"0": {"effect": kind, "name": "x"}}}
    refused(s.ask("POST", "/v1/run", bound("record")), 422, "Effects not supported", "`record`")
    assert len(ok(s.ask("POST", "/v1/run", bound("print")))["effects"]) == 2
    assert len(run(s, LOG, [2], callbacks={"0": {"effect": "record", "name": "x"}})["effects"]) == 1


def behaviour_E18_kinds_that_cannot_be_lowered(s):
    refused(s.ask("POST", "/v1/run", {"program": {"text": LOG}, "arguments": [2], "callbacks": {"0": {"effect": "outfeed", "name": "x"}}}), 422,
            "Cannot lower", "with effects", "`outfeed`")


def behaviour_E19_a_program_lists_what_it_does_to_its_inputs(s):
    text = ("func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<4xf32>, %unused: tensor<4xf32>, %c: tensor<4xf32> {jax.buffer_donor = true})"
            " -> tensor<4xf32> { %0 = stablehlo.add %a, %b : tensor<4xf32> return %0 : tensor<4xf32> }")
    made = s.ask("POST", "/v1/programs", {"format": "stablehlo", "text": text})[2]
    assert made["input_effects"] == [{"index": 0, "kind": "read"}, {"index": 0, "kind": "write"}, {"index": 1, "kind": "read"}, {"index": 3, "kind": "write"}]
    assert ok(s.ask("GET", "/v1/programs/" + made["id"]))["input_effects"] == made["input_effects"]


def behaviour_E20_kinds_have_kinds(s):
    names = lambda query="": [kind["name"] for kind in ok(s.ask("GET", "/v1/effects" + query))["items"]]
    everything = names()
    inside, outside = names("?in=io"), names("?not_in=io")
    assert {"io", "log", "callback"} <= set(inside) and {"debug", "print"} <= set(outside)
    assert [name for name in everything if name in inside] == inside and [name for name in everything if name not in inside] == outside
    refused(s.ask("GET", "/v1/effects?in=nothing"), 422, "nothing")
    refused(s.ask("POST", "/v1/run", {"program": {"text": LOG}, "arguments": [2], "callbacks": {"0": {"effect": "io", "name": "x"}}}), 422, "Cannot lower")

def behaviour_E22_a_token_must_be_given_on(s):
    dropped = LOG.replace("return %u, %n", "return %t, %n")
    refused(s.ask("POST", "/v1/programs", {"format": "stablehlo", "text": dropped}), 422, "token", "line 2")
    first = call([("n", "tensor<i32>")], token="t")
    twice = ("func.func @main(%t: !stablehlo.token {jax.token = true}, %n: tensor<i32>) -> (!stablehlo.token {jax.token = true}) {\n"
             f"  %u = {first}\n  %v = {call([('n', 'tensor<i32>')], token='t', index=1)}\n  return %v : !stablehlo.token\n}}")
    refused(s.ask("POST", "/v1/programs", {"format": "stablehlo", "text": twice}), 422, "goes nowhere", "line 2")
    swapped = twice.replace(f"%v = {call([('n', 'tensor<i32>')], token='t', index=1)}", f"%v = {call([('n', 'tensor<i32>')], token='u', index=1)}")
    wrong = swapped.replace("return %v", "return %u")
    refused(s.ask("POST", "/v1/programs", {"format": "stablehlo", "text": wrong}), 422, "token")
    assert s.ask("POST", "/v1/programs", {"format": "stablehlo", "text": swapped})[0] in (200, 201)


main(globals())
