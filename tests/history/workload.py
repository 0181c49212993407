"""Clients of one history: what they send, how they go on when an answer is lost, and what they write down."""
import http.client
import json
import random
import socket
import struct
import threading
import time

from model import product_of

RAW = {"Content-Type": "application/octet-stream"}
TIMEOUT = 5  # seconds without an answer, after which it is lost
GONE = ("deleted_or_donated", "array_donated")


def _program(arguments, results, text):
    """A job that logs %p, computes, counts to %n, and logs %q, to which it adds what is left of %n: nothing."""
    log = ('%{o} = stablehlo.custom_call @xla_ffi_python_cpu_callback(%{i}, %{p}) {{backend_config = "", has_side_effect = true, '
           'mhlo.backend_config = {{index = {n} : ui64}}, operand_layouts = [dense<> : tensor<0xindex>, dense<0> : tensor<1xindex>], '
           'result_layouts = [dense<> : tensor<0xindex>]}} : (!stablehlo.token, tensor<4xi32>) -> !stablehlo.token\n')
    names, types = zip(*results)
    return f"""func.func @main(%t: !stablehlo.token {{jax.token = true}}, %p: tensor<4xi32>, %q: tensor<4xi32>, %n: tensor<i32>, {arguments}) -> (!stablehlo.token {{jax.token = true}}, {", ".join(types)}) {{
  {log.format(o="t1", i="t", p="p", n=0)}  {text}
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %end = stablehlo.while(%i = %zero) : tensor<i32> cond {{
    %less = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }} do {{
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next : tensor<i32>
  }}
  %left = stablehlo.subtract %end, %n : tensor<i32>
  %lefts = stablehlo.broadcast_in_dim %left, dims = [] : (tensor<i32>) -> tensor<4xi32>
  %r = stablehlo.add %q, %lefts : tensor<4xi32>
  {log.format(o="t2", i="t1", p="r", n=1)}  return %t2, {", ".join(names)} : !stablehlo.token, {", ".join(types)}
}}"""


A = "tensor<4xi32>"
PROGRAMS = {
    "product": _program("%x: tensor<8x4xi32>, %w: tensor<4x8xi32>", [("%y", "tensor<8x8xi32>")],
                        "%y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xi32>, tensor<4x8xi32>) -> tensor<8x8xi32>"),
    "update": _program(f"%x: {A}, %a: {A}", [("%y", A), ("%old", A)],
                       f"%none = stablehlo.subtract %a, %a : {A}\n  %old = stablehlo.add %x, %none : {A}\n  %y = stablehlo.add %x, %a : {A}"),
    "donate": _program(f"%x: {A} {{tf.aliasing_output = 1 : i32}}, %a: {A}", [("%y", A)],
                       f"%b = stablehlo.add %x, %x : {A}\n  %y = stablehlo.add %b, %a : {A}"),
}


class Sockets:
    """Connections that the nemesis may drop."""

    def __init__(self):
        self.lock, self.all = threading.Lock(), set()

    def add(self, connection):
        with self.lock:
            self.all.add(connection)

    def discard(self, connection):
        with self.lock:
            self.all.discard(connection)

    def drop(self, chance, rng):
        with self.lock:
            some = [each for each in self.all if rng.random() < chance]
        for each in some:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Run:
    """What the clients of one history share: the server, the arrays that there are, and what was done."""

    def __init__(self, server, sessions, seed):
        self.server, self.sessions, self.seed = server, sessions, seed
        self.operations, self.lock = [], threading.Lock()
        self.cells, self.handles = [], []  # arrays that are updated, and arrays that are donated
        self.sockets, self.stopping = Sockets(), threading.Event()
        self.failures = []  # threads that died

    def note(self, operation):
        with self.lock:
            self.operations.append(operation)
        return operation

    def ask(self, method, path, body=None, headers=None):
        """(status, headers, document). Raises Lost where it is open whether it happened, Unsent where it did not."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=TIMEOUT)
        try:
            try:
                connection.connect()
            except OSError as error:
                raise Unsent from error
            open_socket = connection.sock  # the connection forgets it when the answer is its last
            self.sockets.add(open_socket)
            try:
                headers = dict(headers or {})
                if body is not None and not isinstance(body, bytes):
                    body = json.dumps(body).encode()
                    headers["Content-Type"] = "application/json"
                connection.request(method, path, body, headers)
                answer = connection.getresponse()
                data = answer.read()
                kind = answer.getheader("Content-Type") or ""
                document = json.loads(data) if "json" in kind and data else data
                if answer.status == 500 and document.get("code") == "storage_failed":
                    raise Lost  # the server is about to end: what has happened, the next start knows
                return answer.status, answer.headers, document
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise Lost from error
            finally:
                self.sockets.discard(open_socket)
        finally:
            connection.close()

    def guard(self, what):
        """A thread that runs `what`; its failure is a failure of the history."""
        def safely():
            try:
                what()
            except Exception as error:  # noqa: BLE001: told by the history
                self.failures.append(f"{what}: {type(error).__name__}: {error}")
                self.stopping.set()  # nobody waits for a server that does not come back
                raise
        return threading.Thread(target=safely)


class Lost(Exception):
    pass


class Unsent(Exception):
    pass


class Client:
    """Does `count` random operations, one after another."""

    def __init__(self, run, number, count):
        self.run, self.number, self.count = run, number, count
        self.rng = random.Random(run.seed * 1000 + number)
        self.promised = []  # (session, array) of accepted jobs that make it
        self.sent = []  # (operation, path, body, headers) of jobs that may be sent again

    def work(self):
        kinds = [self.product, self.update, self.donate, self.doomed, self.create, self.read, self.page, self.cancel, self.again, self.look]
        self.create()
        for self.index in range(self.count):
            self.rng.choices(kinds, [8, 6, 6, 2, 3, 6, 4, 3, 3, 4])[0]()

    # Jobs.

    def product(self):
        seed = self.rng.randrange(1 << 30)
        x, w = product_of(seed)
        devices = self.rng.sample(range(4), self.rng.choice([1, 2, 4]))
        spec = {"mesh": {"axis_names": ["d"], "devices": devices}}
        if len(devices) > 1:
            spec["in_shardings"] = [None, None, None, {"spec": [["d"], []]}, {"spec": [[], []]}]
        self.job("product", [x.tolist(), w.tolist()], {"seed": seed}, spec)

    def update(self):
        self.with_array("update", self.run.cells, {"update": [{"argument": 3, "result": 0}]})

    def donate(self):
        self.with_array("donate", self.run.handles, {"results": {"encoding": "array"}})

    def doomed(self):
        """A donation that fails while it runs."""
        self.with_array("donate", self.run.handles, {"results": {"encoding": "array"}, "deadline": 0.03}, count=100_000_000)

    def with_array(self, program, arrays, more, count=None):
        with self.run.lock:
            # The newest ones: several clients want the same.
            array = self.rng.choice(arrays[-3:]) if arrays else None
        session = None
        if program == "donate" and self.promised and self.rng.random() < 0.5:
            session, array = self.promised.pop()  # a chain: whether that is made yet or not
        if array is None:
            return self.create()
        amount = self.rng.randrange(1000)
        return self.job(program, [{"array": array}, [amount] * 4], {"array": array, "amount": amount}, {"reshard": True, **more}, count, session)

    def job(self, program, arguments, more, options, count=None, session=None):
        if session is None:
            session = (self.number if self.rng.random() < 0.8 else self.rng.randrange(1 << 20)) % len(self.run.sessions)
        effects = [[session, self.number, self.index, 0], [session, self.number, self.index, 1]]
        count = count if count is not None else self.rng.choice([0, 0, 0, 10_000, 200_000])
        body = {"program": {"text": PROGRAMS[program]}, "arguments": [*effects, count, *arguments],
                "callbacks": {"0": {"effect": "log", "name": "p"}, "1": {"effect": "log", "name": "q"}}, **options}
        streaming = self.rng.random() < 0.4
        if streaming:
            body["effects"] = "streaming"
        headers = {"Idempotency-Key": f"{self.run.seed}-{self.number}-{self.index}"}
        if self.rng.random() < 0.5:
            headers["Prefer"] = self.rng.choice(["respond-async", "wait=1"])
        operation = self.run.note({"kind": "job", "client": self.number, "session": self.run.sessions[session], "program": program, "effects": effects, "streaming": streaming,
                                   "begin": time.monotonic(), "end": None, "outcome": "maybe", "answers": [], **more})
        path = f"/v1/sessions/{self.run.sessions[session]}/jobs"
        self.send(operation, path, body, headers)
        operation["end"] = time.monotonic()
        if operation["outcome"] in ("ok", "accepted"):
            self.sent.append((operation, path, body, headers))
        if operation["outcome"] == "accepted" and self.rng.random() < 0.5:
            self.wait_for(operation)

    def send(self, operation, path, body, headers):
        """Until there is an answer, or the client gives up."""
        is_open = False  # an earlier one of these requests may still happen
        while not self.run.stopping.is_set():
            try:
                status, told, document = self.run.ask("POST", path, body, headers)
            except Unsent:
                time.sleep(0.02)
                continue
            except Lost:
                is_open = True
                if self.rng.random() < 0.25:
                    return
                continue
            code = document.get("code")
            if status == 200:
                operation["job"] = told["Location"].rsplit("/", 1)[1]
                operation["answers"].append(self.results_of(operation, document))
                operation["ended"] = operation["ended"] if operation.get("ended") else time.monotonic()
                operation.setdefault("accepted", operation["ended"])
                operation["outcome"] = "ok"
                return
            if status == 202:
                operation["job"], operation["accepted"], operation["outcome"] = document["id"], time.monotonic(), "accepted"
                if document.get("arrays") and operation["program"] == "donate" and "promised" not in operation:
                    # Taken by later jobs before it is made, where they are of the same session.
                    operation["promised"] = document["arrays"][0]
                    self.promised.append((self.run.sessions.index(operation["session"]), operation["promised"]))
                    with self.run.lock:
                        self.run.handles.append(operation["promised"])
                return
            if code == "idempotency_in_progress":
                is_open = True
                if "Location" in told:
                    operation["job"] = told["Location"].rsplit("/", 1)[1]
                    operation.setdefault("accepted", time.monotonic())
                    if operation["outcome"] == "maybe":
                        operation["outcome"] = "accepted"
                    if self.rng.random() < 0.3:
                        return
                time.sleep(0.02)
                continue
            if status == 503:
                is_open = True
                time.sleep(0.05)
                continue
            if code in ("disk_full", "deadline_exceeded", "cancelled", "conflict", "crashed", "sharding_mismatch", "precondition_failed", "array_lost", "dependency_failed",
                        "not_found"):
                # What was not accepted may still be, where an earlier request is open.
                operation["outcome"] = "maybe" if is_open and told["Idempotency-Replayed"] is None else "failed"
            elif code in ("array_in_use", "queue_full", *GONE):
                # Found while it ran, or before: a streaming job may have logged something.
                operation["outcome"] = "maybe" if is_open else "failed" if operation["streaming"] else "refused"
            else:
                operation["error"] = f"{status} {document}"
            return

    def results_of(self, operation, document):
        """What of an answer is compared and modelled."""
        found = {"job": document["job"], "effects": document.get("streamed") or [effect["sequence"] for effect in document["effects"]]}
        given = document["results"]
        if operation["program"] == "product":
            found["results"] = given[0]["data"]
        elif operation["program"] == "update":
            found["version"], found["old"] = given[0]["version"], given[1]["data"]
        else:
            found["made"] = given[0]["array"]
            with self.run.lock:
                if found["made"] not in self.run.handles:
                    self.run.handles.append(found["made"])
        return found

    def again(self):
        """The same request with the same key; its answer is what it was."""
        if self.sent:
            operation, path, body, headers = self.rng.choice(self.sent)
            if operation["outcome"] in ("ok", "accepted") and not operation.get("deleted"):
                self.send(operation, path, body, headers)

    def wait_for(self, operation):
        """Until it is over, or the answer is lost."""
        state = "queued"
        while state in ("queued", "running") and not self.run.stopping.is_set():
            state = self.look_at(operation, "?wait=2")
        return state

    def look_at(self, operation, query=""):
        begin = time.monotonic()
        try:
            status, _, document = self.run.ask("GET", f"/v1/jobs/{operation['job']}{query}")
        except (Lost, Unsent):
            return None
        if status != 200:
            return None
        self.run.note({"kind": "status", "client": self.number, "job": operation["job"], "state": document["state"], "begin": begin, "end": time.monotonic()})
        return document["state"]

    def look(self):
        if self.sent:
            self.look_at(self.rng.choice(self.sent)[0])

    def cancel(self):
        """Mostly of a job that has just begun."""
        if not self.sent:
            return
        operation = self.sent[-1][0] if self.rng.random() < 0.8 else self.rng.choice(self.sent)[0]
        if operation.get("deleted"):
            return
        noted = self.run.note({"kind": "cancel", "client": self.number, "session": operation["session"], "job": operation["job"], "deleted": False, "outcome": "maybe",
                               "begin": time.monotonic(), "end": None})
        try:
            status, _, document = self.run.ask("DELETE", f"/v1/jobs/{operation['job']}")
            # A full disk: it may be cancelled and the row not written.
            noted["outcome"] = "ok" if status in (202, 204) else "maybe" if status == 507 else "refused"
            noted["deleted"] = operation["deleted"] = status == 204
            if status not in (202, 204, 409, 503, 507):
                noted["error"] = f"{status} {document}"
        except Unsent:
            noted["outcome"] = "refused"
        except Lost:
            # It may be over and deleted by now: nothing is asked of it any more.
            noted["deleted"] = operation["deleted"] = True
        noted["end"] = time.monotonic()

    # Arrays and logs.

    def create(self):
        value = [self.rng.randrange(1 << 20) for _ in range(4)]
        begin = time.monotonic()
        try:
            status, _, document = self.run.ask("POST", "/v1/arrays?dtype=int32&shape=4", struct.pack("<4i", *value), RAW)
        except (Lost, Unsent):
            return
        if status in (503, 507):
            return
        noted = self.run.note({"kind": "create", "client": self.number, "begin": begin, "end": time.monotonic(), "array": document.get("id"), "value": value})
        if status != 201:
            noted["error"] = f"{status} {document}"
            return
        with self.run.lock:
            (self.run.cells if self.rng.random() < 0.4 else self.run.handles).append(document["id"])

    def read(self):
        with self.run.lock:
            arrays = self.run.cells[-3:] + self.run.handles[-6:]
        if arrays:
            read(self.run, self.number, self.rng.choice(arrays))

    def page(self):
        session = self.rng.choice(self.run.sessions)
        page(self.run, self.number, session, self.rng.choice([0, 0, self.rng.randrange(20)]), self.rng.choice([7, 1000]))


def read(run, client, array):
    begin = time.monotonic()
    try:
        status, _, document = run.ask("GET", f"/v1/arrays/{array}/data")
    except (Lost, Unsent):
        return None
    if status == 503:
        return None
    code = None if status == 200 else document.get("code")
    if code in ("conflict", "array_in_use"):
        return None  # promised by a job that is not over, or with its memory lent to one
    operation = {"kind": "read", "client": client, "array": array, "begin": begin, "end": time.monotonic(), "lost": code in ("array_lost", "not_found"),
                 "value": list(struct.unpack("<4i", document)) if status == 200 else None}
    if status != 200 and not operation["lost"] and code not in GONE:
        operation["error"] = f"{status} {document}"
    return run.note(operation)


def entries_of(document):
    return [[entry["sequence"], entry["job"], payload_of(entry)] for entry in document]


def payload_of(entry):
    """What a job logged; of the entry that says how it ended its state."""
    return entry["values"][0]["data"] if entry["values"] else entry["effect"]


def page(run, client, session, after, limit):
    begin = time.monotonic()
    try:
        status, _, document = run.ask("GET", f"/v1/sessions/{session}/effects?after={after}&limit={limit}")
    except (Lost, Unsent):
        return
    if status == 503:
        return
    operation = run.note({"kind": "page", "client": client, "session": session, "after": after, "limit": limit, "begin": begin, "end": time.monotonic(), "entries": []})
    if status == 200:
        operation["entries"] = entries_of(document["items"])
    else:
        operation["error"] = f"{status} {document}"


class Observer:
    """Listens to a session's events, resumes with Last-Event-ID, and looks at the jobs whose effects come."""

    def __init__(self, run, number, session):
        self.run, self.number, self.session = run, number, session
        self.rng = random.Random(run.seed * 1000 + 500 + number)
        self.last = 0
        self.socket = None

    def listen(self):
        while not self.run.stopping.is_set():
            if self.rng.random() < 0.1:
                self.last = 0  # from the start again
            try:
                self.stream()
            except (OSError, http.client.HTTPException, ValueError):
                pass
            time.sleep(0.01)

    def stream(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.run.server.port, timeout=60)
        connection.connect()
        self.socket = connection.sock
        self.run.sockets.add(self.socket)
        stream = {"kind": "stream", "client": self.number, "session": self.session, "after": self.last, "begin": time.monotonic(), "end": None, "entries": [], "open": False}
        try:
            connection.request("GET", f"/v1/sessions/{self.session}/events", headers={"Last-Event-ID": str(self.last)} if self.last else {})
            answer = connection.getresponse()
            if answer.status != 200:
                return
            self.run.note(stream)
            event = {}
            stream["open"] = True
            for line in answer:
                if self.run.stopping.is_set():
                    return
                line = line.decode().rstrip("\n")
                if line:
                    name, _, value = line.partition(": ")
                    event[name] = value
                    continue
                if event.get("event") == "shutdown":
                    break
                if event.get("event") == "effect":
                    document = json.loads(event["data"])
                    stream["entries"].append([document["sequence"], document["job"], payload_of(document), time.monotonic()])
                    self.last = document["sequence"]
                    if event.get("id") != str(document["sequence"]):
                        stream["error"] = f"an event with id {event.get('id')} and number {document['sequence']}"
                    if self.rng.random() < 0.3:
                        Client.look_at(self, {"job": document["job"]})
                event = {}
            stream["open"] = False
        except (OSError, http.client.HTTPException, ValueError):
            # Closed in the end by the history itself, or broken before.
            stream["open"] = stream["open"] and self.run.stopping.is_set()
            raise
        finally:
            stream["open"] = stream["open"] and self.run.stopping.is_set()
            stream["end"] = time.monotonic()
            self.run.sockets.discard(self.socket)
            connection.close()

    def close(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except (OSError, AttributeError):
            pass
