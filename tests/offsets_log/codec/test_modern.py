"""Records of modern groups as inputs of the core, compared with the output of Kafka's classes for the same bytes."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from streaming.offsets_log import OtherKey, Rejected, UnknownVersion, decode_key, decode_modern
from streaming.records import modern
from tests.offsets_log.real_records import RELEASES
from tests.offsets_log.written import compact, compact_array, int32_array, member_metadata, other_key, target_assignment

Json = dict[str, Any]


def by_id(topics: list[Json]) -> modern.IdPartitions:
    return tuple((topic["topicId"], tuple(topic["partitions"])) for topic in topics)


def tasks(found: list[Json]) -> modern.IdPartitions:
    return tuple((task["subtopologyId"], tuple(task["partitions"])) for task in found)


def metadata_of_a_consumer(where: Any, name: str, value: Json) -> modern.ModernMember:
    classic = value.get("classicMemberMetadata") or {"supportedProtocols": []}
    return modern.ModernMember(
        *where,
        name,
        value["instanceId"],
        value["rackId"],
        value["clientId"],
        value["clientHost"],
        tuple(value["subscribedTopicNames"]),
        value["subscribedTopicRegex"] or None,
        value["rebalanceTimeoutMs"],
        value["serverAssignor"],
        tuple(protocol["name"] for protocol in classic["supportedProtocols"]) or None,
    )


def metadata_in_streams(where: Any, name: str, value: Json) -> modern.ModernMember:
    endpoint = value["userEndpoint"]
    return modern.ModernMember(
        *where,
        name,
        value["instanceId"],
        value["rackId"],
        value["clientId"],
        value["clientHost"],
        (),
        rebalance_timeout=value["rebalanceTimeoutMs"],
        process_id=value["processId"],
        topology_epoch=value["topologyEpoch"],
        client_tags={tag["key"]: tag["value"] for tag in value["clientTags"]},
        endpoint=endpoint and (endpoint["host"], endpoint["port"]),
    )


def topics_of_a_subtopology(part: Json) -> modern.InternalTopics:
    return modern.InternalTopics(
        tuple((topic["name"], topic["partitions"]) for topic in part["stateChangelogTopics"]),
        tuple(topic["partitions"] for topic in part["repartitionSourceTopics"]),
        tuple(part["repartitionSinkTopics"]),
        tuple((tuple(of["sourceTopics"]), tuple(of["repartitionSourceTopics"])) for of in part["copartitionGroups"]),
    )


def expected(key_type: int, where: Any, part: str, value: Json) -> modern.ModernInput:
    """Kafka's printed value in the structs of the core."""
    match key_type:
        case 3 | 11:
            return modern.GroupEpoch(*where, value["epoch"], value.get("metadataHash", 0))
        case 17:
            configs = {of["key"]: of["value"] for of in value.get("lastAssignmentConfigs") or ()}
            validated = value.get("validatedTopologyEpoch", -1)
            return modern.GroupEpoch(*where, value["epoch"], value["metadataHash"], -1, validated, configs)
        case 4 | 9:
            topics = [(topic["topicId"], topic["topicName"], topic["numPartitions"]) for topic in value["topics"]]
            return modern.KnownTopics(*where, tuple(topics))
        case 5:
            return metadata_of_a_consumer(where, part, value)
        case 6 | 12 | 20:
            return modern.TargetEpoch(*where, value["assignmentEpoch"], value.get("assignmentTimestamp", 0))
        case 7 | 13:
            return modern.TargetAssignment(*where, part, by_id(value["topicPartitions"]))
        case 8 | 14:
            epochs = value["memberEpoch"], value["previousMemberEpoch"], value["state"]
            revoking = by_id(value.get("partitionsPendingRevocation", []))
            return modern.CurrentAssignment(*where, part, *epochs, by_id(value["assignedPartitions"]), revoking)
        case 10:
            host = value["clientId"], value["clientHost"]
            return modern.ModernMember(*where, part, None, value["rackId"], *host, tuple(value["subscribedTopicNames"]))
        case 15:
            found = [*value["initializingTopics"], *value["initializedTopics"]]
            named = tuple((topic["topicId"], topic["topicName"], None) for topic in found)
            return modern.ShareTopics(*where, named, by_id(value["initializedTopics"]))
        case 16:
            return modern.ResolvedRegex(*where, part, tuple(value["topics"]), value["version"], value["timestamp"])
        case 19:
            return metadata_in_streams(where, part, value)
        case 21:
            kinds = ("activeTasks", "standbyTasks", "warmupTasks")
            return modern.TargetAssignment(*where, part, *(tasks(value[kind]) for kind in kinds))
        case 22:
            epochs = value["memberEpoch"], value["previousMemberEpoch"], value["state"]
            kinds = ("activeTasks", "activeTasksPendingRevocation", "standbyTasks", "warmupTasks")
            kinds += ("standbyTasksPendingRevocation", "warmupTasksPendingRevocation")
            return modern.CurrentAssignment(*where, part, *epochs, *(tasks(value[kind]) for kind in kinds))
        case _:
            subtopologies = [
                (
                    part["subtopologyId"],
                    tuple(part["sourceTopics"]),
                    tuple(part["sourceTopicRegex"]),
                    tuple(topic["name"] for topic in part["repartitionSourceTopics"]),
                )
                for part in value["subtopologies"]
            ]
            internal = tuple(map(topics_of_a_subtopology, value["subtopologies"]))
            return modern.StreamsTopology(*where, value["epoch"], tuple(subtopologies), internal)


def group_type(key_type: int) -> str:
    return "share" if 9 <= key_type <= 15 else "streams" if key_type >= 17 else "consumer"


def test_every_record_says_to_the_core_what_kafka_prints_of_it() -> None:
    seen = set()
    for row in RELEASES:
        key_type = row["key_type"]
        key = decode_key(bytes.fromhex(row["hex_key"]))
        if not isinstance(key, OtherKey):
            continue
        item = decode_modern(7, 1_000, key, bytes.fromhex(row["hex_value"]), 49)
        if isinstance(item, Rejected):
            # Random partitions may be negative, which no coordinator writes.
            assert item.reason.endswith("is negative")
            assert "-" in str(row["value"])
            continue
        assert item == expected(key_type, (7, 1_000, group_type(key_type), 49), key.part or "", row["value"])
        seen.add(key_type)
    # For 21 and 22 see below.
    assert seen >= {*range(3, 18), *range(19, 24)} - {21, 22}


def test_tasks_of_streams_groups_are_kept_by_kind_and_subtopology() -> None:
    active, standby, warmup = (compact_array([compact(name) + int32_array([0, 2]) + b"\x00"]) for name in "asw")
    target = decode_modern(7, 1_000, OtherKey(21, "g", "m"), b"\x00\x00" + active + standby + warmup + b"\x00", 49)
    a, s, w = (((name, (0, 2)),) for name in "asw")
    assert target == modern.TargetAssignment(7, 1_000, "streams", 49, "m", a, s, w)
    head = struct.pack(">hiib", 0, 5, 4, 1)
    value = head + active + standby + warmup + warmup + active + standby + b"\x00"
    current = decode_modern(7, 1_000, OtherKey(22, "g", "m"), value, 49)
    assert current == modern.CurrentAssignment(7, 1_000, "streams", 49, "m", 5, 4, 1, a, w, s, w, a, s)


@pytest.mark.parametrize("key_type", [*range(3, 24)])
def test_a_tombstone_says_what_is_removed(key_type: int) -> None:
    part = "a" if key_type in {5, 7, 8, 10, 13, 14, 16, 19, 21, 22} else None
    key = decode_key(other_key(key_type, "g", part))
    assert isinstance(key, OtherKey)
    assert decode_modern(7, 1_000, key, None, 49) == modern.Removed(7, 1_000, group_type(key_type), 49, key_type, part)


def test_what_cannot_be_read_says_why() -> None:
    key = OtherKey(7, "g", "a")
    value = target_assignment({bytes(16): [0, -1]})
    assert decode_modern(0, 0, key, value) == Rejected("value: partition -1 of AAAAAAAAAAAAAAAAAAAAAA is negative")
    assert decode_modern(0, 0, key, b"\x00\x01") == UnknownVersion(1)
    assert decode_modern(0, 0, key, b"\x00\x00") == Rejected(
        "value: topicPartitions needs 1 bytes at byte 2, but 0 are left"
    )
    assert decode_modern(0, 0, OtherKey(18, "g", None), b"\x00\x00") == Rejected(
        "value: no release has written type 18 (StreamsGroupPartitionMetadata), so no layout of it is known"
    )


def test_an_empty_regular_expression_is_none() -> None:
    member = decode_modern(0, 0, OtherKey(5, "g", "a"), member_metadata(["t"], regex=""))
    assert member.regex is None
