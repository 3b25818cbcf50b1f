"""Reads ranges of offsets through a kafka-python consumer that returns whole batches (`whole_batches.py`).

Positions and the parked records of paused partitions are partly private in kafka-python 3.0.12; the release is pinned,
and tests read through a real broker.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import (
    AuthorizationError,
    CorruptRecordError,
    KafkaError,
    LogTruncationError,
    OffsetOutOfRangeError,
)

from streaming.exceptions import EvenkeelError
from streaming.offsets_log import LogRecord, printed
from streaming.record_batches.batches import FetchedBatch, FetchedRun, Missing
from streaming.record_batches.whole_batches import ask_offsets

TO_THE_END: Final = 2**63 - 1
"""End of a range that goes up to the last stable offset when its reading begins. (No record has this offset.)"""

# A poll without records returns after this time, so that deadlines are checked.
_POLL_MS = 500

# Limit for one request for offsets. Brokers wait for an election themselves; the next attempt follows at once.
_ASK_MS = 5_000

# Pause after an attempt that failed at once (connection refused), so that an outage costs no CPU.
_PAUSE_S = 0.2

# Right after a change of leaders the last stable offset may be behind the old leader's (KIP-207 narrows this; older
# brokers do not have it). A log that is still too short after this time has lost the records.
_SETTLE_S = 15.0


class UnreadableTopicError(EvenkeelError):
    """A topic could not be read for too long: brokers unreachable, no right, the topic gone."""


@dataclass(frozen=True, slots=True)
class ClusterIdentity:
    """The brokers' identity.

    Attributes:
        cluster_id: Kafka's own cluster id; None from brokers that have none.
        topics: Topic ids by the topics' roles, as far as the brokers give them (Kafka 2.8 on).
    """

    cluster_id: str | None = None
    topics: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets [start, end) of one partition; `end` may be `TO_THE_END`."""

    topic: str
    partition: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Gone:
    """Offsets [start, end) that no longer exist, or never will, and the reason.

    Attributes:
        start: The first of them.
        end: Exclusive end.
        reason: Why, as far as it is known.
        before_log: They are before the log's first offset; a range that merely meant "from the beginning" loses
            nothing by that.
    """

    start: int
    end: int
    reason: str
    before_log: bool


def unwalkable(batch: FetchedBatch, error: CorruptRecordError) -> tuple[LogRecord, str]:
    """A batch that cannot be decoded: the record that stands for it, and the reason."""
    said = error.args[0] if error.args else error
    reason = f"the record batch of offsets {batch.base_offset} to {batch.offset} cannot be taken apart: {said}"
    return LogRecord(batch.base_offset, batch.timestamp, None, None), reason


class RangeReader:
    """Reads ranges of offsets through a consumer that is kept from one use to the next.

    `read_runs` and `read` take several ranges at once, of different partitions, and must be read to the end, or given
    up, before the next call. They wait out restarts of brokers and changes of leaders, and never hang: what cannot be
    read comes as `Gone`, or as an exception.
    """

    def __init__(self, consumer: KafkaConsumer, *, patience_s: float, settle_s: float = _SETTLE_S) -> None:
        """Take a consumer.

        Args:
            consumer: Made by `take_whole_batches`; without a group, isolation level `read_committed`,
                `auto_offset_reset="none"`.
            patience_s: Time without any progress after which reading fails.
            settle_s: How long to wait for a log to reach the end of a range.
        """
        self._consumer = consumer
        self._patience_s = patience_s
        self._settle_s = settle_s

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()

    def partitions(self, topic: str) -> set[int]:
        """Partitions of a topic, by the client's metadata; empty when it does not exist, or may not be described.

        Raises:
            KafkaError: The brokers cannot be reached.
        """
        found: set[int] = self._consumer.partitions_for_topic(topic)
        return found

    def identity(self, topics: Mapping[str, str]) -> ClusterIdentity:
        """The brokers' identity from the client's metadata: a few seconds old at most.

        Args:
            topics: Names by the topics' roles.
        """
        cluster = self._consumer._cluster  # noqa: SLF001 - see the module's docstring
        found = {name: cluster.topic_id(topic) for name, topic in topics.items()}
        # Brokers give a topic that does not exist an id of zeros, which is never printed.
        ids = {name: printed(topic_id.bytes) for name, topic_id in found.items() if topic_id is not None}
        return ClusterIdentity(cluster.cluster_id, {name: text for name, text in ids.items() if text is not None})

    def refresh(self) -> None:
        """Ask for the metadata of the topics in use. Raises KafkaError."""
        consumer = self._consumer
        future = consumer._cluster.request_update()  # noqa: SLF001 - see the module's docstring
        consumer._net.run(consumer._manager.wait_for, future, _ASK_MS)  # noqa: SLF001

    def starts(self, topic: str) -> dict[int, int]:
        """First offsets that exist, by partition; empty for a topic that does not exist. Raises KafkaError."""
        return {place.partition: first for place, first in self._starts(self._places(topic)).items()}

    def ends(self, topic: str) -> dict[int, int]:
        """Last stable offsets, likewise."""
        return {place.partition: end for place, end in self._ends(self._places(topic)).items()}

    def _places(self, topic: str) -> list[TopicPartition]:
        return [TopicPartition(topic, partition) for partition in sorted(self.partitions(topic))]

    def _starts(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return ask_offsets(self._consumer.beginning_offsets, partitions, _ASK_MS)

    def _ends(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return ask_offsets(self._consumer.end_offsets, partitions, _ASK_MS)

    def read(
        self, ranges: Iterable[OffsetRange], patience_s: float | None = None
    ) -> Iterator[tuple[OffsetRange, FetchedBatch | Gone]]:
        """Read ranges batch by batch, without `Missing`; otherwise as `read_runs`."""
        for where, item in self.read_runs(ranges, patience_s):
            if isinstance(item, FetchedRun):
                yield from ((where, batch) for batch in item.batches())
            elif not isinstance(item, Missing):
                yield where, item

    def read_runs(
        self, ranges: Iterable[OffsetRange], patience_s: float | None = None
    ) -> Iterator[tuple[OffsetRange, FetchedRun | FetchedBatch | Missing | Gone]]:
        """Read ranges; batches of one partition come in order, those of several alternate.

        Each item comes with its range. The range begins later than requested after offsets were `Gone`, and an open one
        ends where the log does. The first and last batch can hold records outside the range: trim both ends (`walk`,
        `record_columns`). Aborted transactions and control records are left out. Records that compaction removed are
        reported as `Missing` before the records behind them, possibly twice; for batches before magic 2, which do not
        show it, they are not.

        Args:
            ranges: At most one per partition; empty ones are allowed.
            patience_s: Instead of the reader's own.

        Raises:
            UnreadableTopicError: No records came for longer than the reader's patience, or a right is missing.
        """
        open_ranges = {TopicPartition(r.topic, r.partition): r for r in ranges if r.start < r.end}
        patience = _Patience(self._patience_s if patience_s is None else patience_s)
        begin = True
        wanted = {partition: r.start for partition, r in open_ranges.items()}
        while open_ranges:
            try:
                if begin:
                    yield from self._begin(open_ranges, wanted)
                    begin = False
                    continue
                polled = self._consumer.poll(timeout_ms=_POLL_MS)
            except AuthorizationError as error:
                raise UnreadableTopicError(_no_right(open_ranges, error)) from error
            except (OffsetOutOfRangeError, LogTruncationError) as error:
                patience.failed(error, open_ranges)
                time.sleep(_PAUSE_S)
                begin = True
                continue
            except (KafkaError, OSError) as error:
                # OSError: a certificate that is being replaced does not fit its key yet. A password may change, too.
                patience.failed(error, open_ranges)
                time.sleep(_PAUSE_S)
                continue
            for partition, batches in polled.items():
                current = open_ranges.get(partition)
                if current is None:
                    continue
                for item in batches:
                    inside = item.between(wanted[partition], current.end)
                    if inside is not None:
                        yield current, inside
                # A hole can cover records behind it that the next poll brings: only records advance the range. A range
                # with neither advances by the consumer's own position (`_finish`).
                reached = (item.offset + 1 for item in batches if not isinstance(item, Missing))
                wanted[partition] = max([wanted[partition], *reached])
                patience.progressed()
            if self._finish(open_ranges, wanted):
                patience.progressed()
            elif not polled:
                patience.check(open_ranges)

    def _begin(
        self, open_ranges: dict[TopicPartition, OffsetRange], wanted: dict[TopicPartition, int]
    ) -> Iterator[tuple[OffsetRange, Gone]]:
        """Set the consumer's positions, and report the part of the ranges that does not exist."""
        starts = self._starts(list(open_ranges))
        ends = self._settled_ends(open_ranges)
        for partition in list(open_ranges):
            current = open_ranges[partition]
            first, last = starts[partition], ends[partition]
            if current.end == TO_THE_END:
                open_ranges[partition] = current = replace(current, end=last)
            if first > wanted[partition]:
                until = min(first, current.end)
                reason = f"the log begins at {first} now: older records were deleted"
                yield current, Gone(wanted[partition], until, reason, before_log=True)
                # A batch around the new beginning still brings the deleted records before it.
                open_ranges[partition] = current = replace(current, start=until)
                wanted[partition] = until
            if last < current.end:
                since = max(last, wanted[partition])
                reason = f"the log ends at {last}: it was truncated, or the topic was created again"
                yield current, Gone(since, current.end, reason, before_log=False)
                open_ranges[partition] = current = replace(current, end=since)
            if wanted[partition] >= current.end:
                del open_ranges[partition]
        # A kept consumer remembers positions and pauses; it forgets them with its assignment.
        self._consumer.unsubscribe()
        self._consumer.assign(list(open_ranges))
        # But it does not forget everything: the records fetched for a paused partition beyond its range stay parked.
        # kafka-python 3.0.12 neither returns them while the records before them in line are merely used up
        # (`fetched_records` asks for `_next_partition_records is None`), nor fetches a partition that has parked
        # records: it would stand still for ever.
        fetcher = self._consumer._fetcher  # noqa: SLF001 - see the module's docstring
        fetcher._paused_partition_records.clear()  # noqa: SLF001
        fetcher._paused_completed_fetches.clear()  # noqa: SLF001
        for partition in open_ranges:
            self._consumer.seek(partition, wanted[partition])

    def _settled_ends(self, open_ranges: Mapping[TopicPartition, OffsetRange]) -> dict[TopicPartition, int]:
        settled = time.monotonic() + self._settle_s
        while True:
            ends = self._ends(list(open_ranges))
            reached = (r.end == TO_THE_END or ends[p] >= r.end for p, r in open_ranges.items())
            if all(reached) or time.monotonic() > settled:
                return ends
            time.sleep(_PAUSE_S)

    def _finish(self, open_ranges: dict[TopicPartition, OffsetRange], wanted: dict[TopicPartition, int]) -> bool:
        """Drop the ranges that are read; returns whether any position moved."""
        moved = False
        for partition in list(open_ranges):
            state = self._consumer._subscription.assignment.get(partition)  # noqa: SLF001 - `position()` may block
            position = None if state is None or state.position is None else state.position.offset
            if position is not None and position > wanted[partition]:
                wanted[partition] = position
                moved = True
            if wanted[partition] >= open_ranges[partition].end:
                del open_ranges[partition]
                self._consumer.pause(partition)
        return moved


class _Patience:
    """Gives up after a time without progress."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = time.monotonic() + seconds
        self._last: Exception | None = None

    def progressed(self) -> None:
        self._until = time.monotonic() + self._seconds
        self._last = None

    def failed(self, error: Exception, open_ranges: Mapping[TopicPartition, OffsetRange]) -> None:
        self._last = error
        self.check(open_ranges)

    def check(self, open_ranges: Mapping[TopicPartition, OffsetRange]) -> None:
        if time.monotonic() < self._until:
            return
        some = sorted(f"{p.topic}-{p.partition}" for p in open_ranges)[:3]
        why = f" ({self._last})" if self._last else ""
        message = (
            f"Nothing could be read of {', '.join(some)} for {self._seconds:.0f} s{why}: "
            "check that the brokers are up and the topic exists; when restarted, the query continues where it was."
        )
        raise UnreadableTopicError(message) from self._last


def _no_right(open_ranges: Mapping[TopicPartition, OffsetRange], error: Exception) -> str:
    topics = ", ".join(sorted({partition.topic for partition in open_ranges}))
    return f"Reading {topics} was refused ({error}): grant READ and DESCRIBE on it to the user of the job."
