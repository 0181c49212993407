"""A run as a request, and its answer."""

from __future__ import annotations

import json
import math
import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _dtypes, _jax, _wire, errors, errors_by_code
from ._arrays import Array, Part
from ._numpy_text import Keywords, arrange, leaves_of, map_leaves
from ._programs import Program
from ._shardings import normal_spec

if TYPE_CHECKING:
    from ._client import Client
    from ._transport import Answer

NDArray = npt.NDArray[Any]

#: Arguments and results up to here travel as base64 in JSON, which one round trip of parsing handles fastest.
SMALL_BYTES = 16 * 1024
#: From here on arguments are uploaded before the run: uploads go at the speed of memory and have no limit, forms are
#: read whole first (a third of the speed) and have 256 MiB.
UPLOAD_BYTES = 16 << 20
#: Among larger ones, arguments up to here do so, too.
TINY_BYTES = 1024
MOST_PARTS = 1000
PACKAGE = os.path.dirname(__file__) + os.sep
#: How the warning of a donation begins that did not help; the caller has not asked for that of an upload.
NOT_USABLE = "some donated buffers were not usable"
SHARED_PART = "arguments.safetensors"
SAFETENSORS = "application/x-safetensors"


@dataclass
class Effect:
    """Something that a program told the outside."""

    sequence: int
    effect: str
    name: str
    ordered: bool
    values: list[NDArray]
    job: str | None = None
    shard: int = 0
    device: int = 0

    @classmethod
    def of(cls, document: dict[str, Any]) -> Effect:
        return cls(
            document["sequence"],
            document["effect"],
            document["name"],
            document["ordered"],
            [_wire.decode_value(value) for value in document["values"]],
            document.get("job"),
            document["shard"],
            document["device"],
        )


@dataclass
class RunInfo:
    """What a run's answer has beside the results."""

    job: str | None = None
    shardings: dict[str, Any] = field(default_factory=dict)
    statistics: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    profile: dict[str, Any] | None = None
    #: Of a run that streams its effects, which are in its session's log alone: `count`, `first` and `last` number.
    streamed: dict[str, int] | None = None
    #: With debug_nans or debug_infs: the first op that made one.
    first_nonfinite: dict[str, Any] | None = None
    #: Milliseconds of the server's stages.
    timing: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, document: dict[str, Any]) -> RunInfo:
        return cls(
            document.get("job"),
            document.get("shardings", {}),
            document.get("statistics", {}),
            document.get("warnings", []),
            [Effect.of(each) for each in document.get("effects", [])],
            document.get("profile"),
            document.get("streamed"),
            document.get("first_nonfinite"),
        )


@dataclass
class Request:
    """A run that can be sent: to /v1/run or to a session, now or in the background."""

    program: Program
    arguments: list[Any]
    keep: str | None
    options: dict[str, Any]
    #: How results come: base64, array, or safetensors.
    encoding: str
    callbacks: dict[str, Any]
    #: Whether its effects are in its session's log while it runs.
    streams: bool = False
    #: Arrays that were uploaded for it alone, by the positions of its arguments.
    uploaded: dict[int, Array] = field(default_factory=dict)
    #: Whether a NaN or an infinity that is made is an error: JAX is configured so.
    raises_nonfinite: bool = False
    #: Whether it takes them with it, so that nothing stays when this process is gone before it is over.
    gives_uploads: bool = False

    @property
    def changes_something(self) -> bool:
        """Whether sending it twice would do something twice."""
        takes = any(isinstance(self.arguments[i], Array) for i in self.program.donated)
        return self.encoding == "array" or takes

    @property
    def is_live(self) -> bool:
        return any(binding.get("live") for binding in self.callbacks.values())

    def body(self, use_id: bool) -> tuple[dict[str, str], list[bytes | memoryview]]:
        """Headers and buffers of the request."""
        document: dict[str, Any] = dict(self.options)
        document["program"] = {"id": self.program.id} if use_id else self.program.source
        files = Files(list(leaves_of(self.arguments)))
        arguments = [map_leaves(lambda leaf: self._argument(leaf, files), each) for each in self.arguments]
        if arguments and isinstance(arguments[-1], Keywords):
            document["keywords"] = arguments.pop()
        document["arguments"] = arguments
        if self.program.mesh is not None:
            document.setdefault("mesh", self.program.mesh)
        if self.callbacks:
            document["callbacks"] = self.callbacks
        if self.streams:
            document["effects"] = "streaming"
        if self.gives_uploads:
            document["donate"] = sorted(self.uploaded)
        if self.encoding == "array":
            document["results"] = {"encoding": "array", "durability": self.keep or "memory"}
        elif self.encoding == "base64":
            document["results"] = {"encoding": "base64"}
        headers = {"Accept": SAFETENSORS if self.encoding == "safetensors" else "application/json"}
        more, buffers = files.body(document)
        return {**headers, **more}, buffers

    @staticmethod
    def _argument(value: Any, files: Files) -> Any:
        if isinstance(value, float) and not isinstance(value, np.generic) and not math.isfinite(value):
            return (
                "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
            )  # JSON has no numbers of them
        if value is None or isinstance(value, (bool, int, float, str)) and not isinstance(value, np.generic):
            return value  # of NumPy syntax
        if isinstance(value, Array):
            value._check()
            return {"array": value.id}
        if isinstance(value, Part):
            value.array._check()
            return {"array": value.array.id, "slice": value.fetch.text}
        return files.add(value)


class Files:
    """Arrays that travel beside a document, as parts of a form. A form has at most 1,024 parts: of more arrays than
    that, those that safetensors has names for share one."""

    def __init__(self, arguments: Sequence[Any]) -> None:
        inline = [each for each in arguments if isinstance(each, np.ndarray)]
        self._all_small = sum(each.nbytes for each in inline) <= SMALL_BYTES
        self._share = sum(each.nbytes > TINY_BYTES for each in inline) > MOST_PARTS
        self._parts: list[tuple[str, NDArray]] = []
        self._shared: dict[str, NDArray] = {}

    def add(self, value: NDArray) -> dict[str, Any]:
        """How the request names the array."""
        if self._all_small or value.nbytes <= TINY_BYTES:
            return _wire.encode_value(value)
        dtype = _dtypes.name_of(value.dtype)
        if self._share and dtype in _dtypes.SAFETENSORS.values():
            member = str(len(self._shared))
            self._shared[member] = value
            return {"part": SHARED_PART, "member": member}
        name = f"a{len(self._parts)}"
        self._parts.append((name, value))
        # With dtype and shape the bytes are raw, whatever they begin with.
        return {"part": name, "dtype": dtype, "shape": list(value.shape)}

    def body(self, document: Any) -> tuple[dict[str, str], list[_wire.Buffer]]:
        """Headers and buffers of a request with a document that names them: a form, or without files JSON alone."""
        parts = self.parts()
        if parts:
            return _wire.form(document, parts)
        return {"Content-Type": "application/json"}, [json.dumps(document, separators=(",", ":")).encode()]

    def parts(self) -> list[tuple[str, list[_wire.Buffer]]]:
        out: list[tuple[str, list[_wire.Buffer]]] = [(name, [_dtypes.to_bytes(value)]) for name, value in self._parts]
        if self._shared:
            out.append((SHARED_PART, _wire.write_safetensors(self._shared)))
        return out


def make_request(
    client: Client, program: Program, leaves: Sequence[Any], keep: bool | str, options: dict[str, Any], background: bool
) -> Request:
    arguments = program.encode(leaves)
    callbacks: dict[str, Any] = {}
    if program.callbacks:
        for effect in program.store(client)["effects"]:
            number = effect["callback"]
            live = {"live": True} if effect["answers"] else {}
            kind = "callback" if effect["answers"] else "log"
            callbacks[str(number)] = {"effect": kind, "name": callback_name(number), **live}
    checks = {} if program.format is not None else _jax.nonfinite_checks()
    request = Request(program, arguments, kept_as(keep), {**checks, **options}, "base64", callbacks)
    request.raises_nonfinite = bool(checks)
    if keep:
        request.encoding = "array"
    elif program.format is not None:
        # Nobody knows what it gives; as much as it takes, perhaps.
        arrays = [each for each in leaves_of(arguments) if isinstance(each, (np.ndarray, Array, Part))]
        given = sum(int(np.prod(each.shape, dtype=np.int64)) * each.dtype.itemsize for each in arrays)
        request.encoding = "array" if given > SMALL_BYTES else "base64"
    elif sum(slot.nbytes for slot in program.results if -1 not in slot.shape) > SMALL_BYTES:
        # JSON is read for effects and background jobs: large results of those are stored and fetched as bytes.
        has_names = all(slot.dtype in _dtypes.SAFETENSORS.values() for slot in program.results)
        in_answer = has_names and not callbacks and not background
        request.encoding = "safetensors" if in_answer else "array"
    return request


def types_of(arguments: Sequence[Any]) -> dict[str, Any]:
    """`arguments` and `keywords` of a request about a program of NumPy syntax, which needs no data."""

    def type_of(leaf: Any) -> Any:
        if isinstance(leaf, (np.ndarray, Array, Part)):
            return {"dtype": _dtypes.name_of(leaf.dtype), "shape": list(leaf.shape)}
        return leaf

    types = [map_leaves(type_of, each) for each in arguments]
    if types and isinstance(types[-1], Keywords):
        return {"keywords": types.pop(), "arguments": types}
    return {"arguments": types}


def kept_as(keep: bool | str) -> str | None:
    if keep is True:
        return "memory"
    if keep is False or keep is None:
        return None
    if keep not in ("memory", "durable"):
        raise ValueError(f"keep is True, 'memory' or 'durable', got {keep!r}")
    return keep


def callback_name(number: int) -> str:
    return f"callback_{number}"


def read_answer(client: Client, request: Request, answer: Answer) -> tuple[list[Any], RunInfo]:
    """Results in their order, and the rest of the answer."""
    if answer.media_type == SAFETENSORS:
        found = _wire.read_safetensors(answer.body)
        results: list[Any] = [found[str(number)] for number in range(len(found))]
        info = RunInfo.of(json.loads(answer.headers.get("Meshd-Answer") or "{}"))
    else:
        document = answer.json()
        results, info = read_document(client, request, document)
    tell_nonfinite(request, info)
    info.timing = timing_of(answer.headers.get("Server-Timing") or "")
    return results, info


def read_document(client: Client, request: Request, document: dict[str, Any]) -> tuple[list[Any], RunInfo]:
    info = RunInfo.of(document)
    results: list[Any] = []
    for result in document["results"]:
        if "array" in result:
            # Its `name` is the text's name of the result, not one of the array.
            handle = {"id": result["array"], "dtype": result["dtype"], "shape": result["shape"]}
            results.append(Array(client, handle))
        else:
            results.append(_wire.decode_value(result))
    for told in info.warnings:
        if not (request.gives_uploads and told.startswith(NOT_USABLE)):
            warn(told)
    if request.encoding == "array":
        if request.keep is None:
            fetched = [np.array(each) for each in results]
            for each in results:
                each.delete()
            results = fetched
        else:
            said = info.shardings.get("results") or [{}] * len(results)
            for each, sharding in zip(results, said, strict=True):
                each._mesh_hints = request.program.mesh_axes
                if "spec" in sharding and "mesh" not in sharding:
                    each._spec_hint = normal_spec(sharding["spec"])
                if request.keep == "memory":
                    each._own()
            request.program.adopt(results)
    if "result_tree" in document:
        results = [arrange(document["result_tree"], results)]
    return results, info


def upload_large(client: Client, request: Request, durability: str) -> None:
    """Puts large arguments on the server, for this run alone: into its memory, or for one that has to outlive a restart
    on its disk."""
    try:
        for position, value in enumerate(request.arguments):
            if isinstance(value, np.ndarray) and value.nbytes >= UPLOAD_BYTES:
                request.uploaded[position] = client.put(value, durability=durability)
                request.arguments[position] = request.uploaded[position]
    except BaseException:
        delete_uploaded(request)
        raise


def delete_uploaded(request: Request) -> None:
    """Deletes them, as far as the server can be reached; those that the run has consumed still have a document."""
    for each in request.uploaded.values():
        path = f"/v1/arrays/{each.id}"
        try:
            each._client._transport.request("DELETE", path)
        except errors_by_code.ArrayInUse:  # of a run that was interrupted: it ends soon
            each._client._shared.garbage.own(path)
            each._client._shared.garbage.add(path)
        except errors.Error:
            pass


def mark_donated(request: Request) -> None:
    """Handles that the run has consumed are deleted, as JAX's arrays are."""
    for position in request.program.donated:
        argument = request.arguments[position]
        if isinstance(argument, Array):
            argument._mark("donated")


def warn(text: str) -> None:
    """A warning of the line that called this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, stacklevel=level)


def tell_nonfinite(request: Request, info: RunInfo) -> None:
    """Raises what JAX raises where its configuration asks for that, else warns."""
    if info.first_nonfinite is None:
        return
    text = nonfinite_text(info.first_nonfinite, request.program.text)
    if request.raises_nonfinite:
        raise FloatingPointError(text)
    warn(text)


def nonfinite_text(found: dict[str, Any], text: str) -> str:
    """The op that made the first NaN or infinity, with its line of the program."""
    line = found.get("line")
    source = text.split("\n")[line - 1].strip() if line else ""
    return f"the first {found['value']} is made by {found['op']} on device {found['device']}, line {line}: {source}"


def timing_of(header: str) -> dict[str, float]:
    out = {}
    for entry in header.split(","):
        name, _, duration = entry.strip().partition(";dur=")
        if duration:
            out[name] = float(duration)
    return out
