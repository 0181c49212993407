#!/usr/bin/env python3
"""How meshes over many hosts would scale, by a model: hosts_model.py BINARY (needs jax). docs/hosts.md has what it printed, and its assumptions.

One device a host. What a device does and what crosses hosts in each step is `:explain`'s, for the real plan of 1 to 512 hosts; what that costs is
measured on this machine (MEASURED)."""
import math
import pathlib
import sys

import jax
import jax.numpy as jnp

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from server import Meshd, ok  # noqa: E402

# Two cores with AVX2 (jax/RESULTS.md) and ranks on one machine (hosts_bench.py), whose memory passes bytes about as fast as 10 Gbit/s Ethernet does.
MEASURED = {
    "operations": 108e9,  # a second, of products
    "memory": 10e9,       # bytes a second
    "network": 1.2e9,     # bytes a second that a host sends: all-reduce of 64 MiB over 2 ranks
    "message": 20e-6,     # seconds that a host takes for one message of a step; assumed: three times MPI's 6 us between ranks of one machine over TCP
    "begin": 40e-6,       # seconds of a run over several ranks, and for each rank but the first: small runs on 2 and 4 ranks, which share two cores
    "begin_rank": 180e-6,
}
HOSTS = (1, 2, 8, 64, 512)
f32 = lambda *shape: jax.ShapeDtypeStruct(shape, jnp.float32)
CUT, WHOLE = {"spec": ["x"]}, {"spec": []}


def digits(batch):
    def loss(p, x, y):
        logits = jax.nn.relu(x @ p[0] + p[1]) @ p[2] + p[3]
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * y, 1))
    step = lambda p, x, y: jax.tree.map(lambda a, g: a - 0.1 * g, p, jax.grad(loss)(p, x, y))
    return step, [[f32(64, 32), f32(32), f32(32, 10), f32(10)], f32(batch, 64), f32(batch, 10)], [WHOLE] * 4 + [CUT] * 2, None


def transformer(batch):
    length, width, heads = 128, 256, 4

    def loss(p, x):
        split = lambda y: y.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)
        q, k, v = (split(x @ p[i]) for i in range(3))
        mixed = jax.nn.softmax(q @ k.transpose(0, 1, 3, 2) / 8) @ v
        x = x + mixed.transpose(0, 2, 1, 3).reshape(batch, length, width) @ p[3]
        return jnp.mean((x + jax.nn.relu(x @ p[4]) @ p[5]) ** 2)
    step = lambda p, x: jax.tree.map(lambda a, g: a - 0.1 * g, p, jax.grad(loss)(p, x))
    return step, [[f32(width, width)] * 4 + [f32(width, 4 * width), f32(4 * width, width)], f32(batch, length, width)], [WHOLE] * 6 + [CUT], None


def nbody(count):
    def step(x, v):
        d = x[None] - x[:, None]
        a = jnp.sum(d * (jnp.sum(d * d, -1) + 0.01)[..., None] ** -1.5, 1)
        return x + 0.01 * v, v + 0.01 * a
    return step, [f32(count, 3)] * 2, [CUT] * 2, [CUT] * 2


def all_reduce(hosts):
    return lambda x: x.sum(0), [f32(hosts, 1 << 24)], [CUT], [WHOLE]


def reshard(columns):
    return lambda x: x + 0, [f32(512, columns)], [CUT], [{"spec": [None, "x"]}]


# (weak: the program for N hosts, with the same work for each; strong: for any)
PROGRAMS = {
    "digits": (lambda n: digits(256 * n), lambda n: digits(1 << 17)),
    "transformer": (lambda n: transformer(8 * n), lambda n: transformer(512)),
    "n-body": (lambda n: nbody(int(2048 * math.sqrt(n)) // n * n), lambda n: nbody(16384)),
    "all-reduce of 64 MiB each": (all_reduce, None),
    "reshard of 64 MiB each": (lambda n: reshard(n << 15), lambda n: reshard(512 << 15)),
}


def explained(server, made, hosts):
    function, arguments, shardings, results = made
    text = jax.jit(function).lower(*arguments).as_text()
    program = server.ask("POST", "/v1/programs", {"format": "stablehlo", "text": text})[2]["id"]
    body = {"mesh": {"axis_names": ["x"], "devices": list(range(hosts))}, "in_shardings": shardings}
    if results is not None:
        body["out_shardings"] = results
    return ok(server.ask("POST", f"/v1/programs/{program}:explain", body))


def seconds(plan, hosts):
    """(of work, of bytes between hosts, of messages, of rank 0's beginning and ending)"""
    work = sent = messages = 0.0
    for step in plan["steps"]:
        crossing = step.get("bytes_between_processes", 0)
        # What comes from others is written, read and added; `bytes` of a sum are those of all its devices.
        touched = 3 * crossing / hosts if crossing else step["bytes"]
        work += max(step["flops"] / MEASURED["operations"], touched / MEASURED["memory"])
        if crossing:
            sent += crossing / hosts / MEASURED["network"]
            messages += 2 * (hosts - 1) * MEASURED["message"]  # a part to each of the others, and its sum back: the most that a step sends
    begin = MEASURED["begin"] + (hosts - 1) * MEASURED["begin_rank"] if hosts > 1 else 0.0
    return work, sent, messages, begin


def main():
    print("| program | scaling | " + " | ".join(f"{n} hosts" for n in HOSTS[1:]) + " | of the time at 512: work, bytes, messages, rank 0 |")
    print("|---|---|" + "--:|" * len(HOSTS[1:]) + "---|")
    with Meshd(sys.argv[1], "--devices", str(HOSTS[-1]), "--processes", str(HOSTS[-1])) as server:
        for name, kinds in PROGRAMS.items():
            for kind, made in zip(("weak", "strong"), kinds):
                if made is None:
                    continue
                times = {n: seconds(explained(server, made(n), n), n) for n in HOSTS}
                one = sum(times[1])
                shares = [one / sum(times[n]) / (1 if kind == "weak" else n) for n in HOSTS[1:]]
                last = times[HOSTS[-1]]
                print(f"| {name} | {kind} | " + " | ".join(f"{share:.0%}" for share in shares) + " | " + ", ".join(f"{part / sum(last):.0%}" for part in last)
                      + f" of {sum(last) * 1e3:.1f} ms |", flush=True)


if __name__ == "__main__":
    main()
