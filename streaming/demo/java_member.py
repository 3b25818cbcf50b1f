"""A group member that runs Kafka's own console consumer, in its own JVM."""

from __future__ import annotations

from kafka import TopicPartition
from kafka.admin import OffsetSpec

from streaming.demo.java_tools import console_consumer
from streaming.demo.stage import Stage

_AUTO_COMMIT_MS = 1_000
"""Auto-commits happen also when nothing has moved, so they cannot be counted; only the final offsets are certain."""

_STOP_S = 15.0
"""Leaving takes half a second, but a JVM that is still starting finishes its start first."""


class JavaMember:
    """One running member, with Kafka's default strategies unless given others."""

    def __init__(self, stage: Stage, topic: str, group: str, client_id: str, strategy: str | None = None) -> None:
        """Start its JVM, and register with the stage.

        Args:
            stage: The running demo.
            topic: The subscribed topic.
            group: The group it joins.
            client_id: Its client id.
            strategy: Class names for `partition.assignment.strategy`; None for Kafka's default.
        """
        properties = {
            "client.id": client_id,
            "auto.commit.interval.ms": str(_AUTO_COMMIT_MS),
            "auto.offset.reset": "earliest",
            "session.timeout.ms": "10000",
        }
        if strategy is not None:
            properties["partition.assignment.strategy"] = strategy
        log = stage.folder / "members.log"
        self._process = console_consumer(stage.bootstrap, topic, group, log=log, properties=properties)
        self._stage = stage
        self._topic, self._group = topic, group
        stage.enter(self)

    @property
    def settled(self) -> bool:
        """Whether its group has committed the ends of the topic."""
        if not self._stage.drained.is_set():
            return False
        partitions = [TopicPartition(self._topic, p) for p in range(self._stage.partitions_of(self._topic))]
        admin = self._stage.admin
        ends = admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
        committed = admin.list_group_offsets({self._group: partitions})[self._group]
        return all(tp in committed and committed[tp].offset >= ends[tp].offset for tp in partitions)

    def leave(self) -> None:
        """Stop the JVM; it commits and leaves its group."""
        self._process.stop(_STOP_S)
