"""What a thread of Kafka Streams and its leader put into the user data of a classic group's members.

A member's subscription has a `SubscriptionInfo` (an int32 version, then `schemas/SubscriptionInfoData.json`), its
assignment an `AssignmentInfo`, which is no message of Kafka's:

    usedVersion               int32                              1 to 11
    commonlySupportedVersion  int32                              3+
    activeTasks               array of task                      one for each assigned partition, these sorted
    standbyTasks              array of {task, partitions}
    partitionsByHost          array of {host, partitions}        2 to 4
    topics                    array of {int32 index, topic}      5+
    partitionsByHost          array of {host, indexed}           5+
    standbyPartitionsByHost   array of {host, indexed}           6+
    errCode                   int32                              4+
    nextRebalanceMs           int64                              7+, Long.MAX_VALUE = none

    task: int32 subtopology, int32 partition, from 10 on a named topology as int32 count of UTF-16 units and these
    partitions: array of {string topic, int32 partition};  indexed: array of {int32 topic, int32 partition}
    host: string, int32 port;  array: int32 count, then its elements

A member is not trusted: counts are checked before anything is built. A newer version is known by its number only.

Source: `org.apache.kafka.streams.processor.internals.assignment`, `SubscriptionInfo`, `AssignmentInfo`,
`ConsumerProtocolUtils`, kafka-streams 4.3.1, whose version 11 is that of all releases since 3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from streaming.offsets_log.codec.interpreter import value_layout
from streaming.offsets_log.codec.layouts import data_schema
from streaming.offsets_log.codec.record_types import RecordValue, Rejected, UnknownVersion
from streaming.offsets_log.codec.wire import ELEMENT_BYTES, Allowance, MalformedError, Reader
from streaming.records import StreamThread, TopicPartitions, each_of

StreamTask = tuple[str, int]
"""Id of its subtopology, with its named topology before it where there is one, and partition."""

_SCHEMA = data_schema("SubscriptionInfoData")

_NEWEST: Final = 11

# First versions with these.
_COMMON_VERSION, _ERROR, _TOPIC_INDEX, _STANDBY_HOSTS, _NEXT_REBALANCE, _NAMED = 3, 4, 5, 6, 7, 10


_NEVER: Final = 2**63 - 1

_TASK_BYTES, _PARTITION_BYTES, _HOST_BYTES = 8, 6, 10
"""The fewest bytes of a task, of a partition and of a host with its partitions."""


@dataclass(frozen=True, slots=True)
class AssignmentInfo:
    """What a leader tells a thread.

    Attributes:
        version: As written.
        active: A task for each assigned partition, these sorted by topic and number.
        standby: Standby tasks.
        error: Why it could not assign; 0 below 4, and if it could.
        next_rebalance: Time of the next rebalance, ms; None for none, and below 7.
    """

    version: int
    active: tuple[StreamTask, ...]
    standby: tuple[StreamTask, ...]
    error: int
    next_rebalance: int | None


def decode_subscription_info(
    data: bytes, allowance: Allowance | None = None
) -> RecordValue | UnknownVersion | Rejected:
    """Decode what a thread tells its leader, its `SubscriptionInfo`. Never raises."""
    reader = Reader(data, allowance=allowance)
    try:
        version = reader.int32("version")
        if version > _NEWEST:
            return UnknownVersion(version)
        if version < 1:
            return Rejected(f"subscription info: version {version} is none of Kafka Streams")
        return RecordValue(_SCHEMA, version, value_layout(_SCHEMA, version).read(reader))
    except MalformedError as error:
        return Rejected(f"subscription info: {error}")


def decode_assignment_info(
    data: bytes, allowance: Allowance | None = None
) -> AssignmentInfo | UnknownVersion | Rejected:
    """Decode what a leader tells a thread. Never raises."""
    reader = Reader(data, allowance=allowance)
    error, next_rebalance = 0, _NEVER
    try:
        version = reader.int32("version")
        if version > _NEWEST:
            return UnknownVersion(version)
        if version < 1:
            return Rejected(f"assignment info: version {version} is none of Kafka Streams")
        if version >= _COMMON_VERSION:
            reader.int32("commonlySupportedVersion")
        count = reader.count("activeTasks", _TASK_BYTES, ELEMENT_BYTES)
        active = tuple([_read_task(reader, version) for _ in range(count)])
        standby = []
        for _ in range(reader.count("standbyTasks", _TASK_BYTES + 4, ELEMENT_BYTES)):
            standby.append(_read_task(reader, version))
            _pass_partitions(reader)
        if version >= _TOPIC_INDEX:
            for _ in range(reader.count("topics", 6, 0)):
                reader.int32("index")
                _pass_text(reader)
            for _ in range(2 if version >= _STANDBY_HOSTS else 1):
                _pass_hosts(reader, _pass_indexed)
        elif version > 1:
            _pass_hosts(reader, _pass_partitions)
        if version >= _ERROR:
            error = reader.int32("errCode")
        if version >= _NEXT_REBALANCE:
            next_rebalance = reader.int64("nextRebalanceMs")
    except (MalformedError, UnicodeDecodeError) as broken:
        return Rejected(f"assignment info: {broken}")
    return AssignmentInfo(version, active, tuple(standby), error, None if next_rebalance == _NEVER else next_rebalance)


def stream_thread(subscription: bytes | None, assignment: bytes | None, assigned: TopicPartitions) -> StreamThread:
    """What the core follows of a thread. Never raises.

    User data has an allowance of its own, because a record is not at fault where one member's is too large.

    Args:
        subscription: User data of its subscription; None when null.
        assignment: User data of its assignment; None when null, as where the leader gave it nothing.
        assigned: Partitions of its assignment.
    """
    allowance = Allowance()
    told = decode_subscription_info(subscription or b"", allowance)
    if isinstance(told, Rejected):
        return StreamThread(unreadable=told.reason)
    process = None if isinstance(told, UnknownVersion) else str(UUID(bytes=told.fields.processId))
    if not assignment and not assigned:
        return StreamThread(told.version, process)
    got = decode_assignment_info(assignment or b"", allowance)
    if isinstance(got, UnknownVersion):
        return StreamThread(told.version, process, unreadable=f"assignment info: version {got.version} is not known")
    if isinstance(got, Rejected):
        return StreamThread(told.version, process, unreadable=got.reason)
    partitions = sorted(each_of(assigned))
    if len(partitions) != len(got.active):
        reason = f"assignment info: {len(got.active)} active tasks for {len(partitions)} partitions"
        return StreamThread(told.version, process, unreadable=reason)
    topics: dict[str, dict[str, None]] = {}
    for (name, _), (topic, _) in zip(got.active, partitions, strict=True):
        topics.setdefault(name, {})[topic] = None
    return StreamThread(
        told.version,
        process,
        _by_subtopology(got.active),
        _by_subtopology(got.standby),
        tuple([(name, tuple(read)) for name, read in topics.items()]),
        got.error,
        got.next_rebalance,
    )


def _by_subtopology(tasks: Iterable[StreamTask]) -> TopicPartitions:
    found: dict[str, set[int]] = {}
    for name, partition in tasks:
        found.setdefault(name, set()).add(partition)
    return tuple([(name, tuple(sorted(partitions))) for name, partitions in sorted(found.items())])


def _read_task(reader: Reader, version: int) -> StreamTask:
    subtopology, partition, topology = reader.int32("subtopology"), reader.int32("partition"), ""
    if min(subtopology, partition) < 0:
        message = f"task {subtopology}_{partition} is negative"
        raise MalformedError(message)
    if version >= _NAMED:
        topology = reader.raw(2 * reader.count("namedTopology", 2, 0), "namedTopology").decode("utf-16-be")
    # As Kafka Streams prints it (`TaskId.toString`).
    return (f"{topology}__{subtopology}" if topology else str(subtopology)), partition


def _pass_text(reader: Reader) -> None:
    reader.raw(reader.uint16("text"), "text")


def _pass_partitions(reader: Reader) -> None:
    for _ in range(reader.count("partitions", _PARTITION_BYTES, 0)):
        _pass_text(reader)
        reader.int32("partition")


def _pass_indexed(reader: Reader) -> None:
    reader.raw(8 * reader.count("partitions", 8, 0), "partitions")


def _pass_hosts(reader: Reader, pass_partitions: Callable[[Reader], Any]) -> None:
    for _ in range(reader.count("partitionsByHost", _HOST_BYTES, 0)):
        _pass_text(reader)
        reader.int32("port")
        pass_partitions(reader)
