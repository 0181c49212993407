"""The checker on histories made by hand: a good one, and for each rule the same with one thing wrong."""
import copy
import sys

from checker import check
from model import donated, reference, updated
from register import linearizable

A, B = [1, 2, 3, 4], [5, 5, 5, 5]


def job(operation, begin, end, program="product", **more):
    """One of session s0, answered as done, with the effects [0, 0, operation, 0 and 1]."""
    return {"kind": "job", "client": 0, "session": "s0", "program": program, "effects": [[0, 0, operation, 0], [0, 0, operation, 1]], "begin": begin, "end": end,
            "accepted": end, "ended": end, "outcome": "ok", "job": f"j{operation}", "answers": [], **more}


def good():
    """Three jobs of s0: a product; an update of a; a donation of b that makes c. One of s1 that is cancelled. Reads and observers."""
    product = job(1, 1, 2, seed=7, answers=[{"results": reference(7), "job": "j1"}] * 2)
    update = job(2, 3, 4, "update", array="a", amount=10, answers=[{"old": A, "version": 2}])
    donation = job(3, 5, 6, "donate", array="b", amount=1, answers=[{"made": "c"}])
    cancelled = {**job(4, 7, 8, "donate", array="c", amount=1), "session": "s1", "job": "j4", "outcome": "accepted", "ended": None, "effects": [[1, 0, 4, 0], [1, 0, 4, 1]]}
    log = [[1, "j1", [0, 0, 1, 0]], [2, "j1", [0, 0, 1, 1]], [3, "j2", [0, 0, 2, 0]], [4, "j2", [0, 0, 2, 1]], [5, "j3", [0, 0, 3, 0]], [6, "j3", [0, 0, 3, 1]]]
    read = lambda array, value, begin: {"kind": "read", "client": 1, "array": array, "value": value and list(value), "begin": begin, "end": begin + 0.5}
    return {
        "operations": [
            product, update, donation, cancelled,
            {"kind": "create", "client": 0, "array": "a", "value": A, "begin": 0, "end": 0.5}, {"kind": "create", "client": 0, "array": "b", "value": B, "begin": 0, "end": 0.5},
            read("a", A, 1), read("a", updated(A, 10), 9), read("b", B, 1), read("b", None, 9), read("c", donated(B, 1), 9),
            {"kind": "page", "client": 1, "session": "s0", "after": 0, "limit": 3, "entries": log[:3], "begin": 5, "end": 5.5},
            {"kind": "page", "client": 1, "session": "s0", "after": 2, "limit": 100, "entries": log[2:], "begin": 9, "end": 9.5},
            {"kind": "stream", "client": 2, "session": "s0", "after": 0, "open": False, "begin": 0, "end": 5, "entries": [[*entry, 4.5] for entry in log[:2]]},
            {"kind": "stream", "client": 2, "session": "s0", "after": 2, "open": True, "begin": 5, "end": 10, "entries": [[*entry, 8] for entry in log[2:]]},
            {"kind": "status", "client": 1, "job": "j3", "state": "running", "begin": 5.2, "end": 5.4},
            {"kind": "status", "client": 1, "job": "j3", "state": "done", "begin": 9, "end": 9.1},
            {"kind": "cancel", "client": 0, "session": "s1", "job": "j4", "deleted": False, "outcome": "ok", "begin": 8, "end": 8.5},
        ],
        "logs": {"s0": log, "s1": []},
        "jobs": {"s0": [{"id": f"j{n}", "number": n, "state": "done"} for n in (1, 2, 3)], "s1": [{"id": "j4", "number": 1, "state": "cancelled"}]},
    }


def of(history, kind, place=0):
    return [operation for operation in history["operations"] if operation["kind"] == kind][place]


def renumber(history):
    history["logs"]["s0"] = [[n, *entry[1:]] for n, entry in enumerate(history["logs"]["s0"], 1)]


def unseen(history):
    """Nobody has looked at the log, so that a change to it breaks no rule of observers."""
    history["operations"] = [operation for operation in history["operations"] if operation["kind"] not in ("page", "stream")]


# (rule, what is changed)
def gap(h): h["logs"]["s0"][5][0] = 7
def page_gap(h): del of(h, "page", 1)["entries"][1]
def stream_repeats(h): of(h, "stream", 1)["entries"].insert(0, [2, "j1", [0, 0, 1, 1], 7])
def effect_lost(h): unseen(h); del h["logs"]["s0"][4:]
def half_of_a_job(h): unseen(h); del h["logs"]["s0"][5:]
def effects_twice(h): unseen(h); h["logs"]["s0"] += h["logs"]["s0"][4:]; renumber(h)
def wrong_session(h): unseen(h); h["logs"]["s1"] = [[1, *h["logs"]["s0"][4][1:]], [2, *h["logs"]["s0"][5][1:]]]; del h["logs"]["s0"][4:]
def cancelled_and_logged(h): h["logs"]["s1"] = [[1, "j4", [1, 0, 4, 0]], [2, "j4", [1, 0, 4, 1]]]
def refused_and_logged(h): of(h, "job", 2).update(outcome="refused", answers=[], job=None)
def nobody_sent(h): h["logs"]["s1"] = [[1, "j9", [1, 9, 9, 0]]]
def swapped(h): unseen(h); log = h["logs"]["s0"]; log[2:] = log[4:] + log[2:4]; renumber(h)
def mixed(h): unseen(h); log = h["logs"]["s0"]; log[3], log[4] = log[4], log[3]; renumber(h)
def against_time(h): unseen(h); rows = h["jobs"]["s0"]; rows[0]["number"], rows[1]["number"] = 2, 1
def other_entry(h): of(h, "page")["entries"][2] = [3, "j2", [0, 0, 2, 9]]
def entry_vanished(h): of(h, "stream", 1)["entries"].append([7, "j5", [0, 0, 5, 0], 9])
def running_when_seen(h): of(h, "status", 1)["state"] = "running"
def done_and_running(h): h["operations"].append({**of(h, "status", 0), "job": "j1", "state": "done", "begin": 2, "end": 2.1}); h["operations"].append({**of(h, "status", 0), "job": "j1", "begin": 2.5, "end": 2.6})
def short_page(h): of(h, "page", 1)["entries"] = of(h, "page", 1)["entries"][:2]
def wrong_number(h): of(h, "job")["answers"][0]["results"][0][0] += 1; of(h, "job")["answers"] = of(h, "job")["answers"][:1]
def other_answer(h): of(h, "job")["answers"] = [{"results": reference(7), "job": "j1"}, {"results": reference(7), "job": "j2"}]
def job_lost(h): h["jobs"]["s1"] = []
def job_stuck(h): h["jobs"]["s1"][0]["state"] = "queued"
def number_twice(h): unseen(h); h["jobs"]["s0"][2]["number"] = 2; h["jobs"]["s0"][1]["number"] = 2
def update_lost(h): of(h, "read", 1)["value"] = A
def update_early(h): of(h, "read", 0)["value"] = list(updated(A, 10))
def old_is_wrong(h): of(h, "job", 1)["answers"][0]["old"] = B
def version_skipped(h): of(h, "job", 1)["answers"][0]["version"] = 3
def readable_after_donation(h): of(h, "read", 3)["value"] = B
def result_is_wrong(h): of(h, "read", 4)["value"] = B
def gone_without_job(h): of(h, "read", 4)["value"] = None
def promise_broken(h): of(h, "read", 4).update(value=None, lost=True)
def other_array_promised(h): of(h, "job", 2)["promised"] = "d"
def spoilt_by_cancelled(h): h["operations"].append({**of(h, "read", 4), "value": B, "begin": 11, "end": 12})
def consumed_twice(h):
    unseen(h)
    h["operations"].append(job(5, 5, 6, "donate", array="b", amount=2, answers=[]))
    h["logs"]["s0"] += [[7, "j5", [0, 0, 5, 0]], [8, "j5", [0, 0, 5, 1]]]
    h["jobs"]["s0"].append({"id": "j5", "number": 4, "state": "done"})
def stream_stays(h): of(h, "stream", 1)["entries"].pop()
def server_error(h): of(h, "read")["error"] = "500"


def streamed(h):
    """Another job of s1, which streamed its first effect and then failed; the one that was cancelled had streamed both."""
    failed = {**job(6, 9, 10, seed=1), "session": "s1", "effects": [[1, 0, 6, 0], [1, 0, 6, 1]], "outcome": "failed", "ended": None, "streaming": True}
    of(h, "job", 3)["streaming"] = True
    h["operations"].append(failed)
    h["jobs"]["s1"].append({"id": "j6", "number": 2, "state": "failed"})
    h["logs"]["s1"] = [[1, "j4", [1, 0, 4, 0]], [2, "j4", [1, 0, 4, 1]], [3, "j4", "cancelled"], [4, "j6", [1, 0, 6, 0]], [5, "j6", "failed"]]
    h["operations"].append({"kind": "page", "client": 1, "session": "s1", "after": 0, "limit": 100, "entries": h["logs"]["s1"][:], "begin": 12, "end": 13})
    h["operations"].append({"kind": "status", "client": 1, "job": "j4", "state": "running", "begin": 8, "end": 8.2})
    return h


def without_pages(h): h["operations"] = [each for each in h["operations"] if each["kind"] != "page" or each["session"] != "s1"]
def no_end(h): without_pages(streamed(h)); h["logs"]["s1"].pop()
def two_ends(h): without_pages(streamed(h)); h["logs"]["s1"].append([6, "j6", "failed"])
def end_of_one_that_is_done(h): h["logs"]["s0"].append([7, "j3", "failed"])
def end_before_effects(h): without_pages(streamed(h)); log = h["logs"]["s1"]; log[3][1:], log[4][1:] = log[4][1:], log[3][1:]
def second_effect_alone(h): without_pages(streamed(h)); h["logs"]["s1"][3][2] = [1, 0, 6, 1]
def end_of_a_job_without_effects(h): without_pages(streamed(h)); del h["logs"]["s1"][3]; h["logs"]["s1"][3][0] = 4
def atomic_prefix(h): streamed(h); h["operations"][-3]["streaming"] = False
def runs_behind_its_end(h): streamed(h); h["operations"].append({**h["operations"][-1], "begin": 14, "end": 15})
def streamed_between_others(h): without_pages(streamed(h)); log = h["logs"]["s1"]; log[2][1:], log[3][1:] = log[3][1:], log[2][1:]


WRONG = {
    "ends": [no_end, two_ends, end_of_one_that_is_done, end_before_effects, end_of_a_job_without_effects],
    "dense": [gap, page_gap, stream_repeats], "once": [effect_lost, half_of_a_job, effects_twice, wrong_session, cancelled_and_logged, refused_and_logged, nobody_sent,
                                                                 second_effect_alone, atomic_prefix],
    "session_order": [swapped, mixed, streamed_between_others], "real_time": [against_time], "one_log": [other_entry, entry_vanished], "nothing_early": [running_when_seen, done_and_running, runs_behind_its_end],
    "monotonic": [short_page], "results": [wrong_number], "equal_answers": [other_answer, other_array_promised], "jobs_end": [job_lost, job_stuck, number_twice],
    "registers": [update_lost, update_early, old_is_wrong, version_skipped, readable_after_donation, result_is_wrong, gone_without_job, promise_broken, spoilt_by_cancelled, consumed_twice],
    "streams_live": [stream_stays], "no_errors": [server_error]}


def may_be_open():
    """A job whose answer was lost: all of its effects, or none of them."""
    history = good()
    of(history, "job", 2).update(outcome="maybe", answers=[], job=None, accepted=None, ended=None)
    assert check(history) == [], check(history)
    unseen(history)
    del history["logs"]["s0"][4:], history["jobs"]["s0"][2:]
    history["operations"] = [each for each in history["operations"] if each.get("array") not in ("b", "c") and each.get("job") != "j3"]
    assert check(history) == [], check(history)


def registers_of_concurrent_calls():
    step = lambda state, what: ((what[1],) if what[0] == "write" else (state,) if state == what[1] else None)
    assert linearizable([(0, 9, ("write", 1)), (1, 2, ("read", None)), (3, 4, ("read", 1))], step)
    assert linearizable([(0, 9, ("write", 1)), (0, 9, ("write", 2)), (3, 4, ("read", 2)), (5, 6, ("read", 1))], step)
    assert not linearizable([(0, 9, ("write", 1)), (1, 2, ("read", 1)), (3, 4, ("read", None))], step)
    assert not linearizable([(0, 1, ("write", 1)), (2, 3, ("write", 2)), (4, 5, ("read", 1))], step)


def main():
    assert check(good()) == [], check(good())
    assert check(streamed(good())) == [], check(streamed(good()))
    failed = 0
    for rule, changes in WRONG.items():
        for change in changes:
            history = copy.deepcopy(good())
            change(history)
            found = {text.split(":")[0] for text in check(history)}
            if rule not in found:
                failed += 1
                print(f"{change.__name__} is not found by {rule}, but by {sorted(found)}")
    may_be_open()
    registers_of_concurrent_calls()
    print(f"{sum(map(len, WRONG.values()))} wrong histories, {failed} not found")
    return 1 if failed else 0


sys.exit(main())
