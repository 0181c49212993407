#!/usr/bin/env python3
"""Connections that hold a server's resources and want nothing: idle ones, event streams, heads that trickle in, readers that do not read.
bystanders.py PORT SESSION ARRAY IDLE STREAMS HEADS READERS keeps so many of each open until its stdin ends. The server cuts most of
them off after some seconds, and what it cuts is opened again at once. A process of its own, because a thread would wait for those of other clients."""
import dataclasses
import json
import pathlib
import random
import select
import socket
import subprocess
import sys
import time

ROOM = 4096  # bytes of a reader's receive buffer


@dataclasses.dataclass
class Kind:
    name: str
    sent: bytes
    state: str  # of meshd_http_connections
    lives: float = 0  # seconds after which the server cuts it off, 0 where it does not
    reads: bool = True
    trickle: bytes = b""  # sent every other second


def kinds(session, array):
    return [
        Kind("idle", b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n", "idle", lives=15),
        Kind("streams", f"GET /v1/sessions/{session}/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n".encode(), "events"),
        Kind("heads", b"GET /livez HTTP/1.1\r\n", "reading", lives=10, trickle=b"X-A: b\r\n"),
        # The end of a connection does not come through a full receive buffer, so that these leave by themselves.
        Kind("readers", f"GET /v1/arrays/{array}/data HTTP/1.1\r\nHost: localhost\r\n\r\n".encode(), "writing", lives=10, reads=False),
    ]


@dataclasses.dataclass
class Connection:
    socket: socket.socket
    kind: Kind
    leaves: float  # when the client ends it, if the server has not by then


class Connections:
    """All of them, in one thread."""

    def __init__(self, port, counts):
        self.port, self.poll, self.open = port, select.poll(), {}
        self.opened = {kind.name: 0 for kind, _ in counts}
        for kind, count in counts:
            for _ in range(count):
                # The first of each kind leave one after the other, so that the server does not cut all of them off at once.
                self.connect(kind, random.uniform(0.2, 1) * kind.lives if kind.lives else 1e9)

    def connect(self, kind, lives):
        client = socket.socket()
        if not kind.reads:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, ROOM)
        client.connect(("127.0.0.1", self.port))
        client.sendall(kind.sent)
        client.setblocking(False)
        self.poll.register(client, select.POLLRDHUP | (select.POLLIN if kind.reads else 0))
        self.open[client.fileno()] = Connection(client, kind, time.monotonic() + lives)
        self.opened[kind.name] += 1

    def renew(self, descriptor):
        connection = self.open.pop(descriptor)
        self.poll.unregister(descriptor)
        connection.socket.close()
        kind = connection.kind
        self.connect(kind, 1e9 if kind.reads else kind.lives)

    def is_cut(self, connection, events):
        if events & (select.POLLHUP | select.POLLERR):
            return True
        try:
            return connection.kind.reads and not connection.socket.recv(1 << 16)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def look(self):
        for descriptor, events in self.poll.poll(100):
            if self.is_cut(self.open[descriptor], events):
                self.renew(descriptor)
        now = time.monotonic()
        for descriptor in [each for each, connection in self.open.items() if connection.leaves < now]:
            self.renew(descriptor)

    def trickle(self):
        for descriptor, connection in list(self.open.items()):
            if connection.kind.trickle:
                try:
                    connection.socket.send(connection.kind.trickle)
                except OSError:
                    self.renew(descriptor)  # its head took too long

    def work(self):
        """Until stdin ends."""
        trickled = time.monotonic()
        while not select.select([sys.stdin], [], [], 0)[0]:
            self.look()
            if time.monotonic() - trickled > 2:
                trickled = time.monotonic()
                self.trickle()


class Bystanders:
    """The process, for the test of the server. `counts` are those of kinds()."""

    def __init__(self, server, session, array, counts):
        self.promised = {kind.state: count for kind, count in zip(kinds(session, array), counts)}
        self.process = subprocess.Popen([sys.executable, pathlib.Path(__file__), str(server.port), session, array, *map(str, counts)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def shares(self, metrics):
        """Of each state of connections, what share of the promised number is there, by the server's own metric."""
        found = {}
        for line in metrics.splitlines():
            if line.startswith("meshd_http_connections{"):
                label, value = line.split(" ")
                found[label.split('"')[1]] = int(value)
        return {state: found[state] / count for state, count in self.promised.items()}

    def leave(self):
        """How many of each were opened in all."""
        assert self.process.poll() is None, "the bystanders have ended by themselves"
        told, _ = self.process.communicate(timeout=60)
        assert self.process.returncode == 0
        return json.loads(told)


def main():
    port, session, array, *counts = sys.argv[1:]
    connections = Connections(int(port), list(zip(kinds(session, array), map(int, counts))))
    connections.work()
    print(json.dumps(connections.opened))


if __name__ == "__main__":
    main()
