"""Deletes arrays on the server whose handles are gone, as JAX frees its buffers."""

from __future__ import annotations

import queue
import threading
import time
from typing import TYPE_CHECKING

from . import errors
from .errors_by_code import ArrayInUse

if TYPE_CHECKING:
    from ._transport import Transport

#: Seconds until an array that an accepted job has still to read is tried again.
IN_USE_PAUSE = 1.0


class Garbage:
    """Ids of arrays to delete, and the thread that does, once there are any. Any thread may add, finalizers too."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        # SimpleQueue.put may interrupt itself, which finalizers do.
        self._queue: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, id: str) -> None:
        self._queue.put(id)

    def start(self) -> None:
        """Lets the thread run; called where an array gets an owner, since finalizers must start nothing."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._work, name="meshd garbage", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Deletes what is there and ends the thread."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None and thread.is_alive():
            self._queue.put(None)
            thread.join(30)

    def _work(self) -> None:
        in_use: list[str] = []
        while True:
            try:
                id = self._queue.get(timeout=IN_USE_PAUSE if in_use else None)
            except queue.Empty:
                waited, in_use = in_use, []
                in_use = [each for each in waited if not self._delete(each)]
                continue
            if id is None:
                for each in in_use:
                    self._delete(each)
                return
            if not self._delete(id):
                in_use.append(id)

    def _delete(self, id: str) -> bool:
        """False where a job has still to read it."""
        try:
            self._transport.request("DELETE", f"/v1/arrays/{id}")
        except ArrayInUse:
            return False
        except errors.ConnectionFailed:
            time.sleep(IN_USE_PAUSE)  # a server that is gone has nothing in its memory either
        except errors.Error:
            pass  # deleted by somebody else
        return True
