"""The batches of a query as rows of the table `batches`, from Spark's progress.

The thread that waits for the query's end asks it for its last progress when a batch has been written. Spark also calls
a `StreamingQueryListener` for each, but converts every event of every query by some fifty calls between JVM and Python,
also those of triggers without a batch (docs/performance.md has both costs).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from streaming.exceptions import EvenkeelError
from streaming.lifecycle import room_log
from streaming.tables import Lake, named_to_arrow, table_named
from streaming.times import day_of

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

_LOG = room_log(__name__)

_EVERY_S: Final = 60.0
"""Rows are appended together: each append is a commit of the table, and nobody needs them sooner."""

_MOST: Final = 1_000
"""Rows that wait for a store that cannot be written, hours of batches; older ones are dropped."""

_PHASES: Final = {
    "triggerExecution": "duration_ms",
    "latestOffset": "latest_offset_ms",
    "queryPlanning": "query_planning_ms",
    "getBatch": "get_batch_ms",
    "walCommit": "wal_commit_ms",
    "addBatch": "add_batch_ms",
    "commitOffsets": "commit_offsets_ms",
}
"""Spark's names of what takes time in a batch, and our columns."""


class BatchLog:
    """Collects the batches of one query. `done` is called by the query's thread, all else by the one that waits."""

    def __init__(self, lake: Lake, cluster: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Prepare.

        Args:
            lake: Has the table.
            cluster: Configured name of the cluster.
            clock: Seconds that only grow.
        """
        self._lake, self._cluster, self._clock = lake, cluster, clock
        self._done: dict[int, int] = {}
        self._query = ""
        self._rows: list[dict[str, Any]] = []
        self._flushed_at = clock()
        self._failed = False

    def done(self, number: int, written: Mapping[str, int]) -> None:
        """A batch has written its rows; its progress follows."""
        self._done[number] = sum(written.values())

    def follow(self, query: StreamingQuery) -> None:
        """Take the progress of batches that are done, and append rows that have waited for long enough.

        What Spark says of itself in another form than expected is logged once: the query goes on without.
        """
        try:
            self._collect(query)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            self._done.clear()
            if not self._failed:
                _LOG.warning("the progress of a batch could not be read: %s: %s", type(error).__name__, error)
            self._failed = True
        if self._clock() - self._flushed_at > _EVERY_S:
            self.flush()

    def _collect(self, query: StreamingQuery) -> None:
        if self._done and (last := query.lastProgress) is not None:
            self._query = self._query or str(query.id)
            waiting = sorted(number for number in self._done if number <= last["batchId"])
            # Between two calls several short batches may have ended: then Spark is asked for those before, too.
            found = [last] if waiting == [last["batchId"]] else query.recentProgress if waiting else []
            for progress in found:
                if progress["batchId"] in waiting:
                    self._rows.append(batch_row(self._cluster, progress, self._done[progress["batchId"]]))
            for number in waiting:
                del self._done[number]

    def flush(self) -> None:
        """Append the rows that wait. What fails is logged once, and tried again: the query goes on."""
        self._flushed_at = self._clock()
        if not self._rows:
            return
        table = table_named("batches")
        try:
            self._lake.append(table.name, named_to_arrow(table, self._rows), self._query, self._rows[-1]["batch"])
        except (EvenkeelError, OSError, ValueError) as error:
            if not self._failed:
                _LOG.warning("the rows of %s could not be written, and are tried again: %s", table.name, error)
            self._failed, self._rows = True, self._rows[-_MOST:]
            return
        self._failed, self._rows = False, []


def batch_row(cluster: str, progress: Mapping[str, Any], written: int) -> dict[str, Any]:
    """The row of a batch.

    Args:
        cluster: Configured name of the cluster.
        progress: Spark's progress of it.
        written: Rows that it appended.
    """
    started = int(datetime.fromisoformat(progress["timestamp"]).timestamp() * 1000)
    source, durations = progress["sources"][0], progress["durationMs"]
    # After a restart Spark has no newest offset before it has asked for one, and says "null".
    backlog = json.loads(source["latestOffset"] or "null") or {}
    states = progress["stateOperators"]
    return {
        "cluster": cluster,
        "query_id": str(progress["id"]),
        "batch": progress["batchId"],
        "started_time": started,
        "event_date": day_of(started),
        **{column: durations.get(phase) for phase, column in _PHASES.items()},
        "rounds": backlog.get("rounds"),
        "rounds_behind": backlog.get("rounds_behind"),
        "input_rows": progress["numInputRows"],
        "written_rows": written,
        "state_rows": sum(state["numRowsTotal"] for state in states) if states else None,
        "state_bytes": sum(state["memoryUsedBytes"] for state in states) if states else None,
    }
