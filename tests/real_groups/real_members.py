"""Members of real groups with three client libraries and one interface."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from kafka import KafkaConsumer
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import KafkaError

from streaming.demo.kafka_python_member import wait_for_joins
from streaming.demo.stage import QUIET_LIBRDKAFKA
from tests.oracle.java_members import JavaMembers
from tests.oracle.members_process import MembersProcess

__all__ = [
    "HASH_SEED",
    "Joins",
    "LibrdkafkaMembers",
    "Member",
    "StartMember",
    "java_starter",
    "librdkafka_starter",
    "program_starter",
    "start_kafka_python",
]

HASH_SEED = "the result depends on the hash seed of the leader's Python process"
"""Why a decision of kafka-python's sticky strategies may only be checked for validity."""

_JAVA_CLASSES = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}
_KAFKA_PYTHON_CLASSES = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


@dataclass(frozen=True)
class Joins:
    """The settings of one member.

    Attributes:
        bootstrap: `HOST:PORT`.
        group: Its group.
        strategy: The only strategy that it offers; empty for its library's default.
        topics: Its subscription.
        instance: Instance id of a static member: such a member leaves only when its session expires.
        session_ms: Session timeout.
        rejoin_ms: Time that a rebalance waits for a member that does not rejoin.
        heartbeat_ms: Heartbeat interval: it learns of a rebalance after this time.
        metadata_ms: Maximum age of its metadata.
        commit_ms: Time between two commits of the programs of programs.py.
        rack: Its `client.rack`.
        own: Settings that only its library has, with their own names.
    """

    bootstrap: str
    group: str
    strategy: str
    topics: Sequence[str]
    instance: str | None = None
    session_ms: int = 30_000
    rejoin_ms: int = 60_000
    heartbeat_ms: int = 500
    metadata_ms: int = 300_000
    commit_ms: int = 1_000
    rack: str | None = None
    own: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Member:
    """One running member.

    Attributes:
        joins: Its settings.
        leave: Closes its client, and returns at once.
        left: Set when it is closed, or when the client ended by itself.
    """

    joins: Joins
    leave: Callable[[], None]
    left: threading.Event


StartMember = Callable[[Joins], Member]


def java_starter(members: JavaMembers) -> StartMember:
    """Starts members in this JVM."""

    def start(joins: Joins) -> Member:
        own = {
            "partition.assignment.strategy": "org.apache.kafka.clients.consumer." + _JAVA_CLASSES[joins.strategy],
            "metadata.max.age.ms": str(joins.metadata_ms),
        }
        name = members.start(joins.topics, _settings(joins) | own)
        return Member(joins, lambda: members.stop(name), members.closed(name))

    return start


class LibrdkafkaMembers(MembersProcess):
    """Members of confluent-kafka in a separate process (real_librdkafka.py), because some of its leaders crash.

    Its cooperative-sticky reads freed memory (assignors/clients/sticky/librdkafka.py). A crash ends all members of the
    process, as on any machine, and the group goes on.
    """

    def __init__(self) -> None:
        super().__init__([sys.executable, "-m", "tests.real_groups.real_librdkafka"])


def librdkafka_starter(members: LibrdkafkaMembers) -> StartMember:
    """Starts members in this process."""

    def start(joins: Joins) -> Member:
        own = {
            "partition.assignment.strategy": joins.strategy,
            "topic.metadata.refresh.interval.ms": str(joins.metadata_ms),
            "log_level": str(QUIET_LIBRDKAFKA),
        }
        name = members.start(joins.topics, _settings(joins) | own)
        return Member(joins, lambda: members.stop(name), members.closed(name))

    return start


def program_starter(members: MembersProcess) -> StartMember:
    """Starts members in this process, whose program takes Kafka's own names of settings (programs.py)."""

    def start(joins: Joins) -> Member:
        own = {"metadata.max.age.ms": str(joins.metadata_ms), "auto.commit.interval.ms": str(joins.commit_ms)}
        if joins.strategy:
            own["partition.assignment.strategy"] = joins.strategy
        name = members.start(joins.topics, _settings(joins) | own | dict(joins.own))
        return Member(joins, lambda: members.stop(name), members.closed(name))

    return start


def _settings(joins: Joins) -> dict[str, str]:
    """Settings with the same name in Java and librdkafka."""
    settings = {
        "bootstrap.servers": joins.bootstrap,
        "group.id": joins.group,
        "session.timeout.ms": str(joins.session_ms),
        "heartbeat.interval.ms": str(joins.heartbeat_ms),
        "max.poll.interval.ms": str(joins.rejoin_ms),
        "allow.auto.create.topics": "false",
    }
    told = {"group.instance.id": joins.instance, "client.rack": joins.rack}
    return settings | {name: value for name, value in told.items() if value is not None}


def start_kafka_python(joins: Joins) -> Member:
    """Start a member of kafka-python in this process."""

    def run(leaving: threading.Event) -> None:
        consumer = KafkaConsumer(
            bootstrap_servers=joins.bootstrap,
            group_id=joins.group,
            group_instance_id=joins.instance,
            partition_assignment_strategy=[_KAFKA_PYTHON_CLASSES[joins.strategy]],
            session_timeout_ms=joins.session_ms,
            heartbeat_interval_ms=joins.heartbeat_ms,
            max_poll_interval_ms=joins.rejoin_ms,
            metadata_max_age_ms=joins.metadata_ms,
            allow_auto_create_topics=False,
        )
        wait_for_joins(consumer)
        consumer.subscribe(list(joins.topics))
        try:
            while not leaving.is_set():
                consumer.poll(100)
        except KafkaError:
            # A later member with the same instance id fences a static one; its group goes on without it.
            if joins.instance is None:
                raise
        finally:
            consumer.close(autocommit=False)

    return _in_thread(joins, run)


def _in_thread(joins: Joins, run: Callable[[threading.Event], None]) -> Member:
    leaving, left = threading.Event(), threading.Event()

    def whole() -> None:
        try:
            run(leaving)
        finally:
            left.set()

    threading.Thread(target=whole, daemon=True, name=f"member of {joins.group}").start()
    return Member(joins, leaving.set, left)
