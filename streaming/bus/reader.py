"""Reads ranges of a folder's logs as `RangeReader` reads those of topics."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from streaming.bus.folder import BusFolderError, FolderObjects
from streaming.bus.log import FolderLog, LogObject
from streaming.record_batches import ClusterIdentity, FetchedBatch, Gone, OffsetRange, RangeReader

_PAUSE_S: Final = 0.5
"""Between two attempts to read a folder that does not answer."""


class FolderReader:
    """Reads a folder; each log has one partition. Methods raise `BusFolderError`."""

    def __init__(self, objects: FolderObjects, patience_s: float) -> None:
        """Prepare; nothing is asked yet.

        Args:
            objects: The cluster's objects.
            patience_s: How long `read` tries again where the folder does not answer.
        """
        self._objects, self._patience_s = objects, patience_s
        self._id: str | None = None
        self._logs: dict[str, FolderLog] = {}

    def close(self) -> None:
        """There is nothing to close."""

    def identity(self, topics: Mapping[str, str]) -> ClusterIdentity:
        """The bus's own id, as that of each topic. Raises BusFolderError also where there is no bus.

        A disk that is not mounted looks like a new folder: it is waited for, and not read from its beginning.
        """
        found = self._objects.bus_id()
        if found is None:
            message = f"the folder {self._objects} has no bus: the probe creates it with its first round"
            raise BusFolderError(message)
        if found != self._id:
            self._id, self._logs = found, {}
        return ClusterIdentity(None, dict.fromkeys(topics, found))

    def refresh(self) -> None:
        """Every identity is current."""

    def starts(self, topic: str) -> dict[int, int]:
        """First offset that exists; the end where none does."""
        log = self._log(topic)
        names = log.names()
        return {0: names[0].base if names else log.end()}

    def ends(self, topic: str) -> dict[int, int]:
        """Offset behind the newest record."""
        return {0: self._log(topic).end()}

    def read(
        self, ranges: Iterable[OffsetRange], patience_s: float | None = None
    ) -> Iterator[tuple[OffsetRange, FetchedBatch | Gone]]:
        """Read ranges one after the other, an object at a time."""
        patience_s = self._patience_s if patience_s is None else patience_s
        for where in ranges:
            log, wanted = self._log(where.topic), where.start
            while wanted < where.end:
                held = _patiently(log, wanted, patience_s)
                if held is not None:
                    yield where, FetchedBatch(held.base, held.end - 1, held.time, held.records())
                    wanted = held.end
                    continue
                gone = _gone(log, wanted, where.end)
                yield where, gone
                wanted = gone.end

    def _log(self, topic: str) -> FolderLog:
        if self._id is None:
            self.identity({})
        return self._logs.setdefault(topic, FolderLog(self._objects, topic))


def _patiently(log: FolderLog, offset: int, patience_s: float) -> LogObject | None:
    until = time.monotonic() + patience_s
    while True:
        try:
            return log.holding(offset)
        except BusFolderError:
            if time.monotonic() > until:
                raise
            time.sleep(_PAUSE_S)


def _gone(log: FolderLog, wanted: int, end: int) -> Gone:
    """What is gone from an offset on, that no object holds."""
    names = log.names()
    behind = next((name.base for name in names if name.base > wanted), None)
    if behind is None:
        return Gone(wanted, end, f"the log ends at {log.end()}: its newest objects were deleted", before_log=False)
    if names[0].base > wanted:
        reason = f"the log begins at {behind} now: older records were deleted"
        return Gone(wanted, min(behind, end), reason, before_log=True)
    reason = f"no object holds the offsets {wanted} to {behind}: it was deleted, or is damaged"
    return Gone(wanted, min(behind, end), reason, before_log=False)


# Reads events and rounds, wherever they are.
TopicReader = RangeReader | FolderReader
