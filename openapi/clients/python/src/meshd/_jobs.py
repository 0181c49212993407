"""Job: a run in the background."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import _runs, errors, errors_by_code
from ._callbacks import CallbackThread, tell
from ._sessions import LiveEffects, Session, effects_of

if TYPE_CHECKING:
    from ._client import Client

LONGEST_WAIT = 30


class Job:
    """A run in the background, of `m.submit` or `session.submit`. Any thread may use it."""

    def __init__(
        self,
        client: Client,
        document: dict[str, Any],
        request: _runs.Request,
        callbacks: CallbackThread | None,
        told: int = 0,
    ) -> None:
        self._client, self._request, self._callbacks = client, request, callbacks
        self._document = document
        #: Of a job that streams, the number in the log of the last effect that its functions were told of.
        self._told = told
        #: Those effects, where the log is the client's own.
        self._effects: list[_runs.Effect] | None = None
        self._lock = threading.Lock()
        self._outcome: tuple[Any, BaseException | None] | None = None
        #: What the answer has beside the results, once `result()` has returned.
        self.info: _runs.RunInfo | None = None

    @property
    def id(self) -> str:
        return str(self._document["id"])

    @property
    def status(self) -> str:
        """`queued`, `running`, `done`, `failed` or `cancelled`."""
        return str(self._refresh()["state"])

    @property
    def progress(self) -> dict[str, Any]:
        """`steps_done`, `running_seconds`, the `loop` it is in with its iterations, the op that runs and its line.
        Where the program says how much there is to do: `steps_total`, `percent` and `remaining_seconds`. Empty before
        it runs."""
        found: dict[str, Any] = self._refresh().get("progress") or {}
        return found

    def effects(self, *, after: int = 0) -> Iterator[_runs.Effect]:
        """Its effects in its session's log behind a sequence number, each as soon as it is there, until the job is
        over: with `effects="streaming"` while it runs. Of a job that has failed or was cancelled the last one says so
        (its `effect` is "failed" or "cancelled"), if it has left others."""
        session = self._document.get("session")
        if session is None:
            raise ValueError("the job is in no session: its effects are in its answer alone (info.effects)")
        return iter(LiveEffects(Session(self._client, {"id": session}), self.id, self.done, after))

    def done(self) -> bool:
        """Whether it is over, with whatever outcome."""
        return self.is_over(self._refresh())

    def cancel(self) -> None:
        """Cancels it; one that is over stays what it is."""
        if self.done():
            return
        with contextlib.suppress(errors.Error):
            self._client._transport.request("DELETE", f"/v1/jobs/{self.id}")

    def result(self, timeout: float | None = None, *, progress: bool = False) -> Any:
        """What the run gives, as `run` would; waits for it. Raises the error of a job that failed, Cancelled of one
        that was cancelled, and TimedOut after `timeout` seconds, when the job goes on. `progress` shows a bar
        meanwhile: tqdm's if it is installed, else a line on a terminal, else nothing."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._lock:
            if self._outcome is None:
                try:
                    self._wait(deadline, progress)
                except errors.CallbackFailed as error:
                    self.cancel()
                    self._outcome = (None, error)
                else:
                    try:
                        self._outcome = (self._finish(), None)
                    except BaseException as error:
                        self._outcome = (None, error)
                _runs.delete_uploaded(self._request)
            value, failure = self._outcome
        if failure is not None:
            raise failure
        return value

    def _answer_callbacks(self) -> None:
        """Functions of the program are called from here on. Whoever waits for the job begins with this where an
        interrupt cancels it: a function may be running when the next line is."""
        if self._callbacks is not None:
            self._callbacks.start(self.id)

    def _refresh(self, wait: float = 0) -> dict[str, Any]:
        if not self.is_over(self._document):
            query = {"wait": max(1, int(wait))} if wait else None
            document = self._client._transport.json("GET", f"/v1/jobs/{self.id}", query=query)
            self._document = document
        return self._document

    @staticmethod
    def is_over(document: dict[str, Any]) -> bool:
        """Whether a job is, by its document."""
        return document["state"] in ("done", "failed", "cancelled")

    def _wait(self, deadline: float | None, progress: bool) -> None:
        with show_progress(progress) as show:
            if self._request.streams and not self._request.is_live and self._request.program.callbacks:
                self._tell_live(deadline, show)
            while True:
                left = LONGEST_WAIT if deadline is None else deadline - time.monotonic()
                if left <= 0:
                    raise errors.TimedOut(f"the job {self.id} is not over yet")
                document = self._refresh(min(left, 1 if progress else LONGEST_WAIT))
                show(document.get("progress") or {}, self.is_over(document))
                if self.is_over(document):
                    break
        if self._callbacks is not None:
            self._callbacks.stop()

    def _tell_live(self, deadline: float | None, show: Any) -> None:
        """Calls the functions that give nothing back, each as soon as its effect is in the log."""

        def is_late() -> bool:
            return deadline is not None and time.monotonic() >= deadline

        def is_over() -> bool:
            document = self._refresh()
            show(document.get("progress") or {}, self.is_over(document))
            return is_late() or self.is_over(document)

        session = Session(self._client, {"id": self._document["session"]})
        for effect in LiveEffects(session, self.id, is_over, self._told):
            self._told = effect.sequence
            if self._effects is not None:
                self._effects.append(effect)
            tell(self._request.program.callbacks, [effect])
            if is_late():
                break

    def _finish(self) -> Any:
        document = self._document
        failure = None if self._callbacks is None else self._callbacks.failure
        if failure is not None:
            raise errors.CallbackFailed(f"a function that the program calls has raised {failure!r}") from failure
        if document["state"] == "cancelled":
            raise errors_by_code.Cancelled(f"the job {self.id} was cancelled")
        if document["state"] == "failed":
            error = document["error"]
            raise errors.of_code(error["code"], error["detail"], self._request.program.text)
        results, self.info = _runs.read_document(self._client, self._request, document["answer"])
        if self._request.raises_nonfinite:
            _runs.tell_nonfinite(self._request, self.info)
        _runs.mark_donated(self._request)
        if self._request.program.callbacks and not self._request.streams:
            tell(self._request.program.callbacks, effects_of(self._client, document.get("session"), self.info))
        return self._request.program.finish(results)

    def __repr__(self) -> str:
        return f"meshd.Job({self.id}, {self._document['state']})"


@contextlib.contextmanager
def show_progress(wanted: bool) -> Iterator[Any]:
    """Gives a function that shows a progress document."""
    if not wanted:
        yield lambda progress, is_over: None
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        tqdm = None
    if tqdm is None:
        if not sys.stderr.isatty():
            yield lambda progress, is_over: None
            return

        def show(progress: dict[str, Any], is_over: bool) -> None:
            text = "done" if is_over else progress_text(progress)
            sys.stderr.write(f"\r{text:<60}" + ("\n" if is_over else ""))
            sys.stderr.flush()

        yield show
        return
    with tqdm(unit=" steps") as bar:

        def advance(progress: dict[str, Any], is_over: bool) -> None:
            if not progress:
                return
            loop = progress.get("loop") or {}
            if "steps_total" in progress or "iterations_done" not in loop:
                bar.total, bar.n = progress.get("steps_total"), progress.get("steps_done", 0)
            else:  # how many steps there are depends on data, the iterations of the loop may be known all the same
                bar.unit, bar.total, bar.n = " iterations", loop.get("iterations"), loop["iterations_done"]
            bar.refresh()

        yield advance


def progress_text(progress: dict[str, Any]) -> str:
    """ "41.3 %, 12 s left", or what is known."""
    if "percent" in progress:
        left = f", {progress['remaining_seconds']:.0f} s left" if "remaining_seconds" in progress else ""
        return f"{progress['percent']} %{left}"
    loop = progress.get("loop")
    if not loop:
        return f"{progress.get('steps_done', 0)} steps"
    of_all = f" of {loop['iterations']}" if "iterations" in loop else ""
    return f"{loop['iterations_done']}{of_all} iterations"
