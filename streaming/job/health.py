"""What the job says of itself to its supervisor: whether its loop runs, and how each cluster's query fares.

A cluster whose query fails is a reason and no more, as long as another one's works: a restart would stop the others,
and a rollout that waits for readiness would wait for a cluster that nobody here can mend. Where no query works, or
none has worked yet, the job is not ready. It is live while its loop runs, whatever the queries do: they are started
again one by one, and a JVM that is gone ends the process. A job that stands by for another one has no loop yet.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from streaming.health import Condition

_STUCK_S: Final = 900.0
"""The loop also maintains the lake, a piece at a time: the largest take minutes on a slow store. A loop that has not
come around for so long hangs, and only a restart helps."""


class JobHealth:
    """Told by the job's loop and its queries' threads, asked by others."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin: no query has started yet; `clock` is in seconds that only grow."""
        self._clock = clock
        self._beat_at: float | None = None
        self._queries: dict[str, str | None] = {}

    def beat(self) -> None:
        """The loop has come around."""
        self._beat_at = self._clock()

    def started(self, cluster: str) -> None:
        """A cluster's query is active. What failed before is over only when a batch is done."""
        self._queries.setdefault(cluster, None)

    def worked(self, cluster: str) -> None:
        """A batch of a cluster is done."""
        self._queries[cluster] = None

    def failed(self, cluster: str, why: str) -> None:
        """A cluster's query has ended; `why` is one sentence."""
        self._queries[cluster] = why

    def forget(self, cluster: str) -> None:
        """The cluster is not watched any more."""
        self._queries.pop(cluster, None)

    def live(self) -> Condition:
        """Whether the loop runs."""
        quiet = 0.0 if self._beat_at is None else self._clock() - self._beat_at
        if quiet > _STUCK_S:
            return Condition(False, (f"The job's loop has not come around for {quiet:.0f} s.",))
        return Condition(True)

    def ready(self) -> Condition:
        """Whether at least one cluster's query works; each that does not is a reason."""
        queries = dict(self._queries)  # others may change it meanwhile
        if not queries:
            return Condition(False, ("No query has started yet: the job starts, or stands by for another one.",))
        reasons = tuple(f"Cluster {name!r}: {trouble}" for name, trouble in sorted(queries.items()) if trouble)
        return Condition(len(reasons) < len(queries), reasons)
