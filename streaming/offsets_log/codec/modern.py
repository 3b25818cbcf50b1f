"""From the records of modern groups (types 3 to 23) to the core's inputs (`records/modern.py`).

One function a kind of record, whichever type of group it is of: a field that its type lacks has its default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from streaming.offsets_log.codec.record_types import OtherKey, Rejected, UnknownVersion, decode_record_value
from streaming.offsets_log.codec.wire import Allowance, MalformedError, text_of
from streaming.records import (
    CONSUMER,
    SHARE,
    STREAMS,
    CurrentAssignment,
    GroupEpoch,
    IdPartitions,
    InternalTopics,
    KnownTopics,
    ModernInput,
    ModernMember,
    Removed,
    ResolvedRegex,
    ShareTopics,
    StreamsTopology,
    TargetAssignment,
    TargetEpoch,
)


def decode_modern(
    offset: int,
    timestamp: int,
    key: OtherKey,
    data: bytes | None,
    log_partition: int = -1,
    allowance: Allowance | None = None,
) -> ModernInput | UnknownVersion | Rejected:
    """Decode one record of a modern group. Never raises.

    Args:
        offset: Log offset of the record.
        timestamp: Record timestamp, ms.
        key: Its key.
        data: The whole value; None for a tombstone.
        log_partition: Partition of the offsets log; -1 when not known.
        allowance: Counts the memory that the record takes.
    """
    where = offset, timestamp, _group_type(key.key_type), log_partition
    if data is None:
        return Removed(*where, key.key_type, key.part)
    value = decode_record_value(key.key_type, data, allowance)
    if isinstance(value, UnknownVersion | Rejected):
        return value
    try:
        return _MADE[key.key_type](where, key.part or "", value.fields)
    except MalformedError as error:
        return Rejected(f"value: {error}")


def _group_type(key_type: int) -> str:
    if key_type in {9, 10, 11, 12, 13, 14, 15}:
        return SHARE
    if key_type <= 16:
        return CONSUMER
    return STREAMS


_Where = tuple[int, int, str, int]


def _epoch(where: _Where, _: str, value: Any) -> GroupEpoch:
    validated = getattr(value, "validatedTopologyEpoch", -1)
    configs = {config.key: config.value for config in getattr(value, "lastAssignmentConfigs", None) or ()}
    return GroupEpoch(*where, value.epoch, value.metadataHash, -1, validated, configs)


def _member(where: _Where, member_id: str, value: Any) -> ModernMember:
    classic, endpoint = getattr(value, "classicMemberMetadata", None), getattr(value, "userEndpoint", None)
    # An absent tag reads as an empty struct, as in Kafka; a member of the classic protocol supports some protocol.
    protocols = tuple([protocol.name for protocol in classic.supportedProtocols]) if classic is not None else ()
    tags = getattr(value, "clientTags", None)
    return ModernMember(
        *where,
        member_id,
        instance_id=getattr(value, "instanceId", None),
        rack=value.rackId,
        client_id=value.clientId,
        client_host=value.clientHost,
        topics=getattr(value, "subscribedTopicNames", ()),
        # Brokers have also written "" for none.
        regex=getattr(value, "subscribedTopicRegex", None) or None,
        rebalance_timeout=getattr(value, "rebalanceTimeoutMs", -1),
        assignor=getattr(value, "serverAssignor", None),
        classic_protocols=protocols or None,
        process_id=getattr(value, "processId", None),
        topology_epoch=getattr(value, "topologyEpoch", -1),
        client_tags=None if tags is None else {tag.key: tag.value for tag in tags},
        endpoint=None if endpoint is None else (endpoint.host, endpoint.port),
    )


def _target_epoch(where: _Where, _: str, value: Any) -> TargetEpoch:
    return TargetEpoch(*where, value.assignmentEpoch, value.assignmentTimestamp)


def _target(where: _Where, member_id: str, value: Any) -> TargetAssignment:
    return TargetAssignment(*where, member_id, *_owned(value, "topicPartitions", *_TASKS))


def _current(where: _Where, member_id: str, value: Any) -> CurrentAssignment:
    epochs = value.memberEpoch, value.previousMemberEpoch
    owned, standby, warmup = _owned(value, "assignedPartitions", *_TASKS)
    revoking = _owned(value, "partitionsPendingRevocation", *[f"{name}PendingRevocation" for name in _TASKS])
    return CurrentAssignment(
        *where, member_id, *epochs, value.state, owned, revoking[0], standby, warmup, *revoking[1:]
    )


_TASKS = "activeTasks", "standbyTasks", "warmupTasks"


def _owned(value: Any, partitions: str, active: str, standby: str, warmup: str) -> tuple[IdPartitions, ...]:
    """Partitions or active tasks, then standby and warm-up tasks, each as far as the type of group has them."""
    listed = getattr(value, partitions, None)
    first = _tasks(getattr(value, active, ())) if listed is None else _by_id(listed)
    return first, _tasks(getattr(value, standby, ())), _tasks(getattr(value, warmup, ()))


def _regex(where: _Where, regex: str, value: Any) -> ResolvedRegex:
    return ResolvedRegex(*where, regex, value.topics, value.version, value.timestamp)


def _counts(where: _Where, _: str, value: Any) -> KnownTopics:
    topics = [(text_of(topic.topicId), topic.topicName, topic.numPartitions) for topic in value.topics]
    return KnownTopics(*where, tuple(topics))


def _share_topics(where: _Where, _: str, value: Any) -> ShareTopics:
    topics = [*value.initializingTopics, *value.initializedTopics]
    named = tuple([(text_of(topic.topicId), topic.topicName, None) for topic in topics])
    return ShareTopics(*where, named, _by_id(value.initializedTopics))


def _topology(where: _Where, _: str, value: Any) -> StreamsTopology:
    subtopologies = [
        (
            part.subtopologyId,
            part.sourceTopics,
            part.sourceTopicRegex,
            tuple([t.name for t in part.repartitionSourceTopics]),
        )
        for part in value.subtopologies
    ]
    internal = tuple([_internal(part) for part in value.subtopologies])
    return StreamsTopology(*where, value.epoch, tuple(subtopologies), internal)


def _internal(part: Any) -> InternalTopics:
    return InternalTopics(
        tuple([(topic.name, topic.partitions) for topic in part.stateChangelogTopics]),
        tuple([topic.partitions for topic in part.repartitionSourceTopics]),
        part.repartitionSinkTopics,
        tuple([(of.sourceTopics, of.repartitionSourceTopics) for of in part.copartitionGroups]),
    )


def _by_id(topics: Iterable[Any]) -> IdPartitions:
    return _checked([(text_of(topic.topicId), topic.partitions) for topic in topics])


def _tasks(tasks: Iterable[Any]) -> IdPartitions:
    return _checked([(task.subtopologyId, task.partitions) for task in tasks])


def _checked(partitions: list[tuple[str, tuple[int, ...]]]) -> IdPartitions:
    for name, numbers in partitions:
        if numbers and min(numbers) < 0:
            # Java would accept it; but no coordinator writes it, and any use of it would be a guess.
            message = f"partition {min(numbers)} of {name} is negative"
            raise MalformedError(message)
    return tuple(partitions)


_MADE: dict[int, Callable[[_Where, str, Any], ModernInput]] = {
    3: _epoch,
    4: _counts,
    5: _member,
    6: _target_epoch,
    7: _target,
    8: _current,
    9: _counts,
    10: _member,
    11: _epoch,
    12: _target_epoch,
    13: _target,
    14: _current,
    15: _share_topics,
    16: _regex,
    17: _epoch,
    19: _member,
    20: _target_epoch,
    21: _target,
    22: _current,
    23: _topology,
}
