"""Group members on librdkafka (confluent-kafka), in threads: an ordinary one, and one that commits in transactions."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from streaming.demo.journal import PartitionId, by_topic, generation_line
from streaming.demo.stage import QUIET_LIBRDKAFKA, Stage

FAR_AHEAD = 1_000_000
"""Added to the offsets of transactions that abort: so far beyond any end that a wrongly counted one would show."""

_POLL_S = 0.5
_COMMIT_EVERY_S = 1.5
_ANSWER_S = 2.0
"""Limit for a request to the broker, which normally takes a few ms."""

_TRANSACTION_S = 2.0
_LIMIT_S = 20.0
"""Limit for the steps of a transaction."""

_OPEN_MS = 300_000
"""Longer than any story lets a transaction hang, so that the broker does not abort it first."""

_REFUSED = {
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.FENCED_INSTANCE_ID,
    KafkaError._NO_OFFSET,  # noqa: SLF001  (confluent-kafka's public name for "nothing to commit")
    KafkaError._ASSIGNMENT_LOST,  # noqa: SLF001
}
"""Errors of a commit after which it is certain that nothing was written."""


@dataclass(frozen=True, slots=True)
class LibrdkafkaSettings:
    """The settings of one member: its group, subscription, client id and strategy.

    Attributes:
        group: Its group.
        topics: The subscribed topics.
        client_id: Its client id, and of a transactional member its transactional id.
        strategy: `partition.assignment.strategy`; None for a transactional client without membership.
        abort_every: After so many transactions one follows that aborts; None for never.
    """

    group: str
    topics: tuple[str, ...]
    client_id: str
    strategy: str | None
    abort_every: int | None = None


class LibrdkafkaMember:
    """One running member. It joins at once, and commits synchronously what it has consumed."""

    def __init__(self, settings: LibrdkafkaSettings, stage: Stage) -> None:
        """Start its thread."""
        self.settings = settings
        self.settled = False
        self._stage = stage
        self._leaving = threading.Event()
        self._positions: dict[PartitionId, int] = {}
        self._thread = threading.Thread(target=self._run, daemon=True, name=settings.client_id)
        self._thread.start()

    def leave(self) -> None:
        """Close the client, which leaves its group."""
        self._leaving.set()
        self._thread.join()

    def _run(self) -> None:
        settings = self.settings
        consumer = Consumer(
            {
                **self._common(),
                "group.id": settings.group,
                "partition.assignment.strategy": settings.strategy or "range",
                "session.timeout.ms": 10_000,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "allow.auto.create.topics": False,
            }
        )
        if settings.strategy is not None:
            consumer.subscribe(list(settings.topics), on_assign=self._on_assign, on_revoke=self._on_revoke)
        try:
            self._consume(consumer)
        finally:
            consumer.close()
            self.settled = True

    def _common(self) -> dict[str, Any]:
        return {
            "bootstrap.servers": self._stage.bootstrap,
            "client.id": self.settings.client_id,
            "log_level": QUIET_LIBRDKAFKA,
        }

    def _consume(self, consumer: Consumer) -> None:
        next_commit = time.monotonic() + _COMMIT_EVERY_S
        while not self._leaving.is_set():
            message = consumer.poll(_POLL_S)
            if message is not None and message.error() is None:
                topic, partition, offset = message.topic(), message.partition(), message.offset()
                if topic is not None and partition is not None and offset is not None:
                    self._positions[topic, partition] = offset + 1
            if self.settled:
                continue
            at_the_end = message is None and self._stage.drained.is_set() and consumed_everything(consumer)
            if at_the_end or time.monotonic() >= next_commit:
                committed = self._commit(consumer)
                next_commit = time.monotonic() + _COMMIT_EVERY_S
                self.settled = at_the_end and committed

    def _commit(self, consumer: Consumer) -> bool:
        """Commit all positions; returns whether nothing is left uncommitted."""
        assigned = {(tp.topic, tp.partition) for tp in consumer.assignment()}
        offsets = {partition: offset for partition, offset in self._positions.items() if partition in assigned}
        if not offsets:
            return True
        try:
            answer = consumer.commit(offsets=_partitions(offsets), asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() not in _REFUSED:
                self._stage.ledger.uncertain(self.settings.group, offsets)
            return False
        written = {(tp.topic, tp.partition) for tp in answer or () if tp.error is None}
        self._stage.ledger.committed(
            self.settings.group, {key: value for key, value in offsets.items() if key in written}
        )
        return written == set(offsets)

    def _on_assign(self, consumer: Consumer, assigned: list[TopicPartition]) -> None:
        self.settled = False
        owned = [(tp.topic, tp.partition) for tp in assigned]
        group, client = self.settings.group, self.settings.client_id
        line = generation_line(group, consumer.memberid(), client, generation_of(consumer) or -1, owned)
        self._stage.journal.write("generation", **line)

    def _on_revoke(self, _consumer: Consumer, revoked: list[TopicPartition]) -> None:
        for tp in revoked:
            self._positions.pop((tp.topic, tp.partition), None)


class TransactionalMember(LibrdkafkaMember):
    """Commits the ends of its topic in a transaction every two seconds, as member of a group or without membership.

    While it is stuck a transaction stays open whose offsets are `FAR_AHEAD`; when it recovers that one is aborted.
    """

    def __init__(self, settings: LibrdkafkaSettings, stage: Stage) -> None:
        self._hangs = threading.Event()
        super().__init__(settings, stage)

    def get_stuck(self) -> None:
        """Leave a transaction open."""
        self._hangs.set()

    def recover(self) -> None:
        """Abort it, and continue."""
        self._hangs.clear()

    def _consume(self, consumer: Consumer) -> None:
        transactional = {"transactional.id": self.settings.client_id, "transaction.timeout.ms": _OPEN_MS}
        producer = Producer({**self._common(), **transactional})
        producer.init_transactions(_LIMIT_S)
        done = 0
        while not self._leaving.is_set():
            self._wait(consumer)
            at_the_end = self._stage.drained.is_set()
            offsets = self._ends(consumer)
            if not offsets or self.settled:
                continue
            if self._hangs.is_set():
                self._begin(consumer, producer, offsets, FAR_AHEAD)
                while self._hangs.is_set() and not self._leaving.is_set():
                    self._wait(consumer)
                self._abort(producer, offsets)
                continue
            self._begin(consumer, producer, offsets)
            try:
                producer.commit_transaction(_LIMIT_S)
            except KafkaException:
                self._stage.ledger.uncertain(self.settings.group, offsets)
                raise
            self._stage.ledger.committed(self.settings.group, offsets)
            done += 1
            if self.settings.abort_every and done % self.settings.abort_every == 0 and not at_the_end:
                self._begin(consumer, producer, offsets, FAR_AHEAD)
                self._abort(producer, offsets)
            self.settled = at_the_end

    def _wait(self, consumer: Consumer) -> None:
        """Until the next transaction; a member must poll to stay in its group."""
        end = time.monotonic() + _TRANSACTION_S
        while (left := end - time.monotonic()) > 0 and not self._leaving.is_set():
            if self.settings.strategy is None:
                self._leaving.wait(left)
            else:
                consumer.poll(min(left, _POLL_S))

    def _ends(self, consumer: Consumer) -> dict[PartitionId, int]:
        """The end of each of its partitions."""
        places = consumer.assignment()
        if self.settings.strategy is None:
            [topic] = self.settings.topics
            places = [TopicPartition(topic, partition) for partition in range(self._stage.partitions_of(topic))]
        return {(tp.topic, tp.partition): consumer.get_watermark_offsets(tp, timeout=_LIMIT_S)[1] for tp in places}

    def _begin(
        self, consumer: Consumer, producer: Producer, offsets: Mapping[PartitionId, int], ahead: int = 0
    ) -> None:
        producer.begin_transaction()
        listed = _partitions({partition: offset + ahead for partition, offset in offsets.items()})
        producer.send_offsets_to_transaction(listed, consumer.consumer_group_metadata(), _LIMIT_S)

    def _abort(self, producer: Producer, offsets: Mapping[PartitionId, int]) -> None:
        producer.abort_transaction(_LIMIT_S)
        ahead = {partition: offset + FAR_AHEAD for partition, offset in offsets.items()}
        self._stage.journal.write("aborted", group=self.settings.group, offsets=by_topic(ahead))


def _partitions(offsets: Mapping[PartitionId, int]) -> list[TopicPartition]:
    return [TopicPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()]


def consumed_everything(consumer: Consumer) -> bool:
    """Whether a consumer has joined its group and reached the end of all its partitions."""
    assigned = consumer.assignment()
    if not assigned:
        return (generation_of(consumer) or -1) >= 0
    try:
        # A partition without a record consumed since its assignment has no position (-1001): its last commit counts.
        started = {(tp.topic, tp.partition): tp.offset for tp in consumer.committed(assigned, _ANSWER_S)}
        for tp in consumer.position(assigned):
            end = consumer.get_watermark_offsets(tp, timeout=_ANSWER_S)[1]
            if max(tp.offset, started[tp.topic, tp.partition], 0) < end:
                return False
    except KafkaException:
        return False
    return True


def generation_of(consumer: Consumer) -> int | None:
    """Return a consumer's generation, or None; confluent-kafka has no public method for it.

    The generation is part of the bytes in which librdkafka serialises the group's metadata for a transactional producer
    (`rd_kafka_consumer_group_metadata_write`, librdkafka 2.16: `CGMDv2:`, generation as int32 in the machine's byte
    order, group id, member id, instance id). Only the demo's journal depends on it.
    """
    raw = consumer.consumer_group_metadata()
    magic = b"CGMDv2:"
    if not isinstance(raw, bytes) or not raw.startswith(magic) or len(raw) < len(magic) + 4:
        return None
    return int(struct.unpack_from("=i", raw, len(magic))[0])
