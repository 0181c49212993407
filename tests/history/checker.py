"""Checks one history of a server's clients against docs/durability.md. A pure function: check(history) returns what is wrong, as texts that
begin with the name of the rule.

A history has three parts. "operations" are what clients and observers did, with the times at which each began and ended; "logs" are the
logs of all sessions after the last operation, as [sequence, job, payload]; "jobs" the jobs of all sessions then, as {id, number, state}.

Every job logs two effects whose payloads nobody else logs, [session, client, operation, 0] and [.., 1]. An atomic job does so in the
transaction that makes its outcome visible: it has happened where, and only where, its effects are in the log, and a lost answer leaves nothing
open. A streaming job logs them while it runs; if it fails or is cancelled behind the first one, an entry whose payload is its state comes last.

Kinds of operations, beside begin, end (None: unknown) and client:
  job     session, effects, streaming, outcome (ok, accepted, failed, refused, maybe), job, answers (one of each 200), accepted and ended (when that was
          known first); what it computes: program, seed, array, amount; promised (the array that it was to make)
  create  array, value
  read    array, value (None: donated), lost (promised, and never made)
  page    session, after, limit, entries
  stream  session, after, entries with the time of each, open (still connected at the end)
  status  job, state
  cancel  job, deleted
"""
import collections
import math

from model import after_job, reference
from register import linearizable

OVER = ("done", "failed", "cancelled")


def check(history):
    seen = _Facts(history)
    wrong = []
    for rule in (dense, once, ends, session_order, real_time, one_log, nothing_early, monotonic, results, equal_answers, jobs_end, registers, streams_live, no_errors):
        wrong += [f"{rule.__name__}: {text}" for text in rule(seen)]
    return wrong


class _Facts:
    """What several rules need of a history."""

    def __init__(self, history):
        self.logs, self.jobs = history["logs"], history["jobs"]
        self.of_kind = collections.defaultdict(list)
        for operation in history["operations"]:
            self.of_kind[operation["kind"]].append(operation)
        self.listed = {row["id"]: row for rows in self.jobs.values() for row in rows}
        self.deleted = {each["job"] for each in self.of_kind["cancel"] if each["deleted"]}
        self.places = collections.defaultdict(list)  # of a payload in the logs: (session, sequence, job)
        self.ends = collections.defaultdict(list)  # of a job: (session, sequence, state)
        for session, log in self.logs.items():
            for sequence, job, payload in log:
                if is_end(payload):
                    self.ends[job].append((session, sequence, payload))
                else:
                    self.places[tuple(payload)].append((session, sequence, job))
        self.streaming = {self.job_of(each) for each in self.of_kind["job"] if each.get("streaming")}
        # When an atomic job's effects were seen first: from then on it has happened.
        self.effect_seen = collections.defaultdict(lambda: math.inf)
        for time, _, job in self.sightings():
            if job not in self.streaming:
                self.effect_seen[job] = min(self.effect_seen[job], time)

    def sightings(self):
        """(time, session, job) of each effect that somebody saw."""
        for page in self.of_kind["page"]:
            yield from ((page["end"], page["session"], job) for _, job, _ in page["entries"])
        for stream in self.of_kind["stream"]:
            yield from ((time, stream["session"], job) for _, job, _, time in stream["entries"])

    def happened(self, operation):
        if not all(self.places.get(tuple(payload)) for payload in operation["effects"]):
            return False
        return not operation.get("streaming") or not self.ends.get(self.job_of(operation))

    def job_of(self, operation):
        """Its id: from its answer, else from its effects."""
        if operation.get("job"):
            return operation["job"]
        places = self.places.get(tuple(operation["effects"][0]))
        return places[0][2] if places else None

    def known_end(self, operation):
        """When the effects of a job that happened were there at the latest."""
        known = operation.get("ended") or math.inf
        job = self.job_of(operation)
        for status in self.of_kind["status"]:
            if status["job"] == job and status["state"] == "done":
                known = min(known, status["end"])
        return min(known, self.effect_seen[job])


def is_end(payload):
    return isinstance(payload, str)


def dense(seen):
    """Logs are numbered 1, 2, 3, ...; pages and streams go on behind where they were asked to."""
    for session, log in seen.logs.items():
        if [entry[0] for entry in log] != list(range(1, len(log) + 1)):
            yield f"the log of {session} is numbered {[entry[0] for entry in log]}"
    for each in seen.of_kind["page"] + seen.of_kind["stream"]:
        numbers = [entry[0] for entry in each["entries"]]
        if numbers != list(range(each["after"] + 1, each["after"] + 1 + len(numbers))):
            yield f"a {each['kind']} of {each['session']} after {each['after']} has {numbers}"


def once(seen):
    """Effects of jobs that are done are in the log of their session once, all of them; those of others never are."""
    known = set()
    for operation in seen.of_kind["job"]:
        counts = [len(seen.places.get(tuple(payload), ())) for payload in operation["effects"]]
        known |= {tuple(payload) for payload in operation["effects"]}
        state = seen.listed.get(operation.get("job"), {}).get("state")
        is_done = operation["outcome"] == "ok" or state == "done"
        is_not = operation["outcome"] in ("failed", "refused") or state in ("failed", "cancelled")
        allowed = {1} if is_done and not is_not else {0} if is_not and not is_done else {0, 1}
        # What a streaming job may have left that is not done.
        is_prefix = operation.get("streaming") and 0 in allowed and operation["outcome"] != "refused" and counts in ([1, 0], [1, 1])
        if not is_prefix and (len(set(counts)) != 1 or not set(counts) <= allowed):
            yield f"{operation['effects']} are there {counts} times, outcome {operation['outcome']}, job {state}"
        for payload in operation["effects"]:
            for session, sequence, job in seen.places.get(tuple(payload), ()):
                if session != operation["session"]:
                    yield f"{payload} of {operation['session']} is in the log of {session}"
                if operation.get("job") not in (None, job):
                    yield f"{payload} of {operation['job']} is logged by {job}"
    for payload in set(seen.places) - known:
        yield f"nobody sent {payload}"


def ends(seen):
    """Where a job left effects and was not done in the end, one entry says so, behind all of them; there is none for any other job."""
    effects = collections.defaultdict(list)  # by job: sequence numbers
    for places in seen.places.values():
        for _, sequence, job in places:
            effects[job].append(sequence)
    for job, found in seen.ends.items():
        state = seen.listed.get(job, {}).get("state")
        if len(found) != 1 or not effects[job] or found[0][1] < max(effects[job]) or state not in (None, found[0][2]):
            yield f"{job}, {state}, has effects {effects[job]} and ends {found}"
    for job in effects:
        if seen.listed.get(job, {}).get("state") in ("failed", "cancelled") and not seen.ends[job]:
            yield f"{job} is {seen.listed[job]['state']}, left effects {effects[job]}, and nothing says so"


def session_order(seen):
    """Effects are in the order of the numbers of their jobs, those of a job together and in its own order."""
    for session, log in seen.logs.items():
        keys = [(seen.listed[job]["number"], math.inf if is_end(payload) else payload[-1]) for _, job, payload in log if job in seen.listed]
        for before, after in zip(keys, keys[1:]):
            if not before < after:
                yield f"{session}: (job, effect) {after} is behind {before}"


def real_time(seen):
    """A job that was accepted before another one was sent to the same session has a smaller number."""
    for session in seen.jobs:
        mine = [each for each in seen.of_kind["job"] if each["session"] == session and seen.job_of(each) in seen.listed]
        accepted = sorted((each["accepted"], seen.listed[seen.job_of(each)]["number"]) for each in mine if each.get("accepted"))
        largest, next_ = 0, 0
        for each in sorted(mine, key=lambda each: each["begin"]):
            while next_ < len(accepted) and accepted[next_][0] < each["begin"]:
                largest = max(largest, accepted[next_][1])
                next_ += 1
            if seen.listed[seen.job_of(each)]["number"] < largest:
                yield f"{session}: job {seen.listed[seen.job_of(each)]['number']} was sent after job {largest} was accepted"


def one_log(seen):
    """Everybody saw a part of one log, which is still there."""
    for each in seen.of_kind["page"] + seen.of_kind["stream"]:
        log = {sequence: [job, payload] for sequence, job, payload in seen.logs[each["session"]]}
        for sequence, job, payload, *_ in each["entries"]:
            if log.get(sequence) != [job, payload]:
                yield f"{each['session']}: a {each['kind']} showed {sequence} as {payload}, the log has {log.get(sequence)}"


def nothing_early(seen):
    """Whoever has seen an effect of an atomic job finds the job done, whoever has seen the end of a job finds it over."""
    ended = {}
    for each in seen.of_kind["page"] + seen.of_kind["stream"]:
        for _, job, payload, *time in each["entries"]:
            if is_end(payload):
                ended[job] = min(ended.get(job, math.inf), time[0] if time else each["end"])
    for status in seen.of_kind["status"]:
        if status["state"] not in ("failed", "cancelled") and ended.get(status["job"], math.inf) < status["begin"]:
            yield f"the end of {status['job']} was seen, and later it was {status['state']}"
    for status in seen.of_kind["status"]:
        if status["state"] != "done" and seen.effect_seen[status["job"]] < status["begin"]:
            yield f"effects of {status['job']} were seen, and later it was {status['state']}"
    over = {}
    for status in sorted(seen.of_kind["status"], key=lambda status: status["end"]):
        known = over.get(status["job"])
        if known and status["begin"] > known[0] and status["state"] != known[1]:
            yield f"{status['job']} was {known[1]}, and later {status['state']}"
        if status["state"] in OVER:
            over.setdefault(status["job"], (status["end"], status["state"]))


def monotonic(seen):
    """A page has what was seen of the log, and what was answered as done, before it was asked for."""
    for session in seen.logs:
        known = [(operation["ended"], place[1]) for operation in seen.of_kind["job"]
                 if operation["session"] == session and operation["outcome"] == "ok" and operation.get("ended")
                 for payload in operation["effects"] for place in seen.places.get(tuple(payload), ())]
        known += [(page["end"], entry[0]) for page in seen.of_kind["page"] if page["session"] == session for entry in page["entries"]]
        known += [(entry[3], entry[0]) for stream in seen.of_kind["stream"] if stream["session"] == session for entry in stream["entries"]]
        known.sort()
        largest, next_ = 0, 0
        for page in sorted((page for page in seen.of_kind["page"] if page["session"] == session), key=lambda page: page["begin"]):
            while next_ < len(known) and known[next_][0] < page["begin"]:
                largest = max(largest, known[next_][1])
                next_ += 1
            shown = page["after"] + len(page["entries"])
            if len(page["entries"]) < page["limit"] and shown < largest:
                yield f"{session}: a page ends with {shown} after {largest} was known"


def results(seen):
    """What jobs that read no stored array compute equals numpy's."""
    for operation in seen.of_kind["job"]:
        if operation["program"] != "product":
            continue
        for answer in operation["answers"]:
            if answer["results"] != reference(operation["seed"]):
                yield f"{operation['effects'][0]}: {answer['results']} is not {reference(operation['seed'])}"


def equal_answers(seen):
    """A request that is sent again with its key is the same job and gets the same answer."""
    for operation in seen.of_kind["job"]:
        if any(answer != operation["answers"][0] for answer in operation["answers"]):
            yield f"{operation['effects'][0]} was answered {operation['answers']}"
        if "promised" in operation and any(answer["made"] != operation["promised"] for answer in operation["answers"]):
            yield f"{operation['effects'][0]} made {operation['answers'][0]['made']}, {operation['promised']} was promised"


def jobs_end(seen):
    """Accepted jobs are there and over, and numbers are dense but for deleted jobs."""
    for operation in seen.of_kind["job"]:
        job = operation.get("job")
        if job is not None and job not in seen.listed and job not in seen.deleted:
            yield f"{job} was accepted and is not there"
        if operation["outcome"] == "ok" and seen.listed.get(job, {}).get("state", "done") != "done":
            yield f"{job} was answered and is {seen.listed[job]['state']}"
    for session, rows in seen.jobs.items():
        for row in rows:
            if row["state"] not in OVER:
                yield f"{row['id']} is {row['state']} in the end"
        numbers = sorted(row["number"] for row in rows)
        gone = len([each for each in seen.of_kind["cancel"] if each["session"] == session and (each["deleted"] or each["outcome"] == "maybe")])
        if len(set(numbers)) != len(numbers) or (numbers and numbers[-1] > len(numbers) + gone):
            yield f"{session}: jobs are numbered {numbers}, {gone} are deleted"


def registers(seen):
    """Each array is one register: reads, updates and its donation have an order that agrees with their times. Jobs that have not happened
    leave it as it was."""
    calls = collections.defaultdict(list)  # by array: (begin, end, what happens)
    for operation in seen.of_kind["create"]:
        calls[operation["array"]].append((operation["begin"], operation["end"], ("create", tuple(operation["value"]))))
    read = {}  # what a result of a donation was read as: it is never updated
    for operation in seen.of_kind["read"]:
        value = None if operation["value"] is None else tuple(operation["value"])
        calls[operation["array"]].append((operation["begin"], operation["end"], ("lost",) if operation.get("lost") else ("read", value)))
        if value is not None:
            read.setdefault(operation["array"], value)
    for operation in seen.of_kind["job"]:
        if operation["program"] == "product" or not seen.happened(operation):
            continue
        begin, end = operation["begin"], seen.known_end(operation)
        answer = operation["answers"][0] if operation["answers"] else {}
        if operation["program"] == "update":
            old = tuple(answer["old"]) if answer else None
            calls[operation["array"]].append((begin, end, ("update", operation["amount"], old, answer.get("version"))))
            continue
        made = answer.get("made") or operation.get("promised")
        calls[operation["array"]].append((begin, end, ("donate", operation["amount"], read.get(made))))
        if made:
            calls[made].append((begin, end, ("create", read.get(made))))
    for array, mine in calls.items():
        donations = [call for call in mine if call[2][0] == "donate"]
        if len(donations) > 1:
            yield f"{array} was donated {len(donations)} times"
        elif any(call[2][0] == "create" for call in mine) and not linearizable(mine, after_job):
            yield f"{array}: no order explains {sorted(mine)}"


def streams_live(seen):
    """Who still listens in the end has the whole log."""
    for stream in seen.of_kind["stream"]:
        last = stream["entries"][-1][0] if stream["entries"] else stream["after"]
        if stream["open"] and last < len(seen.logs[stream["session"]]):
            yield f"a stream of {stream['session']} stays at {last} of {len(seen.logs[stream['session']])}"


def no_errors(seen):
    """No answer but those that the contract has for these requests."""
    for operations in seen.of_kind.values():
        yield from (f"{operation['kind']} was answered {operation['error']}" for operation in operations if operation.get("error"))
