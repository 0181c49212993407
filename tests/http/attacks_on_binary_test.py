"""attacks_on_binary_test.py BINARY ATTACK_LIST: the attack list of the front's own tests (attack_cases.cpp) against the binary and its routes, each on
a fresh connection, after a good request and behind one in the same bytes: an answer below 500 or an end of the connection, in time; no
hidden request runs; the server lives, and its memory stays; in a control group of 1 GiB, where one can be made, the kernel ends nothing. What each attack is answered with is judged by http_attacks_test."""
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from control_group import Group  # noqa: E402
from server import Meshd, memory_of, ok  # noqa: E402

# Targets of the list, and routes that take the same methods.
TARGETS = {b" /show": b" /v1/sessions", b" /bulk": b" /v1/arrays:upload?dtype=uint8&shape=4194304", b" /worker": b" /v1/meshes", b" /text": b" /openapi.yaml"}
GOOD = b"GET /livez HTTP/1.1\r\nHost: t\r\n\r\n"
LAST = b"GET /livez HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n"
HIDDEN = "/things/smuggled"
PATIENCE, CLIENTS, MOST_GROWTH = 60, 24, 32 << 20
STATUS = re.compile(rb"(?:^|\r\n|[}\n])HTTP/1\.1 (\d{3}) ")


def attacks(tool):
    for line in subprocess.run([tool], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
        name, sent = line.split("\t")
        sent = bytes.fromhex(sent)
        for toy, real in TARGETS.items():
            sent = sent.replace(toy + b" ", real + b" ")
        yield name, sent


def everything(client):
    """What comes until the server ends the connection."""
    out = b""
    while True:
        try:
            piece = client.recv(65536)
        except ConnectionResetError:
            return out
        if not piece:
            return out
        out += piece


def attack(server, name, sent, position):
    """What is wrong with the answer, or nothing."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as client:
        try:
            if position == "after a good request":
                client.sendall(GOOD)
                if b"200" not in client.recv(65536)[:20]:
                    return "the request before it"
            client.sendall(GOOD + sent if position == "behind one" else sent)
            if not name.startswith("silence"):
                client.sendall(LAST)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has closed, which is right
        try:
            came = everything(client)
        except TimeoutError:
            return f"no end within {PATIENCE} s"
    statuses = [int(status) for status in STATUS.findall(came)]
    wrong = [status for status in statuses if status >= 500 and status not in (501, 505)]
    return f"{wrong} of {statuses}" if wrong else None


def run_all(server, cases, position):
    left, wrong, lock = list(cases), [], threading.Lock()

    def client():
        while True:
            with lock:
                if not left:
                    return
                name, sent = left.pop()
            try:
                found = attack(server, name, sent, position)
            except Exception as error:  # noqa: BLE001
                found = repr(error)
            if found:
                with lock:
                    wrong.append(f"{name}, {position}: {found}")

    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.process.poll() is None, "the server has ended"
    ok(server.ask("GET", "/livez"))
    return wrong


def main():
    cases = list(attacks(sys.argv[2]))
    assert len(cases) >= 150, len(cases)
    # A sanitizer has memory of its own.
    group = None if "HAS_SANITIZER" in os.environ else Group()
    limits, launcher = ([], []) if group is None else (group.options(), group.launcher())
    with tempfile.NamedTemporaryFile() as log:
        with Meshd(sys.argv[1], "--allowed-host", "t", "--log-level", "info", *limits, log=log, launcher=launcher) as server:
            # What a server holds that has answered a request of the good kind, and no attack yet.
            ok(server.ask("GET", "/livez"))
            wrong, sizes = [], [memory_of(server, "VmRSS")]
            for position in ("fresh", "after a good request", "behind one", "fresh"):
                wrong += run_all(server, cases, position)
                sizes.append(memory_of(server, "VmRSS"))
            assert group is None or group.kills() == 0, "the kernel has killed the server"
            assert server.stop() == 0
        lines = pathlib.Path(log.name).read_text(errors="replace").splitlines()
    if group is not None:
        group.remove()
    hidden = [line for line in lines if f" {HIDDEN}" in line or f'"{HIDDEN}"' in line]
    print(f"{len(cases)} attacks in three positions; {sizes[-1] - sizes[0]:+d} bytes resident from before the first round of them to the last; after each {[size - sizes[0] for size in sizes[1:]]}")
    assert not wrong, f"{len(wrong)} are wrong:\n" + "\n".join(wrong[:20])
    assert not hidden, "a request hidden in another one was run: " + hidden[0]
    # A sanitizer keeps what was freed.
    assert "HAS_SANITIZER" in os.environ or max(sizes) - sizes[0] <= MOST_GROWTH, sizes
    return 0


sys.exit(main())
