"""Runs kafka-python's consumers as `member_program.py` says, so that they can crash."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from streaming.demo.kafka_python_member import wait_for_joins
from tests.real_groups.member_program import Tell, serve

_SLOW_S = 2.0


class _SlowRange(RangePartitionAssignor):
    """Range, by a leader that takes its time: meanwhile another member can join, and its assignment comes too late."""

    @classmethod
    def assign(cls, cluster: Any, members: Any) -> Any:
        time.sleep(_SLOW_S)
        return super().assign(cluster, members)


_ASSIGNORS = {
    "slow range": _SlowRange,
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


def _opened(settings: Mapping[str, str]) -> KafkaConsumer:
    consumer = KafkaConsumer(
        bootstrap_servers=settings["bootstrap.servers"],
        group_id=settings["group.id"],
        group_instance_id=settings.get("group.instance.id"),
        partition_assignment_strategy=[_ASSIGNORS[s] for s in settings["partition.assignment.strategy"].split(",")],
        session_timeout_ms=int(settings["session.timeout.ms"]),
        heartbeat_interval_ms=int(settings["heartbeat.interval.ms"]),
        max_poll_interval_ms=int(settings.get("max.poll.interval.ms", "300000")),
        auto_offset_reset=settings.get("auto.offset.reset", "latest"),
        auto_commit_interval_ms=int(settings.get("auto.commit.interval.ms", "5000")),
        metadata_max_age_ms=int(settings.get("metadata.max.age.ms", "300000")),
        client_rack=settings.get("client.rack", ""),
        allow_auto_create_topics=False,
    )
    wait_for_joins(consumer)
    return consumer


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc] - the library has no types
    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self._tell("assigned", assigned)

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        self._tell("revoked", revoked)

    def on_partitions_lost(self, lost: Iterable[TopicPartition]) -> None:
        self._tell("lost", lost)


def _subscribe(consumer: KafkaConsumer, topics: list[str], tell: Tell) -> None:
    consumer.subscribe(topics, listener=_Listener(tell))


if __name__ == "__main__":
    serve(_opened, _subscribe, lambda consumer: consumer.poll(100))
