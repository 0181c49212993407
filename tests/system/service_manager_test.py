"""What a service manager is told: service_manager_test.py BINARY. The test listens on a socket of its own in systemd's place."""
import os
import pathlib
import signal
import socket
import sys
import tempfile
import threading
import time
import unittest

from server import Meshd

BINARY = sys.argv[1]
DEADLINE = 60


class Manager:
    """A socket for notifications, by the name that $NOTIFY_SOCKET gets."""

    def __init__(self, name):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + name[1:] if name.startswith("@") else name)
        self.socket.settimeout(DEADLINE)
        self.name = name

    def close(self):
        self.socket.close()

    def next(self):
        """The next notification: {variable: value}."""
        return dict(line.split("=", 1) for line in self.socket.recv(4096).decode().splitlines())

    def next_of(self, variable):
        """The next one that has the variable. Others before it can only be of the watchdog."""
        while True:
            told = self.next()
            if variable in told:
                return told
            assert told == {"WATCHDOG": "1"}, told


class Told(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def manager(self, name=None):
        manager = Manager(name or str(self.folder / "notify"))
        self.addCleanup(manager.close)
        return manager

    def server(self, manager, *arguments, variables=(), log=None):
        variables = [f"NOTIFY_SOCKET={manager if isinstance(manager, str) else manager.name}", *variables]
        return Meshd(BINARY, *arguments, launcher=["env", *variables], log=log)

    def test_ready_when_requests_are_answered_and_stopping_before_the_end(self):
        for name in (None, f"@meshd-test-{os.getpid()}"):
            with self.subTest(name or "a path"):
                manager = self.manager(name)
                server = self.server(manager, "--drain-timeout", "7")
                with server:
                    told = manager.next()
                    self.assertEqual(told, {"READY": "1", "STATUS": f"serving on port {server.port}"})
                    self.assertEqual(server.ask("GET", "/readyz")[0], 200)
                    server.process.send_signal(signal.SIGTERM)
                    told = manager.next()
                    self.assertEqual(told.pop("EXTEND_TIMEOUT_USEC"), str((2 * 7 + 60) * 1_000_000))
                    self.assertEqual(told, {"STOPPING": "1", "STATUS": "draining"})
                    self.assertEqual(server.process.wait(DEADLINE), 0)
                manager.socket.setblocking(False)
                with self.assertRaises(BlockingIOError):
                    manager.socket.recv(4096)

    def test_the_first_request_after_ready_is_answered(self):
        # The first request that comes after READY, with no second try.
        manager = self.manager()
        server = self.server(manager)
        starting = threading.Thread(target=server.start)
        starting.start()
        try:
            self.assertIn("READY", manager.next())
            self.assertEqual(server.ask("GET", "/readyz")[0], 200)
        finally:
            starting.join()
            server.__exit__()

    def test_reload_is_told_with_its_time_and_ended_by_ready(self):
        tokens = self.folder / "tokens"
        tokens.write_text("ann first-token\n")
        tokens.chmod(0o600)
        manager = self.manager()
        with self.server(manager, "--tokens", str(tokens)) as server:
            self.assertIn("READY", manager.next())
            tokens.write_text("ann second-token\n")
            before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
            server.process.send_signal(signal.SIGHUP)
            told = manager.next()
            self.assertEqual(told.pop("RELOADING"), "1")
            self.assertLessEqual(before, int(told.pop("MONOTONIC_USEC")))
            self.assertEqual(told, {})
            self.assertIn("READY", manager.next())
            for token, status in (("first-token", 401), ("second-token", 200)):
                self.assertEqual(server.ask("GET", "/v1/meshes", headers={"Authorization": f"Bearer {token}"})[0], status)

    def test_watchdog_is_fed_until_the_process_is_stopped(self):
        manager = self.manager()
        with self.server(manager, variables=["WATCHDOG_USEC=300000"]) as server:
            self.assertIn("READY", manager.next())
            for _ in range(3):
                self.assertEqual(manager.next(), {"WATCHDOG": "1"})
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(manager.next_of("STOPPING")["STOPPING"], "1")

    def test_watchdog_of_another_process_is_not_fed(self):
        manager = self.manager()
        with self.server(manager, variables=["WATCHDOG_USEC=3000", "WATCHDOG_PID=1"]) as server:
            self.assertIn("READY", manager.next())
            server.process.send_signal(signal.SIGHUP)  # something to wait for
            self.assertIn("RELOADING", manager.next())

    def test_a_socket_that_cannot_be_had_is_logged_and_serves_all_the_same(self):
        for name in (str(self.folder / "nobody"), "relative", "@" + "n" * 200):
            with self.subTest(name), tempfile.TemporaryFile("w+") as log:
                with self.server(name, log=log) as server:
                    self.assertEqual(server.ask("GET", "/readyz")[0], 200)
                log.seek(0)
                self.assertIn("service_manager_not_told", log.read())


unittest.main(argv=sys.argv[:1])
