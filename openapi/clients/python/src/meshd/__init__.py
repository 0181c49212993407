"""Run JAX functions, and keep sharded arrays, on a meshd server.

>>> import meshd, numpy as np
>>> m = meshd.connect("http://127.0.0.1:8080")
>>> m.run(lambda x: x @ x.T, np.ones((2, 3), np.float32))

What a client has (help(meshd.Client)):

    functions   m.run(f, *args), m.submit(f, *args) in the background, @m.jit, m.explain(f, *args), m.using(deadline=3)
    arrays      m.put(x, sharding), m.array(id), m.by_name(name), m.arrays(prefix=...), m.save and m.load of checkpoints
    meshes      m.mesh((4, 2), ("x", "y")), m.devices()
    sessions    with m.session() as s: s.run(f, *args), s.effects()

Every error of the server is a class of its own, such as meshd.NotFound; all of them are meshd.Error, and
meshd.errors_by_code lists them.
"""

from . import errors_by_code
from ._arrays import Array, Part, Shard
from ._client import Client, connect
from ._jit import Jitted
from ._jobs import Job
from ._programs import Program
from ._runs import Effect, RunInfo
from ._sessions import Session
from ._shardings import Mesh, Sharding
from .errors import CallbackFailed, ClientError, ConnectionFailed, Error, TimedOut

# Attributes of the package, as meshd.NotFound, though not in __all__: help(meshd) is about the rest.
from .errors_by_code import *  # noqa: F403

__version__ = "0.1.0"
__all__ = [
    "Array",
    "CallbackFailed",
    "Client",
    "ClientError",
    "ConnectionFailed",
    "Effect",
    "Error",
    "Jitted",
    "Job",
    "Mesh",
    "Part",
    "Program",
    "RunInfo",
    "Session",
    "Shard",
    "Sharding",
    "TimedOut",
    "connect",
    "errors_by_code",
]
