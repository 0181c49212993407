"""Ports for the servers of tests."""
import pathlib
import random
import socket

LOWEST = 10_000


def free_port(host="127.0.0.1"):
    """One that nobody has, and that the kernel gives to nobody: those that it gives may be taken, by a client or by a server that asks for any, between
    this choice and the server's start, which with mpirun is seconds later."""
    given = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for _ in range(100 if given > 2 * LOWEST else 0):
        port = random.randrange(LOWEST, given)
        if is_free(host, port):
            return port
    with socket.socket() as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


def is_free(host, port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as a server: connections that are over do not count
        try:
            probe.bind((host, port))
            return True
        except OSError:
            return False
