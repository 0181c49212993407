"""Run JAX functions, and keep sharded arrays, on a meshd server.

>>> import meshd
>>> m = meshd.connect("http://127.0.0.1:8080")
>>> m.run(lambda x: x @ x.T, np.ones((2, 3), np.float32))
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
]
__all__ += errors_by_code.__all__
