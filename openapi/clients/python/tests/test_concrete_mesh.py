"""Meshes of devices that this process has: in a process of its own with eight, as JAX counts them once."""

import os
import subprocess
import sys
import textwrap

SCRIPT = """
import sys
import jax, numpy as np
import jax.numpy as jnp
from jax.experimental import io_callback
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
import meshd

m = meshd.connect(sys.argv[1])
assert jax.device_count() == 8
x = np.arange(64, dtype=np.float32).reshape(8, 8)
for devices in (jax.devices(), jax.devices()[::-1], jax.devices()[3:7]):
    mesh = Mesh(np.array(devices).reshape(-1, 2), ("x", "y"))
    sharding = NamedSharding(mesh, P("x", "y"))
    f = jax.jit(lambda a, b: (a @ b, a.sum()), out_shardings=(sharding, None))
    here = jax.device_put(x, sharding)
    expected = f(here, here)
    # Arrays of this process, and a handle that lies where JAX would have put it.
    there = m.put(here)
    assert there.sharding.jax == sharding, there.sharding
    assert [each.device for each in there.shards] == [device.id for device in devices]
    for a in (here, there):
        got, total = m.run(f, a, a, keep=True)
        assert np.array_equal(got, expected[0]) and float(total) == float(expected[1])
        assert [each.device for each in got.shards] == [device.id for device in devices], got.shards
        assert got.sharding.spec == ("x", "y")
    for shard, own in zip(there.shards, sorted(here.addressable_shards, key=lambda s: devices.index(s.device))):
        assert shard.index == own.index and shard.replica_id == own.replica_id
        assert np.array_equal(shard.data, own.data)
    # Callbacks on such a mesh.
    seen = []
    scalar = jax.ShapeDtypeStruct((), jnp.float32)
    g = lambda a: io_callback(lambda v: (seen.append(np.shape(v)), v.sum())[1], scalar, a)
    assert m.run(g, here) == x.sum() and seen == [(8, 8)]

made = jax.make_mesh((4, 2), ("a", "b"))  # explicit axes
with jax.set_mesh(made):
    h = lambda a: jax.sharding.reshard(a, P(None, "a")) * 2
    got = m.run(h, jax.device_put(x, NamedSharding(made, P("a"))), keep=True)
assert got.sharding.spec == (None, "a") and np.array_equal(got, x * 2)
m.close()
print("all right")
"""


def test_concrete_meshes(server):
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), server.url]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=240)
    assert done.returncode == 0 and "all right" in done.stdout, done.stderr[-3000:]


def test_without_jax(server):
    """Arrays and text need NumPy alone."""
    script = """
import sys
sys.modules["jax"] = None
import numpy as np, meshd
m = meshd.connect(sys.argv[1])
a = m.put(np.arange(6.0), m.mesh((2,), ("x",)).sharding("x"))
text = "func.func @main(%a: T) -> T { %0 = stablehlo.add %a, %a : T return %0 : T }".replace("T", "tensor<6xf64>")
assert m.run(text, a).tolist() == [0, 2, 4, 6, 8, 10] and a.shards[1].data.tolist() == [3, 4, 5]
assert m.run(text, a, keep=True).sharding.spec == ("x",)
with m.session() as s:
    assert s.submit(text, range(6)).result()[5] == 10
try:
    m.run(lambda x: x, 1)
except ImportError as error:
    print("all right")
"""
    done = subprocess.run([sys.executable, "-c", script, server.url], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "all right" in done.stdout, done.stderr[-3000:]
