"""Answers programs that call Python functions while they run, and calls those whose calls are only told of."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _dtypes, _transport, _wire, errors
from ._runs import Files

if TYPE_CHECKING:
    from ._client import Client
    from ._runs import Effect

LONGEST_WAIT = 20


class CallbackThread:
    """Replies to the callback requests of one job of a session until it is stopped."""

    def __init__(self, client: Client, session: str, functions: Sequence[Callable[..., Any]]) -> None:
        self._client, self._session, self._functions = client, session, functions
        self._job: str | None = None
        self._stopping = threading.Event()
        self._connection: http.client.HTTPConnection | None = None
        self._lock = threading.Lock()
        #: What a function raised; the job was cancelled then.
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="meshd callbacks", daemon=True)

    def start(self, job: str) -> None:
        self._job = job
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread, also while it waits for the server; waits for a function that runs."""
        self._stopping.set()
        with self._lock:
            connection = self._connection
            if connection is not None and connection.sock is not None:
                # Not close(): the thread is reading from it.
                try:
                    connection.sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _work(self) -> None:
        after, failures = 0, 0
        while not self._stopping.is_set() and self.failure is None:
            try:
                requests = self._ask(after)
                if not requests and self._is_over():
                    break
            except (OSError, http.client.HTTPException, errors.ConnectionFailed):
                self._disconnect()
                failures += 1
                self._stopping.wait(_transport.pause_of(min(failures, 6), None))
                continue
            except errors.Error as error:  # the session was deleted, the token is no longer good
                self._fail(error)
                break
            failures = 0
            for request in requests:
                after = request["number"]
                if request["job"] == self._job and not self._stopping.is_set() and self.failure is None:
                    self._serve(request)
        self._disconnect()

    def _serve(self, request: dict[str, Any]) -> None:
        """Calls the function and replies, once; a function that raises ends the job."""
        try:
            results = self._results(request)
            files = Files(results)
            headers, body = files.body({"values": [files.add(result) for result in results]})
        except BaseException as error:  # whatever a function of the user raises, KeyboardInterrupt too
            self._fail(error)
            return
        path = f"/v1/sessions/{self._session}/callbacks/{request['number']}"
        while not self._stopping.is_set():
            try:
                # The same reply twice changes nothing; what it is need not come back.
                self._client._transport.request("POST", path, query={"encoding": "none"}, body=body, headers=headers)
                return
            except errors.ConnectionFailed:
                self._stopping.wait(_transport.LONGEST_PAUSE / 10)
            except errors.Error as error:
                if error.status not in (404, 409):  # those: nobody waits for it any more
                    self._fail(error)
                return

    def _fail(self, error: BaseException) -> None:
        if not self._stopping.is_set():
            self.failure = error
            self._cancel()

    def _is_over(self) -> bool:
        """Whether the job is, where nobody waits for its result."""
        job = self._client._transport.json("GET", f"/v1/jobs/{self._job}")
        return job["state"] in ("done", "failed", "cancelled")

    def _ask(self, after: int) -> list[dict[str, Any]]:
        transport = self._client._transport
        with self._lock:
            if self._stopping.is_set():
                return []
            if self._connection is None:
                self._connection = transport.new_connection(LONGEST_WAIT + 20)
            connection = self._connection
        path = f"/v1/sessions/{self._session}/callbacks"
        query = {"after": after, "wait": LONGEST_WAIT, "encoding": "base64"}
        _transport.send(connection, "GET", transport.target(path, query), None, transport.headers())
        answer = _transport.read(connection.getresponse())
        if answer.status in _transport.REFUSED_FOR_NOW:
            time.sleep(_transport.pause_of(0, answer.headers.get("Retry-After")))
            return []
        if answer.status >= 400:
            raise errors.from_problem(answer.status, answer.json())
        items: list[dict[str, Any]] = answer.json()["items"]
        return items

    def _results(self, request: dict[str, Any]) -> list[npt.NDArray[Any]]:
        """What the function gives, as the request expects it."""
        values = [_wire.decode_value(value) for value in request["values"]]
        results = call(self._functions[request["callback"]], values, request["ordered"])
        out = []
        for result, slot in zip(results, request["expected"], strict=True):
            array = np.asarray(result)
            if array.dtype != _dtypes.to_numpy(slot["dtype"]):
                array = array.astype(_dtypes.to_numpy(slot["dtype"]))
            out.append(array)
        return out

    def _cancel(self) -> None:
        try:
            self._client._transport.request("DELETE", f"/v1/jobs/{self._job}")
        except errors.Error:
            pass

    def _disconnect(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None


def call(function: Callable[..., Any], values: list[Any], ordered: bool) -> list[Any]:
    """What JAX's wrapper of a Python function gives, without the token of an ordered one."""
    if ordered:
        return list(function(None, *values))[1:]
    return list(function(*values))


def tell(functions: Sequence[Callable[..., Any]], effects: Sequence[Effect]) -> None:
    """Calls the functions that give nothing back, for each call of the program in its order."""
    for effect in effects:
        if not functions or effect.effect != "log" or not effect.name.startswith("callback_"):
            continue
        number = int(effect.name.removeprefix("callback_"))
        try:
            call(functions[number], list(effect.values), effect.ordered)
        except Exception as error:
            raise errors.CallbackFailed(f"a function that the program calls has raised {error!r}") from error
