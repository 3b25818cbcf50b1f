"""Ranges of offsets, read through one of kafka-python's consumers that hands out whole batches (`whole_batches.py`).

Positions and what is parked of paused partitions are read from kafka-python 3.0.12 half in private; the release is
pinned, and tests read through a real broker.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import (
    AuthorizationError,
    KafkaError,
    LogTruncationError,
    OffsetOutOfRangeError,
    SaslAuthenticationFailedError,
)

from streaming.job.source.exceptions import UnreadableTopicError
from streaming.job.source.identity import Identity
from streaming.offsets_log import printed
from streaming.record_batches import FetchedBatch, FetchedRun, Missing

__all__ = [
    "TO_THE_END",
    "FetchedBatch",
    "FetchedRun",
    "Gone",
    "Missing",
    "OffsetRange",
    "RangeReader",
]

TO_THE_END: Final = 2**63 - 1
"""End of a range that reaches to the last stable offset at the time when its reading begins. (No record has it.)"""

# A poll that brings nothing returns after this time, so that deadlines are looked at.
_POLL_MS = 500

# One question for offsets to the brokers. They wait for an election themselves; the next attempt follows at once.
_ASK_MS = 5_000

# Between attempts that failed at once (connection refused), so that an outage costs no CPU.
_PAUSE_S = 0.2

# Right after a change of leaders the last stable offset may be behind what the old leader told (KIP-207 narrows
# this, older brokers do not know it). A log that is still too short after this time has lost the records.
_SETTLE_S = 15.0


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets [start, end) of one partition; `end` may be `TO_THE_END`."""

    topic: str
    partition: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Gone:
    """Offsets [start, end) that no longer exist, or never will, and why.

    Attributes:
        start: The first of them.
        end: Exclusive end.
        reason: Why, as far as it is known.
        before_log: They lie before the log's first offset; for a range that merely meant "from the beginning" they
            are no loss.
    """

    start: int
    end: int
    reason: str
    before_log: bool


class RangeReader:
    """Reads ranges of offsets through a consumer that is kept from one use to the next.

    `read_runs` and `read` take several ranges at once, of different partitions, and are used up, or given up, before
    the next call. They wait out restarts of brokers and changes of leaders, and never hang: what cannot be had is told
    as `Gone`, or by an exception.
    """

    def __init__(self, consumer: KafkaConsumer, *, patience_s: float, settle_s: float = _SETTLE_S) -> None:
        """Take a consumer.

        Args:
            consumer: Made by `take_whole_batches`; without a group, isolation level `read_committed`,
                `auto_offset_reset="none"`.
            patience_s: Time without any progress after which reading fails.
            settle_s: Time that a log is given to reach the end of a range.
        """
        self._consumer = consumer
        self._patience_s = patience_s
        self._settle_s = settle_s

    def partitions(self, topic: str, *, fresh: bool = False) -> set[int]:
        """Partitions of a topic; empty when it does not exist, or may not be described.

        Args:
            topic: The topic.
            fresh: Ask the brokers, rather than what the client remembers.

        Raises:
            KafkaError: The brokers cannot be reached.
        """
        if fresh:
            self._consumer.topics()
        found: set[int] = self._consumer.partitions_for_topic(topic)
        return found

    def identity(self, topics: Mapping[str, str]) -> Identity:
        """What the brokers say they are, as the client's metadata has it: some seconds old at the most.

        Args:
            topics: Names by what the topics are to us.
        """
        cluster = self._consumer._cluster  # noqa: SLF001 - see the module's docstring
        found = {name: cluster.topic_id(topic) for name, topic in topics.items()}
        # (Of a topic that is not there brokers tell an id of zeros, which is not printed.)
        ids = {name: printed(topic_id.bytes) for name, topic_id in found.items() if topic_id is not None}
        return Identity(cluster.cluster_id, {name: text for name, text in ids.items() if text is not None})

    def starts(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """First offsets that exist. Raises KafkaError."""
        return self._ask(self._consumer.beginning_offsets, partitions)

    def ends(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Last stable offsets. Raises KafkaError."""
        return self._ask(self._consumer.end_offsets, partitions)

    def read(
        self, ranges: Iterable[OffsetRange], patience_s: float | None = None
    ) -> Iterator[tuple[OffsetRange, FetchedBatch | Gone]]:
        """Read ranges batch by batch, whatever is missing in them; else as `read_runs`."""
        for where, item in self.read_runs(ranges, patience_s):
            if isinstance(item, FetchedRun):
                yield from ((where, batch) for batch in item.batches())
            elif not isinstance(item, Missing):
                yield where, item

    def read_runs(
        self, ranges: Iterable[OffsetRange], patience_s: float | None = None
    ) -> Iterator[tuple[OffsetRange, FetchedRun | FetchedBatch | Missing | Gone]]:
        """Read ranges; batches of one partition come in order, those of several in turns.

        Each item comes with its range, which begins later than the one asked for after offsets were `Gone`, and ends
        where the log does when it was open. Its first and last batch can hold records before and after the range: trim
        both ends (`walk`, `lanes`). Aborted transactions and control records are left out. What compaction removed is
        told as `Missing` before the records behind it, and can be told again; of batches before magic 2, which do not
        tell, it is not.

        Args:
            ranges: At most one per partition; empty ones are allowed.
            patience_s: In place of the reader's own.

        Raises:
            UnreadableTopicError: Nothing came for longer than the reader's patience, or a right is missing.
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
            except (AuthorizationError, SaslAuthenticationFailedError) as error:
                raise UnreadableTopicError(_no_right(open_ranges, error)) from error
            except (OffsetOutOfRangeError, LogTruncationError) as error:
                patience.failed(error, open_ranges)
                time.sleep(_PAUSE_S)
                begin = True
                continue
            except KafkaError as error:
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
                # A hole can lie over records that come after it, which the next poll may bring: only records move on.
                # What has neither is passed by the consumer's own position (`_finish`).
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
        """Place the consumer, and tell what of the ranges does not exist."""
        starts = self.starts(list(open_ranges))
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
                # A batch that holds the new beginning still brings the deleted records before it.
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
        # Not all of it: what was fetched of a paused partition beyond its range stays parked, and kafka-python 3.0.12
        # neither gives it back while the records before it in line are merely used up (`fetched_records` asks for
        # `_next_partition_records is None`), nor fetches a partition of which anything is parked: it would stand
        # still for ever.
        fetcher = self._consumer._fetcher  # noqa: SLF001 - see the module's docstring
        fetcher._paused_partition_records.clear()  # noqa: SLF001
        fetcher._paused_completed_fetches.clear()  # noqa: SLF001
        for partition in open_ranges:
            self._consumer.seek(partition, wanted[partition])

    def _settled_ends(self, open_ranges: Mapping[TopicPartition, OffsetRange]) -> dict[TopicPartition, int]:
        settled = time.monotonic() + self._settle_s
        while True:
            ends = self.ends(list(open_ranges))
            reached = (r.end == TO_THE_END or ends[p] >= r.end for p, r in open_ranges.items())
            if all(reached) or time.monotonic() > settled:
                return ends
            time.sleep(_PAUSE_S)

    def _finish(self, open_ranges: dict[TopicPartition, OffsetRange], wanted: dict[TopicPartition, int]) -> bool:
        """Drop the ranges that are read; tells whether any position moved."""
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

    def _ask(self, question: Any, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        if not partitions:
            return {}
        try:
            answer: dict[TopicPartition, int] = question(list(partitions), timeout_ms=_ASK_MS)
        except KeyError as error:
            # kafka-python 3.0.12 leaves a partition without a leader out of the answers of the others, and then
            # fails on its own lookup (Fetcher.beginning_or_end_offset).
            message = f"partition {error} has no leader at the moment"
            raise KafkaError(message) from error
        return answer


class _Patience:
    """Waits for progress, not for ever."""

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
            "check that the brokers are up and the topic exists; the query goes on where it was when started again."
        )
        raise UnreadableTopicError(message) from self._last


def _no_right(open_ranges: Mapping[TopicPartition, OffsetRange], error: Exception) -> str:
    topics = ", ".join(sorted({partition.topic for partition in open_ranges}))
    return f"Reading {topics} was refused ({error}): grant READ and DESCRIBE on it to the user of the job."
