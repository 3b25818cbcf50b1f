"""Members of real groups with three client libraries and one interface."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from streaming.demo.stage import QUIET_LIBRDKAFKA
from tests.oracle.java_classes import JavaMembers
from tests.oracle.members_process import MembersProcess

HASH_SEED = "the result depends on the hash seed of the leader's Python process"
"""Why a decision of kafka-python's sticky strategies may only be checked for validity."""

_JAVA_PACKAGE = "org.apache.kafka.clients.consumer."
_JAVA_CLASSES = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
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


class LibrdkafkaMembers(MembersProcess):
    """Members of confluent-kafka in a separate process (real_librdkafka.py), because some of its leaders crash.

    Its cooperative-sticky reads freed memory (assignors/clients/sticky/librdkafka.py). A crash ends all members of the
    process, as on any machine, and the group goes on.
    """

    def __init__(self) -> None:
        super().__init__([sys.executable, "-m", "tests.real_groups.real_librdkafka"])


class KafkaPythonMembers(MembersProcess):
    """Members of kafka-python in a separate process."""

    def __init__(self) -> None:
        super().__init__([sys.executable, "-m", "tests.real_groups.real_kafka_python"])


LIBRARIES: Mapping[str, Callable[[], MembersProcess]] = {
    "java": lambda: JavaMembers("4.3.1"),
    "librdkafka": LibrdkafkaMembers,
    "kafka-python": KafkaPythonMembers,
}
"""Members of each client library, each library in a process of its own."""


def starter(members: MembersProcess) -> StartMember:
    """Starts members in this process, with the names of settings that its library has."""

    def start(joins: Joins) -> Member:
        name = members.start(joins.topics, _settings(joins) | _of_library(members, joins) | dict(joins.own))
        return Member(joins, lambda: members.stop(name), members.closed(name))

    return start


def _of_library(members: MembersProcess, joins: Joins) -> dict[str, str]:
    if isinstance(members, LibrdkafkaMembers):
        return {
            "partition.assignment.strategy": joins.strategy,
            "topic.metadata.refresh.interval.ms": str(joins.metadata_ms),
            "log_level": str(QUIET_LIBRDKAFKA),
        }
    own = {"metadata.max.age.ms": str(joins.metadata_ms)}
    if isinstance(members, JavaMembers):
        return own | {"partition.assignment.strategy": _JAVA_PACKAGE + _JAVA_CLASSES[joins.strategy]}
    if joins.strategy:
        own["partition.assignment.strategy"] = joins.strategy
    return own | {"auto.commit.interval.ms": str(joins.commit_ms)}


def _settings(joins: Joins) -> dict[str, str]:
    """Settings with the same name in all."""
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
