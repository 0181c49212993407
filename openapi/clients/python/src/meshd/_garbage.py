"""Deletes on the server what nothing here refers to any more, as JAX frees its buffers."""

from __future__ import annotations

import atexit
import queue
import threading
import time
import weakref
from typing import TYPE_CHECKING

from . import errors
from .errors_by_code import ArrayInUse

if TYPE_CHECKING:
    from ._transport import Transport

#: Seconds until an array that an accepted job has still to read is tried again.
IN_USE_PAUSE = 1.0
#: What the end of the process waits for at most.
LONGEST_EXIT = 5.0


class Garbage:
    """Paths of what is to be deleted, and the thread that does, once there is anything. Any thread may use it."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        # Finalizers call put() wherever they are, inside of another put() too: SimpleQueue allows it, locks do not.
        self._queue: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        #: What goes with the process at the latest.
        self._owned: set[str] = set()
        _all.add(self)

    def own(self, path: str) -> None:
        """What is there is deleted by `add`, or when the process ends."""
        with self._lock:
            self._owned.add(path)
            # Here, since finalizers must start nothing.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._work, name="meshd garbage", daemon=True)
                self._thread.start()

    def disown(self, path: str) -> None:
        """Leaves it there."""
        with self._lock:
            self._owned.discard(path)

    def add(self, path: str) -> None:
        """Deletes it soon; may be called by finalizers."""
        self._queue.put(path)

    def stop(self, timeout: float = 30.0) -> None:
        """Deletes what was added and ends the thread."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None and thread.is_alive():
            self._queue.put(None)
            thread.join(timeout)

    def at_exit(self) -> None:
        with self._lock:
            owned = list(self._owned)
        for path in owned:
            self._queue.put(path)
        self.stop(LONGEST_EXIT)

    def _work(self) -> None:
        in_use: list[str] = []
        while True:
            try:
                path = self._queue.get(timeout=IN_USE_PAUSE if in_use else None)
            except queue.Empty:
                waited, in_use = in_use, []
                in_use = [each for each in waited if not self._delete(each)]
                continue
            if path is None:
                for each in in_use:
                    self._delete(each)
                return
            if not self._delete(path):
                in_use.append(path)

    def _delete(self, path: str) -> bool:
        """False where a job has still to read it."""
        with self._lock:
            if path not in self._owned:
                return True
        try:
            self._transport.request("DELETE", path)
        except ArrayInUse:
            return False
        except errors.ConnectionFailed:
            time.sleep(IN_USE_PAUSE)  # a server that is gone has nothing in its memory either
        except errors.Error:
            pass  # deleted by somebody else
        self.disown(path)
        return True


_all: weakref.WeakSet[Garbage] = weakref.WeakSet()


@atexit.register
def _at_exit() -> None:
    for garbage in list(_all):
        garbage.at_exit()
