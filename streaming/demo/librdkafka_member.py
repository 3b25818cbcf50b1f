"""Group members on librdkafka (confluent-kafka), in threads.

An ordinary one, one that commits in transactions, and one of a share group (KIP-932) with records that it cannot
process: it releases those, so that they are delivered again, until the group gives them up, and accepts all others.
"""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from confluent_kafka import (
    AcknowledgeType,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    ShareConsumer,
    TopicPartition,
)

from streaming.demo.journal import PartitionId, by_topic
from streaming.demo.member import ThreadMember
from streaming.demo.stage import QUIET_LIBRDKAFKA, Stage

FAR_AHEAD = 1_000_000
"""Added to the offsets of transactions that abort: so far beyond any end that a wrongly counted one would show."""

_POLL_S = 0.5
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

_COORDINATOR_COMES = {
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError._TIMED_OUT,  # noqa: SLF001 - confluent-kafka's public name
}
"""Errors while the broker creates or loads its log of transactions: the first producer of a new broker meets them."""


def transactional_producer(config: Mapping[str, object], limit_s: float = 60.0) -> Producer:
    """A producer whose transactions may begin.

    librdkafka hands NOT_COORDINATOR to its caller, where Java's client looks for the coordinator again.

    Args:
        config: librdkafka's settings, `transactional.id` among them.
        limit_s: Limit for the broker's log of transactions to be there.

    Raises:
        KafkaException: The broker refuses it, or the limit has passed.
    """
    deadline = time.monotonic() + limit_s
    while True:
        producer = Producer(dict(config))
        try:
            producer.init_transactions(_LIMIT_S)
        except KafkaException as error:
            if error.args[0].code() not in _COORDINATOR_COMES or time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return producer


class LibrdkafkaMember(ThreadMember):
    """One running member."""

    def __init__(
        self, stage: Stage, group: str, topics: tuple[str, ...], client_id: str, strategy: str | None = None
    ) -> None:
        """Start its thread.

        Args:
            stage: The stage.
            group: Its group.
            topics: The subscribed topics.
            client_id: Its client id, and of a transactional member its transactional id.
            strategy: `partition.assignment.strategy`; None for a transactional client without membership.
        """
        self._strategy = strategy
        self._common = {"bootstrap.servers": stage.bootstrap, "client.id": client_id, "log_level": QUIET_LIBRDKAFKA}
        super().__init__(stage, group, topics, client_id)

    def _connect(self) -> Consumer:
        consumer = Consumer(
            {
                **self._common,
                "group.id": self.group,
                "partition.assignment.strategy": self._strategy or "range",
                "session.timeout.ms": 10_000,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "allow.auto.create.topics": False,
            }
        )
        if self._strategy is not None:
            consumer.subscribe(list(self.topics), on_assign=self._on_assign, on_revoke=self._on_revoke)
        return consumer

    def _poll(self, client: Consumer) -> bool:
        message = client.poll(_POLL_S)
        if message is not None and message.error() is None:
            topic, partition, offset = message.topic(), message.partition(), message.offset()
            if topic is not None and partition is not None and offset is not None:
                self._positions[topic, partition] = offset + 1
        return message is not None

    def _assigned(self, client: Consumer) -> Collection[PartitionId]:
        return _ids(client.assignment())

    def _write(self, client: Consumer, offsets: Mapping[PartitionId, int]) -> Collection[PartitionId] | None:
        try:
            answer = client.commit(offsets=_partitions(offsets), asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() in _REFUSED:
                return ()
            return None
        return _ids(tp for tp in answer or () if tp.error is None)

    def _is_at_the_end(self, client: Consumer) -> bool:
        assigned = client.assignment()
        if not assigned:
            return (generation_of(client) or -1) >= 0
        try:
            # Without a record since its assignment a partition has no position (-1001): its last commit counts.
            started = {(tp.topic, tp.partition): tp.offset for tp in client.committed(assigned, _ANSWER_S)}
            for tp in client.position(assigned):
                end = client.get_watermark_offsets(tp, timeout=_ANSWER_S)[1]
                if max(tp.offset, started[tp.topic, tp.partition], 0) < end:
                    return False
        except KafkaException:
            return False
        return True

    def _on_assign(self, consumer: Consumer, assigned: list[TopicPartition]) -> None:
        self._joined(consumer.memberid(), generation_of(consumer) or -1, _ids(assigned))

    def _on_revoke(self, _consumer: Consumer, revoked: list[TopicPartition]) -> None:
        self._revoked(_ids(revoked))


class TransactionalMember(LibrdkafkaMember):
    """Commits the ends of its topic in a transaction every two seconds, as member of a group or without membership.

    While it is stuck a transaction stays open whose offsets are `FAR_AHEAD`; when it recovers that one is aborted.
    """

    def __init__(
        self,
        stage: Stage,
        group: str,
        topics: tuple[str, ...],
        client_id: str,
        strategy: str | None = None,
        abort_every: int | None = None,
    ) -> None:
        """Start its thread.

        Args:
            stage: As of `LibrdkafkaMember`.
            group: As there.
            topics: As there.
            client_id: As there.
            strategy: As there.
            abort_every: After so many transactions one follows that aborts; None for never.
        """
        self._abort_every = abort_every
        super().__init__(stage, group, topics, client_id, strategy)

    def _consume(self, client: Consumer) -> None:
        transactional = {"transactional.id": self.client_id, "transaction.timeout.ms": _OPEN_MS}
        producer = transactional_producer({**self._common, **transactional})
        done = 0
        while not self._leaving.is_set():
            self._wait(client)
            at_the_end = self._stage.drained.is_set()
            offsets = self._ends(client)
            if not offsets or self.settled:
                continue
            if self._is_stuck():
                self._begin(client, producer, offsets, FAR_AHEAD)
                while self._is_stuck() and not self._leaving.is_set():
                    self._wait(client)
                self._abort(producer, offsets)
                continue
            self._begin(client, producer, offsets)
            try:
                producer.commit_transaction(_LIMIT_S)
            except KafkaException:
                self._stage.ledger.uncertain(self.group, offsets)
                raise
            self._stage.ledger.committed(self.group, offsets)
            done += 1
            if self._abort_every and done % self._abort_every == 0 and not at_the_end:
                self._begin(client, producer, offsets, FAR_AHEAD)
                self._abort(producer, offsets)
            self.settled = at_the_end

    def _wait(self, consumer: Consumer) -> None:
        """Until the next transaction; a member must poll to stay in its group."""
        end = time.monotonic() + _TRANSACTION_S
        while (left := end - time.monotonic()) > 0 and not self._leaving.is_set():
            if self._strategy is None:
                self._leaving.wait(left)
            else:
                consumer.poll(min(left, _POLL_S))

    def _ends(self, consumer: Consumer) -> dict[PartitionId, int]:
        """The end of each of its partitions."""
        places = consumer.assignment()
        if self._strategy is None:
            [topic] = self.topics
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
        self._stage.journal.write("aborted", group=self.group, offsets=by_topic(ahead))


def _partitions(offsets: Mapping[PartitionId, int]) -> list[TopicPartition]:
    return [TopicPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()]


def _ids(partitions: Iterable[TopicPartition]) -> set[PartitionId]:
    return {(tp.topic, tp.partition) for tp in partitions}


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


_ACKNOWLEDGE_S = 10.0

_POISON_EVERY: Final = 50
"""One record of so many: at a record a second, one or two within the demo's first pass."""

_POISON: Final = 10

_EMPTY_POLLS: Final = 4
"""After so many polls without a record, once none is produced any more, nothing is left: what is released comes back at
once."""


class ShareMember:
    """One running member.

    Attributes:
        settled: No record has come for a while since the stage went quiet, or it is closed.
    """

    def __init__(self, group: str, topic: str, client_id: str, stage: Stage) -> None:
        """Start its thread."""
        self.settled = False
        self._stage, self._topic = stage, topic
        self._leaving = threading.Event()
        self._settings = {
            "bootstrap.servers": stage.bootstrap,
            "group.id": group,
            "client.id": client_id,
            "share.acknowledgement.mode": "explicit",
            "log_level": QUIET_LIBRDKAFKA,
        }
        self._thread = threading.Thread(target=self._run, daemon=True, name=client_id)
        self._thread.start()

    def leave(self) -> None:
        """Close the client: it leaves its group."""
        self._leaving.set()
        self._thread.join()

    def _run(self) -> None:
        empty = 0
        try:
            with ShareConsumer(self._settings) as consumer:
                consumer.subscribe([self._topic])
                while not self._leaving.is_set():
                    records = [message for message in consumer.poll(_POLL_S) if message.error() is None]
                    for message in records:
                        poison = (message.offset() or 0) % _POISON_EVERY == _POISON
                        consumer.acknowledge(message, AcknowledgeType.RELEASE if poison else AcknowledgeType.ACCEPT)
                    if records:
                        consumer.commit_sync(_ACKNOWLEDGE_S)
                    empty = 0 if records or not self._stage.drained.is_set() else empty + 1
                    self.settled = empty >= _EMPTY_POLLS
        finally:
            self.settled = True
