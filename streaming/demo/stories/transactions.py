"""Story 8: a transactional consumer-producer: committed offsets count, aborted ones do not.

`transfers-exactly-once` (confluent-kafka) reads `transfers` and writes `transfers-booked`, with a transaction every two
seconds that contains its offsets. Every third is followed by one with offsets a million too high, which aborts.

Expected: committed offsets follow the end of `transfers`; there is never an offset of a million or more, nor
`ahead_by`; the number of commits is that of the committed transactions' partitions; the log is held back only for
moments.
"""

from __future__ import annotations

import threading
import time

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from streaming.demo.journal import PartitionId, by_topic
from streaming.demo.librdkafka_member import consumed_everything, generation_of
from streaming.demo.stage import QUIET_LIBRDKAFKA, Stage, Story

_GROUP, _IN, _OUT = "transfers-exactly-once", "transfers", "transfers-booked"

FAR_AHEAD = 1_000_000
"""Added to the offsets of aborted transactions: so far beyond any end that a wrongly counted one would show."""

_TRANSACTION_S = 2.0
_ABORT_EVERY = 3


class _Booker:
    """Books transfers exactly once until it leaves."""

    def __init__(self, stage: Stage) -> None:
        self.settled = False
        self._stage = stage
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        stage.enter(self)

    def leave(self) -> None:
        """Close both clients; the consumer leaves its group."""
        self._leaving.set()
        self._thread.join()

    def _run(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._stage.bootstrap,
                "client.id": "transfers-booker",
                "group.id": _GROUP,
                "partition.assignment.strategy": "range",
                "session.timeout.ms": 10_000,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "log_level": QUIET_LIBRDKAFKA,
            }
        )
        producer = Producer(
            {
                "bootstrap.servers": self._stage.bootstrap,
                "client.id": "transfers-booker",
                "transactional.id": "transfers-booker",
                "transaction.timeout.ms": 10_000,
                "log_level": QUIET_LIBRDKAFKA,
            }
        )
        consumer.subscribe([_IN], on_assign=self._on_assign)
        producer.init_transactions(20)
        done = 0
        while not self._leaving.is_set():
            at_the_end = self._stage.drained.is_set()
            offsets = self._gather(consumer)
            if offsets and not self.settled:
                self._transact(consumer, producer, offsets)
                done += 1
                if done % _ABORT_EVERY == 0 and not at_the_end:
                    self._abort(consumer, producer, offsets)
            self.settled = self.settled or (at_the_end and not offsets and consumed_everything(consumer))
        consumer.close()

    def _gather(self, consumer: Consumer) -> dict[PartitionId, int]:
        """Consume for the length of a transaction; returns the next offset of each partition that had records."""
        offsets: dict[PartitionId, int] = {}
        end = time.monotonic() + _TRANSACTION_S
        while (left := end - time.monotonic()) > 0 and not self._leaving.is_set():
            message = consumer.poll(min(left, 0.5))
            if message is None or message.error() is not None:
                continue
            topic, partition, offset = message.topic(), message.partition(), message.offset()
            if topic is not None and partition is not None and offset is not None:
                offsets[topic, partition] = offset + 1
        return offsets

    def _transact(self, consumer: Consumer, producer: Producer, offsets: dict[PartitionId, int]) -> None:
        producer.begin_transaction()
        producer.produce(_OUT, b"booked", partition=0)
        producer.send_offsets_to_transaction(_partitions(offsets), consumer.consumer_group_metadata(), 10)
        try:
            producer.commit_transaction(10)
        except KafkaException:
            self._stage.ledger.uncertain(8, _GROUP, offsets)
            raise
        self._stage.ledger.committed(8, _GROUP, offsets)

    def _abort(self, consumer: Consumer, producer: Producer, offsets: dict[PartitionId, int]) -> None:
        ahead = {partition: offset + FAR_AHEAD for partition, offset in offsets.items()}
        producer.begin_transaction()
        producer.produce(_OUT, b"never booked", partition=0)
        producer.send_offsets_to_transaction(_partitions(ahead), consumer.consumer_group_metadata(), 10)
        producer.abort_transaction(10)
        self._stage.journal.write(8, "aborted", group=_GROUP, offsets=by_topic(ahead))

    def _on_assign(self, consumer: Consumer, assigned: list[TopicPartition]) -> None:
        partitions = sorted(tp.partition for tp in assigned)
        self._stage.journal.write(
            8,
            "generation",
            group=_GROUP,
            member=consumer.memberid(),
            client="transfers-booker",
            generation=generation_of(consumer),
            assigned={_IN: partitions},
        )


def _partitions(offsets: dict[PartitionId, int]) -> list[TopicPartition]:
    return [TopicPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()]


def _play(stage: Stage) -> None:
    _Booker(stage)


STORY = Story(
    number=8,
    title="transactions: committed offsets count, aborted ones never",
    groups=(_GROUP,),
    topics={_IN: 3, _OUT: 3},
    rates={_IN: 3.0},
    play=_play,
)
