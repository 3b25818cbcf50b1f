"""A group member on librdkafka (confluent-kafka), in a thread."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from streaming.demo.journal import PartitionId
from streaming.demo.stage import QUIET_LIBRDKAFKA, Stage

_POLL_S = 0.5
_ANSWER_S = 2.0
"""Limit for a request to the broker, which normally takes a few ms."""

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
    """The settings of one member: story, group, subscription, client id, strategy, and settings that differ."""

    story: int
    group: str
    topics: tuple[str, ...]
    client_id: str
    strategy: str
    commit_every_s: float = 1.5
    more: Mapping[str, str | int | bool] = field(default_factory=dict)


class LibrdkafkaMember:
    """One running member. It joins at once, and commits synchronously what it has consumed."""

    def __init__(self, settings: LibrdkafkaSettings, stage: Stage) -> None:
        """Start its thread, and register with the stage."""
        self.settings = settings
        self.settled = False
        self._stage = stage
        self._leaving = threading.Event()
        self._positions: dict[PartitionId, int] = {}
        self._thread = threading.Thread(target=self._run, daemon=True, name=settings.client_id)
        self._thread.start()
        stage.enter(self)

    def leave(self) -> None:
        """Close the client, which leaves its group."""
        self._leaving.set()
        self._thread.join()

    def _run(self) -> None:
        settings = self.settings
        consumer = Consumer(
            {
                "bootstrap.servers": self._stage.bootstrap,
                "client.id": settings.client_id,
                "group.id": settings.group,
                "partition.assignment.strategy": settings.strategy,
                "session.timeout.ms": 10_000,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "allow.auto.create.topics": False,
                "log_level": QUIET_LIBRDKAFKA,
                **settings.more,
            }
        )
        consumer.subscribe(list(settings.topics), on_assign=self._on_assign, on_revoke=self._on_revoke)
        try:
            self._consume(consumer)
        finally:
            consumer.close()
            self.settled = True

    def _consume(self, consumer: Consumer) -> None:
        next_commit = time.monotonic() + self.settings.commit_every_s
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
                next_commit = time.monotonic() + self.settings.commit_every_s
                self.settled = at_the_end and committed

    def _commit(self, consumer: Consumer) -> bool:
        """Commit all positions; returns whether nothing is left uncommitted."""
        assigned = {(tp.topic, tp.partition) for tp in consumer.assignment()}
        offsets = {partition: offset for partition, offset in self._positions.items() if partition in assigned}
        if not offsets:
            return True
        story, group, ledger = self.settings.story, self.settings.group, self._stage.ledger
        try:
            answer = consumer.commit(
                offsets=[TopicPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()],
                asynchronous=False,
            )
        except KafkaException as error:
            if error.args[0].code() not in _REFUSED:
                ledger.uncertain(story, group, offsets)
            return False
        written = {(tp.topic, tp.partition) for tp in answer or () if tp.error is None}
        ledger.committed(story, group, {key: value for key, value in offsets.items() if key in written})
        return written == set(offsets)

    def _on_assign(self, consumer: Consumer, assigned: list[TopicPartition]) -> None:
        self.settled = False
        by_topic: dict[str, list[int]] = {}
        for topic, partition in sorted((tp.topic, tp.partition) for tp in assigned):
            by_topic.setdefault(topic, []).append(partition)
        self._stage.journal.write(
            self.settings.story,
            "generation",
            group=self.settings.group,
            member=consumer.memberid(),
            client=self.settings.client_id,
            generation=generation_of(consumer),
            assigned=by_topic,
        )

    def _on_revoke(self, _consumer: Consumer, revoked: list[TopicPartition]) -> None:
        for tp in revoked:
            self._positions.pop((tp.topic, tp.partition), None)


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
