"""Client: a server, and what can be asked of it."""

from __future__ import annotations

import contextlib
import copy
import json
import ssl
import threading
import urllib.parse
import uuid
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from . import (
    _checkpoints,
    _dtypes,
    _exports,
    _jax,
    _numpy_text,
    _runs,
    _shardings,
    _transport,
    _uploads,
    errors,
    errors_by_code,
)
from ._arrays import PUT_OCTETS, Array
from ._callbacks import CallbackThread, tell
from ._garbage import Garbage
from ._jit import Jitted
from ._jobs import Job
from ._numpy_text import is_numpy_text
from ._own_logs import OwnLog, OwnLogs, path_of
from ._programs import Program, digest, from_text
from ._sessions import Session, effects_of
from ._shardings import Mesh, Sharding
from ._transport import Answer, Settings, Transport

#: The status of a run that goes on behind its answer.
ACCEPTED = 202
#: How long the end of a run that was interrupted may take.
GIVE_UP_SECONDS = 10.0


def connect(
    url: str | None = None,
    *,
    token: str | None = None,
    timeout: float | None = 600.0,
    connect_timeout: float = 10.0,
    retries: int = 5,
    tls: ssl.SSLContext | None = None,
) -> Client:
    """The server at `url`, which is asked who it is. Without `url` it is the one that the environment names, as for
    meshd's command line: MESHD_URL with MESHD_TOKEN or MESHD_TOKEN_FILE, and MESHD_CA; else http://127.0.0.1:8080.

    `timeout` is for each answer (None: forever), `retries` how often a request is repeated that did not reach the
    server or that it could not take; each repetition waits as Retry-After says. `tls` is for https with certificates
    of one's own: `ssl.create_default_context(cafile=...)`.
    """
    if url is None:
        url, token, tls = _transport.named_by_environment(token, tls)
    client = Client(Transport(Settings(url, token, timeout, connect_timeout, retries, tls)))
    try:
        info = client.info()
    except ValueError as error:
        raise no_server(client, error) from error
    except errors.Error as error:
        # A server's own 404 is of an address with a path; others have no code, or pages.
        if error.status == 404 or error.code == "error" and error.detail.lstrip().startswith("<"):
            raise no_server(client, error) from error
        raise
    if not isinstance(info, dict) or info.get("name") != "meshd":
        raise no_server(client, None)
    return client


def require_jax(reason: str) -> None:
    try:
        import jax  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "jax":
            raise
        raise ModuleNotFoundError(f"{reason}: pip install 'jax==0.10.2'", name="jax") from None


def no_server(client: Client, error: Exception | None) -> errors.ConnectionFailed:
    """That what answers there is another program, or that the address has a path too many."""
    url, prefix = client._transport.settings.url, client._transport.prefix
    found = f" (HTTP {error.status})" if isinstance(error, errors.Error) else ""
    hint = f"; an address has no path, or one that a proxy puts before /v1: {prefix!r}" if prefix else ""
    return errors.ConnectionFailed(f"what answers GET {prefix}/v1/info at {url} is no meshd server{found}{hint}")


class _Shared:
    """What all copies of a client have together."""

    def __init__(self, transport: Transport) -> None:
        self.garbage = Garbage(transport)
        self.lock = threading.Lock()
        self.session_lock = threading.Lock()
        self.meshes: dict[Any, Mesh] = {}
        self.texts: dict[str, Program] = {}
        self.artifacts: dict[str, _exports.Artifact] = {}
        self.lowerings = _jax.Lowerings()
        self.callback_session: Session | None = None
        self.logs = OwnLogs()
        self.thread = threading.local()


class Client:
    """A server, made by `connect`. Any thread may use it; each has a connection of its own."""

    # Frames with __tracebackhide__ are left out by notebooks and pytest: a traceback is about the caller's lines.

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._shared = _Shared(transport)
        self._options: dict[str, Any] = {}
        self._live = False

    # The server -------------------------------------------------------------------------------------------------------

    def info(self) -> dict[str, Any]:
        """Name, version, devices and caches of the server."""
        found: dict[str, Any] = self._transport.json("GET", "/v1/info")
        return found

    def devices(self) -> list[dict[str, Any]]:
        """The server's devices: id, process_index, kind, queue."""
        found: list[dict[str, Any]] = self._transport.json("GET", "/v1/devices")["items"]
        return found

    def close(self) -> None:
        """Ends the connections, and the sessions that callbacks of `run` needed."""
        with self._shared.session_lock:
            session, self._shared.callback_session = self._shared.callback_session, None
        if session is not None:
            self._shared.garbage.add(path_of(session))
        self._shared.logs.close(self)
        self._shared.garbage.stop()
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"meshd.Client({self._transport.settings.url})"

    def __copy__(self) -> Client:
        out = Client.__new__(Client)
        vars(out).update(vars(self))
        return out

    def __reduce__(self) -> Any:
        raise TypeError("a meshd.Client has connections of this process: call meshd.connect(url) in the other one")

    # Meshes and arrays ------------------------------------------------------------------------------------------------

    def mesh(
        self,
        shape: int | Sequence[int],
        axis_names: str | Sequence[str],
        devices: Sequence[Any] | None = None,
        axis_types: Sequence[Any] = (),
    ) -> Mesh:
        """Devices of the server along named axes; devices 0, 1, 2, ... when none are named, by their ids or by anything
        that has one. `axis_types` are "auto" or "explicit", or JAX's. `.jax` is the same as a JAX mesh, for
        `NamedSharding` and `jax.sharding.use_abstract_mesh`."""
        sizes = (shape,) if isinstance(shape, int) else tuple(map(int, shape))
        names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        count = int(np.prod(sizes, dtype=np.int64))
        ids = tuple(range(count)) if devices is None else _shardings.ids_of(devices)
        types = tuple(str(getattr(each, "name", each)).lower() for each in axis_types)
        return self._stored(Mesh(names, sizes, ids, types))

    def sharding(self, said: Any, mesh: Any = None) -> Sharding:
        """The server's sharding of a JAX NamedSharding, of one of its own, or of a PartitionSpec over `mesh`; without,
        over the mesh in JAX's context."""
        if _shardings.is_spec(said):
            over = mesh if mesh is not None else _shardings.mesh_in_context()
            if over is None:
                raise TypeError(
                    f"{said!r} needs a mesh: NamedSharding(m.mesh((4, 2), ('x', 'y')).jax, {said!r}), or "
                    "`with jax.sharding.use_abstract_mesh(mesh.jax):` around it"
                )
            said = Sharding(over, _shardings.normal_spec(tuple(said)))
        if isinstance(said, Sharding):
            return said if said.mesh.id else Sharding(self._stored(said.mesh), said.spec, said.sdy)
        if _shardings.is_named(said):
            stored = self._stored(_shardings.mesh_of_jax(said.mesh))
            return Sharding(stored, _shardings.normal_spec(tuple(said.spec)))
        what = "; a name is named: name=..." if isinstance(said, str) else ""
        raise TypeError(f"expected a NamedSharding of JAX or a Sharding of meshd, got {said!r}{what}")

    def put(
        self,
        x: Any,
        sharding: Any = None,
        *,
        name: str | None = None,
        unique: bool = False,
        durability: str = "durable",
    ) -> Array:
        """Stores an array, which `name` addresses from then on (the newest of a name; with `unique` no other array may
        have it). `sharding` is JAX's NamedSharding, a PartitionSpec over the mesh in JAX's context, or a Sharding of
        meshd; without, that of a JAX array that has one, else it is replicated on device 0 until a program places it.
        `durability` is `durable` (survives a restart, the default) or `memory`."""
        if isinstance(x, Array):
            x = np.asarray(x)
        if sharding is None:
            own: Any = getattr(x, "sharding", None)
            sharding = own if _shardings.is_named(own) and own.mesh.axis_names else None
        jax_type = None
        if _jax.is_loaded():
            jax_type = (tuple(x.shape), x.dtype) if hasattr(x, "dtype") and _jax.is_key(x.dtype) else None
            x = _jax.to_wire(x)
        data = np.asarray(x)
        if data.dtype == object and not isinstance(x, np.ndarray):
            raise TypeError(
                f"put takes one array, got {type(x).__name__}: jax.tree.map(m.put, tree) gives a tree of handles, "
                "m.save(prefix, tree) writes a checkpoint"
            )
        query: dict[str, Any] = {"dtype": _dtypes.name_of(data.dtype), "shape": ",".join(map(str, data.shape))}
        query.update({"name": name, "unique": "true" if unique else None, "durability": durability})
        placed = None if sharding is None else self.sharding(sharding)
        if placed is not None:
            query.update(placed.query())
        answer = self._upload("POST", "/v1/arrays:upload", list(query.items()), [_dtypes.to_bytes(data)], PUT_OCTETS)
        out = Array(self, answer.json())
        out._jax_mesh = None if placed is None else placed.mesh.origin
        out._jax_type = jax_type
        return out

    def array(self, id: str | None = None, *, name: str | None = None) -> Array:
        """The handle of an array that is on the server, by its id or, the newest of them, by its name."""
        if (id is None) == (name is None):
            raise TypeError("an array is named by its id or its name")
        if name is not None:
            return self.by_name(name)
        if not str(id).startswith("arr_"):
            raise ValueError(f"{id!r} is no id of an array; if it is a name: m.array(name={id!r})")
        return Array(self, self._transport.json("GET", f"/v1/arrays/{id}"))

    def by_name(self, name: str) -> Array:
        """The handle of the array that the name addresses: the newest that has data, or the one that holds it."""
        return Array(self, self._transport.json("GET", f"/v1/arrays/by-name/{urllib.parse.quote(name, safe='')}"))

    def arrays(self, *, name: str | None = None, prefix: str | None = None) -> list[Array]:
        """All arrays, or those of a name, or those whose names begin with a prefix."""
        return [Array(self, each) for each in self._all("/v1/arrays", {"name": name, "prefix": prefix})]

    def export(self, prefix: str) -> dict[str, np.ndarray[Any, Any]]:
        """The data of the arrays whose names begin so, by what follows the prefix: one download, of one
        moment."""
        return _checkpoints.export(self, prefix)

    def delete(self, prefix: str) -> int:
        """Deletes all arrays whose names begin so, or none where one of them is in use; how many."""
        return int(self._transport.json("DELETE", "/v1/arrays", query={"prefix": prefix})["deleted"])

    def save(self, prefix: str, tree: Any, *, durability: str = "durable") -> None:
        """Writes a checkpoint: a tree of arrays, as names below the prefix, in one transaction. One that is there is
        replaced; arrays that only the earlier one had are deleted after that, one by one. Trees are of dicts, lists,
        tuples and None, typed keys among their leaves; nodes of other classes that JAX knows need `like` to be read."""
        _checkpoints.save(self, prefix, tree, durability)

    def load(self, prefix: str, like: Any = None, *, keep: bool = False) -> Any:
        """Reads what `save` has written, as NumPy arrays; with `keep` as handles of arrays that stay on the server.
        `like` is a tree of the same structure, for classes of one's own."""
        return _checkpoints.load(self, prefix, like, keep)

    def _upload(
        self,
        method: str,
        path: str,
        query: list[tuple[str, Any]],
        body: list[bytes | memoryview],
        headers: dict[str, str],
    ) -> Answer:
        """Large bodies go on where a lost connection stopped them."""
        if _uploads.size_of(body) < _uploads.RESUMED_BYTES or ("durability", "memory") in query:
            return self._transport.request(method, path, query=query, body=body, headers=headers, keyed=True)
        return _uploads.upload(self._transport, method, path, query=query, body=body, headers=headers)

    def _all(self, path: str, query: dict[str, Any]) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        cursor: str | None = None
        while True:
            page = self._transport.json("GET", path, query={**query, "limit": 1000, "cursor": cursor})
            items += page["items"]
            cursor = page["next"]
            if cursor is None:
                return items

    def _stored(self, mesh: Mesh) -> Mesh:
        key = (mesh.axis_names, mesh.shape, mesh.device_ids, mesh.axis_types)
        with self._shared.lock:
            known = self._shared.meshes.get(key)
        if known is None:
            document = self._transport.json("POST", "/v1/meshes", mesh.document())
            known = Mesh(*key, id=document["id"])
            with self._shared.lock:
                self._shared.meshes[key] = self._shared.meshes[known.id] = known
        return known if mesh.origin is None else Mesh(*key, id=known.id, origin=mesh.origin)

    def _mesh_of_id(self, id: str, origin: Any) -> Mesh:
        with self._shared.lock:
            known = self._shared.meshes.get(id)
        if known is None:
            document = self._transport.json("GET", f"/v1/meshes/{id}")
            names = tuple(axis["name"] for axis in document["axes"])
            types = tuple(document.get("axis_types") or ())
            known = Mesh(names, tuple(document["shape"]), tuple(document["device_ids"]), types, id)
            with self._shared.lock:
                self._shared.meshes[id] = known
        if origin is None or tuple(origin.axis_names) != known.axis_names or tuple(origin.axis_sizes) != known.shape:
            return known
        return Mesh(known.axis_names, known.shape, known.device_ids, known.axis_types, id, origin)

    # Runs -------------------------------------------------------------------------------------------------------------

    def using(self, *, live: bool | None = None, **options: Any) -> Client:
        """The same server, whose runs have these fields of the request: `deadline` (seconds), `profile`, `mesh` (a
        Mesh), `devices` ("least_loaded"), `reshard`, `donation` ("strict"), `debug_nans`, `debug_infs`, `effects` of
        runs in sessions ("streaming", "atomic").

        Functions that give nothing back (`jax.debug.print`) are called while the program goes on, some milliseconds
        after their turn; with `live` the program waits for each of them, with effects="atomic" they are called when it
        is over."""
        out = copy.copy(self)
        if isinstance(options.get("mesh"), Mesh):
            options["mesh"] = options["mesh"].document()
        out._options = {**self._options, **options}
        out._live = self._live if live is None else live
        return out

    def run(self, function: Any, /, *args: Any, keep: bool | str = False, **kwargs: Any) -> Any:
        """Runs a function on the server and gives what it returns, trees of NumPy arrays.

        `function` is jitted by JAX, or is jitted here, or is what `jax.jit(f).lower(...)` or `jax.export.export` gave
        (also as the bytes of `serialize()`), or text: StableHLO, or a `def` in NumPy syntax. It is lowered for the
        types of its arguments, which may be handles of arrays on the server. With `keep` the results stay there and
        come as handles: in its memory, until the handle is gone (True or "memory"), or "durable", until they are
        deleted.
        """
        __tracebackhide__ = True
        return self._run(function, args, kwargs, keep, None)

    def submit(self, function: Any, /, *args: Any, keep: bool | str = False, **kwargs: Any) -> Job:
        """As `run`, in the background: a Job."""
        __tracebackhide__ = True
        return self._submit(function, args, kwargs, keep, None)

    def job(self, id: str) -> Job:
        """A job that was submitted before, by whatever process. Its result is flat (one value, or a tuple): the tree
        and the Python functions are the submitter's. Results that were kept on the server come as handles."""
        document = self._transport.json("GET", f"/v1/jobs/{id}")
        request = _runs.Request(Program("", [], []), [], None, {}, "base64", {})
        return Job(self, document, request, None)

    def session(
        self,
        name: str | None = None,
        *,
        id: str | None = None,
        on_error: str = "continue",
        effects: str = "atomic",
    ) -> Session:
        """Opens a session: runs in order, and a log of their effects; with `id` one that is open already, by whatever
        process. `on_error="halt"` holds the runs behind one that failed. With `effects="streaming"` effects are in the
        log some milliseconds after they happened, while their run goes on; a run that fails leaves them there."""
        if id is not None:
            return Session(self, self._transport.json("GET", f"/v1/sessions/{id}"))
        body: dict[str, Any] = {"on_error": on_error, "effects": effects}
        if name is not None:
            body["name"] = name
        return Session(self, self._transport.json("POST", "/v1/sessions", body, keyed=True))

    @overload
    def jit(self, function: Callable[..., Any], /, *, keep: bool | str = False, **options: Any) -> Jitted: ...

    @overload
    def jit(self, /, *, keep: bool | str = False, **options: Any) -> Callable[[Callable[..., Any]], Jitted]: ...

    def jit(self, function: Callable[..., Any] | None = None, /, *, keep: bool | str = False, **options: Any) -> Any:
        """Decorates a function that is to run on the server: `@m.jit`, or `@m.jit(keep=True, donate_argnums=0)`.

        Options are those of `jax.jit`. It is lowered once for each structure and types of arguments, and its text is
        posted once; later calls name it by its id.
        """

        require_jax("@m.jit lowers functions by JAX")
        import jax

        def decorate(inner: Callable[..., Any]) -> Jitted:
            return Jitted(self, jax.jit(inner, **options), keep)

        return decorate if function is None else decorate(function)

    @property
    def last_run(self) -> _runs.RunInfo:
        """What the answer of this thread's last run had beside the results: shardings, statistics, times."""
        found: _runs.RunInfo | None = getattr(self._shared.thread, "info", None)
        if found is None:
            raise RuntimeError("this thread has run nothing yet")
        return found

    def program(self, function: Any, /, *args: Any, **kwargs: Any) -> Program:
        """The program that a call of the function would run; `.text` is its StableHLO."""
        return self._lower(function, args, kwargs)[0]

    def explain(self, function: Any, /, *args: Any, **kwargs: Any) -> str:
        """What a call would do, as text: shardings, collectives and their bytes, memory of a device."""
        program, leaves = self._lower(function, args, kwargs)
        program.store(self)
        body: dict[str, Any] = {} if program.mesh is None else {"mesh": program.mesh}
        if program.format == "numpy":
            body.update(_runs.types_of(program.encode(leaves)))
        answer = self._transport.request(
            "POST",
            f"/v1/programs/{program.id}:explain",
            body=json.dumps(body).encode(),
            headers={"Accept": "text/plain", "Content-Type": "application/json"},
        )
        return bytes(answer.body).decode()

    def _lower(
        self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], live: bool = False
    ) -> tuple[Program, list[Any]]:
        __tracebackhide__ = True
        if isinstance(function, Program):
            return function, list(args)
        if isinstance(function, str) and is_numpy_text(function):
            return _numpy_text.call(function, args, kwargs)
        if isinstance(function, str):
            if kwargs:
                raise TypeError("a text has no names of arguments")
            key = digest(function)
            with self._shared.lock:
                program = self._shared.texts.get(key)
            if program is None:
                program = from_text(self, function)
                with self._shared.lock:
                    self._shared.texts[key] = program
            return program, list(args)
        if isinstance(function, Jitted):
            function = function.jitted
        if _jax.is_lowered(function):
            return self._shared.lowerings.of_lowered(function, args, kwargs)
        if _jax.is_compiled(function):
            raise TypeError("a compiled function runs in this process: pass jax.jit(f), or jax.jit(f).lower(...)")
        if _jax.is_exported(function):
            if function.nr_devices > 1:  # JAX calls it where there are as many; these are the server's
                return self._shared.lowerings.of_exported(function, args, kwargs)
            function = function.call
        if isinstance(function, (bytes, bytearray, memoryview)):
            return _exports.call(self, bytes(function), args, kwargs)
        if not callable(function):
            raise TypeError(
                "expected a function, StableHLO text, a `def` in NumPy syntax or the bytes of an export, got "
                + type(function).__name__
            )
        require_jax("a Python function is lowered by JAX; a `def` in NumPy syntax, as text, runs without")
        return self._shared.lowerings.lower(function, args, kwargs, live)

    def _prepare(
        self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], keep: bool | str, background: bool
    ) -> _runs.Request:
        __tracebackhide__ = True
        if isinstance(function, Jitted):
            keep = keep or function.keep
        program, leaves = self._lower(function, args, kwargs)
        if program.callbacks:
            answers = {effect["answers"] for effect in program.store(self)["effects"]}
            # Beside functions that give something back the others are called in their place, else after the run.
            if False in answers and (self._live or True in answers):
                program, leaves = self._lower(function, args, kwargs, live=True)
        if (isinstance(function, Jitted) or program.is_sent_again()) and program.can_be_stored:
            program.store(self)
        return _runs.make_request(self, program, leaves, keep, self._options, background)

    def _run(
        self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], keep: bool | str, session: Session | None
    ) -> Any:
        __tracebackhide__ = True
        try:
            return self._run_request(self._prepare(function, args, kwargs, keep, background=False), session)
        except errors.Error as error:
            # It is about the caller's line: the frames between are left out.
            raise error.with_traceback(None) from error.__cause__

    def _run_request(self, request: _runs.Request, session: Session | None) -> Any:
        __tracebackhide__ = True
        # The server may run a job that asks again after a crash.
        _runs.upload_large(self, request, "durable" if request.is_live else "memory")
        try:
            if request.is_live:
                return self._wait_for(self._job(request, session))
            if request.program.callbacks and session is None and request.options.get("effects") != "atomic":
                return self._tell_from_own_log(request)
            if request.program.callbacks and session is not None and self._streams(session):
                return self._tell_meanwhile(request, session, None)
            return self._answer(request, session)
        finally:
            _runs.delete_uploaded(request)

    def _streams(self, session: Session) -> bool:
        """Whether effects of a run of this client in the session are in the log while it goes on."""
        return bool(self._options.get("effects", "streaming" if session.streams else "atomic") == "streaming")

    def _answer(self, request: _runs.Request, session: Session | None) -> Any:
        """One request, whose answer has all."""
        __tracebackhide__ = True
        answer = self._post(request, session, {})
        results, info = _runs.read_answer(self, request, answer)
        _runs.mark_donated(request)
        self._shared.thread.info = info
        if request.program.callbacks:
            tell(request.program.callbacks, effects_of(self, None if session is None else session.id, info))
        return request.program.finish(results)

    def _tell_from_own_log(self, request: _runs.Request) -> Any:
        """A run without a session streams to one of the client's own."""
        try:
            own = self._shared.logs.take(self)
        except errors.Error:  # the server opens no more: functions are called when the run is over
            return self._answer(request, None)
        try:
            out = self._tell_meanwhile(request, own.session, own)
        except BaseException as error:  # KeyboardInterrupt, too: what runs there ends with the session
            if isinstance(error, errors.Error) and not isinstance(error, errors.CallbackFailed):
                self._tell_rest(request, own)
            self._shared.logs.drop(self, own)
            if isinstance(error, errors_by_code.NotFound) and not self._is_open(own.session):
                return self._tell_from_own_log(request)
            raise
        self._shared.logs.give_back(self, own)
        return out

    def _is_open(self, session: Session) -> bool:
        """Somebody may have deleted it, or the server may have another data folder now."""
        try:
            self._transport.json("GET", path_of(session))
        except errors_by_code.NotFound:
            return False
        return True

    def _tell_rest(self, request: _runs.Request, own: OwnLog) -> None:
        """What a run has told before it failed."""
        with contextlib.suppress(errors.Error):
            for effect in own.session.effects(after=own.told, follow=False):
                own.told = effect.sequence
                tell(request.program.callbacks, [effect])

    def _tell_meanwhile(self, request: _runs.Request, session: Session, own: OwnLog | None) -> Any:
        """Waits a moment for the end of the run, as most need no more. Follows the log of one that takes longer."""
        request.streams = True
        answer = self._post(request, session, {"Prefer": "wait=1"})
        if answer.status == ACCEPTED:
            job = Job(self, answer.json(), request, None, told=0 if own is None else own.told)
            if own is None:
                return self._wait_for(job)
            job._effects = []
            try:
                out = self._wait_for(job)
            except errors.Error:
                own.told = job._told
                raise
            own.hand_over(job._effects, self.last_run)
            return out
        results, info = _runs.read_answer(self, request, answer)
        _runs.mark_donated(request)
        effects = effects_of(self, session.id, info)
        if own is not None:
            own.hand_over(effects, info)
        self._shared.thread.info = info
        tell(request.program.callbacks, effects)
        return request.program.finish(results)

    def _wait_for(self, job: Job) -> Any:
        try:
            job._answer_callbacks()
            result = job.result()
        except BaseException:  # KeyboardInterrupt: nobody would answer it any more
            job.cancel()
            raise
        self._shared.thread.info = job.info
        return result

    def _submit(
        self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], keep: bool | str, session: Session | None
    ) -> Job:
        __tracebackhide__ = True
        request = self._prepare(function, args, kwargs, keep, background=True)
        request.streams = session is not None and self._streams(session)
        _runs.upload_large(self, request, "durable")
        try:
            job = self._job(request, session)
            job._answer_callbacks()
            return job
        except BaseException:
            _runs.delete_uploaded(request)
            raise

    def _job(self, request: _runs.Request, session: Session | None) -> Job:
        if request.encoding == "safetensors":
            request.encoding = "array"
        callbacks = None
        if request.is_live:
            session = session or self._session_for_callbacks()
            callbacks = CallbackThread(self, session.id, request.program.callbacks)
        is_free = not request.program.donated and request.program.format is None  # positions are those of the text
        request.gives_uploads = bool(request.uploaded) and is_free and request.options.get("donation") != "strict"
        document = self._post(request, session, {"Prefer": "respond-async"}).json()
        return Job(self, document, request, callbacks)

    def _post(self, request: _runs.Request, session: Session | None, more: dict[str, str]) -> Any:
        __tracebackhide__ = True
        path = "/v1/run" if session is None else f"/v1/sessions/{session.id}/jobs"
        keyed = session is not None or bool(more) or request.changes_something
        use_id = request.program.id is not None
        for is_again in (False, True):
            headers, buffers = request.body(use_id)
            headers.update(more)
            if keyed:
                headers["Idempotency-Key"] = str(uuid.uuid4())
            try:
                return self._send_run(path, headers, buffers, request.program.text, keyed, "Prefer" in more)
            except errors_by_code.NotFound as error:
                # Somebody has deleted the program; its text is here.
                if is_again or not use_id or error.pointer not in ("", "/program/id"):
                    raise
                request.program.store(self, again=True)
        raise AssertionError("the second attempt returns or raises")

    def _send_run(
        self,
        path: str,
        headers: dict[str, str],
        buffers: list[bytes | memoryview],
        text: str,
        keyed: bool,
        takes_job: bool,
    ) -> Answer:
        """The answer of a run. Where its connection was lost on the way, the run goes on: it is waited for, or with
        `takes_job` its job is the answer. A run that nobody waits for any more is cancelled."""
        __tracebackhide__ = True
        while True:
            try:
                return self._transport.request("POST", path, body=buffers, headers=headers, text=text)
            except errors_by_code.IdempotencyInProgress as error:
                if not error.location.startswith("/v1/jobs/"):
                    raise
                if takes_job:
                    job = self._transport.request("GET", error.location)
                    return Answer(ACCEPTED, job.headers, job.body)
                try:
                    while not Job.is_over(self._transport.json("GET", error.location, query={"wait": 30})):
                        pass
                except BaseException:
                    self._end(error.location)
                    raise
            except BaseException as error:
                # Ctrl-C, or the time is up. One without a key ends with its connection.
                if keyed and (isinstance(error, errors.TimedOut) or not isinstance(error, errors.Error)):
                    self._give_up(path, headers, buffers)
                raise

    def _give_up(self, path: str, headers: dict[str, str], buffers: list[bytes | memoryview]) -> None:
        """Cancels a run whose answer was not waited for: its key tells which job it is."""
        asked = {**headers, "Prefer": "respond-async"}
        try:
            answer = self._transport.request(
                "POST", path, body=buffers, headers=asked, timeout=GIVE_UP_SECONDS, is_repeatable=False
            )
        except errors_by_code.IdempotencyInProgress as error:
            self._end(error.location)
        except errors.Error:
            pass  # it is over, or the server is gone
        else:
            if answer.status == ACCEPTED:  # the first request has not come through
                self._end(f"/v1/jobs/{answer.json()['id']}")

    def _end(self, job: str) -> None:
        """Cancels a job by its path, if the server can be reached."""
        with contextlib.suppress(errors.Error):
            self._transport.request("DELETE", job, timeout=GIVE_UP_SECONDS, is_repeatable=False)

    def _session_for_callbacks(self) -> Session:
        with self._shared.session_lock:
            known = self._shared.callback_session
            if known is None:
                known = self._shared.callback_session = self.session("callbacks of runs")
                self._shared.garbage.own(path_of(known))
        return known
