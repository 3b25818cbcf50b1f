"""Story 5: a strategy unknown to Evenkeel, an empty group, and a group without membership.

`orders-pinned` (kafka-python, strategy `demo-pinned`) on `orders`: `unverified` with the reason; imbalance is still
measured (4 and 2 partitions). `night-batch` (range) works until 25 s and is then Empty, with its commits:
`not_applicable`, churn kind `became_empty`. `orders-mirror` only assigns and commits, so it has no membership record:
`not_applicable`, and its lag is judged all the same.
"""

from __future__ import annotations

import threading
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import KafkaError
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment
from kafka.structs import OffsetAndMetadata

from streaming.demo.kafka_python_member import KafkaPythonMember, MemberSettings, consumed_everything
from streaming.demo.stage import Stage, Story

_PINNED, _EMPTY, _SIMPLE = "orders-pinned", "night-batch", "orders-mirror"


class _Pinned(RangePartitionAssignor):  # type: ignore[misc]  # kafka-python is not typed
    """Pins every third partition of a topic to the last member and the others to the first."""

    name = "demo-pinned"

    @classmethod
    def assign(cls, cluster: Any, members: Any) -> dict[str, ConsumerProtocolAssignment]:
        ids = sorted(member.member_id for member in members)
        pinned: dict[str, dict[str, list[int]]] = {member_id: {} for member_id in ids}
        for topic in sorted({topic for member in members for topic in member.metadata.topics}):
            for partition in sorted(cluster.partitions_for_topic(topic) or ()):
                owner = ids[-1] if partition % 3 == 2 else ids[0]
                pinned[owner].setdefault(topic, []).append(partition)
        return {
            member_id: ConsumerProtocolAssignment(cls.version, sorted(topics.items()), b"")
            for member_id, topics in pinned.items()
        }


class _SimpleConsumer:
    """Assigns itself all partitions of a topic and commits, without ever joining the group."""

    def __init__(self, stage: Stage, topic: str) -> None:
        self.settled = False
        self._stage = stage
        self._topic = topic
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        stage.enter(self)

    def leave(self) -> None:
        """Close the client; its commits stay."""
        self._leaving.set()
        self._thread.join()

    def _run(self) -> None:
        consumer = KafkaConsumer(
            bootstrap_servers=self._stage.bootstrap,
            client_id=_SIMPLE,
            group_id=_SIMPLE,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )
        partitions = [TopicPartition(self._topic, p) for p in range(self._stage.partitions_of(self._topic))]
        consumer.assign(partitions)
        while not self._leaving.wait(0.05):
            at_the_end = self._stage.drained.is_set()
            batches = consumer.poll(2_000)
            if batches and not self.settled:
                self._commit(consumer, {tp: records[-1].offset + 1 for tp, records in batches.items()})
            self.settled = self.settled or (at_the_end and not batches and consumed_everything(consumer))
        consumer.close()

    def _commit(self, consumer: KafkaConsumer, offsets: dict[TopicPartition, int]) -> None:
        noted = {(tp.topic, tp.partition): offset for tp, offset in offsets.items()}
        try:
            consumer.commit({tp: OffsetAndMetadata(offset, "", -1) for tp, offset in offsets.items()}, timeout_ms=5_000)
        except KafkaError:
            self._stage.ledger.uncertain(5, _SIMPLE, noted)
        else:
            self._stage.ledger.committed(5, _SIMPLE, noted)


def _play(stage: Stage) -> None:
    for name in ("a", "b"):
        pinned = MemberSettings(5, _PINNED, ("orders",), f"pinned-{name}", assignors=(_Pinned,))
        KafkaPythonMember.on_stage(pinned, stage)
    _SimpleConsumer(stage, "orders")
    batch = [
        KafkaPythonMember.on_stage(MemberSettings(5, _EMPTY, ("orders",), f"batch-{name}"), stage) for name in "ab"
    ]
    stage.until(25)
    stage.exit(*batch)
    stage.step(5, "all members left", group=_EMPTY)


STORY = Story(
    number=5,
    title="an unknown strategy, an empty group, a group without membership",
    groups=(_PINNED, _EMPTY, _SIMPLE),
    topics={"orders": 6},
    play=_play,
)
