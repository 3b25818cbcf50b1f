"""The newest records of the rounds topic, and those that follow: what a probe reads of other probes.

However old the topic is, only its end is read. A bus is shared by clusters: records of others are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from kafka import TopicPartition
from kafka.errors import KafkaError

from streaming.config import Settings
from streaming.events import RejectedEvent, UnknownType, decode_round
from streaming.probe.clients import open_consumer
from streaming.probe.deadline import Deadline
from streaming.probe.exceptions import RoundAbandonedError, error_text
from streaming.probe.readback import bounds, limit_ms, records
from streaming.probe.standby.others import RoundsRecord, record_of

MOST_RECORDS: Final = 10_000
"""Records that are read at once: those of a hundred clusters on a bus in eight minutes of the default interval. More
than that between two rounds of ours means that we stood still for long, or that somebody floods the topic."""

_END_MS: Final = 3_000
"""How long the end of the topic may take; a stop waits as long."""


@dataclass(frozen=True, slots=True)
class TopicEnd:
    """The end of the rounds topic.

    Attributes:
        records: The cluster's records, in order.
        time: Append time of the newest record of any cluster, ms; None for a topic without records.
        end: Offset behind it.
    """

    records: tuple[RoundsRecord, ...]
    time: int | None
    end: int


class Tail:
    """Reads the end of the rounds topic. Its consumer opens with the first call, and stays open until `close`.

    Its methods raise RoundAbandonedError where the topic cannot be read, and StopRequestedError.
    """

    def __init__(self, settings: Settings) -> None:
        """Prepare; nothing is opened yet."""
        self._settings = settings
        self._tp = TopicPartition(settings.probe.rounds_topic, 0)
        self._consumer: Any = None

    def newest(self, span_ms: int, deadline: Deadline) -> TopicEnd:
        """The records that were appended within so many ms before the newest."""
        try:
            consumer = self._opened()
            first, end = bounds(consumer, [self._tp], deadline)[self._tp]
            if first == end:
                return TopicEnd((), None, end)
            # A batch that cannot be taken apart has no time: then the oldest records that may be read are.
            time = max((time for _, time, _ in self._values(end - 1, end, deadline)), default=0)
            since = {self._tp: max(0, time - span_ms)}
            found = consumer.offsets_for_times(since, timeout_ms=limit_ms(deadline))[self._tp]
            begin = max(first, end - MOST_RECORDS, end - 1 if found is None else min(found.offset, end - 1))
            return TopicEnd(tuple(self._seen(begin, end, deadline)), time, end)
        except KafkaError as error:
            raise self._unread(error) from error

    def read(self, first: int, end: int, deadline: Deadline) -> tuple[RoundsRecord, ...]:
        """The cluster's records at the offsets [first, end), in order; those that are gone are left out."""
        try:
            oldest, _ = bounds(self._opened(), [self._tp], deadline)[self._tp]
            return tuple(self._seen(max(first, oldest), end, deadline))
        except KafkaError as error:
            raise self._unread(error) from error

    def end(self) -> int:
        """Offset behind the newest record. An answer shows that the topic can be read now."""
        try:
            ends: dict[Any, int] = self._opened().end_offsets([self._tp], timeout_ms=_END_MS)
            return ends[self._tp]
        except KafkaError as error:
            raise self._unread(error) from error

    def close(self) -> None:
        """Close the consumer."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()

    def _opened(self) -> Any:
        if self._consumer is None:
            self._consumer = open_consumer(self._settings.bus_kafka)
        return self._consumer

    def _values(self, first: int, end: int, deadline: Deadline) -> Iterator[tuple[int, int, bytes | None]]:
        for _, offset, time, value in records(self._consumer, {self._tp: [(first, end)]}, deadline):
            if first <= offset < end:
                yield offset, time, value

    def _seen(self, first: int, end: int, deadline: Deadline) -> Iterator[RoundsRecord]:
        for offset, time, value in self._values(first, end, deadline):
            record = decode_round(value)
            if isinstance(record, RejectedEvent | UnknownType) or record.cluster != self._settings.cluster:
                continue
            yield record_of(offset, time, record)

    def _unread(self, error: KafkaError) -> RoundAbandonedError:
        # A consumer that has failed is not trusted with the next question.
        self.close()
        return RoundAbandonedError(f"topic {self._tp.topic} could not be read ({error_text(error)})")
