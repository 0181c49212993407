"""Sessions of the client's own. A run without a session streams there what its Python functions are to be told, so
that they are called while it goes on."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ._sessions import Session

if TYPE_CHECKING:
    from ._client import Client
    from ._runs import Effect, RunInfo

#: Entries after which a log is given up for a new one.
MOST_ENTRIES = 10_000


@dataclass
class OwnLog:
    """A session that one run at a time uses, and the number of the last entry that was told."""

    session: Session
    told: int = 0

    def hand_over(self, effects: list[Effect], info: RunInfo) -> None:
        """Gives the effects of a run to its caller, who knows nothing of this log: numbered from 1."""
        info.effects = [replace(each, sequence=each.sequence - self.told) for each in effects]
        info.streamed = None
        self.told += len(effects)


class OwnLogs:
    """Those that no run uses. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[OwnLog] = []

    def take(self, client: Client) -> OwnLog:
        """One for a run alone. Raises what the server says where it opens no more sessions."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
        session = client.session("effects of runs", effects="streaming")
        client._shared.garbage.own(path_of(session))
        return OwnLog(session)

    def give_back(self, client: Client, log: OwnLog) -> None:
        """For the next run; the one that had it is over."""
        if log.told > MOST_ENTRIES:
            self.drop(client, log)
            return
        with self._lock:
            self._idle.append(log)

    def drop(self, client: Client, log: OwnLog) -> None:
        """Ends the session, and what still runs in it."""
        client._shared.garbage.add(path_of(log.session))

    def close(self, client: Client) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for log in idle:
            self.drop(client, log)


def path_of(session: Session) -> str:
    return f"/v1/sessions/{session.id}"
