"""Session: runs in order, and the durable log of their effects."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import queue
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from . import _transport, errors
from ._runs import Effect, RunInfo

if TYPE_CHECKING:
    from ._client import Client
    from ._jobs import Job

#: The server sends a comment every 15 seconds; without one for so long the connection is dead.
SILENCE = 45.0
#: Between two looks at a job whose effects do not come.
POLL = 0.2
#: The last entry of a job that has left effects and is not done.
ENDS = ("failed", "cancelled")


class Session:
    """A line of runs on the server, with a log of their effects in order. `with m.session() as s:` ends it."""

    def __init__(self, client: Client, document: dict[str, Any]) -> None:
        self._client, self._document = client, document
        self._jobs: weakref.WeakSet[Job] = weakref.WeakSet()

    @property
    def id(self) -> str:
        return str(self._document["id"])

    @property
    def name(self) -> str:
        return str(self._document["name"])

    @property
    def streams(self) -> bool:
        """Whether effects of its runs are in the log while they go on, unless a run says otherwise."""
        return self._document.get("effects") == "streaming"

    def run(self, function: Any, /, *args: Any, keep: bool | str = False, **kwargs: Any) -> Any:
        """As `m.run`, after the runs of the session that were sent before."""
        __tracebackhide__ = True
        return self._client._run(function, args, kwargs, keep, self)

    def submit(self, function: Any, /, *args: Any, keep: bool | str = False, **kwargs: Any) -> Job:
        """As `m.submit`, in the order of the session."""
        __tracebackhide__ = True
        job = self._client._submit(function, args, kwargs, keep, self)
        self._jobs.add(job)
        return job

    def barrier(self) -> None:
        """Waits until all runs that were sent before are over."""
        while True:
            try:
                self._client._transport.json("POST", f"/v1/sessions/{self.id}/barrier")
                return
            except errors.Error as error:
                if error.status != 503:
                    raise

    def close(self) -> None:
        """Ends the session on the server, with its jobs and its log."""
        self._client._transport.request("DELETE", f"/v1/sessions/{self.id}")

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        if kind is not None:
            # Their results would be gone with the session: what has failed does not wait for them.
            for job in list(self._jobs):
                with contextlib.suppress(errors.Error):
                    job.cancel()
        self.close()

    def effects(self, *, after: int = 0, follow: bool = True) -> Iterator[Effect]:
        """The effects of the session's log after a sequence number, in order, each once.

        With `follow` (default) the iterator waits for later ones and ends when the session is deleted; leave the loop
        with `break` before. It resumes where it was after a lost connection. Without, it ends with the log as it is
        now.
        """
        return self._follow(after) if follow else self._page(after)

    def _page(self, after: int) -> Iterator[Effect]:
        path = f"/v1/sessions/{self.id}/effects"
        at: str | int | None = after
        while at is not None:
            query = {"after": at, "limit": 1000, "encoding": "base64"}
            page = self._client._transport.json("GET", path, query=query)
            yield from map(Effect.of, page["items"])
            at = page["next"]

    def _follow(
        self, after: int, opened: Callable[[http.client.HTTPConnection], None] | None = None
    ) -> Iterator[Effect]:
        """`opened` is given each connection, which another thread may shut down."""
        transport = self._client._transport
        path = transport.target(f"/v1/sessions/{self.id}/events", {"encoding": "base64"})
        failures = 0
        while True:
            pause = None
            connection: http.client.HTTPConnection | None = None
            try:
                connection = transport.new_connection(SILENCE)
                connection.connect()
                if opened is not None:
                    opened(connection)
                headers = transport.headers({"Accept": "text/event-stream", "Last-Event-ID": str(after)})
                _transport.send(connection, "GET", path, None, headers)
                response = connection.getresponse()
                if response.status >= 400:
                    answer = _transport.read(response)
                    if answer.status not in _transport.REFUSED_FOR_NOW:
                        raise errors.from_problem(answer.status, answer.json())
                    pause = _transport.pause_of(failures, answer.headers.get("Retry-After"))
                else:
                    for kind, text in read_events(response):
                        failures = 0
                        if kind == "retry":
                            pause = int(text) / 1000
                        elif kind == "effect":
                            effect = Effect.of(json.loads(text))
                            after = effect.sequence
                            yield effect
                        elif kind == "closed":  # the session was deleted
                            return
            except (OSError, http.client.HTTPException):
                pass
            finally:
                if connection is not None:
                    connection.close()
            time.sleep(_transport.pause_of(failures - 1, None) if pause is None else pause)
            failures = min(failures + 1, 8)
            if failures > transport.settings.retries:
                # The log itself says whether the server is there and the session is.
                transport.json("GET", f"/v1/sessions/{self.id}")

    def __repr__(self) -> str:
        return f"meshd.Session({self.id})"


class LiveEffects:
    """The effects of one job while it runs; `is_over` says when it is. The log is followed by a thread, so that the end
    of the job ends the iteration although no effect comes any more."""

    def __init__(self, session: Session, job: str, is_over: Callable[[], bool], after: int) -> None:
        self._session, self._job, self._is_over, self._after = session, job, is_over, after
        self._found: queue.Queue[Effect] = queue.Queue(maxsize=10_000)
        self._stopping = threading.Event()
        self._connection: http.client.HTTPConnection | None = None

    def __iter__(self) -> Iterator[Effect]:
        thread = threading.Thread(target=self._read, name="meshd effects", daemon=True)
        thread.start()
        try:
            while True:
                try:
                    effect = self._found.get(timeout=POLL)
                except queue.Empty:
                    if self._is_over():
                        break
                    continue
                self._after = effect.sequence
                if effect.job == self._job:
                    yield effect
                    if effect.effect in ENDS:
                        return
        finally:
            self._stop()
        # What came between the last effect and the look at the job.
        yield from (each for each in self._session.effects(after=self._after, follow=False) if each.job == self._job)

    def _read(self) -> None:
        with contextlib.suppress(errors.Error):  # the session is gone: so is the job
            for effect in self._session._follow(self._after, self._opened):
                while not self._stopping.is_set():
                    with contextlib.suppress(queue.Full):
                        self._found.put(effect, timeout=POLL)
                        break
                if self._stopping.is_set():
                    return

    def _opened(self, connection: http.client.HTTPConnection) -> None:
        self._connection = connection
        if self._stopping.is_set():
            self._shut_down(connection)

    def _stop(self) -> None:
        self._stopping.set()
        if self._connection is not None:
            self._shut_down(self._connection)

    @staticmethod
    def _shut_down(connection: http.client.HTTPConnection) -> None:
        with contextlib.suppress(OSError, AttributeError):
            connection.sock.shutdown(socket.SHUT_RDWR)


def effects_of(client: Client, session: str | None, info: RunInfo) -> list[Effect]:
    """The effects of a run, from its answer or from the log that it has streamed them to."""
    if not info.streamed or session is None or not info.streamed["count"]:
        return info.effects
    log = Session(client, {"id": session}).effects(after=info.streamed["first"] - 1, follow=False)
    last = info.streamed["last"]
    until = itertools.takewhile(lambda effect: effect.sequence <= last, log)
    return [effect for effect in until if effect.job == info.job]


def read_events(response: Any) -> Iterator[tuple[str, str]]:
    """(event, data) of server-sent events, and ("retry", milliseconds); ends with the stream."""
    kind = ""
    data: list[str] = []
    while True:
        line = response.readline()
        if not line:
            return
        text = line.decode().rstrip("\r\n")
        if not text:
            if data:
                yield kind or "message", "\n".join(data)
            kind, data = "", []
            continue
        field, _, value = text.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            kind = value
        elif field == "data":
            data.append(value)
        elif field == "retry" and value.isdigit():
            yield "retry", value
