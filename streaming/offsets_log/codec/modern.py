"""From the records of modern groups (types 3 to 23) to the core's inputs (`records/modern.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from streaming.offsets_log.codec.keys import OtherKey
from streaming.offsets_log.codec.record_types import Rejected, UnknownVersion, decode_record_value
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
    return GroupEpoch(*where, value.epoch, value.metadataHash)


def _streams_epoch(where: _Where, _: str, value: Any) -> GroupEpoch:
    configs = {config.key: config.value for config in value.lastAssignmentConfigs or ()}
    return GroupEpoch(*where, value.epoch, value.metadataHash, -1, value.validatedTopologyEpoch, configs)


def _consumer_member(where: _Where, member_id: str, value: Any) -> ModernMember:
    classic = value.classicMemberMetadata
    # An absent tag reads as an empty struct, as in Kafka; a member of the classic protocol supports some protocol.
    protocols = tuple([protocol.name for protocol in classic.supportedProtocols]) if classic is not None else ()
    return ModernMember(
        *where,
        member_id,
        instance_id=value.instanceId,
        rack=value.rackId,
        client_id=value.clientId,
        client_host=value.clientHost,
        topics=value.subscribedTopicNames,
        # Brokers have also written "" for none.
        regex=value.subscribedTopicRegex or None,
        rebalance_timeout=value.rebalanceTimeoutMs,
        assignor=value.serverAssignor,
        classic_protocols=protocols or None,
    )


def _share_member(where: _Where, member_id: str, value: Any) -> ModernMember:
    return ModernMember(
        *where, member_id, None, value.rackId, value.clientId, value.clientHost, value.subscribedTopicNames
    )


def _streams_member(where: _Where, member_id: str, value: Any) -> ModernMember:
    endpoint = value.userEndpoint
    return ModernMember(
        *where,
        member_id,
        instance_id=value.instanceId,
        rack=value.rackId,
        client_id=value.clientId,
        client_host=value.clientHost,
        topics=(),
        rebalance_timeout=value.rebalanceTimeoutMs,
        process_id=value.processId,
        topology_epoch=value.topologyEpoch,
        client_tags={tag.key: tag.value for tag in value.clientTags},
        endpoint=None if endpoint is None else (endpoint.host, endpoint.port),
    )


def _target_epoch(where: _Where, _: str, value: Any) -> TargetEpoch:
    return TargetEpoch(*where, value.assignmentEpoch, value.assignmentTimestamp)


def _target(where: _Where, member_id: str, value: Any) -> TargetAssignment:
    return TargetAssignment(*where, member_id, _by_id(value.topicPartitions))


def _streams_target(where: _Where, member_id: str, value: Any) -> TargetAssignment:
    return TargetAssignment(
        *where, member_id, _tasks(value.activeTasks), _tasks(value.standbyTasks), _tasks(value.warmupTasks)
    )


def _current(where: _Where, member_id: str, value: Any) -> CurrentAssignment:
    return CurrentAssignment(
        *where,
        member_id,
        value.memberEpoch,
        value.previousMemberEpoch,
        value.state,
        _by_id(value.assignedPartitions),
        _by_id(value.partitionsPendingRevocation),
    )


def _share_current(where: _Where, member_id: str, value: Any) -> CurrentAssignment:
    epochs = value.memberEpoch, value.previousMemberEpoch
    return CurrentAssignment(*where, member_id, *epochs, value.state, _by_id(value.assignedPartitions))


def _streams_current(where: _Where, member_id: str, value: Any) -> CurrentAssignment:
    return CurrentAssignment(
        *where,
        member_id,
        value.memberEpoch,
        value.previousMemberEpoch,
        value.state,
        _tasks(value.activeTasks),
        _tasks(value.activeTasksPendingRevocation),
        _tasks(value.standbyTasks),
        _tasks(value.warmupTasks),
        _tasks(value.standbyTasksPendingRevocation),
        _tasks(value.warmupTasksPendingRevocation),
    )


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
    5: _consumer_member,
    6: _target_epoch,
    7: _target,
    8: _current,
    9: _counts,
    10: _share_member,
    11: _epoch,
    12: _target_epoch,
    13: _target,
    14: _share_current,
    15: _share_topics,
    16: _regex,
    17: _streams_epoch,
    19: _streams_member,
    20: _target_epoch,
    21: _streams_target,
    22: _streams_current,
    23: _topology,
}
