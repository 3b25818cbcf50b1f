"""Follows a compacted topic in which others keep their state: from its beginning, and on from round to round."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar

from kafka.errors import AuthorizationError, CorruptRecordError, KafkaError

from streaming.offsets_log import LogRecord
from streaming.probe.deadline import Deadline, RoundAbandonedError
from streaming.probe.kafka.answers import leaders_of
from streaming.probe.kafka.requests import OffsetKind, Refused, Requests, TopicMetadata
from streaming.record_batches import (
    FetchedBatch,
    Gone,
    OffsetRange,
    RangeReader,
    UnreadableTopicError,
    unwalkable,
    walk,
)


class TopicTail(ABC):
    """What one topic tells; a kind of topic has its own part in the methods that it must have.

    Not for several threads.

    Attributes:
        ENDS_AT: The end up to which it is read.
        topic: Its name.
        positions: How far each partition was read.
        is_refused: A right to the topic is missing: this process does not try again.
    """

    ENDS_AT: ClassVar[OffsetKind]

    def __init__(self, topic: str, connect: Callable[[], RangeReader]) -> None:
        """Read through a reader that is opened when there is something to read."""
        self.topic = topic
        self.positions: dict[int, int] = {}
        self.is_refused = False
        self._topic_id: str | None = None
        self._connect = connect
        self._reader: RangeReader | None = None

    def close(self) -> None:
        """Close the reader."""
        if self._reader is not None:
            self._reader.close()

    def follow(self, requests: Requests, brief: Deadline, deadline: Deadline) -> str | None:
        """Read up to the present end.

        Args:
            requests: By which the topic and its end are asked for.
            brief: For these answers.
            deadline: Goes on with what is read.

        Returns:
            None if everything was read, else why it was not.

        Raises:
            RoundAbandonedError, StopRequestedError: As `Deadline.remaining`.
        """
        try:
            topic = requests.metadata([self.topic], brief).topics.get(self.topic)
            if topic is Refused.FORBIDDEN:
                self.is_refused = True
                return "the right Describe on it is missing"
            if not isinstance(topic, TopicMetadata):
                return "there is no such topic"
            ends = requests.offsets(self.ENDS_AT, leaders_of({self.topic: topic}), brief)
        except RoundAbandonedError as error:
            return str(error)
        if len(ends) < len(topic.leaders):
            return "its leader does not tell its end"
        return self.read_to({number: end for (_, number), end in ends.items()}, topic.topic_id, deadline)

    def read_to(self, ends: Mapping[int, int], topic_id: str | None, deadline: Deadline) -> str | None:
        """Read up to these ends.

        Args:
            ends: By partition, all of them.
            topic_id: Kafka's id of the topic; None where it is not known.
            deadline: Goes on with what is read.

        Returns:
            None if everything was read, else why it was not.

        Raises:
            RoundAbandonedError, StopRequestedError: As `Deadline.remaining`.
        """
        known = self._topic_id
        self._topic_id = topic_id or known
        if known != self._topic_id or any(end < self.positions.get(number, 0) for number, end in ends.items()):
            # The topic was cut back, or created again: what was read may never have happened.
            self._forget()
            self.positions = {}
        ranges = [OffsetRange(self.topic, p, self.positions.get(p, 0), end) for p, end in ends.items()]
        ranges = [wanted for wanted in ranges if wanted.start < wanted.end]
        if not ranges:
            self.positions |= ends
            return None
        deadline.begin()
        try:
            if self._reader is None:
                self._reader = self._connect()
            for where, item in self._reader.read(ranges):
                deadline.answered()
                if isinstance(item, FetchedBatch):
                    self._apply_batch(where, item)
                elif isinstance(item, Gone) and not item.before_log:
                    return item.reason  # the next round sees a lower end
        except (UnreadableTopicError, KafkaError) as error:
            self.is_refused = isinstance(error.__cause__, AuthorizationError)
            return "the right Read on it is missing" if self.is_refused else str(error)
        self.positions |= ends
        return None

    def _apply_batch(self, where: OffsetRange, batch: FetchedBatch) -> None:
        partition = where.partition
        try:
            for record in walk(batch, max(where.start, self.positions.get(partition, 0)), where.end):
                plain = LogRecord(*record)
                self._apply_record(partition, plain)
                self.positions[partition] = plain.offset + 1
        except CorruptRecordError as error:
            self._reject(partition, *unwalkable(batch, error))
            self.positions[partition] = batch.offset + 1

    @abstractmethod
    def _forget(self) -> None:
        """Begin again with nothing."""

    @abstractmethod
    def _apply_record(self, partition: int, record: LogRecord) -> None:
        """Take in the next record of a partition."""

    @abstractmethod
    def _reject(self, partition: int, record: LogRecord, reason: str) -> None:
        """Take note of a batch that cannot be decoded, and of the record that stands for it."""
