"""A group member in a thread, whatever its client: it joins at once, and commits synchronously what it has consumed."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from streaming.demo.journal import PartitionId, generation_line
from streaming.demo.stage import Stage

_COMMIT_EVERY_S = 1.5


class ThreadMember(ABC):
    """One running member; a client library's own part is in the methods that it must have.

    Attributes:
        group: Its group.
        topics: The subscribed topics.
        client_id: Its client id; member ids begin with it.
        settled: It has consumed everything and made its last commit since the stage went quiet, or is closed.
    """

    def __init__(self, stage: Stage, group: str, topics: tuple[str, ...], client_id: str) -> None:
        """Start its thread; what the thread reads must be set before."""
        self.group, self.topics, self.client_id = group, topics, client_id
        self.settled = False
        self._stage = stage
        self._well = threading.Event()
        self._well.set()
        self._leaving = threading.Event()
        self._positions: dict[PartitionId, int] = {}
        self._thread = threading.Thread(target=self._run, daemon=True, name=client_id)
        self._thread.start()

    def get_stuck(self) -> None:
        """Stop consuming and committing, but keep the heartbeat going."""
        self._well.clear()

    def recover(self) -> None:
        """Continue where it got stuck."""
        self._well.set()

    def leave(self) -> None:
        """Close the client: a dynamic member leaves its group, a static one stays until its session ends."""
        self._leaving.set()
        self._thread.join()

    @abstractmethod
    def _connect(self) -> Any:
        """A client that has subscribed."""

    @abstractmethod
    def _poll(self, client: Any) -> bool:
        """Wait for records, and note their positions; whether there were any."""

    @abstractmethod
    def _assigned(self, client: Any) -> Collection[PartitionId]:
        """Its partitions."""

    @abstractmethod
    def _write(self, client: Any, offsets: Mapping[PartitionId, int]) -> Collection[PartitionId] | None:
        """Commit; the partitions for which it is written, and None where nobody knows."""

    @abstractmethod
    def _is_at_the_end(self, client: Any) -> bool:
        """Whether it has joined its group and reached the end of all its partitions."""

    def _close(self, client: Any) -> None:
        client.close()

    def _is_stuck(self) -> bool:
        return not self._well.is_set()

    def _run(self) -> None:
        client = self._connect()
        try:
            self._consume(client)
        finally:
            self._close(client)
            self.settled = True

    def _consume(self, client: Any) -> None:
        next_commit = time.monotonic() + _COMMIT_EVERY_S
        while not self._leaving.is_set():
            came = self._poll(client)
            if self.settled or self._is_stuck():
                continue
            at_the_end = not came and self._stage.drained.is_set() and self._is_at_the_end(client)
            if at_the_end or time.monotonic() >= next_commit:
                committed = self._commit(client)
                next_commit = time.monotonic() + _COMMIT_EVERY_S
                self.settled = at_the_end and committed

    def _commit(self, client: Any) -> bool:
        """Commit all positions; returns whether nothing is left uncommitted."""
        assigned = self._assigned(client)
        offsets = {partition: offset for partition, offset in self._positions.items() if partition in assigned}
        written = self._write(client, offsets) if offsets else ()
        if written is None:
            self._stage.ledger.uncertain(self.group, offsets)
            return False
        if written:
            self._stage.ledger.committed(self.group, {partition: offsets[partition] for partition in written})
        return len(written) == len(offsets)

    def _joined(self, member_id: str, generation: int, assigned: Iterable[PartitionId]) -> None:
        """Write to the journal what the rebalance listener sees; the positions of new partitions are not known yet."""
        self.settled = False
        self._stage.journal.write(
            "generation", **generation_line(self.group, member_id, self.client_id, generation, assigned)
        )

    def _revoked(self, partitions: Iterable[PartitionId]) -> None:
        """Drop positions of revoked partitions; their next owner starts at the last commit."""
        for partition in partitions:
            self._positions.pop(partition, None)
