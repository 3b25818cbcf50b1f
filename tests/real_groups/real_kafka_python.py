"""Runs kafka-python's consumers as `member_program.py` says, so that they can crash."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from kafka import KafkaConsumer
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

from streaming.demo.kafka_python_member import wait_for_joins
from tests.real_groups.member_program import serve

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
        metadata_max_age_ms=int(settings["metadata.max.age.ms"]),
        client_rack=settings.get("client.rack", ""),
        allow_auto_create_topics=False,
    )
    wait_for_joins(consumer)
    return consumer


if __name__ == "__main__":
    serve(_opened, lambda consumer: consumer.poll(100))
