"""Two hosts on one machine, as far as the network goes: namespaces joined by a veth pair, whose rate and loss the kernel sets (tbf, nft), and by a
relay in this process that delays packets (netem is not in every kernel). The caller itself is in the first; nothing of it is left when it ends."""
import ctypes
import fcntl
import heapq
import os
import pathlib
import re
import select
import shutil
import struct
import subprocess
import sys
import threading
import time

INSIDE = "TWO_HOSTS"  # set in the first host; no name of meshd's own, which it would refuse
NEEDED = {"unshare": "util-linux", "nsenter": "util-linux", "ip": "iproute2", "tc": "iproute2", "nft": "nftables"}
CLONE_NEWNET = 0x40000000
LOSSY = """table inet loss {{
  chain arriving {{
    type filter hook input priority 0;
    iifname "{device}" numgen random mod 100 < {percent} counter drop
  }}
}}
"""


def missing():
    """Why two hosts cannot be made here; None: they can."""
    if os.geteuid() != 0:
        return "namespaces of networks need root"
    lacking = sorted({package for tool, package in NEEDED.items() if shutil.which(tool) is None})
    if lacking:
        return f"{', '.join(lacking)} not installed"
    if not os.path.exists("/dev/net/tun"):
        return "there is no /dev/net/tun for the relay"
    tried = subprocess.run(["unshare", "--net", "--uts", "sh", "-c", "ip link add name near type veth peer name far && tc qdisc add dev near root tbf rate 1mbit burst 16k latency 50ms"
                            " && nft 'add table inet t; add chain inet t c; add rule inet t c numgen random mod 100 < 1 drop'"], capture_output=True, text=True)
    return None if tried.returncode == 0 else f"this kernel does not make namespaces, veth, tbf or nft: {tried.stderr.strip()}"


def go_inside():
    """Begins this program again as the first host. Returns in it."""
    if os.environ.get(INSIDE) is None:
        os.environ[INSIDE] = "1"
        os.execvp("unshare", ["unshare", "--net", "--uts", "--", sys.executable, *sys.argv])


def tell(*command):
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)


class TwoHosts:
    """`near`, in which the caller is, and `far`: 10.77.0.1 and .2 over the veth pair, 10.78.0.1 and .2 over the relay."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.relay = None

    def __enter__(self):
        tell("hostname", "near")
        self.holder = subprocess.Popen(["unshare", "--net", "--uts", "sh", "-c", "hostname far && echo made && exec sleep infinity"], stdout=subprocess.PIPE)
        assert self.holder.stdout.readline() == b"made\n"
        self.enter = ["nsenter", "-t", str(self.holder.pid), "-n", "-u", "--"]
        tell("ip", "link", "add", "veth", "type", "veth", "peer", "name", "veth", "netns", self.holder.pid)
        self.both(lambda number: [["ip", "link", "set", "lo", "up"], ["ip", "address", "add", f"10.77.0.{number}/24", "dev", "veth"], ["ip", "link", "set", "veth", "up"]])
        # What mpirun starts orted with instead of ssh: AGENT HOST COMMAND.
        agent = self.folder / "agent"
        agent.write_text(f'#!/bin/sh\nshift\nexec {" ".join(self.enter)} /bin/sh -c "$*"\n')
        agent.chmod(0o755)
        return self

    def __exit__(self, *_):
        if self.relay is not None:
            self.relay.end()
        self.holder.kill()
        self.holder.wait()

    def both(self, commands):
        for number, prefix in ((1, []), (2, self.enter)):
            for command in commands(number):
                tell(*prefix, *command)

    def launcher(self, network="10.77.0"):
        """mpirun with a host file: a rank on each host, all messages over that network. A host that is gone is noticed within 12 s."""
        hosts = self.folder / f"hosts-{network}"
        hosts.write_text("".join(f"{network}.{number} slots=1\n" for number in (1, 2)))
        settings = {"plm_rsh_agent": self.folder / "agent", "pml": "ob1", "btl": "self,tcp", "btl_tcp_if_include": f"{network}.0/24", "oob_tcp_if_include": f"{network}.0/24",
                    "oob_tcp_keepalive_time": 5, "oob_tcp_keepalive_intvl": 2, "oob_tcp_keepalive_probes": 3}
        return ["mpirun", "--allow-run-as-root", "--hostfile", str(hosts), "--bind-to", "none",
                *(str(word) for name, value in settings.items() for word in ("--mca", name, value)), "-n", "2"]

    def limit(self, rate):
        """So many bits a second in each direction; None: as many as there are."""
        self.both(lambda _: [["tc", "qdisc", "replace", "dev", "veth", "root", *(["tbf", "rate", rate, "burst", "64k", "latency", "200ms"] if rate else ["noqueue"])]])

    def lose(self, percent):
        """Drops that part of the packets that arrive, at random; 0: none."""
        rules = LOSSY.format(device="veth", percent=percent) if percent else ""
        for prefix in ([], self.enter):
            subprocess.run([*prefix, "nft", "-f", "-"], input="add table inet loss\ndelete table inet loss\n" + rules, text=True, check=True)

    def lost(self):
        """Packets that both hosts have dropped since lose()."""
        listed = (subprocess.run([*prefix, "nft", "list", "table", "inet", "loss"], check=True, capture_output=True, text=True).stdout for prefix in ([], self.enter))
        return sum(int(re.search(r"counter packets (\d+)", text).group(1)) for text in listed)

    def link(self, state):
        """"up", or "down": a host whose cable is out hears nothing, not even that."""
        tell("ip", "link", "set", "veth", state)
        if state == "up":
            self.wait_for_answers()

    def wait_for_answers(self):
        """Until each host has the other's address: a port that nobody listens on answers by refusing."""
        refused = "import errno, socket; exit(socket.socket().connect_ex(('10.77.0.{}', 9)) != errno.ECONNREFUSED)"
        deadline = time.monotonic() + 60
        for number, prefix in ((2, []), (1, self.enter)):
            while subprocess.run([*prefix, sys.executable, "-c", refused.format(number)]).returncode != 0:
                assert time.monotonic() < deadline, "the hosts do not reach each other"

    def delay(self, seconds):
        self.relay = Relay(self.holder.pid, seconds)
        self.both(lambda number: [["ip", "address", "add", f"10.78.0.{number}/24", "dev", "relay"], ["ip", "link", "set", "relay", "up", "mtu", "9000"]])
        self.relay.start()


class Relay(threading.Thread):
    """Packets between a TUN device of each host, each given on `seconds` after it came."""

    def __init__(self, holder, seconds):
        super().__init__(daemon=True)
        self.seconds, self.ends, self.devices = seconds, False, []
        libc = ctypes.CDLL(None, use_errno=True)

        def enter(path):
            with open(path) as space:
                assert libc.setns(space.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())

        for path in ("/proc/thread-self/ns/net", f"/proc/{holder}/ns/net"):
            with open("/proc/thread-self/ns/net") as own:  # to which the calling thread returns
                enter(path)
                device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
                fcntl.ioctl(device, 0x400454CA, struct.pack("16sH22x", b"relay", 0x1001))  # TUNSETIFF: IFF_TUN, IFF_NO_PI
                self.devices.append(device)
                assert libc.setns(own.fileno(), CLONE_NEWNET) == 0

    def run(self):
        waiting, count = [], 0  # (due, number, device, packet)
        while not self.ends:
            patience = max(0, waiting[0][0] - time.monotonic()) if waiting else 0.1
            for device in select.select(self.devices, [], [], patience)[0]:
                other = self.devices[1 - self.devices.index(device)]
                count += 1
                heapq.heappush(waiting, (time.monotonic() + self.seconds, count, other, os.read(device, 65536)))
            while waiting and waiting[0][0] <= time.monotonic():
                _, _, device, packet = heapq.heappop(waiting)
                try:
                    os.write(device, packet)
                except OSError:
                    pass  # its queue is full, or it is down: the packet is lost, as on a network
        for device in self.devices:
            os.close(device)

    def end(self):
        self.ends = True
        self.join()
