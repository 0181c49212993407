"""HTTP to one server: a kept connection for each thread, retries, problem documents as exceptions."""

from __future__ import annotations

import contextlib
import email.utils
import http.client
import json
import os
import random
import socket
import ssl
import threading
import time
import urllib.parse
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import errors

#: The request was refused before anything happened; it may be sent again whatever it was.
REFUSED_FOR_NOW = (429, 503)
LONGEST_PAUSE = 30.0
#: Smaller parts of a body are sent together.
CHUNK_BYTES = 64 * 1024


@dataclass
class Answer:
    """Status, headers and body of a response; the body of a large one can be written to."""

    status: int
    headers: http.client.HTTPMessage
    body: memoryview

    def json(self) -> Any:
        return json.loads(bytes(self.body)) if len(self.body) else None

    @property
    def media_type(self) -> str:
        return (self.headers.get("Content-Type") or "").partition(";")[0].strip().lower()


@dataclass
class Settings:
    """How a client reaches its server."""

    url: str
    token: str | None = None
    timeout: float | None = 600.0
    connect_timeout: float = 10.0
    retries: int = 5
    tls: ssl.SSLContext | None = None
    headers: dict[str, str] = field(default_factory=dict)


def named_by_environment(
    token: str | None, tls: ssl.SSLContext | None
) -> tuple[str, str | None, ssl.SSLContext | None]:
    """The address, the token and the certificates that meshd's command line would take."""
    if token is None:
        token = os.environ.get("MESHD_TOKEN")
    if token is None and os.environ.get("MESHD_TOKEN_FILE"):
        with open(os.environ["MESHD_TOKEN_FILE"], encoding="utf-8") as file:
            token = file.readline().strip()
    if tls is None and os.environ.get("MESHD_CA"):
        tls = ssl.create_default_context(cafile=os.environ["MESHD_CA"])
    return os.environ.get("MESHD_URL") or "http://127.0.0.1:8080", token or None, tls


class Transport:
    """Sends requests to the server of `settings`. Any thread may use it; each has its own connection."""

    def __init__(self, settings: Settings) -> None:
        url = settings.url
        parts = urllib.parse.urlsplit(url if "://" in url else "http://" + url)
        try:
            port = parts.port
        except ValueError:
            port = 0
        if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
            raise ValueError(f"{url!r} is no address of a server; expected http://HOST:PORT")
        if parts.username is not None:
            raise ValueError("a server is asked with token=..., not with a user in its address")
        if settings.token is not None and not all("!" <= character <= "~" for character in settings.token):
            raise ValueError("a token has visible ASCII characters alone; spaces and ends of lines are none")
        if settings.tls is not None and not isinstance(settings.tls, ssl.SSLContext):
            raise TypeError(f"tls is ssl.create_default_context(cafile=...), got {settings.tls!r}")
        for name in ("timeout", "connect_timeout"):
            said = getattr(settings, name)
            if said is not None and not (isinstance(said, (int, float)) and said > 0):
                raise TypeError(f"{name} is a number of seconds or None, got {said!r}")
        self.settings = settings
        self.scheme, self.host = parts.scheme, parts.hostname
        self.port = port or (443 if parts.scheme == "https" else 80)
        self.prefix = parts.path.rstrip("/")
        self._threads = threading.local()
        self._lock = threading.Lock()
        self._open: set[http.client.HTTPConnection] = set()

    # Connections ------------------------------------------------------------------------------------------------------

    def new_connection(self, timeout: float | None) -> http.client.HTTPConnection:
        """A connection that is open; raises OSError. It belongs to the caller."""
        connect = self.settings.connect_timeout
        connection: http.client.HTTPConnection
        if self.scheme == "https":
            tls = self.settings.tls or ssl.create_default_context()
            connection = http.client.HTTPSConnection(self.host, self.port, timeout=connect, context=tls)
        else:
            connection = http.client.HTTPConnection(self.host, self.port, timeout=connect)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connection.sock.settimeout(timeout)
        return connection

    def _kept(self) -> http.client.HTTPConnection | None:
        # A forked process must not speak on its parent's connection.
        if getattr(self._threads, "process", None) != os.getpid():
            self._threads.process, self._threads.connection = os.getpid(), None
        kept: http.client.HTTPConnection | None = self._threads.connection
        return kept if kept is not None and kept.sock is not None else None

    def _drop(self) -> None:
        connection = getattr(self._threads, "connection", None)
        if connection is not None:
            self._threads.connection = None
            with self._lock:
                self._open.discard(connection)
            connection.close()

    def close(self) -> None:
        """Ends all kept connections; a later request opens new ones."""
        with self._lock:
            connections, self._open = self._open, set()
        for connection in connections:
            connection.close()

    # Requests ---------------------------------------------------------------------------------------------------------

    def headers(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        out = {"User-Agent": "meshd-python", "Accept": "application/json", **self.settings.headers}
        if self.settings.token:
            out["Authorization"] = f"Bearer {self.settings.token}"
        out.update(more or {})
        return out

    def target(self, path: str, query: Iterable[tuple[str, Any]] | Mapping[str, Any] | None = None) -> str:
        pairs = query.items() if isinstance(query, Mapping) else (query or ())
        text = urllib.parse.urlencode([(name, value) for name, value in pairs if value is not None], safe=",:.@*/")
        # Names in paths are quoted already, with their slashes.
        return self.prefix + urllib.parse.quote(path, safe="/:@%") + ("?" + text if text else "")

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Iterable[tuple[str, Any]] | Mapping[str, Any] | None = None,
        body: bytes | Sequence[bytes | memoryview] | None = None,
        headers: Mapping[str, str] | None = None,
        keyed: bool = False,
        timeout: float | None = None,
        text: str | None = None,
        is_repeatable: bool = True,
    ) -> Answer:
        """The answer, of a status below 400; others raise. One that is not repeatable is not sent again when its
        connection was lost. `keyed` sends an Idempotency-Key, for operations whose
        repetition would do something twice; `text` is the program that errors with a line are of."""
        __tracebackhide__ = True
        sent = self.headers(headers)
        if keyed:
            sent.setdefault("Idempotency-Key", str(uuid.uuid4()))
        target = self.target(path, query)
        wait = self.settings.timeout if timeout is None else timeout
        for attempt in range(self.settings.retries + 1):
            is_last = attempt == self.settings.retries
            try:
                answer = self._exchange(method, target, body, sent, wait)
            except KeyboardInterrupt:
                self._drop()  # its answer may still come
                raise
            except TimeoutError as error:
                self._drop()
                raise errors.TimedOut(f"{method} {path}: no answer within {wait} s") from error
            except (OSError, http.client.HTTPException) as error:
                self._drop()
                if is_last or not is_repeatable:
                    where = f"{self.scheme}://{self.host}:{self.port}"
                    detail = f"{where} does not answer {method} {path}: {error or type(error).__name__}"
                    raise errors.ConnectionFailed(detail) from error
                # A kept connection that the server has closed meanwhile is no reason to wait.
                self._pause(attempt - 1, None)
                continue
            if answer.status in REFUSED_FOR_NOW and not is_last:
                self._pause(attempt, answer.headers.get("Retry-After"))
                continue
            if answer.status == 404 and method == "DELETE" and attempt > 0:
                return answer  # the request whose answer was lost has deleted it
            if answer.status >= 400:
                raise self._error(answer, text)
            return answer
        raise AssertionError("the last attempt returns or raises")

    def json(self, method: str, path: str, document: Any = None, **options: Any) -> Any:
        """The JSON document that answers a JSON document."""
        __tracebackhide__ = True
        if document is not None:
            body = json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
            options.setdefault("headers", {})
            options["headers"] = {"Content-Type": "application/json", **options["headers"]}
            return self.request(method, path, body=body, **options).json()
        return self.request(method, path, **options).json()

    def _exchange(
        self, method: str, target: str, body: Any, headers: Mapping[str, str], timeout: float | None
    ) -> Answer:
        connection = self._kept()
        if connection is None:
            try:
                connection = self.new_connection(timeout)
            except TimeoutError:
                raise ConnectionError(f"no connection within {self.settings.connect_timeout} s") from None
            self._threads.connection = connection
            with self._lock:
                self._open.add(connection)
        else:
            connection.sock.settimeout(timeout)
        try:
            send(connection, method, target, body, headers)
        except (BrokenPipeError, ConnectionResetError) as error:
            # A server that refuses a large body answers and does not read on.
            try:
                answer = read(connection.getresponse())
            except (OSError, http.client.HTTPException):
                raise error from None
            self._drop()
            return answer
        answer = read(connection.getresponse())
        if (answer.headers.get("Connection") or "").lower() == "close":
            self._drop()
        return answer

    def _pause(self, attempt: int, retry_after: str | None) -> None:
        time.sleep(pause_of(attempt, retry_after))

    def _error(self, answer: Answer, text: str | None) -> errors.Error:
        problem: Any = None
        with contextlib.suppress(ValueError):
            problem = answer.json()
        if not isinstance(problem, dict):
            detail = bytes(answer.body[:500]).decode(errors="replace") or f"HTTP {answer.status}"
            return errors.Error(detail, status=answer.status)
        error = errors.from_problem(answer.status, problem, text)
        error.location = answer.headers.get("Location") or ""
        return error


def pause_of(attempt: int, retry_after: str | None) -> float:
    """Seconds before the next attempt: what Retry-After says (seconds or a date), else a growing time."""
    if retry_after:
        try:
            return min(LONGEST_PAUSE, max(0.0, float(retry_after)))
        except ValueError:
            with contextlib.suppress(ValueError, TypeError):
                until = email.utils.parsedate_to_datetime(retry_after).timestamp()
                return min(LONGEST_PAUSE, max(0.0, until - time.time()))
    return 0.0 if attempt < 0 else min(LONGEST_PAUSE, 0.1 * 2**attempt) * random.uniform(0.5, 1.0)


def send(
    connection: http.client.HTTPConnection,
    method: str,
    target: str,
    body: bytes | Sequence[bytes | memoryview] | None,
    headers: Mapping[str, str],
) -> None:
    """Sends a request; small ones in one packet."""
    connection.putrequest(method, target, skip_accept_encoding=True)
    for name, value in headers.items():
        connection.putheader(name, value)
    parts = [] if body is None else [body] if isinstance(body, (bytes, bytearray)) else list(body)
    size = sum(len(part) for part in parts)
    if body is not None or method in ("POST", "PUT", "PATCH"):
        connection.putheader("Content-Length", str(size))
    if size <= CHUNK_BYTES:
        connection.endheaders(b"".join(parts) if parts else None)
        return
    connection.endheaders()
    for chunk in chunks_of(parts):
        connection.send(chunk)


def chunks_of(parts: Iterable[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    """The same bytes, small parts together: each chunk is a call of the system and, at the least, a packet."""
    small: list[bytes | memoryview] = []
    held = 0
    for part in parts:
        if held + len(part) > CHUNK_BYTES and small:
            yield b"".join(small)
            small, held = [], 0
        if len(part) > CHUNK_BYTES:
            yield part
        else:
            small.append(part)
            held += len(part)
    if small:
        yield b"".join(small)


def read(response: http.client.HTTPResponse) -> Answer:
    """The whole answer, its body in memory of its own."""
    size = response.length
    if size is None:  # chunked, or up to the end of the connection
        return Answer(response.status, response.headers, memoryview(response.read()))
    buffer = np.empty(size, np.uint8)
    view = buffer.data
    at = 0
    while at < size:
        count = response.readinto(view[at:])
        if not count:
            raise http.client.IncompleteRead(bytes(view[:at]), size - at)
        at += count
    response.read()  # marks the response as complete, so that the connection can be used again
    return Answer(response.status, response.headers, view)
